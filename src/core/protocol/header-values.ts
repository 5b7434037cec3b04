/** Body values that clients repeat in HTTP headers: decodes such a header and compares it with the body. */

const PREFIX = '=?base64?';
const SUFFIX = '?=';

/**
 * Characters allowed in an HTTP field value: visible ASCII, space and tab (2026-07-28 streamable-http, "Value
 * Encoding").
 */
const FIELD_VALUE = /^[\t -~]*$/;
/**
 * `42` and `42.0`. Leading zeros, a plus sign, exponents and hex are not decimal integers, and parsers differ on them.
 */
const DECIMAL_INTEGER = /^-?(?:0|[1-9][0-9]*)(?:\.0+)?$/;

/** A byte order mark is part of the value; without `ignoreBOM` the decoder would drop it. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Decodes the value of an `Mcp-Name` or `Mcp-Param-*` header. A value wrapped in `=?base64?…?=` (exactly, in lower
 * case) is decoded; any other is returned unchanged. White space around the value is not part of it (RFC 9110 section
 * 5.5).
 *
 * @returns `undefined` for invalid characters, for Base64 that is not strict (RFC 4648: standard alphabet, padding,
 * zero pad bits), and for bytes that are not UTF-8
 * @example decodeMirrored('=?base64?SGVsbG8=?=') === 'Hello'
 * @see 2026-07-28 streamable-http "Value Encoding"
 */
export function decodeMirrored(header: string): string | undefined {
  if (!FIELD_VALUE.test(header)) return undefined;
  const value = header.trim();
  // In `=?base64?=` the two markers share a character, so the value is plain, not wrapped.
  if (!value.startsWith(PREFIX) || !value.endsWith(SUFFIX) || value.length < PREFIX.length + SUFFIX.length)
    return value;
  return decodeBase64(value.slice(PREFIX.length, -SUFFIX.length));
}

/**
 * True if a decoded header equals a value of the body. Strings must match exactly, booleans as `true` and `false` in
 * lower case, integers by number, so `42.0` equals 42. An integer beyond 2^53-1 never matches, because two texts could
 * mean it.
 *
 * @param decoded the result of `decodeMirrored`
 * @see 2026-07-28 streamable-http "Server Validation", "Schema Extension"
 */
export function mirrors(decoded: string, value: unknown): boolean {
  switch (typeof value) {
    case 'string':
      return decoded === value;
    case 'boolean':
      return decoded === String(value);
    case 'number':
      // Mirrored parameters cannot be fractions. Accept the header, so that the schema check explains the error to the
      // model.
      if (!Number.isInteger(value)) return decoded === String(value);
      return Number.isSafeInteger(value) && DECIMAL_INTEGER.test(decoded) && Number(decoded) === value;
    default:
      return false;
  }
}

function decodeBase64(text: string): string | undefined {
  try {
    const binary = atob(text);
    // `atob` accepts white space, missing padding and stray bits. Strict Base64 is the text to which its bytes encode.
    if (btoa(binary) !== text) return undefined;
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = binary.charCodeAt(at);
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}
