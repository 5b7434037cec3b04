/** What becomes of an instance whose machine throws, and of the others: a crash stays where it is. */
import * as assert from 'uvu/assert';
import { assign, createMachine, setup } from 'xstate';
import { HandleError } from '../../../src/features/machines/handle-error.ts';
import { settled } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';
import { rejection } from '../../harness/results.ts';
import { atScale, PROOF, times } from '../../harness/scale.ts';
import { ALICE, disk, orderKind, orderMachine, stage } from './support.ts';

const test = suite('handles that crash');
const add = (item: string) => ({ type: 'add', data: { item } });
const MANY = PROOF ? 1_000 : 200;

test('R-15: an event that crashes its instance is tried twice and quarantined; the rest go on, in order', async () => {
  const { handles, store, incidents } = await stage([orderKind()], { store: disk(), limits: { handleMailbox: 2_000 } });
  const { handle } = await handles.create('order', {}, ALICE);
  const good = Array.from({ length: MANY }, (_, n) => `item ${n}`);
  const before = good.slice(0, 10).map((item) => handles.send('order', handle, add(item), ALICE));
  const poison = rejection(handles.send('order', handle, { type: 'boom', data: {} }, ALICE), HandleError);
  const after = good.slice(10).map((item) => handles.send('order', handle, add(item), ALICE));
  const refused = await poison;
  assert.is(refused.reason, 'failed');
  assert.match(refused.message, /"boom" crashed this instance 2 times and was quarantined.*incident i\d/);
  await Promise.all([...before, ...after]);
  const { view, status } = await handles.get('order', handle, ALICE);
  assert.is(status, 'active');
  assert.equal((view as { items: string[] }).items, good);
  const [letter, ...others] = await store.deadLetters(10);
  assert.is(others.length, 0);
  assert.is(letter?.attempts, 2);
  assert.is(letter?.incident, refused.incident);
  assert.match(letter?.mail ?? '', /"boom"/);
  assert.is(incidents.length, 1);
});

test('R-15: a value that JSON cannot hold is poison, too: too deep, a function, a Date; and the message says where', async () => {
  const deep = (levels: number): unknown => (levels === 0 ? 'bottom' : { in: deep(levels - 1) });
  const machine = setup({
    types: { context: {} as { kept: unknown }, events: {} as { type: 'keep'; what: string } },
  }).createMachine({
    id: 'keeper',
    context: { kept: null },
    on: {
      keep: {
        actions: assign({
          kept: ({ event }) =>
            event.what === 'deep'
              ? deep(10_000)
              : event.what === 'date'
                ? new Date(0)
                : event.what === 'function'
                  ? () => {}
                  : event.what,
        }),
      },
    },
  });
  const kind = {
    name: 'keeper',
    machine,
    version: '1',
    events: ['keep'],
    view: (snapshot: { context: unknown }) => snapshot.context,
  };
  const { handles, store } = await stage([kind], { store: disk() });
  const { handle } = await handles.create('keeper', {}, ALICE);
  const keep = (what: string) => handles.send('keeper', handle, { type: 'keep', data: { what } }, ALICE);
  await keep('tea');
  for (const [what, why] of [
    ['deep', /nested too deep/],
    ['date', /context\.kept: a Date cannot be stored/],
    ['function', /context\.kept: a function cannot be stored/],
  ] as const) {
    const refused = await rejection(keep(what), HandleError);
    assert.is(refused.reason, 'failed');
    assert.match(refused.message, why);
    assert.equal((await handles.get('keeper', handle, ALICE)).view, { kept: 'tea' });
  }
  assert.equal((await keep('milk')).view, { kept: 'milk' });
  assert.is((await store.deadLetters(10)).length, 3);
});

test('R-15: an action that throws takes its event back, with the timers that the event began', async () => {
  let attempts = 0;
  const machine = setup({
    types: { context: {} as { count: number }, events: {} as { type: 'go' } | { type: 'count' } },
    actions: {
      explode: () => {
        attempts += 1;
        throw new Error('boom');
      },
    },
  }).createMachine({
    id: 'bomb',
    context: { count: 0 },
    initial: 'safe',
    on: { count: { actions: assign({ count: ({ context }) => context.count + 1 }) } },
    states: {
      safe: { on: { go: { target: 'armed', actions: 'explode' } } },
      armed: { after: { 1000: 'gone' } },
      gone: { type: 'final' },
    },
  });
  const kind = {
    name: 'bomb',
    machine,
    version: '1',
    events: ['go', 'count'],
    view: (snapshot: { context: unknown }) => snapshot.context,
  };
  const { handles, clock, store } = await stage([kind], { store: disk() });
  const { handle } = await handles.create('bomb', {}, ALICE);
  const refused = await rejection(handles.send('bomb', handle, { type: 'go', data: {} }, ALICE), HandleError);
  assert.is(refused.reason, 'failed');
  assert.is(attempts, 2);
  const counted = await handles.send('bomb', handle, { type: 'count', data: {} }, ALICE);
  assert.is(counted.state, 'safe');
  assert.equal(counted.view, { count: 1 });
  assert.equal(await store.timers(Number.MAX_SAFE_INTEGER, 10), []);
  await clock.advance(5_000);
  assert.is((await handles.get('bomb', handle, ALICE)).state, 'safe');
});

const loops = createMachine({
  id: 'loops',
  initial: 'waiting',
  states: {
    waiting: {
      after: {
        1: {
          target: 'never',
          actions: assign(() => {
            throw new Error('crash loop');
          }),
        },
      },
    },
    never: {},
  },
});

test('R-16: an instance that crashes without an event is restarted three times, then quarantined; other instances are not affected', async () => {
  const kind = { name: 'loops', machine: loops, version: '1', events: [] };
  const first = await stage([kind, orderKind()], { store: disk() });
  const { handles, clock, store, incidents } = first;
  const neighbour = await handles.create('order', {}, ALICE);
  const { handle } = await handles.create('loops', {}, ALICE);
  await clock.advance(1_000);
  const failed = await handles.get('loops', handle, ALICE);
  assert.is(failed.status, 'failed');
  assert.match(failed.failure ?? '', /crashed 4 times in a row and was quarantined/);
  assert.is(failed.state, 'waiting');
  assert.is(incidents.length, 4);
  const [letter] = await store.deadLetters(10);
  assert.match(letter?.mail ?? '', /xstate\.after/);
  assert.is((await rejection(handles.send('loops', handle, add('tea'), ALICE), HandleError)).reason, 'refused');
  assert.equal((await handles.send('order', neighbour.handle, add('tea'), ALICE)).view, { items: ['tea'] });
  // It stays so.
  const second = await first.again();
  await second.clock.advance(1_000);
  assert.is((await second.handles.get('loops', handle, ALICE)).status, 'failed');
  assert.is(second.incidents.length, 0);
});

test('a machine that fails by its own rules has failed, and says why', async () => {
  const machine = orderMachine();
  const { handles } = await stage([orderKind(machine)]);
  const broken = setup({
    actors: { work: (await import('xstate')).fromPromise(() => Promise.reject(new Error('no bank'))) },
  }).createMachine({
    id: 'broken',
    invoke: { src: 'work' },
  });
  handles.define({ name: 'broken', machine: broken, version: '1', events: [] });
  const { handle } = await handles.create('broken', {}, ALICE);
  await settled();
  const failed = await handles.get('broken', handle, ALICE);
  assert.is(failed.status, 'failed');
  assert.is(failed.failure, 'no bank');
});

test('an input that a machine cannot begin with makes no instance', async () => {
  const machine = setup({ types: { input: {} as { name?: string } } }).createMachine({
    id: 'named',
    context: ({ input }) => {
      if (input.name === undefined) throw new Error('no name');
      return { name: input.name };
    },
  });
  const { handles } = await stage([{ name: 'named', machine, version: '1', events: [] }]);
  const refused = await rejection(handles.create('named', {}, ALICE), HandleError);
  assert.is(refused.reason, 'failed');
  assert.match(refused.message, /could not start with this input: incident/);
  assert.equal((await handles.list('named', ALICE)).handles, []);
});

test('R-14: eventless transitions that go round for ever are found when a machine is defined', async () => {
  const { handles } = await stage([]);
  const cycle = createMachine({ id: 'round', initial: 'a', states: { a: { always: 'b' }, b: { always: 'a' } } });
  const define = () => handles.define({ name: 'round', machine: cycle, version: '1', events: [] });
  assert.throws(define, /form an endless loop: "round\.a" → "round\.b" → "round\.a"/);
  const inner = createMachine({ id: 'inner', initial: 'a', always: '.a', states: { a: {} } });
  assert.throws(() => handles.define({ name: 'inner', machine: inner, version: '1', events: [] }), /endless loop/);
  const fine = createMachine({
    id: 'fine',
    initial: 'a',
    context: { n: 0 },
    states: {
      a: {
        entry: assign({ n: ({ context }) => context.n + 1 }),
        always: [{ guard: ({ context }) => context.n > 3, target: 'c' }, 'b'],
      },
      b: { always: 'a' },
      c: {},
    },
  });
  handles.define({ name: 'fine', machine: fine, version: '1', events: [] });
  assert.is((await handles.create('fine', {}, ALICE)).state, 'c');
});

test('R-14: one that only a guard could end, and does not, is broken off as a crash', async () => {
  const machine = setup({ guards: { always: () => true } }).createMachine({
    id: 'spin',
    initial: 'still',
    states: {
      still: { on: { go: 'a' } },
      a: { always: { guard: 'always', target: 'b' } },
      b: { always: { guard: 'always', target: 'a' } },
    },
  });
  const { handles } = await stage([{ name: 'spin', machine, version: '1', events: ['go'] }]);
  const { handle } = await handles.create('spin', {}, ALICE);
  assert.is(
    (await rejection(handles.send('spin', handle, { type: 'go', data: {} }, ALICE), HandleError)).reason,
    'failed',
  );
  assert.is((await handles.get('spin', handle, ALICE)).state, 'still');
});

test('R-10: a full instance rejects events at once, drops none that it accepted, and others are served', async () => {
  const { handles } = await stage([orderKind()], { limits: { handleMailbox: times(1_000, { quick: 200 }) } });
  const { handle } = await handles.create('order', {}, ALICE);
  const other = await handles.create('order', {}, ALICE);
  const calls = Array.from({ length: atScale({ quick: 400, full: 1_500, proof: 10_000 }) }, () =>
    handles.send('order', handle, add('x'), ALICE),
  );
  const served = await handles.send('order', other.handle, add('tea'), ALICE);
  assert.equal(served.view, { items: ['tea'] });
  const outcomes = await Promise.allSettled(calls);
  const taken = outcomes.filter(({ status }) => status === 'fulfilled').length;
  const busy = outcomes.filter(
    (each) => each.status === 'rejected' && /handleMailbox/.test(String(each.reason)),
  ).length;
  assert.is(taken + busy, calls.length);
  assert.ok(busy > 0);
  assert.is(((await handles.get('order', handle, ALICE)).view as { items: string[] }).items.length, taken);
});
