/** The options of `oauth`, with their defaults and checks. */

import { isLoopback } from '../../core/http/host-guard.ts';
import { type Clock, LONGEST_TIMER_MS, systemClock } from '../../core/kernel/clock.ts';
import { checkOptionNames, describe, isObject } from '../../core/protocol/json.ts';
import { METHODS } from '../../core/protocol/methods.ts';
import { problemOfScopes } from '../../core/protocol/scopes.ts';

/** Asymmetric signature algorithms of tokens and proofs (RFC 7518, RFC 8037). */
export type TokenAlgorithm =
  | 'RS256'
  | 'RS384'
  | 'RS512'
  | 'PS256'
  | 'PS384'
  | 'PS512'
  | 'ES256'
  | 'ES384'
  | 'ES512'
  | 'EdDSA'
  | 'Ed25519';

/** The credentials with which the server asks an issuer about opaque tokens (RFC 7662). */
export interface IntrospectionOptions {
  /** Default: `introspection_endpoint` of the issuer's metadata. */
  readonly endpoint?: string | undefined;
  readonly clientId: string;
  /** Sent as `client_secret_basic`. Give either this or `privateKey`. */
  readonly clientSecret?: string | undefined;
  /** A PKCS #8 key (PEM) that signs `private_key_jwt` (RFC 7523). */
  readonly privateKey?: string | undefined;
  /** The algorithm of `privateKey`. Default `ES256`. */
  readonly algorithm?: TokenAlgorithm | undefined;
}

/** An authorization server whose tokens are accepted. */
export interface IssuerOptions {
  /** Exactly as in the `iss` of its tokens and in its metadata, including a slash at the end. */
  readonly issuer: string;
  /** The address of its keys. Default: `jwks_uri` of its metadata. */
  readonly jwks?: string | undefined;
  /** Asks this issuer about tokens that are no JWT. At most one issuer may have it. */
  readonly introspection?: IntrospectionOptions | undefined;
  /** Accepted signature algorithms. Default RS256, PS256, ES256, EdDSA. */
  readonly algorithms?: readonly TokenAlgorithm[] | undefined;
  /** The `aud` of tokens for this server, if the issuer does not write `resource` there. */
  readonly audience?: string | undefined;
}

export interface ResourceServerOptions {
  /** The address of the MCP endpoint as clients use it, such as `https://mcp.example.com/mcp`. */
  readonly resource: string;
  /** The authorization servers: an issuer, or several. */
  readonly issuer: string | IssuerOptions | readonly (string | IssuerOptions)[];
  /**
   * The address of the metadata in challenges, such as `https://example.com/team/.well-known/oauth-protected-resource`: for a
   * proxy that passes on only what is below its prefix. Default: that of `resource` (RFC 9728 section 3.1).
   */
  readonly metadata?: string | undefined;
  /** Scopes that each request needs. They are also `scopes_supported`. Default: none. */
  readonly scopes?: readonly string[] | undefined;
  /** Scopes that include others, such as `{ 'orders:write': ['orders:read'] }`. Applied transitively. */
  readonly implies?: Readonly<Record<string, readonly string[]>> | undefined;
  /** Other audiences that a token may have in addition. Default: none but the issuer's own userinfo endpoint. */
  readonly otherAudiences?: readonly string[] | undefined;
  /** The accepted `typ` of a JWT. Default both; a JWT without `typ` counts as `JWT`. */
  readonly type?: 'at+jwt' | 'JWT' | undefined;
  /** True: one principal for a user in all clients. Default: one for each user and client. */
  readonly perUser?: boolean | undefined;
  /** Milliseconds by which the clocks may differ. Default 60,000. */
  readonly leewayMs?: number | undefined;
  /** Milliseconds for which a verified token is not verified again. Default 300,000. */
  readonly rememberMs?: number | undefined;
  /** Milliseconds after which the issuer's keys are fetched again. Default 600,000. */
  readonly jwksAgeMs?: number | undefined;
  /** Milliseconds between two fetches because of unknown keys. Default 60,000. */
  readonly jwksCooldownMs?: number | undefined;
  /** Proofs of possession (RFC 9449). Default `accepted`. */
  readonly dpop?: 'accepted' | 'required' | 'off' | undefined;
  /**
   * The rate of rejected tokens of a client, by its address. Above it, its unknown tokens get 429 without a look. Private
   * addresses are not limited: a proxy has the clients of many. Default `{ perSecond: 20, burst: 40 }`.
   */
  readonly failures?: false | { readonly perSecond: number; readonly burst: number } | undefined;
  /** Methods that need no token in 2026-07-28, such as `server/discover`. Default: none. */
  readonly anonymous?: false | readonly string[] | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
}

/** One issuer with its defaults. */
export interface ResolvedIssuer {
  readonly issuer: string;
  readonly jwks: URL | undefined;
  readonly introspection: (IntrospectionOptions & { readonly algorithm: TokenAlgorithm }) | undefined;
  readonly algorithms: readonly TokenAlgorithm[];
  /** The audience that a token must have. */
  readonly audience: string;
}

export interface ResolvedResourceServer {
  readonly resource: string;
  readonly metadata: URL | undefined;
  readonly issuers: readonly ResolvedIssuer[];
  readonly scopes: readonly string[];
  /** For each scope the scopes that it includes, transitively. */
  readonly implies: ReadonlyMap<string, readonly string[]>;
  readonly otherAudiences: ReadonlySet<string>;
  readonly type: 'at+jwt' | 'JWT' | undefined;
  readonly perUser: boolean;
  readonly leewayMs: number;
  readonly rememberMs: number;
  readonly jwksAgeMs: number;
  readonly jwksCooldownMs: number;
  readonly dpop: 'accepted' | 'required' | 'off';
  readonly failures: { readonly perSecond: number; readonly burst: number } | undefined;
  readonly anonymous: ReadonlySet<string>;
  readonly clock: Clock;
}

const ALGORITHMS: readonly TokenAlgorithm[] = ['RS256', 'PS256', 'ES256', 'EdDSA'];
const KNOWN_ALGORITHMS: ReadonlySet<string> = new Set<TokenAlgorithm>([
  ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] as const),
]);
const DURATIONS = { leewayMs: 60_000, rememberMs: 300_000, jwksAgeMs: 600_000, jwksCooldownMs: 60_000 } as const;
const OPTIONS: ReadonlySet<string> = new Set([
  'resource',
  'issuer',
  'metadata',
  'scopes',
  'implies',
  'otherAudiences',
  'type',
  'perUser',
  'dpop',
  'failures',
  'anonymous',
  ...Object.keys(DURATIONS),
  'clock',
]);
const ISSUER_OPTIONS: ReadonlySet<string> = new Set(['issuer', 'jwks', 'introspection', 'algorithms', 'audience']);
const INTROSPECTION_OPTIONS: ReadonlySet<string> = new Set([
  'endpoint',
  'clientId',
  'clientSecret',
  'privateKey',
  'algorithm',
]);

/** @throws {TypeError | RangeError} for an unknown or invalid option, with its name and the expected value */
export function resolveResourceServer(given: ResourceServerOptions): ResolvedResourceServer {
  if (!isObject(given)) throw new TypeError(`oauth: expected options, got ${describe(given)}`);
  checkOptionNames('oauth: ', given, OPTIONS);
  const resource = canonicalResource(given.resource);
  const { scopes = [], implies = {}, otherAudiences = [], type, perUser = false, dpop = 'accepted', anonymous } = given;
  checkScopes('scopes', scopes);
  if (scopes.includes('offline_access'))
    throw new TypeError('oauth: scopes: offline_access is for clients to request, and no resource needs it. Remove it');
  if (type !== undefined && type !== 'at+jwt' && type !== 'JWT')
    throw new TypeError(`oauth: type: expected "at+jwt" or "JWT", got ${describe(type)}`);
  if (!['accepted', 'required', 'off'].includes(dpop))
    throw new TypeError(`oauth: dpop: expected "accepted", "required" or "off", got ${describe(dpop)}`);
  if (typeof perUser !== 'boolean') throw new TypeError(`oauth: perUser: expected a boolean, got ${describe(perUser)}`);
  checkTexts('otherAudiences', otherAudiences, 'an array of audiences, such as ["account"]');
  const methods = anonymous === undefined || anonymous === false ? [] : anonymous;
  checkMethods(methods);
  const issuers = issuersOf(given.issuer, resource);
  return {
    resource,
    metadata: given.metadata === undefined ? undefined : address('metadata', given.metadata),
    issuers,
    scopes: [...scopes],
    implies: closed(implies),
    otherAudiences: new Set(otherAudiences),
    type,
    perUser,
    dpop,
    leewayMs: duration(given, 'leewayMs', 0),
    rememberMs: duration(given, 'rememberMs', 0),
    jwksAgeMs: duration(given, 'jwksAgeMs', 1_000),
    jwksCooldownMs: duration(given, 'jwksCooldownMs', 1_000),
    failures: failuresOf(given.failures),
    anonymous: new Set(methods),
    clock: given.clock ?? systemClock,
  };
}

/**
 * The canonical form of a resource: scheme and host in lower case, and no slash added to an empty path.
 *
 * @see 2026-07-28 authorization "Canonical Server URI"
 */
function canonicalResource(given: string): string {
  const wrong = (): TypeError =>
    new TypeError(
      `oauth: resource: expected the https address of the MCP endpoint, such as "https://mcp.example.com/mcp", got ${describe(given)}`,
    );
  if (typeof given !== 'string' || !URL.canParse(given)) throw wrong();
  const url = new URL(given);
  if (/[?#]/.test(given) || url.username !== '' || url.password !== '') throw wrong();
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname))) throw wrong();
  return url.pathname === '/' && !given.endsWith('/') ? url.origin : url.href;
}

function issuersOf(given: unknown, resource: string): readonly ResolvedIssuer[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  const issuers = list.map((each) => oneIssuer(typeof each === 'string' ? { issuer: each } : each, resource));
  if (issuers.length === 0)
    throw new TypeError('oauth: issuer: expected the address of an authorization server, got none');
  const names = issuers.map(({ issuer }) => issuer);
  const twice = names.find((name, place) => names.indexOf(name) !== place);
  if (twice !== undefined) throw new TypeError(`oauth: issuer: ${twice} is there twice`);
  if (issuers.filter(({ introspection }) => introspection).length > 1)
    throw new TypeError(
      'oauth: introspection: expected one issuer with it, got several. An opaque token does not name its issuer',
    );
  return issuers;
}

function isIssuerOptions(given: unknown): given is IssuerOptions {
  return isObject(given) && typeof given.issuer === 'string';
}

function oneIssuer(given: unknown, resource: string): ResolvedIssuer {
  if (!isIssuerOptions(given))
    throw new TypeError(
      `oauth: issuer: expected the address of an authorization server, or { issuer, … }, got ${describe(given)}`,
    );
  checkOptionNames('oauth: issuer: ', given, ISSUER_OPTIONS);
  const { issuer, jwks, introspection, algorithms = ALGORITHMS, audience = resource } = given;
  address('issuer', issuer);
  for (const algorithm of algorithms)
    if (!KNOWN_ALGORITHMS.has(algorithm))
      throw new TypeError(
        `oauth: algorithms: expected some of ${[...KNOWN_ALGORITHMS].join(', ')}, got ${describe(algorithm)}`,
      );
  if (algorithms.length === 0) throw new TypeError('oauth: algorithms: expected at least one, got none');
  if (typeof audience !== 'string' || audience === '')
    throw new TypeError(`oauth: audience: expected the aud of tokens for this server, got ${describe(audience)}`);
  return {
    issuer,
    jwks: jwks === undefined ? undefined : address('jwks', jwks),
    introspection: introspection && introspectionOf(introspection),
    algorithms: [...algorithms],
    audience,
  };
}

function introspectionOf(given: IntrospectionOptions): IntrospectionOptions & { readonly algorithm: TokenAlgorithm } {
  if (!isObject(given))
    throw new TypeError(`oauth: introspection: expected { clientId, clientSecret }, got ${describe(given)}`);
  checkOptionNames('oauth: introspection: ', given, INTROSPECTION_OPTIONS);
  const { endpoint, clientId, clientSecret, privateKey, algorithm = 'ES256' } = given;
  if (endpoint !== undefined) address('introspection.endpoint', endpoint);
  if (typeof clientId !== 'string' || clientId === '')
    throw new TypeError(`oauth: introspection.clientId: expected the id of a client, got ${describe(clientId)}`);
  if ((clientSecret === undefined) === (privateKey === undefined))
    throw new TypeError(
      `oauth: introspection: expected clientSecret or privateKey, got ${privateKey === undefined ? 'none' : 'both'}`,
    );
  if (privateKey !== undefined && !/-----BEGIN PRIVATE KEY-----/.test(privateKey))
    throw new TypeError(
      'oauth: introspection.privateKey: expected a PKCS #8 key in PEM ("-----BEGIN PRIVATE KEY-----")',
    );
  if (!KNOWN_ALGORITHMS.has(algorithm))
    throw new TypeError(
      `oauth: introspection.algorithm: expected one of ${[...KNOWN_ALGORITHMS].join(', ')}, got ${describe(algorithm)}`,
    );
  return { ...given, algorithm };
}

function address(option: string, given: string): URL {
  const url = typeof given === 'string' && URL.canParse(given) ? new URL(given) : undefined;
  if (!url || (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname))))
    throw new TypeError(
      `oauth: ${option}: expected an https address, or an http address of this machine, got ${describe(given)}`,
    );
  return url;
}

function checkTexts(option: string, given: readonly string[], expected: string): void {
  if (!Array.isArray(given) || given.some((each) => typeof each !== 'string' || each === ''))
    throw new TypeError(`oauth: ${option}: expected ${expected}, got ${describe(given)}`);
}

/** Only methods that 2026-07-28 has can be called without a token: the others would be ignored. */
function checkMethods(given: readonly string[]): void {
  checkTexts('anonymous', given, 'an array of methods, such as ["server/discover"]');
  for (const method of given) {
    const known = METHODS.get(method);
    if (known?.kind !== 'request' || !known.eras.includes('modern'))
      throw new TypeError(
        `oauth: anonymous: expected requests of 2026-07-28, such as "tools/list", got ${describe(method)}`,
      );
  }
}

function checkScopes(option: string, given: readonly string[]): void {
  const problem = problemOfScopes(given);
  if (problem !== undefined) throw new TypeError(`oauth: ${option}: ${problem}`);
}

function duration(given: ResourceServerOptions, name: keyof typeof DURATIONS, least: number): number {
  const value = given[name] ?? DURATIONS[name];
  if (!Number.isSafeInteger(value) || value < least || value > LONGEST_TIMER_MS)
    throw new RangeError(
      `oauth: ${name}: expected whole milliseconds from ${least} to ${LONGEST_TIMER_MS}, got ${describe(value)}`,
    );
  return value;
}

function failuresOf(given: ResourceServerOptions['failures']): ResolvedResourceServer['failures'] {
  if (given === false) return undefined;
  if (given !== undefined && !isObject(given))
    throw new TypeError(`oauth: failures: expected false or { perSecond, burst }, got ${describe(given)}`);
  const { perSecond, burst } = given ?? { perSecond: 20, burst: 40 };
  if (!(perSecond > 0 && Number.isFinite(perSecond)))
    throw new RangeError(`oauth: failures: perSecond: expected a number above 0, got ${describe(perSecond)}`);
  if (!(burst >= 1 && Number.isFinite(burst)))
    throw new RangeError(`oauth: failures: burst: expected a number of at least 1, got ${describe(burst)}`);
  return { perSecond, burst };
}

/** The transitive closure of `implies`. */
function closed(implies: Readonly<Record<string, readonly string[]>>): ReadonlyMap<string, readonly string[]> {
  if (!isObject(implies)) throw new TypeError(`oauth: implies: expected an object, got ${describe(implies)}`);
  checkScopes('implies', Object.keys(implies));
  for (const [scope, included] of Object.entries(implies)) checkScopes(`implies["${scope}"]`, included);
  const direct = new Map(Object.entries(implies));
  return new Map(
    [...direct.keys()].map((scope) => {
      const found = new Set<string>();
      const open = [scope];
      for (let next = open.pop(); next !== undefined; next = open.pop())
        for (const included of direct.get(next) ?? [])
          if (!found.has(included) && included !== scope) {
            found.add(included);
            open.push(included);
          }
      return [scope, [...found]];
    }),
  );
}
