/**
 * Every option of `createServer`, however the server is started: one program that has them all, each way to serve it, one table.
 * Each way is a process, because the program blocks it and throws late.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import type { SharedHttpOptions } from '../../src/core/http/http-options.ts';
import { isObject } from '../../src/core/protocol/json.ts';
import type { ServerOptions } from '../../src/core/server/options.ts';
import { KeyRing } from '../../src/core/store/seal.ts';
import { createServer, defineMachine, definePrompt } from '../../src/index.ts';
import { connect } from '../../src/testing/testing.ts';
import { Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { until } from '../harness/wait.ts';
import { Cli, TROUPE } from './cli.ts';

const all = suite('every option of createServer');

type Result = Readonly<Record<string, unknown>>;

const SECRET = 'a secret of this test, long enough';

/** One value for each option. A type, so that a new option is missing here before anything runs. */
const PROGRAM = `import { appendFileSync } from 'node:fs';
import { createServer, defineResource, defineTool, http, sqlite } from '${TROUPE}';
import { oauth } from '${TROUPE.replace(/index(?=\.\w+$)/, 'oauth')}';
const here = new URL('.', import.meta.url).pathname;
let looks = 0;
let traced = 0;
let approval = 'none';
const clock = {
  now: () => { looks += 1; return performance.now(); },
  date: () => Date.now(),
  after(ms, callback) { const timer = setTimeout(callback, ms); timer.unref(); return { cancel: () => clearTimeout(timer) }; },
  hold() { const timer = setInterval(() => {}, 1e9); return { cancel: () => clearInterval(timer) }; },
  soon: (callback) => void setImmediate(callback),
};
const guard = oauth({ resource: 'https://mcp.example.com/mcp', issuer: 'https://login.example.com', scopes: ['orders:read'] });
export const server = createServer({
  name: 'optioned',
  version: '9.8.7',
  title: 'Optioned',
  description: 'Has every option',
  icons: [{ src: 'https://example.com/icon.png' }],
  websiteUrl: 'https://example.com/',
  instructions: 'Use it well.',
  executors: {
    tools: (inner) => ({
      execute: (call, ctx) =>
        call.tool.name === 'plain' ? { content: [{ type: 'text', text: 'executed' }] } : inner.execute(call, ctx),
    }),
  },
  offers: ['prompts'],
  experimental: { 'example.com/x': {} },
  extensions: { 'com.example/ext': {} },
  listTtlMs: 4_321,
  limits: { pageSize: 3 },
  http: {
    auth: {
      ...{ documents: guard.documents, resourceMetadata: guard.resourceMetadata, challenge: (scopes) => guard.challenge(scopes) },
      // Without an issuer that anybody could ask, the name itself is a token.
      authenticate(request) {
        const [, principal] = /^Bearer (\\w+)$/.exec(request.header('authorization') ?? '') ?? [];
        return principal ? { auth: { principal, scopes: [], claims: {} } } : guard.authenticate(request);
      },
    },
    allowedHosts: ['mcp.example.com'],
    allowedOrigins: ['https://app.example.com'],
    allowedHeaders: ['X-Api-Key'],
    response: 'sse',
    rate: { perSecond: 0.001, burst: 60 },
    maxExchangesPerPrincipal: 2,
    retryMs: 4_567,
  },
  tools: [defineTool({ name: 'given', handler: () => 'in a list' })],
  resources: [defineResource({ uri: 'given://1', handler: () => 'in a list' })],
  keys: ['${SECRET}'],
  askThroughModel: true,
  store: sqlite(here + 'own.db'),
  watchdog: { softMs: 100 },
  afterLateError: 'restart',
  errors: 'masked',
  audit: { to: here + 'audit.jsonl' },
  log: (level, message) => appendFileSync(here + 'log.txt', level + ': ' + message + '\\n'),
  telemetry: { begin: () => void (traced += 1), ask: () => undefined, session() {} },
  onApproval: ({ state }) => void (approval = state),
  features: [
    {
      name: 'of the program',
      open({ stages }) {
        const own = { content: [{ type: 'text', text: 'by a feature' }] };
        stages.fill('mode', ({ call }, next) => (call.tool.name === 'featured' ? own : next()));
        return { service: undefined };
      },
    },
  ],
  clock,
});
server.tool('featured', {}, () => 'by no feature');
server.tool('held', { approve: { by: { scope: 'ops' } } }, () => 'held');
server.tool('approval', {}, () => approval);
server.tool('plain', {}, () => 'not executed');
server.tool('looks', {}, () => String(looks));
server.tool('fail', {}, () => { throw new Error('disk full'); });
server.tool('traced', {}, () => String(traced));
server.tool('pid', {}, () => String(process.pid));
server.tool('who', {}, (_, ctx) => ctx.principal);
server.tool('refund', { scopes: ['orders:refund'] }, () => 'refunded');
server.tool('ask', {}, async (_, ctx) => (await ctx.elicit({ message: 'Well?', schema: { type: 'object', properties: {} } })).status);
server.tool('block', {}, () => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400); return 'done'; });
server.tool('late', {}, () => { setTimeout(() => { throw new Error('too late'); }, 1); return String(process.pid); });
server.tool('wait', {}, (_, ctx) => new Promise((resolve) => ctx.signal.addEventListener('abort', () => resolve('gone'))));
server.tool('leave', {}, (_, ctx) => { ctx.closeStream(); return new Promise((resolve) => setTimeout(resolve, 1, 'left')); });
`;

/** Serves the program without the command. */
const HOST = `import { createServer as listen } from 'node:http';
import { Readable } from 'node:stream';
import { server } from './server.mjs';
const [way] = process.argv.slice(2);
const bodyOf = async (request) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
};
const ways = {
  node: (request, response) => server.node(request, response),
  async fetch(request, response) {
    const body = request.method === 'POST' ? await bodyOf(request) : undefined;
    const answer = await server.fetch(new Request('http://' + request.headers.host + request.url, { method: request.method, headers: request.headers, body }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.flushHeaders();
    if (!answer.body) return void response.end();
    const stream = Readable.fromWeb(answer.body);
    response.on('close', () => stream.destroy());
    stream.on('error', () => {}).pipe(response);
  },
};
const listener = listen(ways[way]).listen(0, '127.0.0.1', () => console.error('at http://127.0.0.1:' + listener.address().port + '/mcp;'));
`;

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Closes it, where it has not ended. */
  drop(): void;
}

interface Asked {
  /** Default: POST to the endpoint, GET at a path. */
  readonly method?: 'OPTIONS';
  /** Asks for a document at this path, instead of the endpoint. */
  readonly path?: string;
  readonly principal?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Resolves when the headers have come. */
  readonly headOnly?: boolean;
}

/** The program, served. */
interface Served {
  readonly folder: string;
  /** A request in a session of 2025-11-25. */
  session(method: string, params?: object): Promise<Result>;
  /** A request of 2026-07-28, whose client can be asked to fill in a form. */
  modern(method: string, params?: object): Promise<Result>;
  /** Over HTTP. */
  readonly post?: (asked: Asked) => Promise<Reply>;
  /** What `afterLateError: 'restart'` comes to: `none` where the process is not the server's own. */
  readonly late: 'another process' | 'exit code 70' | 'none';
  readonly process: { readonly exit: Promise<number | null> };
  /** It listens on loopback by itself: then loopback names pass beside those of `allowedHosts`. */
  readonly ownPort: boolean;
  end(): Promise<void>;
}

const INITIALIZE = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'options-test', version: '1.0.0' },
};
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
};

function resultOf(message: unknown, what: string): Result {
  const result = isObject(message) ? message.result : undefined;
  if (!isObject(result)) throw new Error(`${what}: ${JSON.stringify(message)}`);
  return result;
}

function textOf({ content }: Result): string {
  return Array.isArray(content) ? content.map(({ text }: { text?: unknown }) => String(text)).join() : '';
}

function logOf({ folder }: Served): string {
  const file = join(folder, 'log.txt');
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

function tree(end: string): Tree {
  return new Tree({ 'package.json': '{ "type": "module" }', 'server.mjs': `${PROGRAM}${end}\n`, 'host.mjs': HOST });
}

/** Over stdin and stdout of the command. */
async function overStdio(
  { path: folder }: Tree,
  args: readonly string[],
  late: Served['late'],
  end: () => Promise<void> = async () => {},
): Promise<Served> {
  const cli = new Cli(args, { cwd: folder });
  const initialized = await cli.initialize();
  return {
    folder,
    session: async (method, params) => (method === 'initialize' ? initialized : cli.request(method, params)),
    modern: (method, params) => cli.request(method, { ...params, _meta: META }),
    late,
    process: cli,
    ownPort: false,
    async end() {
      await cli.end();
      await end();
    },
  };
}

/** Over HTTP, wherever a process says it is. */
async function overHttp(
  { path: folder }: Tree,
  process: { readonly child: ChildProcess; readonly exit: Promise<number | null>; url(): Promise<string> },
  late: Served['late'],
  ownPort: boolean,
): Promise<Served> {
  const url = new URL(await process.url());
  let id = 0;
  let session: string | undefined;
  const post = ({ method, path, principal, headers, body, headOnly = false }: Asked): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const request = httpRequest(path === undefined ? url : new URL(path, url), {
        method: method ?? (path === undefined ? 'POST' : 'GET'),
        agent: false,
        headers: {
          host: ownPort ? url.host : 'mcp.example.com',
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...(principal === undefined ? {} : { authorization: `Bearer ${principal}` }),
          ...headers,
        },
      });
      request.on('error', reject).on('response', (response) => {
        const { statusCode: status = 0, headers } = response;
        const drop = (): void => void response.destroy();
        if (headOnly) resolve({ status, headers, text: '', drop });
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', () => {}).on('end', () => resolve({ status, headers, text, drop }));
      });
      if (path !== undefined || method !== undefined) request.end();
      else request.end(JSON.stringify(body ?? modernBody('tools/call', { name: 'who', arguments: {} })));
    });
  const modernBody = (method: string, params: object = {}): object => {
    id += 1;
    return { jsonrpc: '2.0', id, method, params: { ...params, _meta: META } };
  };
  const messageIn = ({ text }: Reply): unknown => {
    const data = text.split('\n').filter((line) => line.startsWith('data: {'));
    const last = data.at(-1)?.slice('data: '.length) ?? text;
    return JSON.parse(last);
  };
  return {
    folder,
    post: (asked) =>
      post({
        ...asked,
        headers: {
          ...(asked.body ? {} : modernHeaders('tools/call', { name: 'who' })),
          ...asked.headers,
        },
      }),
    async session(method, params = {}) {
      id += 1;
      const reply = await post({
        principal: 'ada',
        ...(session === undefined || method === 'initialize' ? {} : { headers: { 'mcp-session-id': session } }),
        body: { jsonrpc: '2.0', id, method, params },
      });
      const { 'mcp-session-id': opened } = reply.headers;
      if (typeof opened === 'string') session = opened;
      return resultOf(messageIn(reply), method);
    },
    async modern(method, params = {}) {
      const headers = modernHeaders(method, params);
      return resultOf(messageIn(await post({ principal: 'ada', headers, body: modernBody(method, params) })), method);
    },
    late,
    process,
    ownPort,
    async end() {
      process.child.kill('SIGTERM');
      await process.exit;
    },
  };
}

function modernHeaders(method: string, params: object): Record<string, string> {
  return {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...('name' in params ? { 'mcp-name': String(params.name) } : {}),
  };
}

async function command(files: Tree, ...args: readonly string[]): Promise<Served> {
  const cli = new Cli(['serve', 'server.mjs', '--http', '0', '--data', 'data', ...args], { cwd: files.path });
  const url = async (): Promise<string> => {
    await cli.said('connect clients with');
    return /at (http:[^\s;,]+)[;,]/.exec(cli.err)?.[1] ?? '';
  };
  return overHttp(files, { child: cli.process, exit: cli.exit, url }, 'exit code 70', true);
}

/** A command for stdio, of a program that listens over HTTP by itself: the process has other work, as far as is known. */
async function besideStdio(...args: readonly string[]): Promise<Served> {
  const files = tree(OWN_PORT);
  const cli = new Cli([...args, ...DATA], { cwd: files.path });
  const url = async (): Promise<string> => {
    await cli.said('/mcp;');
    return /at (http:[^\s;,]+)[;,]/.exec(cli.err)?.[1] ?? '';
  };
  return overHttp(files, { child: cli.process, exit: cli.exit, url }, 'none', true);
}

async function node(files: Tree, ...args: readonly string[]): Promise<Served> {
  const child = spawn(process.execPath, args, { cwd: files.path, stdio: ['ignore', 'ignore', 'pipe'] });
  process.on('exit', () => child.kill('SIGKILL'));
  let err = '';
  const url = (): Promise<string> =>
    new Promise((resolve, reject) => {
      child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
        err += chunk;
        const [, found] = /at (http:[^\s;,]+)[;,]/.exec(err) ?? [];
        if (found !== undefined) resolve(found);
      });
      child.once('exit', () => reject(new Error(err)));
    });
  const exit = once(child, 'exit').then(([code]) => code);
  const ownPort = !args.includes('host.mjs');
  return overHttp(files, { child, exit, url }, 'none', ownPort);
}

const OWN_PORT = `const transport = http({ port: 0 });
await server.listen(transport);
console.error('at ' + transport.url + ';');`;
const DATA = ['--data', 'data'];

/** Every way to serve. */
const WAYS: Readonly<Record<string, () => Promise<Served>>> = {
  'troupe run': () => overStdio(tree(''), ['run', 'server.mjs', ...DATA], 'another process'),
  'troupe run --no-supervisor': () =>
    overStdio(tree(''), ['run', 'server.mjs', '--no-supervisor', ...DATA], 'exit code 70'),
  'troupe dev': () => overStdio(tree(''), ['dev', 'server.mjs', '--no-inspect', ...DATA], 'exit code 70'),
  'troupe serve --socket': async () => {
    const files = tree('');
    const path = files.at('s.sock');
    const server = new Cli(['serve', 'server.mjs', '--socket', path, ...DATA], { cwd: files.path });
    await server.said('connect clients with');
    const served = await overStdio(files, ['attach', path], 'exit code 70', async () => {
      server.process.kill('SIGTERM');
      await server.exit;
    });
    return { ...served, process: server };
  },
  'troupe attach --spawn': () => {
    const files = tree('');
    return overStdio(
      files,
      ['attach', '--spawn', 'server.mjs', files.at('s.sock'), '--idle-exit', '2000'],
      'another process',
    );
  },
  'troupe serve --http': () => command(tree('')),
  'troupe serve --http of a program that listens on stdio': () =>
    command(tree(`await server.listen((await import('${TROUPE}')).stdio());`)),
  'troupe serve --http of a program that listens over HTTP': () => command(tree(OWN_PORT)),
  'troupe run of a program that listens over HTTP': () => besideStdio('run', 'server.mjs'),
  'troupe dev of a program that listens over HTTP': () => besideStdio('dev', 'server.mjs', '--no-inspect'),
  'server.listen(http())': () => node(tree(OWN_PORT), 'server.mjs'),
  'server.fetch': () => node(tree(''), 'host.mjs', 'fetch'),
  'server.node': () => node(tree(''), 'host.mjs', 'node'),
};

type Check = (served: Served) => Promise<void>;

const info =
  (name: string, value: unknown): Check =>
  async (served) => {
    const { serverInfo } = await served.session('initialize', INITIALIZE);
    assert.equal(isObject(serverInfo) ? serverInfo[name] : undefined, value);
  };

/** The options of HTTP: what a client sees of each. Those of time and memory go the same way: see below. */
const HTTP: {
  readonly [O in keyof Required<SharedHttpOptions>]:
    | ((served: Served, post: NonNullable<Served['post']>) => Promise<void>)
    | 'by value';
} = {
  async auth(_, post) {
    const metadata = 'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"';
    const without = await post({});
    assert.is(without.status, 401);
    assert.match(String(without.headers['www-authenticate']), `Bearer scope="orders:read", ${metadata}`);
    for (const path of ['/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource']) {
      const { status, text } = await post({ path });
      assert.is(status, 200);
      assert.equal(JSON.parse(text).authorization_servers, ['https://login.example.com']);
    }
    assert.match((await post({ principal: 'ada' })).text, '"text":"ada"');
    const refund = { name: 'refund', arguments: {} };
    const lacking = await post({
      principal: 'ada',
      headers: modernHeaders('tools/call', refund),
      body: { jsonrpc: '2.0', id: 'refund', method: 'tools/call', params: { ...refund, _meta: META } },
    });
    assert.is(lacking.status, 403);
    const challenge = String(lacking.headers['www-authenticate']);
    assert.match(challenge, 'error="insufficient_scope", scope="orders:read orders:refund"');
    assert.match(challenge, metadata);
  },
  // It takes the way of auth: the endpoint makes an authenticator of it.
  authenticate: 'by value',
  async allowedHosts({ ownPort }, post) {
    const status = async (host: string): Promise<number> =>
      (await post({ principal: 'ada', headers: { host } })).status;
    assert.is(await status('mcp.example.com'), 200);
    assert.is(await status('evil.example.com'), 403);
    assert.is(await status('localhost'), ownPort ? 200 : 403);
  },
  async allowedOrigins(_, post) {
    const { status, headers } = await post({ principal: 'ada', headers: { origin: 'https://app.example.com' } });
    assert.is(status, 200);
    assert.is(headers['access-control-allow-origin'], 'https://app.example.com');
    assert.is((await post({ principal: 'ada', headers: { origin: 'https://evil.example.com' } })).status, 403);
  },
  async allowedHeaders(_, post) {
    const { headers } = await post({ method: 'OPTIONS', headers: { origin: 'https://app.example.com' } });
    assert.match(String(headers['access-control-allow-headers']), 'X-Api-Key');
  },
  async response(_, post) {
    assert.match(String((await post({ principal: 'ada' })).headers['content-type']), 'text/event-stream');
  },
  async maxExchangesPerPrincipal(_, post) {
    const waiting = { principal: 'eve', headOnly: true, headers: modernHeaders('tools/call', { name: 'wait' }) };
    const params = { name: 'wait', arguments: {}, _meta: META };
    const body = (id: number): object => ({ jsonrpc: '2.0', id, method: 'tools/call', params });
    const replies = await Promise.all([1, 2].map((id) => post({ ...waiting, body: body(id) })));
    assert.equal(
      replies.map(({ status }) => status),
      [200, 200],
    );
    assert.is((await post({ ...waiting, body: body(3) })).status, 429);
    for (const { drop } of replies) drop();
  },
  async rate(_, post) {
    for (let times = 0; times < 60; times += 1) assert.is((await post({ principal: 'bob' })).status, 200);
    const { status, text } = await post({ principal: 'bob' });
    assert.is(status, 429);
    assert.match(text, 'http.rate');
  },
  async retryMs(served, post) {
    await served.session('initialize', INITIALIZE);
    const body = { jsonrpc: '2.0', id: 'x', method: 'initialize', params: INITIALIZE };
    const { headers } = await post({ principal: 'ada', body });
    const session = String(headers['mcp-session-id']);
    const call = { jsonrpc: '2.0', id: 'y', method: 'tools/call', params: { name: 'leave', arguments: {} } };
    const { text } = await post({ principal: 'ada', headers: { 'mcp-session-id': session }, body: call });
    assert.match(text, 'retry: 4567');
  },
  // Its documents are those of test/core/http/server-card.test.ts.
  card: 'by value',
  keepAliveMs: 'by value',
  stallMs: 'by value',
  idleConnectionMs: 'by value',
  sessionIdleMs: 'by value',
  replayMs: 'by value',
  maxReplayEvents: 'by value',
  maxReplayBytes: 'by value',
  maxExchanges: 'by value',
  // Its page is served only by a server with an upstream that needs a sign-in: test/gateway/mounts/sign-ins.test.ts.
  signIn: 'by value',
  drainDelayMs: 'by value',
};

/** What a client, or an operator, sees of each option. */
const CHECKS: { readonly [O in keyof Required<ServerOptions>]: Check } = {
  name: info('name', 'optioned'),
  version: info('version', '9.8.7'),
  title: info('title', 'Optioned'),
  description: info('description', 'Has every option'),
  icons: info('icons', [{ src: 'https://example.com/icon.png' }]),
  websiteUrl: info('websiteUrl', 'https://example.com/'),
  async instructions(served) {
    assert.is((await served.session('initialize', INITIALIZE)).instructions, 'Use it well.');
  },
  async executors(served) {
    assert.is(textOf(await served.modern('tools/call', { name: 'plain', arguments: {} })), 'executed');
  },
  async onApproval(served) {
    await served.modern('tools/call', { name: 'held', arguments: {} });
    assert.is(textOf(await served.modern('tools/call', { name: 'approval', arguments: {} })), 'asked');
  },
  async features(served) {
    assert.is(textOf(await served.modern('tools/call', { name: 'featured', arguments: {} })), 'by a feature');
  },
  async tools(served) {
    // The executor of this program answers for each tool that the server has.
    assert.is(textOf(await served.modern('tools/call', { name: 'given', arguments: {} })), 'in a list');
  },
  async resources(served) {
    const { resources } = await served.modern('resources/list');
    assert.match(JSON.stringify(resources), '"uri":"given://1"');
  },
  // `offers` announces prompts of which this program has none.
  async prompts() {
    const prompts = [definePrompt({ name: 'given', handler: () => 'in a list' })];
    const client = await connect(createServer({ name: 'given', version: '1.0.0', prompts }));
    assert.equal(
      (await client.prompts()).map(({ name }) => name),
      ['given'],
    );
    await client.close();
  },
  async machines() {
    const chart = createMachine({ initial: 'on', states: { on: { on: { stop: 'off' } }, off: { type: 'final' } } });
    const machines = [defineMachine({ name: 'given', machine: chart, events: { stop: true } })];
    const client = await connect(createServer({ name: 'given', version: '1.0.0', machines }));
    assert.ok((await client.tools()).some(({ name }) => name === 'given_stop'));
    await client.close();
  },
  // The program of this test has no mount.
  async code() {
    const host = createServer({ name: 'given', version: '1.0.0', code: { effects: 'deny' } });
    const own = createServer({ name: 'own', version: '1.0.0' });
    own.tool('given', () => '');
    await host.mount(own, { expose: 'code' });
    const client = await connect(host);
    assert.is((await client.tools()).find(({ name }) => name === 'run_code')?.annotations?.readOnlyHint, true);
    await client.close();
    await host.close();
  },
  async offers(served) {
    const { capabilities } = await served.session('initialize', INITIALIZE);
    assert.ok(isObject(capabilities) && 'prompts' in capabilities);
  },
  async experimental(served) {
    const { capabilities } = await served.session('initialize', INITIALIZE);
    assert.equal(isObject(capabilities) ? capabilities.experimental : undefined, { 'example.com/x': {} });
  },
  async extensions(served) {
    const { capabilities } = await served.modern('server/discover');
    const extensions = isObject(capabilities) ? capabilities.extensions : undefined;
    assert.ok(isObject(extensions) && 'com.example/ext' in extensions);
  },
  async events() {
    const given = createServer({ name: 'given', version: '1.0.0', events: { callbacks: false } });
    given.event('note', { description: 'A note.', payload: { type: 'object' } as const });
    const client = await connect(given, { auth: { principal: 'ada' } });
    const { events } = await client.modern('events/list');
    assert.not.match(JSON.stringify(events), '"webhook"');
    await client.close();
    await given.close();
  },
  // What it does is tested with several nodes (test/features/cluster/nodes.test.ts).
  async cluster() {
    const options = { name: 'alone', version: '1.0.0', cluster: { listen: '127.0.0.1:0', secret: 'x'.repeat(32) } };
    assert.throws(
      () => createServer(options),
      /expected a store that several processes share, such as postgres\(url\), got none/,
    );
  },
  async listTtlMs(served) {
    assert.is((await served.modern('tools/list')).ttlMs, 4_321);
  },
  async limits(served) {
    const { tools, nextCursor } = await served.modern('tools/list');
    assert.is(Array.isArray(tools) ? tools.length : 0, 3);
    assert.type(nextCursor, 'string');
  },
  async http(served) {
    const { post } = served;
    if (!post)
      return assert.is(textOf(await served.modern('tools/call', { name: 'who', arguments: {} })), 'local user');
    for (const [option, check] of Object.entries(HTTP))
      if (check !== 'by value')
        await check(served, post).catch((error: unknown) => {
          throw new Error(`http.${option}`, { cause: error });
        });
  },
  async keys(served) {
    const { requestState } = await served.modern('tools/call', { name: 'ask', arguments: {} });
    assert.equal(new KeyRing([SECRET]).open(String(requestState), []), { ok: false, why: 'does not verify' });
    const other = new KeyRing([`${SECRET}, another one`]);
    assert.equal(other.open(String(requestState), []), { ok: false, why: 'unknown key' });
  },
  async askThroughModel(served) {
    const names: unknown[] = [];
    for (let cursor: unknown = ''; cursor !== undefined; ) {
      const { tools, nextCursor } = await served.modern('tools/list', cursor === '' ? {} : { cursor });
      if (Array.isArray(tools)) names.push(...tools.map(({ name }: { name?: unknown }) => name));
      cursor = nextCursor;
    }
    assert.ok(names.includes('troupe_answer'), names.join());
  },
  async store({ folder }) {
    assert.ok(existsSync(join(folder, 'own.db')));
    // The directory of --data is for a program that has no store.
    assert.not(existsSync(join(folder, 'data', 'troupe.db')));
  },
  async clock(served) {
    assert.ok(Number(textOf(await served.modern('tools/call', { name: 'looks', arguments: {} }))) > 0);
  },
  async telemetry(served) {
    assert.ok(Number(textOf(await served.modern('tools/call', { name: 'traced', arguments: {} }))) > 0);
  },
  async watchdog(served) {
    await served.modern('tools/call', { name: 'block', arguments: {} });
    await until(() => /block/.test(logOf(served)));
  },
  async log(served) {
    const error = served.late === 'none' ? 'too late' : undefined;
    assert.match(logOf(served), /^(info|warning|error): /m);
    if (error === undefined) return;
    await served.modern('tools/call', { name: 'late', arguments: {} });
    await until(() => logOf(served).includes(error));
  },
  async errors(served) {
    const text = textOf(await served.modern('tools/call', { name: 'fail', arguments: {} }));
    const [, incident = ''] = /^The tool failed \(incident (\S+);/.exec(text) ?? [];
    assert.match(logOf(served), `error: incident ${incident} in tool "fail": Error: disk full\n    at `);
  },
  async audit(served) {
    await served.modern('tools/call', { name: 'pid', arguments: {} });
    const file = join(served.folder, 'audit.jsonl');
    await until(() => existsSync(file) && readFileSync(file, 'utf8').includes('"element":"tool pid"'));
  },
  async afterLateError(served) {
    const before = textOf(await served.modern('tools/call', { name: 'late', arguments: {} }));
    if (served.late === 'exit code 70') {
      const code = await served.process.exit;
      return assert.is(code, 70, `exit code ${code}; ${logOf(served)}`);
    }
    await until(() => logOf(served).includes('too late'));
    const pid = async (): Promise<string> =>
      textOf(await served.modern('tools/call', { name: 'pid', arguments: {} }).catch(() => ({})));
    if (served.late === 'none') return assert.is(await pid(), before);
    for (let now = before; now === before || now === ''; ) now = await pid();
  },
};

/** One of each kind: of a worker with stdio, and of a port. That a reload keeps each option is a type (src/cli/reload/reload-host.ts). */
const QUICK = ['troupe serve --http'];

for (const [way, start] of Object.entries(WAYS)) {
  const title = `S-35 ${way}: all of them hold`;
  if (process.platform === 'win32') {
    all.skip(title, 'the paths of this file are those of POSIX');
    continue;
  }
  const add = QUICK.includes(way) ? all : all.full;
  add(title, async () => {
    const served = await start();
    try {
      for (const [option, check] of Object.entries(CHECKS))
        await check(served).catch((error: unknown) => {
          throw new Error(`${option}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
        });
    } finally {
      await served.end();
    }
  });
}
