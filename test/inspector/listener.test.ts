/** Who may ask an inspector: whoever calls it by its own name, from its own page or none, and knows its token; and nobody from another machine. */
import { createServer as createHttpServer } from 'node:http';
import { connect as connectSocket } from 'node:net';
import { networkInterfaces } from 'node:os';
import * as assert from 'uvu/assert';
import { INTERNALS } from '../../src/features/server/internals.ts';
import { createServer, http, type ServerOptions } from '../../src/index.ts';
import { type InspectorOptions, openInspector } from '../../src/inspector/inspector.ts';
import { connect } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';
import { assertRejects } from '../harness/results.ts';
import { until } from '../harness/wait.ts';
import { type Ask, ask, raw } from './listening.ts';

const test = suite('inspector: listener');

const quiet: Pick<ServerOptions, 'log'> = { log: () => {} };
const API = [
  '/api/stream?viewer=v',
  '/api/look?actor=server',
  '/api/looks',
  '/api/coverage',
  '/api/recording',
  '/api/catalogue',
  '/api/traffic',
  '/api/content?ref=x',
  '/api/event-form?name=x',
  '/api/export',
  '/api/focus',
  '/api/none',
];

async function opened(options: InspectorOptions = {}) {
  const server = createServer({ name: 'shown', version: '1.0.0', ...quiet });
  server.tool('echo', { input: { type: 'object' } }, (args) => JSON.stringify(args));
  const inspector = await openInspector(server, options);
  const { port, hash } = new URL(inspector.url);
  const token = hash.slice(1);
  const auth = { Authorization: `Bearer ${token}` };
  const get = (path: string, more: Ask = {}) =>
    ask(Number(port), { path, ...more, headers: { ...auth, ...more.headers } });
  const post = (path: string, body: unknown, more: Ask = {}) =>
    get(path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), ...more });
  /** The stream of a viewer, until the returned function ends it; `text` is what came. */
  const stream = (query = 'viewer=v1') => {
    const got = { text: '', open: true };
    const head = `GET /api/stream?${query} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const socket = connectSocket(Number(port), '127.0.0.1', () => socket.write(head));
    socket.setEncoding('utf8').on('data', (chunk) => {
      got.text += chunk;
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      got.open = false;
    });
    return { got, end: () => void socket.destroy() };
  };
  return { server, inspector, port: Number(port), token, get, post, stream };
}

test('S-31 CVE-2025-49596 without the token nothing of the server is disclosed', async () => {
  const { server, port, token } = await opened();
  const wrong = [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    `Bearer ${token.slice(1)}`,
    `Bearer ${token}x`,
    `Bearer ${token.toLowerCase()}`,
    `bearer${token}`,
    `Basic ${Buffer.from(`:${token}`).toString('base64')}`,
    token,
  ];
  for (const path of [...API, `/api/look?actor=server&token=${token}`])
    for (const authorization of wrong) {
      const headers = {
        ...(authorization === undefined ? {} : { Authorization: authorization }),
        Cookie: `token=${token}`,
      };
      const { status, body } = await ask(port, { path, headers });
      assert.is(status, 401, `${path} ${authorization}`);
      assert.not.ok(body.includes('shown') || body.includes(token));
    }
  for (const path of ['/api/control', '/api/what-if', '/api/focus', '/api/looks'])
    assert.is((await ask(port, { path, method: 'POST', body: '{}' })).status, 401, path);
  await server.close();
});

test('S-31 CVE-2025-49596 a name that was led here by a name server is refused on every route, files too', async () => {
  const { server, port, get } = await opened();
  const hosts = [
    'evil.example',
    `evil.example:${port}`,
    '127.0.0.1',
    `127.0.0.1:${port + 1}`,
    `127.0.0.1.evil.example:${port}`,
    `localhost.evil.example:${port}`,
    `127.0.0.2:${port}`,
    `0.0.0.0:${port}`,
    `localhost:${port}.`,
    `me@127.0.0.1:${port}`,
    `[::ffff:127.0.0.1]:${port}`,
    '',
  ];
  for (const path of ['/', '/assets/x.js', '/nothing', ...API])
    for (const Host of hosts) assert.is((await get(path, { headers: { Host } })).status, 421, `${path} ${Host}`);
  for (const Host of [`localhost:${port}`, `[::1]:${port}`, `LOCALHOST:${port}`])
    assert.is((await get('/api/look?actor=server', { headers: { Host } })).status, 200, Host);
  // Two of them, and a whole address in place of a path.
  const twice = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nHost: evil.example\r\nConnection: close\r\n\r\n`;
  assert.ok([400, 421].includes((await raw(port, twice)).status));
  assert.is((await get('http://evil.example/')).status, 421);
  await server.close();
});

test('S-31 another page may neither ask nor load anything', async () => {
  const { server, port, get } = await opened();
  const origins = [
    'https://evil.example',
    'null',
    `http://127.0.0.1:${port + 1}`,
    `https://127.0.0.1:${port}`,
    'file://',
  ];
  for (const path of ['/', ...API]) {
    for (const Origin of origins)
      assert.is((await get(path, { headers: { Origin } })).status, 403, `${path} ${Origin}`);
    for (const site of ['cross-site', 'same-site', 'sideways'])
      assert.is((await get(path, { headers: { 'Sec-Fetch-Site': site } })).status, 403, `${path} ${site}`);
  }
  for (const site of ['same-origin', 'none'])
    assert.is((await get('/api/look?actor=server', { headers: { 'Sec-Fetch-Site': site } })).status, 200);
  const own = await get('/api/look?actor=server', { headers: { Origin: `http://127.0.0.1:${port}` } });
  assert.is(own.status, 200);
  assert.is(own.headers['access-control-allow-origin'], undefined);
  await server.close();
});

test('S-31 CVE-2025-58444 every answer forbids what is not its own: scripts, styles, frames, types', async () => {
  const { server, port, get } = await opened();
  const answers = [
    await get('/'),
    await get('/nothing'),
    await get('/api/look?actor=server'),
    await ask(port, { path: '/api/look' }),
    await get('/', { headers: { Host: 'evil.example' } }),
    await get('/', { method: 'DELETE' }),
  ];
  for (const { headers } of answers) {
    const policy = headers['content-security-policy'] ?? '';
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"])
      assert.ok(policy.split('; ').includes(part), part);
    for (const part of ["frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"])
      assert.ok(policy.split('; ').includes(part), part);
    assert.match(policy, /require-trusted-types-for 'script'/);
    assert.not.match(policy, /unsafe|\*|http/);
    assert.is(headers['x-content-type-options'], 'nosniff');
    assert.is(headers['referrer-policy'], 'no-referrer');
    assert.is(headers['cross-origin-opener-policy'], 'same-origin');
    assert.is(headers['cross-origin-resource-policy'], 'same-origin');
    assert.is(headers['set-cookie'], undefined);
  }
  await server.close();
});

test('views of several actors come together, without contexts and without those that do not exist', async () => {
  const { server, post } = await opened();
  const actors = ['server', 'nobody', ...Array.from({ length: 200 }, () => 'registry/tools')];
  const { status, body } = await post('/api/looks', JSON.stringify({ actors }));
  assert.is(status, 200);
  const views: readonly object[] = JSON.parse(body);
  assert.is(views.length, 63, 'at most 64 actors, of which one does not exist');
  assert.equal(
    views.slice(0, 2).map((view) => Object(view).actor),
    ['server', 'registry/tools'],
  );
  assert.not.ok(views.some((view) => 'context' in view));
  assert.is((await post('/api/looks', '{"actors": 3}')).status, 400);
  await server.close();
});

test('S-31 only GET, HEAD and POST are understood, and POST with JSON of at most 1 MB', async () => {
  const { server, get, post } = await opened();
  for (const method of ['PUT', 'DELETE', 'OPTIONS', 'PATCH', 'PROPFIND'])
    assert.is((await get('/api/look?actor=server', { method })).status, 405, method);
  assert.is((await get('/api/focus')).status, 405);
  assert.is((await post('/', '{}')).status, 405);
  assert.is((await post('/api/look?actor=server', '{}')).status, 405);
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])
    assert.is((await post('/api/focus', '{}', { headers: { 'Content-Type': type } })).status, 415, type);
  assert.is((await post('/api/focus', '{')).status, 400);
  assert.is((await post('/api/focus', `"${'x'.repeat(1024 * 1024)}"`)).status, 413);
  const chunked = { 'Transfer-Encoding': 'chunked', 'Content-Length': null, 'Content-Type': 'application/json' };
  const chunk = `${(600_000).toString(16)}\r\n${'1'.repeat(600_000)}\r\n`;
  const { status } = await get('/api/focus', { method: 'POST', headers: chunked, body: `${chunk}${chunk}0\r\n\r\n` });
  assert.is(status, 413);
  const large = await get('/', { headers: { 'X-Large': 'x'.repeat(20_000) } });
  assert.is(large.status, 431);
  await server.close();
});

test('S-31 a file that was not built is not there, whatever its path is', async () => {
  const { server, get } = await opened();
  const paths = [
    '/../package.json',
    '/..%2fpackage.json',
    '/assets/../../package.json',
    '//etc/passwd',
    '/%00',
    '/export.html',
  ];
  for (const path of paths) {
    const { status, body } = await get(path);
    assert.ok(status === 404 || status === 503, `${path}: ${status}`);
    assert.not.match(body, /"dependencies"/);
  }
  await server.close();
});

test('S-31 CVE-2026-23744 it is bound to this machine only, and there is no option for more', async () => {
  const { server, port } = await opened();
  for (const address of Object.values(networkInterfaces()).flatMap((each) => each ?? [])) {
    if (address.internal || address.family !== 'IPv4') continue;
    const answered = await new Promise<boolean>((done) => {
      const socket = connectSocket({ port, host: address.address, timeout: 500 }, () => done(true));
      socket.on('error', () => done(false)).on('timeout', () => done(false));
      socket.on('connect', () => socket.destroy());
    });
    assert.is(answered, false, address.address);
  }
  const other = createServer({ name: 'other', version: '1.0.0', ...quiet });
  // @ts-expect-error: as JavaScript may call it
  await assertRejects(openInspector({}), /expected a server from createServer/);
  await assertRejects(openInspector(other, { port }), /port \d+ is in use/);
  await other.close();
  await server.close();
});

test('the token is another at each start, of 256 bits; given with a port, it is the same again', async () => {
  const one = await opened();
  const two = await opened();
  assert.not.equal(one.token, two.token);
  assert.ok(Buffer.from(one.token, 'base64url').length === 32);
  assert.ok(new URL(one.inspector.url).search === '');
  await one.server.close();
  await two.server.close();
  const again = await opened({ port: one.port, token: one.token });
  assert.is(again.inspector.url, one.inspector.url);
  await again.server.close();
});

test('S-31 more viewers than the limit are refused, and the streams of the others go on', async () => {
  const { server, get, stream } = await opened({ maxViewers: 2 });
  const streams = [stream('viewer=a'), stream('viewer=b')];
  await until(() => streams.every(({ got }) => got.text.includes('"hello"')), 'two hellos');
  const refused = await get('/api/stream?viewer=c');
  assert.is(refused.status, 503);
  assert.match(refused.body, /2 viewers are connected/);
  // The same viewer again takes the place of its earlier stream.
  const again = stream('viewer=b');
  await until(() => again.got.text.includes('"hello"'), 'a hello');
  await until(() => streams[1]?.got.text.endsWith('0\r\n\r\n') === true, 'the end of the earlier stream');
  for (const { end } of [...streams, again]) end();
  await server.close();
});

test('S-29 a secret in the arguments of a tool is in no frame, look, recording or export', async () => {
  const { server, get, post, stream } = await opened({ control: true });
  const secret = 'hunter2-zq7wx';
  const { got, end } = stream();
  await until(() => got.text.includes('"hello"'), 'a hello');
  await post('/api/focus', { viewer: 'v1', actors: ['server', 'executor/tools'] });
  const client = await connect(server);
  await client.initialize();
  const args = { user: 'ada', password: secret, nested: [{ apiKey: secret }], note: `Bearer ${secret}` };
  const { content } = await client.call('echo', args);
  assert.match(JSON.stringify(content), secret);
  const controlled = await post('/api/control', { action: 'call', tool: 'echo', arguments: args });
  assert.is(controlled.status, 200);
  await until(() => got.text.includes('"control"') && got.text.split('"direction":"out"').length > 3, 'all records');
  const texts = [got.text, controlled.body, (await get('/api/recording')).body, (await get('/api/export')).body];
  for (const text of texts) assert.not.ok(text.includes(secret));
  assert.ok(got.text.includes('ada') && got.text.includes('«redacted»'));
  end();
  await client.close();
  await server.close();
});

test('S-29 no viewer receives the id of a session over HTTP, which is the key to it', async () => {
  const { server, get, post, stream } = await opened();
  const { got, end } = stream();
  await until(() => got.text.includes('"hello"'), 'a hello');
  const transport = http({ port: 0 });
  await server.listen(transport);
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const send = (message: object, more: Record<string, string> = {}) =>
    fetch(transport.url, {
      method: 'POST',
      headers: { ...headers, ...more },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
  const clientInfo = { name: 'web', version: '1.0.0' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const opening = await send({ id: 1, method: 'initialize', params });
  const id = opening.headers.get('mcp-session-id') ?? '';
  assert.ok(id.length > 20);
  const own = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' };
  await (await send({ method: 'notifications/initialized' }, own)).text();
  await (await send({ id: 2, method: 'tools/call', params: { name: 'echo', arguments: {} } }, own)).text();
  await until(() => /"label":"web 1\.0\.0"/.test(got.text) && got.text.includes('"tools/call"'), 'its records');
  const session = /"actor":"(session\/[^"]+)"/.exec(got.text)?.[1] ?? '';
  await post('/api/focus', { viewer: 'v1', actors: [session] });
  await until(() => got.text.includes('"look"'), 'a look');
  const texts = [got.text, (await get('/api/recording')).body, (await get(`/api/look?actor=${session}`)).body];
  for (const text of texts) assert.not.ok(text.includes(id));
  end();
  await server.close();
});

test('S-34 control is refused where the inspector was opened without it', async () => {
  const { server, post } = await opened();
  const { status, body } = await post('/api/control', { action: 'close', connection: 'c' });
  assert.is(status, 403);
  assert.match(body, /Open it with control/);
  await server.close();
});

test('a server that closes says goodbye, and an inspector that closes leaves the server alone', async () => {
  const { server, inspector, port, stream } = await opened();
  const first = stream();
  await until(() => first.got.text.includes('"hello"'), 'a hello');
  await inspector.close();
  await until(() => !first.got.open || first.got.text.includes('"bye"'), 'a goodbye');
  assert.ok(first.got.text.includes('"bye"'));
  await assertRejects(ask(port), /ECONNREFUSED|ECONNRESET/);
  const client = await connect(server);
  await client.call('echo');
  await client.close();
  const { port: next } = new URL((await openInspector(server)).url);
  await server.close();
  await assertRejects(ask(Number(next)), /ECONNREFUSED|ECONNRESET/);
  assert.is(server[INTERNALS].inspection.on, false);
});

test('a wrong request is answered with the expected form', async () => {
  const { server, get, post } = await opened({ control: true });
  const cases: [Promise<{ status: number; body: string }>, number, RegExp][] = [
    [get('/api/stream'), 400, /viewer: expected/],
    [get('/api/stream?viewer=a%20b'), 400, /viewer: expected/],
    [get('/api/stream?viewer=a&since=x'), 400, /since: expected/],
    [get('/api/look'), 400, /actor: expected/],
    [get('/api/look?actor=nobody'), 404, /no live actor/],
    [get('/api/nothing'), 404, /unknown path/],
    [post('/api/focus', { viewer: 'v', actors: [] }), 404, /Open its stream first/],
    [post('/api/focus', { viewer: 'v', actors: 'x' }), 400, /actors: expected/],
    [post('/api/what-if', { actor: 'server', event: {} }), 400, /event: expected/],
    [post('/api/what-if', { actor: 'executor/tools', event: { type: 'x' } }), 404, /actor with a statechart/],
    [post('/api/control', []), 400, /expected an object with an action/],
    [post('/api/control', { action: 'dance' }), 400, /action: expected/],
    [
      post('/api/control', { action: 'send', actor: 'server', event: { type: 'xstate.stop' } }),
      400,
      /XState sends its own/,
    ],
    [post('/api/control', { action: 'send', actor: 'nobody', event: { type: 'x' } }), 404, /no live actor/],
    [post('/api/control', { action: 'close', connection: 'none' }), 404, /no open connection/],
    [post('/api/control', { action: 'call', tool: 1 }), 400, /tool: expected/],
  ];
  for (const [answer, status, words] of cases) {
    const { status: got, body } = await answer;
    assert.is(got, status, body);
    assert.match(body, words);
  }
  await server.close();
});

test('the port of another program is not mistaken for that of the inspector', async () => {
  const other = createHttpServer();
  const port = await new Promise<number>((done) => {
    other.listen(0, '127.0.0.1', () => {
      const address = other.address();
      done(typeof address === 'object' && address ? address.port : 0);
    });
  });
  const server = createServer({ name: 'late', version: '1.0.0', ...quiet });
  await assertRejects(openInspector(server, { port }), /is in use/);
  other.close();
  await server.close();
});

test('the entry of a client keeps the place of its token, and no secret', async () => {
  const text = 'claude mcp add shop --header "Authorization: Bearer TOKEN" --env API_KEY=zq7wxk3v9zq7wxk3v9';
  const server = createServer({ name: 'shop', version: '1.0.0' });
  const connect = () => ({ note: 'Connect.', ways: [{ client: 'Claude Code', text }] });
  const { url } = await openInspector(server, { connect });
  const { origin, hash } = new URL(url);
  const headers = { authorization: `Bearer ${hash.slice(1)}` };
  const stream = await fetch(`${origin}/api/stream?viewer=v`, { headers });
  const reader = stream.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  const hello = new TextDecoder().decode(value);
  assert.match(hello, /Authorization: Bearer TOKEN/);
  assert.not.match(hello, /zq7wxk3v9/);
  await reader?.cancel();
  await server.close();
});
