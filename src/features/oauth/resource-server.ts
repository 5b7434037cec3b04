/** An OAuth 2.1 resource server: authenticates requests by access tokens, and publishes where clients get them. */

import { decodeJwt, decodeProtectedHeader } from 'jose';
import { networkOf, plainAddress } from '../../core/http/host-guard.ts';
import type { Authentication, AuthenticationRequest, HttpAuthenticator } from '../../core/http/http-authenticator.ts';
import { isGlobalAddress } from '../../core/kernel/global-address.ts';
import { type TokenBucket, TokenBuckets } from '../../core/kernel/token-bucket.ts';
import { authOf } from '../../core/messages/auth.ts';
import { isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import { isModernRevision } from '../../core/protocol/revisions.ts';
import type { TokenVerdict } from './access-token.ts';
import { DpopProofs, PROOF_ALGORITHMS } from './dpop-proofs.ts';
import { IssuerUnavailable } from './issuer-unavailable.ts';
import { type Rejection, Rejections } from './rejections.ts';
import { RememberedTokens, tokenHash } from './remembered-tokens.ts';
import {
  type ResolvedResourceServer,
  type ResourceServerOptions,
  resolveResourceServer,
} from './resource-server-options.ts';
import { TokenIssuer } from './token-issuer.ts';

/** Longest Authorization header, in characters. */
const MAX_HEADER = 8_192;
/** Milliseconds for which a rejected token is not verified again. */
const REJECTED_MS = 5_000;
/** Milliseconds for which a token without an end is remembered. */
const ENDLESS_MS = 60_000;
/** Milliseconds between two reports that an issuer cannot be asked. */
const REPORT_MS = 5_000;
/** Maximum number of verifications in progress. */
const MAX_VERIFICATIONS = 1_000;
const WELL_KNOWN = '/.well-known/oauth-protected-resource';
const TOO_MANY_FAILURES = 'this address has sent too many tokens that were rejected. Retry later';
const WITHOUT_TOKEN: Authentication = { auth: authOf(ANONYMOUS) };
/** `b64token` (RFC 6750 section 2.1). */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** A verified token, with the answer that all its requests share. */
interface GoodToken {
  readonly answer: Authentication;
  readonly boundTo: string | undefined;
}

/** An Authorization header. */
interface Credentials {
  readonly header: string;
  readonly scheme: 'bearer' | 'dpop';
  readonly token: string;
  /** The hash of the token. */
  readonly key: string;
}

type Outcome = GoodToken | { readonly rejection: Rejection };

/**
 * Creates the authenticator of a server whose clients sign in at an OAuth 2.1 authorization server: pass it as
 * `http({ auth })` or `createServer({ http: { auth } })`. Needs the package `jose`.
 *
 * @throws {TypeError | RangeError} for an unknown or invalid option, with its name and the expected value
 * @example
 * oauth({ resource: 'https://mcp.example.com/mcp', issuer: 'https://login.example.com', scopes: ['orders:read'] });
 */
export function oauth(options: ResourceServerOptions): HttpAuthenticator {
  return new ResourceServer(resolveResourceServer(options));
}

class ResourceServer implements HttpAuthenticator {
  readonly documents: ReadonlyMap<string, JsonObject>;
  readonly resourceMetadata: string;
  readonly #settings: ResolvedResourceServer;
  readonly #issuers: ReadonlyMap<string, TokenIssuer>;
  readonly #rejections: Rejections;
  readonly #proofs: DpopProofs;
  // Two memories, so that a flood of bad tokens pushes out no good one.
  readonly #good = new RememberedTokens<GoodToken>();
  readonly #bad = new RememberedTokens<Rejection>();
  /** The last header of each open connection. */
  readonly #sent = new WeakMap<object, Credentials>();
  readonly #failures: TokenBuckets | undefined;
  readonly #verifying = new Map<string, Promise<Outcome>>();
  /** The time from which the operator is informed again that an issuer cannot be asked. */
  #reportAgainAt = Number.NEGATIVE_INFINITY;

  constructor(settings: ResolvedResourceServer) {
    const { resource, metadata, issuers, scopes, dpop, failures, clock } = settings;
    this.#settings = settings;
    this.#issuers = new Map(issuers.map((issuer) => [issuer.issuer, new TokenIssuer(issuer, settings)]));
    const { origin, pathname } = new URL(resource);
    const path = `${WELL_KNOWN}${pathname === '/' ? '' : pathname}`;
    this.resourceMetadata = metadata?.href ?? `${origin}${path}`;
    this.#rejections = new Rejections(settings, this.resourceMetadata);
    this.#failures = failures && new TokenBuckets(failures);
    this.#proofs = new DpopProofs(resource, clock);
    const document: JsonObject = {
      resource,
      authorization_servers: issuers.map(({ issuer }) => issuer),
      ...(scopes.length === 0 ? {} : { scopes_supported: scopes }),
      bearer_methods_supported: ['header'],
      ...(dpop === 'off' ? {} : { dpop_signing_alg_values_supported: PROOF_ALGORITHMS }),
      ...(dpop === 'required' ? { dpop_bound_access_tokens_required: true } : {}),
    };
    // Clients without the address from a challenge look below the path first, then at the root.
    this.documents = new Map([
      [path, document],
      [WELL_KNOWN, document],
      ...(metadata ? [[metadata.pathname, document] as const] : []),
    ]);
  }

  challenge(scopes: readonly string[]): readonly string[] {
    return this.#rejections.challenge(scopes);
  }

  authenticate(request: AuthenticationRequest): Authentication | Promise<Authentication> {
    const { query } = request;
    // A token in an address ends up in logs and histories (RFC 9700 section 4.3.2).
    if (query !== '' && /(?:^|&)access_token=/.test(query))
      return this.#rejections.invalid('expected the token in the Authorization header, got it in the address');
    const header = request.header('authorization');
    if (header === undefined) return this.#withoutToken(request);
    if (header.length > MAX_HEADER) return this.#rejections.invalid('the Authorization header is too long');
    const credentials = this.#read(header, request.connection);
    if (!credentials) return this.#rejections.missing;
    const { scheme, token, key } = credentials;
    const now = this.#settings.clock.now();
    const good = this.#good.get(key, now);
    if (good) return this.#answer(good, scheme, token, request);
    const rejected = this.#bad.get(key, now);
    if (rejected) return rejected;
    // Values of a repeated header are joined by commas.
    if (token.includes(',')) return this.#rejections.invalid('expected one Authorization header, got several');
    if (!TOKEN.test(token))
      return this.#rejections.malformed('expected the scheme Bearer or DPoP, a space and a token');
    const failures = this.#failuresOf(request, now);
    const retryMs = failures?.wait(now) ?? 0;
    if (retryMs > 0) return { excess: { option: 'oauth.failures', message: TOO_MANY_FAILURES, retryMs } };
    return this.#verifyOnce(key, token).then((outcome) => {
      if (!('rejection' in outcome)) return this.#answer(outcome, scheme, token, request);
      if (outcome.rejection.status !== 503) failures?.take(this.#settings.clock.now());
      return outcome.rejection;
    });
  }

  /** Clients send the same header with each request of a connection: it is hashed once. */
  #read(header: string, connection: object | undefined): Credentials | undefined {
    const last = connection && this.#sent.get(connection);
    if (last?.header === header) return last;
    const scheme = schemeOf(header);
    if (!scheme) return undefined;
    const token = header.slice(scheme.length + 1).trim();
    const credentials = { header, scheme, token, key: tokenHash(token) };
    if (connection) this.#sent.set(connection, credentials);
    return credentials;
  }

  /** The rejected tokens of a client, by its address. */
  #failuresOf({ remoteAddress }: AuthenticationRequest, now: number): TokenBucket | undefined {
    if (!this.#failures || remoteAddress === undefined) return undefined;
    return isGlobalAddress(plainAddress(remoteAddress)) ? this.#failures.of(networkOf(remoteAddress), now) : undefined;
  }

  /**
   * Before the body is read, a method is known only where a header names it and must equal the body: in a POST of
   * 2026-07-28. A POST with a query is for a stream of 2024-11-05, whose messages no header describes.
   */
  #withoutToken(request: AuthenticationRequest): Authentication {
    const { anonymous } = this.#settings;
    const { method, query } = request;
    const named = method === 'POST' && query === '' && isModernRevision(request.header('mcp-protocol-version'));
    const called = named ? request.header('mcp-method') : undefined;
    return called !== undefined && anonymous.has(called) ? WITHOUT_TOKEN : this.#rejections.missing;
  }

  /** The answer for a verified token: it has the scopes, and a bound token comes with its proof. */
  #answer(
    { answer, boundTo }: GoodToken,
    scheme: 'bearer' | 'dpop',
    token: string,
    request: AuthenticationRequest,
  ): Authentication | Promise<Authentication> {
    const { dpop } = this.#settings;
    if (scheme === 'bearer' && boundTo === undefined && dpop !== 'required') return answer;
    if (boundTo === undefined) return this.#rejections.invalid('expected a token that is bound to a key (DPoP)');
    if (scheme === 'bearer' || dpop === 'off')
      return this.#rejections.invalid('a token that is bound to a key needs the scheme DPoP and a proof');
    const { method } = request;
    return this.#proofs
      .check({ method, proofs: request.values('dpop'), token, boundTo })
      .then((fault) => (fault === undefined ? answer : this.#rejections.invalid(fault, 'invalid_dpop_proof')));
  }

  /** Requests with the same token share its verification. */
  #verifyOnce(key: string, token: string): Promise<Outcome> {
    const running = this.#verifying.get(key);
    if (running) return running;
    if (this.#verifying.size >= MAX_VERIFICATIONS)
      return Promise.resolve({ rejection: this.#rejections.unavailable(1_000) });
    const verifying = this.#outcome(key, token).finally(() => this.#verifying.delete(key));
    this.#verifying.set(key, verifying);
    return verifying;
  }

  async #outcome(key: string, token: string): Promise<Outcome> {
    const { clock, rememberMs, scopes } = this.#settings;
    const reject = (rejection: Rejection): Outcome => {
      this.#bad.set(key, rejection, clock.now() + REJECTED_MS);
      return { rejection };
    };
    let verdict: TokenVerdict;
    try {
      verdict = await this.#verify(token);
    } catch (error) {
      if (!(error instanceof IssuerUnavailable)) throw error;
      const rejection = this.#rejections.unavailable(error.retryMs);
      reject(rejection);
      return { rejection: this.#isToReport(error) ? { ...rejection, cause: error.cause } : rejection };
    }
    if ('rejected' in verdict) return reject(this.#rejections.invalid(verdict.rejected));
    const { auth, boundTo, until } = verdict;
    const lacks = scopes.some((scope) => !auth.scopes.includes(scope));
    const good: GoodToken = { answer: lacks ? this.#rejections.insufficient(scopes) : { auth }, boundTo };
    const leftMs = until === undefined ? ENDLESS_MS : until - clock.date();
    this.#good.set(key, good, clock.now() + Math.min(leftMs, rememberMs));
    return good;
  }

  /** The operator learns why an issuer cannot be asked, but not once for each token. An unknown key is no failure. */
  #isToReport({ cause }: IssuerUnavailable): boolean {
    const now = this.#settings.clock.now();
    if (cause === undefined || now < this.#reportAgainAt) return false;
    this.#reportAgainAt = now + REPORT_MS;
    return true;
  }

  #verify(token: string): TokenVerdict | Promise<TokenVerdict> {
    const jwt = readJwt(token);
    if (jwt) {
      const { iss } = jwt.claims;
      const issuer = typeof iss === 'string' ? this.#issuers.get(iss) : undefined;
      return issuer?.verify(token, jwt.header, jwt.claims) ?? { rejected: 'the token is of another issuer' };
    }
    const asked = [...this.#issuers.values()].find(({ introspects }) => introspects);
    return asked?.introspect(token) ?? { rejected: 'the token is not a JWT' };
  }
}

/** The scheme of an Authorization header, which is not case-sensitive (RFC 9110 section 11.1). */
function schemeOf(header: string): 'bearer' | 'dpop' | undefined {
  // As nearly all clients write it.
  if (header.startsWith('Bearer ')) return 'bearer';
  const space = header.indexOf(' ');
  const scheme = header.slice(0, space === -1 ? undefined : space).toLowerCase();
  return scheme === 'bearer' || scheme === 'dpop' ? scheme : undefined;
}

/** The parts of a JWT, unverified; undefined for a token that is none. */
function readJwt(
  token: string,
):
  | { readonly header: ReturnType<typeof decodeProtectedHeader> & { alg: string }; readonly claims: JsonObject }
  | undefined {
  try {
    const { alg, ...header } = decodeProtectedHeader(token);
    const claims: unknown = decodeJwt(token);
    return typeof alg === 'string' && isJsonObject(claims) ? { header: { ...header, alg }, claims } : undefined;
  } catch {
    return undefined;
  }
}
