/** Values of a body that clients repeat in HTTP headers: what such a header says, and whether it says the same as the body. */

const PREFIX = '=?base64?';
const SUFFIX = '?=';

/** What an HTTP field value may consist of here: visible ASCII, space and tab (2026-07-28 streamable-http, "Value Encoding"). */
const FIELD_VALUE = /^[\t -~]*$/;
/** `42` and `42.0`. Leading zeros, signs other than minus, exponents and hex are no decimal strings, and readers differ on them. */
const DECIMAL_INTEGER = /^-?(?:0|[1-9][0-9]*)(?:\.0+)?$/;

/** A byte order mark is part of the value: without `ignoreBOM` the decoder would swallow it. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The value that an `Mcp-Name` or `Mcp-Param-*` header stands for: as it is, or decoded where it is wrapped in
 * `=?base64?…?=`, exactly so and in lower case. White space around it is no part of it (RFC 9110 section 5.5).
 *
 * @returns `undefined` for invalid characters, Base64 that is not strict (RFC 4648: standard alphabet, padding, zero pad
 *   bits), and bytes that are not UTF-8
 * @example decodeMirrored('=?base64?SGVsbG8=?=') === 'Hello'
 * @see 2026-07-28 streamable-http "Value Encoding"
 */
export function decodeMirrored(header: string): string | undefined {
  if (!FIELD_VALUE.test(header)) return undefined;
  const value = header.trim();
  // In `=?base64?=` the two marks share a character: that is no wrapped value, but a plain one.
  if (!value.startsWith(PREFIX) || !value.endsWith(SUFFIX) || value.length < PREFIX.length + SUFFIX.length)
    return value;
  return decodeBase64(value.slice(PREFIX.length, -SUFFIX.length));
}

/**
 * Whether a decoded header says the same as a value of the body: a string exactly, `true` and `false` in lower case, an
 * integer by its number, so that `42.0` is 42. An integer beyond 2^53-1 is mirrored by nothing: two texts could mean it.
 *
 * @param decoded what `decodeMirrored` returned
 * @see 2026-07-28 streamable-http "Server Validation", "Schema Extension"
 */
export function mirrors(decoded: string, value: unknown): boolean {
  switch (typeof value) {
    case 'string':
      return decoded === value;
    case 'boolean':
      return decoded === String(value);
    case 'number':
      // No parameter that is mirrored may take a fraction: let it pass, and the schema tells the model what is wrong.
      if (!Number.isInteger(value)) return decoded === String(value);
      return Number.isSafeInteger(value) && DECIMAL_INTEGER.test(decoded) && Number(decoded) === value;
    default:
      return false;
  }
}

function decodeBase64(text: string): string | undefined {
  try {
    const binary = atob(text);
    // `atob` forgives white space, missing padding and stray bits; a strict text is the one that its bytes encode to.
    if (btoa(binary) !== text) return undefined;
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = binary.charCodeAt(at);
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}
