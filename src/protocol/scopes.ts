/** Scopes of OAuth 2.1: their syntax. */

/** RFC 6749 section 3.3: printable ASCII without space, quotation mark and backslash. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/;

export function isScope(value: unknown): value is string {
  return typeof value === 'string' && SCOPE.test(value);
}
