/** Parses the options of a command. */
import { parseArgs } from 'node:util';
import { messageOf } from '../core/protocol/json.ts';
import { suggestion } from '../core/protocol/near-miss.ts';
import { logAsJson } from './command-log.ts';
import { UsageError } from './usage.ts';

export interface CommandLine {
  /** The value of each option: the empty string for a flag, undefined if it is absent. */
  readonly values: Readonly<Record<string, string | undefined>>;
  /** The values of each option that may occur several times. */
  readonly lists: Readonly<Record<string, readonly string[]>>;
  readonly positionals: readonly string[];
  /** The arguments after `--`. */
  readonly rest: readonly string[];
}

/**
 * Parses a command line such as `--socket PATH`.
 *
 * @param options the options of the command, each with the placeholder of its value; the empty string for a flag. A
 *   placeholder that ends with `…` marks an option that may occur several times
 * @param other the words about an unknown option that resembles none of the options
 * @returns undefined for `--help`
 * @throws {UsageError} for an unknown option, or an option without its value
 */
export function readOptions(
  command: string,
  args: readonly string[],
  options: Readonly<Record<string, string>>,
  other: (name: string) => string = () => '',
): CommandLine | undefined {
  const split = args.indexOf('--');
  const ours = split === -1 ? args : args.slice(0, split);
  const rest = split === -1 ? [] : args.slice(split + 1);
  const known = Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name,
      { type: value === '' ? 'boolean' : 'string', multiple: value.endsWith('…') } as const,
    ]),
  );
  try {
    const { values, positionals } = parseArgs({
      args: [...ours],
      options: { ...known, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    });
    if (values.help) return undefined;
    const single: Record<string, string> = {};
    const lists: Record<string, readonly string[]> = {};
    for (const [name, value] of Object.entries(values))
      if (Array.isArray(value)) lists[name] = value.filter((each) => typeof each === 'string');
      else if (value !== undefined) single[name] = typeof value === 'string' ? value : '';
    return { values: single, lists, positionals, rest };
  } catch (error) {
    const all = Object.entries(options).map(([name, value]) => `--${name} ${value}`.trimEnd());
    const [why = ''] = messageOf(error).split('. ');
    const [, unknown] = /^Unknown option '(--[^']*)'$/.exec(why) ?? [];
    const known = [...Object.keys(options), 'help'].map((name) => `--${name}`);
    const meant = unknown === undefined ? '' : suggestion(unknown, known) || other(unknown.slice('--'.length));
    throw new UsageError(`troupe ${command}: ${why}${meant}. Valid options: ${[...all, '--help'].join(', ')}`);
  }
}

/** Applies `--log`. @returns true for `json` @throws {UsageError} */
export function chooseLog(command: string, { values: { log = 'text' } }: CommandLine): boolean {
  if (log !== 'text' && log !== 'json')
    throw new UsageError(`troupe ${command}: --log: expected text or json, got ${log}`);
  if (log === 'json') logAsJson();
  return log === 'json';
}

/** Parses an option whose value is a whole number of at least 1. @throws {UsageError} */
export function wholeNumber(
  command: string,
  name: string,
  value: string | undefined,
  fallback: number,
  max = 2 ** 31 - 1,
): number {
  if (value === undefined) return fallback;
  const number = Number(value);
  if (/^\d+$/.test(value) && number >= 1 && number <= max) return number;
  throw new UsageError(`troupe ${command}: --${name}: expected a whole number from 1 to ${max}, got ${value}`);
}

/**
 * Reads the value of an option that is a port, or a host and a port.
 *
 * @param example a port. @throws {UsageError}
 */
export function readAddress(option: string, address: string, example: string): { port: number; host: string } {
  const [, bracketed, plain, port] = /^(?:(?:\[([^\]]+)\]|([^:]+)):)?(\d{1,5})$/.exec(address) ?? [];
  if (port === undefined || Number(port) > 65_535)
    throw new UsageError(
      `${option}: expected PORT or HOST:PORT, such as ${example} or 0.0.0.0:${example}, got ${address}`,
    );
  return { port: Number(port), host: bracketed ?? plain ?? '127.0.0.1' };
}
