/** Creates a directory with its missing parents, one after the other. */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Does nothing for an existing directory. Node's own recursive `mkdirSync` never returns where a file system answers
 * ENOENT although the parent exists, as `/proc` does.
 *
 * @param mode of each directory that this function creates
 * @throws {Error} if a directory cannot be created, or the path exists and is no directory
 */
export function makeDirectory(path: string, mode = 0o777): void {
  const missing: string[] = [];
  // The root exists.
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.push(at);
  for (const directory of missing.reverse()) {
    try {
      mkdirSync(directory, { mode });
    } catch (error) {
      // Another process created it, or it is a symbolic link that leads nowhere.
      if (isFault(error, 'EEXIST')) continue;
      if (isFault(error, 'ENOENT'))
        throw new Error(`cannot create ${directory}: ENOENT, its file system creates no directories there`);
      throw error;
    }
  }
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new Error(`cannot create ${path}: EEXIST, a file or a broken link has this name`);
}

function isFault(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
