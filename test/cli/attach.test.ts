/**
 * `troupe attach`: many agents on stdio share one server process; separate sessions, restarts, one start, one end. Processes are
 * killed, closed and started at once here; the other agents run in this process.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer as listen } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { SharedServer } from '../../src/cli/shim/shared-server.ts';
import { createServer, type Server, type SocketOptions, socket } from '../../src/index.ts';
import { TROUPE, Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { assertFigure } from '../harness/pace.ts';
import { atScale } from '../harness/scale.ts';
import { elapse, until } from '../harness/wait.ts';
import type { Agent } from './agent.ts';
import { Cli, isBuilt } from './cli.ts';
import { troupe as command, Running } from './in-process.ts';

const test = suite(
  'troupe attach',
  !isBuilt
    ? 'dist is not built: npm run build'
    : process.platform === 'win32'
      ? 'the paths of this file are those of POSIX'
      : undefined,
);

const MAIN = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));
const SHARED = fileURLToPath(new URL('../fixtures/socket/shared.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'troupe-attach-'));
/** Cleans up processes and files that a test leaves behind. */
const started = new Set<number>();
let count = 0;

function freshPath(): string {
  count += 1;
  return join(folder, `${count}.sock`);
}

function troupe(...args: readonly string[]): Cli {
  const cli = new Cli(args);
  started.add(cli.process.pid ?? 0);
  return cli;
}

/** Starts `troupe serve` and waits until it listens. */
async function serve(path: string, ...options: readonly string[]): Promise<Cli> {
  const server = troupe('serve', SHARED, '--socket', path, ...options);
  await server.said('troupe attach');
  return server;
}

/** Starts a process of an agent with an open session. */
async function agent(...args: readonly string[]): Promise<Cli> {
  const cli = troupe('attach', ...args);
  await cli.initialize();
  return cli;
}

/** Runs the shim of an agent in this process. */
const shim = (...args: readonly string[]): Running => new Running(['attach', ...args]);

async function attached(...args: readonly string[]): Promise<Running> {
  const running = shim(...args);
  await running.initialize();
  return running;
}

const some = <T>(number: number, make: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: number }, make));

async function pidOf(agent: Agent): Promise<number> {
  const { pid } = JSON.parse(await agent.call('pid'));
  started.add(pid);
  return pid;
}

async function pidsOf(agents: readonly Agent[]): Promise<number[]> {
  return [...new Set(await Promise.all(agents.map(pidOf)))];
}

/** A program that tells its name, and has a call that waits. */
const named = (name: string): string => `import { createServer } from '${TROUPE}';
const server = createServer({ name: '${name}', version: '1.0.0', limits: { graceMs: 100 }, log() {} });
server.tool('who', {}, () => '${name}');
server.tool('wait', {}, (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('aborted'))));
export default server;
`;

/** Serves an `echo` on a socket in this process. */
async function echo(path: string, options: SocketOptions = {}): Promise<Server> {
  const server = createServer({ name: 'echo', version: '1.0.0', log() {} });
  const input = { type: 'object', properties: { text: { type: 'string' } } } as const;
  server.tool('echo', { input }, ({ text }) => String(text));
  await server.listen(socket(path, options));
  return server;
}

const times = (text: string, all: string): number => all.split(text).length - 1;
const said = (file: string, text: string): number => times(text, readFileSync(file, 'utf8'));

test.after(() => {
  started.delete(0);
  for (const pid of started) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has exited, as expected.
    }
  }
  rmSync(folder, { recursive: true, force: true });
});

/** The server of the first two tests. */
let server: Cli;
const sharedPath = freshPath();
test.before(async () => {
  server = await serve(sharedPath);
});

const CLIENTS = atScale({ quick: 2, full: 4, proof: 20 });

test(`${CLIENTS} official clients share one process, each with its own name, log level, progress and cancellation`, async () => {
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, async (_, index) => {
      const client = new Client({ name: `agent-${index}`, version: '1.0.0' });
      const logged: unknown[] = [];
      client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logged.push(params.data));
      await client.connect(new StdioClientTransport({ command: process.execPath, args: [MAIN, 'attach', sharedPath] }));
      return { client, logged, index };
    }),
  );
  const pids = new Set<unknown>();
  const sessions = new Set<unknown>();
  const result = async (client: Client, name: string): Promise<Record<string, unknown>> => {
    const { structuredContent } = await client.callTool({ name });
    return structuredContent as Record<string, unknown>;
  };
  await Promise.all(
    clients.map(async ({ client, logged, index }) => {
      pids.add((await result(client, 'pid')).pid);
      const who = await result(client, 'who');
      assert.is(who.client, `agent-${index}`);
      sessions.add(who.session);
      await client.setLoggingLevel(index % 2 === 0 ? 'debug' : 'error');
      await client.callTool({ name: 'log' });
      const expected = index % 2 === 0 ? ['something small', 'something large'] : ['something large'];
      await until(() => logged.length >= expected.length);
      assert.equal(logged, expected);
      const steps: unknown[] = [];
      const finished = client.callTool({ name: 'progress' }, undefined, {
        onprogress: ({ progress }) => void steps.push(progress),
      });
      await until(() => steps.at(-1) === 3);
      await client.callTool({ name: 'end-progress' });
      await finished;
    }),
  );
  const cancels = clients.map(({ client, index }) => {
    const cancel = new AbortController();
    const waiting = client.callTool({ name: 'wait' }, undefined, { signal: cancel.signal });
    return { cancel, even: index % 2 === 0, ended: waiting.then(String, String) };
  });
  await server.said('waits\n', CLIENTS);
  for (const { cancel, even } of cancels) if (even) cancel.abort(new Error('enough'));
  await server.said('waits no more\n', CLIENTS / 2);
  for (const { even, ended } of cancels) if (even) assert.match(await ended, /enough/);
  assert.is(times('waits no more\n', server.err), CLIENTS / 2);
  assert.equal({ pids: pids.size, sessions: sessions.size }, { pids: 1, sessions: CLIENTS });
  await Promise.all(clients.map(({ client }) => client.close()));
  // The requests of clients that have gone end, too.
  await server.said('waits no more\n', CLIENTS);
});

const KILLED = atScale({ quick: 1, full: 2, proof: 2 });

test.full('an agent that is killed does not affect the others', async () => {
  const killed = await some(KILLED, () => agent(sharedPath));
  const [first, ...others] = await some(4, () => attached(sharedPath, '--wait', '1'));
  first?.call('wait').catch(() => {});
  for (const cli of killed) cli.call('wait').catch(() => {});
  await server.said('waits\n', CLIENTS + KILLED + 1);
  const calls = others.map((cli) => cli.call('echo', { text: 'x'.repeat(100_000) }));
  for (const cli of killed) cli.process.kill('SIGKILL');
  for (const text of await Promise.all(calls)) assert.is(text.length, 100_000);
  // The server aborts their requests after the grace time.
  await server.said('waits no more\n', CLIENTS + KILLED);
  assert.is((await pidsOf(others)).length, 1);
  assert.is(times('waits no more\n', server.err), CLIENTS + KILLED);
  server.process.kill('SIGTERM');
  assert.is(await server.exit, 0);
  assert.not(existsSync(sharedPath));
  // The shims give up.
  await Promise.all([first, ...others].map((one) => one?.exit));
});

const SURVIVORS = atScale({ quick: 3, full: 3, proof: 8 });

test('after the server is killed, requests in flight get an error, later ones a response, and the sessions continue', async () => {
  const path = freshPath();
  const all = await some(SURVIVORS, () => attached('--spawn', SHARED, path));
  const [before] = await pidsOf(all);
  await Promise.all(all.map((cli) => cli.request('logging/setLevel', { level: 'error' })));
  await all[0]?.request('resources/subscribe', { uri: 'notes://one' });
  const lost = all.map((cli) => cli.request('tools/call', { name: 'wait', arguments: {} }).then(String, String));
  await until(() => said(`${path}.log`, 'waits\n') === SURVIVORS);
  process.kill(before ?? 0, 'SIGKILL');
  for (const error of await Promise.all(lost)) assert.match(error, /-32603.*the server restarted/i);
  // The next server has not started yet, so these requests wait.
  for (const who of await Promise.all(all.map((cli) => cli.call('who')))) assert.match(who, '"client":"cli-test"');
  const [after, ...more] = await pidsOf(all);
  assert.is.not(after, before);
  assert.equal(more, []);
  for (const cli of all) {
    cli.messages.length = 0;
    await cli.call('log');
    assert.equal(cli.notifications, ['notifications/message']);
  }
  assert.ok(all[0]?.lines.some((line) => line.includes('notifications/resources/updated')));
  assert.ok(all.every(({ lines }) => lines.some((line) => line.includes('notifications/tools/list_changed'))));
  // No response arrived twice, and no response to the shim's own requests reached the agent.
  for (const { lines } of all) {
    const ids = lines.flatMap((line) => /"id":(\d+)/.exec(line)?.[1] ?? []);
    assert.is(new Set(ids).size, ids.length);
  }
  for (const code of await Promise.all(all.map((cli) => cli.end()))) assert.is(code, 0);
});

/** The server counts from its start, too: on a busy machine its first agent may be late. */
const IDLE_MS = 2_000;
const AT_ONCE = atScale({ quick: 2, full: 5, proof: 10 });

/** No system gives a process such a number. */
const KILLED_PID = 4_194_305;

/** Leaves the socket of a killed server, and the lock of a killed shim. */
async function stalePath(): Promise<string> {
  const path = freshPath();
  const gone = listen().listen(`${path}.first`);
  await once(gone, 'listening');
  // A server that closes removes the name that it knows, as a killed one cannot.
  linkSync(`${path}.first`, path);
  gone.close();
  await once(gone, 'close');
  writeFileSync(`${path}.lock`, String(KILLED_PID));
  return path;
}

test(`${AT_ONCE} agents at once start one server, also beside a stale socket and a stale lock, and it exits some time after the last agent`, async () => {
  const path = await stalePath();
  const all = await some(AT_ONCE, () => agent('--spawn', SHARED, path, '--idle-exit', `${IDLE_MS}`));
  assert.is((await pidsOf(all)).length, 1);
  assert.is(said(`${path}.log`, 'serve: shared'), 1);
  assert.not(existsSync(`${path}.lock`));
  assert.is(statSync(`${path}.log`).mode & 0o777, 0o600);
  const [last, ...others] = all;
  for (const code of await Promise.all(others.map((cli) => cli.end()))) assert.is(code, 0);
  await elapse(IDLE_MS + 200, 'more than the time after which a server without clients ends');
  assert.is((await pidsOf(last ? [last] : [])).length, 1);
  assert.is(await last?.end(), 0);
  await until(() => !existsSync(path));
  await until(() => said(`${path}.log`, 'shutting down: no client was connected for 2 s') === 1);
  assert.is(said(`${path}.log`, 'serve: shared'), 1);
});

test('without PATH, the socket depends on the real path of the file and on its arguments', () => {
  const env = { XDG_RUNTIME_DIR: mkdtempSync(join(folder, 'runtime-')) };
  const server = (file: string, ...args: readonly string[]): string =>
    new SharedServer(file, args, { path: undefined, idleMs: 1, inspect: false, cwd: dirname(SHARED), env }).path;
  const path = server(SHARED);
  assert.is(server('../socket/shared.mjs'), path);
  assert.is.not(server(SHARED, 'other', 'arguments'), path);
  assert.is(dirname(path), join(env.XDG_RUNTIME_DIR, 'troupe'));
  assert.is(statSync(dirname(path)).mode & 0o777, 0o700);
});

test.full('without PATH, all agents that name the same file share a server', async () => {
  const env = { ...process.env, XDG_RUNTIME_DIR: mkdtempSync(join(folder, 'runtime-')) };
  const spawned = async (...args: readonly string[]): Promise<Running> => {
    const running = new Running(['attach', '--spawn', ...args], { env });
    await running.initialize();
    return running;
  };
  const [one, two] = await Promise.all([
    spawned(SHARED, '--idle-exit', `${IDLE_MS}`),
    spawned(`${SHARED.replace('shared.mjs', '')}/../socket/shared.mjs`, '--idle-exit', `${IDLE_MS}`),
  ]);
  const other = await spawned(SHARED, '--idle-exit', `${IDLE_MS}`, '--', 'other', 'arguments');
  assert.is((await pidsOf([one, two])).length, 1);
  assert.is((await pidsOf([one, two, other])).length, 2);
  await Promise.all([one, two, other].map((cli) => cli.end()));
});

test('a draining server keeps its clients; a new agent reaches the next server, and so does the old one later', async () => {
  const path = freshPath();
  const folder = new Tree({ 'package.json': '{ "type": "module" }', 'one.mjs': named('one'), 'two.mjs': named('two') });
  const old = shim(path);
  const one = new Running(['serve', 'one.mjs', '--socket', path], { cwd: folder.path });
  await old.initialize();
  const waiting = old.call('wait').then(String, String);
  await old.request('ping');
  one.signal('SIGTERM');
  await one.said('shutting down: SIGTERM');
  await until(() => !existsSync(path));
  const two = new Running(['serve', 'two.mjs', '--socket', path], { cwd: folder.path });
  await two.said('connect clients with');
  const fresh = await attached(path);
  assert.is(await fresh.call('who'), 'two');
  assert.match(await waiting, /-31003.*SIGTERM/);
  assert.is(await one.exit, 0);
  // The session of the old server continues there.
  assert.is(await old.call('who'), 'two');
  await Promise.all([old.end(), fresh.end()]);
  two.signal('SIGTERM');
  assert.is(await two.exit, 0);
});

test.full('a draining server keeps its clients; a new agent starts a new server in another process', async () => {
  const path = freshPath();
  const server = await serve(path);
  const old = await attached(path);
  old.call('wait').catch(() => {});
  await server.said('waits');
  server.process.kill('SIGTERM');
  await server.said('shutting down: SIGTERM');
  const fresh = await attached('--spawn', SHARED, path, '--idle-exit', `${IDLE_MS}`);
  const [pid] = await pidsOf([fresh]);
  assert.is.not(pid, server.process.pid);
  assert.is(await server.exit, 0);
  // The session of the old server continues there.
  assert.equal(await pidsOf([old]), [pid]);
  await Promise.all([old.end(), fresh.end()]);
});

test('at the end of input, the shim delivers all responses and ends with code 0', async () => {
  const path = freshPath();
  const server = await echo(path);
  const one = await attached(path);
  const answers = [1, 2, 3].map((index) => one.call('echo', { text: `${index}` }));
  const ended = one.end();
  assert.equal(await Promise.all(answers), ['1', '2', '3']);
  assert.is(await ended, 0);
  assert.is(await shim(path).end(), 0);
  await server.close();
});

test.full('the shim ends silently when the agent stops reading', async () => {
  const path = freshPath();
  const server = await echo(path);
  const one = await agent(path);
  one.process.stdout?.destroy();
  one.call('echo', { text: 'x' }).catch(() => {});
  assert.is(await one.exit, 0);
  assert.is(one.err, '');
  await server.close();
});

test('large messages pass both ways, and the server rejects bytes that are not UTF-8', async () => {
  const path = freshPath();
  const server = await echo(path);
  const one = await attached(path);
  const text = 'ä€😀'.repeat(100_000);
  assert.is(await one.call('echo', { text }), text);
  one.feed(Buffer.from([0xff, 0xfe, 0x0a]));
  await one.until(() => one.messages.some(({ error }) => error !== undefined), 'the error');
  assert.match(JSON.stringify(one.messages.at(-1)), '-32700');
  assert.is(await one.call('echo', { text: 'still here' }), 'still here');
  await one.end();
  await server.close();
});

test('a shim waits for a server that has not started yet, and for a free connection of a full server', async () => {
  const path = freshPath();
  const early = shim(path);
  const opened = early.initialize();
  await early.said('no server listens');
  const server = await echo(path, { maxConnections: 1 });
  await opened;
  const second = shim(path);
  const waited = second.initialize();
  await second.said('accepts 1 connections at once');
  assert.is(await early.end(), 0);
  await waited;
  assert.is(await second.end(), 0);
  await server.close();
});

test('a shim without a server ends when its agent closes the input', async () => {
  // It would wait for longer than a test may take.
  const one = shim(freshPath(), '--wait', '3600000');
  await one.said('no server listens');
  assert.is(await one.end(), 0);
});

test('a shim that finds no server in time answers waiting requests, prints the reason, and ends with code 1', async () => {
  const one = shim(freshPath(), '--wait', '200');
  const error = await one.initialize().then(String, String);
  assert.match(error, /-32603.*gave up after 200 ms: no server listens on/);
  assert.is(await one.exit, 1);
  assert.match(one.err, 'troupe attach: gave up after 200 ms: no server listens on');
});

/** An untrusted socket that records what it receives. */
async function impostor(path: string): Promise<{ readonly heard: string[]; close(): void }> {
  const heard: string[] = [];
  const server = listen((socket) => {
    heard.push('a connection');
    socket.on('data', (bytes) => void heard.push(bytes.toString())).on('error', () => {});
  }).listen(path);
  await once(server, 'listening');
  return { heard, close: () => void server.close() };
}

async function refused(args: readonly string[], expected: RegExp): Promise<void> {
  const cli = shim(...args);
  const answer = cli.initialize().then(String, String);
  assert.is(await cli.exit, 1);
  assert.match(cli.err, expected);
  assert.not.match(cli.err, 'retrying');
  assert.match(await answer, expected);
}

for (const mode of [0o777, 0o1777, 0o770, 0o720]) {
  test(`S-37 a socket in a directory of mode ${mode.toString(8)} is rejected: others may have created it`, async () => {
    const directory = mkdtempSync(join(folder, 'open-'));
    const path = join(directory, 's.sock');
    const { heard, close } = await impostor(path);
    chmodSync(directory, mode);
    // The same through a symbolic link in a safe directory, to the socket or to its directory.
    const [link, way] = [freshPath(), freshPath()];
    symlinkSync(path, link);
    symlinkSync(directory, way);
    for (const args of [[path], [link], [join(way, 's.sock')], ['--spawn', SHARED, path]])
      await refused(args, /other users may write to the directory/);
    assert.equal(heard, []);
    assert.equal(readdirSync(directory), ['s.sock']);
    close();
  });
}

test('S-37 a socket or a directory of another user is rejected', async () => {
  // Only root can change the owner of a file.
  if (process.getuid?.() !== 0) return;
  const [mine, theirs] = [mkdtempSync(join(folder, 'mine-')), mkdtempSync(join(folder, 'theirs-'))];
  for (const [directory, given, expected] of [
    [mine, join(mine, 's.sock'), /s\.sock belongs to the user 12345, and you are 0/],
    [theirs, theirs, /the directory .*theirs-.* belongs to the user 12345, and you are 0/],
  ] as const) {
    const path = join(directory, 's.sock');
    const { heard, close } = await impostor(path);
    chownSync(given, 12_345, 12_345);
    for (const args of [[path], ['--spawn', SHARED, path]]) await refused(args, expected);
    assert.equal(heard, []);
    chownSync(given, 0, 0);
    close();
  }
});

test('S-37 a file that is not a socket is rejected at once', async () => {
  const path = freshPath();
  writeFileSync(path, '');
  await refused([path], /the file at .* is not a socket/);
});

test('S-37 attach --spawn starts no server in a runtime directory to which others can write', async () => {
  const runtime = mkdtempSync(join(folder, 'runtime-'));
  mkdirSync(join(runtime, 'troupe'));
  chmodSync(join(runtime, 'troupe'), 0o777);
  const { code, err } = await command(['attach', '--spawn', SHARED], { env: { XDG_RUNTIME_DIR: runtime } });
  assert.is(code, 1);
  assert.match(err, /^troupe attach: socket: other users may write to the directory .*\n$/);
  assert.equal(readdirSync(join(runtime, 'troupe')), []);
});

test.full('a failed start is reported with the last line of its log', async () => {
  const broken = join(folder, 'broken.mjs');
  writeFileSync(broken, 'throw new Error("no database")');
  const options = { path: freshPath(), idleMs: 1, inspect: false, cwd: folder, env: process.env };
  const why = await new SharedServer(broken, [], options).start().then(String, String);
  assert.match(why, /cannot start the server for .*: it ended with code 1\. Last line of .*: no database/);
});

test.full('the shim gives up after three failed starts, with the last line of the log', async () => {
  const broken = join(folder, 'broken.mjs');
  writeFileSync(broken, 'throw new Error("no database")');
  const path = freshPath();
  const cli = shim('--spawn', broken, path);
  assert.match(
    await cli.initialize().then(String, String),
    /-32603.*cannot start the server for .*: it ended with code 1/,
  );
  assert.is(await cli.exit, 1);
  assert.match(cli.err, 'no database');
  assert.is(said(`${path}.log`, 'no database'), 3);
});

/** The costs of a process at its first output. */
interface Cost {
  readonly ms: number;
  readonly cpuMs: number;
  readonly bytes: number;
}

/** The minimum of several measurements: other processes cause the rest. */
async function least(measure: () => Promise<Cost>): Promise<Cost> {
  const costs: Cost[] = [];
  for (let time = 0; time < 4; time += 1) costs.push(await measure());
  const min = (pick: (cost: Cost) => number): number => Math.min(...costs.map(pick));
  return { ms: min(({ ms }) => ms), cpuMs: min(({ cpuMs }) => cpuMs), bytes: min(({ bytes }) => bytes) };
}

/** The processor time in milliseconds and the memory in bytes, where the system exposes them as files; otherwise 0. */
function costOf(pid: number | undefined, began: number): Cost {
  const ms = performance.now() - began;
  if (!existsSync(`/proc/${pid}/stat`)) return { ms, cpuMs: 0, bytes: 0 };
  const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15).map(Number);
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return { ms, cpuMs: (user + system) * 10, bytes: Number(kilobytes) * 1024 };
}

test.full('it starts in well under 100 ms more than node itself, with a few MB of its own', async () => {
  const path = freshPath();
  const server = await serve(path);
  const node = await least(async () => {
    const began = performance.now();
    const child = spawn(process.execPath, ['-e', 'process.stdout.write("x"); process.stdin.resume()']);
    await new Promise((resolve) => child.stdout.once('data', resolve));
    const cost = costOf(child.pid, began);
    child.kill();
    return cost;
  });
  const own = await least(async () => {
    const began = performance.now();
    const one = await agent(path);
    const cost = costOf(one.process.pid, began);
    await one.end();
    return cost;
  });
  const calls = async (cli: Cli): Promise<number> => {
    const { ms } = await least(async () => {
      const began = performance.now();
      for (let call = 0; call < 50; call += 1) await cli.request('ping');
      return costOf(undefined, began);
    });
    return ms / 50;
  };
  const direct = troupe('run', '--no-supervisor', SHARED);
  await direct.initialize();
  const one = await agent(path);
  const [through, without] = [await calls(one), await calls(direct)];
  await Promise.all([one.end(), direct.end()]);
  server.process.kill('SIGKILL');
  const show = ({ ms, cpuMs, bytes }: Cost): string =>
    `${ms.toFixed(0)} ms (${cpuMs} ms of processor), ${(bytes / 1_048_576).toFixed(1)} MB`;
  process.stdout.write(
    `\n    to the first answer ${show(own)}; node alone ${show(node)}; a ping ${through.toFixed(2)} ms, direct ${without.toFixed(2)} ms\n`,
  );
  assertFigure(own.cpuMs - node.cpuMs, 100, 'processor time more than that of node');
  assert.ok(own.bytes - node.bytes < 16 * 1_048_576, `${own.bytes} bytes`);
});

test('it does not load the server or any package', () => {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, from = ''] of readFileSync(file, 'utf8').matchAll(/^import (?!type)[^;]*?'([^']+)'/gms)) {
      assert.ok(from.startsWith('.') || from.startsWith('node:'), `${file} imports ${from}`);
      if (from.startsWith('.')) visit(join(dirname(file), from));
    }
  };
  const source = fileURLToPath(new URL('../../src/', import.meta.url));
  for (const file of ['main', 'commands/attach', 'shim/shared-server']) visit(join(source, 'cli', `${file}.ts`));
  const layers = [...seen].map((file) =>
    relative(source, file)
      .split(sep)
      .slice(0, file.startsWith(join(source, 'cli')) ? 1 : 2)
      .join('/'),
  );
  assert.equal([...new Set(layers)].sort(), [
    'cli',
    'core/kernel',
    'core/protocol',
    'core/server',
    'core/transports',
    // The check of `--cluster`.
    'features/cluster',
    'features/discovery',
  ]);
});
