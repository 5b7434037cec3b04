/** `troupe serve --http`: its address, its instructions for clients, and its shutdown. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as assert from 'uvu/assert';
import { Tree } from '../features/discovery/tree.ts';
import { moduleUrl } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { withoutStalls } from './agent.ts';
import { Running, troupe } from './in-process.ts';

const test = suite('troupe serve --http');

const OURS = moduleUrl('src/index.ts');
const PROGRAM = `import { createServer, stdio } from '${OURS}';
const server = createServer({ name: 'a program', version: '2.0.0', log() {} });
let calls = 0;
server.tool('count', {}, () => String(++calls));
server.tool('slow', {}, (_, ctx) => { ctx.progress(1); return new Promise((resolve) => setTimeout(resolve, 300, 'at last')); });
await server.listen(stdio());
`;

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  progressToken: 'p',
};

async function call(url: string, name: string): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': name,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {}, _meta: META } }),
  });
}

/** Serves a program in this process. */
function run(program: string, ...options: readonly string[]): Running {
  const { path } = new Tree({ 'package.json': '{ "type": "module" }', 'server.mjs': program });
  return new Running(['serve', 'server.mjs', ...options], { cwd: path });
}

async function serve(...options: readonly string[]): Promise<{ server: Running; url: string }> {
  const server = run(PROGRAM, '--http', '0', ...options);
  await server.said('Claude Desktop');
  const url = /at (http:\S+);/.exec(server.err)?.[1] ?? '';
  return { server, url };
}

test('a program that listens on stdio is served over HTTP, and stderr shows how to connect', async () => {
  const { server, url } = await serve('--path', '/tools');
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/tools$/);
  assert.match(server.err, `claude mcp add --transport http a-program ${url}`);
  assert.match(server.err, `{"name":"a-program","type":"http","url":"${url}"}`);
  assert.match(server.err, `{"mcpServers":{"a-program":{"url":"${url}"}}}`);
  assert.match(server.err, `"args":["-y","mcp-remote","${url}"]`);
  assert.match(await (await call(url, 'count')).text(), '"content":[{"type":"text","text":"1"}]');
  server.signal('SIGTERM');
  assert.is(await server.exit, 0);
});

test('HTTP and a socket share one process', async () => {
  if (process.platform === 'win32') return;
  const socket = join(new Tree().path, 's.sock');
  const { server, url } = await serve('--socket', socket);
  await server.said(`troupe attach ${socket}`);
  const attached = new Running(['attach', socket]);
  await attached.initialize();
  assert.is(await attached.call('count'), '1');
  assert.match(await (await call(url, 'count')).text(), '"content":[{"type":"text","text":"2"}]');
  assert.is(await attached.call('count'), '3');
  await attached.end();
  server.signal('SIGTERM');
  assert.is(await server.exit, 0);
});

test('SIGTERM finishes running requests and ends the process with code 0', async () => {
  const { server, url } = await serve();
  const slow = await call(url, 'slow');
  server.signal('SIGTERM');
  assert.match(await slow.text(), 'at last');
  assert.is(await server.exit, 0);
});

for (const [title, options, expected] of [
  ['an address that others reach without allowed hosts', ['--http', '0.0.0.0:0'], /allowedHosts.*--allow-host/],
  ['an address that is none', ['--http', 'here'], /--http: expected PORT or HOST:PORT.*got here/],
  [
    'an option of HTTP without it',
    ['--socket', 'x', '--allow-host', 'a.b'],
    /--allow-origin and --drain-delay need --http/,
  ],
  ['--idle-exit', ['--http', '0', '--idle-exit', '5'], /counts only socket clients/],
  ['an origin that is none', ['--http', '0', '--allow-origin', 'example.com'], /allowedOrigins/],
] as const) {
  test(`${title} is rejected with code 2`, async () => {
    const server = run(PROGRAM, ...options);
    assert.is(await server.exit, 2);
    assert.match(server.err, expected);
  });
}

test('R-33 a port that is in use is an error of one line, with code 1, and the database is closed', async () => {
  const { server, url } = await serve();
  const { port } = new URL(url);
  for (const program of [PROGRAM, PROGRAM.replace('await server.listen', 'server.listen')]) {
    const tree = new Tree({ 'package.json': '{ "type": "module" }', 'server.mjs': program });
    const second = await troupe(['serve', 'server.mjs', '--http', port, '--data', 'data'], { cwd: tree.path });
    assert.is(second.code, 1);
    assert.match(second.err, new RegExp(`cannot serve .*: http: .*port ${port} is in use\\. Choose another.*$`, 'm'));
    assert.not.match(withoutStalls(second.err), /^\s+at /m);
    // While a process has the database open, its lock and its journal exist, too.
    assert.equal(readdirSync(tree.at('data')), ['troupe.db', 'troupe.db-mark']);
  }
  server.signal('SIGTERM');
  assert.is(await server.exit, 0);
});

const GUARDED = `import { createServer, http, stdio } from '${OURS}';
const authenticate = (request) => (request.header('authorization') === 'Bearer s3cret' ? 'ada' : undefined);
const server = createServer({ name: 'guarded', version: '1.0.0', log() {} });
server.tool('count', {}, () => '1');
`;

test('S-35 a program that listens over HTTP only after it is served ends the process: its port was not guarded', async () => {
  const late = 'await server.listen(stdio());\nawait server.listen(http({ port: 0, authenticate }));\n';
  const server = run(GUARDED + late, '--http', '0');
  assert.is(await server.exit, 1);
  assert.match(server.err, /opened http\(\) after --http was already open.*createServer\(\{ http \}\)/);
});

test('S-35 a program that listens over HTTP has one port, which is guarded as the program says', async () => {
  const own =
    "export const transport = http({ port: 0, path: '/own', authenticate });\nawait server.listen(transport);\nexport { server };\n";
  const tree = new Tree({ 'package.json': '{ "type": "module" }', 'server.mjs': GUARDED + own });
  const server = new Running(['serve', 'server.mjs', '--http', '0'], { cwd: tree.path });
  await server.said('Claude Desktop');
  const url = /at (http:\S+);/.exec(server.err)?.[1] ?? '';
  const { transport } = await import(pathToFileURL(tree.at('server.mjs')).href);
  assert.is(String(transport.url), url);
  assert.match(url, /\/own$/);
  assert.is((await call(url, 'count')).status, 401);
  server.signal('SIGTERM');
  assert.is(await server.exit, 0);
});

test('S-36 a name that the program does not allow is rejected with code 2', async () => {
  const program = `import { createServer } from '${OURS}';
export default createServer({ name: 'p', version: '1', http: { allowedHosts: ['mcp.example.com'] } });
`;
  const server = run(program, '--http', '0', '--allow-host', 'evil.example.com');
  assert.is(await server.exit, 2);
  assert.match(server.err, /--allow-host: expected a subset of the program's http\.allowedHosts .*mcp\.example\.com/);
});
