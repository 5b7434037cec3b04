/** The credentials of a request: what must not come back in a result, an error or a log. */

const REMOVED = '[credential removed]';
/** A shorter text may be a part of any word. It protects no person. */
const SHORTEST = 6;

export class SentSecrets {
  readonly #texts: readonly string[];

  /** @param values the credentials as they are sent, and the parts of which they are made */
  constructor(values: readonly string[]) {
    const texts = values.flatMap((value) => [value, encodeURIComponent(value.toWellFormed()), escaped(value)]);
    // The longest first: a part would leave the rest of the whole.
    this.#texts = [...new Set(texts)].filter(({ length }) => length >= SHORTEST).sort((a, b) => b.length - a.length);
  }

  /** The text with a mark in place of each credential. An API may repeat what it received. */
  removedFrom(text: string): string {
    let clean = text;
    for (const secret of this.#texts) if (clean.includes(secret)) clean = clean.replaceAll(secret, REMOVED);
    return clean;
  }
}

/** As a string in JSON has it. */
function escaped(text: string): string {
  return text.replace(/["\\]/g, '\\$&');
}

export const NO_SECRETS = new SentSecrets([]);
