/** Authenticates HTTP requests, and words the challenges for requests that lack credentials or scopes. */

import { type Auth, authOf } from '../messages/auth.ts';
import { describe, isJsonObject, isObject, isWellFormed, type JsonObject } from '../protocol/json.ts';
import { ANONYMOUS, LOCAL, PROGRAM } from '../protocol/principals.ts';
import { areScopes, problemOfScopes } from '../protocol/scopes.ts';

/** The part of a request that an authenticator receives. */
export interface AuthenticationRequest {
  readonly method: string;
  /** Path and query, as received. */
  readonly url: string;
  /** The query without its "?"; empty if there is none. */
  readonly query: string;
  /** A header by its name, in any case. Values of a repeated header are joined with ", ". */
  header(name: string): string | undefined;
  /**
   * Each value of a header, by its name in any case, as far as they are known: `server.fetch` receives the values of a
   * repeated header already joined.
   */
  values(name: string): readonly string[];
  /** The address of the peer, which is the proxy's behind a proxy. Undefined for `server.fetch`. */
  readonly remoteAddress: string | undefined;
  /**
   * Stands for the client's connection, so that an authenticator can remember what it has sent (as a key of a `WeakMap`).
   * Undefined for `server.fetch`.
   */
  readonly connection?: object | undefined;
}

/** The reason for a rejection, with the milliseconds after which a retry makes sense. */
export interface LoadExcess {
  /** The option that sets the limit. */
  readonly option: string;
  readonly message: string;
  readonly retryMs: number;
}

/** The caller of a request, or the response that rejects it. */
export type Authentication =
  | { readonly auth: Auth }
  /** The client sends requests too often: 429 with `Retry-After`. */
  | { readonly excess: LoadExcess }
  | {
      readonly status: 400 | 401 | 403 | 503;
      /** Additional headers, such as `www-authenticate` (each value is a header of its own) and `retry-after`. */
      readonly headers: Readonly<Record<string, string | readonly string[]>>;
      /** The message of the JSON-RPC error in the body. Never contains a part of the credentials. */
      readonly message: string;
      /** The reason for the operator, which is logged as a fault and never sent. */
      readonly cause?: unknown;
    };

/** Authenticates HTTP requests, such as `oauth()` of `troupe/oauth`. Pass it as `http({ auth })`. */
export interface HttpAuthenticator {
  /**
   * Called once for each request, before its body is read. Synchronous where it can be, because a promise costs each
   * request a turn. If it throws, the request gets 503.
   */
  authenticate(request: AuthenticationRequest): Authentication | Promise<Authentication>;
  /**
   * The values of `WWW-Authenticate` for a 403: visible ASCII. If it throws, or returns anything else, the response has no
   * such header, and the log an incident.
   *
   * @param scopes all that the operation needs, granted ones included (RFC 6750 section 3.1, SEP-2350): many clients request
   * a token with the scopes of the last challenge and no others
   */
  challenge(scopes: readonly string[]): readonly string[];
  /**
   * JSON documents that are served without authentication, by absolute path, such as
   * `/.well-known/oauth-protected-resource/mcp` (RFC 9728).
   */
  readonly documents: ReadonlyMap<string, JsonObject>;
  /** The URL of its metadata (RFC 9728), which errors for missing scopes repeat in their data. */
  readonly resourceMetadata?: string | undefined;
}

/** The caller that `authenticate` has found. */
export interface AuthenticatedCaller {
  readonly principal: string;
  /** The granted scopes. Default: none. */
  readonly scopes?: readonly string[] | undefined;
  /** Facts about the caller for rules and handlers (`ctx.auth.claims`), as JSON. */
  readonly claims?: JsonObject | undefined;
  /** The end of the credentials, in milliseconds since 1970. Streams of the caller end a minute later. */
  readonly expiresAt?: number | undefined;
}

/** The results of `authenticate`: the principal's name, what is known of the caller, or undefined to reject. */
export type AuthenticateResult = string | AuthenticatedCaller | undefined;

type Authenticate = (request: AuthenticationRequest) => AuthenticateResult | Promise<AuthenticateResult>;

/** Characters that every HTTP implementation sends in a header (RFC 9110 section 5.5). */
const FIELD_VALUE = /^[\t -~]*$/;

/** @throws the error of an authenticator whose challenge cannot be sent */
export function challengeOf(authenticator: HttpAuthenticator, scopes: readonly string[]): readonly string[] {
  const values = authenticator.challenge(scopes);
  const wrong = values.find((value) => typeof value !== 'string' || !FIELD_VALUE.test(value));
  if (wrong === undefined) return values;
  throw new TypeError(`challenge: expected header values of visible ASCII, got ${describe(wrong)}`);
}

/** The rejection of a request without valid credentials. */
export const REJECTED = {
  status: 401,
  headers: { 'www-authenticate': 'Bearer' },
  message: 'authentication failed: expected credentials that this server accepts (Authorization)',
} as const satisfies Authentication;

/** The rejection of a caller whose name has half of a surrogate pair: no store, log or address can carry it. */
const ILL_FORMED = {
  ...REJECTED,
  message: 'authentication failed: the name of the caller is not well-formed Unicode',
} as const satisfies Authentication;

/** Maximum number of principals whose names alone are remembered as frozen objects. */
const MAX_NAMED = 1_000;

/** The authenticator of the option `authenticate`. Its challenges name no metadata, because there is none. */
export class FunctionAuthenticator implements HttpAuthenticator {
  readonly documents: HttpAuthenticator['documents'] = new Map();
  readonly #authenticate: Authenticate;
  /** The callers of which only a name is known: one object for each principal, not for each request. */
  readonly #named = new Map<string, Authentication>();

  constructor(authenticate: Authenticate) {
    this.#authenticate = authenticate;
  }

  authenticate(request: AuthenticationRequest): Authentication | Promise<Authentication> {
    const found = this.#authenticate(request);
    if (typeof found === 'object' && 'then' in found) return found.then(this.#read);
    return this.#read(found);
  }

  challenge(scopes: readonly string[]): readonly string[] {
    return [
      `Bearer error="insufficient_scope", scope="${scopes.join(' ')}", error_description="the credentials lack these scopes"`,
    ];
  }

  /** @throws {TypeError} for a result that is none of {@link AuthenticateResult} */
  readonly #read = (found: unknown): Authentication => {
    if (found === undefined || found === null || found === '' || found === false) return REJECTED;
    if (typeof found === 'string') return isWellFormed(found) ? this.#name(found) : ILL_FORMED;
    if (!isObject(found) || typeof found.principal !== 'string' || found.principal === '')
      throw new TypeError(
        `http.authenticate: expected a principal's name, { principal, scopes, claims, expiresAt } or undefined, got ${isObject(found) ? `{ ${Object.keys(found).join(', ')} }` : describe(found)}`,
      );
    const { principal, scopes, claims, expiresAt } = found;
    if (!isWellFormed(principal) || !isWellFormed(claims)) return ILL_FORMED;
    if (scopes === undefined && claims === undefined && expiresAt === undefined) return this.#name(principal);
    if (scopes !== undefined && !areScopes(scopes))
      throw new TypeError(`http.authenticate: scopes: ${problemOfScopes(scopes)}`);
    if (claims !== undefined && !isJsonObject(claims))
      throw new TypeError(`http.authenticate: claims: expected a JSON object, got ${describe(claims)}`);
    if (expiresAt !== undefined && !(typeof expiresAt === 'number' && Number.isFinite(expiresAt)))
      throw new TypeError(`http.authenticate: expiresAt: expected milliseconds since 1970, got ${describe(expiresAt)}`);
    return {
      auth: authOf(principal, scopes, {
        claims: Object.freeze({ ...claims }),
        ...(expiresAt === undefined ? {} : { expiresAt }),
      }),
    };
  };

  #name(principal: string): Authentication {
    let named = this.#named.get(principal);
    if (!named) {
      if (this.#named.size >= MAX_NAMED) this.#named.clear();
      named = { auth: authOf(principal) };
      this.#named.set(principal, named);
    }
    return named;
  }
}

/**
 * The caller of a request; undefined for an anonymous one. @throws {Error} for a principal that belongs to clients of
 * this machine
 */
export function callerOf(auth: Auth): Auth | undefined {
  if (auth.principal === LOCAL) throw new Error(`"${LOCAL}" is reserved for clients over stdio and sockets`);
  if (auth.principal === PROGRAM) throw new Error(`"${PROGRAM}" is reserved for the program of this server`);
  if (typeof auth.principal !== 'string' || auth.principal === '')
    throw new TypeError(`http: auth: expected a principal's name, got ${describe(auth.principal)}`);
  if (auth.principal === ANONYMOUS) return undefined;
  // Requests share what an authenticator remembers: no handler may change it.
  if (Object.isFrozen(auth) && Object.isFrozen(auth.scopes)) return auth;
  return Object.freeze({ ...auth, scopes: Object.freeze([...auth.scopes]), claims: Object.freeze({ ...auth.claims }) });
}
