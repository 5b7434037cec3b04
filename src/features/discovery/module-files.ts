/** Finds the modules below files and directories, in loading order. */
import { Buffer } from 'node:buffer';
import type { Dirent } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';

/** The loadable file types, for messages. */
export const MODULE_KINDS = '.ts, .mts, .js, .mjs or .cjs';

/** True if a file of this name can be loaded. */
export function isModule(name: string): boolean {
  return /\.(?:m?[jt]s|cjs)$/.test(name) && !/\.d\.m?ts$/.test(name);
}

/**
 * True if discovery loads a file of this name from a directory: tests, names that begin with `_` or `.`, and `.cjs`
 * files, which are mostly settings of tools, are skipped.
 */
export function isFoundModule(name: string): boolean {
  return isModule(name) && !name.endsWith('.cjs') && !isPrivate(name) && !/\.test\.m?[jt]s$/.test(name);
}

/** True if discovery skips a file or directory of this name. */
export function isPrivate(name: string): boolean {
  return name === 'node_modules' || name.startsWith('_') || name.startsWith('.');
}

/** True for the root itself and, if it is a directory, for everything in it. */
export function isBelow(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
}

interface FoundModule {
  /** Absolute paths, sorted by their bytes, without duplicates. */
  readonly files: readonly string[];
  /** Every directory that was read. */
  readonly directories: readonly string[];
}

/**
 * Finds the modules of one path.
 * @param path absolute; a file is loaded whatever its name begins with
 * @throws {Error} if the path does not exist, or is a file that cannot be loaded
 */
export async function findModules(path: string): Promise<FoundModule> {
  const found = await stat(path).catch(() => undefined);
  if (!found) throw new Error('no such file or directory');
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
  // A link to a parent directory would never end.
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

/** Gives the same order on every machine, independent of its locale. */
function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
