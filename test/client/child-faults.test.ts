/** Faults of a server that runs as a child: killed, flooding, stubborn, dead at the probe; and the death of the client. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ClientError, connect } from 'troupe/client';
import { SimulatedClock } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { suite } from '../harness/door.ts';
import { atScale } from '../harness/scale.ts';
import { until } from '../harness/wait.ts';
import { program, runs } from './programs.ts';

const test = suite('faults of a child');

/** Long enough for a busy machine. */
const CONNECT_MS = 60_000;
const root = fileURLToPath(new URL('../..', import.meta.url));

test('U-01 a child is killed with 100 calls in flight: each has one outcome, reads are repeated once, calls never', async () => {
  const server = program('dies after 110');
  const client = await connect(server.command, { eras: 'legacy', connectMs: CONNECT_MS, waitMs: CONNECT_MS });
  const outcomes: unknown[] = [];
  const calls = Array.from({ length: 100 }, (_, index) =>
    client.call(`tool-${index}`).then(
      () => outcomes.push('result'),
      (error: unknown) => outcomes.push(error),
    ),
  );
  const reads = Array.from({ length: 10 }, (_, index) => client.read(`notes://${index}`));
  await Promise.all(calls);
  assert.is(outcomes.length, 100);
  for (const outcome of outcomes) {
    assert.instance(outcome, ClientError);
    if (outcome instanceof ClientError) assert.equal([outcome.reason, outcome.carriedOut], ['closed', 'unknown']);
  }
  assert.is((await Promise.all(reads)).length, 10);
  const notes = server.notes();
  for (let index = 0; index < 100; index += 1)
    assert.is(notes.filter((note) => note === `tools/call tool-${index}`).length, 1);
  for (let index = 0; index < 10; index += 1)
    assert.is(notes.filter((note) => note === `resources/read notes://${index}`).length, 2);
  await client.close();
  assert.equal(server.pids().filter(runs), []);
  server.remove();
});

test('U-02 a child floods both streams and answers with a line that is too long: the memory is bounded, and the call fails', async () => {
  const rounds = atScale({ quick: 30, full: 30, proof: 1_000 });
  const server = program(`floods ${rounds}`);
  let logged = 0;
  const client = await connect(server.command, {
    eras: 'legacy',
    connectMs: CONNECT_MS,
    timeoutMs: 600_000,
    maxMessageBytes: 1_000_000,
    log: (level) => {
      if (level !== 'info') logged += 1;
    },
  });
  const before = process.memoryUsage().rss;
  let peak = 0;
  const sampling = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss - before);
  }, 5);
  const error = await client.call('flood').catch((failure: unknown) => failure);
  clearInterval(sampling);
  assert.instance(error, ClientError);
  if (error instanceof ClientError) assert.equal([error.reason, error.carriedOut], ['too long', 'yes']);
  // The line alone has a megabyte for each round.
  assert.ok(peak < 96_000_000, `${Math.round(peak / 1e6)} MB for ${rounds} rounds`);
  assert.ok(client.stderr.length <= 65_536, `${client.stderr.length} characters of stderr`);
  assert.ok(logged < 30, `${logged} warnings`);
  assert.equal((await client.call('other')).content, []);
  await client.close();
  server.remove();
});

test('a receiver of stderr gets each line, also if it throws, and the error of a program that ends does not repeat them', async () => {
  const lines: string[] = [];
  const logged: string[] = [];
  const text = "console.error('first'); console.error('second'); process.exitCode = 3;";
  const stderr = (line: string): void => {
    lines.push(line);
    if (line === 'first') throw new Error('no disk');
  };
  const error = await connect(
    { command: process.execPath, args: ['-e', text], name: 'short', stderr },
    { eras: 'modern', connectMs: CONNECT_MS, log: (_, message) => logged.push(message) },
  ).catch((failure: unknown) => failure);
  assert.instance(error, ClientError);
  assert.match(String(error), /ended with code 3\.$/);
  assert.equal(lines, ['first', 'second']);
  assert.ok(logged.includes('short: the receiver of stderr threw (no disk) for: first'), logged.join('\n'));
});

test('U-03 a child and its child ignore the end of stdin and TERM: both are gone 4 s after close', async () => {
  const clock = new SimulatedClock();
  const server = program('stubborn');
  const client = await connect(server.command, { eras: 'legacy', clock });
  await until(() => server.pids().length === 2);
  const closing = client.close();
  await clock.advance(3_999);
  assert.equal(server.pids().map(runs), [true, true]);
  await clock.advance(1);
  await closing;
  await until(() => !server.pids().some(runs));
  server.remove();
});

test('U-03 the server of a family is killed: calls fail although its child holds the pipes, and the child ends', async () => {
  const server = program('family');
  const client = await connect(server.command, { eras: 'legacy', connectMs: CONNECT_MS });
  await until(() => server.pids().length === 2);
  const [first = 0] = server.pids();
  const call = client.request('never/answered').catch((error: unknown) => error);
  await call;
  const hanging = client.call('x').catch((error: unknown) => error);
  await hanging;
  process.kill(first, 'SIGSTOP');
  const lost = client.call('y').catch((error: unknown) => error);
  process.kill(first, 'SIGKILL');
  const error = await lost;
  assert.instance(error, ClientError);
  if (error instanceof ClientError) assert.equal([error.reason, error.carriedOut], ['closed', 'unknown']);
  await client.close();
  await until(() => !server.pids().some(runs));
  server.remove();
});

/** Connects to programs in a process of its own, prints the processes that it has started, and does what follows. */
function parent(commands: readonly object[], then: string): ReturnType<typeof spawn> {
  const text = `
    import { connect } from 'troupe/client';
    import { readFileSync } from 'node:fs';
    const clients = await Promise.all(${JSON.stringify(commands)}.map((command) => connect(command, { eras: 'legacy', connectMs: ${CONNECT_MS} })));
    await new Promise((done) => process.stdout.write(readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8') + '\\n', done));
    ${then}`;
  return spawn(process.execPath, ['--input-type=module', '-e', text], {
    cwd: root,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
}

async function childrenOf(process: ReturnType<typeof spawn>): Promise<readonly number[]> {
  let text = '';
  while (!text.includes('\n')) text += String((await once(process.stdout ?? process, 'data'))[0]);
  return text.trim().split(' ').map(Number);
}

if (process.platform === 'linux') {
  test('U-04 the client is killed: no child, no grandchild and no guardian is left', async () => {
    const servers = [program('stubborn'), program('stubborn'), program('serves')];
    const client = parent(
      servers.map(({ command }) => command),
      'await clients[1].close(); process.stdout.write("closed\\n"); process.stdin.resume();',
    );
    const started = await childrenOf(client);
    // Three programs and one guardian.
    assert.is(started.length, 4);
    const [left, closed] = servers;
    await until(() => left?.pids().length === 2 && closed?.pids().length === 2);
    await until(() => closed?.pids().some(runs) === false);
    assert.equal(left?.pids().map(runs), [true, true]);
    client.kill('SIGKILL');
    await until(() => ![...started, ...servers.flatMap((server) => server.pids())].some(runs));
    for (const server of servers) server.remove();
  });

  test.full('U-04 a program that has closed its clients ends by itself, and its guardian with it', async () => {
    const server = program('serves');
    const client = parent([server.command, server.command], 'for (const client of clients) await client.close();');
    const started = await childrenOf(client);
    assert.is(started.length, 3);
    const [code] = await once(client, 'exit');
    assert.is(code, 0);
    await until(() => !started.some(runs));
    server.remove();
  });
}

test('U-05 a child that exits on the probe is started again as legacy, and is remembered', async () => {
  const server = program('exits on the probe');
  for (const starts of [2, 3]) {
    const client = await connect(server.command, { connectMs: CONNECT_MS, probeMs: CONNECT_MS });
    assert.is(client.server.era, 'legacy');
    await client.close();
    assert.is(server.pids().length, starts);
  }
  assert.is(server.notes().filter((note) => note.startsWith('server/discover')).length, 1);
  server.remove();
});

test('U-05 a child that is silent to the probe gets `initialize` next, and nothing in between', async () => {
  const server = program('silent to the probe');
  const client = await connect(server.command, { connectMs: CONNECT_MS, probeMs: 300 });
  assert.is(client.server.era, 'legacy');
  await client.call('x');
  assert.equal(
    server
      .notes()
      .slice(1)
      .map((note) => note.trim()),
    ['server/discover', 'initialize', 'notifications/initialized', 'tools/call x'],
  );
  await client.close();
  server.remove();
});

test('a message behind other output on its line is read, and the output is logged', async () => {
  const server = program('noisy');
  const logged: string[] = [];
  const client = await connect(server.command, {
    eras: 'legacy',
    connectMs: CONNECT_MS,
    log: (_level, message) => void logged.push(message),
  });
  assert.equal((await client.call('work')).content, []);
  await client.close();
  assert.match(logged.join('\n'), '[info] {"id":1} 50 %');
  assert.not.match(logged.join('\n'), 'jsonrpc');
  server.remove();
});
