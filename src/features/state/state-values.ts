/** Checks the keys, values and times of state: what is stored is what is read. */

import { findLostData, isPlain, nameOfInstance } from '../../core/execution/lost-data.ts';
import type { StateKey, StateWriteOptions } from '../../core/execution/state.ts';
import { describe, isObject, type JsonValue, messageOf } from '../../core/protocol/json.ts';
import { inOneLine } from '../../core/schema/problems.ts';
import type { Checked } from '../../core/schema/schema.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import { StateError } from './state-error.ts';

/** Deepest nesting of a value, in levels. */
const MAX_DEPTH = 64;
/** Longest name of a key in a message, in characters. */
const MAX_SHOWN = 80;

export interface ValueLimits {
  readonly maxStateKeyBytes: number;
  readonly maxStateValueBytes: number;
}

/** A value as it is stored. */
export interface ValueText {
  readonly text: string;
  /** Bytes of the text in UTF-8. */
  readonly bytes: number;
}

/** Returns the key as an excerpt for messages. */
export function keyExcerpt(key: string): string {
  return `"${key.length > MAX_SHOWN ? `${key.slice(0, MAX_SHOWN)}…` : key}"`;
}

/** @throws {StateError} `key` */
export function keyOf(key: unknown, limits: ValueLimits): string {
  const text = isObject(key) && 'schema' in key ? key.key : key;
  if (typeof text !== 'string' || text === '')
    throw new StateError(
      'key',
      `expected a text of at least one character as a key, or a key from defineState, got ${describe(text)}`,
    );
  if (!text.isWellFormed())
    throw new StateError(
      'key',
      `the key ${keyExcerpt(text.toWellFormed())} has half of a character. Use key.toWellFormed()`,
    );
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.maxStateKeyBytes)
    throw new StateError(
      'limit',
      `the key ${keyExcerpt(text)} has ${bytes} bytes of at most ${limits.maxStateKeyBytes} (limits.maxStateKeyBytes). Use a shorter key, such as a hash`,
    );
  return text;
}

/** @throws {StateError} `value` for a time that is none */
export function ttlOf(options: StateWriteOptions | undefined): number | undefined {
  if (options === undefined) return undefined;
  const ttlMs: unknown = isObject(options) ? options.ttlMs : options;
  if (!isObject(options))
    throw new StateError('value', `expected options such as { ttlMs: 60_000 }, got ${describe(options)}`);
  if (ttlMs === undefined) return undefined;
  if (typeof ttlMs === 'number' && Number.isSafeInteger(ttlMs) && ttlMs >= 1) return ttlMs;
  throw new StateError('value', `ttlMs: expected whole milliseconds of at least 1, got ${describe(ttlMs)}`);
}

/**
 * Serializes a value.
 *
 * @throws {StateError} `value` if something of it would be lost or changed; `limit` if it is too long
 */
export function toValueText(key: string, value: unknown, limits: ValueLimits): ValueText {
  const what = `the value of ${keyExcerpt(key)}`;
  const lost = lostIn(value, what);
  if (lost !== undefined) throw new StateError('value', lost);
  const text = toText(value);
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.maxStateValueBytes)
    throw new StateError(
      'limit',
      `${what} has ${bytes} bytes of at most ${limits.maxStateValueBytes} (limits.maxStateValueBytes). Store less, or an id of data in a database of your own`,
    );
  return { text, bytes };
}

/** @throws {StateError} `stored` */
export function fromValueText(key: string, text: string): JsonValue {
  try {
    return fromText(text, key);
  } catch (cause) {
    throw new StateError('stored', `the value of ${keyExcerpt(key)} is damaged. Set it again, or delete it`, { cause });
  }
}

/** A check that returned a promise: the first of a plain JSON Schema, which loads its validator, or each one with asynchronous rules. */
class Unready extends Error {
  readonly key: string;
  readonly checking: Promise<unknown>;

  constructor(key: string, checking: Promise<unknown>) {
    super('a check is asynchronous');
    this.key = key;
    this.checking = checking;
  }
}

/** Runs an operation that checks values; once more if its schema had to be loaded. @throws {StateError} `value` for asynchronous rules */
export async function withChecks<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    if (!(error instanceof Unready)) throw error;
    await error.checking.catch(() => {});
  }
  try {
    return await operation();
  } catch (error) {
    if (!(error instanceof Unready)) throw error;
    error.checking.catch(() => {});
    throw new StateError(
      'value',
      `the schema of ${keyExcerpt(error.key)} has asynchronous rules. Check by them before you call ctx.state, and leave them out of the schema`,
    );
  }
}

/**
 * Checks a value by the schema of its key, if it has one.
 *
 * @param fault `stored` for a value that was read
 * @throws {StateError}
 */
export function checkedValue(key: StateKey | string, value: unknown, fault: 'value' | 'stored'): unknown {
  if (typeof key === 'string') return value;
  const name = keyExcerpt(key.key);
  const checked: Checked<unknown> | Promise<unknown> = key.schema.check(value);
  if ('then' in checked) throw new Unready(key.key, checked);
  if (checked.ok) return checked.value;
  const problems = inOneLine(checked.problems);
  throw new StateError(
    fault,
    fault === 'value'
      ? `the value of ${name} does not match its schema: ${problems}`
      : `the stored value of ${name} does not match its schema: ${problems}. Another version of the program may have stored it: accept both forms in the schema, set it again, or delete it`,
  );
}

function lostIn(value: unknown, what: string): string | undefined {
  if (value === undefined) return `${what} is undefined, which JSON has not. Use null, or delete(key)`;
  try {
    return lossyPart(value, what, []) ?? findLostData(value, what)?.replace('would be sent as', 'would be stored as');
  } catch (error) {
    return `${what} cannot be read: ${messageOf(error)}`;
  }
}

/** Finds what JSON would silently change, and what a result of a tool may have: a date, NaN, an absent element of a list. */
function lossyPart(value: unknown, path: string, within: readonly object[]): string | undefined {
  if (typeof value === 'number' && !Number.isFinite(value))
    return `${path} is ${value}, which JSON has not. Use null, or String(value)`;
  if (typeof value !== 'object' || value === null) return undefined;
  if (within.includes(value)) return undefined;
  if (within.length >= MAX_DEPTH) return `${path.slice(0, 200)} is nested deeper than ${MAX_DEPTH} levels`;
  const inside = [...within, value];
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const item: unknown = value[index];
      const at = `${path}[${index}]`;
      if (item === undefined) return `${at} is undefined, which JSON writes as null. Use null, or leave it out`;
      const lossy = lossyPart(item, at, inside);
      if (lossy !== undefined) return lossy;
    }
    return undefined;
  }
  // The search for lost data explains them.
  if (value instanceof Uint8Array) return undefined;
  if (value instanceof Date) return `${path} is a Date. Use date.toISOString(), or date.getTime()`;
  if ('toJSON' in value && typeof value.toJSON === 'function')
    return `${path} is an instance with toJSON(), which would be read as another value. Use an object of its data`;
  if (!isPlain(value) && !('then' in value) && Object.keys(value).length > 0 && !ArrayBuffer.isView(value))
    return `${path} is an instance of ${nameOfInstance(value)}, which would be read as a plain object. Use { ...value }`;
  for (const [key, member] of Object.entries(value)) {
    if (key === '__proto__') return `${path} has a member "__proto__". Use another name`;
    // A member that is undefined is as one that is absent.
    const lossy = lossyPart(member, `${path}.${key.slice(0, MAX_SHOWN)}`, inside);
    if (lossy !== undefined) return lossy;
  }
  return undefined;
}
