/** An authorization server for tests: in memory, on a loopback port, with keys of its own. It signs any claims. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type Clock, systemClock } from '../core/kernel/clock.ts';
import type { JsonObject } from '../core/protocol/json.ts';

export interface FakeIssuerOptions {
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
  /** The algorithm of its signatures. Default `ES256`. */
  readonly algorithm?: 'ES256' | 'RS256' | 'PS256' | 'EdDSA' | undefined;
}

/** The contents of a token. */
export interface FakeToken {
  /** The `aud` of the token: the `resource` of the server. */
  readonly audience: string;
  /** Default `ada`. */
  readonly subject?: string | undefined;
  /** Default `tests`. */
  readonly clientId?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  /** Seconds until its end. Default 600; negative for a token that has expired. */
  readonly expiresIn?: number | undefined;
  /** Further claims. They replace those above; `undefined` removes one. */
  readonly claims?: JsonObject | undefined;
  /** Further parameters of the header of a JWT, such as `typ`. */
  readonly header?: JsonObject | undefined;
}

export interface FakeIssuer {
  /** Its address, for `oauth({ issuer })`. */
  readonly issuer: string;
  /** The credentials with which it answers about opaque tokens, for `oauth({ issuer: { issuer, introspection } })`. */
  readonly introspection: { readonly clientId: string; readonly clientSecret: string };
  /** False: it closes each connection without a response. */
  available: boolean;
  /** The paths of all requests so far. */
  readonly requests: readonly string[];
  /** Signs a JWT access token (RFC 9068). */
  token(what: FakeToken): Promise<string>;
  /** Makes an opaque token, which is known by introspection only. */
  opaque(what: FakeToken): string;
  /** Makes an opaque token inactive. */
  revoke(opaque: string): void;
  /** Signs with a new key from now on. The earlier keys stay published, unless `dropOld` is true. */
  rotate(options?: { readonly dropOld?: boolean }): Promise<void>;
  close(): Promise<void>;
}

const SECONDS = 600;
const INTROSPECTION = { clientId: 'resource-server', clientSecret: 'fake' } as const;

/**
 * Starts an authorization server for tests. Needs the package `jose`.
 *
 * @example
 * const issuer = await fakeIssuer();
 * const server = createServer({ name: 'a', version: '1.0.0', http: { auth: oauth({ resource, issuer: issuer.issuer }) } });
 * const token = await issuer.token({ audience: resource, scopes: ['orders:read'] });
 * await issuer.close();
 */
export async function fakeIssuer({
  clock = systemClock,
  algorithm = 'ES256',
}: FakeIssuerOptions = {}): Promise<FakeIssuer> {
  const [{ createServer }, jose] = await Promise.all([import('node:http'), import('jose')]);
  const opaque = new Map<string, JsonObject>();
  const requests: string[] = [];
  let published: JsonObject[] = [];
  let serial = 0;
  const newKey = async (): Promise<{ readonly kid: string; readonly privateKey: import('jose').CryptoKey }> => {
    serial += 1;
    const { privateKey, publicKey } = await jose.generateKeyPair(algorithm, { extractable: true });
    const { kty, crv, x, y, n, e } = await jose.exportJWK(publicKey);
    const kid = `key-${serial}`;
    const parts = Object.entries({ kty, crv, x, y, n, e }).filter((part): part is [string, string] => !!part[1]);
    published.push({ ...Object.fromEntries(parts), kid, alg: algorithm, use: 'sig' });
    return { kid, privateKey };
  };
  let signing = await newKey();
  const claimsOf = ({ audience, subject = 'ada', clientId = 'tests', scopes = [], expiresIn, claims }: FakeToken) => {
    const now = Math.floor(clock.date() / 1_000);
    serial += 1;
    return Object.fromEntries(
      Object.entries({
        ...{ iss: issuer, aud: audience, sub: subject, client_id: clientId, scope: scopes.join(' ') },
        ...{ iat: now, exp: now + (expiresIn ?? SECONDS), jti: `token-${serial}` },
        ...claims,
      }).filter(([, value]) => value !== undefined),
    );
  };
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const path = (request.url ?? '').replace(/\?.*/, '');
    requests.push(path);
    const json = (status: number, body: JsonObject): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (!result.available) return void request.socket.destroy();
    switch (path) {
      case '/.well-known/oauth-authorization-server':
        return json(200, {
          issuer,
          jwks_uri: `${issuer}/jwks`,
          introspection_endpoint: `${issuer}/introspect`,
          userinfo_endpoint: `${issuer}/userinfo`,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          response_types_supported: ['code'],
        });
      case '/jwks':
        return json(200, { keys: published });
      case '/introspect': {
        let form = '';
        request.setEncoding('utf8').on('data', (part: string) => {
          form += part;
        });
        return void request.on('end', () => {
          const { clientId, clientSecret } = INTROSPECTION;
          const basic = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
          if (request.headers.authorization !== basic) return json(401, { error: 'invalid_client' });
          const claims = opaque.get(new URLSearchParams(form).get('token') ?? '');
          json(200, claims ? { active: true, ...claims } : { active: false });
        });
      }
      default:
        return json(404, { error: 'not_found' });
    }
  };
  const server = createServer(serve);
  const issuer = await listening(server);
  const result: FakeIssuer = {
    issuer,
    introspection: INTROSPECTION,
    available: true,
    requests,
    token: (what) =>
      new jose.SignJWT(claimsOf(what))
        .setProtectedHeader({ alg: algorithm, kid: signing.kid, typ: 'at+jwt', ...what.header })
        .sign(signing.privateKey, { crit: Object.fromEntries(critical(what).map((name) => [name, true])) }),
    opaque(what) {
      const claims = claimsOf(what);
      const token = `opaque-${Buffer.from(`${issuer} ${serial}`).toString('base64url')}`;
      opaque.set(token, claims);
      return token;
    },
    revoke: (token) => void opaque.delete(token),
    async rotate({ dropOld = false } = {}) {
      if (dropOld) published = [];
      signing = await newKey();
    },
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
  return result;
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

/** The extensions that a token says are critical: a test may sign what no server understands. */
function critical({ header }: FakeToken): readonly string[] {
  return Array.isArray(header?.crit) ? header.crit.filter((name) => typeof name === 'string') : [];
}
