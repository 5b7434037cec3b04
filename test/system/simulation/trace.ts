/** What happened in a simulated world, line by line, in words that a second run of the same seed repeats. */
import { createHash } from 'node:crypto';

/** Anything that may be an id, a state or another random name. */
const RANDOM = /[\w-]{20,}(?:\.[\w-]+)*|(?<=incident )[\w-]{10}|(?<=(?:task|tally|request|session)\/)[\w-]+/g;

export class Trace {
  readonly lines: string[] = [];
  /** Random names, by the order in which they appeared. */
  readonly #names = new Map<string, string>();

  add(line: string): void {
    this.lines.push(line.replace(RANDOM, (name) => this.#nameOf(name)));
  }

  #nameOf(random: string): string {
    const known = this.#names.get(random);
    if (known !== undefined) return known;
    const name = `#${this.#names.size + 1}`;
    this.#names.set(random, name);
    return name;
  }

  /** The same for the same events, and for hardly any others. */
  get hash(): string {
    return createHash('sha256').update(this.lines.join('\n')).digest('hex');
  }
}
