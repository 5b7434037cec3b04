/** `troupe run`: the server crashes, restarts and is replaced, and the agent's session continues. */
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { fullOnly, suite } from '../harness/door.ts';
import { assertFigure } from '../harness/pace.ts';
import { elapse, until } from '../harness/wait.ts';
import { Cli, isBuilt } from './cli.ts';

fullOnly('kills and replaces programs; the quick test of `troupe run` is run.test.ts');

const all = suite('troupe run, supervised');
function test(title: string, body: () => Promise<void> | void): void {
  if (!isBuilt) all.skip(title, 'dist is not built: npm run build');
  else if (process.platform === 'win32') all.skip(title, 'the signals of this file are those of POSIX');
  else all(title, body);
}

const SERVER = fileURLToPath(new URL('../fixtures/supervised/server.mjs', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'troupe-supervised-'));
const pids = new Set<number>();

all.after(() => {
  for (const pid of pids) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

class Agent extends Cli {
  readonly folder: string;

  constructor(folder: string, ...options: readonly string[]) {
    super(['run', SERVER, ...options, '--', folder]);
    this.folder = folder;
    pids.add(this.process.pid ?? 0);
  }

  /** The process that serves now. */
  async pid(): Promise<number> {
    const pid = Number(await this.call('pid'));
    pids.add(pid);
    return pid;
  }

  wrote(name: string): string[] {
    const path = join(this.folder, name);
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
  }
}

/** With an open session, which knows the tools. */
async function agent(...options: readonly string[]): Promise<Agent> {
  const cli = new Agent(mkdtempSync(join(root, 'agent-')), ...options);
  await cli.initialize();
  await cli.list('tools');
  return cli;
}

test('R-01: a killed server restarts, and the session continues with its log level', async () => {
  const cli = await agent();
  await cli.request('logging/setLevel', { level: 'error' });
  const before = await cli.pid();
  process.kill(before, 'SIGKILL');
  assert.is.not(await cli.pid(), before);
  assert.is(await cli.call('echo', { text: 'again' }), 'again');
  cli.messages.length = 0;
  await cli.call('log');
  assert.equal(cli.notifications, ['notifications/message']);
  await cli.said('troupe run: the server was killed by SIGKILL: restarting (1 of 3 times within 60 s');
  assert.is(await cli.end(), 0);
});

test('--metrics: each worker serves its metrics at the same port, and a taken port does not stop the server', async () => {
  const first = await agent('--metrics', '0');
  await first.said('metrics at ');
  const [url = '', port = ''] = /http:\/\/127\.0\.0\.1:(\d+)\/metrics/.exec(first.err) ?? [];
  const calls = async (): Promise<string | undefined> =>
    /_count\{.*gen_ai_tool_name="echo"\} (\d+)/.exec(await (await fetch(url)).text())?.[1];
  await first.call('echo', { text: 'a' });
  assert.is(await calls(), '1');
  const second = await agent('--metrics', port);
  await second.said(`--metrics: metrics: cannot listen on 127.0.0.1: port ${port} is in use`);
  assert.is(await second.call('echo', { text: 'b' }), 'b');
  assert.is(await first.end(), 0);
  process.kill(await second.pid(), 'SIGKILL');
  await second.said('metrics at ');
  for (const text of ['c', 'd']) await second.call('echo', { text });
  assert.is(await calls(), '2');
  process.kill(await second.pid(), 'SIGKILL');
  await second.said('metrics at ', 2);
  await second.call('echo', { text: 'e' });
  assert.is(await calls(), '1');
  assert.is(await second.end(), 0);
});

test('R-01: the next server answers read-only requests in flight, and the others get one error', async () => {
  const cli = await agent();
  const before = await cli.pid();
  const looks = [1, 2, 3].map(() => cli.call('look', { ms: 300 }));
  const pays = ['a', 'b'].map((key) => cli.call('pay', { key, ms: 60_000 }).then(String, String));
  await until(() => cli.wrote('looked').length === 3 && cli.wrote('paid').length === 2);
  process.kill(before, 'SIGKILL');
  for (const error of await Promise.all(pays)) assert.match(error, /-32603.*the server restarted/i);
  for (const pid of await Promise.all(looks)) assert.is.not(Number(pid), before);
  assert.equal(cli.wrote('paid'), ['a', 'b']);
  const ids = cli.messages.flatMap(({ id, method }) => (method === undefined ? [id] : []));
  assert.is(new Set(ids).size, ids.length);
  assert.is(await cli.end(), 0);
});

test('the input request of a dead server is cancelled, and its late answer reaches no other input request', async () => {
  const cli = new Agent(mkdtempSync(join(root, 'agent-')));
  await cli.request('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: {} },
    clientInfo: { name: 'cli-test', version: '1.0.0' },
  });
  cli.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const before = await cli.pid();
  const questions = () => cli.messages.filter(({ method }) => method === 'elicitation/create');
  const lost = cli.call('ask').then(String, String);
  await cli.until(() => questions().length === 1, 'a question');
  process.kill(before, 'SIGKILL');
  assert.match(await lost, /the server restarted/i);
  const [cancelled] = cli.lines.filter((line) => line.includes('notifications/cancelled'));
  assert.is(JSON.parse(cancelled ?? '').params.requestId, questions()[0]?.id);
  const asked = cli.call('ask');
  await cli.until(() => questions().length === 2, 'another question');
  const [first, second] = questions().map(({ id }) => id);
  assert.is.not(first, second);
  cli.send({ jsonrpc: '2.0', id: first, result: { action: 'accept', content: { sure: true } } });
  cli.send({ jsonrpc: '2.0', id: second, result: { action: 'decline' } });
  assert.match(await asked, 'decline');
  assert.is(await cli.end(), 0);
});

test('a server that dies while it writes leaves only whole lines', async () => {
  const cli = await agent();
  const before = await cli.pid();
  const lost = cli.call('long', { length: 200_000 }).then(
    (text) => `${text.length}`,
    () => 'lost',
  );
  const more = Array.from({ length: 20 }, () =>
    cli.call('long', { length: 200_000 }).then(
      (text) => `${text.length}`,
      () => 'lost',
    ),
  );
  cli.process.stdout?.pause();
  await elapse(100, 'responses fill the pipe');
  process.kill(before, 'SIGKILL');
  await elapse(100, 'the next process starts');
  cli.process.stdout?.resume();
  for (const text of await Promise.all([lost, ...more])) assert.match(text, /^(200000|lost)$/);
  // Each line was parsed when it came: a torn one would have thrown.
  assert.is(await cli.call('echo', { text: 'x' }), 'x');
  assert.is(await cli.end(), 0);
});

test('after repeated crashes, waiting requests get an error and the exit code is 70', async () => {
  const cli = await agent();
  for (let time = 0; time < 3; time += 1) {
    const pid = await cli.pid();
    process.kill(pid, 'SIGKILL');
    await until(() => !isAlive(pid));
  }
  const last = await cli.pid();
  const waits = cli.request('tools/call', { name: 'look', arguments: { ms: 60_000 } }).then(String, String);
  await until(() => cli.wrote('looked').length === 1);
  process.kill(last, 'SIGKILL');
  assert.match(await waits, /-32603.*crashed 4 times within 60 seconds/);
  assert.is(await cli.exit, 70);
});

test('a server that ends itself ends the command with its code, and one that fails after it served restarts', async () => {
  const well = await agent();
  await well.call('end', { code: 0 });
  assert.is(await well.exit, 0);
  const ill = await agent();
  const before = await ill.pid();
  await ill.call('end', { code: 3 });
  await ill.said('the server ended with code 3');
  assert.is.not(await ill.pid(), before);
  assert.is(await ill.end(), 0);
});

test('SIGHUP deploys a new server: the old one finishes its requests, and no request is lost', async () => {
  const cli = await agent();
  const before = await cli.pid();
  const slow = cli.call('look', { ms: 1_200 });
  const paid = cli.call('pay', { key: 'slow', ms: 1_200 });
  await until(() => cli.wrote('paid').length === 1);
  cli.process.kill('SIGHUP');
  await cli.said('a new worker has loaded');
  const after = await Promise.all(Array.from({ length: 20 }, () => cli.call('pid')));
  assert.is(Number(await slow), before);
  assert.is(await paid, 'paid slow');
  assert.is(new Set(after).size, 1);
  assert.is.not(Number(after[0]), before);
  assert.not(isAlive(before));
  assert.equal(cli.wrote('paid'), ['slow']);
  assert.ok(cli.messages.every(({ error }) => error === undefined));
  assert.ok(cli.notifications.includes('notifications/tools/list_changed'));
  assert.is(await cli.end(), 0);
});

test('SIGHUP with a version that does not load keeps the old server', async () => {
  const cli = await agent();
  const before = await cli.pid();
  writeFileSync(join(cli.folder, 'broken'), '');
  cli.process.kill('SIGHUP');
  await cli.said('before it could serve: the current worker continues');
  await cli.said('broken on purpose');
  assert.is(await cli.pid(), before);
  rmSync(join(cli.folder, 'broken'));
  cli.process.kill('SIGHUP');
  await cli.said('a new worker has loaded');
  assert.is.not(await cli.pid(), before);
  assert.is(await cli.end(), 0);
});

test('R-25: SIGTERM finishes running requests, rejects others, and ends with code 0 and no process left', async () => {
  const cli = await agent();
  const pid = await cli.pid();
  const paid = Array.from({ length: 200 }, (_, index) => cli.call('pay', { key: String(index), ms: 500 }));
  const calls = paid.slice(0, 100);
  for (const call of paid.slice(100)) call.catch(() => {});
  await until(() => cli.wrote('paid').length >= 100);
  const began = performance.now();
  cli.process.kill('SIGTERM');
  const results = await Promise.all(calls);
  assert.is(new Set(results).size, 100);
  assert.is(await cli.exit, 0);
  assertFigure(performance.now() - began, 10_500, 'the end of the command');
  assert.not(isAlive(pid));
  const answered = new Set(cli.messages.map(({ id }) => id));
  assert.is(answered.size, cli.messages.length);
});

test('an agent that does not read leaves no process behind', async () => {
  const cli = await agent();
  const pid = await cli.pid();
  cli.process.stdout?.pause();
  const began = performance.now();
  for (let time = 0; time < 20; time += 1) cli.call('long', { length: 200_000 }).catch(() => {});
  cli.process.kill('SIGTERM');
  await until(() => cli.process.exitCode !== null);
  assertFigure(performance.now() - began, 10_500, 'the end of the command');
  assert.not(isAlive(pid));
  cli.process.stdout?.resume();
});

test('the end of stdin ends the server after its last response', async () => {
  const cli = await agent();
  const pid = await cli.pid();
  const paid = cli.call('pay', { key: 'last', ms: 300 });
  cli.process.stdin?.end();
  assert.is(await paid, 'paid last');
  assert.is(await cli.exit, 0);
  assert.not(isAlive(pid));
});

test('no worker survives a killed supervisor, not even one that is still loading', async () => {
  const cli = await agent();
  const pid = await cli.pid();
  cli.call('wait').catch(() => {});
  await cli.said('waits\n');
  cli.process.kill('SIGKILL');
  await until(() => !isAlive(pid));
  const folder = mkdtempSync(join(root, 'loads-'));
  const loads = join(folder, 'loads.ts');
  appendFileSync(
    loads,
    `import { writeFileSync } from 'node:fs';
writeFileSync(${JSON.stringify(join(folder, 'pid'))}, String(process.pid));
await new Promise((resolve) => setTimeout(resolve, 1_000_000));`,
  );
  const other = new Cli(['run', loads]);
  await until(() => existsSync(join(folder, 'pid')) && readFileSync(join(folder, 'pid'), 'utf8') !== '');
  const loading = Number(readFileSync(join(folder, 'pid'), 'utf8'));
  pids.add(loading);
  other.process.kill('SIGKILL');
  await until(() => !isAlive(loading));
});

test('--data creates a store that only this user can read, and each worker passes it to the next', async () => {
  const data = join(mkdtempSync(join(root, 'data-')), 'deep', 'data');
  const cli = await agent('--data', data);
  assert.is(statSync(data).mode & 0o777, 0o700);
  assert.is(statSync(join(data, 'troupe.db')).mode & 0o777, 0o600);
  const before = await cli.pid();
  const paid = cli.call('pay', { key: 'slow', ms: 1_000 });
  await until(() => cli.wrote('paid').length === 1);
  cli.process.kill('SIGHUP');
  await cli.said('a new worker has loaded');
  const after = await cli.pid();
  assert.is(await paid, 'paid slow');
  assert.is.not(after, before);
  process.kill(after, 'SIGKILL');
  assert.is.not(await cli.pid(), after);
  assert.is(await cli.end(), 0);
});

test('--no-supervisor serves in a single process', async () => {
  const cli = await agent('--no-supervisor');
  assert.is(await cli.pid(), cli.process.pid);
  assert.is(await cli.end(), 0);
});
