/** Tools that run in threads: what they can do there, that they stall nobody, and that each is ended and answered for. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { ErrorCode, type Server, type ServerOptions } from '../../../src/index.ts';
import { connect, SimulatedClock, type TestClient } from '../../../src/testing/testing.ts';
import { moduleUrl } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { assertFigure } from '../../harness/pace.ts';
import { errorResponse } from '../../harness/results.ts';
import { atScale, PROOF } from '../../harness/scale.ts';
import { until } from '../../harness/wait.ts';

const test = suite('threads');
const heavy = new URL(moduleUrl('test/fixtures/supervision/heavy.ts'));
const FULL = PROOF;

interface Stage {
  readonly server: Server;
  readonly client: TestClient;
  readonly told: string[];
}

async function stage(options: Partial<ServerOptions> = {}, timeoutMs = 20_000): Promise<Stage> {
  const { server, logged: told } = loggedServer({ name: 'threads', ...options });
  server.tool('heavy', { input: z.object({ what: z.string() }), cpu: heavy, timeoutMs });
  server.tool('other', { input: z.object({ what: z.string() }), cpu: heavy });
  server.tool('light', {}, () => 'here');
  return { server, client: await connect(server), told };
}

const say = (result: unknown): string => JSON.stringify(result);

let shared: Stage;
test.before(async () => {
  shared = await stage();
});
test.after(() => shared.server.close());

test('S-30: a tool with cpu runs in a thread, and says there what it says anywhere', async () => {
  const { client } = shared;
  assert.match(say(await client.call('heavy', { what: 'where' })), /in a thread/);
  assert.match(say(await client.call('heavy', { what: 'say' })), /anonymous .* modern/);
  assert.match(say(await client.call('heavy', { what: 'throw' })), /as asked.*"isError":true/);
});

test('a step of a thread is recorded where its request is, and runs once', async () => {
  const { client } = shared;
  const { structuredContent } = await client.call('heavy', { what: 'step' });
  assert.equal(structuredContent, { first: 1, second: 1, ran: ['ran'] });
  assert.match(say(await client.call('heavy', { what: 'bad step' })), /the step failed/);
});

test('a thread can ask its client nothing, and the error says so', async () => {
  const { client } = shared;
  assert.match(say(await client.call('heavy', { what: 'ask' })), /cannot ask its client for input.*"isError":true/);
});

test('a result that cannot be cloned is the call’s error, and the thread continues', async () => {
  const { client } = shared;
  assert.match(say(await client.call('heavy', { what: 'unsendable' })), /could not be cloned/);
  assert.match(say(await client.call('heavy', { what: 'fine' })), /fine/);
});

test('cpu: true where nothing is known of a module is refused with what to write', async () => {
  assert.throws(
    () => shared.server.tools.register({ name: 'lost', cpu: true, handler: () => '' }),
    /lost.*cpu: expected the URL of a module.*new URL\('\.\/heavy\.ts', import\.meta\.url\)/,
  );
});

test('R-11: handlers that never return are ended at their deadline, and their threads serve on', async () => {
  const calls = atScale({ quick: 20, full: 100, proof: 100 });
  const limit = FULL ? 1_000 : 300;
  const { server, client } = await stage({ limits: { cpuThreads: 2 } }, limit);
  // Both threads are there, and both are spent.
  await Promise.all([client.call('other', { what: 'warm' }), client.call('other', { what: 'warm' })]);
  const began = performance.now();
  const took: number[] = [];
  const errors = await Promise.all(
    Array.from({ length: calls }, async (_, at) => {
      const error = await errorResponse(client.call('heavy', { what: at % 2 === 0 ? 'spin' : 'regex' }));
      took.push(performance.now() - began);
      return error.code;
    }),
  );
  assert.equal(new Set(errors), new Set([ErrorCode.TimedOut]));
  const slowest = Math.max(...took);
  assertFigure(slowest, limit + 100, 'the slowest answer');
  // The place of each is free: a call that is well is served by a new thread.
  assert.match(say(await client.call('other', { what: 'well' })), /well/);
  await server.close();
});

test('an endless loop in a thread stalls no other call', async () => {
  const { server, client } = await stage({}, 500);
  await client.call('other', { what: 'warm' });
  const spinning = errorResponse(client.call('heavy', { what: 'spin' }));
  let slowest = 0;
  for (let i = 0; i < 50; i += 1) {
    const began = performance.now();
    await client.call('light', {});
    slowest = Math.max(slowest, performance.now() - began);
  }
  assertFigure(slowest, 450, 'the slowest light call beside a heavy one');
  assert.is((await spinning).code, ErrorCode.TimedOut);
  await server.close();
});

test('a handler that heeds its signal keeps its thread', async () => {
  // On this clock, the time that a handler has to react to its signal passes only when the test says so.
  const clock = new SimulatedClock();
  const { server, client } = await stage({ clock, limits: { cpuThreads: 1 } }, 200);
  const thread = async (): Promise<string> =>
    /thread \d+/.exec(say(await client.call('other', { what: 'thread' })))?.[0] ?? 'none';
  const before = await thread();
  assert.match(before, /thread \d+/);
  let runs = false;
  const onProgress = (): void => {
    runs = true;
  };
  const heeding = errorResponse(client.call('heavy', { what: 'heed' }, { onProgress }));
  await until(() => runs, 'the handler to run');
  await clock.advance(200);
  assert.is((await heeding).code, ErrorCode.TimedOut);
  assert.is(await thread(), before);
  await server.close();
});

test('R-10: calls beyond the queue of the pool are refused at once, by name', async () => {
  const { server, client } = await stage({ limits: { cpuThreads: 1, maxCpuQueue: 5 } }, 500);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => errorResponse(client.call('heavy', { what: 'spin' })).then(({ code }) => code)),
  );
  assert.is(answers.filter((code) => code === ErrorCode.Overloaded).length, 14);
  assert.is(answers.filter((code) => code === ErrorCode.TimedOut).length, 6);
  await server.close();
});

test('R-16: a tool whose threads die is quarantined alone, and an operator can release it', async () => {
  // Time stands still, so that all of it happens within five seconds, however long a thread takes to start.
  const { server, client, told } = await stage({ clock: { ...systemClock, now: () => 0 } });
  for (let i = 0; i < 4; i += 1)
    assert.match(say(await client.call('heavy', { what: 'die' })), /crashed the thread.*process\.exit.*"isError":true/);
  assert.match(say(await client.call('heavy', { what: 'fine' })), /is quarantined.*"isError":true/);
  assert.match(say(await client.call('other', { what: 'fine' })), /fine/);
  const [quarantined] = server.supervision().quarantined;
  assert.is(quarantined?.address, 'cpu/tool "heavy"');
  assert.is(told.filter((line) => line.includes('crashed the thread')).length, 4);
  assert.is(server.release('cpu/tool "heavy"'), true);
  assert.match(say(await client.call('heavy', { what: 'fine' })), /"fine"/);
  await server.close();
});
