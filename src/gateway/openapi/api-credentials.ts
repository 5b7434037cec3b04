/** The credentials of requests to one API: chooses a security alternative, finds or asks for its credentials, and puts them into the request. */
import { ClientError } from '../../client/client-errors.ts';
import type { KnownAuthorizationServer } from '../../client/oauth/resource-grant.ts';
import type { Context } from '../../core/execution/context.ts';
import { ToolError } from '../../core/protocol/errors.ts';
import { digest } from '../../core/store/seal.ts';
import { isHeaderValue } from '../../features/oauth/issuers/header-text.ts';
import { findIssuer } from '../../features/oauth/issuers/issuer-metadata.ts';
import type { NeededKey } from '../mounts/key-page.ts';
import type { SignIns, UpstreamSignIn } from '../mounts/sign-ins.ts';
import {
  type ApiAuth,
  type ApiOAuth,
  type ApiPassword,
  isHeaderAuth,
  isOAuth,
  isPassword,
  isToken,
} from './api-auth.ts';
import type { ApiResponse } from './api-connection.ts';
import type { OAuthFlow, OperationRequest, SecurityRequirement, SecurityScheme } from './operation.ts';
import { BY_PROXY, unsupportedKind } from './security-schemes.ts';
import { SentSecrets } from './sent-secrets.ts';

/** The credentials of one request. */
export interface AppliedCredentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly secrets: SentSecrets;
  /** Names these credentials. It contains no secret. */
  readonly client: string;
}

/** A call that needs credentials. */
export interface CredentialCall {
  readonly ctx: Context;
  readonly request: OperationRequest;
  readonly schemes: Readonly<Record<string, SecurityScheme>>;
}

interface ApiCredentialsOptions {
  readonly mount: string;
  readonly auth: ApiAuth | undefined;
  readonly signIns: SignIns;
  /** Further secrets of each request. */
  readonly secrets: readonly string[];
}

/** Parts of credentials, as one scheme has them. */
interface Part {
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: readonly (readonly [string, string])[];
  readonly cookie?: string;
  readonly secrets: readonly string[];
}

/** The way in which a scheme gets its credential. */
type Source =
  | { readonly from: 'value'; readonly value: string | ApiPassword }
  | { readonly from: 'person'; readonly kind: NeededKey['kind'] }
  | { readonly from: 'oauth'; readonly options: ApiOAuth };

interface Sourced {
  readonly requirement: SecurityRequirement;
  readonly scheme: SecurityScheme;
  readonly source: Source;
}

/** Maximum number of keys that a person is asked for in one call after the first. */
const MAX_AGAIN = 2;

export class ApiCredentials {
  readonly #options: ApiCredentialsOptions;
  /** The grants of each OAuth scheme, by its name, base and endpoints. */
  readonly #grants = new Map<string, UpstreamSignIn>();

  constructor(options: ApiCredentialsOptions) {
    this.#options = options;
  }

  close(): void {
    for (const grants of this.#grants.values()) grants.close();
    this.#grants.clear();
  }

  /**
   * Makes a request with the credentials of the caller. It is repeated after a 401, if the caller signs in again or enters another
   * key.
   *
   * @param send makes the request
   * @throws {ToolError} for credentials that are missing; {@link ClientError} of a sign-in; what `send` throws
   */
  async run(
    call: CredentialCall,
    send: (credentials: AppliedCredentials) => Promise<ApiResponse>,
  ): Promise<ApiResponse> {
    const { ctx, request } = call;
    const chosen = await this.#choose(call);
    const oauth = chosen.find(({ source }) => source.from === 'oauth');
    const refused = new Map<string, string>();
    for (let again = 0; ; again += 1) {
      const parts: Part[] = [];
      const entered = new Map<string, string>();
      for (const each of chosen) {
        const { scheme, source } = each;
        if (source.from === 'oauth') continue;
        const name = each.requirement.scheme;
        let value = source.from === 'value' ? source.value : '';
        if (source.from === 'person') {
          value = await this.#options.signIns.key(ctx, this.#needed(call, name, source.kind), refused.get(name));
          entered.set(name, value);
        }
        parts.push(partOf(this.#options.mount, name, scheme, value));
      }
      const response = oauth
        ? await this.#authorized(call, oauth, parts, send)
        : await send(this.#applied(request, parts));
      if (response.status !== 401 || entered.size === 0 || again >= MAX_AGAIN) return response;
      for (const [name, value] of entered) refused.set(name, value);
    }
  }

  /** A sentence about the credentials of an operation, for the result of a 401 or 403. */
  describe({ request, schemes }: Omit<CredentialCall, 'ctx'>): string | undefined {
    const { auth, mount } = this.#options;
    if (isHeaderAuth(auth))
      return `The API rejects the token of the header "${auth.header}" (auth of the mount "${mount}"), or it has not the rights for this call.`;
    const names = request.security.map((all) =>
      all.map(({ scheme }) => labelOf(scheme, schemes[scheme])).join(' and '),
    );
    const needed = names.filter((each) => each !== '').join(', or ');
    if (needed === '') return undefined;
    return `This operation of ${mount} needs the credentials of ${needed}. What was sent, if anything, has not the rights for this call.`;
  }

  #applied({ base }: OperationRequest, parts: readonly Part[]): AppliedCredentials {
    const cookies = parts.flatMap(({ cookie }) => cookie ?? []);
    const secrets = parts.flatMap((part) => part.secrets);
    return {
      headers: {
        ...Object.assign({}, ...parts.map(({ headers }) => headers)),
        ...(cookies.length > 0 && { cookie: cookies.join('; ') }),
      },
      query: parts.flatMap(({ query }) => query ?? []),
      secrets: new SentSecrets([...secrets, ...this.#options.secrets]),
      client: `${new URL(base).origin} ${digest([...secrets].sort())}`,
    };
  }

  #needed({ request }: CredentialCall, scheme: string, kind: NeededKey['kind']): NeededKey {
    return { mount: this.#options.mount, scheme, kind, api: request.base };
  }

  /**
   * The first alternative whose schemes are all configured; else none if that is permitted; else the first whose schemes a person can
   * be asked for.
   *
   * @throws {ToolError} if there is none
   */
  async #choose(call: CredentialCall): Promise<readonly Sourced[]> {
    const { auth, mount } = this.#options;
    const { request, schemes } = call;
    if (isHeaderAuth(auth)) {
      const scheme = { type: 'apiKey', in: 'header', name: auth.header } as const;
      const requirement = { scheme: auth.header, scopes: [] };
      return [{ requirement, scheme, source: { from: 'value', value: auth.token } }];
    }
    const { security } = request;
    if (security.length === 0) return [];
    for (const alternative of security) {
      const found = await this.#sourced(call, alternative, false);
      if (found && found.length > 0) return found;
    }
    if (auth === false || security.some((alternative) => alternative.length === 0)) return [];
    for (const alternative of security) {
      const found = await this.#sourced(call, alternative, true);
      if (found) return found;
    }
    const names = security.map((all) => all.map(({ scheme }) => labelOf(scheme, schemes[scheme])).join(' and '));
    if (security.every((all) => all.some(({ scheme }) => unsupportedKind(schemes[scheme]) !== undefined)))
      throw new ToolError(
        `${mount}: this operation needs the credentials of ${names.join(', or ')}, which this gateway cannot make. Nothing was sent. The operator of this gateway must act. ${BY_PROXY}`,
      );
    throw new ToolError(
      `${mount}: this operation needs the credentials of ${names.join(', or ')}, which are not configured. Nothing was sent. The operator of this gateway must set \`auth\` of the mount`,
    );
  }

  async #sourced(
    call: CredentialCall,
    alternative: readonly SecurityRequirement[],
    ask: boolean,
  ): Promise<readonly Sourced[] | undefined> {
    const sourced: Sourced[] = [];
    for (const requirement of alternative) {
      const scheme = call.schemes[requirement.scheme];
      const source =
        scheme &&
        unsupportedKind(scheme) === undefined &&
        (await this.#source(call.ctx.principal, requirement, scheme, ask));
      if (!scheme || !source) return undefined;
      sourced.push({ requirement, scheme, source });
    }
    return sourced;
  }

  async #source(
    principal: string,
    { scheme: name, scopes }: SecurityRequirement,
    scheme: SecurityScheme,
    ask: boolean,
  ): Promise<Source | undefined> {
    const { auth } = this.#options;
    const kind = askedFor(scheme);
    const person: Source | undefined = kind && { from: 'person', kind };
    if (typeof auth === 'function') {
      const value = await auth(principal, { scheme: name, scopes });
      if (value !== undefined) return { from: 'value', value };
      return ask ? person : undefined;
    }
    const configured = auth && !isHeaderAuth(auth) && Object.hasOwn(auth, name) ? auth[name] : undefined;
    if (configured === undefined) return ask ? person : undefined;
    if (configured === 'ask') return person;
    if (isOAuth(configured)) return { from: 'oauth', options: configured };
    if (isToken(configured)) return { from: 'value', value: configured.token };
    return isPassword(configured) ? { from: 'value', value: configured } : undefined;
  }

  // OAuth

  /** Makes the request with a token of the caller, or of the program. */
  async #authorized(
    call: CredentialCall,
    { requirement, scheme, source }: Sourced,
    parts: readonly Part[],
    send: (credentials: AppliedCredentials) => Promise<ApiResponse>,
  ): Promise<ApiResponse> {
    const { ctx, request } = call;
    if (source.from !== 'oauth') throw new TypeError('expected the credentials of OAuth');
    const resource = new URL(`${request.base}#${encodeURIComponent(requirement.scheme)}`);
    const signIn = this.#signIn(resource, scheme, source.options);
    const { mount } = this.#options;
    // A resource names the scopes that it wants in its challenge, which an API has not.
    const wanted = `Bearer scope="${requirement.scopes.filter((scope) => /^[!#-[\]-~]+$/.test(scope)).join(' ')}"`;
    const demand = (status: 401 | 403, header: string): ClientError =>
      new ClientError(mount, {
        reason: status === 401 ? 'unauthorized' : 'forbidden',
        message: `the API demands a token for the scheme "${requirement.scheme}"`,
        carriedOut: 'no',
        challenge: { status, header, resource },
      });
    let last: ApiResponse | undefined;
    const attempt = async (authorization = signIn.grants.shared): Promise<ApiResponse> => {
      const url = new URL(request.base);
      const headers = await authorization.headers(request.method, url, resource);
      const token = headers?.authorization;
      if (headers === undefined || token === undefined) throw demand(401, wanted);
      const secrets = [token, token.replace(/^\w+ /, '')];
      const response = await send(this.#applied(request, [...parts, { headers, secrets }]));
      authorization.observe?.(url, Object.fromEntries(response.headers), response.status, resource);
      last = response;
      const header = response.headers.get('www-authenticate') ?? '';
      if (response.status === 401) throw demand(401, wanted);
      if (response.status === 403 && /\binsufficient_scope\b/.test(header)) throw demand(403, header);
      return response;
    };
    try {
      return await signIn.run(ctx, async (authorization) => {
        if (authorization) return attempt(authorization);
        try {
          return await attempt();
        } catch (error) {
          const challenge = error instanceof ClientError ? error.challenge : undefined;
          if (!challenge) throw error;
          await signIn.grants.shared.authorize(challenge, ctx.signal).catch((cause: unknown) => {
            throw new ToolError(
              `${mount}: the authorization server of the scheme "${requirement.scheme}" issued no token. Nothing was carried out. The operator of this gateway must act`,
              { cause },
            );
          });
          return attempt();
        }
      });
    } catch (error) {
      // The API rejects the newest token, too: its response says more.
      if (last && error instanceof ClientError && error.challenge) return last;
      throw error;
    }
  }

  #signIn(resource: URL, scheme: SecurityScheme, options: ApiOAuth): UpstreamSignIn {
    const { mount, signIns } = this.#options;
    const server = authorizationServerOf(mount, scheme, options);
    const key = `${resource.href} ${server.name}`;
    const known = this.#grants.get(key);
    if (known) return known;
    const { authorizationUrl: _authorization, tokenUrl: _token, clientAuth: _way, ...auth } = options;
    const opened = signIns.open(mount, resource, auth, server.find);
    this.#grants.set(key, opened);
    return opened;
  }
}

/** Finds the authorization server that a document names. @throws {ToolError} for a document that names none */
function authorizationServerOf(
  mount: string,
  scheme: SecurityScheme,
  { authorizationUrl, tokenUrl, clientAuth = 'client_secret_basic', issuer, grant }: ApiOAuth,
): { readonly name: string; readonly find: KnownAuthorizationServer } {
  if (scheme.type === 'openIdConnect') {
    const named = issuer ?? scheme.url.replace(/\/\.well-known\/openid-configuration\/?$/, '');
    return { name: named, find: (fetch, signal) => findIssuer(fetch, named, { signal, slash: 'optional' }) };
  }
  const flows = scheme.type === 'oauth2' ? scheme.flows : {};
  const flow: OAuthFlow | undefined =
    grant === 'client_credentials'
      ? flows.clientCredentials
      : (flows.authorizationCode ?? flows.implicit ?? flows.password ?? flows.clientCredentials);
  const token = tokenUrl ?? flow?.tokenUrl;
  const authorization = authorizationUrl ?? flow?.authorizationUrl;
  const missing =
    token === undefined ? 'tokenUrl' : grant === 'client_credentials' || authorization ? undefined : 'authorizationUrl';
  if (token === undefined || missing !== undefined)
    throw new ToolError(
      `${mount}: the document names no ${missing} for OAuth. Nothing was sent. The operator of this gateway must set it in \`auth\` of the mount`,
    );
  const server = {
    issuer: issuer ?? new URL(authorization ?? token).origin,
    token_endpoint: token,
    ...(authorization !== undefined && { authorization_endpoint: authorization }),
    // A server that does not know PKCE ignores it.
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: [clientAuth],
  };
  return { name: `${authorization} ${token} ${clientAuth}`, find: () => server };
}

/** The kind of credential that a person can enter; undefined for none. */
function askedFor(scheme: SecurityScheme): NeededKey['kind'] | undefined {
  if (scheme.type === 'apiKey') return 'key';
  if (scheme.type !== 'http') return undefined;
  return scheme.scheme === 'basic' ? 'password' : scheme.scheme === 'bearer' ? 'key' : undefined;
}

/** @example '"ApiKeyAuth" (header X-Api-Key)' */
function labelOf(name: string, scheme: SecurityScheme | undefined): string {
  const what =
    scheme === undefined
      ? 'unknown'
      : scheme.type === 'apiKey'
        ? `${scheme.in} ${scheme.name}`
        : scheme.type === 'http'
          ? scheme.scheme
          : (unsupportedKind(scheme) ?? scheme.type);
  return `"${name}" (${what})`;
}

/**
 * The part of a request that a credential is sent in.
 *
 * @param value a password as a text is `name:password`
 * @throws {ToolError} for a value that cannot be sent. The error does not contain it
 */
function partOf(mount: string, name: string, scheme: SecurityScheme, value: string | ApiPassword): Part {
  const isName = typeof value !== 'string';
  const plain = isName ? `${value.username}:${value.password}` : value;
  const password = plain.slice(plain.indexOf(':') + 1);
  if (scheme.type === 'http' && scheme.scheme === 'basic') {
    const encoded = Buffer.from(plain).toString('base64');
    return { headers: { authorization: `Basic ${encoded}` }, secrets: [encoded, plain, password] };
  }
  const text = (isName ? password : value).trim();
  if (!isHeaderValue(text))
    throw new ToolError(
      `${mount}: the credential of the scheme "${name}" has a character that no request can carry. Nothing was sent. The operator of this gateway must act`,
    );
  const secrets = [text];
  if (scheme.type !== 'apiKey') {
    const way = scheme.type === 'http' ? scheme.scheme : 'bearer';
    const bare = text.toLowerCase().startsWith(`${way} `) ? text.slice(way.length + 1) : text;
    return { headers: { authorization: `${way.charAt(0).toUpperCase()}${way.slice(1)} ${bare}` }, secrets: [bare] };
  }
  if (scheme.in === 'header') return { headers: { [scheme.name.toLowerCase()]: text }, secrets };
  if (scheme.in === 'query') return { query: [[scheme.name, text]], secrets };
  return { cookie: `${scheme.name}=${encodeURIComponent(text)}`, secrets };
}
