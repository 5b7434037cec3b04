/** The URLs that a client may name as a callback. */

/** The origins that the program allows besides public https addresses, such as `http://127.0.0.1:8080`. */
export type AllowedOrigins = ReadonlySet<string>;

/** Longest URL of a callback, in characters. */
const MAX_LENGTH = 2_048;

/** A URL that may be a callback; or what is expected instead, without its text. */
export type ReadCallback = { readonly url: URL } | { readonly expected: string };

/**
 * Reads the URL of a callback.
 *
 * @returns `expected` for a URL that no client may name: malformed, longer than 2,048 characters, with credentials or a fragment, or
 *   not https, unless its origin is allowed
 */
export function readCallback(text: string, allowed: AllowedOrigins): ReadCallback {
  if (text.length > MAX_LENGTH) return { expected: `a URL of at most ${MAX_LENGTH} characters` };
  if (!URL.canParse(text)) return { expected: 'an https URL' };
  const url = new URL(text);
  const isAllowed = allowed.has(url.origin) && (url.protocol === 'https:' || url.protocol === 'http:');
  if (url.protocol !== 'https:' && !isAllowed) return { expected: 'an https URL' };
  if (url.username !== '' || url.password !== '') return { expected: 'a URL without credentials' };
  if (url.hash !== '' || text.includes('#')) return { expected: 'a URL without a fragment' };
  return { url };
}

/** The host of a URL as a resolver takes it: an IPv6 address without its brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}
