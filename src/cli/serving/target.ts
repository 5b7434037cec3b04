/** Parses the arguments of a command that serves: FILE or DIR, and the ARGS of the program. */
import { realpathSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { isModule, MODULE_KINDS } from '../../discovery/module-files.ts';
import { UsageError } from '../usage.ts';

export interface Target {
  /** Absolute, without symbolic links. */
  readonly path: string;
  readonly kind: 'file' | 'directory';
}

/**
 * Parses `FILE|DIR [-- ARGS]`, and sets `process.argv` as if node had been started with FILE and ARGS.
 *
 * @returns undefined for `--help`
 * @throws {UsageError} for anything other than one existing file or directory
 */
export function readTarget(command: string, args: readonly string[]): Target | undefined {
  const split = args.indexOf('--');
  const ours = split === -1 ? args : args.slice(0, split);
  const rest = split === -1 ? [] : args.slice(split + 1);
  const { values, positionals } = parse(command, ours);
  if (values.help) return undefined;
  const [path, ...more] = positionals;
  if (path === undefined) throw new UsageError(`troupe ${command}: expected FILE or DIR, got none`);
  if (more.length > 0)
    throw new UsageError(
      `troupe ${command}: expected one FILE or DIR, got ${positionals.length}: ${positionals.join(' ')} (pass arguments for FILE after --)`,
    );
  const target = find(command, path);
  process.argv = [process.execPath, target.path, ...rest];
  return target;
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

function find(command: string, given: string): Target {
  const found = statSync(resolve(given), { throwIfNoEntry: false });
  if (!found) throw new UsageError(`troupe ${command}: expected FILE or DIR, got ${given}: no such file or directory`);
  const path = realpathSync(resolve(given));
  if (found.isDirectory()) return { path, kind: 'directory' };
  if (!isModule(basename(path)))
    throw new UsageError(`troupe ${command}: expected a ${MODULE_KINDS} file or a directory, got ${given}`);
  return { path, kind: 'file' };
}
