/** `troupe serve`: which programs it serves, on which sockets, and its shutdown. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { Tree, toolModule } from '../discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { Cli, TROUPE } from './cli.ts';

const all = suite('troupe serve');
const clients: Cli[] = [];

all.after(() => {
  // One whose server was killed would look for another.
  for (const { process } of clients) process.kill('SIGKILL');
});

function test(title: string, body: () => Promise<void>): void {
  if (process.platform === 'win32') all.skip(title, 'the paths of this file are those of POSIX');
  else all(title, body);
}

const PACKAGE = { 'package.json': '{ "type": "module" }' };

function program(end: string): string {
  return `import { createServer, stdio } from '${TROUPE}';
const server = createServer({ name: 'program', version: '2.0.0' });
server.tool('hi', {}, () => 'hello');
server.tool('slow', {}, () => new Promise((resolve) => { console.log('slow runs'); setTimeout(resolve, 300, 'at last'); }));
setInterval(() => {}, 1_000);
${end}
`;
}

async function serve(files: Readonly<Record<string, string>>, target: string): Promise<{ server: Cli; path: string }> {
  const tree = new Tree({ ...PACKAGE, ...files });
  const path = join(tree.path, 's.sock');
  const server = new Cli(['serve', target, '--socket', path], { cwd: tree.path });
  server.process.stdout?.removeAllListeners('data').on('data', (text: string) => {
    server.err += text;
  });
  await server.said(`connect clients with: troupe attach ${path}`);
  return { server, path };
}

async function attach(path: string): Promise<Cli> {
  const cli = new Cli(['attach', path]);
  clients.push(cli);
  await cli.initialize();
  return cli;
}

for (const [title, files, target] of [
  ['that listens on stdio', { 'server.mjs': program('await server.listen(stdio());') }, 'server.mjs'],
  ['that exports a server', { 'server.mjs': program('export default server;') }, 'server.mjs'],
  ['that is a directory with a server', { 'index.mjs': program('export { server };') }, '.'],
  ['that is a directory of tools', { 'tools/a.ts': toolModule('hi') }, 'tools'],
] as const) {
  test(`a program ${title} is served on the socket, and ends with code 0 on SIGTERM`, async () => {
    const { server, path } = await serve(files, target);
    const client = await attach(path);
    assert.match(await client.call('hi'), /^(hi|hello)$/);
    assert.is(await client.end(), 0);
    server.process.kill('SIGTERM');
    assert.is(await server.exit, 0);
    assert.not(existsSync(path));
  });
}

test('--metrics serves the metrics on a port of their own, also beside a socket', async () => {
  const tree = new Tree({ ...PACKAGE, 'server.mjs': program('await server.listen(stdio());') });
  const path = join(tree.path, 's.sock');
  const server = new Cli(['serve', 'server.mjs', '--socket', path, '--metrics', '0'], { cwd: tree.path });
  await server.said('metrics at http://127.0.0.1:');
  await server.said('connect clients with');
  const client = await attach(path);
  await client.call('hi');
  const [url = ''] = /http:\S+\/metrics/.exec(server.err) ?? [];
  assert.match(await (await fetch(url)).text(), 'gen_ai_tool_name="hi"} 1\n');
  assert.is(await client.end(), 0);
  server.process.kill('SIGTERM');
  assert.is(await server.exit, 0);
});

test('SIGINT finishes running requests; a second one ends them', async () => {
  const { server, path } = await serve({ 'server.mjs': program('export default server;') }, 'server.mjs');
  const client = await attach(path);
  const slow = client.call('slow');
  await new Promise((resolve) => setTimeout(resolve, 100));
  server.process.kill('SIGINT');
  assert.is(await slow, 'at last');
  assert.is(await server.exit, 0);

  const other = await serve({ 'server.mjs': program('export default server;') }, 'server.mjs');
  (await attach(other.path)).call('slow').catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 100));
  other.server.process.kill('SIGINT');
  await other.server.said('shutting down: SIGINT');
  other.server.process.kill('SIGINT');
  assert.is(await other.server.exit, 130);
});

test('an error of a tool is logged with its line in the TypeScript file, also a late one, and ends nothing', async () => {
  const text = `interface Order {
  readonly id: string;
}
${program(`server.tool('fail', {}, (): Order => {
  throw new Error('no such order');
});
server.tool('late', {}, () => {
  setTimeout((): Order => {
    throw new Error('too late');
  }, 1);
  return 'early';
});
export default server;`)}`;
  const { server, path } = await serve({ 'server.ts': text }, 'server.ts');
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
});

test('a path that another server uses is an error with code 1', async () => {
  const { server, path } = await serve({ 'server.mjs': program('await server.listen(stdio());') }, 'server.mjs');
  for (const end of ['await server.listen(stdio());', 'server.listen(stdio());', 'export default server;']) {
    const second = new Cli(['serve', 'server.mjs', '--socket', path], {
      cwd: new Tree({ ...PACKAGE, 'server.mjs': program(end) }).path,
    });
    assert.is(await second.exit, 1);
    assert.match(second.err, /cannot serve .*a server already listens on/);
  }
  server.process.kill('SIGTERM');
  await server.exit;
});

test('a second server of a program is rejected', async () => {
  const two = "await server.listen(stdio());\nawait createServer({ name: 'two', version: '1' }).listen(stdio());";
  const { server } = await serve({ 'server.mjs': program(two) }, 'server.mjs');
  await server.said('serves one server per process, and this program has called listen() on two');
  server.process.kill('SIGTERM');
  assert.is(await server.exit, 0);
});
