/** A server that demands tokens of a fake issuer, and requests to it in each revision. */

import { LATEST_MODERN } from '../../../src/core/protocol/revisions.ts';
import { oauth, type ResourceServerOptions } from '../../../src/features/oauth/oauth.ts';
import { createServer, type Server } from '../../../src/index.ts';
import { type FakeIssuer, type FakeIssuerOptions, fakeIssuer, SimulatedClock } from '../../../src/testing/testing.ts';

export const RESOURCE = 'https://mcp.example.com/mcp';
export const METADATA = 'https://mcp.example.com/.well-known/oauth-protected-resource/mcp';

export interface GuardedServer {
  readonly clock: SimulatedClock;
  readonly issuer: FakeIssuer;
  readonly server: Server;
  /** Everything that the server has logged. */
  readonly logged: string[];
  /** The principals of the calls that ran. */
  readonly calls: string[];
  /** Calls `whoami` without a session. */
  call(headers?: Readonly<Record<string, string>>, query?: string): Promise<Response>;
  bearer(token: string): Promise<Response>;
  request(method: string, headers?: Readonly<Record<string, string>>, body?: object, query?: string): Promise<Response>;
  close(): Promise<void>;
}

export const CALL = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'whoami',
    arguments: {},
    _meta: {
      'io.modelcontextprotocol/protocolVersion': LATEST_MODERN,
      'io.modelcontextprotocol/clientInfo': { name: 'tests', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
};

export const MODERN = { 'mcp-protocol-version': LATEST_MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'whoami' };

export async function guardedServer(
  options: (issuer: FakeIssuer) => Partial<ResourceServerOptions> = () => ({}),
  fake: FakeIssuerOptions = {},
): Promise<GuardedServer> {
  const clock = new SimulatedClock();
  const issuer = await fakeIssuer({ clock, ...fake });
  const auth = oauth({ resource: RESOURCE, issuer: issuer.issuer, clock, ...options(issuer) });
  const logged: string[] = [];
  const calls: string[] = [];
  const server = createServer({
    name: 'guarded',
    version: '1.0.0',
    clock,
    log: (_level, message) => void logged.push(message),
    http: { auth },
  });
  server.tool('whoami', {}, (_, ctx) => {
    calls.push(ctx.principal);
    return ctx.principal;
  });
  const request: GuardedServer['request'] = (method, headers = {}, body = undefined, query = '') =>
    server.fetch(
      new Request(`http://localhost/mcp${query}`, {
        method,
        headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
  const call: GuardedServer['call'] = (headers = {}, query = '') =>
    request('POST', { ...MODERN, ...headers }, CALL, query);
  return {
    clock,
    issuer,
    server,
    logged,
    calls,
    request,
    call,
    bearer: (token) => call({ authorization: `Bearer ${token}` }),
    async close() {
      await server.close();
      await issuer.close();
    },
  };
}
