/** What clients make a server hold is limited in bytes: for each principal, for anonymous clients together, and in total. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as assert from 'uvu/assert';
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { isExcess, Quota } from '../../../src/core/kernel/quota.ts';
import { heapBytes, retainedSize } from '../../../src/core/protocol/heap.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { fromSteps } from '../../../src/features/machines/durable-steps.ts';
import { HandleError } from '../../../src/features/machines/handle-error.ts';
import type { Caller, MachineKind } from '../../../src/features/machines/machine-definition.ts';
import { createServer, ErrorCode, type Limits } from '../../../src/index.ts';
import { settled } from '../../../src/testing/testing.ts';
import { call as callModern, refused } from '../../core/http/modern.ts';
import { refusal, serving } from '../../core/http/session.ts';
import { ask, openSession } from '../../core/http/support.ts';
import { ALICE, ANYBODY, BOB, disk, stage as handleStage } from '../../features/machines/support.ts';
import { accept, gate, keysOf, NAME, stage } from '../../features/tasks/support.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';
import { errorResponse, rejection } from '../../harness/results.ts';

const test = suite('retained bytes');
const KB = 1_024;
const authenticate = ({ header }: { header(name: string): string | undefined }): string | undefined =>
  header('authorization');

function collector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect !== 'function') throw new Error('expected a garbage collector to call');
  return () => void collect();
}

/** An `initialize` whose client has a name this long. */
function introducing(length: number): object {
  return {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x'.repeat(length), version: '1' } },
  };
}

test('a quota limits each principal, anonymous clients together, and all; what is released makes room', () => {
  const anonymous = { percent: 50 };
  const quota = new Quota({
    what: 'bytes',
    max: 100,
    option: 'limits.all',
    perPrincipal: { max: 40, option: 'limits.each' },
    anonymous,
  });
  const reserve = (principal: string, amount: number, session?: string) => {
    const taken = quota.reserve(principal, amount, session);
    if (isExcess(taken)) throw new Error(taken.message);
    return taken;
  };
  const ann = reserve('ann', 40);
  assert.match(quota.excess('ann', 1)?.message ?? '', 'limits.each');
  reserve('anonymous', 40, 'session a');
  assert.match(quota.excess('anonymous', 1, 'session a')?.message ?? '', 'limits.each');
  assert.match(quota.excess('anonymous', 11)?.message ?? '', 'limits.anonymousPercent');
  assert.is(quota.excess('anonymous', 10), undefined);
  assert.match(quota.excess('bob', 21)?.message ?? '', 'limits.all');
  assert.match(ann.resize(41)?.message ?? '', 'limits.each');
  assert.is(ann.amount, 40);
  assert.is(ann.resize(10), undefined);
  assert.is(quota.of('ann'), 10);
  ann.release();
  ann.release();
  assert.equal([quota.of('ann'), quota.of('anonymous'), quota.all], [0, 40, 40]);
  anonymous.percent = 100;
  assert.is(quota.excess('anonymous', 60), undefined);
});

test('the estimate of what JSON takes in memory is at least its text, and counts what is small but many', () => {
  assert.ok(heapBytes('x'.repeat(KB)) >= KB);
  assert.ok(heapBytes('\u0416'.repeat(KB)) >= 2 * KB);
  // Measured: 64 bytes for each, with its place in the list.
  assert.ok(heapBytes(Array.from({ length: KB }, () => ({}))) >= 64 * KB);
  assert.ok(heapBytes(Array.from({ length: KB }, () => 1)) >= 8 * KB);
  assert.ok(
    heapBytes(
      Array.from({ length: KB }, () => 'x'.repeat(KB)),
      KB,
    ) <
      10 * KB,
  );
});

test('S-41: a client that says more of itself than maxClientInfoBytes is refused, in both eras, and opens no session', () =>
  serving(
    async ({ url, sessions }) => {
      const { status, code, message } = await refusal(ask(url, { body: introducing(64 * KB) }));
      assert.equal([status, code], [400, -32602]);
      assert.match(message, 'limits.maxClientInfoBytes');
      assert.is(sessions(), 0);
      await (await ask(url, { body: introducing(KB) })).text();
      assert.is(sessions(), 1);
      const meta = { 'io.modelcontextprotocol/clientCapabilities': { experimental: { x: 'x'.repeat(64 * KB) } } };
      const { error } = await refused(await callModern(url, 'echo', { text: 'x' }, { meta }), 400, -32602, 1);
      assert.match(error?.message ?? '', 'limits.maxClientInfoBytes');
    },
    { server: { limits: { maxClientInfoBytes: 32 * KB } } },
  ));

test('S-41: sessions are limited in bytes, by what their clients say of themselves; one that ends makes room', () =>
  serving(
    async ({ url, sessions }) => {
      const ids: string[] = [];
      let message = '';
      for (let count = 0; count < 20 && message === ''; count += 1) {
        const answer = await ask(url, { body: introducing(50 * KB) });
        const id = answer.headers['mcp-session-id'];
        if (typeof id === 'string') ids.push(id);
        const { error } = await answer.json();
        message = error?.message ?? '';
      }
      assert.match(message, 'limits.maxRetainedBytes)');
      assert.is(ids.length, 8);
      assert.is(sessions(), 8);
      await (await ask(url, { method: 'DELETE', headers: { 'mcp-session-id': ids[0] } })).text();
      await (await ask(url, { body: introducing(50 * KB) })).text();
      assert.is(sessions(), 8);
    },
    { server: { limits: { maxRetainedBytes: 500 * KB, maxRetainedBytesPerPrincipal: 100 * KB } } },
  ));

test('S-41: a principal has its own limit of bytes, and another principal is not refused for it', () =>
  serving(
    async ({ url }) => {
      const ann = { authorization: 'ann' };
      await (await ask(url, { body: introducing(50 * KB), headers: ann })).text();
      const { status, message } = await refusal(ask(url, { body: introducing(50 * KB), headers: ann }));
      assert.is(status, 429);
      assert.match(message, 'limits.maxRetainedBytesPerPrincipal');
      await openSession(url, '2025-11-25', { authorization: 'bob' });
    },
    { authenticate, server: { limits: { maxRetainedBytesPerPrincipal: 100 * KB } } },
  ));

test('S-41: anonymous clients have a share of the sessions where a transport authenticates, and all where none does', async () => {
  const limits = { maxSessions: 4, anonymousPercent: 50 };
  await serving(
    async ({ server, url }) => {
      const first = await inSession(server);
      const second = await inSession(server);
      const refusedClient = await inSession(server).then(String, String);
      assert.match(refusedClient, 'limits.anonymousPercent');
      await openSession(url, '2025-11-25', { authorization: 'ann' });
      await openSession(url, '2025-11-25', { authorization: 'ann' });
      await Promise.all([first.close(), second.close()]);
    },
    { authenticate, server: { limits } },
  );
  const server = createServer({ name: 'alone', version: '1.0.0', limits: limits satisfies Partial<Limits> });
  await Promise.all(Array.from({ length: 4 }, () => inSession(server)));
  await server.close();
});

test('anonymousPercent is at most 100', () => {
  assert.throws(
    () => createServer({ name: 'x', version: '1.0.0', limits: { anonymousPercent: 101 } }),
    /limits\.anonymousPercent: expected a whole number from 1 to 100, got number 101/,
  );
});

test('S-42: tasks are limited in bytes, by the arguments of their calls; a call that has ended makes room', async () => {
  const { server, modern } = await stage({ maxRetainedBytesPerPrincipal: 125 * KB });
  const { opened: freed, open } = gate();
  server.tool('work', { input: z.object({ text: z.string() }), task: 'required' }, async () => {
    await freed;
    return 'done';
  });
  const [ada, bob] = [modern('ada'), modern('bob')];
  const text = 'x'.repeat(10 * KB);
  for (let count = 0; count < 3; count += 1) await ada.start('work', { text });
  const { code, message } = await errorResponse(ada.call('work', { text }));
  assert.is(code, ErrorCode.Overloaded);
  assert.match(message, 'limits.maxRetainedBytesPerPrincipal');
  await bob.start('work', { text });
  open();
  await settled();
  // Their arguments are gone with their handlers: the tasks stay.
  for (let count = 0; count < 2; count += 1) await ada.start('work', { text });
  await server.close();
});

test('S-42: a session of an anonymous client has the limit of a principal for its tasks', async () => {
  const { server, legacy } = await stage({ maxRetainedBytesPerPrincipal: 60 * KB });
  server.tool('work', { input: z.object({ text: z.string() }), task: 'required' }, () => new Promise(() => {}));
  const params = { name: 'work', arguments: { text: 'x'.repeat(10 * KB) }, task: {} };
  const [one, other] = [await legacy(), await legacy()];
  await one.send('tools/call', params);
  assert.match((await errorResponse(one.send('tools/call', params))).message, 'limits.maxRetainedBytesPerPrincipal');
  await other.send('tools/call', params);
  await server.close();
});

test('S-42: a result that does not fit is replaced by the error that says so', async () => {
  const { server, modern, told } = await stage({ maxRetainedBytesPerPrincipal: 100 * KB });
  server.tool('large', { task: 'required' }, () => 'x'.repeat(200 * KB));
  const ada = modern('ada');
  const id = await ada.start('large');
  await settled();
  const task = await ada.get(id);
  assert.is(task.status, 'failed');
  assert.match(String(task.statusMessage), 'limits.maxRetainedBytesPerPrincipal');
  assert.ok(told.some((line) => /dropped the result of a task of tool "large"/.test(line)));
  await server.close();
});

test('S-42: answers to the questions of a task are limited in bytes', async () => {
  const { server, modern } = await stage({ maxRetainedBytesPerPrincipal: 100 * KB });
  server.tool('ask', { task: 'required' }, async (_, ctx) => {
    const answer = await ctx.elicit(NAME);
    return answer.status === 'accepted' ? `hello ${answer.content.name}` : answer.status;
  });
  const ada = modern('ada');
  const id = await ada.start('ask');
  await settled();
  const [key = ''] = keysOf(await ada.get(id));
  const { code, message } = await errorResponse(ada.update(id, { [key]: accept({ name: 'x'.repeat(100 * KB) }) }));
  assert.is(code, ErrorCode.Overloaded);
  assert.match(message, 'limits.maxRetainedBytesPerPrincipal');
  await ada.update(id, { [key]: accept({ name: 'Ada' }) });
  await settled();
  assert.is(await ada.said(id), 'hello Ada');
  await server.close();
});

/** A machine that keeps the text that it was given last. */
const note: MachineKind = {
  name: 'note',
  version: '1',
  events: ['write'],
  machine: setup({
    types: {
      input: {} as { text: string },
      context: {} as { text: string },
      events: {} as { type: 'write'; text: string },
    },
  }).createMachine({
    context: ({ input }) => ({ text: input.text }),
    on: { write: { actions: assign({ text: ({ event }) => event.text }) } },
  }),
};
const write = (length: number) => ({ type: 'write', data: { text: 'x'.repeat(length) } });

test('S-43: handles are limited in bytes, by their inputs and by what they keep; another principal is not refused for it', async () => {
  const { handles } = await handleStage([note], { limits: { maxRetainedBytesPerPrincipal: 300 * KB } });
  const input = { text: 'x'.repeat(50 * KB) };
  const made = [await handles.create('note', input, ALICE), await handles.create('note', input, ALICE)];
  // The first leaves memory for the third: it has nothing to do. Then what the store keeps of them is too much.
  let refusal: HandleError | undefined;
  for (let count = 2; count < 10 && !refusal; count += 1)
    await handles.create('note', input, ALICE).then(
      (view) => void made.push(view),
      (error: unknown) => {
        refusal = error instanceof HandleError ? error : undefined;
      },
    );
  assert.is(refusal?.reason, 'busy');
  assert.match(refusal?.message ?? '', 'limits.maxRetainedBytesPerPrincipal');
  assert.ok(made.length >= 3 && made.length <= 5, String(made.length));
  await handles.create('note', input, BOB);
  await handles.stop();
});

test('S-43: an event that would make a handle keep too much is refused, and has not happened', async () => {
  const { handles } = await handleStage([note], { limits: { maxRetainedBytesPerPrincipal: 100 * KB } });
  const { handle } = await handles.create('note', { text: 'small' }, ALICE);
  const { reason, message } = await rejection(handles.send('note', handle, write(100 * KB), ALICE), HandleError);
  assert.is(reason, 'busy');
  assert.match(message, 'limits.maxRetainedBytesPerPrincipal');
  const { version } = await handles.get('note', handle, ALICE);
  assert.is(version, 1);
  await handles.send('note', handle, write(10), ALICE);
  await handles.stop();
});

test('S-43: an event whose result exceeds maxHandleLength is rejected as that: no crash, no incident, no dead letter', async () => {
  const store = disk();
  const { handles, incidents } = await handleStage([note], { store, limits: { maxHandleLength: 2 * KB } });
  const { handle } = await handles.create('note', { text: '' }, ALICE);
  const fits = handles.send('note', handle, write(10), ALICE);
  const { reason, message } = await rejection(handles.send('note', handle, write(10 * KB), ALICE), HandleError);
  assert.is(reason, 'refused');
  assert.match(message, /"write" is rejected because its result does not fit: .*limits\.maxHandleLength/);
  await fits;
  assert.is((await handles.get('note', handle, ALICE)).version, 2);
  await handles.send('note', handle, write(20), ALICE);
  assert.equal([incidents.length, (await store.deadLetters(10)).length], [0, 0]);
  await handles.stop();
});

test('S-43: nothing refers to the input of a handle that could not begin', async () => {
  const { handles, incidents } = await handleStage([note], { limits: { maxHandleLength: KB } });
  const collect = collector();
  const rejected = async (): Promise<WeakRef<object>> => {
    const input = { text: 'x'.repeat(10 * KB) };
    assert.match(
      (await rejection(handles.create('note', input, ALICE), HandleError)).message,
      'limits.maxHandleLength',
    );
    return new WeakRef(input);
  };
  const inputs = [await rejected(), await rejected(), await rejected()];
  // An error refers to what was on the stack until that is read, and the operator's log reads it.
  for (const { error } of incidents) assert.match(String(error instanceof Error && error.stack), 'maxHandleLength');
  // A reference that was looked at lives until the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  assert.equal(
    inputs.map((input) => input.deref() === undefined),
    [true, true, true],
  );
  await handles.stop();
});

test('S-43: of handles that have expired, maxRememberedHandles are remembered', async () => {
  const { handles, clock } = await handleStage([{ ...note, ttlMs: 60_000 }], { limits: { maxRememberedHandles: 2 } });
  const made: string[] = [];
  for (let count = 0; count < 4; count += 1) made.push((await handles.create('note', { text: '' }, ALICE)).handle);
  await clock.advance(90_000);
  const reasons: string[] = [];
  for (const handle of made) reasons.push((await rejection(handles.get('note', handle, ALICE), HandleError)).reason);
  assert.equal(reasons, ['unknown', 'unknown', 'expired', 'expired']);
  await handles.stop();
});

test('S-43: of the keys that a handle was called with, maxRepliesPerSession are known', async () => {
  const { handles } = await handleStage([note], { limits: { maxRepliesPerSession: 2 } });
  const { handle } = await handles.create('note', { text: '' }, ALICE);
  const send = async (key: string): Promise<number> =>
    (await handles.send('note', handle, write(1), ALICE, { idempotencyKey: key })).version;
  assert.equal([await send('a'), await send('b'), await send('c')], [2, 3, 4]);
  assert.is(await send('c'), 4);
  assert.is(await send('a'), 5);
  await handles.stop();
});

test('S-43: the replies to idempotency keys are limited in bytes: an event whose reply does not fit is refused, and has not happened', async () => {
  const { handles, quotas } = await handleStage([note], { limits: { maxRetainedBytes: 60 * KB } });
  const { handle } = await handles.create('note', { text: '' }, ALICE);
  let refusal: HandleError | undefined;
  let version = 1;
  for (let count = 0; count < 200 && !refusal; count += 1)
    await handles.send('note', handle, write(1), ALICE, { idempotencyKey: `key ${count}` }).then(
      (view) => {
        version = view.version;
      },
      (error: unknown) => {
        refusal = error instanceof HandleError ? error : undefined;
      },
    );
  assert.is(refusal?.reason, 'busy');
  assert.match(refusal?.message ?? '', 'limits.maxRetainedBytes');
  assert.ok(version > 2 && quotas.retained.all <= 60 * KB, `version ${version}, ${quotas.retained.all} bytes`);
  assert.is((await handles.get('note', handle, ALICE)).version, version);
  // Without a key there is no reply to store.
  await handles.send('note', handle, write(1), ALICE);
  await handles.stop();
});

for (const [what, store, least] of [
  ['memory', memoryStore(), 440],
  ['a file', disk(), 400],
] as const)
  test(`S-43: replies to keys of creations, with a store in ${what}, count until they expire, also after their handles have expired`, async () => {
    const { handles, quotas, clock } = await handleStage([{ ...note, ttlMs: 60_000 }], {
      store,
      limits: { maxRetainedBytesPerPrincipal: 20 * KB, replyTtlMs: 86_400_000 },
    });
    const create = (key: string) => handles.create('note', { text: '' }, ALICE, { idempotencyKey: key });
    let made = 0;
    let refusal: HandleError | undefined;
    while (!refusal && made < 100) {
      refusal = await create(`key ${made}`).then(
        () => undefined,
        (error: unknown) => (error instanceof HandleError ? error : undefined),
      );
      if (refusal) break;
      made += 1;
      // It has expired, and is remembered for as long as it has lived.
      await clock.advance(90_000);
    }
    assert.is(refusal?.reason, 'busy');
    assert.match(refusal?.message ?? '', 'limits.maxRetainedBytesPerPrincipal');
    // All handles have expired: only the replies are left.
    assert.ok(made > 20 && quotas.retained.all >= made * least, `${made} handles, ${quotas.retained.all} bytes`);
    assert.match((await rejection(create(`key ${made - 1}`), HandleError)).message, 'expired');
    // A call that is rejected leaves nothing.
    const before = quotas.retained.all;
    await rejection(handles.create('note', { text: 'x'.repeat(KB) }, ALICE, { idempotencyKey: 'large' }), HandleError);
    assert.is(quotas.retained.all, before);
    await clock.advance(86_400_000);
    assert.is(quotas.retained.all, 0);
    await create('a new key');
    await handles.stop();
  });

test('S-43: a store in memory holds nothing for a client all of whose replies have expired', async () => {
  const collect = collector();
  const store = memoryStore();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < 20_000; n += 1)
    void store.commit([
      { type: 'reply', actor: `handles/note/session ${n}`, request: 'key', data: 'handle', expires: 1 },
    ]);
  await store.sweep(2);
  collect();
  const held = process.memoryUsage().heapUsed - before;
  // 16 MB if an empty entry stayed for each session.
  assert.ok(held < 4_000 * KB, `${held} bytes`);
  assert.is(await store.reply('handles/note/session 1', 'key'), undefined);
});

test('S-43: results of fromSteps are limited in bytes until their invocation ends: the step that does not fit fails', async () => {
  const waiting = gate();
  const collect = fromSteps<{ parts: number }, number>(async ({ input, step }) => {
    for (let part = 0; part < input.parts; part += 1) await step(`part ${part}`, () => 'x'.repeat(10 * KB));
    await waiting.opened;
    return input.parts;
  });
  const collector: MachineKind = {
    name: 'collector',
    version: '1',
    events: [],
    machine: setup({
      types: { input: {} as { parts: number }, context: {} as { parts: number; why: string } },
      actors: { collect },
    }).createMachine({
      context: ({ input }) => ({ parts: input.parts, why: '' }),
      initial: 'collecting',
      states: {
        collecting: {
          invoke: {
            src: 'collect',
            input: ({ context }) => ({ parts: context.parts }),
            onDone: 'collected',
            onError: { target: 'full', actions: assign({ why: ({ event }) => String(event.error) }) },
          },
        },
        collected: {},
        full: {},
      },
    }),
    view: ({ context }) => context,
  };
  const { handles, quotas } = await handleStage([collector], { limits: { maxRetainedBytes: 200 * KB } });
  const view = async (handle: string) => (await handles.get('collector', handle, ALICE)).view;
  const before = quotas.retained.all;
  const fits = await handles.create('collector', { parts: 3 }, ALICE);
  await settled();
  assert.ok(quotas.retained.all - before > 60 * KB, String(quotas.retained.all));
  const full = await handles.create('collector', { parts: 100 }, ALICE);
  await settled();
  assert.ok(quotas.retained.all <= 200 * KB, String(quotas.retained.all));
  assert.match(
    JSON.stringify(await view(full.handle)),
    /step \\"part \d+\\" has run, but its result does not fit: .*limits\.maxRetainedBytes.*Return less/,
  );
  waiting.open();
  await settled();
  assert.equal((await handles.get('collector', fits.handle, ALICE)).state, 'collected');
  assert.ok(quotas.retained.all < 20 * KB, String(quotas.retained.all));
  await handles.stop();
});

test('S-43: anonymous clients have a share of the handles where a transport authenticates', async () => {
  const limits = { maxHandles: 4, anonymousPercent: 50 };
  const { handles, quotas } = await handleStage([note], { limits });
  quotas.authenticates();
  const make = (caller: Caller) => handles.create('note', { text: '' }, caller);
  await make(ANYBODY);
  await make(ANYBODY);
  assert.match((await rejection(make(ANYBODY), HandleError)).message, 'limits.anonymousPercent');
  await make(ALICE);
  await make(BOB);
  await handles.stop();
});

test('S-44: requests in flight are limited in bytes until their handlers have ended; small ones are not', async () => {
  const { server, modern } = await stage({ maxRetainedBytesPerPrincipal: 100 * KB });
  const ends: (() => void)[] = [];
  server.tool('hold', { input: z.object({ text: z.string() }) }, () => {
    return new Promise<string>((resolve) => void ends.push(() => resolve('done')));
  });
  server.tool('light', {}, () => 'here');
  const [ada, bob] = [modern('ada'), modern('bob')];
  const text = 'x'.repeat(60 * KB);
  const first = ada.call('hold', { text });
  const { code, message } = await errorResponse(ada.call('hold', { text }));
  assert.is(code, ErrorCode.Overloaded);
  assert.match(message, 'limits.maxRetainedBytesPerPrincipal');
  await ada.call('light');
  const other = bob.call('hold', { text });
  await settled();
  for (const end of ends.splice(0)) end();
  await Promise.all([first, other]);
  const again = ada.call('hold', { text });
  await settled();
  for (const end of ends.splice(0)) end();
  await again;
  await server.close();
});

test('S-44: the bytes of a request stay taken while its handler runs on for a client that has gone, and no longer', async () => {
  const { server, clock, modern } = await stage({ maxRetainedBytesPerPrincipal: 100 * KB });
  const { opened: ended, open } = gate();
  server.tool('deaf', { input: z.object({ text: z.string() }) }, async () => {
    await ended;
    return 'done';
  });
  const text = 'x'.repeat(60 * KB);
  const ada = modern('ada');
  ada.call('deaf', { text }).catch(() => {});
  await settled();
  ada.client.close();
  // Its connection, and the table of its requests, end with the grace time.
  await clock.advance(3_000);
  const again = modern('ada');
  assert.match((await errorResponse(again.call('deaf', { text }))).message, 'limits.maxRetainedBytesPerPrincipal');
  open();
  await settled();
  await again.call('deaf', { text });
  await clock.advance(1);
  await server.close();
});

test('S-44: questions that wait for an answer are limited in bytes: the oldest of its principal gives way', async () => {
  const { server, modern } = await stage({ maxRetainedBytesPerPrincipal: 225 * KB });
  const over: string[] = [];
  server.tool('ask', { input: z.object({ name: z.string(), text: z.string() }) }, async ({ name }, ctx) => {
    try {
      await ctx.elicit(NAME);
    } catch (error) {
      over.push(`${name}: ${String(error)}`);
    }
  });
  const capabilities = { elicitation: {} };
  const ask = (who: ReturnType<typeof modern>, name: string) =>
    who.send('tools/call', { name: 'ask', arguments: { name, text: 'x'.repeat(60 * KB) } }, capabilities);
  const [ada, bob] = [modern('ada'), modern('bob')];
  for (const name of ['first', 'second', 'third']) assert.is((await ask(ada, name)).resultType, 'input_required');
  assert.is((await ask(bob, 'other')).resultType, 'input_required');
  await settled();
  assert.is(over.length, 1);
  assert.match(over[0] ?? '', /^first: .*limits\.maxRetainedBytesPerPrincipal/);
  await server.close();
});

test('S-44: the replay buffers of streams are limited in bytes; beyond the limit a stream has a gap, and says so', () =>
  serving(
    async ({ url }) => {
      const ann = { authorization: 'ann' };
      const session = await openSession(url, '2025-11-25', ann);
      const firstOf = async (id: number, length: number): Promise<string> => {
        const answer = await session.call(id, 'large', { length });
        const events = await answer.events.rest();
        return events[0]?.id ?? '';
      };
      const resume = async (id: string): Promise<number> => {
        const answer = await session.get({ 'last-event-id': id });
        if (answer.status === 200) answer.cut();
        else await answer.text();
        return answer.status;
      };
      const kept = await firstOf(1, 20 * KB);
      assert.is(await resume(kept), 200);
      // The oldest that was read gives way.
      const next = await firstOf(2, 20 * KB);
      assert.equal([await resume(kept), await resume(next)], [404, 200]);
      const large = await firstOf(3, 60 * KB);
      assert.equal([await resume(next), await resume(large)], [404, 404]);
      assert.is(await resume(await firstOf(4, 10 * KB)), 200);
    },
    {
      authenticate,
      response: 'sse',
      server: { limits: { maxRetainedBytesPerPrincipal: 40 * KB } },
    },
    (server) =>
      void server.tool('large', { input: z.object({ length: z.number() }) }, ({ length }) => 'x'.repeat(length)),
  ));

test('S-44: the uris that a session watches are limited in bytes', () =>
  serving(
    async ({ url }) => {
      const session = await openSession(url);
      const watch = async (method: string, name: string): Promise<string> => {
        const params = { uri: `files://${name}${'x'.repeat(7 * KB)}` };
        const { error } = await (await session.post({ jsonrpc: '2.0', id: name + method, method, params })).json();
        return error?.message ?? 'watched';
      };
      assert.is(await watch('resources/subscribe', 'a'), 'watched');
      assert.is(await watch('resources/subscribe', 'a'), 'watched');
      assert.match(await watch('resources/subscribe', 'b'), 'limits.maxRetainedBytesPerPrincipal');
      assert.is(await watch('resources/unsubscribe', 'a'), 'watched');
      assert.is(await watch('resources/subscribe', 'b'), 'watched');
    },
    { server: { limits: { maxRetainedBytesPerPrincipal: 25 * KB } } },
    (server) => void server.resource('files://{name}', {}, ({ uri }) => uri),
  ));

test('dead letters in memory are limited in characters; the oldest give way', async () => {
  const store = memoryStore();
  const letter = { actor: 'handle/note/a', error: 'x'.repeat(65_536), attempts: 2, at: 0, incident: 'i' };
  for (let count = 0; count < 100; count += 1)
    await store.commit([{ type: 'dead letter', letter: { ...letter, mail: String(count).padEnd(65_536) } }]);
  const letters = await store.deadLetters(1_000);
  assert.is(letters.length, 64);
  assert.match(letters.at(-1)?.mail ?? '', /^99 /);
});

test('S-45: results of steps are limited in bytes until their request ends: the step that does not fit ends the call', async () => {
  const { server, modern } = await stage({ maxRetainedBytesPerPrincipal: 200 * KB });
  const input = z.object({ text: z.string() });
  server.tool('steps', { input }, async ({ text }, ctx) => {
    for (let count = 0; count < 6; count += 1) await ctx.step(`step ${count}`, () => `${text}${count}`);
    await ctx.elicit(NAME);
    return 'done';
  });
  const capabilities = { elicitation: {} };
  const call = (who: ReturnType<typeof modern>, more: object = {}) =>
    who.send('tools/call', { name: 'steps', arguments: { text: 'x'.repeat(10 * KB) }, ...more }, capabilities);
  const [ada, bob] = [modern('ada'), modern('bob')];
  const first = await call(ada);
  assert.is((await call(ada)).resultType, 'input_required');
  const full = await call(ada);
  assert.is(full.isError, true);
  assert.match(JSON.stringify(full), 'limits.maxRetainedBytesPerPrincipal');
  assert.is((await call(bob)).resultType, 'input_required');
  const { requestState, inputRequests } = first;
  const [key = ''] = Object.keys(Object(inputRequests));
  await call(ada, { requestState, inputResponses: { [key]: accept({ name: 'Ada' }) } });
  assert.is((await call(ada)).resultType, 'input_required');
  await server.close();
});

test('S-45: results of steps of a task are limited in bytes until its handler has ended', async () => {
  const { server, modern } = await stage({ maxRetainedBytesPerPrincipal: 250 * KB });
  server.tool('steps', { input: z.object({ text: z.string() }), task: 'required' }, async ({ text }, ctx) => {
    for (let count = 0; count < 6; count += 1) await ctx.step(`step ${count}`, () => ({ text: `${text}${count}` }));
    await ctx.elicit(NAME);
    return 'done';
  });
  const ada = modern('ada');
  const text = 'x'.repeat(5 * KB);
  const ids: string[] = [];
  const begin = async () => {
    ids.push(await ada.start('steps', { text }));
    await settled();
  };
  for (let count = 0; count < 3; count += 1) await begin();
  const stands = async () => Promise.all(ids.map(async (id) => (await ada.get(id)).status));
  assert.equal(await stands(), ['input_required', 'input_required', 'completed']);
  assert.match(JSON.stringify(await ada.get(ids[2] ?? '')), 'limits.maxRetainedBytesPerPrincipal');
  for (const id of ids.slice(0, 2)) await ada.cancel(id);
  await settled();
  await begin();
  assert.is((await ada.get(ids[3] ?? '')).status, 'input_required');
  await server.close();
});

test('S-45: maxStepsLength limits the results of steps without a store, too', async () => {
  const { server, modern } = await stage({ maxStepsLength: 10 * KB });
  let runs = 0;
  server.tool('steps', {}, async (_, ctx) => {
    for (let count = 0; count < 6; count += 1)
      await ctx.step(`step ${count}`, () => {
        runs += 1;
        return { text: 'x'.repeat(4 * KB) };
      });
    return 'done';
  });
  assert.match(JSON.stringify(await modern('ada').call('steps')), 'limits.maxStepsLength');
  assert.is(runs, 3);
  await server.close();
});

test('S-45: the text of an open question is limited in bytes, also where the arguments are small', async () => {
  const { server, modern } = await stage({ maxRetainedBytesPerPrincipal: 200 * KB });
  server.tool('long', {}, async (_, ctx) => {
    await ctx.elicit({ ...NAME, message: 'x'.repeat(100 * KB) });
    return 'done';
  });
  const ask = async () => modern('ada').send('tools/call', { name: 'long' }, { elicitation: {} });
  assert.is((await ask()).resultType, 'input_required');
  assert.match(JSON.stringify(await ask()), 'limits.maxRetainedBytesPerPrincipal');
  await server.close();
});

test('S-45: replies in a session are limited in bytes until the call ends', async () => {
  const { server, legacy } = await stage({ maxRetainedBytesPerPrincipal: 100 * KB });
  const replies: string[] = [];
  server.tool('ask', {}, async (_, ctx) => {
    for (let count = 0; count < 3; count += 1) replies.push((await ctx.elicit(NAME)).status);
    return 'done';
  });
  const client = await legacy('ada');
  const answer = client.send('tools/call', { name: 'ask' });
  for (let count = 0; count < 3; count += 1) {
    const { id } = Object(await client.next((each) => Object(each).method === 'elicitation/create'));
    client.raw(JSON.stringify({ jsonrpc: '2.0', id, result: accept({ name: 'x'.repeat(40 * KB) }) }));
  }
  assert.match(JSON.stringify(await answer), 'limits.maxRetainedBytesPerPrincipal');
  assert.equal(replies, ['accepted', 'accepted']);
  await server.close();
});

test('the size of a result of a step counts cycles once, maps, sets and buffers', () => {
  const cycle: Record<string, unknown> = { text: 'x'.repeat(KB) };
  cycle.self = cycle;
  const some = [cycle, new Map([['key', 'x'.repeat(KB)]]), new Set(['x'.repeat(KB)]), new Uint8Array(KB)];
  for (const value of some) assert.ok(retainedSize(value).bytes >= KB && retainedSize(value).bytes < 2 * KB);
  assert.ok(retainedSize({ text: 'x'.repeat(KB) }).length >= JSON.stringify({ text: 'x'.repeat(KB) }).length);
});
