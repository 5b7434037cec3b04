/** The configurations of nginx and Caddy in examples/deploy: a real proxy passes streams as they come, for long, with their headers. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, createServer as nodeServer, request as send } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { createServer, http } from '../../../src/index.ts';
import { EventReader } from '../../core/http/sse.ts';
import { suite } from '../../harness/door.ts';
import { freePort } from '../../harness/free-port.ts';
import { SCALE } from '../../harness/scale.ts';
import { elapse } from '../../harness/wait.ts';

const test = suite('proxies');
const recipe = (file: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../examples/deploy/${file}`, import.meta.url)), 'utf8');
const nodesConf = fileURLToPath(new URL('../../../examples/nodes/nginx.conf', import.meta.url));
const temporary = mkdtempSync(join(tmpdir(), 'troupe-proxies-'));
const stops: (() => void)[] = [];
const stopAll = (): void => {
  for (const stop of stops.splice(0)) stop();
};
process.on('exit', stopAll);
test.after(() => {
  stopAll();
  rmSync(temporary, { recursive: true, force: true });
});

const has = (command: string, arg: string): boolean => spawnSync(command, [arg]).status === 0;

/** Replaces a part of a recipe. @throws {Error} if the recipe does not have it, so that a test never changes more than it says */
function replaced(text: string, part: string, by: string): string {
  if (text.split(part).length !== 2) throw new Error(`expected "${part}" once in the recipe`);
  return text.replace(part, () => by);
}

/** Starts nginx with the recipe, without TLS, on this port. */
function startNginx(port: number, upstream: number): void {
  let site = replaced(recipe('nginx.conf'), 'listen 443 ssl http2;', `listen 127.0.0.1:${port};`);
  site = replaced(site, 'server 127.0.0.1:3000;', `server 127.0.0.1:${upstream};`);
  site = site.replace(/^ *ssl_.*\n/gm, '');
  const conf = nginxConf('nginx', site);
  // It returns once it listens.
  const started = spawnSync('nginx', ['-p', temporary, '-c', conf], { encoding: 'utf8' });
  assert.is(started.status, 0, started.stderr);
  const pid = Number(readFileSync(join(temporary, 'nginx.pid'), 'utf8'));
  stops.push(() => process.kill(pid, 'SIGTERM'));
}

function nginxConf(name: string, site: string): string {
  const conf = join(temporary, `${name}.conf`);
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (each) => `${each}_temp_path ${temporary}/${each};`,
  );
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  writeFileSync(
    conf,
    `${user} worker_processes 1; pid ${temporary}/${name}.pid; error_log ${temporary}/${name}.log;
     events {} http { access_log off; ${temp.join(' ')}\n${site}\n}`,
  );
  return conf;
}

/** Starts Caddy with the recipe, without TLS, on this port. */
async function startCaddy(port: number, upstream: number): Promise<void> {
  let site = replaced(recipe('Caddyfile'), 'mcp.example.com {', `http://mcp.example.com:${port} {\n\tbind 127.0.0.1`);
  site = replaced(site, '127.0.0.1:3000', `127.0.0.1:${upstream}`);
  const file = join(temporary, 'Caddyfile');
  writeFileSync(file, `{\n\tadmin off\n\tauto_https off\n}\n${site}`);
  const env = { ...process.env, XDG_DATA_HOME: temporary, XDG_CONFIG_HOME: temporary };
  const caddy = spawn('caddy', ['run', '--adapter', 'caddyfile', '--config', file], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  stops.push(() => caddy.kill('SIGTERM'));
  let said = '';
  await new Promise<void>((resolve, reject) => {
    caddy.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('serving initial configuration')) resolve();
    });
    caddy.once('exit', () => reject(new Error(said)));
  });
}

interface Reply {
  readonly request: ClientRequest;
  readonly response: IncomingMessage;
}

const TOKEN = 'Bearer of-ada';

/** A client of the proxy, by the public name. */
function ask(port: number, headers: Record<string, string>, body?: string, path = '/mcp'): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST';
    const common = { host: 'mcp.example.com', authorization: TOKEN, 'content-type': 'application/json' };
    const accept = body === undefined ? 'text/event-stream' : 'application/json, text/event-stream';
    const request = send({
      port,
      host: '127.0.0.1',
      path,
      method,
      agent: false,
      headers: { ...common, accept, ...headers },
    });
    request.once('response', (response) => resolve({ request, response }));
    request.once('error', reject);
    request.end(body);
  });
}

async function status(port: number, path: string, body?: string): Promise<number | undefined> {
  const { response } = await ask(port, {}, body, path);
  response.resume();
  return response.statusCode;
}

const message = (method: string, params: object, id?: number): string =>
  JSON.stringify({ jsonrpc: '2.0', ...(id === undefined ? {} : { id }), method, params });
const call = (id: number, name: string): string =>
  message('tools/call', { name, arguments: {}, _meta: { progressToken: name } }, id);

const LONG = 2_000;
/** Longer than the 60 seconds after which nginx gives up by default. */
const SILENT_MS = 65_000;

async function proxied(start: (port: number, upstream: number) => void | Promise<void>): Promise<void> {
  /** The headers of each request, as the server got them. */
  const seen: Record<string, string | undefined>[] = [];
  let release = (): void => {};
  const server = createServer({ name: 's', version: '1', log: () => {}, limits: { timeoutMs: 2 * SILENT_MS } });
  server.tool('gated', async (_, ctx) => {
    ctx.progress(1);
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    ctx.progress(2);
    return 'gated';
  });
  server.tool('long', async (_, ctx) => {
    for (let n = 1; n <= LONG; n += 1) {
      ctx.progress(n, LONG, 'm'.repeat(500));
      if (n % 50 === 0) await new Promise(setImmediate);
    }
    return 'long';
  });
  server.tool('silent', async (_, ctx) => {
    ctx.progress(1);
    await elapse(SILENT_MS, 'the silence');
    return 'silent';
  });
  const transport = http({
    port: 0,
    allowedHosts: ['mcp.example.com'],
    keepAliveMs: 600_000,
    maxReplayEvents: LONG * 2,
    maxReplayBytes: 16 * 1024 * 1024,
    authenticate({ header }) {
      const names = ['host', 'authorization', 'mcp-session-id', 'mcp-protocol-version', 'last-event-id'];
      seen.push(Object.fromEntries(names.map((name) => [name, header(name)])));
      return header('authorization') === TOKEN ? 'ada' : undefined;
    },
  });
  await server.listen(transport);
  stops.push(() => void server.close());
  const port = await freePort();
  await start(port, Number(new URL(transport.url).port));

  const opened = await ask(
    port,
    {},
    message(
      'initialize',
      { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
      0,
    ),
  );
  assert.is(opened.response.statusCode, 200);
  opened.response.resume();
  const session = String(opened.response.headers['mcp-session-id']);
  const headers = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' };
  (await ask(port, headers, message('notifications/initialized', {}))).response.resume();

  // Unbuffered: the handler continues only after its first event has arrived.
  const gated = await ask(port, headers, call(1, 'gated'));
  const first = new EventReader(gated.response);
  let event = await first.next();
  while (!event.data) event = await first.next();
  assert.match(event.data, '"progress":1');
  // A client that was cut off resumes: Last-Event-ID passes, too.
  gated.request.destroy();
  release();
  const resumed = await ask(port, { ...headers, 'last-event-id': event.id ?? '' });
  assert.is(resumed.response.statusCode, 200);
  const rest = new EventReader(resumed.response);
  assert.match((await rest.next()).data ?? '', '"progress":2');
  assert.match((await rest.next()).data ?? '', '"text":"gated"');
  resumed.request.destroy();
  assert.equal(seen.at(-1), {
    ...{ host: 'mcp.example.com', authorization: TOKEN, 'mcp-session-id': session },
    ...{ 'mcp-protocol-version': '2025-11-25', 'last-event-id': event.id },
  });

  // A megabyte of events: all of them, in order.
  const long = await ask(port, headers, call(2, 'long'));
  const events = (await new EventReader(long.response).rest()).flatMap(({ data }) => data || []);
  const counted = events.map((data) => /"progress":(\d+)/.exec(data)?.[1]).filter((n) => n !== undefined);
  assert.is(events.length, counted.length + 1);
  assert.equal(
    counted,
    [...counted].sort((a, b) => Number(a) - Number(b)),
  );
  assert.is(counted.at(-1), String(LONG));
  assert.match(events.at(-1) ?? '', '"text":"long"');

  if (SCALE !== 'quick') {
    const silent = await ask(port, headers, call(3, 'silent'));
    const late = await new EventReader(silent.response).rest(SILENT_MS + 20_000);
    assert.match(late.at(-1)?.data ?? '', '"text":"silent"');
  }

  // Only the endpoint is public, and a token of another is the server's to reject.
  for (const path of ['/healthz', '/readyz', '/metrics', '/']) assert.is(await status(port, path), 404, path);
  // The server rejects a long body before it is sent. Caddy may report that as 502, because it was still sending, or end the
  // connection on which this client is still sending.
  const tooLong = await status(port, '/mcp', `"${'x'.repeat(4 * 1024 * 1024)}"`).catch(({ code }) => code);
  assert.ok([413, 502, 'ECONNRESET', 'EPIPE'].includes(tooLong), String(tooLong));
  const { response } = await ask(port, { authorization: 'Bearer of-eve' }, message('ping', {}, 9));
  response.resume();
  assert.is(response.statusCode, 401);
  await server.close();
}

/** Starts nginx with the recipe for nodes at these ports. */
function startBalancer(name: string, port: number, nodes: readonly number[], change: (site: string) => string): void {
  let site = replaced(change(readFileSync(nodesConf, 'utf8')), 'listen 80;', `listen 127.0.0.1:${port};`);
  nodes.forEach((node, index) => {
    site = replaced(site, `server node-${index + 1}:3000 `, `server 127.0.0.1:${node} `);
  });
  const started = spawnSync('nginx', ['-p', temporary, '-c', nginxConf(name, site)], { encoding: 'utf8' });
  assert.is(started.status, 0, started.stderr);
  const pid = Number(readFileSync(join(temporary, `${name}.pid`), 'utf8'));
  stops.push(() => process.kill(pid, 'SIGTERM'));
}

/** A node dies of the first arrival of each request; the next node answers. */
async function sentAgain(): Promise<void> {
  const arrived: string[] = [];
  const nodes = nodeServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const first = !arrived.includes(body);
    arrived.push(body);
    if (first) request.socket.destroy();
    else response.writeHead(200).end();
  });
  await new Promise<void>((resolve) => nodes.listen(0, '127.0.0.1', resolve));
  stops.push(() => nodes.close());
  const address = nodes.address();
  const node = typeof address === 'object' && address ? address.port : 0;
  const port = await freePort();
  // All nodes are one server here, which must not be left out.
  startBalancer('again', port, [node, node, node], (site) => site.replaceAll('max_fails=1', 'max_fails=0'));
  const session = { 'mcp-session-id': 'Ab.of-ada' };
  const modern = (method: string) => ({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': method });
  const kinds: readonly (readonly [string, Record<string, string>, string, boolean])[] = [
    ['a call in a session', session, '/mcp', true],
    ['initialize', {}, '/mcp', true],
    ['a read of 2026-07-28', modern('resources/read'), '/mcp', true],
    ['tasks/cancel of 2026-07-28', modern('tasks/cancel'), '/mcp', true],
    ['a call of 2026-07-28', modern('tools/call'), '/mcp', false],
    ['a call of 2026-07-28 that names a session', { ...modern('tools/call'), ...session }, '/mcp', false],
    ['a message of 2024-11-05', {}, '/mcp?sessionId=Ab.of-ada', false],
  ];
  for (const [kind, headers, path, again] of kinds) {
    arrived.length = 0;
    const { response } = await ask(port, headers, kind, path);
    response.resume();
    assert.equal([response.statusCode, arrived.length], again ? [200, 2] : [502, 1], kind);
  }
}

/** A request goes to the only node that listens, and a stream passes as it comes. */
async function balanced(): Promise<void> {
  const server = createServer({ name: 's', version: '1', log: () => {} });
  server.tool('gated', () => 'gated');
  const transport = http({ port: 0, allowedHosts: ['mcp.example.com'] });
  await server.listen(transport);
  stops.push(() => void server.close());
  const [port, down, alsoDown] = [await freePort(), await freePort(), await freePort()];
  startBalancer('nodes', port, [down, Number(new URL(transport.url).port), alsoDown], (site) => site);
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  for (let id = 1; id <= 6; id += 1)
    assert.is(await status(port, '/mcp', message('initialize', params, id)), 200, `request ${id}`);
  for (const path of ['/healthz', '/readyz', '/metrics', '/']) assert.is(await status(port, path), 404, path);
  await server.close();
}

if (has('nginx', '-v')) {
  test('nginx of examples/nodes passes each request to a node that listens', balanced);
  test(
    'nginx of examples/nodes sends a request to another node if the first one dies, unless it may run twice',
    sentAgain,
  );
  test('nginx accepts its configuration', () => {
    const [key, certificate] = [join(temporary, 'key'), join(temporary, 'certificate')];
    const made = spawnSync('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
      ...['-subj', '/CN=mcp.example.com', '-keyout', key, '-out', certificate],
    ]);
    if (made.error) return console.error('no openssl here: the configuration of TLS is not checked');
    let site = replaced(recipe('nginx.conf'), '/etc/ssl/mcp.example.com.pem', certificate);
    site = replaced(site, '/etc/ssl/mcp.example.com.key', key);
    const checked = spawnSync('nginx', ['-t', '-p', temporary, '-c', nginxConf('checked', site)], { encoding: 'utf8' });
    assert.is(checked.status, 0, checked.stderr);
    assert.not.match(checked.stderr, 'warn');
  });
  test('nginx passes streams as they come, resumed and long ones, and the headers', () => proxied(startNginx));
} else test.skip('nginx passes streams', 'no nginx here');

if (has('caddy', 'version')) {
  test('Caddy accepts its configuration', () => {
    const file = join(temporary, 'recipe');
    writeFileSync(file, recipe('Caddyfile'));
    const env = { ...process.env, XDG_DATA_HOME: temporary, XDG_CONFIG_HOME: temporary };
    const checked = spawnSync('caddy', ['validate', '--adapter', 'caddyfile', '--config', file], {
      encoding: 'utf8',
      env,
    });
    assert.is(checked.status, 0, checked.stderr);
    assert.not.match(checked.stderr, 'not formatted');
  });
  test('Caddy passes streams as they come, resumed and long ones, and the headers', () => proxied(startCaddy));
} else test.skip('Caddy passes streams', 'no caddy here');
