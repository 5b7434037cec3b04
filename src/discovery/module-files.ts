/** Finds the modules below files and directories, in the order in which they are loaded. */
import { Buffer } from 'node:buffer';
import type { Dirent } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';

/** What can be loaded, in words for messages. */
export const MODULE_KINDS = '.ts, .mts, .js or .mjs';

/** True for a file that can be loaded, by its name. */
export function isModule(name: string): boolean {
  return /\.m?[jt]s$/.test(name) && !/\.d\.m?ts$/.test(name);
}

/** True for a file that is loaded when it is found in a directory: no test, and nothing whose name begins with `_` or `.`. */
export function isFoundModule(name: string): boolean {
  return isModule(name) && !isPrivate(name) && !/\.test\.m?[jt]s$/.test(name);
}

/** True for a file or directory that is passed over when it is found in a directory. */
export function isPrivate(name: string): boolean {
  return name === 'node_modules' || name.startsWith('_') || name.startsWith('.');
}

/** True for the path itself, and for all that is in it if it is a directory. */
export function isBelow(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
}

export interface FoundModule {
  /** Absolute paths, sorted by their bytes, each once. */
  readonly files: readonly string[];
  /** Every directory that was read. */
  readonly directories: readonly string[];
}

/**
 * Finds the modules of one path.
 *
 * @param path absolute; a file is taken as it is, whatever its name begins with
 * @throws {Error} for a path that is not there, or a file that is no module
 */
export async function findModules(path: string): Promise<FoundModule> {
  const found = await stat(path).catch(() => undefined);
  if (!found) throw new Error('there is no such file or directory');
  if (!found.isDirectory()) {
    if (!isModule(basename(path)))
      throw new Error(`expected a directory or a ${MODULE_KINDS} file, got ${basename(path)}`);
    return { files: [path], directories: [] };
  }
  const files: string[] = [];
  const directories: string[] = [];
  await walk(path, files, directories, new Set());
  return { files: files.sort(byBytes), directories };
}

async function walk(directory: string, files: string[], directories: string[], walked: Set<string>): Promise<void> {
  const real = await realpath(directory);
  // A link that leads back up would never end.
  if (walked.has(real)) return;
  walked.add(real);
  directories.push(directory);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (isPrivate(entry.name)) continue;
    const kind = await kindOf(entry, path);
    if (kind === 'directory') await walk(path, files, directories, walked);
    else if (kind === 'file' && isFoundModule(entry.name)) files.push(path);
  }
}

async function kindOf(entry: Dirent, path: string): Promise<'file' | 'directory' | undefined> {
  const found = entry.isSymbolicLink() ? await stat(path).catch(() => undefined) : entry;
  if (found?.isDirectory()) return 'directory';
  return found?.isFile() ? 'file' : undefined;
}

/** The same order on every machine, whatever its language. */
function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
