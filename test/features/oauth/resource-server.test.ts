/** A resource server: its metadata and challenges, the principals of its tokens, and who needs none. */
import { once } from 'node:events';
import { Agent, createServer as createNodeServer, request as nodeRequest } from 'node:http';
import * as assert from 'uvu/assert';
import { readChallenges } from '../../../src/client/oauth/challenges.ts';
import { oauth } from '../../../src/features/oauth/oauth.ts';
import { http, type Server } from '../../../src/index.ts';
import { fakeIssuer, SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { CALL, guardedServer, METADATA, MODERN, RESOURCE } from './guarded-server.ts';

const test = suite('the resource server');

test('each mount serves the metadata at both addresses, without a token', async () => {
  const { server, issuer, ...guarded } = await guardedServer(() => ({ scopes: ['orders:read'] }));
  const paths = ['/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource'];
  const transport = http({ port: 0 });
  await server.listen(transport);
  const mounted = await mount(server);
  for (const path of paths) {
    const responses = [
      await server.fetch(new Request(`http://localhost${path}`)),
      await fetch(new URL(path, transport.url)),
      await fetch(new URL(path, mounted.url)),
    ];
    for (const response of responses) {
      assert.is(response.status, 200);
      assert.equal(await response.json(), {
        resource: RESOURCE,
        authorization_servers: [issuer.issuer],
        scopes_supported: ['orders:read'],
        bearer_methods_supported: ['header'],
        dpop_signing_alg_values_supported: ['ES256', 'EdDSA', 'PS256', 'RS256'],
      });
    }
  }
  mounted.close();
  await guarded.close();
});

test('G-01 on one connection, each request is of the caller of its own token', async () => {
  const { server, issuer, calls, close } = await guardedServer();
  const transport = http({ port: 0 });
  await server.listen(transport);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ports = new Set<number | undefined>();
  const call = (authorization: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { ...MODERN, accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
      const sent = nodeRequest(transport.url, { method: 'POST', agent, headers: { ...headers, authorization } });
      sent.on('error', reject);
      sent.on('response', (response) => {
        ports.add(response.socket.localPort);
        response.resume().on('end', () => resolve(response.statusCode));
      });
      sent.end(JSON.stringify(CALL));
    });
  const tokenOf = async (subject: string): Promise<string> =>
    `Bearer ${await issuer.token({ audience: RESOURCE, subject })}`;
  const [ada, bob] = await Promise.all([tokenOf('ada'), tokenOf('bob')]);
  const statuses: (number | undefined)[] = [];
  for (const each of [ada, ada, bob, 'Bearer nonsense', 'Bearer nonsense', ada, 'Basic YTpi', bob])
    statuses.push(await call(each));
  assert.equal(statuses, [200, 200, 200, 401, 401, 200, 401, 200]);
  assert.equal(
    calls.map((principal) => /ada|bob/.exec(principal)?.[0]),
    ['ada', 'ada', 'bob', 'ada', 'bob'],
  );
  assert.is(ports.size, 1);
  agent.destroy();
  await close();
});

/** Serves with `server.node`. */
async function mount(server: Server): Promise<{ readonly url: string; close(): void }> {
  const host = createNodeServer((request, response) => server.node(request, response));
  await once(host.listen(0, '127.0.0.1'), 'listening');
  const address = host.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    close() {
      host.closeAllConnections();
      host.close();
    },
  };
}

test('a request without a token gets 401 with the metadata and the scopes, and no error code', async () => {
  const { call, close } = await guardedServer(() => ({ scopes: ['orders:read', 'orders:list'] }));
  const response = await call();
  assert.is(response.status, 401);
  const [bearer, dpop] = readChallenges(response.headers.get('www-authenticate') ?? '');
  assert.equal(bearer, {
    scheme: 'bearer',
    params: { scope: 'orders:read orders:list', resource_metadata: METADATA },
  });
  assert.equal(dpop, { scheme: 'dpop', params: { algs: 'ES256 EdDSA PS256 RS256' } });
  await close();
});

test('challenges name the metadata of the resource, or the address that reaches it through a proxy', () => {
  const resource = 'https://example.com/team/mcp';
  const root = '/.well-known/oauth-protected-resource';
  for (const [metadata, named, paths] of [
    [undefined, `https://example.com${root}/team/mcp`, [`${root}/team/mcp`, root]],
    [`https://example.com/team${root}`, `https://example.com/team${root}`, [`${root}/team/mcp`, root, `/team${root}`]],
    [`https://example.com${root}`, `https://example.com${root}`, [`${root}/team/mcp`, root]],
  ] as const) {
    const guard = oauth({ resource, issuer: 'https://login.example.com', metadata });
    assert.is(guard.resourceMetadata, named);
    const [challenge = ''] = guard.challenge([]);
    assert.match(challenge, `resource_metadata="${named}"`);
    assert.equal([...guard.documents.keys()], paths);
    // The server sees this path, whether the proxy removes its prefix or not.
    for (const path of paths) assert.is(guard.documents.get(path)?.resource, resource);
  }
});

test('a token gives its issuer, subject and client a principal of their own; perUser leaves the client out', async () => {
  const guarded = await guardedServer();
  const { issuer, bearer, calls } = guarded;
  for (const [subject, clientId] of [
    ['ada', 'a b'],
    ['ada a', 'b'],
    ['ada', 'c'],
  ] as const)
    assert.is((await bearer(await issuer.token({ audience: RESOURCE, subject, clientId }))).status, 200);
  assert.is(new Set(calls).size, 3);
  await guarded.close();
  const perUser = await guardedServer(() => ({ perUser: true }));
  for (const clientId of ['a', 'b']) await perUser.bearer(await perUser.issuer.token({ audience: RESOURCE, clientId }));
  assert.is(perUser.calls.length, 2);
  assert.is(new Set(perUser.calls).size, 1);
  // Without a subject the client is the caller: two clients stay apart.
  for (const clientId of ['a', 'b'])
    await perUser.bearer(await perUser.issuer.token({ audience: RESOURCE, clientId, claims: { sub: undefined } }));
  assert.is(new Set(perUser.calls).size, 3);
  await perUser.close();
});

test('a handler sees the claims, the scopes with those that they imply, and no token', async () => {
  const { server, issuer, ...guarded } = await guardedServer(() => ({
    implies: { 'orders:admin': ['orders:write'], 'orders:write': ['orders:read'] },
  }));
  let seen: unknown;
  server.tool('see', {}, (_args, ctx) => {
    seen = ctx.auth;
    return '';
  });
  const token = await issuer.token({ audience: RESOURCE, scopes: ['orders:admin'], claims: { tenant: { id: 7 } } });
  const body = { ...CALL, params: { ...CALL.params, name: 'see' } };
  const headers = { ...MODERN, 'mcp-name': 'see', authorization: `Bearer ${token}` };
  await guarded.bearer(token);
  const response = await server.fetch(
    new Request('http://localhost/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify(body),
    }),
  );
  assert.is(response.status, 200);
  const { auth } = { auth: seen as { scopes: string[]; claims: { tenant: object }; expiresAt: number } };
  assert.equal([...auth.scopes].sort(), ['orders:admin', 'orders:read', 'orders:write']);
  assert.equal(auth.claims.tenant, { id: 7 });
  assert.ok(Object.isFrozen(auth) && Object.isFrozen(auth.claims) && Object.isFrozen(auth.claims.tenant));
  assert.is(auth.expiresAt, guarded.clock.date() + 600_000);
  assert.not.ok(JSON.stringify(seen).includes(token));
  await guarded.close();
});

test('a token without a scope that each request needs gets 403 with all of them; an implied scope is enough', async () => {
  const { issuer, bearer, calls, close } = await guardedServer(() => ({
    scopes: ['orders:read', 'orders:list'],
    implies: { orders: ['orders:read', 'orders:list'] },
  }));
  const response = await bearer(await issuer.token({ audience: RESOURCE, scopes: ['orders:read'] }));
  assert.is(response.status, 403);
  const [challenge] = readChallenges(response.headers.get('www-authenticate') ?? '');
  assert.is(challenge?.params.error, 'insufficient_scope');
  assert.is(challenge?.params.scope, 'orders:read orders:list');
  assert.is(challenge?.params.resource_metadata, METADATA);
  assert.equal(calls, []);
  assert.is((await bearer(await issuer.token({ audience: RESOURCE, scopes: ['orders'] }))).status, 200);
  await close();
});

test('opaque tokens are introspected: an active one is served, a revoked one is not once it is no longer remembered', async () => {
  const { issuer, bearer, clock, close } = await guardedServer(({ issuer: name, introspection }) => ({
    issuer: { issuer: name, introspection },
  }));
  const token = issuer.opaque({ audience: RESOURCE, expiresIn: 3_600 });
  assert.is((await bearer(token)).status, 200);
  assert.is((await bearer(token)).status, 200);
  assert.is(issuer.requests.filter((path) => path === '/introspect').length, 1);
  issuer.revoke(token);
  assert.is((await bearer(token)).status, 200);
  await clock.advance(300_000);
  assert.is((await bearer(token)).status, 401);
  assert.is((await bearer(issuer.opaque({ audience: 'https://other.example.com' }))).status, 401);
  assert.is((await bearer(issuer.opaque({ audience: RESOURCE, claims: { iss: 'https://evil.example' } }))).status, 401);
  await close();
});

test('an opaque token without an end is remembered for a minute', async () => {
  const { issuer, bearer, clock, close } = await guardedServer(({ issuer: name, introspection }) => ({
    issuer: { issuer: name, introspection },
  }));
  const token = issuer.opaque({ audience: RESOURCE, claims: { exp: undefined } });
  assert.is((await bearer(token)).status, 200);
  issuer.revoke(token);
  await clock.advance(59_999);
  assert.is((await bearer(token)).status, 200);
  await clock.advance(1);
  assert.is((await bearer(token)).status, 401);
  await close();
});

test('requests with one token share its verification', async () => {
  const { issuer, bearer, close } = await guardedServer(({ issuer: name, introspection }) => ({
    issuer: { issuer: name, introspection },
  }));
  const token = issuer.opaque({ audience: RESOURCE });
  const responses = await Promise.all(Array.from({ length: 50 }, () => bearer(token)));
  assert.equal([...new Set(responses.map(({ status }) => status))], [200]);
  assert.is(issuer.requests.filter((path) => path === '/introspect').length, 1);
  await close();
});

test('G-01 anonymous methods need no token in 2026-07-28, and no other request passes as one', async () => {
  const { server, request, call, calls, close } = await guardedServer(() => ({
    anonymous: ['server/discover', 'tools/list'],
  }));
  const list = { ...CALL, method: 'tools/list', params: { _meta: CALL.params._meta } };
  const headers = { ...MODERN, 'mcp-method': 'tools/list' };
  assert.is((await request('POST', headers, list)).status, 200);
  assert.is((await call()).status, 401);
  // A header that names another method than the body is no way in.
  for (const body of [CALL, { ...CALL, params: { name: 'whoami', arguments: {} } }, [CALL]])
    assert.is((await request('POST', headers, body)).status, 400);
  assert.is((await request('POST', { 'mcp-method': 'tools/list' }, list)).status, 401);
  // The streams of 2024-11-05 do not look at these headers, and neither does a session.
  for (const query of ['?sse=any', '?a=b']) assert.is((await request('POST', headers, list, query)).status, 401);
  for (const method of ['GET', 'DELETE'])
    assert.is((await request(method, { ...headers, 'mcp-session-id': 'any' })).status, 401);
  const stream = new Request('http://localhost/sse', { headers: { ...headers, accept: 'text/event-stream' } });
  assert.is((await server.fetch(stream)).status, 401);
  assert.equal(calls, []);
  const bad = await request('POST', { ...headers, authorization: 'Bearer nonsense' }, list);
  assert.is(bad.status, 401);
  await close();
});

test('the canonical resource has its scheme and host in lower case, and keeps its slash as given', () => {
  for (const [resource, canonical] of [
    ['HTTPS://MCP.Example.com/Mcp', 'https://mcp.example.com/Mcp'],
    ['https://mcp.example.com', 'https://mcp.example.com'],
    ['https://mcp.example.com/', 'https://mcp.example.com/'],
    ['https://mcp.example.com/mcp/', 'https://mcp.example.com/mcp/'],
  ] as const) {
    const { documents } = oauth({ resource, issuer: 'https://login.example.com' });
    assert.is(documents.get('/.well-known/oauth-protected-resource')?.resource, canonical);
  }
});

test('an address that sends 40 rejected tokens at once gets 429 for unknown ones; remembered tokens and private addresses do not', async () => {
  const clock = new SimulatedClock();
  const issuer = await fakeIssuer({ clock });
  const auth = oauth({ resource: RESOURCE, issuer: issuer.issuer, clock });
  const outcome = async (token: string, from: string | null = '9.9.9.7'): Promise<unknown> => {
    const remoteAddress = from ?? undefined;
    const values = (name: string): readonly string[] => (name === 'authorization' ? [`Bearer ${token}`] : []);
    const header = (name: string): string | undefined => values(name)[0];
    const found = await auth.authenticate({ method: 'POST', url: '/mcp', query: '', header, values, remoteAddress });
    return 'auth' in found ? found.auth.subject : 'excess' in found ? found.excess.retryMs : found.status;
  };
  const good = await issuer.token({ audience: RESOURCE });
  assert.is(await outcome(good), 'ada');
  for (let at = 0; at < 40; at += 1) assert.is(await outcome(`bad-${at}`), 401);
  assert.is(await outcome('bad-40'), 50);
  assert.is(await outcome(await issuer.token({ audience: RESOURCE })), 50);
  assert.is(await outcome('bad-7'), 401);
  assert.is(await outcome(good), 'ada');
  assert.is(await outcome('bad-40', '9.9.9.8'), 401);
  assert.is(await outcome('bad-41', '::ffff:9.9.9.7'), 50);
  // A client of IPv6 has all addresses of its network.
  for (let at = 0; at < 40; at += 1) assert.is(await outcome(`six-${at}`, `2a01:db8:1:2::${at}`), 401);
  for (const from of ['2a01:db8:1:2:a:b:c:d', '2A01:0db8:1:2::1.2.3.4']) assert.is(await outcome('six', from), 50);
  assert.is(await outcome('seven', '2a01:db8:1:3::1'), 401);
  for (let at = 0; at < 50; at += 1) assert.is(await outcome(`private-${at}`, '10.0.0.7'), 401);
  for (let at = 0; at < 50; at += 1) assert.is(await outcome(`unknown-${at}`, null), 401);
  await clock.advance(50);
  assert.is(await outcome('bad-42'), 401);
  assert.is(await outcome('bad-43'), 50);
  await issuer.close();
});

test('a call that lacks the scopes of its tool gets 403 with the challenge and the address of the metadata; with them it is served', async () => {
  const { server, issuer, request, close } = await guardedServer(() => ({ implies: { all: ['a', 'b'] } }));
  server.tool('refund', { scopes: ['a', 'b'] }, () => 'refunded');
  const body = { ...CALL, params: { ...CALL.params, name: 'refund' } };
  const call = async (scopes: readonly string[]): Promise<Response> => {
    const token = await issuer.token({ audience: RESOURCE, scopes });
    return request('POST', { ...MODERN, 'mcp-name': 'refund', authorization: `Bearer ${token}` }, body);
  };
  const response = await call(['b']);
  assert.is(response.status, 403);
  const [challenge] = readChallenges(response.headers.get('www-authenticate') ?? '');
  assert.is(challenge?.params.error, 'insufficient_scope');
  assert.is(challenge?.params.resource_metadata, METADATA);
  assert.match(await response.text(), `"resourceMetadata":"${METADATA}"`);
  assert.is((await call(['a', 'b'])).status, 200);
  assert.is((await call(['all'])).status, 200);
  await close();
});
