/** An MCP server that demands a token, and its small authorization server, which rotates refresh tokens. */
import { createServer as createHttpServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from 'troupe';
import { elapse } from '../harness/wait.ts';

export interface ProtectedServer {
  /** The address of the MCP server. */
  readonly url: string;
  readonly issuer: string;
  /** The number of tokens issued by code, by refresh, and of requests with a refresh token that is used up. */
  readonly counts: { codes: number; refreshes: number; reused: number; registrations: number };
  /** The most refreshes that were in progress at the same time. */
  readonly atOnce: () => number;
  /** The tokens that were revoked. */
  readonly revoked: string[];
  /** Follows the redirect of the authorization endpoint, as a browser does. */
  authorize(url: URL): Promise<URL>;
  close(): Promise<void>;
}

export interface ProtectedServerOptions {
  /** Seconds of an access token. Default 3,600. */
  readonly expiresIn?: number;
  readonly revocation?: boolean;
}

export async function protectedServer({
  expiresIn = 3_600,
  revocation = true,
}: ProtectedServerOptions = {}): Promise<ProtectedServer> {
  const counts = { codes: 0, refreshes: 0, reused: 0, registrations: 0 };
  const revoked: string[] = [];
  const access = new Set<string>();
  /** Refresh tokens that are valid, with the client that each belongs to. */
  const valid = new Map<string, string>();
  const codes = new Map<string, string>();
  let serial = 0;
  let refreshing = 0;
  let most = 0;
  const mcp = createServer({ name: 'guarded', version: '1.0.0', log() {} });
  mcp.tool('whoami', {}, () => 'ada');
  const issue = (client: string): object => {
    serial += 1;
    access.add(`access-${serial}`);
    valid.set(`refresh-${serial}`, client);
    return {
      access_token: `access-${serial}`,
      refresh_token: `refresh-${serial}`,
      token_type: 'Bearer',
      expires_in: expiresIn,
    };
  };
  const token = async (params: URLSearchParams): Promise<{ status: number; body: object }> => {
    const client = params.get('client_id') ?? '';
    if (params.get('grant_type') === 'authorization_code') {
      const owner = codes.get(params.get('code') ?? '');
      if (owner !== client) return { status: 400, body: { error: 'invalid_grant' } };
      codes.delete(params.get('code') ?? '');
      counts.codes += 1;
      return { status: 200, body: issue(client) };
    }
    refreshing += 1;
    most = Math.max(most, refreshing);
    await elapse(10, 'other refreshes that are on their way arrive');
    refreshing -= 1;
    const refresh = params.get('refresh_token') ?? '';
    if (valid.get(refresh) !== client) {
      counts.reused += 1;
      return { status: 400, body: { error: 'invalid_grant' } };
    }
    valid.delete(refresh);
    counts.refreshes += 1;
    return { status: 200, body: issue(client) };
  };
  const http = createHttpServer((request, response) => {
    const url = new URL(request.url ?? '/', issuer);
    const json = (status: number, body: object): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    switch (url.pathname) {
      case '/.well-known/oauth-protected-resource/mcp':
        return json(200, { resource: `${issuer}/mcp`, authorization_servers: [issuer] });
      case '/.well-known/oauth-authorization-server':
        return json(200, {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          registration_endpoint: `${issuer}/register`,
          ...(revocation ? { revocation_endpoint: `${issuer}/revoke` } : {}),
          code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none'],
        });
      case '/register':
        counts.registrations += 1;
        return json(201, { client_id: `client-${counts.registrations}`, token_endpoint_auth_method: 'none' });
      case '/authorize': {
        serial += 1;
        codes.set(`code-${serial}`, url.searchParams.get('client_id') ?? '');
        const back = new URL(url.searchParams.get('redirect_uri') ?? '');
        back.searchParams.set('code', `code-${serial}`);
        back.searchParams.set('state', url.searchParams.get('state') ?? '');
        return void response.writeHead(302, { location: back.href }).end();
      }
      case '/token':
        return void bodyOf(request)
          .then(token)
          .then(({ status, body }) => json(status, body));
      case '/revoke':
        return void bodyOf(request).then((params) => {
          revoked.push(params.get('token') ?? '');
          response.writeHead(200).end();
        });
      default: {
        const bearer = (request.headers.authorization ?? '').replace('Bearer ', '');
        if (access.has(bearer)) return void mcp.node(request, response);
        response
          .writeHead(401, {
            'www-authenticate': `Bearer resource_metadata="${issuer}/.well-known/oauth-protected-resource/mcp"`,
          })
          .end();
      }
    }
  });
  await new Promise<void>((resolve) => void http.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  return {
    url: `${issuer}/mcp`,
    issuer,
    counts,
    atOnce: () => most,
    revoked,
    authorize: (url) =>
      new Promise((resolve, reject) => {
        get(url, { agent: false }, ({ headers }) => resolve(new URL(headers.location ?? ''))).on('error', reject);
      }),
    async close() {
      await mcp.close();
      http.closeAllConnections();
      await new Promise<void>((resolve) => void http.close(() => resolve()));
    },
  };
}

function bodyOf(request: IncomingMessage): Promise<URLSearchParams> {
  return new Promise((resolve) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => resolve(new URLSearchParams(text)));
  });
}
