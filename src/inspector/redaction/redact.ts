/** Recognizes the secrets in a value: by their names, by the paths that machines declare, and by their form. */
import { describe, isObject } from '../../core/protocol/json.ts';
import { hideSecrets, namesSecret, normalisedName } from './secrets.ts';

/** Secrets to hide besides those that the inspector recognizes. */
export interface RedactOptions {
  /**
   * Parts of names, such as `iban`: every member whose name contains one is hidden, in any case and with any
   * separators.
   */
  readonly keys?: readonly string[];
  /** Patterns of secrets anywhere in a text. */
  readonly values?: readonly RegExp[];
}

/** The shown name of a member, and true if its value is hidden. */
interface Name {
  readonly shown: string;
  readonly hidden: boolean;
}

/** Maximum number and length of cached names: a message may have any number, of any length. */
const MAX_NAMES = 4_096;
const MAX_NAME = 80;
/** Maximum length of a shown text. */
const MAX_WORDS = 2_000;

export class Redactor {
  readonly #keys: readonly string[];
  readonly #values: readonly RegExp[];
  readonly #names = new Map<string, Name>();
  /** The paths that machines declare, by their last name: the names before it, the nearest first. */
  readonly #places = new Map<string, (readonly string[])[]>();
  /** The machines whose declarations were read. */
  readonly #machines = new WeakSet<object>();

  /** @throws {TypeError} for invalid options */
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
   * Hides from now on the paths that a machine declares in `meta: { redact: ['card', 'customer.email'] }`: every value
   * at the end of such a path, in its context, its events, and the messages that carry them.
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
    // A reloaded machine declares the same again.
    if (places.some((place) => place.join() === before.join())) return;
    this.#places.set(last, [...places, before]);
  }

  /** @param within the names of the enclosing members, the outermost first */
  name(name: string, within: readonly string[]): Name {
    const known = this.#names.get(name) ?? this.#judge(name);
    return !known.hidden && this.#places.size > 0 && this.#isPlace(name, within) ? { ...known, hidden: true } : known;
  }

  text(text: string): string {
    return hideSecrets(text, { keys: this.#keys, values: this.#values, names: this.#places });
  }

  /** A text without secrets, cut to that many characters: an error of an author's code has any length. */
  words(text: string, most = MAX_WORDS): string {
    const hidden = this.text(text.length > 2 * most ? text.slice(0, 2 * most) : text);
    return hidden.length > most ? `${hidden.slice(0, most)}…` : hidden;
  }

  #judge(name: string): Name {
    const cut = name.length > MAX_NAME;
    const judged = {
      // A member of that name would set the prototype.
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
