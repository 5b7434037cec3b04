/** The keys of all rows in a store's file, as fingerprints in memory: detects a row that exists but is not found. */
import { randomInt } from 'node:crypto';

/** The kind of row that a key names. */
export type RowKind = 'actor' | 'reply' | 'timer' | 'stream';

/** The plurals count the rows of one actor. */
export type KeyKind = RowKind | 'replies' | 'timers' | 'streams';

const KINDS: Readonly<Record<KeyKind, number>> = {
  actor: 1,
  reply: 2,
  replies: 3,
  timer: 4,
  timers: 5,
  stream: 6,
  streams: 7,
};

/** Bytes that UTF-8 text never contains: {@link SEPARATOR} separates the parts of a key, {@link END} ends each key. */
export const SEPARATOR = 0xfe;
export const END = 0xff;

const EMPTY = 0;
/** A slot whose key was removed: a search continues after it. */
const REMOVED = -1;
const SMALLEST = 1_024;

/**
 * A hash table of 53-bit fingerprints with a count each: 12 bytes per slot, at most half of them used.
 *
 * Two keys have the same fingerprint with a probability of 1 in 10^16. A failed lookup of one of them is then reported
 * as damage, never the reverse. The fingerprints start from random numbers, so that no client can choose two equal
 * ones.
 */
export class KnownKeys {
  readonly #seeds = [randomInt(2 ** 32), randomInt(2 ** 32)] as const;
  #places = new Float64Array(SMALLEST);
  #counts = new Uint32Array(SMALLEST);
  /** Slots that are not empty, including removed keys. */
  #taken = 0;
  #size = 0;
  /** Changes of the open transaction, so that they can be undone. */
  #changes: { readonly key: number; readonly by: number }[] = [];

  /** Number of known keys. */
  get size(): number {
    return this.#size;
  }

  /** Number of changes in the open transaction: a position for {@link undo}. */
  get position(): number {
    return this.#changes.length;
  }

  count(kind: KeyKind, ...parts: readonly Uint8Array[]): number {
    const place = this.#placeOf(this.#fingerprint(kind, parts));
    return place < 0 ? 0 : (this.#counts[place] ?? 0);
  }

  has(kind: KeyKind, ...parts: readonly Uint8Array[]): boolean {
    return this.count(kind, ...parts) > 0;
  }

  add(kind: KeyKind, ...parts: readonly Uint8Array[]): void {
    this.#record(this.#fingerprint(kind, parts), 1);
  }

  remove(kind: KeyKind, ...parts: readonly Uint8Array[]): void {
    this.#record(this.#fingerprint(kind, parts), -1);
  }

  /** The transaction is durable. */
  keep(): void {
    this.#changes = [];
  }

  /** The transaction, or its changes since a position, was rolled back. */
  undo(position = 0): void {
    for (const { key, by } of this.#changes.splice(position).reverse()) this.#change(key, -by);
  }

  /** Adds each unknown key of a list in bytes: {@link SEPARATOR} separates its parts, and {@link END} ends it. */
  addAll(kind: RowKind, keys: Uint8Array): void {
    const plural = OF_ACTOR[kind];
    for (let start = 0; start < keys.length; ) {
      const end = keys.indexOf(END, start);
      if (end < 0) return;
      const whole = keys.subarray(start, end);
      const middle = whole.indexOf(SEPARATOR);
      const actor = middle < 0 ? whole : whole.subarray(0, middle);
      const key = this.#fingerprint(kind, middle < 0 ? [whole] : [actor, whole.subarray(middle + 1)]);
      if (this.#placeOf(key) < 0) {
        this.#change(key, 1);
        if (plural) this.#change(this.#fingerprint(plural, [actor]), 1);
      }
      start = end + 1;
    }
  }

  #record(key: number, by: number): void {
    // An unknown key has nothing to remove, and so nothing to undo.
    if (by < 0 && this.#placeOf(key) < 0) return;
    this.#change(key, by);
    this.#changes.push({ key, by });
  }

  #change(key: number, by: number): void {
    const place = this.#placeOf(key);
    if (place >= 0) {
      const count = (this.#counts[place] ?? 0) + by;
      this.#counts[place] = Math.max(0, count);
      if (count > 0) return;
      this.#places[place] = REMOVED;
      this.#size -= 1;
      return;
    }
    if (by <= 0) return;
    if (this.#taken * 2 >= this.#places.length) this.#grow();
    this.#put(key, by);
  }

  #put(key: number, count: number): void {
    const mask = this.#places.length - 1;
    let place = key & mask;
    while (this.#places[place] !== EMPTY) place = (place + 1) & mask;
    this.#places[place] = key;
    this.#counts[place] = count;
    this.#taken += 1;
    this.#size += 1;
  }

  /** The slot of a key, or -1. */
  #placeOf(key: number): number {
    const mask = this.#places.length - 1;
    for (let place = key & mask; ; place = (place + 1) & mask) {
      const found = this.#places[place];
      if (found === key) return place;
      if (found === EMPTY) return -1;
    }
  }

  /** Doubles the size if it is full of keys; otherwise only drops the removed ones. */
  #grow(): void {
    const [places, counts] = [this.#places, this.#counts];
    const length = this.#size * 4 > places.length ? places.length * 2 : places.length;
    this.#places = new Float64Array(length);
    this.#counts = new Uint32Array(length);
    this.#taken = 0;
    this.#size = 0;
    for (const [place, key] of places.entries()) if (key > 0) this.#put(key, counts[place] ?? 0);
  }

  /** Two multiplicative hashes over the bytes, mixed at the end; at least 1. */
  #fingerprint(kind: KeyKind, parts: readonly Uint8Array[]): number {
    // Multiplied, so that a kind and a first byte never equal another kind and another first byte.
    let a = Math.imul(this.#seeds[0] ^ KINDS[kind], 0x9e3779b1);
    let b = Math.imul(this.#seeds[1] ^ KINDS[kind], 0x5f356495);
    for (const part of parts) {
      for (let index = 0; index < part.length; index += 1) {
        const byte = part[index] ?? 0;
        a = Math.imul(a ^ byte, 0x9e3779b1);
        b = Math.imul(b ^ byte, 0x5f356495);
        a ^= a >>> 15;
        b ^= b >>> 13;
      }
      a = Math.imul(a ^ SEPARATOR, 0x85ebca77);
      b = Math.imul(b ^ SEPARATOR, 0xc2b2ae3d);
    }
    a = Math.imul(a ^ (b >>> 16), 0x85ebca6b);
    b = Math.imul(b ^ (a >>> 13), 0xc2b2ae35);
    a ^= a >>> 16;
    b ^= b >>> 16;
    return (b & 0x1fffff) * 2 ** 32 + (a >>> 0) + 1;
  }
}

/** The count of an actor's rows that goes with each kind of key. */
const OF_ACTOR: Readonly<Partial<Record<RowKind, KeyKind>>> = { reply: 'replies', timer: 'timers', stream: 'streams' };
