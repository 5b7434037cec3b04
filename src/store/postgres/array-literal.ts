/** Texts and numbers as PostgreSQL's literals for arrays, which `unnest` turns into rows. */

/** PostgreSQL's text has no NUL. U+0001 introduces it, and itself. */
const ESCAPE = '\u0001';
const QUOTED = /["\\]/g;

/** A text as the store's columns contain it. */
export function toColumnText(text: string): string {
  if (!text.includes('\0') && !text.includes(ESCAPE)) return text;
  return text.replaceAll(ESCAPE, `${ESCAPE}o`).replaceAll('\0', `${ESCAPE}z`);
}

/** The inverse of {@link toColumnText}. */
export function fromColumnText(stored: string): string {
  return stored.includes(ESCAPE) ? stored.replaceAll(`${ESCAPE}z`, '\0').replaceAll(`${ESCAPE}o`, ESCAPE) : stored;
}

/** A growing literal for an array. */
export class ArrayLiteral {
  #text = '{';

  addText(text: string | undefined): void {
    this.#separate();
    if (text === undefined) this.#text += 'NULL';
    else this.#text += `"${toColumnText(text).replace(QUOTED, '\\$&')}"`;
  }

  addNumber(value: number | undefined): void {
    this.#separate();
    this.#text += value === undefined ? 'NULL' : value;
  }

  toString(): string {
    return `${this.#text}}`;
  }

  #separate(): void {
    if (this.#text.length > 1) this.#text += ',';
  }
}
