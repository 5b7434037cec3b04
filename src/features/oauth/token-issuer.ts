/** Verifies the tokens of one issuer: JWTs by its keys, opaque tokens by asking it. */
import { type CompactJWSHeaderParameters, compactVerify, errors, type JSONWebKeySet } from 'jose';
import type { AuthorizationServer } from 'oauth4webapi';
import { isObject, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import { ANY_AUDIENCE, judgeClaims, type TokenVerdict } from './access-token.ts';
import { INTROSPECTION_MS, Introspection } from './introspection.ts';
import { IssuerKeys, RETRY_MS } from './issuer-keys.ts';
import { IssuerUnavailable } from './issuer-unavailable.ts';
import { type GuardedFetch, guardedFetch } from './issuers/guarded-fetch.ts';
import { findIssuer, getJson } from './issuers/issuer-metadata.ts';
import type { ResolvedIssuer, ResolvedResourceServer } from './resource-server-options.ts';

/** Milliseconds for a document of the issuer. */
const FETCH_MS = 5_000;
/** Maximum number of keys of an issuer. */
const MAX_KEYS = 100;

export class TokenIssuer {
  readonly #settings: ResolvedResourceServer;
  readonly #issuer: ResolvedIssuer;
  readonly #http: GuardedFetch;
  readonly #keys: IssuerKeys;
  readonly #introspection: Introspection | undefined;
  #metadata: Promise<AuthorizationServer> | undefined;
  /** The issuer's userinfo endpoint, once its metadata was fetched. */
  #userinfo: string | undefined;

  constructor(issuer: ResolvedIssuer, settings: ResolvedResourceServer) {
    this.#issuer = issuer;
    this.#settings = settings;
    const { clock, jwksAgeMs: ageMs, jwksCooldownMs: cooldownMs } = settings;
    const { introspection } = issuer;
    const endpoint = introspection?.endpoint;
    const trusted: [URL, ...URL[]] = [new URL(issuer.issuer)];
    if (issuer.jwks) trusted.push(issuer.jwks);
    if (endpoint !== undefined) trusted.push(new URL(endpoint));
    this.#http = guardedFetch({ clock, trusted, timeoutMs: FETCH_MS });
    this.#keys = new IssuerKeys({ clock, ageMs, cooldownMs, load: () => this.#load() });
    const asking = guardedFetch({ clock, trusted, timeoutMs: INTROSPECTION_MS });
    this.#introspection =
      introspection && new Introspection(introspection, { issuer: issuer.issuer, http: asking, clock });
  }

  get name(): string {
    return this.#issuer.issuer;
  }

  /** True if the issuer can be asked about tokens that are no JWT. */
  get introspects(): boolean {
    return this.#introspection !== undefined;
  }

  /**
   * Verifies a JWT whose `iss` is this issuer. The cheap checks come first: a token that fails them costs no signature and
   * no fetch.
   *
   * @throws {IssuerUnavailable} if the keys cannot be fetched
   */
  async verify(token: string, header: CompactJWSHeaderParameters, claims: JsonObject): Promise<TokenVerdict> {
    const { algorithms } = this.#issuer;
    if (!algorithms.some((algorithm) => algorithm === header.alg))
      return { rejected: 'the signature algorithm of the token is not accepted' };
    // No extension is understood (RFC 7515 section 4.1.11).
    if (header.crit !== undefined) return { rejected: 'the token has critical extensions that are not supported' };
    const kind = kindOf(header.typ);
    const { type } = this.#settings;
    if (kind === undefined || (type === 'at+jwt' && kind !== 'at+jwt') || (type === 'JWT' && kind !== 'jwt'))
      return { rejected: 'the token has another type' };
    const context = { settings: this.#settings, issuer: this.#issuer, kind };
    const early = judgeClaims(claims, { ...context, alsoFor: ANY_AUDIENCE });
    if ('rejected' in early) return early;
    const [head = '', payload = '', signature = ''] = token.split('.');
    const keys = await this.#keys.find(header, { protected: head, payload, signature });
    if (!(await this.#signed(token, keys))) return { rejected: 'the signature of the token is not valid' };
    return judgeClaims(claims, { ...context, alsoFor: this.#userinfo });
  }

  async #signed(token: string, keys: readonly Parameters<typeof compactVerify>[1][]): Promise<boolean> {
    for (const key of keys)
      try {
        await compactVerify(token, key, { algorithms: [...this.#issuer.algorithms] });
        return true;
      } catch (error) {
        // A key that cannot be read verifies nothing: Web Crypto rejects it with a DOMException.
        if (!(error instanceof errors.JOSEError || error instanceof TypeError || error instanceof DOMException))
          throw error;
      }
    return false;
  }

  /**
   * Asks about an opaque token.
   *
   * @throws {IssuerUnavailable} if the issuer does not answer
   */
  async introspect(token: string): Promise<TokenVerdict> {
    const introspection = this.#introspection;
    if (!introspection) return { rejected: 'the token is not a JWT' };
    try {
      const claims = await introspection.ask(await this.#introspectionEndpoint(), token);
      if (!claims) return { rejected: 'the token is not active' };
      return judgeClaims(claims, {
        settings: this.#settings,
        issuer: this.#issuer,
        alsoFor: this.#userinfo,
        kind: 'introspected',
      });
    } catch (error) {
      throw new IssuerUnavailable(messageOf(error), RETRY_MS, { cause: error });
    }
  }

  async #introspectionEndpoint(): Promise<string> {
    const named = this.#issuer.introspection?.endpoint;
    if (named !== undefined) return named;
    const { introspection_endpoint: found } = await this.#discover();
    if (found === undefined)
      throw new Error(`${this.name}: expected introspection_endpoint in its metadata. Pass introspection.endpoint`);
    return found;
  }

  async #load(): Promise<JSONWebKeySet> {
    const address = this.#issuer.jwks?.href ?? (await this.#discover()).jwks_uri;
    if (address === undefined) throw new Error(`${this.name}: expected jwks_uri in its metadata. Pass jwks`);
    try {
      const set = await getJson(this.#http, address);
      if (!isKeySet(set)) throw new Error(`${address}: expected a set of keys (RFC 7517)`);
      return set;
    } catch (error) {
      // The issuer may have moved its keys.
      this.#metadata = undefined;
      throw error;
    }
  }

  #discover(): Promise<AuthorizationServer> {
    this.#metadata ??= findIssuer(this.#http, this.name, { slash: 'exact' }).then(
      (found) => {
        this.#userinfo = found.userinfo_endpoint;
        return found;
      },
      (error: unknown) => {
        this.#metadata = undefined;
        throw error;
      },
    );
    return this.#metadata;
  }
}

/** The kind of a token by its `typ` (RFC 9068 section 4, RFC 7515 section 4.1.9); undefined for any other type. */
function kindOf(typ: unknown): 'jwt' | 'at+jwt' | undefined {
  if (typ === undefined) return 'jwt';
  if (typeof typ !== 'string') return undefined;
  const name = typ.toLowerCase().replace(/^application\//, '');
  return name === 'jwt' || name === 'at+jwt' ? name : undefined;
}

function isKeySet(value: unknown): value is JSONWebKeySet {
  return isObject(value) && Array.isArray(value.keys) && value.keys.length <= MAX_KEYS && value.keys.every(isObject);
}
