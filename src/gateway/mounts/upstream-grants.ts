/** The grants of one upstream: one for each principal, or one for all calls, and the one that its catalogue is read with. */
import type { Authorization, Challenge } from '../../client/authorization.ts';
import {
  grantsOf,
  type KnownAuthorizationServer,
  type OAuthOptions,
  oauthRows,
  ResourceGrant,
} from '../../client/oauth/resource-grant.ts';
import { memoryTokens, type TokenStore } from '../../client/oauth/token-store.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { ANONYMOUS, LOCAL } from '../../core/protocol/principals.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';

const OF_OAUTH = [
  ...(['clientId', 'clientSecret', 'privateKey', 'algorithm', 'issuer', 'clientName', 'scopes', 'grant'] as const),
  ...(['dpop', 'signInMs', 'tokens', 'assertion'] as const),
] as const satisfies readonly (keyof OAuthOptions)[];

/** OAuth at an upstream. Without `grant`, `assertion` and `exchange`, each principal signs in. */
export interface UpstreamOAuth extends Pick<OAuthOptions, (typeof OF_OAUTH)[number]> {
  /** Enterprise-managed authorization (SEP-990): the token of the identity provider for a principal is exchanged. */
  readonly exchange?: {
    readonly tokenEndpoint: string;
    readonly clientId: string;
    idToken(principal: string): string | Promise<string>;
  };
  /**
   * The credentials that the catalogue is read with, which every caller of this server sees, within `scopes` and `allow`.
   * `operator` (default): the grant of `troupe login`, or of the only person where callers do not authenticate. `anyone`: also the
   * grant of the first person who signs in, for an upstream that lists the same for everyone. Or an authorization of its own.
   */
  readonly catalogue?: 'operator' | 'anyone' | UpstreamTokens | Authorization;
}

/** Tokens from a function of the program. */
interface UpstreamTokens {
  /**
   * Returns the token of a principal at this upstream, without "Bearer". Called for each request.
   *
   * @param principal of the call; undefined for the catalogue
   * @returns undefined to send none
   */
  token(principal: string | undefined): string | undefined | Promise<string | undefined>;
}

/**
 * The authorization at an upstream over HTTP. False: none. An {@link Authorization}, such as `oauth()` of `troupe/client`,
 * serves all calls with one grant.
 */
export type UpstreamAuth = UpstreamOAuth | UpstreamTokens | Authorization | false;

/** Only a person can obtain the token that the upstream demands. */
export class SignInNeeded extends Error {
  override readonly name = 'SignInNeeded';

  constructor() {
    super('a person must sign in');
  }
}

const ROWS: option.Rows<UpstreamOAuth> = {
  ...oauthRows([...OF_OAUTH, 'exchange']),
  catalogue: option.expected(
    '"operator", "anyone", { token } or an authorization',
    (catalogue) =>
      catalogue === 'operator' ||
      catalogue === 'anyone' ||
      (isObject(catalogue) && (option.isFunction(catalogue.token) || option.isFunction(catalogue.headers))),
  ),
};

/** Maximum number of principals whose grants are in memory. The store of tokens has all of them. */
const MAX_PRINCIPALS = 4_096;
/** Maximum number of grants that are tried for a catalogue in a row. */
const MAX_TRIED = 4;

interface UpstreamGrantsOptions {
  readonly mount: string;
  readonly url: URL;
  readonly auth: Exclude<UpstreamAuth, false>;
  readonly clock: Clock;
  /** Undefined: it is discovered at the upstream. */
  readonly authorizationServer?: KnownAuthorizationServer | undefined;
}

export class UpstreamGrants {
  readonly url: URL;
  /** Authorizes a connection that serves several principals: its handshake, its lists, its subscriptions. */
  readonly shared: Authorization;
  /** Makes the grant of a principal; undefined if one grant serves all. */
  readonly #make: ((principal: string) => Authorization) | undefined;
  /** The grants of principals, the most recently used last. */
  readonly #principals = new Map<string, Authorization>();
  readonly #people: Map<string, ResourceGrant> | undefined;
  /** The catalogue may be read with the grant of any person. */
  readonly #open: boolean = false;

  /** @throws {DefinitionError} for an invalid option */
  constructor({ mount, auth, clock, url, authorizationServer }: UpstreamGrantsOptions) {
    this.url = url;
    if (isAuthorization(auth)) {
      this.shared = auth;
      return;
    }
    if (isTokens(auth)) {
      this.#make = (principal) => programToken(auth, principal, url);
      this.shared = programToken(auth, undefined, url);
      return;
    }
    checkOAuth(mount, auth);
    const { exchange, catalogue = 'operator', tokens = memoryTokens(), ...rest } = auth;
    const options = { ...rest, clock, tokens, interactive: false, authorizationServer };
    if (!exchange && (auth.assertion || auth.grant === 'client_credentials')) {
      this.shared = grantsOf(options);
      return;
    }
    if (exchange)
      this.#make = (principal) => {
        const own = { ...options, exchange: { ...exchange, idToken: () => exchange.idToken(principal) } };
        return new ResourceGrant(url, own, this.#key(principal));
      };
    else {
      this.#people = new Map();
      this.#make = (principal) => {
        const grant = new ResourceGrant(url, options, this.#key(principal));
        this.#people?.set(principal, grant);
        return silent(grant);
      };
    }
    this.#open = catalogue === 'anyone';
    if (typeof catalogue === 'string') this.shared = new CatalogueGrant(tokens, this.#key(undefined), this);
    else this.shared = isAuthorization(catalogue) ? catalogue : programToken(catalogue, undefined, url);
  }

  /**
   * True if the catalogue, which every caller sees, may be read with the grant of this principal. The lists of a person are
   * private, unless all callers are one person, or the operator knows that the upstream lists the same for everyone.
   */
  mayRead(principal: string): boolean {
    return this.#open || principal === LOCAL || principal === ANONYMOUS;
  }

  /** The authorization of requests for a principal; undefined if the shared one serves them. */
  of(principal: string): Authorization | undefined {
    if (!this.#make) return undefined;
    const principals = this.#principals;
    const grant = principals.get(principal) ?? this.#make(principal);
    principals.delete(principal);
    principals.set(principal, grant);
    if (principals.size > MAX_PRINCIPALS) {
      const [oldest = ''] = principals.keys();
      principals.delete(oldest);
      this.#people?.delete(oldest);
    }
    return grant;
  }

  /** The grant of a principal who can sign in; undefined if no person signs in at this upstream. */
  person(principal: string): ResourceGrant | undefined {
    if (!this.#people) return undefined;
    this.of(principal);
    return this.#people.get(principal);
  }

  /** True if each principal has a grant of its own, so that no two may share a session. */
  get separate(): boolean {
    return this.#make !== undefined;
  }

  /** True if the calls of a principal have the credentials that the catalogue is read with: its connection serves both. */
  serveLists(principal: string): boolean {
    return !this.separate || (principal === LOCAL && this.shared instanceof CatalogueGrant);
  }

  /** True if each principal signs in. */
  get personal(): boolean {
    return this.#people !== undefined;
  }

  /** Reads the catalogue with the grant of this principal from now on, if that is permitted, and if there is no other that the upstream accepts. */
  offerForCatalogue(principal: string): Promise<void> {
    const grant = this.shared instanceof CatalogueGrant && this.mayRead(principal) ? this.shared : undefined;
    return grant?.offer(principal) ?? Promise.resolve();
  }

  /**
   * The name of a grant in the store of tokens. The person at this machine has the grants of `troupe login`; the mount of
   * several people reads its catalogue with that one, if it exists.
   */
  #key(principal: string | undefined): string {
    // The schemes of one API differ in their fragments.
    const resource = `${this.url.origin}${this.url.pathname}${this.url.hash}`;
    return principal === undefined || principal === LOCAL ? resource : `${resource} ${principal}`;
  }
}

/** The grant of a person who is not asked here: a refreshed token, or none. */
function silent(grant: ResourceGrant): Authorization {
  return {
    headers: (method, at) => grant.headers(method, at),
    observe: (at, headers, status) => grant.observe(at, headers, status),
    authorize: async (challenge) => {
      if (!(await grant.renew(challenge))) throw new SignInNeeded();
    },
  };
}

/** A token that the program supplies. */
function programToken(source: UpstreamTokens, principal: string | undefined, { origin }: URL): Authorization {
  let sent: string | undefined;
  const headersOf = (token: string | undefined): Readonly<Record<string, string>> | undefined => {
    sent = token;
    return token === undefined ? undefined : { authorization: `Bearer ${token}` };
  };
  return {
    headers(_, url) {
      if (url.origin !== origin) return undefined;
      const token = source.token(principal);
      return token instanceof Promise ? token.then((found) => headersOf(found) ?? {}) : headersOf(token);
    },
    async authorize() {
      const rejected = sent;
      const token = await source.token(principal);
      if (token === undefined || token === rejected)
        throw new Error('the upstream rejected the token of this caller (the option is auth.token)');
    },
  };
}

/** The grant that a catalogue is read with: the operator's, else that of the first person whose grant may be used. */
class CatalogueGrant implements Authorization {
  readonly #tokens: TokenStore;
  readonly #entry: string;
  readonly #people: UpstreamGrants;
  #current: Authorization | undefined;
  #principal: string | undefined;
  /** True if the upstream accepts no token of the current grant. */
  #refused = true;
  #loading: Promise<void> | undefined;

  constructor(tokens: TokenStore, key: string, people: UpstreamGrants) {
    this.#tokens = tokens;
    this.#entry = `catalogue ${key}`;
    this.#people = people;
  }

  headers(...request: Parameters<Authorization['headers']>): ReturnType<Authorization['headers']> {
    if (this.#current) return this.#current.headers(...request);
    this.#loading ??= this.#load();
    return this.#loading.then(async () => (await this.#current?.headers(...request)) ?? {});
  }

  observe(...response: Parameters<NonNullable<Authorization['observe']>>): void {
    this.#current?.observe?.(...response);
  }

  /** Tries the grants that exist. No person waits for a catalogue, so none is asked. */
  async authorize(challenge: Challenge, signal: AbortSignal): Promise<void> {
    await this.#load();
    const stored = await this.#reader();
    const candidates = [...new Set([this.#principal, LOCAL, stored])];
    for (const principal of candidates.slice(0, MAX_TRIED)) {
      const grant = principal === undefined ? undefined : this.#people.of(principal);
      if (principal === undefined || !grant) continue;
      try {
        await grant.authorize(challenge, signal);
        this.#use(principal);
        return;
      } catch (error) {
        if (!(error instanceof SignInNeeded)) throw error;
      }
    }
    this.#refused = true;
    throw new SignInNeeded();
  }

  async offer(principal: string): Promise<void> {
    if (!this.#refused) return;
    const before = await this.#tokens.get(this.#entry);
    await this.#tokens.replace(this.#entry, before, principal);
    this.#use(principal);
  }

  async #load(): Promise<void> {
    if (this.#current) return;
    const stored = await this.#reader();
    this.#use(stored ?? LOCAL);
    this.#refused = stored === undefined;
  }

  /** The stored person. The grant of one that an earlier process stored, with other options, may be used no more. */
  async #reader(): Promise<string | undefined> {
    const stored = await this.#tokens.get(this.#entry);
    return stored !== undefined && this.#people.mayRead(stored) ? stored : undefined;
  }

  #use(principal: string): void {
    this.#refused = false;
    this.#principal = principal;
    this.#current = this.#people.of(principal);
  }
}

function isAuthorization(auth: UpstreamAuth): auth is Authorization {
  return isObject(auth) && typeof auth.headers === 'function' && typeof auth.authorize === 'function';
}

function isTokens(auth: UpstreamAuth): auth is UpstreamTokens {
  return isObject(auth) && typeof auth.token === 'function';
}

function checkOAuth(mount: string, auth: unknown): asserts auth is UpstreamOAuth {
  const rows = option.group('false, { token }, OAuth options or an authorization', ROWS, '.');
  option.check(`server.mount("${mount}"): `, { auth }, { auth: rows }, DefinitionError);
}
