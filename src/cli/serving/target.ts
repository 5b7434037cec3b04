/** Reads the arguments of a command that serves: which FILE or DIR, and what is handed on to it. */
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
 * Reads `FILE|DIR [-- ARGS]`, and makes `process.argv` what the program expects it to be: as if node had been told to run it.
 *
 * @returns undefined when help is asked for
 * @throws {UsageError} for anything else than one file or directory that is there
 */
export function readTarget(command: string, args: readonly string[]): Target | undefined {
  const split = args.indexOf('--');
  const ours = split === -1 ? args : args.slice(0, split);
  const rest = split === -1 ? [] : args.slice(split + 1);
  const { values, positionals } = parse(command, ours);
  if (values.help) return undefined;
  const [given, ...more] = positionals;
  if (given === undefined) throw new UsageError(`troupe ${command}: expected FILE or DIR, got nothing`);
  if (more.length > 0)
    throw new UsageError(
      `troupe ${command}: expected one FILE or DIR, got ${positionals.length}: ${positionals.join(' ')} (arguments for FILE come after --)`,
    );
  const target = find(command, given);
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
      `troupe ${command}: expected FILE or DIR, got the option ${unknown} (the only one is --help; arguments for FILE come after --)`,
    );
  }
}

function find(command: string, given: string): Target {
  const found = statSync(resolve(given), { throwIfNoEntry: false });
  if (!found)
    throw new UsageError(`troupe ${command}: expected FILE or DIR, got ${given}: there is no such file or directory`);
  const path = realpathSync(resolve(given));
  if (found.isDirectory()) return { path, kind: 'directory' };
  if (!isModule(basename(path)))
    throw new UsageError(`troupe ${command}: expected a ${MODULE_KINDS} file or a directory, got ${given}`);
  return { path, kind: 'file' };
}
