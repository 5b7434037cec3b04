/** The log of a script in one slice: its beginning and its end, at most 4,000 characters. */

/** Characters of the beginning, and of the end. */
const PART = 2_000;
/** Each line counts as so many characters more, so that the number of lines is bounded, too. */
const LINE = 1;

export class ScriptLog {
  readonly #head: string[] = [];
  #headLength = 0;
  #tail: string[] = [];
  #tailLength = 0;
  #left = 0;

  add(line: string): void {
    const length = line.length + LINE;
    if (this.#tail.length === 0 && this.#headLength + length <= PART) {
      this.#head.push(line);
      this.#headLength += length;
      return;
    }
    this.#tail.push(line);
    this.#tailLength += length;
    // One line stays, whatever its length: the prelude bounds it.
    while (this.#tail.length > 1 && this.#tailLength > PART) {
      this.#tailLength -= (this.#tail.shift()?.length ?? 0) + LINE;
      this.#left += 1;
    }
  }

  /** The lines since the last call. */
  take(): readonly string[] {
    const between = this.#left > 0 ? [`… ${this.#left} lines are left out …`] : [];
    const [first = '', ...rest] = this.#tail;
    const last =
      this.#tailLength > PART ? [`${first.slice(0, PART / 2)} … ${first.slice(-PART / 2)}`, ...rest] : this.#tail;
    const lines = [...this.#head.splice(0), ...between, ...last];
    this.#headLength = this.#tailLength = this.#left = 0;
    this.#tail = [];
    return lines;
  }
}
