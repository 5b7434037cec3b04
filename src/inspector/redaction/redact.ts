/** Says what of a value is a secret: by its name, by its place in what a machine holds, and by what it looks like. */
import { describe, isObject } from '../../protocol/json.ts';
import { hideSecrets, namesSecret, normalisedName } from './secrets.ts';

/** What is hidden beside what the inspector knows for a secret itself. */
export interface RedactOptions {
  /** Parts of names, such as `iban`: the value of every member whose name has one in it is hidden, in any case and with any separators. */
  readonly keys?: readonly string[];
  /** What secrets look like, wherever they are in a text. */
  readonly values?: readonly RegExp[];
}

/** How a member is called where it is shown, and whether it is. */
interface Name {
  readonly shown: string;
  readonly hidden: boolean;
}

/** Names that are remembered, and the longest of them: a message may have any number, of any length. */
const MAX_NAMES = 4_096;
const MAX_NAME = 80;
/** Characters of what is said in words. */
const MAX_WORDS = 2_000;

export class Redactor {
  readonly #keys: readonly string[];
  readonly #values: readonly RegExp[];
  readonly #names = new Map<string, Name>();
  /** By their last name, the places that machines hide: the names before it, the nearest first. */
  readonly #places = new Map<string, (readonly string[])[]>();
  /** The machines that were asked what they hide. */
  readonly #machines = new WeakSet<object>();

  /** @throws {TypeError} for options that do not fit */
  constructor({ keys = [], values = [] }: RedactOptions = {}) {
    this.#keys = keys.map((key: unknown) => {
      const plain = typeof key === 'string' ? normalisedName(key) : '';
      if (plain !== '') return plain;
      throw new TypeError(`redact.keys: expected parts of names, such as "iban", got ${describe(key)}`);
    });
    this.#values = values.map((value: unknown) => {
      if (value instanceof RegExp) return new RegExp(value.source, value.flags.replace(/[gy]/g, '').concat('g'));
      throw new TypeError(`redact.values: expected patterns, such as /\\bDE\\d{20}\\b/, got ${describe(value)}`);
    });
  }

  /**
   * Hides from now on what a machine says of itself in `meta: { redact: ['card', 'customer.email'] }`: every value at the end of
   * such a path, in its context, in its events, and in the messages that bring them.
   */
  learn(machine: object | undefined): void {
    if (!machine || this.#machines.has(machine)) return;
    this.#machines.add(machine);
    const root: unknown = 'root' in machine ? machine.root : undefined;
    const meta: unknown = isObject(root) ? root.meta : undefined;
    const paths: unknown = isObject(meta) ? meta.redact : undefined;
    for (const path of Array.isArray(paths) ? paths : [paths]) if (typeof path === 'string') this.#hide(path);
  }

  #hide(path: string): void {
    const [last, ...before] = path.split('.').reverse();
    if (last === undefined || last === '') return;
    const places = this.#places.get(last) ?? [];
    // A machine that is loaded again says the same again.
    if (places.some((place) => place.join() === before.join())) return;
    this.#places.set(last, [...places, before]);
  }

  /** @param within the names of the members around it, the outermost first */
  name(name: string, within: readonly string[]): Name {
    const known = this.#names.get(name) ?? this.#judge(name);
    return !known.hidden && this.#places.size > 0 && this.#isPlace(name, within) ? { ...known, hidden: true } : known;
  }

  text(text: string): string {
    return hideSecrets(text, { keys: this.#keys, values: this.#values, names: this.#places });
  }

  /** What is said in words, of at most so many characters: what an author's code throws has any length. */
  words(text: string, most = MAX_WORDS): string {
    const hidden = this.text(text.length > 2 * most ? text.slice(0, 2 * most) : text);
    return hidden.length > most ? `${hidden.slice(0, most)}…` : hidden;
  }

  #judge(name: string): Name {
    const cut = name.length > MAX_NAME;
    const judged = {
      // It would not become a member.
      shown:
        name === '__proto__'
          ? '«__proto__»'
          : cut
            ? `${this.text(name.slice(0, 2 * MAX_NAME)).slice(0, MAX_NAME)}…`
            : this.text(name),
      hidden: namesSecret(name, this.#keys),
    };
    if (cut) return judged;
    if (this.#names.size >= MAX_NAMES) this.#names.clear();
    this.#names.set(name, judged);
    return judged;
  }

  #isPlace(name: string, within: readonly string[]): boolean {
    const places = this.#places.get(name);
    return places?.some((before) => before.every((each, index) => within[within.length - 1 - index] === each)) === true;
  }
}
