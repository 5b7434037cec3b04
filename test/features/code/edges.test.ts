/** Runs at their edges: stores that fail, calls that are not awaited, tasks that are cancelled, sign-ins that end, and limits. */
import * as assert from 'uvu/assert';
import { isJsonObject, isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { LATEST_MODERN } from '../../../src/core/protocol/revisions.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { StoreError, type Write } from '../../../src/core/store/store.ts';
import { connect, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';
import { textOf } from '../../harness/results.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { EXTENSION, idOf } from '../tasks/support.ts';
import { asked, pass, pausedIn, resultIn, runModern, workshop } from './support.ts';

const test = suite('edges of runs');

/** Rejects the writes of events of these kinds. */
class FullStore extends TestStore {
  kinds: readonly string[] = [];

  override write(writes: readonly Write[]): Promise<void> {
    const isFull = writes.some((write) => write.type === 'event' && this.kinds.includes(write.kind));
    return isFull ? Promise.reject(new StoreError('full', 'the disk is full')) : super.write(writes);
  }
}

test('a call whose start cannot be stored is not sent, and a result that cannot be stored is not learned', async () => {
  for (const [kind, ran] of [
    ['begun', []],
    ['started', []],
    ['delivered', [1]],
    ['ended', [1]],
  ] as const) {
    const store = new FullStore(memoryStore());
    const { server, written } = workshop({ store });
    const client = await connect(server, { auth: { principal: 'ada' } });
    store.kinds = [kind];
    const result = await runModern(client, { code: 'await t.write({ n: 1 }); return "done";' });
    assert.equal(written, ran, kind);
    // What was done is known, although no other process will know it.
    if (kind === 'ended') assert.is(resultIn(result), 'done');
    else assert.is(result.isError, true, textOf(result));
    if (kind === 'delivered') assert.match(textOf(result), /do not repeat it: t\.write/);
    assert.not.match(textOf(result), /disk/);
  }
});

test('a result for which there is no room in the memory of its caller is cut, and no resource', async () => {
  const { server } = workshop({ limits: { maxRetainedBytesPerPrincipal: 100_000 } });
  const client = await connect(server, { auth: { principal: 'ada' } });
  const result = await runModern(client, { code: 'return "a".repeat(50000);' });
  assert.match(textOf(result), 'was cut after 20000. Its shape is string of 50000. Return less');
  assert.is(Array.isArray(result.content) && result.content.length, 1);
});

test('calls that a script does not await end before its result, or are named in it', async () => {
  const { server, clock, written } = workshop();
  server.tool('hangs', { annotations: { readOnlyHint: true } }, () => new Promise(() => {}));
  const client = await connect(server);
  const running = runModern(client, { code: 't.write({ n: 1 }); t.hangs(); return "done";' });
  await settled();
  await pass(clock, 5_000);
  assert.match(textOf(await running), /"result":"done".*"unfinished":"t\.hangs/);
  assert.equal(written, [1]);
});

test('a task that is cancelled ends its run, and the call in flight', async () => {
  const { server } = workshop();
  let isAborted = false;
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  server.tool('long', {}, async (_: unknown, ctx) => {
    ctx.signal.addEventListener('abort', () => {
      isAborted = true;
    });
    begin();
    await new Promise(() => {});
  });
  const client = await connect(server, { auth: { principal: 'ada' } });
  const capabilities = { [META.clientCapabilities]: EXTENSION };
  const call = { name: 'run_code_task', arguments: { code: 'await t.long();' } };
  const taskId = idOf(await client.modern('tools/call', call, capabilities));
  await begun;
  await client.modern('tasks/cancel', { taskId }, capabilities);
  await settled();
  assert.is(isAborted, true);
  assert.match(server.metrics(), /troupe_code_runs_total\{troupe_state="cancelled"\} 1/);
  assert.match(server.metrics(), /troupe_code_open 0/);
});

test('a run that continues alone makes no call after the end of the sign-in, and continues with the next one', async () => {
  let expiresAt = 0;
  const { server, clock, written } = workshop({
    http: { authenticate: () => ({ principal: 'ada', scopes: [], expiresAt }) },
  });
  const call = async (args: JsonObject): Promise<JsonObject> => {
    expiresAt = clock.date() + 30_000;
    const params = {
      ...{ name: 'run_code', arguments: args },
      _meta: { [META.protocolVersion]: LATEST_MODERN, [META.clientCapabilities]: {} },
    };
    const response = await server.fetch(
      new Request('http://localhost/mcp', {
        method: 'POST',
        headers: {
          ...{ accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
          ...{ 'mcp-protocol-version': LATEST_MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'run_code' },
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      }),
    );
    const text = await response.text();
    const answer: unknown = JSON.parse(text.replace(/^[\s\S]*?\ndata: |^data: /, ''));
    return isObject(answer) && isJsonObject(answer.result) ? answer.result : { text };
  };
  const running = call({ code: 'await sleep(60000); return t.write({ n: 1 });' });
  await until(() => server.metrics().includes('troupe_code_open 1'));
  await pass(clock, 20_000);
  const run = pausedIn(await running);
  await pass(clock, 60_000);
  assert.equal(written, []);
  assert.is(resultIn(await call({ resume: run })), 'wrote 1');
});

test('a second call that continues a run takes the place of the first', async () => {
  const { server, clock } = workshop();
  const client = await connect(server, { auth: { principal: 'ada' } });
  const first = runModern(client, { code: 'await sleep(40000); return "done";' });
  await settled();
  await pass(clock, 20_000);
  const run = pausedIn(await first);
  const second = runModern(client, { resume: run });
  await settled();
  const third = runModern(client, { resume: run });
  assert.match(textOf(await second), /another call waits for it now/);
  await pass(clock, 19_000);
  await pass(clock, 1_000);
  assert.is(resultIn(await third), 'done');
});

test('a run pauses as often as it waits', async () => {
  const { server, clock } = workshop();
  const client = await connect(server, { auth: { principal: 'ada' } });
  let running = runModern(client, { code: 'for (let n = 0; n < 4; n += 1) await sleep(30000); return "four";' });
  const runs = new Set<string>();
  for (let times = 0; times < 4; times += 1) {
    await settled();
    await pass(clock, 20_000);
    const run = pausedIn(await running);
    runs.add(run);
    await pass(clock, 10_000);
    running = runModern(client, { resume: run });
  }
  assert.is(resultIn(await running), 'four');
  assert.is(runs.size, 1);
});

test('a client of 2026-07-28 that does not return to a question ends its run in time', async () => {
  const { server, clock } = workshop();
  const client = await connect(server, { auth: { principal: 'ada' } });
  asked(await runModern(client, { code: 'return t.who();' }));
  assert.match(server.metrics(), /troupe_code_open 1/);
  await pass(clock, 600_000);
  await pass(clock, 600_000);
  assert.match(server.metrics(), /troupe_code_open 0/);
});

test('a script that is too long does not run, and one that makes too much of its calls ends', async () => {
  const { server, written } = workshop({ limits: { codeLength: 100, codeJournalLength: 2_000 } });
  const client = await connect(server);
  const long = await runModern(client, { code: `await t.write({ n: 1 }); // ${'x'.repeat(100)}` });
  assert.match(textOf(long), /has 128 characters, and at most 100/);
  assert.equal(written, []);
  server.tool('big', { annotations: { readOnlyHint: true } }, () => 'x'.repeat(1_500));
  const full = await runModern(client, { code: 'await t.big(); await t.big(); return 1;' });
  assert.match(textOf(full), /more than 2000 characters together/);
});

test('limits of a tool count the calls of scripts', async () => {
  const { server } = workshop();
  server.tool('rare', { limits: { perMinute: 2 }, annotations: { readOnlyHint: true } }, () => 'ran');
  const client = await connect(server, { auth: { principal: 'ada' } });
  const code = `
    const done = [];
    for (let n = 0; n < 3; n += 1)
      try { done.push(await t.rare()); } catch ({ carriedOut, retryAfterMs }) { done.push([carriedOut, retryAfterMs > 0]); }
    return done;`;
  assert.equal(resultIn(await runModern(client, { code })), ['ran', 'ran', [false, true]]);
});

test('middleware sees each call of a script, and may answer it', async () => {
  const { server } = workshop();
  const seen: unknown[] = [];
  server.use('tools/call', async (call, ctx, next) => {
    seen.push([call.params.name, String(ctx.requestId).split('/')[1]]);
    return next();
  });
  const client = await connect(server);
  await runModern(client, { code: 'await t.read({}); await t.read({});' });
  assert.equal(seen.slice(1), [
    ['read', '1'],
    ['read', '2'],
  ]);
});

test('a client that asks for progress gets a report of each call, and then those of the script', async () => {
  const { server } = workshop();
  const client = await inSession(server, '2025-06-18');
  const code = 'await t.read({}); await t.read({}); await progress(1, 2, "half"); await t.read({}); return 1;';
  await client.send('tools/call', {
    name: 'run_code',
    arguments: { code },
    _meta: { progressToken: 'p' },
  });
  const reports = client.messages.flatMap(({ text }) => {
    const message: unknown = JSON.parse(text);
    return isObject(message) && message.method === 'notifications/progress' && isObject(message.params)
      ? String(message.params.message)
      : [];
  });
  assert.equal(reports, ['call 1: t.read', 'call 2: t.read', 'half']);
});

test('the inspector shows a run with its chart, and the requests that its calls become below it', async () => {
  const { server } = workshop();
  const seen: unknown[] = [];
  const stop = server.inspect((record) => {
    if (record.type === 'created' && (record.kind === 'run' || record.kind === 'request'))
      seen.push([record.kind, record.actor.split('/')[0], record.parent?.split('/')[0]]);
  });
  const client = await connect(server, { auth: { principal: 'ada' } });
  asked(await runModern(client, { code: 'return t.who();' }));
  stop();
  assert.equal(seen.slice(0, 2), [
    ['run', 'run', undefined],
    ['request', 'request', 'run'],
  ]);
});

/** Each is a public report about other software, and holds here. */
const reports = suite('reports about runs');

reports('Executor 1300: a run is continued in another session of a caller who has not signed in', async () => {
  const { server, clock } = workshop();
  const first = await inSession(server, '2025-06-18');
  const running = first.send('tools/call', {
    name: 'run_code',
    arguments: { code: 'await sleep(25000); return "done";' },
  });
  await settled();
  await pass(clock, 20_000);
  const run = pausedIn(await running);
  const second = await inSession(server, '2025-06-18');
  await pass(clock, 5_000);
  const resume = () => second.send('tools/call', { name: 'run_code', arguments: { resume: run } });
  assert.is(resultIn(await resume()), 'done');
});

reports(
  'Executor 976: a call that continues a run gets its result again when the first response was lost',
  async () => {
    for (const store of [undefined, new TestStore(memoryStore())]) {
      const { server, clock, written } = workshop(store ? { store } : {});
      const client = await connect(server, { auth: { principal: 'ada' } });
      const running = runModern(client, { code: 'await sleep(25000); return t.write({ n: 1 });' });
      await settled();
      await pass(clock, 20_000);
      const run = pausedIn(await running);
      await pass(clock, 5_000);
      for (let times = 0; times < 3; times += 1)
        assert.is(resultIn(await runModern(client, { resume: run })), 'wrote 1');
      assert.equal(written, [1]);
    }
  },
);

reports(
  'Executor 1953: the time in which a person answers is no time of the call, of the script or of its request',
  async () => {
    const { server, clock } = workshop();
    const client = await inSession(server, '2025-06-18', { elicitation: {} });
    const running = client.send('tools/call', {
      name: 'run_code',
      arguments: { code: 'return (await t.who()).name;' },
    });
    const question = await client.next((message) => isObject(message) && message.method === 'elicitation/create');
    // Longer than the timeout of calls, which is a minute.
    for (let minutes = 0; minutes < 9; minutes += 1) await pass(clock, 60_000);
    const id = isObject(question) ? question.id : undefined;
    client.raw(JSON.stringify({ jsonrpc: '2.0', id, result: { action: 'accept', content: { name: 'Ada' } } }));
    assert.is(resultIn(await running), 'Ada');
    const modern = await connect(server, { auth: { principal: 'ada' } });
    const args = { code: 'return (await t.who()).name;' };
    const { keys, state } = asked(await runModern(modern, args));
    for (let minutes = 0; minutes < 9; minutes += 1) await pass(clock, 60_000);
    const inputResponses = { [keys[0] ?? '']: { action: 'accept', content: { name: 'Bob' } } };
    assert.is(resultIn(await runModern(modern, args, { requestState: state, inputResponses })), 'Bob');
  },
);

reports('hpe-networking-mcp 333: the results before a call that fails are not lost', async () => {
  const { server } = workshop();
  const client = await connect(server);
  const code =
    'const kept = [await t.read({ n: 1 })]; try { await t.fail(); } catch {} kept.push(await t.read({ n: 2 })); return kept.length;';
  assert.is(resultIn(await runModern(client, { code })), 2);
});

reports('Executor 125: four questions one after the other are asked and answered', async () => {
  const { server } = workshop();
  const client = await connect(server, { auth: { principal: 'ada' } });
  const args = { code: 'const all = []; for (let n = 0; n < 4; n += 1) all.push((await t.who()).name); return all;' };
  let result = await runModern(client, args);
  for (const name of ['a', 'b', 'c', 'd']) {
    const { keys, state } = asked(result);
    const inputResponses = { [keys[0] ?? '']: { action: 'accept', content: { name } } };
    result = await runModern(client, args, { requestState: state, inputResponses });
  }
  assert.equal(resultIn(result), ['a', 'b', 'c', 'd']);
});
