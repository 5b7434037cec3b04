/** A resource server and an authorization server at two origins, both of which a test can make misbehave. */
import { Buffer } from 'node:buffer';
import { createHash, webcrypto } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttp, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer } from 'troupe';

/** A request that arrived at one of the servers. */
export interface Arrived {
  readonly at: 'resource' | 'issuer';
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  readonly params: URLSearchParams;
  readonly body: string;
}

interface Issued {
  readonly scopes: readonly string[];
  readonly client: string;
  /** The key to which the token is bound (RFC 9449 section 6). */
  readonly key: string | undefined;
  readonly scheme: 'Bearer' | 'DPoP';
}

/** What a test changes. */
export interface Settings {
  /** The path of the issuer, such as `/tenant`. */
  issuerPath: string;
  /** Paths of metadata that exist; undefined: all. */
  places: readonly string[] | undefined;
  resourceMetadata: Record<string, unknown>;
  issuerMetadata: Record<string, unknown>;
  /** The header of a 401; a function of the default. */
  challenge: (usual: string) => string | undefined;
  /** The default names the address of the resource's metadata. */
  namesMetadata: boolean;
  expiresIn: number | undefined;
  refreshTokens: boolean;
  /** `gone`: connections are cut; `failing`: 503 with an error in JSON. */
  outage: 'gone' | 'failing' | undefined;
  /** Changes the redirect back to the client. */
  redirect: (back: URL) => void;
  /** Replaces the response of the token endpoint. */
  token: ((params: URLSearchParams) => { readonly status: number; readonly body: object } | undefined) | undefined;
  registration: Record<string, unknown>;
  /** The scope that the tool `admin` needs. */
  adminScope: string;
  /** Rejects every token. */
  rejects: boolean;
  proofs: boolean;
  issuerNonce: string | undefined;
  resourceNonce: string | undefined;
  /** Redirects requests for the MCP server. */
  redirectTo: string | undefined;
}

export class SignInFixture {
  readonly requests: Arrived[] = [];
  readonly settings: Settings = {
    issuerPath: '',
    places: undefined,
    resourceMetadata: {},
    issuerMetadata: {},
    challenge: (usual) => usual,
    namesMetadata: true,
    expiresIn: 3_600,
    refreshTokens: true,
    outage: undefined,
    redirect: () => {},
    token: undefined,
    registration: {},
    adminScope: 'admin',
    rejects: false,
    proofs: false,
    issuerNonce: undefined,
    resourceNonce: undefined,
    redirectTo: undefined,
  };
  readonly #access = new Map<string, Issued>();
  readonly #refresh = new Map<string, Issued>();
  readonly #codes = new Map<string, { client: string; scope: string; challenge: string }>();
  readonly #mcp = createServer({ name: 'guarded', version: '1.0.0', log() {} });
  #resource: Server | undefined;
  #issuer: Server | undefined;
  #serial = 0;
  /** Begins the tokens of this fixture. */
  readonly #prefix: string;

  constructor(prefix = '') {
    this.#prefix = prefix;
  }

  /** The address of the MCP server. */
  get url(): string {
    return `${originOf(this.#resource)}/mcp`;
  }
  get issuer(): string {
    return `${originOf(this.#issuer)}${this.settings.issuerPath}`;
  }
  /** Paths of requests to one server, in order. */
  paths(at: Arrived['at']): readonly string[] {
    return this.requests.filter((each) => each.at === at && each.path !== '/mcp').map(({ path }) => path);
  }
  /** Parameters of all token requests. */
  tokenRequests(): readonly Arrived[] {
    return this.requests.filter(({ path }) => path.endsWith('/token'));
  }
  /** No access token that was issued is accepted from now on. */
  revokeAccess(): void {
    this.#access.clear();
  }
  /** No refresh token that was issued is accepted from now on. */
  revokeRefresh(): void {
    this.#refresh.clear();
  }
  /** Every secret that the servers issued. */
  get secrets(): readonly string[] {
    return [...this.#access.keys(), ...this.#refresh.keys(), 'secret-of-the-client'];
  }

  async open(): Promise<this> {
    this.#mcp.tool('whoami', {}, () => 'ada');
    this.#mcp.tool('admin', {}, () => 'done');
    this.#resource = await listening((request, response) => this.#serveResource(request, response));
    this.#issuer = await listening((request, response) => this.#serveIssuer(request, response));
    return this;
  }

  async close(): Promise<void> {
    await this.#mcp.close();
    for (const server of [this.#resource, this.#issuer]) {
      server?.closeAllConnections();
      server?.close();
    }
  }

  /** The browser: one request, and the address in its redirect. */
  readonly authorize = (url: URL): Promise<URL> =>
    new Promise((resolve, reject) => {
      get(url, { agent: false }, (response) => {
        response.resume();
        const { location } = response.headers;
        if (location === undefined) reject(new Error(`no redirect, but HTTP ${response.statusCode}`));
        else resolve(new URL(location));
      }).on('error', reject);
    });

  async #arrive(at: Arrived['at'], request: IncomingMessage): Promise<Arrived> {
    let body = '';
    for await (const chunk of request) body += chunk;
    const url = new URL(request.url ?? '/', 'http://x');
    const params = request.method === 'GET' ? url.searchParams : new URLSearchParams(body);
    const { method = '', headers } = request;
    const arrived = { at, path: url.pathname, method, headers, params, body };
    this.requests.push(arrived);
    return arrived;
  }

  #serveResource(request: IncomingMessage, response: ServerResponse): void {
    const { settings } = this;
    const path = new URL(request.url ?? '/', 'http://x').pathname;
    if (path.includes('.well-known') || path === '/custom-metadata') {
      void this.#arrive('resource', request).then(() => {
        if (settings.places && !settings.places.includes(path)) return void response.writeHead(404).end();
        json(response, 200, {
          resource: this.url,
          authorization_servers: [this.issuer],
          ...settings.resourceMetadata,
        });
      });
      return;
    }
    const { headers, method = '' } = request;
    this.requests.push({ at: 'resource', path, method, headers, params: new URLSearchParams(), body: '' });
    if (settings.redirectTo !== undefined && path === '/mcp')
      return void response.writeHead(307, { location: settings.redirectTo }).end();
    const [scheme = '', token = ''] = (headers.authorization ?? '').split(' ');
    const issued = this.#access.get(token);
    const usual = settings.namesMetadata
      ? `${settings.proofs ? 'DPoP' : 'Bearer'} resource_metadata="${originOf(this.#resource)}/custom-metadata"`
      : 'Bearer';
    const challenge = (value: string | undefined, status: number): void =>
      void response
        .writeHead(status, {
          ...(value === undefined ? {} : { 'www-authenticate': value }),
          ...(settings.resourceNonce === undefined ? {} : { 'dpop-nonce': settings.resourceNonce }),
        })
        .end();
    if (!issued || settings.rejects || issued.scheme !== scheme) return challenge(settings.challenge(usual), 401);
    if (issued.scheme === 'DPoP') {
      const proof = proofIn(headers.dpop);
      if (settings.resourceNonce !== undefined && proof?.nonce !== settings.resourceNonce)
        return challenge(`${usual}, error="use_dpop_nonce"`, 401);
      const ath = createHash('sha256').update(token).digest('base64url');
      if (proof?.key !== issued.key || proof?.ath !== ath || proof?.htm !== method)
        return challenge(`${usual}, error="invalid_dpop_proof"`, 401);
    }
    if (headers['mcp-name'] === 'admin' && !issued.scopes.includes(settings.adminScope))
      return challenge(`${usual}, error="insufficient_scope", scope="${settings.adminScope}"`, 403);
    void this.#mcp.node(request, response);
  }

  #serveIssuer(request: IncomingMessage, response: ServerResponse): void {
    const { settings } = this;
    if (settings.outage === 'gone') return void request.socket.destroy();
    void this.#arrive('issuer', request).then(async (arrived) => {
      const { path, params } = arrived;
      if (settings.outage === 'failing')
        return json(response, 503, { error: 'temporarily_unavailable', error_description: 'later' });
      if (path.includes('.well-known')) {
        if (settings.places && !settings.places.includes(path)) return void response.writeHead(404).end();
        return json(response, 200, {
          issuer: this.issuer,
          authorization_endpoint: `${this.issuer}/authorize`,
          token_endpoint: `${this.issuer}/token`,
          registration_endpoint: `${this.issuer}/register`,
          code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
          ...(settings.proofs ? { dpop_signing_alg_values_supported: ['ES256'] } : {}),
          ...settings.issuerMetadata,
        });
      }
      if (path.endsWith('/register')) {
        this.#serial += 1;
        const made = { client_id: `client-${this.#serial}`, token_endpoint_auth_method: 'none' };
        return json(response, 201, { ...made, ...settings.registration });
      }
      if (path.endsWith('/authorize')) {
        this.#serial += 1;
        const code = `code-${this.#serial}`;
        this.#codes.set(code, {
          client: params.get('client_id') ?? '',
          scope: params.get('scope') ?? '',
          challenge: params.get('code_challenge') ?? '',
        });
        const back = new URL(params.get('redirect_uri') ?? '');
        back.searchParams.set('code', code);
        back.searchParams.set('state', params.get('state') ?? '');
        settings.redirect(back);
        return void response.writeHead(302, { location: back.href }).end();
      }
      if (path.endsWith('/token')) return this.#token(arrived, response);
      response.writeHead(404).end();
    });
  }

  #token({ params, headers }: Arrived, response: ServerResponse): void {
    const { settings } = this;
    const proof = proofIn(headers.dpop);
    if (settings.issuerNonce !== undefined && proof?.nonce !== settings.issuerNonce) {
      response.setHeader('dpop-nonce', settings.issuerNonce);
      return json(response, 400, { error: 'use_dpop_nonce' });
    }
    const set = settings.token?.(params);
    if (set) return json(response, set.status, set.body);
    const refused = (error: string): void => json(response, 400, { error });
    const grant = params.get('grant_type');
    let scope = params.get('scope') ?? '';
    let client = params.get('client_id') ?? '';
    if (grant === 'authorization_code') {
      const code = this.#codes.get(params.get('code') ?? '');
      const verifier = createHash('sha256')
        .update(params.get('code_verifier') ?? '')
        .digest('base64url');
      if (!code || code.challenge !== verifier) return refused('invalid_grant');
      this.#codes.delete(params.get('code') ?? '');
      ({ scope, client } = code);
    }
    if (grant === 'refresh_token') {
      const before = this.#refresh.get(params.get('refresh_token') ?? '');
      if (!before) return refused('invalid_grant');
      this.#refresh.delete(params.get('refresh_token') ?? '');
      scope = before.scopes.join(' ');
    }
    this.#serial += 1;
    const type = settings.proofs && proof ? 'DPoP' : 'Bearer';
    const issued: Issued = { scopes: scope.split(' '), client, key: proof?.key, scheme: type };
    const access = `${this.#prefix}access-${this.#serial}`;
    this.#access.set(access, issued);
    const refresh = settings.refreshTokens ? { refresh_token: `${this.#prefix}refresh-${this.#serial}` } : {};
    if (settings.refreshTokens) this.#refresh.set(`${this.#prefix}refresh-${this.#serial}`, issued);
    json(response, 200, { access_token: access, token_type: type, expires_in: settings.expiresIn, scope, ...refresh });
  }
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function listening(serve: (request: IncomingMessage, response: ServerResponse) => void): Promise<Server> {
  const server = createHttp(serve).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function originOf(server: Server | undefined): string {
  const address = server?.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

/** The members of a proof that the servers compare. Its signature is checked by {@link isSigned}. */
function proofIn(header: string | string[] | undefined) {
  if (typeof header !== 'string') return undefined;
  const [head = '', payload = ''] = header.split('.');
  const { jwk } = JSON.parse(String(Buffer.from(head, 'base64url')));
  const { nonce, ath, htm, htu, jti } = JSON.parse(String(Buffer.from(payload, 'base64url')));
  return { key: JSON.stringify([jwk.crv, jwk.x, jwk.y]), nonce, ath, htm, htu, jti };
}

/** True if a proof is signed with the key that it contains. */
export async function isSigned(header: string): Promise<boolean> {
  const [head = '', payload = '', signature = ''] = header.split('.');
  const { jwk, alg, typ } = JSON.parse(String(Buffer.from(head, 'base64url')));
  if (alg !== 'ES256' || typ !== 'dpop+jwt' || jwk.d !== undefined) return false;
  const key = await webcrypto.subtle.importKey('jwk', jwk, { name: 'ECDSA', namedCurve: 'P-256' }, false, ['verify']);
  const signed = Buffer.from(`${head}.${payload}`);
  return webcrypto.subtle.verify({ name: 'ECDSA', hash: 'SHA-256' }, key, Buffer.from(signature, 'base64url'), signed);
}
