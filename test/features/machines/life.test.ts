/** The life of a handle: made, sent events, looked at, ended; done, refused, forgotten; in memory or not. */
import * as assert from 'uvu/assert';
import { setup } from 'xstate';
import { elicitWith } from '../../../src/features/asking/invocations.ts';
import { HandleError } from '../../../src/features/machines/handle-error.ts';
import { settled } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';
import { rejection } from '../../harness/results.ts';
import { ALICE, ANYBODY, BOB, Disk, orderKind, orderMachine, stage, Work } from './support.ts';

const test = suite('handles');
const HOUR_MS = 3_600_000;
const add = (item: string) => ({ type: 'add', data: { item } });

test('a handle is made, takes events, and says what it takes next', async () => {
  const { handles } = await stage([orderKind()]);
  const made = await handles.create('order', {}, ALICE);
  assert.is(made.state, 'cart');
  assert.is(made.status, 'active');
  assert.match(made.handle, /^[\w-]{24}$/);
  assert.equal(made.accepts, ['add', 'note', 'boom', 'cancel']);
  const added = await handles.send('order', made.handle, add('tea'), ALICE);
  assert.equal(added.view, { items: ['tea'] });
  assert.is(added.version, made.version + 1);
  const { course, ...view } = added;
  assert.equal(course, { states: ['cart'], reasons: [] });
  assert.equal(await handles.get('order', made.handle, ALICE), view);
});

test('an event that the state does not take, or a guard, is refused, with what is taken and who said no', async () => {
  const { handles } = await stage([orderKind()]);
  const { handle } = await handles.create('order', {}, ALICE);
  const early = await rejection(handles.send('order', handle, { type: 'ship', data: {} }, ALICE), HandleError);
  assert.is(early.reason, 'refused');
  assert.is(early.message, '"ship" is not accepted in state "cart".');
  assert.equal(early.next?.accepts, ['add', 'note', 'boom', 'cancel']);
  const guarded = await rejection(handles.send('order', handle, { type: 'pay', data: {} }, ALICE), HandleError);
  assert.match(guarded.message, /guard "hasItems" rejects it/);
  assert.is((await handles.get('order', handle, ALICE)).version, 1);
});

test('an invocation begins once the event is durable, and its end is a turn of its own', async () => {
  const work = new Work();
  const { handles } = await stage([orderKind(orderMachine(work.logic))]);
  const { handle } = await handles.create('order', { items: ['tea'] }, ALICE);
  const paying = await handles.send('order', handle, { type: 'pay', data: {} }, ALICE);
  assert.is(paying.state, 'paying');
  assert.equal(work.began, [{ count: 1 }]);
  work.end('receipt 1');
  await settled();
  const paid = await handles.get('order', handle, ALICE);
  assert.is(paid.state, 'paid');
  assert.equal(paid.view, { items: ['tea'], paid: 'receipt 1' });
});

test('a final state gives the output, and no event is taken after it', async () => {
  const { handles, clock } = await stage([orderKind()]);
  const { handle } = await handles.create('order', { items: ['tea'] }, ALICE);
  const done = await handles.send('order', handle, { type: 'cancel', data: {} }, ALICE);
  assert.is(done.status, 'done');
  assert.equal(done.output, { items: ['tea'] });
  assert.is((await rejection(handles.send('order', handle, add('milk'), ALICE), HandleError)).reason, 'ended');
  await clock.advance(120_000);
  assert.equal((await handles.get('order', handle, ALICE)).output, { items: ['tea'] });
});

test('ending stops running work, and its result is repeated', async () => {
  const work = new Work();
  const { handles } = await stage([orderKind(orderMachine(work.logic))]);
  const { handle } = await handles.create('order', { items: ['tea'] }, ALICE);
  await handles.send('order', handle, { type: 'pay', data: {} }, ALICE);
  const ended = await handles.end('order', handle, ALICE);
  assert.is(ended.status, 'ended');
  work.end('too late');
  await settled();
  assert.is((await handles.end('order', handle, ALICE)).version, ended.version);
  assert.is((await rejection(handles.send('order', handle, add('milk'), ALICE), HandleError)).reason, 'ended');
});

test("S-04: another's handle is an unknown one, in every call, in the same words", async () => {
  const { handles } = await stage([orderKind()]);
  const { handle } = await handles.create('order', {}, ALICE);
  for (const caller of [BOB, ANYBODY]) {
    const calls = [
      (id: string) => handles.get('order', id, caller),
      (id: string) => handles.send('order', id, add('tea'), caller),
      (id: string) => handles.end('order', id, caller),
    ];
    for (const call of calls) {
      const theirs = await rejection(call(handle), HandleError);
      const none = await rejection(call('V1StGXR8Z5jdHi6BmyT00a'), HandleError);
      assert.is(theirs.reason, 'unknown');
      assert.is(theirs.message, none.message);
    }
    assert.equal((await handles.list('order', caller)).handles, []);
  }
  assert.is((await handles.get('order', handle, ALICE)).version, 1);
});

test('a list pages through the handles of its caller, the oldest first, and is empty for an anonymous caller', async () => {
  const { handles } = await stage([orderKind()]);
  const made: string[] = [];
  for (let n = 0; n < 5; n += 1) made.push((await handles.create('order', {}, ALICE)).handle);
  await handles.create('order', {}, BOB);
  await handles.create('order', {}, ANYBODY);
  const first = await handles.list('order', ALICE, { limit: 3 });
  const second = await handles.list('order', ALICE, { limit: 3, after: first.after });
  assert.equal(
    [...first.handles, ...second.handles].map(({ handle }) => handle),
    made,
  );
  assert.is(second.after, undefined);
  assert.equal((await handles.list('order', ANYBODY)).handles, []);
});

test('an idle handle leaves memory and wakes with the next message', async () => {
  const { handles, clock, inspection } = await stage([orderKind()]);
  const { handle } = await handles.create('order', {}, ALICE);
  await handles.send('order', handle, add('tea'), ALICE);
  const live = new Set<string>();
  inspection.listen((record) => {
    if (record.type === 'created') live.add(record.actor);
    if (record.type === 'gone') live.delete(record.actor);
  });
  assert.is(live.size, 1);
  await clock.advance(60_000);
  assert.is(live.size, 0);
  const woken = await handles.send('order', handle, add('milk'), ALICE);
  assert.equal(woken.view, { items: ['tea', 'milk'] });
  assert.is(live.size, 1);
});

test('a handle expires without use and at the end of its lifetime, and an expired handle is distinguished from an unknown one', async () => {
  const kind = orderKind(undefined, { idleMs: 3_600_000, ttlMs: 3 * 3_600_000 });
  const { handles, clock } = await stage([kind], { limits: { handleRememberMs: 3_600_000 } });
  const { handle } = await handles.create('order', {}, ALICE);
  const gone: string[] = [];
  handles.onChange(({ type, handle }) => void (type === 'gone' && gone.push(handle)));
  for (let n = 0; n < 4; n += 1) {
    await clock.advance(2_400_000);
    await handles.get('order', handle, ALICE);
  }
  await clock.advance(1_300_000);
  assert.is((await rejection(handles.get('order', handle, ALICE), HandleError)).reason, 'expired');
  assert.equal(gone, [handle]);
  const idle = await handles.create('order', {}, ALICE);
  await clock.advance(3_700_000);
  assert.is((await rejection(handles.get('order', idle.handle, ALICE), HandleError)).reason, 'expired');
  // What is not written of each use, and then the hour for which it is remembered.
  await clock.advance(3_600_000 / 8 + 3_700_000);
  assert.is((await rejection(handles.get('order', idle.handle, ALICE), HandleError)).reason, 'unknown');
});

/** What each instance waits for when it is created. */
const waiting = setup({
  actors: { ask: elicitWith({ type: 'object', properties: {} }), work: new Work().logic },
}).createMachine({
  initial: 'begun',
  states: {
    begun: { on: { delay: 'delayed', ask: 'asking', work: 'working', rest: 'resting' } },
    delayed: { after: { [10 * HOUR_MS]: 'resting' } },
    asking: { invoke: { id: 'size', src: 'ask', input: { message: 'Size?' } } },
    working: { invoke: { src: 'work' } },
    resting: {},
  },
});

for (const durable of [false, true])
  for (const [event, hours, expires] of [
    ['delay', 9, false],
    ['delay', 10.5, false],
    ['delay', 11.5, true],
    ['ask', 9, false],
    ['work', 9, false],
    ['rest', 9, true],
    ['work', 20, true],
  ] as const)
    test(`an instance after "${event}" has ${expires ? 'expired' : 'not expired'} ${hours} hours later${durable ? ', also over a restart' : ''}`, async () => {
      const kind = {
        name: 'wait',
        machine: waiting,
        version: '1',
        events: ['delay', 'ask', 'work', 'rest'],
        view: () => null,
      };
      const before = await stage(
        [{ ...kind, idleMs: HOUR_MS, ttlMs: 19 * HOUR_MS }],
        durable ? { store: new Disk() } : {},
      );
      const { handle } = await before.handles.create('wait', {}, ALICE);
      await before.handles.send('wait', handle, { type: event, data: {} }, ALICE);
      await before.clock.advance(HOUR_MS / 2);
      if (durable) await before.handles.stop();
      const after = durable ? await before.again() : before;
      await after.clock.advance((hours - 0.5) * HOUR_MS);
      const got = after.handles.get('wait', handle, ALICE);
      if (!expires) return assert.is((await got).status, 'active');
      assert.is((await rejection(got, HandleError)).reason, 'expired');
      assert.ok(after.logged.some((line) => line.startsWith('info: expired before its final state: handle/wait/')));
    });

test('each answer names the date at which the instance expires: for want of use only while nothing is pending', async () => {
  const machine = waiting.provide({});
  const kind = { name: 'wait', machine, version: '1', events: ['delay', 'ask', 'work', 'rest'], view: () => null };
  const { handles, clock } = await stage([{ ...kind, idleMs: HOUR_MS, ttlMs: 19 * HOUR_MS }]);
  const at = (ms: number): string => new Date(ms).toISOString();
  const created = clock.date();
  const made = await handles.create('wait', {}, ALICE);
  assert.is(made.expires, at(created + HOUR_MS));
  const delayed = await handles.send('wait', made.handle, { type: 'delay', data: {} }, ALICE);
  assert.is(delayed.expires, at(created + 19 * HOUR_MS));
  assert.is((await handles.get('wait', made.handle, ALICE)).expires, delayed.expires);
});

test('an instance lives without use for as long as its author lets it live', async () => {
  const { handles, clock } = await stage([orderKind(undefined, { ttlMs: 60 * HOUR_MS })]);
  const { handle } = await handles.create('order', {}, ALICE);
  await clock.advance(59 * HOUR_MS);
  assert.is((await handles.get('order', handle, ALICE)).status, 'active');
});

test('a lifetime that is cut off for a client without sign-in is a warning, once', async () => {
  const { handles, logged } = await stage([orderKind(undefined, { ttlMs: 60 * HOUR_MS })]);
  await handles.create('order', {}, ALICE);
  assert.equal(logged, []);
  for (let n = 0; n < 3; n += 1) await handles.create('order', {}, ANYBODY);
  assert.equal(logged, [
    'warning: machine "order": an instance of a client that has not signed in lives for 1 h, which cuts off its ttlMs of 60 h. Set limits.handleAnonymousTtlMs to more than 216000000 (60 h), or let clients sign in',
  ]);
});

test('there are bounds: of handles in all, of each principal, and of what waits for one', async () => {
  const { handles } = await stage([orderKind()], {
    limits: { maxHandles: 3, maxHandlesPerPrincipal: 2, handleMailbox: 10 },
  });
  const { handle } = await handles.create('order', {}, ALICE);
  await handles.create('order', {}, ALICE);
  assert.match(
    (await rejection(handles.create('order', {}, ALICE), HandleError)).message,
    /limits\.maxHandlesPerPrincipal/,
  );
  await handles.create('order', {}, BOB);
  assert.match((await rejection(handles.create('order', {}, BOB), HandleError)).message, /limits\.maxHandles\)/);
  const calls = Array.from({ length: 30 }, (_, n) => handles.send('order', handle, add(`item ${n}`), ALICE));
  const outcomes = await Promise.allSettled(calls);
  const taken = outcomes.filter(({ status }) => status === 'fulfilled').length;
  assert.ok(taken >= 10 && taken < 30, `${taken} of 30 were taken`);
  const { view } = await handles.get('order', handle, ALICE);
  assert.is((view as { items: string[] }).items.length, taken);
});
