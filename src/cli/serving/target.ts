/** Parses the arguments of a command that serves: FILE or DIR, and the ARGS of the program. */
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { isObject } from '../../core/protocol/json.ts';
import { isModule, MODULE_KINDS } from '../../features/discovery/module-files.ts';
import { absolutePath, type CommandIo } from '../command-io.ts';
import { say, UsageError } from '../usage.ts';

export interface Target {
  /** Absolute, without symbolic links. */
  readonly path: string;
  readonly kind: 'file' | 'directory';
}

/** The variable that tells a program that a command has started it for itself. */
export const CALLED = 'TROUPE_CALLED';

/** The programs of a directory that a command serves without FILE: the first that exists. */
const PROGRAMS = ['', 'src/'].flatMap((folder) =>
  ['.ts', '.mts', '.js', '.mjs'].map((extension) => `${folder}server${extension}`),
);

/**
 * Parses `[FILE|DIR] [-- ARGS]`. Without FILE, the program of this directory is the target, and a line on stderr names it.
 *
 * @returns undefined for `--help`
 * @throws {UsageError} for anything other than one existing file or directory
 */
export function readTarget(command: string, args: readonly string[], io: Pick<CommandIo, 'cwd'>): Target | undefined {
  const split = args.indexOf('--');
  const ours = split === -1 ? args : args.slice(0, split);
  const { values, positionals } = parse(command, ours);
  if (values.help) return undefined;
  const [path, ...more] = positionals;
  if (path === undefined) return find(command, programOf(command, io), io);
  if (more.length > 0)
    throw new UsageError(
      `troupe ${command}: expected one FILE or DIR, got ${positionals.length}: ${positionals.join(' ')} (pass arguments for FILE after --)`,
    );
  return find(command, path, io);
}

/** @throws {UsageError} if the directory has no program */
function programOf(command: string, io: Pick<CommandIo, 'cwd'>): string {
  const main = mainOf(io.cwd);
  const names = [...PROGRAMS, ...(main === undefined ? [] : [main])];
  const isProgram = (name: string): boolean =>
    isModule(basename(name)) && statSync(join(io.cwd, name), { throwIfNoEntry: false })?.isFile() === true;
  const found = names.find(isProgram);
  if (found === undefined)
    throw new UsageError(
      `troupe ${command}: expected FILE or DIR, got none, and ${io.cwd} has none of ${PROGRAMS.join(', ')}${main === undefined ? ' and no "main" in package.json' : `, and no module ${main} ("main" in package.json)`}`,
    );
  say(`troupe ${command}: FILE is ${found}`);
  return found;
}

/** The main module that package.json of a directory names. */
function mainOf(directory: string): string | undefined {
  try {
    const read: unknown = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
    return isObject(read) && typeof read.main === 'string' && read.main !== '' ? read.main : undefined;
  } catch {
    // Without a package.json, or with a damaged one, nothing is named.
    return undefined;
  }
}

/** Sets `process.argv` as if node had been started with the program and its arguments. */
export function passArguments({ path }: Target, args: readonly string[]): void {
  process.argv = [process.execPath, path, ...args];
}

function parse(command: string, args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: { help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
      strict: true,
    });
  } catch {
    const unknown = args.find((arg) => arg.startsWith('-') && arg !== '-h' && arg !== '--help') ?? '';
    throw new UsageError(
      `troupe ${command}: expected FILE or DIR, got the option ${unknown} (pass arguments for FILE after --)`,
    );
  }
}

function find(command: string, given: string, io: Pick<CommandIo, 'cwd'>): Target {
  const found = statSync(absolutePath(io, given), { throwIfNoEntry: false });
  if (!found) throw new UsageError(`troupe ${command}: expected FILE or DIR, got ${given}: no such file or directory`);
  const path = realpathSync(absolutePath(io, given));
  if (found.isDirectory()) return { path, kind: 'directory' };
  if (!isModule(basename(path)))
    throw new UsageError(`troupe ${command}: expected a ${MODULE_KINDS} file or a directory, got ${given}`);
  return { path, kind: 'file' };
}
