/**
 * OAuth 2.1 for a client: discovers, registers, lets a person or the program itself sign in, refreshes, steps up, and
 * proves possession (MCP authorization, 2025-03-26 to 2026-07-28).
 */
import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
import type {
  AuthorizationServer,
  ClientAuth,
  DPoPHandle,
  Client as OAuthClient,
  TokenEndpointResponse,
} from 'oauth4webapi';
import { isLoopback } from '../../core/http/host-guard.ts';
import { type Clock, systemClock } from '../../core/kernel/clock.ts';
import { isObject, messageOf } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { type GuardedFetch, guardedFetch } from '../../features/oauth/issuers/guarded-fetch.ts';
import { isHeaderValue } from '../../features/oauth/issuers/header-text.ts';
import { findIssuer, isSameIssuer } from '../../features/oauth/issuers/issuer-metadata.ts';
import type { Authorization, Challenge } from '../authorization.ts';
import type { SignIn } from './browser-sign-in.ts';
import { readChallenges } from './challenges.ts';
import { findResource, originIssuer } from './metadata.ts';
import { NoSignIn } from './no-sign-in.ts';
import { makeProofKey, type ProofKey, proofOf, readProofKey, writeProofKey } from './proof.ts';
import { readableTokenAnswer } from './token-answer.ts';
import { memoryTokens, type TokenStore } from './token-store.ts';

export interface OAuthOptions {
  /**
   * The client's id at the authorization server: of a registration by hand, or an https URL of a client ID metadata
   * document, which is used where the server supports such documents. Without it the client registers itself.
   */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** A PKCS #8 key (PEM) with which the client authenticates itself instead of with a secret (RFC 7523). */
  readonly privateKey?: string;
  /** The algorithm of `privateKey`. Default `ES256`. */
  readonly algorithm?: 'ES256' | 'RS256' | 'PS256' | 'EdDSA';
  /** The issuer that the id belongs to. A server that names another one gets no secret. Default: the first one met. */
  readonly issuer?: string;
  /** The name that a person sees when asked for consent. Default `Troupe`. */
  readonly clientName?: string;
  /** Scopes to request besides those that the server demands. */
  readonly scopes?: readonly string[];
  /** `client_credentials`: the program acts for itself, without a person. Default `authorization_code`. */
  readonly grant?: 'authorization_code' | 'client_credentials';
  /** A token of the workload's platform, exchanged for an access token (RFC 7523, SEP-1933). Asked once for each token. */
  assertion?(): string | Promise<string>;
  /** Enterprise-managed authorization (SEP-990): the identity provider's token is exchanged for an ID-JAG, and that for an access token. */
  readonly exchange?: {
    readonly tokenEndpoint: string;
    readonly clientId: string;
    idToken(): string | Promise<string>;
  };
  /**
   * Shows an address to the person and resolves with the address that the browser was redirected to. Needs
   * `redirectUrl`. Default: opens the browser, and listens on a loopback port. The signal ends with the sign-in.
   */
  authorize?(url: URL, signal: AbortSignal): Promise<URL>;
  readonly redirectUrl?: string;
  /** Opens the browser by default; false only shows the address on stderr. */
  readonly openBrowser?: boolean;
  /** Milliseconds for the person to sign in. Default 300,000. */
  readonly signInMs?: number;
  /** Proofs of possession (RFC 9449). `auto` (the default): where the server names DPoP. */
  readonly dpop?: 'auto' | boolean;
  /** False: no person can sign in now. A server that demands it gets no browser, and the call fails. Default true. */
  readonly interactive?: boolean;
  /** The store of registrations and tokens. Default: memory. See {@link fileTokens}. */
  readonly tokens?: TokenStore;
  readonly clock?: Clock;
  /** Shows the address to sign in at. Default: a line on stderr. */
  show?(address: string): void;
}

/**
 * Finds the authorization server of a resource that is no MCP server: nothing is discovered at the resource, and tokens are requested
 * without naming it.
 */
export type KnownAuthorizationServer = (
  fetch: GuardedFetch,
  signal: AbortSignal,
) => AuthorizationServer | Promise<AuthorizationServer>;

/** The options of a grant whose authorization server may be known. */
export interface GrantOptions extends OAuthOptions {
  readonly authorizationServer?: KnownAuthorizationServer | undefined;
}

/** A grant of one resource, as it is stored. */
interface Grant {
  readonly issuer: string;
  readonly accessToken: string;
  readonly refreshToken?: string | undefined;
  /** Milliseconds since 1970. */
  readonly expiresAt?: number | undefined;
  /** The scopes that were requested so far: a later step-up asks for the union. */
  readonly scopes: readonly string[];
  /** The address of the resource's metadata, as the server named it. A refresh looks there again. */
  readonly metadata?: string | undefined;
  readonly proofKey?: string | undefined;
  /**
   * The registration that the grant belongs to: a later sign-in at the same issuer may register again, and a refresh
   * token works only for its own client. Absent where no person signs in: the program has registered that client.
   */
  readonly client?: Registration | undefined;
}

/** A client's registration at one issuer, as it is stored. */
interface Registration {
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  readonly method?: string | undefined;
  readonly redirectUrl?: string | undefined;
}

/** The demand of a server, as its challenge words it. */
interface Demand {
  readonly status: 401 | 403;
  readonly params: Readonly<Record<string, string>>;
  readonly wantsProof: boolean;
}

/** The way to a token that satisfies a demand. */
interface Plan {
  readonly server: AuthorizationServer;
  /** The value for `resource` (RFC 8707); undefined for a server that need not know it. */
  readonly target: string | undefined;
  readonly scopes: readonly string[];
  readonly metadata: string | undefined;
  /** The token is bound to a key (DPoP). */
  readonly proof: boolean;
}

/** A sign-in that has begun, as it is stored until the browser of the person is redirected back. */
interface PendingSignIn extends Plan {
  readonly registration: Registration;
  readonly redirectUrl: string;
  readonly state: string;
  readonly verifier: string;
  readonly url: string;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** A redirect that belongs to no sign-in: it has expired, or was used already. */
export class SignInOver extends Error {
  override readonly name = 'SignInOver';

  constructor() {
    super('this sign-in is over: it has expired, or its page was used already');
  }
}

const SIGN_IN_MS = 300_000;
const REVOKE_MS = 15_000;
/** Tokens are refreshed this many milliseconds before they expire. */
const EARLY_MS = 30_000;
/** Authorizations in a row that the server answers with another challenge. */
const MAX_IN_A_ROW = 3;
/** Milliseconds after a failed refresh in which a token that is still valid is used as it is. */
const REFRESH_AGAIN_MS = 5_000;
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

const address = option.expected('an address such as "https://login.example.com"', (value) =>
  URL.canParse(typeof value === 'string' ? value : ''),
);

const ROWS: option.Rows<OAuthOptions> = {
  ...option.each(['clientId', 'clientName'], option.filled),
  clientSecret: option.secret,
  privateKey: option.privateKey,
  algorithm: option.oneOf('ES256', 'RS256', 'PS256', 'EdDSA'),
  ...option.each(['issuer', 'redirectUrl'], address),
  scopes: option.strings,
  grant: option.oneOf('authorization_code', 'client_credentials'),
  ...option.each(['assertion', 'authorize', 'show'], option.functional),
  exchange: option.group('{ tokenEndpoint, clientId, idToken }', {
    tokenEndpoint: option.needed(address),
    clientId: option.needed(option.filled),
    idToken: option.needed(option.functional),
  }),
  ...option.each(['openBrowser', 'interactive'], option.flag),
  signInMs: option.duration,
  dpop: option.expected('"auto", true or false', (value) => value === 'auto' || typeof value === 'boolean'),
  tokens: option.expected(
    'a store of tokens, such as fileTokens(path)',
    (value) => isObject(value) && ['get', 'replace', 'exclusive'].every((name) => option.isFunction(value[name])),
  ),
  clock: option.clock,
};

/** The rows of those of the options that a mount or an API has, too. */
export function oauthRows<Name extends keyof OAuthOptions>(names: readonly Name[]): Pick<typeof ROWS, Name>;
export function oauthRows(names: readonly (keyof OAuthOptions)[]): object {
  return Object.fromEntries(names.map((name) => [name, ROWS[name]]));
}

/**
 * Signs in where a server demands it. Pass it as `auth` to `connect`; several clients may share it.
 *
 * @throws {TypeError | RangeError} for an unknown or invalid option
 * @example
 * const client = await connect({ url: 'https://mcp.example.com/mcp', auth: oauth() });
 * @example
 * const auth = oauth({ grant: 'client_credentials', clientId: 'nightly', clientSecret: process.env.SECRET });
 */
export function oauth(options: OAuthOptions = {}): Authorization {
  option.check('oauth: ', options, ROWS);
  return grantsOf(options);
}

/** The same, for an authorization server that may be known, and options that were checked. */
export function grantsOf(options: GrantOptions): Authorization {
  const shared: GrantOptions = { ...options, tokens: options.tokens ?? memoryTokens() };
  const resources = new Map<string, ResourceGrant>();
  const of = (url: URL): ResourceGrant => {
    const key = `${url.origin}${url.pathname}`;
    const grant = resources.get(key) ?? new ResourceGrant(url, shared);
    resources.set(key, grant);
    return grant;
  };
  return {
    headers: (method, url, resource = url) => of(resource).headers(method, url),
    authorize: (challenge, signal) => of(challenge.resource).authorize(challenge, signal),
    observe: (url, headers, status, resource = url) => of(resource).observe(url, headers, status),
  };
}

/** The end of a grant. */
export interface SignedOut {
  /** False if there was no grant. */
  readonly signedIn: boolean;
  /** True if the authorization server has revoked the grant; false if it offers no revocation; else the reason why not. */
  readonly revoked: boolean | string;
}

/**
 * Removes the stored grant of a server, and revokes it at its authorization server (RFC 7009). The grant is removed even
 * if it cannot be revoked.
 *
 * @param options as they were for the sign-in, with its `tokens`
 */
export function signOut(server: string | URL, options: OAuthOptions): Promise<SignedOut> {
  return new ResourceGrant(new URL(server), options).end();
}

/**
 * The grant of one person, or of the program, at one server. The sign-in of a person is two steps, and the program may be
 * restarted between them: all that the second step needs is in the store of tokens.
 */
export class ResourceGrant implements Authorization {
  readonly #server: URL;
  readonly #key: string;
  readonly #options: GrantOptions;
  readonly #clock: Clock;
  readonly #tokens: TokenStore;
  readonly #request: GuardedFetch;
  #loading: Promise<void> | undefined;
  #loaded = false;
  #stored: string | undefined;
  #grant: Grant | undefined;
  /** The token of the newest request. */
  #sent: string | undefined;
  #proofKey: ProofKey | undefined;
  #bearer: Readonly<Record<string, string>> | undefined;
  #nonce: string | undefined;
  #usedNonce: string | undefined;
  #renewing: Promise<void> | undefined;
  /** The time of the clock before which no refresh is tried for a token that is still valid. */
  #renewAfter = 0;
  /** Authorizations since the last response that was no challenge. */
  #inARow = 0;

  /**
   * @param options as for {@link oauth}; those that open a browser have no effect on {@link begin}
   * @param key names the grant in the store of tokens: the resource, and the person if there are several
   */
  constructor(server: URL, options: GrantOptions, key = `${server.origin}${server.pathname}`) {
    this.#server = server;
    this.#key = key;
    this.#options = options;
    const { clock = systemClock, tokens = memoryTokens(), issuer } = options;
    this.#clock = clock;
    this.#tokens = tokens;
    const named = issuer !== undefined && URL.canParse(issuer) ? [new URL(issuer)] : [];
    this.#request = guardedFetch({ clock, trusted: [server, ...named] });
  }

  headers(
    method: string,
    url: URL,
  ): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>> | undefined {
    // A token belongs to the origin of its resource, and is never sent to another one.
    if (url.origin !== this.#server.origin) return undefined;
    if (!this.#loaded) return this.#load().then(() => this.headers(method, url) ?? {});
    const grant = this.#grant;
    if (!grant) return undefined;
    if (grant.refreshToken !== undefined && this.#expiresSoon(grant))
      return this.#renewInTime().then(() => this.#headersOf(method, url));
    return this.#headersOf(method, url);
  }

  observe(_: URL, headers: Readonly<Record<string, string | readonly string[] | undefined>>, status?: number): void {
    const nonce = headers['dpop-nonce'];
    if (typeof nonce === 'string') this.#nonce = nonce;
    // Some servers send a 401 without a challenge.
    if (headers['www-authenticate'] === undefined && status !== 401) this.#inARow = 0;
  }

  async authorize(challenge: Challenge, signal: AbortSignal): Promise<void> {
    const demand = readDemand(challenge);
    const refused = await this.#rejected(demand);
    if (refused === false) return;
    await this.#tokens.exclusive(this.#key, async () => {
      if (await this.#replaced(demand, refused)) return;
      // A refreshed token that the server rejects counts like one of a sign-in: else the two would go on forever.
      this.#inARow += 1;
      if (this.#inARow > MAX_IN_A_ROW)
        throw new Error(
          `the server rejected ${MAX_IN_A_ROW} new tokens in a row. It may demand rights that the authorization server does not grant`,
        );
      const { status, params } = demand;
      if (status === 401 && this.#grant && (await this.#refresh(this.#grant, params.resource_metadata))) return;
      await this.#signIn(demand, signal);
    });
  }

  /**
   * Obtains a token without a person: the one that another process has obtained, or a refreshed one.
   *
   * @returns false if a person must sign in
   * @throws {Error} if the authorization server fails, or the server has rejected too many new tokens
   */
  async renew(challenge: Challenge): Promise<boolean> {
    const demand = readDemand(challenge);
    const refused = await this.#rejected(demand);
    if (refused === false) return true;
    return this.#tokens.exclusive(this.#key, async () => {
      if (await this.#replaced(demand, refused)) return true;
      const { status, params } = demand;
      if (status !== 401 || this.#grant?.refreshToken === undefined || this.#inARow >= MAX_IN_A_ROW) return false;
      this.#inARow += 1;
      return this.#refresh(this.#grant, params.resource_metadata);
    });
  }

  /**
   * Begins a sign-in, or finds the one that has begun.
   *
   * @param makeState makes the value with which the authorization server redirects the browser
   * @returns the address that the person must open
   * @throws {Error}
   */
  async begin(challenge: Challenge, redirectUrl: string, makeState: () => string, signal: AbortSignal): Promise<URL> {
    const begun = `sign-in ${this.#key}`;
    const demand = readDemand(challenge);
    const { status, params } = demand;
    const text = await this.#tokens.get(begun);
    const known = readStored(text, isPending);
    const wanted = words(params.scope) ?? [];
    if (
      known &&
      known.redirectUrl === redirectUrl &&
      known.until > this.#clock.date() &&
      (status === 401 || wanted.every((scope) => known.scopes.includes(scope)))
    )
      return new URL(known.url);
    try {
      const pending = await this.#beginCode(await this.#plan(demand, signal), redirectUrl, makeState(), signal);
      if (await this.#tokens.replace(begun, text, JSON.stringify(pending))) return new URL(pending.url);
    } catch (error) {
      throw new Error(explained(error));
    }
    // Another process has begun a sign-in at the same time: both show the same page.
    return this.begin(challenge, redirectUrl, makeState, signal);
  }

  /**
   * Ends a sign-in with the address that the browser was redirected to. An address can be used once.
   *
   * @throws {SignInOver} if no sign-in waits for this address
   * @throws {Error} if the person or the authorization server refused
   */
  async finish(redirected: URL, signal: AbortSignal): Promise<void> {
    const begun = `sign-in ${this.#key}`;
    const text = await this.#tokens.get(begun);
    const pending = readStored(text, isPending);
    if (pending?.state !== redirected.searchParams.get('state')) throw new SignInOver();
    // Only one request may use the code.
    if (!(await this.#tokens.replace(begun, text, undefined)) || pending.until <= this.#clock.date())
      throw new SignInOver();
    await this.#tokens.exclusive(this.#key, async () => {
      await this.#read();
      try {
        await this.#finishCode(pending, redirected, signal);
      } catch (error) {
        throw await this.#signInError(error, pending.server);
      }
      this.#inARow = 0;
    });
  }

  /** The milliseconds since 1970 until which a sign-in waits for its redirect; undefined if none does. */
  async waitsUntil(): Promise<number | undefined> {
    return readStored(await this.#tokens.get(`sign-in ${this.#key}`), isPending)?.until;
  }

  /** @returns the token that the server has rejected; false if it only wants its nonce in the proof */
  async #rejected({ params }: Demand): Promise<string | undefined | false> {
    await this.#load();
    // `observe` has read the nonce (RFC 9449 section 9).
    if (params.error === 'use_dpop_nonce' && this.#proofKey && this.#nonce !== this.#usedNonce) return false;
    return this.#sent;
  }

  /** True if there is a token that was not sent yet: of another process, or of a sign-in that has just ended. */
  async #replaced({ status }: Demand, refused: string | undefined): Promise<boolean> {
    await this.#read();
    return status === 401 && this.#grant !== undefined && this.#grant.accessToken !== refused;
  }

  /** Removes the grant and revokes it. */
  end(): Promise<SignedOut> {
    return this.#tokens.exclusive(this.#key, async () => {
      await this.#read();
      const grant = this.#grant;
      const removed = this.#stored === undefined || (await this.#tokens.replace(this.#key, this.#stored, undefined));
      if (!removed) throw new Error('another process has just replaced the token. Try again');
      if (!grant) return { signedIn: false, revoked: false };
      const revoked = await this.#revoke(grant).catch((error: unknown) => explained(error));
      return { signedIn: true, revoked };
    });
  }

  /** Revokes the refresh token, and with it the access token; else the access token (RFC 7009 section 2.1). */
  async #revoke(grant: Grant): Promise<boolean> {
    const oauth4webapi = await import('oauth4webapi');
    const signal = AbortSignal.timeout(REVOKE_MS);
    const server = await findIssuer(this.#request, grant.issuer, { signal, slash: 'optional' });
    if (server.revocation_endpoint === undefined) return false;
    this.#checkEndpoints(server);
    const registration = grant.client ?? (await this.#registrationFor(server));
    if (!registration) return false;
    const auth = await this.#clientAuth(server, registration);
    const [token, hint] =
      grant.refreshToken === undefined ? [grant.accessToken, 'access_token'] : [grant.refreshToken, 'refresh_token'];
    const response = await oauth4webapi.revocationRequest(server, clientOf(registration), auth, token, {
      additionalParameters: { token_type_hint: hint },
      ...this.#http(oauth4webapi, signal),
    });
    await oauth4webapi.processRevocationResponse(response);
    return true;
  }

  // Headers

  async #headersOf(method: string, url: URL): Promise<Readonly<Record<string, string>>> {
    const grant = this.#grant;
    if (!grant) return {};
    this.#sent = grant.accessToken;
    const key = this.#proofKey;
    if (!key) {
      this.#bearer ??= { authorization: `Bearer ${grant.accessToken}` };
      return this.#bearer;
    }
    this.#usedNonce = this.#nonce;
    const dpop = await proofOf(
      key,
      { method, url, token: grant.accessToken, nonce: this.#nonce },
      Math.floor(this.#clock.date() / 1_000),
    );
    return { authorization: `DPoP ${grant.accessToken}`, dpop };
  }

  #expiresSoon({ expiresAt }: Grant): boolean {
    return expiresAt !== undefined && expiresAt - EARLY_MS <= this.#clock.date();
  }

  // Signing in

  async #signIn(demand: Demand, signal: AbortSignal): Promise<void> {
    const { grant, assertion, exchange } = this.#options;
    const plan = await this.#plan(demand, signal);
    if (!exchange && !assertion && grant !== 'client_credentials') return this.#signInPerson(plan, signal);
    const { server, target, scopes, metadata } = plan;
    const key = await this.#keyFor(plan);
    const common = { ...resourceParameter(target), ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }) };
    const asserted = async () => ({ ...common, assertion: (await assertion?.call(this.#options)) ?? '' });
    const registration = await this.#ownClient(server);
    const response = exchange
      ? await this.#exchange(server, registration, common, exchange, key, signal)
      : assertion
        ? await this.#token(server, registration, JWT_BEARER, asserted, key, signal)
        : await this.#token(server, registration, 'client_credentials', () => common, key, signal);
    await this.#accept({ issuer: server.issuer, scopes, metadata }, response, key);
  }

  /** Finds the authorization server and the scopes for a token. @throws {Error} */
  async #plan({ status, params, wantsProof }: Demand, signal: AbortSignal): Promise<Plan> {
    const { scopes: wanted = [], dpop = 'auto', authorizationServer } = this.#options;
    const known = await authorizationServer?.(this.#request, signal);
    const resource = known
      ? undefined
      : await findResource(this.#request, this.#server, params.resource_metadata, signal);
    const named = resource?.issuers.find((issuer) => issuer === this.#options.issuer) ?? resource?.issuers[0];
    const server =
      known ??
      (resource === undefined || named === undefined
        ? await originIssuer(this.#request, this.#server, signal)
        : await findIssuer(this.#request, named, { signal, slash: 'optional' }));
    this.#checkEndpoints(server);
    const before = this.#grant;
    // The scope of the challenge, else all that the resource supports, else none (2026-07-28 authorization, "Scope Selection Strategy").
    const demanded = words(params.scope) ?? (before && status === 403 ? [] : (resource?.scopes ?? []));
    const previous = before && before.issuer === server.issuer ? before.scopes : [];
    if (status === 403 && before && demanded.length > 0 && demanded.every((scope) => previous.includes(scope)))
      throw new Error(
        `the server demands the scope "${demanded.join(' ')}", which was requested before and not granted`,
      );
    return {
      server,
      target: known ? undefined : (resource?.resource ?? canonical(this.#server)),
      scopes: [...new Set([...previous, ...demanded, ...wanted])],
      metadata: params.resource_metadata,
      proof: dpop === true || (dpop === 'auto' && (wantsProof || resource?.dpopRequired === true)),
    };
  }

  async #keyFor({ proof }: Pick<Plan, 'proof'>): Promise<ProofKey | undefined> {
    return proof ? (this.#proofKey ?? (await makeProofKey())) : undefined;
  }

  /** Stores the token of a sign-in. @throws {Error} for a bearer token where a bound one is required */
  async #accept(
    grant: Pick<Grant, 'issuer' | 'scopes' | 'client' | 'metadata'>,
    response: TokenEndpointResponse,
    key: ProofKey | undefined,
  ): Promise<void> {
    if (this.#options.dpop === true && response.token_type.toLowerCase() !== 'dpop')
      throw new Error(`${grant.issuer}: expected a token that is bound to a key (DPoP), got a bearer token`);
    await this.#keep(grant, response, key);
  }

  /** Every address of metadata is as foreign as the metadata itself. */
  #checkEndpoints(server: AuthorizationServer): void {
    const { token_endpoint: token, authorization_endpoint: authorization, revocation_endpoint: revocation } = server;
    const local = isLoopback(this.#server.hostname);
    for (const address of [token, authorization, revocation]) {
      if (address === undefined) continue;
      const url = new URL(address);
      if (url.protocol === 'https:' || (url.protocol === 'http:' && local && isLoopback(url.hostname))) continue;
      throw new Error(`${address}: expected an https address. Plain http is allowed on this machine only`);
    }
  }

  /** Lets a person sign in at once: in the browser of this machine, or as `authorize` does it. */
  async #signInPerson(plan: Plan, signal: AbortSignal): Promise<void> {
    if (this.#options.interactive === false)
      throw new Error('the server demands a sign-in, and no person is there to sign in (the option is `interactive`)');
    this.#checkCodeFlow(plan.server);
    const signIn = await this.#openSignIn();
    try {
      const pending = await this.#beginCode(plan, signIn.redirectUrl, randomBytes(24).toString('base64url'), signal);
      const redirected = await signIn.authorize(new URL(pending.url), pending.state, signal);
      await this.#finishCode(pending, redirected, signal);
    } catch (error) {
      throw await this.#signInError(error, plan.server);
    } finally {
      signIn.close();
    }
  }

  async #signInError(error: unknown, server: AuthorizationServer): Promise<Error> {
    // The authorization server has forgotten the client. If its page says so to the person only, nothing comes back.
    if (errorCode(error) === 'invalid_client' || error instanceof NoSignIn)
      await this.#forgetRegistration(server.issuer);
    return new Error(explained(error));
  }

  /** @returns the address of the authorization endpoint for this sign-in. @throws {Error} */
  #checkCodeFlow(server: AuthorizationServer): string {
    if (server.authorization_endpoint === undefined) throw new Error(`${server.issuer} has no authorization endpoint`);
    if (server.code_challenge_methods_supported?.includes('S256') !== true)
      throw new Error(`${server.issuer} does not support PKCE with S256, without which a code could be stolen`);
    return server.authorization_endpoint;
  }

  /** Registers the client if needed, and makes the address at which a person signs in. */
  async #beginCode(plan: Plan, redirectUrl: string, state: string, signal: AbortSignal): Promise<PendingSignIn> {
    const { server, target, scopes } = plan;
    const endpoint = this.#checkCodeFlow(server);
    const oauth4webapi = await import('oauth4webapi');
    const registration = await this.#register(server, redirectUrl, signal);
    const verifier = oauth4webapi.generateRandomCodeVerifier();
    const url = new URL(endpoint);
    const offline = server.scopes_supported?.includes('offline_access') === true;
    const scope = [...new Set([...scopes, ...(offline ? ['offline_access'] : [])])].join(' ');
    for (const [name, value] of Object.entries({
      response_type: 'code',
      client_id: registration.clientId,
      redirect_uri: redirectUrl,
      code_challenge: await oauth4webapi.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      ...resourceParameter(target),
      ...(scope === '' ? {} : { scope }),
      // OpenID Connect grants offline access only with consent (OIDC Core section 11).
      ...(offline ? { prompt: 'consent' } : {}),
    }))
      url.searchParams.set(name, value);
    const until = this.#clock.date() + (this.#options.signInMs ?? SIGN_IN_MS);
    return { ...plan, registration, redirectUrl, state, verifier, url: url.href, until };
  }

  /** Exchanges the code of a redirect for a token, and stores that. */
  async #finishCode(pending: PendingSignIn, redirected: URL, signal: AbortSignal): Promise<void> {
    const oauth4webapi = await import('oauth4webapi');
    const { server, target, registration, redirectUrl, state, verifier, scopes, metadata } = pending;
    const client = clientOf(registration);
    const key = await this.#keyFor(pending);
    // Compares `iss` as text, before anything else of the response is believed (RFC 9207 section 2.4).
    const callback = oauth4webapi.validateAuthResponse(server, client, redirected, state);
    const auth = await this.#clientAuth(server, registration);
    const response = await this.#proving(client, key, async (handle) =>
      oauth4webapi.processAuthorizationCodeResponse(
        server,
        client,
        await oauth4webapi.authorizationCodeGrantRequest(server, client, auth, callback, redirectUrl, verifier, {
          additionalParameters: resourceParameter(target),
          ...this.#http(oauth4webapi, signal, handle),
        }),
      ),
    );
    await this.#accept({ issuer: server.issuer, scopes, client: registration, metadata }, response, key);
  }

  /** Repeats a token request with the nonce that the authorization server wants (RFC 9449 section 8). */
  async #proving(
    client: OAuthClient,
    key: ProofKey | undefined,
    send: (handle: DPoPHandle | undefined) => Promise<TokenEndpointResponse>,
  ): Promise<TokenEndpointResponse> {
    if (!key) return send(undefined);
    const oauth4webapi = await import('oauth4webapi');
    const handle = oauth4webapi.DPoP(client, key.pair);
    try {
      return await send(handle);
    } catch (error) {
      if (!oauth4webapi.isDPoPNonceError(error)) throw error;
      return send(handle);
    }
  }

  async #token(
    server: AuthorizationServer,
    registration: Registration,
    grantType: string,
    parameters: () => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>,
    key: ProofKey | undefined,
    signal: AbortSignal,
  ): Promise<TokenEndpointResponse> {
    const oauth4webapi = await import('oauth4webapi');
    const client = clientOf(registration);
    const auth = await this.#clientAuth(server, registration);
    const given = await parameters();
    try {
      return await this.#proving(client, key, async (handle) => {
        const response = await oauth4webapi.genericTokenEndpointRequest(
          server,
          client,
          auth,
          grantType,
          { ...given },
          this.#http(oauth4webapi, signal, handle),
        );
        return oauth4webapi.processGenericTokenEndpointResponse(server, client, response);
      });
    } catch (error) {
      throw new Error(explained(error));
    }
  }

  /** The identity provider's token becomes an ID-JAG, and that an access token (SEP-990). */
  async #exchange(
    server: AuthorizationServer,
    registration: Registration,
    common: { readonly resource?: string; readonly scope?: string },
    { tokenEndpoint, clientId, idToken }: NonNullable<OAuthOptions['exchange']>,
    key: ProofKey | undefined,
    signal: AbortSignal,
  ): Promise<TokenEndpointResponse> {
    const body = new URLSearchParams({
      grant_type: TOKEN_EXCHANGE,
      requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
      audience: server.issuer,
      ...resourceParameter(common.resource),
      subject_token: await idToken(),
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      client_id: clientId,
      ...(common.scope === undefined ? {} : { scope: common.scope }),
    });
    // The program named the identity provider, so its address needs no guard but TLS.
    const toProvider = guardedFetch({ clock: this.#clock, trusted: [new URL(tokenEndpoint)] });
    const response = await toProvider(tokenEndpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body,
      signal,
    });
    const answer: unknown = await response.json().catch(() => undefined);
    const assertion = isObject(answer) ? answer.access_token : undefined;
    if (response.status !== 200 || typeof assertion !== 'string')
      throw new Error(
        `the identity provider rejected the token exchange: ${errorIn(answer) ?? `HTTP ${response.status}`}`,
      );
    return this.#token(server, registration, JWT_BEARER, () => ({ ...common, assertion }), key, signal);
  }

  // The client's identity

  /**
   * The client that the program itself has registered. It belongs to one issuer: that of the options, else the first one met,
   * which the store of tokens remembers.
   */
  async #ownClient({ issuer }: AuthorizationServer): Promise<Registration> {
    const { clientId, clientSecret, issuer: named } = this.#options;
    if (clientId === undefined) throw new Error('oauth: clientId: expected the id of a registered client, got nothing');
    const own = named ?? (await this.#firstIssuer(clientId, issuer));
    if (!isSameIssuer(own, issuer))
      throw new Error(
        `the server's authorization server is ${issuer}, and the client is registered at ${own}. Its credentials are not sent there. If it is registered at both, use an oauth() for each, with the option issuer`,
      );
    return { clientId, clientSecret };
  }

  async #firstIssuer(clientId: string, issuer: string): Promise<string> {
    const key = `issuer of ${clientId}`;
    await this.#tokens.replace(key, undefined, issuer);
    return (await this.#tokens.get(key)) ?? issuer;
  }

  /** The client of the options: registered by hand, or described by a metadata document where the server supports them. */
  async #givenClient(server: AuthorizationServer): Promise<Registration | undefined> {
    const { clientId } = this.#options;
    if (clientId === undefined) return undefined;
    if (!clientId.startsWith('https://')) return this.#ownClient(server);
    return server.client_id_metadata_document_supported === true ? { clientId, method: 'none' } : undefined;
  }

  /** By hand, else a metadata document, else dynamic registration (2026-07-28 client-registration). */
  async #register(server: AuthorizationServer, redirectUrl: string, signal: AbortSignal): Promise<Registration> {
    const { clientId, clientName = 'Troupe' } = this.#options;
    const given = await this.#givenClient(server);
    if (given) return given;
    const key = `client ${server.issuer}`;
    const text = await this.#tokens.get(key);
    const known = readStored(text, isRegistration);
    if (known?.redirectUrl === redirectUrl) return known;
    if (server.registration_endpoint === undefined)
      throw new Error(
        `${server.issuer} registers no clients by itself${clientId !== undefined ? ' and supports no metadata documents' : ''}. Register a client there, and pass its clientId`,
      );
    const response = await this.#request(server.registration_endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({
        client_name: clientName,
        redirect_uris: [redirectUrl],
        grant_types: grantTypes(server),
        response_types: ['code'],
        token_endpoint_auth_method: registrationMethod(server),
        application_type: isLoopback(new URL(redirectUrl).hostname) ? 'native' : 'web',
      }),
      signal,
    });
    const answer: unknown = await response.json().catch(() => undefined);
    if (response.status >= 300 || !isObject(answer) || typeof answer.client_id !== 'string')
      throw new Error(`${server.issuer} rejected the registration: ${errorIn(answer) ?? `HTTP ${response.status}`}`);
    const made: Registration = {
      clientId: answer.client_id,
      clientSecret: typeof answer.client_secret === 'string' ? answer.client_secret : undefined,
      method: typeof answer.token_endpoint_auth_method === 'string' ? answer.token_endpoint_auth_method : undefined,
      redirectUrl,
    };
    await this.#tokens.replace(key, text, JSON.stringify(made));
    return made;
  }

  /** The next sign-in registers the client again. @param used the registration that was in use, if it is known */
  async #forgetRegistration(issuer: string, used?: Registration): Promise<void> {
    const key = `client ${issuer}`;
    const text = await this.#tokens.get(key);
    if (text === undefined) return;
    // Another sign-in may have registered the client again.
    if (used === undefined || readStored(text, isRegistration)?.clientId === used.clientId)
      await this.#tokens.replace(key, text, undefined);
  }

  async #clientAuth(server: AuthorizationServer, { clientSecret, method }: Registration): Promise<ClientAuth> {
    const oauth4webapi = await import('oauth4webapi');
    const { privateKey, algorithm = 'ES256' } = this.#options;
    if (privateKey !== undefined) return oauth4webapi.PrivateKeyJwt(await importKey(privateKey, algorithm));
    if (clientSecret === undefined) return oauth4webapi.None();
    const supported = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const chosen =
      method !== undefined && method !== 'none' ? method : supported.find((each) => each.startsWith('client_secret_'));
    if (method === 'none') return oauth4webapi.None();
    return chosen === 'client_secret_post' ? oauth4webapi.ClientSecretPost(clientSecret) : basic(clientSecret);
  }

  async #openSignIn(): Promise<SignIn> {
    const { authorize, redirectUrl, openBrowser = true, signInMs = SIGN_IN_MS, show = showOnStderr } = this.#options;
    const { browserSignIn, untilSignedIn } = await import('./browser-sign-in.ts');
    if (authorize === undefined)
      return browserSignIn({ clock: this.#clock, show, open: openBrowser, timeoutMs: signInMs });
    if (redirectUrl === undefined)
      throw new Error('oauth: redirectUrl: expected the address that `authorize` waits for, got nothing');
    const clock = this.#clock;
    return {
      redirectUrl,
      authorize: (url, _state, signal) =>
        untilSignedIn(authorize.call(this.#options, url, signal), { clock, timeoutMs: signInMs }, signal),
      close: () => {},
    };
  }

  // Tokens

  /** Refreshes a token before it expires. While it is valid, a failed refresh is no failure of the call. */
  async #renewInTime(): Promise<void> {
    const expiresAt = this.#grant?.expiresAt ?? 0;
    const now = this.#clock.date();
    if (now < expiresAt && now < this.#renewAfter) return;
    try {
      await this.#renew();
    } catch (error) {
      this.#renewAfter = now + REFRESH_AGAIN_MS;
      if (now < expiresAt) return;
      throw new Error(`the token has expired, and cannot be refreshed now: ${explained(error)}`);
    }
  }

  #renew(): Promise<void> {
    const refused = this.#grant?.accessToken;
    this.#renewing ??= this.#tokens
      .exclusive(this.#key, async () => {
        await this.#read();
        const grant = this.#grant;
        // A token that cannot be refreshed is sent as it is: the server's challenge then starts a sign-in.
        if (grant && grant.accessToken === refused) await this.#refresh(grant, undefined);
      })
      .finally(() => {
        this.#renewing = undefined;
      });
    return this.#renewing;
  }

  /**
   * @param named the address of the resource's metadata, if the server has just named it
   * @returns false if the grant is over, or belongs to an authorization server that the resource does not name any more
   */
  async #refresh(grant: Grant, named: string | undefined): Promise<boolean> {
    const { refreshToken, metadata = named } = grant;
    if (refreshToken === undefined) return false;
    const oauth4webapi = await import('oauth4webapi');
    const signal = AbortSignal.timeout(SIGN_IN_MS);
    let used: Registration | undefined;
    try {
      const known = await this.#options.authorizationServer?.(this.#request, signal);
      const resource = known ? undefined : await findResource(this.#request, this.#server, named, signal, metadata);
      if (resource && resource.issuers.length > 0 && !resource.issuers.includes(grant.issuer)) return false;
      // A refresh token is sent to no other server than the one that issued it.
      const own = new URL(grant.issuer).origin === this.#server.origin && !resource?.issuers.length;
      const server =
        known ??
        (own
          ? await originIssuer(this.#request, this.#server, signal)
          : await findIssuer(this.#request, grant.issuer, { signal, slash: 'optional' }));
      if (server.issuer !== grant.issuer) return false;
      const registration = grant.client ?? (await this.#registrationFor(server));
      if (!registration) return false;
      used = registration;
      const client = clientOf(registration);
      const auth = await this.#clientAuth(server, registration);
      const refreshed = (target: string | undefined): Promise<TokenEndpointResponse> =>
        this.#proving(client, this.#proofKey, async (handle) =>
          oauth4webapi.processRefreshTokenResponse(
            server,
            client,
            await oauth4webapi.refreshTokenGrantRequest(server, client, auth, refreshToken, {
              additionalParameters: resourceParameter(target),
              ...this.#http(oauth4webapi, signal, handle),
            }),
          ),
        );
      const target = known ? undefined : (resource?.resource ?? canonical(this.#server));
      const response = await refreshed(target).catch((error: unknown) => {
        // Some servers take a resource with a code, and not with a refresh token, which belongs to one already.
        if (target === undefined || !isForeignParameter(error)) throw error;
        return refreshed(undefined);
      });
      const { issuer, scopes } = grant;
      await this.#keep({ issuer, scopes, client: grant.client, metadata, refreshToken }, response, this.#proofKey);
      return true;
    } catch (error) {
      // Only the authorization server can say that the grant is over; an outage says nothing.
      if (errorCode(error) === undefined || isOutage(error)) throw new Error(explained(error));
      // The token is used up. A sign-in follows when the server rejects the access token.
      if (errorCode(error) === 'invalid_grant')
        await this.#write({ ...grant, refreshToken: undefined }, this.#proofKey);
      // The page of the sign-in would only show an error, and never return.
      if (errorCode(error) === 'invalid_client') await this.#forgetRegistration(grant.issuer, used);
      return false;
    }
  }

  async #registrationFor(server: AuthorizationServer): Promise<Registration | undefined> {
    return (
      (await this.#givenClient(server)) ?? readStored(await this.#tokens.get(`client ${server.issuer}`), isRegistration)
    );
  }

  /** Stores a new token. A response without a refresh token leaves the one before valid (RFC 6749 section 6). */
  async #keep(
    grant: Pick<Grant, 'issuer' | 'scopes' | 'client' | 'metadata' | 'refreshToken'>,
    response: TokenEndpointResponse,
    key: ProofKey | undefined,
  ): Promise<void> {
    const { access_token: accessToken, refresh_token: refreshToken, expires_in: seconds, token_type: type } = response;
    const bound = type.toLowerCase() === 'dpop' ? key : undefined;
    const made: Grant = {
      ...grant,
      accessToken,
      refreshToken: refreshToken ?? grant.refreshToken,
      expiresAt: seconds === undefined ? undefined : this.#clock.date() + seconds * 1_000,
      proofKey: bound && (await writeProofKey(bound)),
    };
    await this.#write(made, bound);
  }

  async #write(grant: Grant, key: ProofKey | undefined): Promise<void> {
    const text = JSON.stringify(grant);
    // Under the lease no other process writes; a program that does so anyway keeps what it wrote.
    await this.#tokens.replace(this.#key, this.#stored, text);
    this.#adopt(grant, text, key);
  }

  #load(): Promise<void> {
    if (this.#loaded) return Promise.resolve();
    this.#loading ??= this.#read().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #read(): Promise<void> {
    const text = await this.#tokens.get(this.#key);
    this.#loaded = true;
    if (text === this.#stored) return;
    const grant = readStored(text, isGrant);
    this.#adopt(grant, text, grant?.proofKey === undefined ? undefined : await readProofKey(grant.proofKey));
  }

  #adopt(grant: Grant | undefined, text: string | undefined, key: ProofKey | undefined): void {
    this.#grant = grant;
    this.#stored = text;
    this.#proofKey = key;
    this.#bearer = undefined;
  }

  #http(
    oauth4webapi: typeof import('oauth4webapi'),
    signal: AbortSignal,
    handle?: DPoPHandle,
  ): Record<symbol, unknown> & { signal: AbortSignal; DPoP?: DPoPHandle } {
    return {
      signal,
      ...(handle ? { DPoP: handle } : {}),
      // The guard decides about http, for every address.
      [oauth4webapi.allowInsecureRequests]: true,
      [oauth4webapi.customFetch]: (
        url: string,
        init: { method: string; headers: Record<string, string>; body: unknown; signal?: AbortSignal },
      ) => this.#request(url, init).then(readableTokenAnswer),
    };
  }
}

function clientOf({ clientId }: Registration): OAuthClient {
  return { client_id: clientId };
}

function resourceParameter(target: string | undefined): { readonly resource?: string } {
  return target === undefined ? {} : { resource: target };
}

/** Credentials in a header (RFC 6749 section 2.3.1). */
function basic(secret: string): ClientAuth {
  return (_server, client, _body, headers) => {
    headers.set(
      'authorization',
      `Basic ${Buffer.from(`${encodeURIComponent(client.client_id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
    );
  };
}

/** The method to register with: a public client where the server allows it. */
function registrationMethod({ token_endpoint_auth_methods_supported: supported }: AuthorizationServer): string {
  if (supported === undefined || supported.includes('none')) return 'none';
  return (
    supported.find((method) => method === 'client_secret_basic' || method === 'client_secret_post') ??
    'client_secret_basic'
  );
}

/** The grants to register for. A server that lists its grants without refresh tokens could reject a client that wants one. */
function grantTypes({ grant_types_supported: supported }: AuthorizationServer): readonly string[] {
  const refreshes = supported === undefined || supported.includes('refresh_token');
  return ['authorization_code', ...(refreshes ? ['refresh_token'] : [])];
}

const ALGORITHMS = {
  ES256: { name: 'ECDSA', namedCurve: 'P-256' },
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  PS256: { name: 'RSA-PSS', hash: 'SHA-256' },
  EdDSA: { name: 'Ed25519' },
} as const;

function importKey(pem: string, algorithm: keyof typeof ALGORITHMS): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' });
  return webcrypto.subtle.importKey('pkcs8', der, ALGORITHMS[algorithm], false, ['sign']);
}

/** The server's address as a resource indicator: without fragment, and without the slash of an empty path (RFC 8707 section 2). */
function canonical(url: URL): string {
  return url.pathname === '/' ? url.origin : `${url.origin}${url.pathname}`;
}

function words(scope: string | undefined): readonly string[] | undefined {
  const list = scope?.split(' ').filter((word) => word !== '');
  return list && list.length > 0 ? list : undefined;
}

function readDemand({ status, header }: Challenge): Demand {
  const challenges = readChallenges(header ?? '').filter(({ scheme }) => scheme === 'bearer' || scheme === 'dpop');
  return {
    status,
    params: Object.assign({}, ...challenges.map((each) => each.params)),
    wantsProof: challenges.some(({ scheme }) => scheme === 'dpop'),
  };
}

/** A stored value. A damaged one counts as missing: the next sign-in replaces it. */
function readStored<T>(text: string | undefined, is: (value: unknown) => value is T): T | undefined {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return is(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isPending(value: unknown): value is PendingSignIn {
  return (
    isObject(value) &&
    isObject(value.server) &&
    typeof value.server.issuer === 'string' &&
    isRegistration(value.registration) &&
    Array.isArray(value.scopes) &&
    typeof value.until === 'number' &&
    (value.target === undefined || typeof value.target === 'string') &&
    [value.redirectUrl, value.state, value.verifier, value.url].every((each) => typeof each === 'string')
  );
}

function isGrant(value: unknown): value is Grant {
  return (
    isObject(value) &&
    (value.client === undefined || isRegistration(value.client)) &&
    typeof value.issuer === 'string' &&
    typeof value.accessToken === 'string' &&
    isHeaderValue(value.accessToken) &&
    Array.isArray(value.scopes)
  );
}

function isRegistration(value: unknown): value is Registration {
  return isObject(value) && typeof value.clientId === 'string';
}

/** The OAuth error code of a thrown error. */
function errorCode(error: unknown): string | undefined {
  const code = isObject(error) ? error.error : undefined;
  return typeof code === 'string' ? code : undefined;
}

function errorIn(answer: unknown): string | undefined {
  if (!isObject(answer) || typeof answer.error !== 'string') return undefined;
  const { error, error_description: description } = answer;
  return plain(typeof description === 'string' ? `${error} (${description.slice(0, 200)})` : error);
}

/** True if the authorization server may have rejected a parameter that it does not know (RFC 8707 section 2). */
function isForeignParameter(error: unknown): boolean {
  return ['invalid_target', 'invalid_request'].includes(errorCode(error) ?? '');
}

/** True if the authorization server fails, instead of rejecting the request. */
function isOutage(error: unknown): boolean {
  const status = isObject(error) && typeof error.status === 'number' ? error.status : 0;
  const code = errorCode(error);
  return status >= 500 || status === 429 || code === 'server_error' || code === 'temporarily_unavailable';
}

/**
 * An error of the library in words. The error itself is not passed on as a cause: it contains requests and responses, and
 * with them codes and tokens, which a program may log.
 */
function explained(error: unknown): string {
  const code = errorCode(error);
  if (code !== undefined) {
    const description = isObject(error) && typeof error.error_description === 'string' ? error.error_description : '';
    const detail = description === '' ? '' : ` (${description.slice(0, 200)})`;
    return plain(`the authorization server responded with ${code}${detail}`);
  }
  const status = isObject(error) && error.cause instanceof Response ? ` (HTTP ${error.cause.status})` : '';
  return plain(`${messageOf(error)}${status}`);
}

/** The text without control characters, which could change a terminal. */
function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it removes
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').slice(0, 1_000);
}

function showOnStderr(address: string): void {
  process.stderr.write(`Sign in at this address:\n${address}\n`);
}
