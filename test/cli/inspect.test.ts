/**
 * `--inspect`, `--record` and `troupe top`: where the inspector is, who finds it, and what outlives a worker that is killed. The
 * inspected servers are processes, because an inspector is registered under the id of its process.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import type { CommandLine } from '../../src/cli/command-options.ts';
import { readInspecting } from '../../src/cli/serving/inspecting-options.ts';
import { registerInspector } from '../../src/cli/serving/inspector-registry.ts';
import type { HelloFrame } from '../../src/inspector/frames.ts';
import { readRecording } from '../../src/inspector/stream/recording.ts';
import { TROUPE as OURS, Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { elapse } from '../harness/wait.ts';
import { Cli, isBuilt } from './cli.ts';
import { Running, troupe } from './in-process.ts';

const test = suite(
  'the inspector on the command line',
  !isBuilt
    ? 'dist is not built: npm run build'
    : process.platform === 'win32'
      ? 'the signals of this file are those of POSIX'
      : undefined,
);

const SERVER = fileURLToPath(new URL('../fixtures/supervised/server.mjs', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'troupe-inspect-'));
// Nobody else's servers are found here, and ours by nobody else.
process.env.XDG_RUNTIME_DIR = root;
const announced = join(root, 'troupe', 'inspectors');
test.after(() => rmSync(root, { recursive: true, force: true }));

const HEAD = '{"format":"troupe-recording","version":1,"frames":[';
const URL_LINE = /inspector at (http:\/\/127\.0\.0\.1:(\d+)\/#([\w-]{43}))( \(it can control the server\))?\n/;

function start(command: string, ...options: readonly string[]): Cli {
  const folder = mkdtempSync(join(root, 'agent-'));
  return new Cli([command, SERVER, ...options, '--', folder]);
}

interface Place {
  readonly url: string;
  readonly base: string;
  readonly token: string;
}

async function placeOf(cli: Cli): Promise<Place> {
  await cli.said('inspector at');
  const [, url = '', port = '', token = ''] = URL_LINE.exec(cli.err) ?? assert.unreachable(cli.err) ?? [];
  return { url, base: `http://127.0.0.1:${port}`, token };
}

/** The first frame of the stream, from whoever serves there now. */
async function hello({ base, token }: Place): Promise<HelloFrame> {
  for (;;) {
    const ending = new AbortController();
    const options = { headers: { Authorization: `Bearer ${token}` }, signal: ending.signal };
    const answer = await fetch(`${base}/api/stream?viewer=test`, options).catch(() => undefined);
    const chunk = await answer?.body?.getReader().read();
    ending.abort();
    const [first = ''] = new TextDecoder().decode(chunk?.value).split('\n\n');
    const [frame] = first.startsWith('data: ') ? readRecording(`${HEAD}${first.slice(6)}]}`).frames : [];
    if (frame?.type === 'hello') return frame;
    await elapse(20, 'the inspector opens');
  }
}

/** A command line without words. */
const LINE: CommandLine = { values: {}, lists: {}, positionals: [], rest: [] };

const run = (...args: readonly string[]) => troupe(args);

/** Serves a program in this process. */
function serve(...options: readonly string[]): Running {
  const text = `import { createServer } from '${OURS}';\nexport default createServer({ name: 's', version: '1' });\n`;
  return new Running(['serve', new Tree({ 'server.mjs': text }).at('server.mjs'), '--http', '0', ...options]);
}

test.full('--inspect prints the URL of the page and its token on stderr, and the page needs the token', async () => {
  const cli = start('run', '--inspect', '--no-supervisor');
  await cli.initialize();
  const { base, token, url } = await placeOf(cli);
  const page = await fetch(`${base}/`);
  assert.is(page.status, 200);
  assert.match(await page.text(), '<!doctype html>');
  assert.is((await fetch(`${base}/api/stream?viewer=x`)).status, 401);
  assert.is((await hello({ base, token, url })).control, false);
  assert.is(cli.err.split(token).length, 2, 'the token is said once');
  assert.is(await cli.end(), 0);
  assert.ok(cli.lines.every((line) => line.startsWith('{"jsonrpc":"2.0"')));
});

test('no inspector opens without --inspect', async () => {
  const server = serve();
  await server.said('connect clients with');
  server.signal('SIGTERM');
  assert.is(await server.exit, 0);
  assert.not.match(server.err, 'inspector');
  assert.equal(existsSync(announced) ? readdirSync(announced) : [], []);
});

/** The server that the first test starts, and the test of `troupe top` shows. */
let seen: Cli | undefined;
test.after(async () => void (await seen?.end()));

test('S-34 troupe dev opens the inspector, whose page needs the token and lets a viewer act, without --no-inspect-control', async () => {
  // On a machine without one, the command that opens a browser.
  const path = process.env.PATH;
  for (const name of ['xdg-open', 'open'])
    writeFileSync(join(root, name), `#!/bin/sh\nprintf %s "$*" > "${root}/opened"\n`, { mode: 0o755 });
  process.env.PATH = `${root}:${path}`;
  const cli = start('dev', '--open');
  process.env.PATH = path;
  await cli.initialize();
  seen = cli;
  const place = await placeOf(cli);
  while (!existsSync(join(root, 'opened')) || readFileSync(join(root, 'opened'), 'utf8') === '')
    await elapse(20, 'the inspector opens');
  assert.is(readFileSync(join(root, 'opened'), 'utf8'), place.url);
  const page = await fetch(`${place.base}/`);
  assert.is(page.status, 200);
  assert.match(await page.text(), '<!doctype html>');
  assert.is((await fetch(`${place.base}/api/stream?viewer=x`)).status, 401);
  assert.is(cli.err.split(place.token).length, 2, 'the token is said once');
  const { control, connect } = await hello(place);
  assert.is(control, true);
  // The page shows the entries that `troupe install --print` prints.
  const cursor = connect?.ways.find(({ client }) => client === 'Cursor');
  const printed = await run('install', SERVER, '--client', 'cursor', '--print');
  const [entry, shown] = [printed.out, cursor?.text ?? '{}'].map(
    (text) => Object.values(JSON.parse(text).mcpServers)[0],
  );
  // Each names the copy of the command that wrote it.
  assert.equal(Object(shown).args.slice(1, 3), Object(entry).args.slice(1));
  assert.match(cursor?.file ?? '', /mcp\.json$/);
  assert.match(connect?.note ?? '', `troupe install ${SERVER}`);
  const looking = readInspecting('dev', { ...LINE, values: { 'no-inspect-control': '' } }, true);
  assert.equal([looking.inspect, looking.control], [true, false]);
  const both = await run('dev', SERVER, '--inspect-control', '--no-inspect-control');
  assert.is(both.code, 2);
  assert.match(both.err, 'expected --inspect-control or --no-inspect-control, got both');
  const { code, err } = await run('dev', SERVER, '--no-inspect', '--inspect-control');
  assert.is(code, 2);
  assert.match(
    err,
    'expected --no-inspect or an option of the inspector (--inspect, --inspect-control, --open), got both',
  );
});

test('troupe top shows the only inspected server, and asks for a process id if there are several', async () => {
  const cli = seen ?? start('dev');
  if (seen === undefined) await cli.initialize();
  const place = await placeOf(cli);
  void cli.call('wait').catch(() => {});
  await cli.said('waits');
  const top = await run('top', '--once');
  assert.equal({ code: top.code, err: top.err }, { code: 0, err: '' });
  assert.match(top.out, /^◆ supervised 1\.0\.0 · pid \d+ · live\n1 session {2}1 request {2}0 questions/);
  assert.match(top.out, /^ {2}cli-test 1\.0\.0 +ready\.(?:active|idle) /m);
  // `troupe dev` has seen the call begin, so that its age and the time that it has left are known.
  assert.match(top.out, /^ {4}tools\/call wait +open +\d+:\d\d +\d+:\d\d {2}its result$/m);

  // Another inspector, which is registered for the process of this test.
  const { url } = place;
  const unregister = registerInspector({ pid: process.pid, url, server: 'other 1.0.0', target: SERVER });
  const asked = await run('top');
  assert.is(asked.code, 1);
  assert.match(asked.err, /2 inspected servers are running: choose one by its PID, such as troupe top \d+\n/);
  const wrong = `${url.slice(0, -1)}${url.endsWith('A') ? 'B' : 'A'}`;
  const byPid = await run('top', String(cli.process.pid), '--once');
  const byUrl = await run('top', url, '--once');
  const refused = await run('top', wrong, '--once');
  const foreign = await run('top', 'http://example.com/#x');
  for (const { out } of [byPid, byUrl]) assert.match(out, `pid ${cli.process.pid} `);
  assert.is(refused.code, 1);
  assert.match(refused.err, 'rejected the request: Authorization');
  assert.is(foreign.code, 2);
  unregister();
  assert.is(await cli.end(), 0);

  assert.equal(readdirSync(announced), []);
  const none = await run('top');
  assert.is(none.code, 1);
  assert.match(none.err, 'no inspected server is running: start one with troupe dev FILE, or with --inspect');
});

test.full('S-34 troupe dev --no-inspect-control opens an inspector that only looks', async () => {
  const looks = start('dev', '--no-inspect-control');
  await looks.initialize();
  assert.is((await hello(await placeOf(looks))).control, false);
  assert.is(await looks.end(), 0);
});

test.full('a page finds the next worker at the same URL after a crash and after a deployment', async () => {
  const file = join(root, 'run.json');
  const cli = start('run', '--inspect', '--record', file);
  await cli.initialize();
  await cli.list('tools');
  const place = await placeOf(cli);
  const first = Number(await cli.call('pid'));
  assert.is((await hello(place)).pid, first);
  process.kill(first, 'SIGKILL');
  const second = Number(await cli.call('pid'));
  assert.is.not(second, first);
  assert.is((await hello(place)).pid, second);
  cli.process.kill('SIGHUP');
  await cli.said('a new worker has loaded');
  const third = async (): Promise<number> => {
    for (;;) {
      const pid = Number(await cli.call('pid'));
      if (pid !== second && (await hello(place)).pid === pid) return pid;
    }
  };
  assert.ok((await third()) > 0);
  assert.is(await cli.end(), 0);
  assert.is(cli.err.split('inspector at').length, 2, 'the address is said once');

  // It is one recording of three processes, of which the first was killed.
  assert.not.match(readFileSync(file, 'utf8'), '"connect":', 'the paths of this machine are in no recording');
  assert.is(statSync(file).mode & 0o777, 0o600);
  const text = readFileSync(file, 'utf8');
  JSON.parse(text);
  const { frames } = readRecording(text);
  assert.equal(
    frames.flatMap((frame) => (frame.type === 'hello' ? [frame.pid === first, frame.pid === second] : [])),
    [true, false, false, true, false, false],
  );
  assert.ok(frames.some((frame) => frame.type === 'records' && frame.records.some(({ type }) => type === 'wire')));
  assert.not.match(text, place.token);
});

test.full('--no-inspect opens no inspector', async () => {
  const without = start('dev', '--no-inspect');
  await without.initialize();
  assert.is(await without.end(), 0);
  assert.not.match(without.err, 'inspector');
});

const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'modern', version: '1.0.0' },
};

test.full('troupe top shows clients without a session, and hibernating handles', async () => {
  const cli = new Cli(['dev', fileURLToPath(new URL('../fixtures/top/server.mjs', import.meta.url))]);
  const { url } = await placeOf(cli);
  await cli.request('tools/call', { name: 'door_create', arguments: {}, _meta: MODERN });
  const waits = { name: 'wait', arguments: {}, _meta: MODERN };
  void cli.request('tools/call', waits).catch(() => {});
  await cli.said('it waits');
  // When the handle leaves memory only the server knows.
  let out = '';
  while (!out.includes('hibernating')) out = (await run('top', url, '--once')).out;
  assert.match(out, /^0 sessions {2}1 client without a session {2}1 request .* 1 handle \(1 hibernating\)/m);
  assert.match(out, /^ {2}\S.* +no session /m);
  assert.match(out, /^ {4}tools\/call wait/m);
  assert.match(out, /^hibernating handles\n {2}handle door\/\S+ +hibernating$/m);
  cli.process.kill('SIGKILL');
  await cli.exit;
});

test.full('troupe top shows each client of a shared HTTP connection under its own name', async () => {
  const server = new Cli([
    'serve',
    fileURLToPath(new URL('../fixtures/top/server.mjs', import.meta.url)),
    '--http',
    '0',
    '--inspect',
  ]);
  const place = await placeOf(server);
  await server.said('Claude Desktop');
  const url = /at (http:\S+);/.exec(server.err)?.[1] ?? '';
  assert.match((await run('top', place.url, '--once')).out, /^0 sessions {2}0 requests /m);
  const ending = new AbortController();
  // A viewer that is there before: who asks is told by the requests.
  const stream = await fetch(`${place.base}/api/stream?viewer=test`, {
    headers: { Authorization: `Bearer ${place.token}` },
    signal: ending.signal,
  });
  for (const name of ['one', 'two']) {
    const clientInfo = { name, version: '1.0.0' };
    fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'wait',
      },
      signal: ending.signal,
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'wait',
          arguments: {},
          _meta: { ...MODERN, 'io.modelcontextprotocol/clientInfo': clientInfo },
        },
      }),
    }).catch(() => {});
  }
  await server.said('it waits', 2);
  const { out } = await run('top', place.url, '--once');
  assert.match(out, /^0 sessions {2}2 clients without a session {2}2 requests /m);
  assert.match(out, /^ {2}(one 1\.0\.0, two|two 1\.0\.0, one) 1\.0\.0 +no session /m);
  for (const name of ['one', 'two'])
    assert.match(out, new RegExp(`^ {4}tools/call wait \\(${name} 1\\.0\\.0\\) +open`, 'm'));
  ending.abort();
  void stream.body?.cancel().catch(() => {});
  server.process.kill('SIGTERM');
  await server.exit;
});

test.full('attach --spawn --inspect starts a server with an inspector', async () => {
  const path = join(root, 'shared.sock');
  const folder = mkdtempSync(join(root, 'agent-'));
  const options = ['--spawn', SERVER, path, '--inspect', '--idle-exit', '2000'];
  const cli = new Cli(['attach', ...options, '--', folder]);
  await cli.initialize();
  assert.match(readFileSync(`${path}.log`, 'utf8'), URL_LINE);
  assert.match((await run('top', '--once')).out, /^ {2}cli-test 1\.0\.0 +ready\.(?:active|idle) /m);
  assert.is(await cli.end(), 0);
});

test('a recording of troupe serve is complete once the server has closed', async () => {
  const file = join(root, 'serve.json');
  const server = serve('--record', file);
  await server.said('connect clients with');
  server.signal('SIGTERM');
  assert.is(await server.exit, 0);
  const { frames } = JSON.parse(readFileSync(file, 'utf8'));
  assert.is(frames[0].type, 'hello');
});
