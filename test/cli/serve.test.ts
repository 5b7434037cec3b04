/** `troupe serve`: which programs it serves, on which sockets, and its shutdown. Processes show the effect of signals and of late errors. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { Tree } from '../features/discovery/tree.ts';
import { moduleUrl } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { elapse, until } from '../harness/wait.ts';
import { Cli, TROUPE } from './cli.ts';
import { Running, troupe } from './in-process.ts';

const all = suite('troupe serve');

function test(
  title: string,
  body: () => Promise<void>,
  add: (title: string, body: () => Promise<void>) => void = all,
): void {
  if (process.platform === 'win32') all.skip(title, 'the paths of this file are those of POSIX');
  else add(title, body);
}

const HI = `export const hi = Object.assign(() => 'hi', { schema: { type: 'object' } });`;
const PACKAGE = { 'package.json': '{ "type": "module" }' };

const OURS = moduleUrl('src/index.ts');
const BUILT = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));

function program(end: string, troupe = OURS): string {
  return `import { createServer, stdio } from '${troupe}';
const server = createServer({ name: 'program', version: '2.0.0'${troupe === OURS ? ', log() {}' : ''} });
server.tool('hi', {}, () => 'hello');
server.tool('wait', {}, (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('gone'))));
server.tool('slow', {}, () => new Promise((resolve) => { console.log('slow runs'); setTimeout(resolve, 300, 'at last'); }));
${end}
`;
}

interface Served<S> {
  readonly server: S;
  readonly path: string;
}

type Files = Readonly<Record<string, string>>;

/** Serves a program in this process. */
async function serve(files: Files, target: string, ...options: readonly string[]): Promise<Served<Running>> {
  const tree = new Tree({ ...PACKAGE, ...files });
  const path = join(tree.path, 's.sock');
  const server = new Running(['serve', target, '--socket', path, ...options], { cwd: tree.path });
  await server.said(`connect clients with: troupe attach ${path}`);
  return { server, path };
}

/** Serves a program in a process. */
async function start(files: Files): Promise<Served<Cli>> {
  const tree = new Tree({ ...PACKAGE, ...files });
  const path = join(tree.path, 's.sock');
  const server = new Cli(['serve', Object.keys(files)[0] ?? '', '--socket', path], { cwd: tree.path, raw: true });
  await server.said(`connect clients with: troupe attach ${path}`);
  return { server, path };
}

async function attach(path: string): Promise<Running> {
  const client = new Running(['attach', path, '--wait', '1']);
  await client.initialize();
  return client;
}

for (const [title, files, target] of [
  ['that listens on stdio', { 'server.mjs': program('await server.listen(stdio());') }, 'server.mjs'],
  ['that exports a server', { 'server.mjs': program('export default server;') }, 'server.mjs'],
  ['that is a directory with a server', { 'index.mjs': program('export { server };') }, '.'],
  ['that is a directory of tools', { 'tools/a.mjs': HI }, 'tools'],
] as const) {
  test(`a program ${title} is served on the socket, and ends with code 0 on SIGTERM`, async () => {
    const { server, path } = await serve(files, target);
    const client = await attach(path);
    assert.match(await client.call('hi'), /^(hi|hello)$/);
    assert.is(await client.end(), 0);
    server.signal('SIGTERM');
    assert.is(await server.exit, 0);
    assert.not(existsSync(path));
  });
}

test('--metrics serves the metrics on a port of their own, also beside a socket', async () => {
  const { server, path } = await serve(
    { 'server.mjs': program('await server.listen(stdio());') },
    'server.mjs',
    '--metrics',
    '0',
  );
  await server.said('metrics at http://127.0.0.1:');
  const client = await attach(path);
  await client.call('hi');
  const [url = ''] = /http:\S+\/metrics/.exec(server.err) ?? [];
  assert.match(await (await fetch(url)).text(), 'gen_ai_tool_name="hi"} 1\n');
  assert.is(await client.end(), 0);
  server.signal('SIGTERM');
  assert.is(await server.exit, 0);
});

test('SIGINT finishes running requests, although a timer of the program runs; a second one ends the process', async () => {
  const text = program('setInterval(() => {}, 1_000);\nexport default server;', TROUPE);
  const { server, path } = await start({ 'server.mjs': text });
  const client = await attach(path);
  const slow = client.call('slow');
  await server.until(() => server.out.includes('slow runs'), 'the call');
  server.process.kill('SIGINT');
  assert.is(await slow, 'at last');
  assert.is(await server.exit, 0);

  const short = program('export default server;').replace('log() {}', 'log() {}, limits: { graceMs: 50 }');
  const other = await serve({ 'server.mjs': short }, 'server.mjs');
  const waiting = await attach(other.path);
  waiting.call('wait').catch(() => {});
  await elapse(50, 'the call arrives');
  other.server.signal('SIGINT');
  other.server.signal('SIGINT');
  assert.is(await other.server.exit, 130);
  // It looks for the next server, and gives up.
  await waiting.exit;
});

test(
  'an error of a tool is logged with its line in the TypeScript file, also a late one, and ends nothing',
  async () => {
    const text = `interface Order {
  readonly id: string;
}
${program(
  `server.tool('fail', {}, (): Order => {
  throw new Error('no such order');
});
server.tool('late', {}, () => {
  setTimeout((): Order => {
    throw new Error('too late');
  }, 1);
  return 'early';
});
export default server;`,
  TROUPE,
)}`;
    const { server, path } = await start({ 'server.ts': text });
    const lines = text.split('\n');
    const client = await attach(path);
    assert.is(await client.call('fail'), 'no such order');
    await server.said(`server.ts:${lines.findIndex((line) => line.includes('no such order')) + 1}:9`);
    assert.is(await client.call('late'), 'early');
    await server.said(`server.ts:${lines.findIndex((line) => line.includes('too late')) + 1}:11`);
    assert.match(server.err, 'Error: too late');
    assert.is(await client.call('hi'), 'hello');
    await client.end();
    server.process.kill('SIGTERM');
    assert.is(await server.exit, 0);
  },
  all.full,
);

test('a path that another server uses is an error with code 1', async () => {
  const { server, path } = await serve({ 'server.mjs': program('export default server;') }, 'server.mjs');
  const { path: cwd } = new Tree({ ...PACKAGE, 'server.mjs': program('export default server;') });
  const { code, err } = await troupe(['serve', 'server.mjs', '--socket', path], { cwd });
  assert.is(code, 1);
  assert.match(err, /cannot serve .*a server already listens on/);
  server.signal('SIGTERM');
  assert.is(await server.exit, 0);
});

all.full('a path that another server uses is an error with code 1 of a program that listens', async () => {
  const { server, path } = await serve({ 'server.mjs': program('export default server;') }, 'server.mjs');
  for (const end of ['await server.listen(stdio());', 'server.listen(stdio());']) {
    const { path: cwd } = new Tree({ ...PACKAGE, 'server.mjs': program(end, TROUPE) });
    const second = new Cli(['serve', 'server.mjs', '--socket', path], { cwd });
    assert.is(await second.exit, 1);
    assert.match(second.err, /cannot serve .*a server already listens on/);
  }
  server.signal('SIGTERM');
  assert.is(await server.exit, 0);
});

test('a second server of a program is rejected', async () => {
  const two = "await server.listen(stdio());\nawait createServer({ name: 'two', version: '1' }).listen(stdio());";
  const { server } = await serve({ 'server.mjs': program(two) }, 'server.mjs');
  await server.said('serves one server per process, and this program has called listen() on two');
  server.signal('SIGTERM');
  assert.is(await server.exit, 0);
});

test(
  'a server that npx has started ends with the shell of npx',
  async () => {
    const tree = new Tree({ ...PACKAGE, 'server.mjs': program('export default server;', TROUPE) });
    const command = `"${process.execPath}" "${BUILT}" serve server.mjs --socket "${join(tree.path, 's.sock')}"; true`;
    const env = { ...process.env, npm_command: 'exec' };
    const shell = spawn('sh', ['-c', command], { cwd: tree.path, env, stdio: ['ignore', 'ignore', 'pipe'] });
    let err = '';
    shell.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    await until(() => err.includes('connect clients with'), 'the server listens');
    // As npm passes it on.
    shell.kill('SIGTERM');
    await once(shell.stderr, 'end');
    assert.match(err, 'troupe serve: shutting down: SIGTERM');
  },
  all.full,
);
