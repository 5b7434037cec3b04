/** The waits of runs: for approvals of the caller and of other people, for clients that cannot be asked, and for sign-ins. */
import * as assert from 'uvu/assert';
import { META } from '../../../src/core/protocol/meta.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { Server } from '../../../src/index.ts';
import { connect, SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';
import { textOf } from '../../harness/results.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until, untilPassed } from '../../harness/wait.ts';
import { ASKABLE, asked, pass, pausedIn, resultIn, runModern, type Workshop, workshop } from './support.ts';

const test = suite('waits of runs');

const DAY_MS = 86_400_000;
const SLEEP_MS = 3 * DAY_MS;
const TASKS = { ...ASKABLE, extensions: { 'io.modelcontextprotocol/tasks': {} } };

const OPS = { principal: 'olga', scopes: ['ops'] } as const;

function byOps(server: Server): void {
  server.authorize(({ element }) => element.name !== 'write' || { approve: { by: { scope: 'ops' } } }, {
    ...{ name: 'writes', version: '1' },
  });
}

async function theOnly(server: Server) {
  let [first] = await server.approvals.list();
  await until(async () => {
    [first] = await server.approvals.list();
    return first !== undefined;
  });
  return first?.id ?? '';
}

const CODE = 'const a = await t.write({ n: 1 }); return [a, (await t.read({ n: 4 })).double];';

test('a run waits for other people, its request is answered meanwhile, and their approval lets it continue', async () => {
  const { server, clock, written } = workshop();
  byOps(server);
  const client = await connect(server, { auth: { principal: 'ada' } });
  const running = runModern(client, { code: CODE });
  const id = await theOnly(server);
  await pass(clock, 20_000);
  const paused = await running;
  assert.match(
    textOf(paused),
    /^paused: run [\w-]+, call 1 of t\.write waits for the approval of .*, until \S+\. (?!.*call "write" again)(?!.*\.\.).*Nothing has failed/s,
  );
  await server.approvals.decide(id, { approver: OPS, decision: 'approve' });
  await pass(clock, 0);
  assert.equal(written, [1]);
  assert.equal(resultIn(await runModern(client, { resume: pausedIn(paused) })), ['wrote 1', 8]);
});

test('an approval of a run is used by no call outside of it', async () => {
  const { server, written } = workshop();
  byOps(server);
  const client = await connect(server, { auth: { principal: 'ada' } });
  const running = runModern(client, { code: CODE });
  const id = await theOnly(server);
  // The same call by the client itself needs another one.
  await client.modern('tools/call', { name: 'write', arguments: { n: 1 } });
  assert.is((await server.approvals.list()).length, 2);
  await server.approvals.decide(id, { approver: OPS, decision: 'approve' });
  assert.equal(resultIn(await running), ['wrote 1', 8]);
  const again = await client.modern('tools/call', { name: 'write', arguments: { n: 1 } });
  assert.is(again.isError, true);
  assert.equal(written, [1]);
});

test('a denial of other people throws with their reason, and too many denials end the run', async () => {
  const { server } = workshop({ limits: { codeDenials: 2 } });
  byOps(server);
  const client = await connect(server, { auth: { principal: 'ada' } });
  const code = 'for (;;) { try { await t.write({ n: 1 }); } catch ({ message }) { console.log(message); } }';
  const running = runModern(client, { code });
  for (let times = 0; times < 2; times += 1)
    await server.approvals.decide(await theOnly(server), { approver: OPS, decision: 'deny', reason: 'not today' });
  const text = textOf(await running);
  assert.match(text, /2 of its calls were denied/);
  assert.match(text, /not today/);
});

test('a client that cancels withdraws what its run has asked of other people', async () => {
  const { server, clock } = workshop();
  byOps(server);
  const client = await inSession(server, '2025-06-18', {}, {});
  client.raw(
    JSON.stringify({
      ...{ jsonrpc: '2.0', id: 7, method: 'tools/call' },
      params: { name: 'run_code', arguments: { code: CODE } },
    }),
  );
  const id = await theOnly(server);
  client.notify('notifications/cancelled', { requestId: 7 });
  await pass(clock, 0);
  assert.is((await server.approvals.get(id))?.state, 'withdrawn');
});

test('an approval that was asked in one process is given in the next, and the call runs once', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const first = workshop({ store: new TestStore(inner) }, undefined, clock);
  byOps(first.server);
  const running = runModern(await connect(first.server, { auth: { principal: 'ada' } }), { code: CODE });
  const id = await theOnly(first.server);
  await pass(clock, 20_000);
  const run = pausedIn(await running);
  await first.server.close();
  const second = workshop({ store: new TestStore(inner) }, undefined, clock);
  byOps(second.server);
  const client = await connect(second.server, { auth: { principal: 'ada' } });
  await second.server.approvals.decide(id, { approver: OPS, decision: 'approve' });
  await until(() => second.written.length === 1);
  await pass(clock, 0);
  assert.equal(resultIn(await runModern(client, { resume: run })), ['wrote 1', 8]);
  assert.equal([first.written, second.written], [[], [1]]);
});

test('effects need the approval of the caller, once for each call, and a client that cannot be asked gets a way', async () => {
  const { server, written } = workshop({}, {});
  const client = await connect(server, { auth: { principal: 'ada' } });
  const args = { code: 'return Promise.all([t.write({ n: 1 }), t.write({ n: 1 })]);' };
  const { keys, state } = asked(await runModern(client, args));
  assert.is(keys.length, 2);
  const inputResponses = Object.fromEntries(
    keys.map((key) => [key, { action: 'accept', content: { decision: 'approve' } }]),
  );
  assert.equal(resultIn(await runModern(client, args, { requestState: state, inputResponses })), [
    'wrote 1',
    'wrote 1',
  ]);
  assert.equal(written, [1, 1]);
});

test('the calls of a run for which the caller has approved more ask no more, and those of the next run ask again', async () => {
  const { server, written } = workshop({}, {});
  const client = await connect(server, { auth: { principal: 'ada' } });
  const args = { code: 'for (const n of [1, 2, 3]) await t.write({ n });' };
  const { keys, state } = asked(await runModern(client, args));
  const inputResponses = { [keys[0] ?? '']: { action: 'accept', content: { decision: 'approve', remember: true } } };
  const done = await runModern(client, args, { requestState: state, inputResponses });
  assert.match(textOf(done), /The script returned nothing/);
  assert.equal(written, [1, 2, 3]);
  asked(await runModern(client, args));
});

test('a rule that demands an approval itself takes the place of that of the caller', async () => {
  const { server } = workshop({}, {});
  byOps(server);
  const client = await connect(server, { auth: { principal: 'ada' } });
  const running = runModern(client, { code: CODE });
  const [open] = await server.approvals.list().then(async () => [await server.approvals.get(await theOnly(server))]);
  assert.equal(
    open?.by.map(({ who }) => who),
    ['somebody with the scope ops'],
  );
  await server.approvals.decide(open?.id ?? '', { approver: OPS, decision: 'approve' });
  assert.equal(resultIn(await running), ['wrote 1', 8]);
});

test('a client that cannot be asked gets the question as a paused run, which another client of the caller answers', async () => {
  const { server, clock } = workshop();
  const first = await connect(server, { auth: { principal: 'ada' } });
  const args = { code: 'return (await t.who()).name;' };
  const { state } = asked(await runModern(first, args));
  assert.ok(state);
  const other = await connect(server, { auth: { principal: 'ada' } });
  const running = runModern(other, { code: 'await sleep(60000); return (await t.who()).name;' });
  await settled();
  await pass(clock, 20_000);
  const run = pausedIn(await running);
  await pass(clock, 60_000);
  // The call was made while no client waited, so that its tool could not ask.
  const text = textOf(await runModern(other, { resume: run }));
  assert.match(text, /elicitation/);
});

test('the audit names the run and the number of each of its calls', async () => {
  const { server, audit } = workshop();
  const client = await connect(server, { auth: { principal: 'ada' } });
  await runModern(client, { code: 'await t.read({}); await t.write({});' });
  const runs = audit.flatMap(({ run }) => run ?? []);
  assert.equal(
    runs.map((run) => run.split('/')[1]),
    ['1', '2'],
  );
  assert.is(new Set(runs.map((run) => run.split('/')[0])).size, 1);
});

test('a caller has so many runs that wait, and so many that compute', async () => {
  const { server } = workshop({ limits: { codeLiveRuns: 1, codeOpenRuns: 1 } });
  const client = await connect(server, { auth: { principal: 'ada' } });
  void runModern(client, { code: 'await sleep(1000);' }).catch(() => {});
  await settled();
  await settled();
  assert.match(textOf(await runModern(client, { code: 'return 1;' })), /did not run: 1 scripts of this caller wait/);
  const other = await connect(server, { auth: { principal: 'bob' } });
  assert.is(resultIn(await runModern(other, { code: 'return 1;' })), 1);
});

test('without a durable store a run that waits ends with the process, and its request learns it', async () => {
  const { server, clock } = workshop();
  const client = await inSession(server, '2025-06-18');
  const running = client.send('tools/call', { name: 'run_code', arguments: { code: 'await sleep(600000);' } });
  await settled();
  await settled();
  const ended = running.then(textOf, String);
  const closing = server.close();
  await pass(clock, 10_000);
  await closing;
  assert.is(await ended, 'ErrorResponse: the server was closed');
});

test('a tool that runs only as a task is one for a script, asks its questions, and is cancelled with the run', async () => {
  const { server, clock } = workshop();
  let isAborted = false;
  server.tool('job', { task: 'required' }, async (_: unknown, ctx) => {
    const answer = await ctx.elicit({
      message: 'Which?',
      schema: { type: 'object', properties: { n: { type: 'number' } } },
    });
    await ctx.elicit({ message: 'Sure?', schema: { type: 'object', properties: { n: { type: 'number' } } } });
    return `job ${answer.status === 'accepted' ? JSON.stringify(answer.content) : answer.status}`;
  });
  server.tool('endless', { task: 'required' }, async (_: unknown, ctx) => {
    ctx.signal.addEventListener('abort', () => {
      isAborted = true;
    });
    await new Promise(() => {});
  });
  const client = await connect(server, { auth: { principal: 'ada' } });
  const args = { code: 'return t.job();' };
  const first = runModern(client, args);
  await pass(clock, 1_000);
  const { keys, messages, state } = asked(await first);
  assert.equal(messages, ['Which?']);
  const inputResponses = { [keys[0] ?? '']: { action: 'accept', content: { n: 7 } } };
  const again = runModern(client, args, { requestState: state, inputResponses });
  for (let times = 0; times < 4; times += 1) await pass(clock, 1_000);
  const more = asked(await again);
  assert.equal(more.messages, ['Sure?']);
  const second = runModern(client, args, {
    requestState: more.state,
    inputResponses: { [more.keys[0] ?? '']: { action: 'accept', content: { n: 8 } } },
  });
  for (let times = 0; times < 4; times += 1) await pass(clock, 1_000);
  assert.is(resultIn(await second), 'job {"n":7}');
  const waiting = runModern(client, { code: 'await t.endless();' });
  for (let times = 0; times < 30; times += 1) await pass(clock, 1_000);
  assert.match(textOf(await waiting), /call 1 of t\.endless is a task/);
  await pass(clock, 86_400_000);
  assert.is(isAborted, true);
});

test('the task of a call is followed by the next process', async () => {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const open: (() => void)[] = [];
  const start = () => {
    const made = workshop({ store: new TestStore(inner) }, undefined, clock);
    made.server.tool('job', { task: 'required', rerun: true }, async () => {
      await new Promise<void>((resolve) => void open.push(resolve));
      return 'done';
    });
    return made;
  };
  const first = start();
  const running = runModern(await connect(first.server, { auth: { principal: 'ada' } }), { code: 'return t.job();' });
  for (let times = 0; times < 25; times += 1) await pass(clock, 1_000);
  const run = pausedIn(await running);
  await first.server.close();
  const second = start();
  const client = await connect(second.server, { auth: { principal: 'ada' } });
  await until(() => open.length === 2);
  open[1]?.();
  for (let times = 0; times < 5; times += 1) await pass(clock, 1_000);
  assert.is(resultIn(await runModern(client, { resume: run })), 'done');
});

/** A script that sleeps for longer than tasks live, until it is a task. */
async function asleep(shop: Workshop) {
  const client = await connect(shop.server, { auth: { principal: 'ada' } });
  const running = runModern(client, { code: `await sleep(${SLEEP_MS}); return t.write({ n: 1 });` }, {}, TASKS);
  await settled();
  await pass(shop.clock, 20_000);
  const { resultType, taskId, ttlMs } = await running;
  assert.is(resultType, 'task');
  // It is open for a day after its sleep, at most.
  assert.is(ttlMs, SLEEP_MS + DAY_MS - 1_000);
  return String(taskId);
}

async function lookAt(shop: Workshop, taskId: string) {
  const client = await connect(shop.server, { auth: { principal: 'ada' } });
  return client.modern('tasks/get', { taskId }, { [META.clientCapabilities]: TASKS });
}

test('the task of a script lives as long as the script may wait, although it sleeps for longer than tasks live', async () => {
  const shop = workshop();
  const task = await asleep(shop);
  await pass(shop.clock, SLEEP_MS - 30_000);
  assert.is((await lookAt(shop, task)).status, 'working');
  assert.equal(shop.written, []);
  await pass(shop.clock, 30_000);
  const { status, result } = await lookAt(shop, task);
  assert.is(status, 'completed');
  assert.is(resultIn(Object(result)), 'wrote 1');
});

test('a script whose process is gone wakes in the next process, and its task has the result', async () => {
  const inner = memoryStore();
  const first = workshop({ store: new TestStore(inner) });
  const task = await asleep(first);
  const closing = first.server.close();
  await pass(first.clock, 10_000);
  await closing;
  await first.clock.advance(SLEEP_MS);
  const second = workshop({ store: new TestStore(inner) }, undefined, first.clock);
  await untilPassed(second.clock, async () => (await lookAt(second, task)).status === 'completed', 100);
  assert.equal([first.written, second.written], [[], [1]]);
});
