/** The stored form of a scope: its values by key, as one snapshot, and the changes of one operation. */
import type { StateEntry } from '../../core/execution/state.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import { StateError } from './state-error.ts';
import { keyExcerpt, type ValueText } from './state-values.ts';

export interface ScopeLimits {
  readonly maxStateKeys: number;
  readonly maxStateBytes: number;
}

interface StoredValue extends ValueText {
  /** Milliseconds since 1970; undefined if it has no time of its own. */
  readonly expires: number | undefined;
}

/** The values of a scope while operations run on them. */
export class ScopeDocument {
  readonly #values: Map<string, StoredValue>;
  #bytes = 0;
  #changes = 0;

  /** The stored data cannot be read, and `clear` replaces it. */
  readonly #damaged: boolean;

  /** @param values which it takes over */
  constructor(values = new Map<string, StoredValue>(), damaged = false) {
    this.#values = values;
    this.#damaged = damaged;
    for (const [key, value] of values) this.#bytes += bytesOf(key, value);
  }

  /** Number of changes by operations. */
  get changes(): number {
    return this.#changes;
  }

  get size(): number {
    return this.#values.size;
  }

  /** Bytes of all keys and values. */
  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): string | undefined {
    return this.#values.get(key)?.text;
  }

  /** @throws {StateError} `limit`; then nothing has changed */
  set(key: string, value: StoredValue, { maxStateKeys, maxStateBytes }: ScopeLimits): void {
    const before = this.#values.get(key);
    if (!before && this.#values.size >= maxStateKeys)
      throw new StateError(
        'limit',
        `${keyExcerpt(key)} would be one key more than the ${maxStateKeys} of a scope (limits.maxStateKeys). Delete one, or put several values under one key`,
      );
    const bytes = this.#bytes + bytesOf(key, value) - (before ? bytesOf(key, before) : 0);
    if (bytes > maxStateBytes)
      throw new StateError(
        'limit',
        `with ${keyExcerpt(key)}, the scope would have ${bytes} bytes of at most ${maxStateBytes} (limits.maxStateBytes). Delete a value, or store ids of data in a database of your own`,
      );
    this.#values.set(key, value);
    this.#bytes = bytes;
    this.#changes += 1;
  }

  /** @returns whether there was a value */
  delete(key: string): boolean {
    const before = this.#values.get(key);
    if (!before) return false;
    this.#values.delete(key);
    this.#bytes -= bytesOf(key, before);
    this.#changes += 1;
    return true;
  }

  clear(): void {
    if (this.#values.size > 0 || this.#damaged) this.#changes += 1;
    this.#values.clear();
    this.#bytes = 0;
  }

  list(prefix = ''): readonly StateEntry[] {
    return [...this.#values]
      .filter(([key]) => key.startsWith(prefix))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, value]) => ({ key, bytes: bytesOf(key, value), expires: value.expires }));
  }

  /** The data of the snapshot: a line about each value as JSON, and the texts of the values one after the other. */
  toText(): string {
    const values = [...this.#values];
    const head = toText(values.map(([key, { text, expires }]) => [key, text.length, expires ?? null]));
    return `${head}\n${values.map(([, { text }]) => text).join('')}`;
  }
}

function bytesOf(key: string, { bytes }: ValueText): number {
  return Buffer.byteLength(key) + bytes;
}

/**
 * Reads the data of a snapshot, without the values whose time has passed.
 *
 * @param now milliseconds since 1970
 * @throws {StateError} `stored`
 */
export function readDocument(data: string, now: number): ScopeDocument {
  const begin = data.indexOf('\n') + 1;
  let rows: unknown;
  try {
    rows = fromText(data.slice(0, begin), 'state');
  } catch (cause) {
    throw damaged(cause);
  }
  if (!Array.isArray(rows)) throw damaged();
  const values = new Map<string, StoredValue>();
  let at = begin;
  for (const row of rows) {
    const [key, length, expires]: readonly unknown[] = Array.isArray(row) ? row : [];
    if (typeof key !== 'string' || typeof length !== 'number' || !(length > 0)) throw damaged();
    if (expires !== null && typeof expires !== 'number') throw damaged();
    const text = data.slice(at, at + length);
    at += length;
    if (expires !== null && expires <= now) continue;
    values.set(key, { text, bytes: Buffer.byteLength(text), expires: expires ?? undefined });
  }
  if (at !== data.length) throw damaged();
  return new ScopeDocument(values);
}

function damaged(cause?: unknown): StateError {
  return new StateError('stored', 'the stored scope is damaged. Restore a backup, or clear() it', { cause });
}
