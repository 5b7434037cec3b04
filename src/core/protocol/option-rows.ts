/** Rows of options: the name of each, and what it accepts. One check reads them, and words every rejection. Import it as `option`. */
import { describe, isObject } from './json.ts';

/** Finds what is wrong with a given value. @returns undefined for a value that is accepted */
export interface Check {
  (value: unknown): string | undefined;
  /** Reads an option that is not given, too. */
  readonly needed?: true;
}

/** The check of each option that exists. Options that are `undefined` are not given. */
export type Rows<Options extends object> = { readonly [Name in keyof Required<Options>]: Check };

export type ErrorClass = new (message: string) => Error;
type AnyRows = Readonly<Record<string, Check>>;

/** The longest time of a timer of Node, in milliseconds. */
const LONGEST_MS = 2 ** 31 - 1;

/** @param what the accepted values, in words that follow "expected" */
export function expected(what: string, accepts: (value: unknown) => boolean): Check {
  return (value) => (accepts(value) ? undefined : `expected ${what}, got ${describe(value)}`);
}

/** For an option without a default. */
export function needed(check: Check): Check {
  return Object.assign((value: unknown) => check(value), { needed: true } as const);
}

/** Accepts everything: the types describe it, or another check does. */
export const anything: Check = () => undefined;
export const anyText = expected('a string', (value) => typeof value === 'string');
export const filled = expected('a string that is not empty', isFilled);
export const flag = expected('true or false', (value) => typeof value === 'boolean');
export const object = expected('an object', isObject);
export const functional = expected('a function', isFunction);
export const strings = expected('a list of strings', areStrings);
/** A clock of the program, such as the one of a test. */
export const clock = expected(
  'a clock with now(), date(), after(), hold() and soon()',
  (value) => isObject(value) && ['now', 'date', 'after', 'hold', 'soon'].every((name) => isFunction(value[name])),
);
/** No message contains a secret. */
export const secret: Check = (value) =>
  isFilled(value) ? undefined : `expected a string that is not empty, got ${typeof value}`;
export const privateKey: Check = (value) =>
  isFilled(value) && value.includes('-----BEGIN PRIVATE KEY-----')
    ? undefined
    : 'expected a PKCS #8 key in PEM ("-----BEGIN PRIVATE KEY-----")';
export const count = whole(1);
/** Milliseconds that a timer can wait. */
export const duration = expected(`whole milliseconds from 1 to ${LONGEST_MS}`, (value) =>
  isWhole(value, 1, LONGEST_MS),
);
/** The same, or none. */
export const delay = expected('whole milliseconds, at least 0', (value) => isWhole(value, 0, LONGEST_MS));

/** The check of a number by its name: of a duration, if the name ends with `Ms`. */
export function countOf(name: string): Check {
  return name.endsWith('Ms') ? duration : count;
}

/** Longest lifetime of what is compared with a date, in milliseconds: 100 years. A timer waits for 24.8 days at most. */
const LONGEST_LIFE_MS = 3_155_760_000_000;

/** A lifetime that ends at a date, and needs no timer of its own. */
export const lifetime = expected(`whole milliseconds from 1 to ${LONGEST_LIFE_MS} (100 years)`, (value) =>
  isWhole(value, 1, LONGEST_LIFE_MS),
);

/** The same row for several options. */
export function each<Name extends string>(names: readonly Name[], row: Check): { readonly [Each in Name]: Check };
export function each(names: readonly string[], row: Check): object {
  return Object.fromEntries(names.map((name) => [name, row]));
}

/** A row for each number and each flag with a default. */
export function ofDefaults<Defaults extends object>(defaults: Defaults): { readonly [Name in keyof Defaults]: Check };
export function ofDefaults(defaults: object): object {
  const rowOf = (name: string, value: unknown): Check =>
    typeof value === 'number' ? countOf(name) : typeof value === 'boolean' ? flag : anything;
  return Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, rowOf(name, value)]));
}

export const percent = whole(1, 100);
export const portNumber = whole(0, 65_535);

export function whole(least: number, most?: number): Check {
  const bounds = most === undefined ? `of at least ${least}` : `from ${least} to ${most}`;
  return expected(`a whole number ${bounds}`, (value) => isWhole(value, least, most));
}

/** @example oneOf('auto', 'json', 'sse') // expected "auto", "json" or "sse" */
export function oneOf(...names: readonly string[]): Check {
  const words = names.map((name) => `"${name}"`);
  return expected(`${words.slice(0, -1).join(', ')} or ${words.at(-1)}`, (value) =>
    names.some((name) => name === value),
  );
}

/** An object of options. @param such as `{ port: 9464 }` @param by joins its name and theirs */
export function group(such: string, rows: AnyRows, by: ': ' | '.' = ': '): Check {
  return (value) => {
    if (!isObject(value)) return `expected ${such}, got ${describe(value)}`;
    const problem = unknownIn(value, rows) ?? problemIn(value, rows);
    return problem && (by === '.' ? `.${problem.text}` : problem.text);
  };
}

/** A rate with its burst. @param such what is accepted besides, in words */
export function rate(such = '{ perSecond, burst }'): Check {
  const above = (what: string, least: number): Check =>
    needed(expected(what, (value) => Number.isFinite(value) && Number(value) >= least));
  return group(such, {
    perSecond: above('a number above 0', Number.MIN_VALUE),
    burst: above('a number of at least 1', 1),
  });
}

/** An object with members that have rows, and others. */
export function members(rows: AnyRows): Check {
  return (value) => (isObject(value) ? problemIn(value, rows)?.text : object(value));
}

/**
 * Checks options.
 *
 * @param where the prefix of their names in messages, such as `oauth: `
 * @param fault the class of the error. Default: a RangeError for a number, else a TypeError
 * @throws for the first option that does not exist, which may be misspelled, or has another value than its row accepts
 * @example option.check('otel: ', given, { metrics: flag, mode: oneOf('spans', 'off') });
 */
export function check(where: string, given: unknown, rows: AnyRows, fault?: ErrorClass): void {
  if (!isObject(given)) throw new (fault ?? TypeError)(`${where}expected options, got ${describe(given)}`);
  const problem = unknownIn(given, rows) ?? problemIn(given, rows);
  if (problem) throw errorFor(where, problem, fault);
}

/** Checks those options that have a row. Others may exist. */
export function checkSome(where: string, given: object, rows: AnyRows, fault?: ErrorClass): void {
  const problem = problemIn({ ...given }, rows);
  if (problem) throw errorFor(where, problem, fault);
}

function errorFor(where: string, { text, ofNumber }: Problem, fault?: ErrorClass): Error {
  const Fault = fault ?? (ofNumber ? RangeError : TypeError);
  return new Fault(where + text);
}

type Present<Options> = { readonly [Name in keyof Options]: Exclude<Options[Name], undefined> };

/** An option that is `undefined` is not given: leaves it out, so that it does not replace a default. */
export function withoutUndefined<Options extends object>(given: Options): Present<Options>;
export function withoutUndefined(given: object): object {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

interface Problem {
  readonly text: string;
  readonly ofNumber: boolean;
}

type Members = Readonly<Record<string, unknown>>;

function unknownIn(given: Members, rows: AnyRows): Problem | undefined {
  const name = Object.keys(given).find((each) => !Object.hasOwn(rows, each));
  if (name === undefined) return undefined;
  return { text: `${name}: no such option; there are ${Object.keys(rows).join(', ')}`, ofNumber: false };
}

function problemIn(given: Members, rows: AnyRows): Problem | undefined {
  for (const [name, check] of Object.entries(rows)) {
    // Such an option may be a getter, which is not to run here.
    if (check === anything) continue;
    const value = given[name];
    const problem = value === undefined && !check.needed ? undefined : check(value);
    if (problem !== undefined)
      return { text: `${name}${/^[.[]/.test(problem) ? '' : ': '}${problem}`, ofNumber: typeof value === 'number' };
  }
  return undefined;
}

export function isWhole(value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most;
}

export function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

export function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

export function areStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}
