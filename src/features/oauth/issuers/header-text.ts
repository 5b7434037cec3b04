/** Headers of outgoing requests that are made from configured or foreign text. */

/** RFC 9110 section 5.5. Node writes the characters from U+0080 to U+00FF as one byte each. */
const VALUE = /^[\t -~\x80-\xff]*$/;
/** RFC 9110 section 5.6.2. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** True for a text that Node sends as the value of a header: no control characters, and nothing above U+00FF. */
export function isHeaderValue(text: string): boolean {
  return VALUE.test(text);
}

/**
 * Reads headers that a program or a file configures. A value that comes from a file may end with a line break, which is removed.
 *
 * @param where the name of the option, for errors
 * @returns the headers with names in lower case
 * @throws {TypeError} for a name or a value that cannot be sent. The error names the header and not its value, which may be secret
 */
export function readHeaders(where: string, headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const read: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const shown = `"${name.slice(0, 100)}"`;
    if (!NAME.test(name))
      throw new TypeError(`${where}: expected a name of an HTTP header (letters, digits and -), got ${shown}`);
    if (typeof value !== 'string')
      throw new TypeError(`${where}: expected a string as the value of the header ${shown}, got ${typeof value}`);
    const trimmed = value.replace(/[\r\n]+$/, '').trim();
    if (!isHeaderValue(trimmed))
      throw new TypeError(
        `${where}: the value of the header ${shown} has a line break, a control character, or a character above U+00FF, which HTTP cannot carry. Encode it, or remove it`,
      );
    read[name.toLowerCase()] = trimmed;
  }
  return read;
}
