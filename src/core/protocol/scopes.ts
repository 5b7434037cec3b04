/** Scopes of OAuth 2.1: their syntax, and the errors about them. */
import { describe } from './json.ts';

/** RFC 6749 section 3.3: printable ASCII without space, quotation mark and backslash. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/;

function isScope(value: unknown): value is string {
  return typeof value === 'string' && SCOPE.test(value);
}

/** Finds what is wrong with an option or a result that is an array of scopes. @returns undefined for valid ones */
export function problemOfScopes(value: unknown): string | undefined {
  if (!Array.isArray(value)) return `expected an array of scopes, such as ["orders:read"], got ${describe(value)}`;
  const wrong = value.findIndex((scope) => !isScope(scope));
  return wrong === -1
    ? undefined
    : `expected scopes without spaces and quotes, such as "orders:read" (RFC 6749 section 3.3), got ${describe(value[wrong])}`;
}

/** True for an array of scopes. */
export function areScopes(value: unknown): value is readonly string[] {
  return problemOfScopes(value) === undefined;
}
