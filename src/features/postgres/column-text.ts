/** Texts as the columns of the store contain them: PostgreSQL's text has no NUL. */

/** U+0001 introduces a NUL, and itself. */
const ESCAPE = '\u0001';

/** A text as the store's columns contain it. */
export function toColumnText(text: string): string {
  if (!text.includes('\0') && !text.includes(ESCAPE)) return text;
  return text.replaceAll(ESCAPE, `${ESCAPE}o`).replaceAll('\0', `${ESCAPE}z`);
}

/** The inverse of {@link toColumnText}. */
export function fromColumnText(stored: string): string {
  return stored.includes(ESCAPE) ? stored.replaceAll(`${ESCAPE}z`, '\0').replaceAll(`${ESCAPE}o`, ESCAPE) : stored;
}
