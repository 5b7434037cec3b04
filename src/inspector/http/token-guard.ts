/** Authenticates requests to an inspector by host name, origin and token. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { describe } from '../../core/protocol/json.ts';

export interface TokenRefusal {
  readonly status: number;
  /** The expected value, the received value, and the remedy. */
  readonly why: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Bytes of a token: too many to guess. */
const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43,128}$/;
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST']);

/**
 * Headers of every response: the page loads, frames and runs nothing from another origin, and no other origin can load
 * it.
 */
export const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data: blob:",
    'media-src data: blob:',
    "worker-src 'self'",
    "require-trusted-types-for 'script'",
    // The page has one policy, for the address of the worker that lays out charts.
    'trusted-types troupe-worker',
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), usb=()',
};

export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** Finds what is wrong with a token: it could be guessed, or is invalid in an address. */
export function problemOfToken(token: unknown): string | undefined {
  if (typeof token === 'string' && TOKEN.test(token)) return undefined;
  const came = typeof token === 'string' ? `${token.length} characters` : describe(token);
  return `expected 43 to 128 characters of A-Z, a-z, 0-9, - and _ (256 random bits), got ${came}`;
}

export class TokenGuard {
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;
  readonly #token: Uint8Array;

  constructor(port: number, token: string) {
    const hosts = ['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`);
    this.#hosts = new Set(hosts);
    this.#origins = new Set(hosts.map((host) => `http://${host}`));
    this.#token = digest(token);
  }

  /**
   * Checks every request, including those for files. The Host check rejects pages with another name, because any DNS
   * name may resolve to this address (DNS rebinding).
   */
  check({ method = '', url = '', headers, rawHeaders }: IncomingMessage): TokenRefusal | undefined {
    const host = headers.host?.toLowerCase() ?? '';
    const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
    if (hosts.length !== 1 || !this.#hosts.has(host) || !url.startsWith('/'))
      return { status: 421, why: `Host: expected ${[...this.#hosts].join(' or ')}. Open the printed address.` };
    const { origin } = headers;
    if (origin !== undefined && !this.#origins.has(origin.toLowerCase()))
      return { status: 403, why: 'Origin: expected this page or none. Other pages have no access.' };
    const site = headers['sec-fetch-site'];
    if (site !== undefined && site !== 'same-origin' && site !== 'none')
      return { status: 403, why: 'Sec-Fetch-Site: expected same-origin or none. Enter the address by hand.' };
    if (!METHODS.has(method)) {
      const allow = [...METHODS].join(', ');
      return { status: 405, why: `expected one of ${allow}`, headers: { Allow: allow } };
    }
    return undefined;
  }

  /** Checks the token of a request for anything but a file of the page. */
  checkToken({ headers }: IncomingMessage): TokenRefusal | undefined {
    const given = /^Bearer ([\w-]{1,128})$/.exec(headers.authorization ?? '')?.[1] ?? '';
    // Digests have equal lengths, so that the comparison time reveals nothing.
    if (timingSafeEqual(digest(given), this.#token)) return undefined;
    return {
      status: 401,
      why: 'Authorization: expected "Bearer" and the token of this start. It follows the # in the printed address.',
      headers: { 'WWW-Authenticate': 'Bearer' },
    };
  }
}

function digest(text: string): Uint8Array {
  return createHash('sha256').update(text).digest();
}
