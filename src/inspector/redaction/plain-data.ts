/**
 * Converts any value to plain, bounded, redacted data. Runs no code of the value: names what it cannot show, and cuts
 * what is too large.
 */
import { types } from 'node:util';
import { type Plain, REDACTED } from '../frames.ts';
import { jsonTextOf, readText } from '../inspector-json.ts';
import { kindOf, ownValue, previewName, previewOf } from './previews.ts';

/** Bounds for one value. */
export interface Bounds {
  readonly depth: number;
  /** Members of one object, array, map or set. */
  readonly members: number;
  /** Characters of one text. */
  readonly text: number;
  /** Characters in total. */
  readonly all: number;
}

export const BOUNDS: Bounds = { depth: 16, members: 100, text: 2_000, all: 24_000 };

/** Longest text that is parsed as JSON to find secrets inside of it. */
const MAX_JSON = 64 * 1024;
/** Maximum nesting of JSON texts inside JSON texts. */
const MAX_INNER = 3;
/** Longest text that may be a name. */
const MAX_NAME = 80;
/** Members that name the secret in a sibling `value`. */
const NAMING = ['name', 'key', 'header'];

/** Finds secrets by the names of members and by the forms of texts. */
export interface SecretFinder {
  /** @param within the names of the enclosing members, the outermost first */
  name(name: string, within: readonly string[]): { readonly shown: string; readonly hidden: boolean };
  text(text: string): string;
}

type Shown = { [key: string]: Plain };

interface PlainOptions {
  readonly bounds?: Bounds;
  /** The value was parsed from JSON. */
  readonly parsed?: boolean;
  /** A member to omit. */
  readonly without?: string;
}

/** Never throws. Runs no code of the value: no getter, no `toJSON`, no iterator, no trap of a proxy. */
export function plainOf(value: unknown, redactor: SecretFinder, options: PlainOptions = {}): Plain {
  try {
    return new Walk(redactor, options).show(value) ?? null;
  } catch {
    return '«unreadable»';
  }
}

/** The members of an object as plain data; empty for a value that is shown as something else. */
export function plainMembers(value: object, redactor: SecretFinder): { readonly [name: string]: Plain } {
  const plain = plainOf(value, redactor);
  return hasMembers(plain) ? plain : {};
}

function hasMembers(plain: Plain): plain is { readonly [name: string]: Plain } {
  return typeof plain === 'object' && plain !== null && !Array.isArray(plain);
}

class Walk {
  readonly #redactor: SecretFinder;
  readonly #bounds: Bounds;
  #left: number;
  /** The names and the objects on the path to the current value. A repeated object is a cycle. */
  readonly #names: string[] = [];
  readonly #around: object[] = [];
  /** The current value was parsed from JSON: it has only plain objects. */
  #parsed: boolean;
  readonly #without: string | undefined;
  #inner = 0;
  /** True if anything was hidden or cut. */
  #changed = false;

  constructor(redactor: SecretFinder, { bounds = BOUNDS, parsed = false, without }: PlainOptions) {
    this.#parsed = parsed;
    this.#without = without;
    this.#redactor = redactor;
    this.#bounds = bounds;
    this.#left = bounds.all;
  }

  /** @returns undefined for a value that is omitted */
  show(value: unknown): Plain | undefined {
    switch (typeof value) {
      case 'string':
        return this.#text(value);
      case 'number':
        this.#left -= 8;
        return Number.isFinite(value) ? value : String(value);
      case 'boolean':
        this.#left -= 4;
        return value;
      case 'undefined':
        return undefined;
      case 'bigint':
        return this.#text(`${value}n`);
      case 'symbol':
        return this.#text(String(value));
      case 'function':
        return this.#text(`ƒ ${previewName(value)}`);
      case 'object':
        return value === null ? null : this.#object(value);
      default:
        return undefined;
    }
  }

  #text(text: string): string {
    const most = Math.max(0, Math.min(this.#bounds.text, this.#left));
    // A secret may cross the cut: check more text than is shown.
    const read = text.length > MAX_JSON ? text.slice(0, most + 1_000) : text;
    const hidden = this.#json(read) ?? this.#redactor.text(read);
    const cut = hidden.length > most || read.length < text.length;
    this.#left -= Math.min(hidden.length, most) + 2;
    if (cut || hidden !== text) this.#changed = true;
    return cut ? `${hidden.slice(0, most)}… (${text.length} characters)` : hidden;
  }

  /** A text that contains JSON, such as structured content for clients that read text: its members have names, too. */
  #json(text: string): string | undefined {
    if (!/^\s*[[{"]/.test(text) || this.#inner >= MAX_INNER) return undefined;
    const read = readText(text);
    if (!read) return undefined;
    const { parsed, left, changed } = this.#enter();
    try {
      const shown = this.show(read.value) ?? null;
      // Without hidden values, keep the original text: it may be indented.
      return this.#changed ? jsonTextOf(shown) : text;
    } finally {
      this.#inner -= 1;
      this.#parsed = parsed;
      this.#left = left;
      this.#changed ||= changed;
    }
  }

  #enter(): { readonly parsed: boolean; readonly left: number; readonly changed: boolean } {
    const before = { parsed: this.#parsed, left: this.#left, changed: this.#changed };
    this.#inner += 1;
    this.#parsed = true;
    this.#changed = false;
    return before;
  }

  #object(value: object): Plain {
    if (this.#around.includes(value)) return this.#text('«itself, further out»');
    if (this.#around.length >= this.#bounds.depth) return this.#text(`«${kindOf(value)}»`);
    if (this.#left <= 0) {
      this.#changed = true;
      return '«…»';
    }
    this.#left -= 2;
    this.#around.push(value);
    try {
      return this.#inside(value);
    } catch {
      return this.#text('«unreadable»');
    } finally {
      this.#around.pop();
    }
  }

  #inside(value: object): Plain {
    if (this.#parsed) return this.#jsonValue(value);
    // First: the traps of a proxy are an author's code.
    if (types.isProxy(value)) return this.#text('«proxy»');
    if (Array.isArray(value)) return this.#list(value.length, (index) => ownValue(value, index));
    const instead = previewOf(value);
    if (instead) return this.show(instead.value) ?? null;
    if (types.isMap(value)) {
      const entries = first(Map.prototype.entries.call(value), this.#bounds.members);
      if (entries.every(([key]) => typeof key === 'string'))
        return this.#members(
          entries.map(([key]) => String(key)),
          value.size,
          (key) => Map.prototype.get.call(value, key),
        );
      return this.#list(value.size, (index) => entries[index]);
    }
    if (types.isSet(value)) {
      const members = first(Set.prototype.values.call(value), this.#bounds.members);
      return this.#list(value.size, (index) => members[index]);
    }
    const names = Object.keys(value);
    if (names.length === 0 && !isRecord(value)) return this.#text(`«${kindOf(value)}»`);
    return this.#members(names, names.length, (name) => ownValue(value, name));
  }

  #jsonValue(value: object): Plain {
    if (Array.isArray(value)) return this.#list(value.length, (index) => value[index]);
    const names = Object.keys(value);
    return this.#members(names, names.length, (name) => Reflect.get(value, name));
  }

  #list(length: number, at: (index: number) => unknown): Plain {
    const shown: Plain[] = [];
    // The arguments of a command: the value follows `--password`.
    let isNamed = false;
    for (let index = 0; index < length; index += 1) {
      if (index >= this.#bounds.members || this.#left <= 0) {
        shown.push(`«${length - index} more»`);
        this.#changed = true;
        break;
      }
      const item = at(index);
      const hidden = isNamed || this.#isPair(item);
      isNamed = typeof item === 'string' && /^--?[A-Za-z]/.test(item) && this.#isSecret(item);
      shown.push((hidden ? this.#hidden(item) : this.show(item)) ?? null);
    }
    return shown;
  }

  /** True for an entry of a list of pairs, such as a header with its value, if its name is that of a secret. */
  #isPair(item: unknown): boolean {
    return Array.isArray(item) && !types.isProxy(item) && item.length === 2 && this.#isSecret(ownValue(item, 0));
  }

  #isSecret(name: unknown): boolean {
    return typeof name === 'string' && name.length <= MAX_NAME && this.#redactor.name(name, this.#names).hidden;
  }

  /** The replacement for a hidden value. A pair keeps its name. */
  #hidden(item: unknown): Plain {
    this.#changed = true;
    this.#left -= 24;
    return this.#isPair(item) ? [String(ownValue(Object(item), 0)), REDACTED] : REDACTED;
  }

  #members(names: readonly string[], length: number, at: (name: string) => unknown): Plain {
    const shown: Shown = {};
    let count = 0;
    for (const name of names) {
      if (count >= this.#bounds.members || this.#left <= 0) break;
      count += 1;
      if (name === this.#without && this.#around.length === 1) continue;
      const value = at(name);
      if (value === undefined) continue;
      const named = this.#redactor.name(name, this.#names);
      this.#left -= named.shown.length + 4;
      if ((named.hidden || (name === 'value' && NAMING.some((by) => this.#isSecret(at(by))))) && isMeaningful(value)) {
        shown[named.shown] = REDACTED;
        this.#changed = true;
        continue;
      }
      this.#names.push(name);
      const plain = this.show(value);
      this.#names.pop();
      if (plain !== undefined) shown[named.shown] = plain;
    }
    if (count < length) {
      shown['«more»'] = length - count;
      this.#changed = true;
    }
    return shown;
  }
}

/** True if the value could be a secret. */
function isMeaningful(value: unknown): boolean {
  return value !== null && value !== '' && typeof value !== 'boolean';
}

function first<T>(values: IterableIterator<T>, most: number): readonly T[] {
  const taken: T[] = [];
  for (const value of values) {
    if (taken.length >= most) break;
    taken.push(value);
  }
  return taken;
}

function isRecord(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
