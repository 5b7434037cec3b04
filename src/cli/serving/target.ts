/** Parses the arguments of a command that serves: FILE or DIR, and the ARGS of the program. */
import { realpathSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { isModule, MODULE_KINDS } from '../../features/discovery/module-files.ts';
import { absolutePath, type CommandIo } from '../command-io.ts';
import { UsageError } from '../usage.ts';

export interface Target {
  /** Absolute, without symbolic links. */
  readonly path: string;
  readonly kind: 'file' | 'directory';
}

/**
 * Parses `FILE|DIR [-- ARGS]`.
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
  if (path === undefined) throw new UsageError(`troupe ${command}: expected FILE or DIR, got none`);
  if (more.length > 0)
    throw new UsageError(
      `troupe ${command}: expected one FILE or DIR, got ${positionals.length}: ${positionals.join(' ')} (pass arguments for FILE after --)`,
    );
  return find(command, path, io);
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
