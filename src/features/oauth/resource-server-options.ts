/** The options of `oauth`, with their defaults and checks. */

import { isLoopback } from '../../core/http/host-guard.ts';
import { type Clock, LONGEST_TIMER_MS, systemClock } from '../../core/kernel/clock.ts';
import { describe, isObject } from '../../core/protocol/json.ts';
import { METHODS, type Method } from '../../core/protocol/methods.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { problemOfScopes } from '../../core/protocol/scopes.ts';
import { SKILL_METHODS } from '../skills/skill-methods.ts';
import { TASK_METHODS } from '../tasks/task-methods.ts';

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
const from = (least: number): option.Check =>
  option.expected(`whole milliseconds from ${least} to ${LONGEST_TIMER_MS}`, (value) =>
    option.isWhole(value, least, LONGEST_TIMER_MS),
  );
const address = option.expected('an https address, or an http address of this machine', (value) => {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
});
const failures = option.rate('false or { perSecond, burst }');
const algorithm = option.expected(`one of ${[...KNOWN_ALGORITHMS].join(', ')}`, isAlgorithm);

const ROWS: option.Rows<ResourceServerOptions> = {
  resource: option.needed(
    option.expected(
      'the https address of the MCP endpoint, such as "https://mcp.example.com/mcp"',
      (value) => canonicalResource(value) !== undefined,
    ),
  ),
  issuer: option.anything,
  metadata: address,
  scopes: (value) =>
    problemOfScopes(value) ??
    (Array.isArray(value) && value.includes('offline_access')
      ? 'offline_access is for clients to request, and no resource needs it. Remove it'
      : undefined),
  implies: problemOfImplied,
  otherAudiences: option.expected('an array of audiences, such as ["account"]', areFilled),
  type: option.oneOf('at+jwt', 'JWT'),
  perUser: option.expected('a boolean', (value) => typeof value === 'boolean'),
  leewayMs: from(0),
  rememberMs: from(0),
  jwksAgeMs: from(1_000),
  jwksCooldownMs: from(1_000),
  dpop: option.oneOf('accepted', 'required', 'off'),
  failures: (value) => (value === false ? undefined : failures(value)),
  anonymous: problemOfMethods,
  clock: option.clock,
};
const ISSUER_ROWS: option.Rows<IssuerOptions> = {
  issuer: option.needed(address),
  jwks: address,
  introspection: option.expected('{ clientId, clientSecret }', isObject),
  algorithms(value) {
    if (!Array.isArray(value) || value.length === 0) return `expected at least one, got ${describe(value)}`;
    const wrong = value.findIndex((each) => !isAlgorithm(each));
    return wrong === -1
      ? undefined
      : `expected some of ${[...KNOWN_ALGORITHMS].join(', ')}, got ${describe(value[wrong])}`;
  },
  audience: option.expected('the aud of tokens for this server', option.isFilled),
};
const INTROSPECTION_ROWS: option.Rows<IntrospectionOptions> = {
  endpoint: address,
  clientId: option.needed(option.expected('the id of a client', option.isFilled)),
  clientSecret: option.secret,
  privateKey: option.privateKey,
  algorithm,
};

/** @throws {TypeError | RangeError} for an unknown or invalid option, with its name and the expected value */
export function resolveResourceServer(given: ResourceServerOptions): ResolvedResourceServer {
  option.check('oauth: ', given, ROWS);
  const { scopes = [], implies = {}, otherAudiences = [], type, perUser = false, dpop = 'accepted', anonymous } = given;
  const resource = canonicalResource(given.resource) ?? '';
  const { failures = { perSecond: 20, burst: 40 } } = given;
  return {
    ...DURATIONS,
    ...option.withoutUndefined({
      leewayMs: given.leewayMs,
      rememberMs: given.rememberMs,
      jwksAgeMs: given.jwksAgeMs,
      jwksCooldownMs: given.jwksCooldownMs,
    }),
    resource,
    metadata: given.metadata === undefined ? undefined : new URL(given.metadata),
    issuers: issuersOf(given.issuer, resource),
    scopes: [...scopes],
    implies: closed(implies),
    otherAudiences: new Set(otherAudiences),
    type,
    perUser,
    dpop,
    failures: failures === false ? undefined : failures,
    anonymous: new Set(anonymous === false ? [] : anonymous),
    clock: given.clock ?? systemClock,
  };
}

/**
 * The canonical form of a resource: scheme and host in lower case, and no slash added to an empty path.
 *
 * @see 2026-07-28 authorization "Canonical Server URI"
 */
function canonicalResource(given: unknown): string | undefined {
  if (typeof given !== 'string' || !URL.canParse(given)) return undefined;
  const url = new URL(given);
  if (/[?#]/.test(given) || url.username !== '' || url.password !== '') return undefined;
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname))) return undefined;
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
  return isObject(given);
}

function oneIssuer(given: unknown, resource: string): ResolvedIssuer {
  if (!isIssuerOptions(given))
    throw new TypeError(
      `oauth: issuer: expected the address of an authorization server, or { issuer, … }, got ${describe(given)}`,
    );
  option.check('oauth: ', given, ISSUER_ROWS);
  const { issuer, jwks, introspection, algorithms = ALGORITHMS, audience = resource } = given;
  return {
    issuer,
    jwks: jwks === undefined ? undefined : new URL(jwks),
    introspection: introspection && introspectionOf(introspection),
    algorithms: [...algorithms],
    audience,
  };
}

function introspectionOf(given: IntrospectionOptions): IntrospectionOptions & { readonly algorithm: TokenAlgorithm } {
  option.check('oauth: introspection.', given, INTROSPECTION_ROWS);
  const { clientSecret, privateKey, algorithm = 'ES256' } = given;
  if ((clientSecret === undefined) === (privateKey === undefined))
    throw new TypeError(
      `oauth: introspection: expected clientSecret or privateKey, got ${privateKey === undefined ? 'none' : 'both'}`,
    );
  return { ...given, algorithm };
}

function isAlgorithm(value: unknown): boolean {
  return typeof value === 'string' && KNOWN_ALGORITHMS.has(value);
}

function areFilled(value: unknown): value is readonly string[] {
  return option.areStrings(value) && !value.includes('');
}

/** The methods of the protocol. Those that a feature of the program adds always need a token. */
const KNOWN_METHODS: ReadonlyMap<string, Method> = new Map([
  ...METHODS,
  ...Object.entries(SKILL_METHODS),
  ...Object.entries(TASK_METHODS),
]);

/** Only methods that 2026-07-28 has can be called without a token: the others would be ignored. */
function problemOfMethods(given: unknown): string | undefined {
  if (given === false) return undefined;
  if (!areFilled(given)) return `expected an array of methods, such as ["server/discover"], got ${describe(given)}`;
  const wrong = given.find((method) => {
    const known = KNOWN_METHODS.get(method);
    return known?.kind !== 'request' || !known.eras.includes('modern');
  });
  return wrong === undefined
    ? undefined
    : `expected requests of 2026-07-28, such as "tools/list", got ${describe(wrong)}`;
}

function problemOfImplied(implies: unknown): string | undefined {
  if (!isObject(implies)) return `expected an object, got ${describe(implies)}`;
  const wrong = problemOfScopes(Object.keys(implies));
  if (wrong !== undefined) return wrong;
  for (const [scope, included] of Object.entries(implies)) {
    const problem = problemOfScopes(included);
    if (problem !== undefined) return `["${scope}"]: ${problem}`;
  }
  return undefined;
}

/** The transitive closure of `implies`. */
function closed(implies: Readonly<Record<string, readonly string[]>>): ReadonlyMap<string, readonly string[]> {
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
