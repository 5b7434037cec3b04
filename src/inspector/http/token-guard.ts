/** Who may ask an inspector anything: whoever calls it by its own name, from its own page or none, and knows its token. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { describe } from '../../protocol/json.ts';

export interface TokenRefusal {
  readonly status: number;
  /** What was expected, what came, and what to do about it. */
  readonly why: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Bytes of a token: what nobody guesses. */
const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43,128}$/;
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST']);

/** What every answer has: nothing of another origin is loaded, shown, framed, read or run, and nothing of ours elsewhere. */
export const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data: blob:",
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

/** @throws {TypeError} for a token that could be guessed, or cannot stand in an address */
export function checkToken(token: unknown): string {
  if (typeof token === 'string' && TOKEN.test(token)) return token;
  const came = typeof token === 'string' ? `${token.length} characters` : describe(token);
  throw new TypeError(`token: expected 43 to 128 characters of A-Z, a-z, 0-9, - and _ (256 random bits), got ${came}`);
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

  /** Judges every request, for a file as for anything else. A page of another name is kept out by Host: a name server may lead any name here (DNS rebinding). */
  check({ method = '', url = '', headers, rawHeaders }: IncomingMessage): TokenRefusal | undefined {
    const host = headers.host?.toLowerCase() ?? '';
    const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
    if (hosts.length !== 1 || !this.#hosts.has(host) || !url.startsWith('/'))
      return { status: 421, why: `Host: expected ${[...this.#hosts].join(' or ')}: open the address that was printed` };
    const { origin } = headers;
    if (origin !== undefined && !this.#origins.has(origin.toLowerCase()))
      return { status: 403, why: 'Origin: expected this page or none: another page may not ask here' };
    const site = headers['sec-fetch-site'];
    if (site !== undefined && site !== 'same-origin' && site !== 'none')
      return { status: 403, why: 'Sec-Fetch-Site: expected same-origin or none: open the address by hand' };
    if (!METHODS.has(method)) {
      const allow = [...METHODS].join(', ');
      return { status: 405, why: `expected one of ${allow}`, headers: { Allow: allow } };
    }
    return undefined;
  }

  /** Judges a request for anything but the files of the page. */
  checkToken({ headers }: IncomingMessage): TokenRefusal | undefined {
    const given = /^Bearer ([\w-]{1,128})$/.exec(headers.authorization ?? '')?.[1] ?? '';
    // Digests are of one length, so that the time tells nothing, not even that.
    if (timingSafeEqual(digest(given), this.#token)) return undefined;
    return {
      status: 401,
      why: 'Authorization: expected "Bearer" and the token of this start, which is behind the # of the address that was printed',
      headers: { 'WWW-Authenticate': 'Bearer' },
    };
  }
}

function digest(text: string): Uint8Array {
  return createHash('sha256').update(text).digest();
}
