/** Cookies of a session over HTTP: a balancer that binds a session to a node by one gets it back, and nobody else does. */
import { type Authorization, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { SessionCookies } from '../../src/client/channels/session-cookies.ts';
import { suite } from '../harness/door.ts';
import { jsonResponse, type RawRequest, type RawServer, rawServer, response } from '../harness/raw-server.ts';
import { until } from '../harness/wait.ts';
import { EVENTS, messageOf, resultOf } from './raw-peer.ts';

const test = suite('cookies of a session');

const HTTPS = new URL('https://a.example/mcp');
const HTTP = new URL('http://a.example/mcp');

/** The header after these lines of one response each. */
function headerAfter(lines: readonly string[], url = HTTPS, configured?: string): string | undefined {
  const cookies = new SessionCookies();
  for (const line of lines) cookies.receive([line], url, Date.UTC(2026, 0));
  return cookies.header(configured);
}

for (const [lines, expected] of [
  [['a=1'], 'a=1'],
  [['a=1; Path=/; HttpOnly; SameSite=None', 'b=2; Domain=.b.example'], 'a=1; b=2'],
  [['a=1', 'b=2', 'a=3'], 'b=2; a=3'],
  [['a="x y"', 'b=', 'c=x=y'], 'a="x y"; b=; c=x=y'],
  [['a=1', 'a=gone; Max-Age=0'], undefined],
  [['a=1; max-age=60; expires=Thu, 01 Jan 1970 00:00:00 GMT'], 'a=1'],
  [['a=1', 'a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT'], undefined],
  [['a=1; Expires=Fri, 01 Jan 2100 00:00:00 GMT', 'b=1; expires=soon'], 'a=1; b=1'],
  [['=1', 'a', 'a b=1', 'a=\u00e9', 'a=x\r\ny', `a=${'x'.repeat(4_096)}`], undefined],
  [
    Array.from({ length: 25 }, (_, index) => `c${index}=1`),
    Array.from({ length: 20 }, (_, at) => `c${at + 5}=1`).join('; '),
  ],
] as const)
  test(`${JSON.stringify(lines).slice(0, 90)} is sent back as ${expected?.slice(0, 40) ?? 'nothing'}`, () =>
    assert.is(headerAfter(lines), expected));

test('cookies of encrypted connections stay there, and those of the program have precedence', () => {
  assert.is(headerAfter(['a=1; Secure', 'b=2;secure=no'], HTTP), 'b=2');
  assert.is(headerAfter(['a=1; Secure'], HTTPS), 'a=1');
  assert.is(headerAfter(['a=1', 'b=2'], HTTPS, 'a=mine; c=3'), 'a=mine; c=3; b=2');
  assert.is(headerAfter([], HTTPS, 'a=mine'), 'a=mine');
});

/** Two nodes behind a balancer, which chooses in turns unless a cookie names one. */
async function balanced(seen: RawRequest[]): Promise<RawServer> {
  const nodes = [new Set<string>(), new Set<string>()];
  let turn = 0;
  let sessions = 0;
  return rawServer((request) => {
    seen.push(request);
    const named = /node=(\d)/.exec(request.headers.cookie ?? '')?.[1];
    const node = named === undefined ? turn++ % 2 : Number(named);
    const headers = { 'set-cookie': `node=${node}; Path=/` };
    const known = nodes[node]?.has(request.headers['mcp-session-id'] ?? '') === true;
    if (request.method === 'GET')
      return known ? response(200, { ...EVENTS, ...headers }, ': open\n\n') : response(404, headers);
    if (request.method === 'DELETE') return response(known ? 204 : 404, headers);
    const message = messageOf(request);
    if (message.method === 'initialize') {
      sessions += 1;
      nodes[node]?.add(`s${sessions}`);
      return jsonResponse(resultOf(message), 200, { ...headers, 'mcp-session-id': `s${sessions}` });
    }
    if (!known) return response(404, headers);
    return message.id === undefined ? response(202, headers) : jsonResponse(resultOf(message), 200, headers);
  });
}

test('each request of a session reaches the node that opened it', async () => {
  const seen: RawRequest[] = [];
  const server = await balanced(seen);
  const client = await connect(
    { url: `${server.url}/mcp`, headers: { Cookie: 'mine=1' } },
    { eras: 'legacy', log: () => {} },
  );
  for (let call = 0; call < 5; call += 1)
    assert.equal((await client.call('add')).content, [{ type: 'text', text: 'done' }]);
  await until(() => seen.some(({ method }) => method === 'GET'));
  await client.close();
  await server.close();
  const [first, ...others] = seen;
  assert.is(first?.headers.cookie, 'mine=1');
  for (const { method, headers } of others) assert.is(headers.cookie, 'mine=1; node=0', method);
  assert.is(seen.filter((request) => messageOf(request).method === 'initialize').length, 1);
  assert.ok(seen.some(({ method }) => method === 'DELETE'));
});

test('requests without a session get and keep no cookies: they may have different callers', async () => {
  const seen: RawRequest[] = [];
  const common = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
  const server = await rawServer((request) => {
    seen.push(request);
    const { id, method } = messageOf(request);
    const result =
      method === 'server/discover'
        ? { ...common, supportedVersions: ['2026-07-28'], capabilities: {}, serverInfo: { name: 'n', version: '1' } }
        : { ...common, content: [] };
    return jsonResponse({ jsonrpc: '2.0', id, result }, 200, { 'set-cookie': 'caller=ada' });
  });
  const auth: Authorization = { headers: () => ({ authorization: 'Bearer x' }), authorize: () => Promise.resolve() };
  const client = await connect({ url: `${server.url}/mcp`, auth }, { log: () => {} });
  await client.call('a');
  await client.call('a');
  await client.close();
  await server.close();
  assert.equal(
    seen.map(({ headers }) => headers.cookie),
    seen.map(() => undefined),
  );
});
