/** Reads the options of a command, before its FILE, PATH and `-- ARGS`. */
import { parseArgs } from 'node:util';
import { messageOf } from '../protocol/json.ts';
import { UsageError } from './usage.ts';

export interface CommandLine {
  /** What was given for each option; the empty string for one without a value, undefined if it was not given. */
  readonly values: Readonly<Record<string, string | undefined>>;
  readonly positionals: readonly string[];
  /** What came after `--`. */
  readonly rest: readonly string[];
}

/**
 * Reads a command line: `--socket PATH`.
 *
 * @param options the options that the command has, each with what its value is called; the empty string for one without
 * @returns undefined when help is asked for
 * @throws {UsageError} for an option that it has not, or without its value
 */
export function readOptions(
  command: string,
  args: readonly string[],
  options: Readonly<Record<string, string>>,
): CommandLine | undefined {
  const split = args.indexOf('--');
  const ours = split === -1 ? args : args.slice(0, split);
  const rest = split === -1 ? [] : args.slice(split + 1);
  const known = Object.fromEntries(
    Object.entries(options).map(([name, value]) => [name, { type: value === '' ? 'boolean' : 'string' } as const]),
  );
  try {
    const { values, positionals } = parseArgs({
      args: [...ours],
      options: { ...known, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    });
    if (values.help) return undefined;
    const given = Object.entries(values).map(([name, value]) => [name, typeof value === 'boolean' ? '' : value]);
    return { values: Object.fromEntries(given), positionals, rest };
  } catch (error) {
    const all = Object.entries(options).map(([name, value]) => `--${name} ${value}`.trimEnd());
    const [why = ''] = messageOf(error).split('. ');
    throw new UsageError(`troupe ${command}: expected no options but ${[...all, '--help'].join(', ')}: ${why}`);
  }
}

/** The value of an option that is a whole number of at least 1. @throws {UsageError} */
export function wholeNumber(command: string, name: string, given: string | undefined, otherwise: number): number {
  if (given === undefined) return otherwise;
  const number = Number(given);
  if (/^\d+$/.test(given) && number >= 1 && number < 2 ** 31) return number;
  throw new UsageError(`troupe ${command}: --${name}: expected a whole number from 1 to ${2 ** 31 - 1}, got ${given}`);
}
