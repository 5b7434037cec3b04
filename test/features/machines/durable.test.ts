/** What survives: nothing is told before it is durable, nothing that was told is lost, and what was under way goes on. */
import * as assert from 'uvu/assert';
import { assign, setup } from 'xstate';
import { fromSteps } from '../../../src/features/machines/durable-steps.ts';
import { HandleError } from '../../../src/features/machines/handle-error.ts';
import { SimulatedClock, settled } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';
import { rejection } from '../../harness/results.ts';
import { times } from '../../harness/scale.ts';
import { readingFrom } from '../../harness/test-store.ts';
import { ALICE, disk, FULL, orderKind, orderMachine, stage, Work } from './support.ts';

const test = suite('durable handles');
const add = (item: string) => ({ type: 'add', data: { item } });
const PAY = { type: 'pay', data: {} };

test('R-01: an answer waits until what it says is durable, and no action runs before', async () => {
  const store = disk();
  const told: string[] = [];
  const { handles } = await stage([orderKind(orderMachine(undefined, (what) => told.push(what)))], { store });
  const { handle } = await handles.create('order', {}, ALICE);
  store.held = true;
  let answered = false;
  const sent = handles.send('order', handle, add('tea'), ALICE).then(() => {
    answered = true;
  });
  await settled();
  assert.is(answered, false);
  assert.equal(told, []);
  store.release();
  await sent;
  assert.equal(told, ['tea']);
});

test('R-01: an action that is held back while another change becomes durable waits for its own, and runs once', async () => {
  const store = disk();
  const work = new Work();
  const told: string[] = [];
  const machine = setup({
    types: { context: {} as { count: number }, events: {} as { type: 'count' } },
    actors: { work: work.logic },
  }).createMachine({
    context: { count: 0 },
    initial: 'working',
    on: { count: { actions: assign({ count: ({ context }) => context.count + 1 }) } },
    states: {
      working: { invoke: { src: 'work', input: () => null, onDone: 'worked' } },
      worked: { entry: () => void told.push('worked') },
    },
  });
  const kind = { name: 'counter', machine, version: '1', events: ['count'] };
  const { handles } = await stage([kind], { store });
  const { handle } = await handles.create('counter', {}, ALICE);
  store.held = true;
  const sent = handles.send('counter', handle, { type: 'count', data: {} }, ALICE);
  await settled();
  work.end('done');
  await settled();
  const before = store.batches.length;
  let toldBefore: number | undefined;
  const watch = (): void => {
    if (store.batches.length > before) toldBefore ??= told.length;
    else queueMicrotask(watch);
  };
  watch();
  store.release();
  await sent;
  await settled();
  assert.is(toldBefore, 0);
  assert.equal(told, ['worked']);
});

test('R-01: a process that dies loses no event that was acknowledged, and keeps none that was not', async () => {
  const store = disk();
  const first = await stage([orderKind()], { store });
  const { handle } = await first.handles.create('order', {}, ALICE);
  await first.handles.send('order', handle, add('tea'), ALICE);
  store.held = true;
  void first.handles.send('order', handle, add('lost'), ALICE);
  await settled();
  const second = await first.again({ store: store.crash() });
  const { view } = await second.handles.get('order', handle, ALICE);
  assert.equal(view, { items: ['tea'] });
});

test('R-18: a change that the store rejects has no effect; the instance continues from its last durable state, and accepts events again', async () => {
  const store = disk();
  const { handles, clock } = await stage([orderKind()], { store });
  const { handle } = await handles.create('order', {}, ALICE);
  store.fails = FULL;
  const lost = await rejection(handles.send('order', handle, add('lost'), ALICE), HandleError);
  assert.is(lost.reason, 'storage');
  assert.match(lost.message, /disk of this server is full. Nothing has happened/);
  store.fails = undefined;
  assert.equal((await handles.get('order', handle, ALICE)).view, { items: [] });
  await clock.advance(2_000);
  assert.equal((await handles.send('order', handle, add('tea'), ALICE)).view, { items: ['tea'] });
});

test('an invoked actor runs again after a restart, and the machine receives its end', async () => {
  const work = new Work();
  const first = await stage([orderKind(orderMachine(work.logic))], { store: disk() });
  const { handle } = await first.handles.create('order', { items: ['tea'] }, ALICE);
  await first.handles.send('order', handle, PAY, ALICE);
  assert.is(work.began.length, 1);
  const after = new Work();
  const second = await first.again({ kinds: [orderKind(orderMachine(after.logic))] });
  await settled();
  // Nobody has called: it goes on by itself.
  assert.equal(after.began, [{ count: 1 }]);
  after.end('receipt');
  await settled();
  assert.is((await second.handles.get('order', handle, ALICE)).state, 'paid');
});

test('a delay continues after a restart; a late one fires at once, and once', async () => {
  const work = new Work();
  const first = await stage([orderKind(orderMachine(work.logic))], { store: disk() });
  const { handle } = await first.handles.create('order', { items: ['tea'] }, ALICE);
  await first.handles.send('order', handle, PAY, ALICE);
  work.end('receipt');
  await settled();
  await first.clock.advance(20_000);
  const early = await first.again({ laterMs: 10_000 });
  await early.clock.advance(29_000);
  assert.is((await early.handles.get('order', handle, ALICE)).state, 'paid');
  await early.clock.advance(1_500);
  const shipped = await early.handles.get('order', handle, ALICE);
  assert.is(shipped.state, 'shipped');
  const late = await early.again({ laterMs: 10_000_000 });
  await late.clock.advance(1);
  assert.is((await late.handles.get('order', handle, ALICE)).version, shipped.version);
});

test('a delay that fell due while no process was there fires at once', async () => {
  const work = new Work();
  const first = await stage([orderKind(orderMachine(work.logic))], { store: disk() });
  const { handle } = await first.handles.create('order', { items: ['tea'] }, ALICE);
  await first.handles.send('order', handle, PAY, ALICE);
  work.end('receipt');
  await settled();
  const late = await first.again({ laterMs: 3_600_000 });
  const changes: string[] = [];
  late.handles.onChange(({ view }) => changes.push(String(view().state)));
  await late.clock.advance(1);
  assert.equal(changes, ['shipped']);
  assert.is((await late.handles.get('order', handle, ALICE)).status, 'done');
});

test.full(
  'thousands of timers that fell due load some instances at a time: the first fire before the last is read',
  async () => {
    const store = disk();
    const [most, count] = [512, 1_200];
    let fired = 0;
    const fire = (): void => {
      fired += 1;
    };
    const machine = setup({}).createMachine({
      initial: 'waiting',
      states: { waiting: { after: { 60000: 'late' } }, late: { entry: () => fire() } },
    });
    const kind = { name: 'bell', machine, version: '1', events: [] };
    const limits = { maxHandlesPerPrincipal: count };
    const first = await stage([kind], { store, limits });
    for (let n = 0; n < count; n += 1) await first.handles.create('bell', {}, ALICE);
    const held: (() => void)[] = [];
    let [reads, largest, firedAtLast] = [0, 0, 0];
    const slow = readingFrom(store, (query) => {
      if (query.type !== 'load') return undefined;
      reads += 1;
      if (reads === count) firedAtLast = fired;
      const read = new Promise<void>((resolve) => void held.push(resolve));
      largest = Math.max(largest, held.length);
      return read.then(() => store.ask(query));
    });
    const { clock } = await first.again({ laterMs: 60_000, store: slow });
    while (fired < count) {
      clock.pass(0);
      for (const resolve of held.splice(0)) resolve();
      await settled();
    }
    assert.equal([reads, largest], [count, most]);
    assert.ok(firedAtLast > 0, 'every instance was read before the first timer fired');
  },
);

test('a delay that fires creates a view only for a listener that reads it', async () => {
  let [views, changes] = [0, 0];
  const machine = setup({}).createMachine({
    initial: 'waiting',
    states: { waiting: { after: { 60000: 'late' } }, late: {} },
  });
  const view = (): object => {
    views += 1;
    return {};
  };
  const { handles, clock } = await stage([{ name: 'bell', machine, version: '1', events: [], view }]);
  await handles.create('bell', {}, ALICE);
  views = 0;
  let reads = false;
  handles.onChange((change) => {
    changes += 1;
    if (reads) assert.is(change.view().state, 'late');
  });
  await clock.advance(60_001);
  assert.equal([changes, views], [1, 0]);
  await handles.create('bell', {}, ALICE);
  reads = true;
  [changes, views] = [0, 0];
  await clock.advance(60_001);
  assert.equal([changes, views], [1, 1]);
});

test('an instance with an overdue delay and a later one is loaded once, and the later one fires in its time', async () => {
  const store = disk();
  const machine = setup({}).createMachine({
    type: 'parallel',
    states: {
      soon: { initial: 'waiting', states: { waiting: { after: { 60000: 'over' } }, over: {} } },
      later: { initial: 'waiting', states: { waiting: { after: { 90000: 'over' } }, over: {} } },
    },
  });
  const first = await stage([{ name: 'bell', machine, version: '1', events: [] }], { store });
  const { handle } = await first.handles.create('bell', {}, ALICE);
  let loads = 0;
  const counted = readingFrom(store, (query) => {
    if (query.type === 'load' && query.actor.startsWith('handle/')) loads += 1;
    return undefined;
  });
  const { handles, clock } = await first.again({ laterMs: 70_000, store: counted });
  await clock.advance(1);
  const state = async (): Promise<unknown> => (await handles.get('bell', handle, ALICE)).state;
  assert.equal(await state(), { soon: 'over', later: 'waiting' });
  await clock.advance(20_000);
  assert.equal(await state(), { soon: 'over', later: 'over' });
  assert.is(loads, 1);
});

test('timers of more instances than may be in memory are due at once: each fires, and none hibernates before', async () => {
  // More than the instances that are activated at a time.
  const count = times(700, { quick: 540 });
  const machine = setup({}).createMachine({
    initial: 'waiting',
    states: { waiting: { after: { 60000: 'over' } }, over: {} },
  });
  const limits = { maxAwakeHandles: 20, maxHandlesPerPrincipal: count };
  const first = await stage([{ name: 'bell', machine, version: '1', events: [] }], { limits });
  for (let n = 0; n < count; n += 1) await first.handles.create('bell', {}, ALICE);
  const { handles, clock } = await first.again({ laterMs: 70_000 });
  let changes = 0;
  handles.onChange(() => {
    changes += 1;
  });
  for (let turn = 0; turn < 20 && changes < count; turn += 1) await clock.advance(1);
  assert.is(changes, count);
  assert.equal(Object.keys(handles.hibernating().timers), []);
});

test('a delay wakes an instance that hibernates', async () => {
  const work = new Work();
  const { handles, clock, inspection } = await stage([orderKind(orderMachine(work.logic))]);
  const { handle } = await handles.create('order', { items: ['tea'] }, ALICE);
  await handles.send('order', handle, PAY, ALICE);
  work.end('receipt');
  await clock.advance(50_000);
  const live: string[] = [];
  const unlisten = inspection.listen((record) => void (record.type === 'created' && live.push(record.actor)));
  unlisten();
  assert.equal(live, []);
  // A viewer sees its timer all the same.
  const { count, some, timers } = handles.hibernating();
  assert.equal([count, some.length], [1, 1]);
  const left = Object.values(timers).map((due) => due - clock.now());
  assert.ok(left.length === 1 && left.every((ms) => ms > 5_000 && ms <= 11_000), String(left));
  const changes: string[] = [];
  handles.onChange(({ view }) => changes.push(String(view().state)));
  await clock.advance(11_000);
  assert.equal(changes, ['shipped']);
});

test('R-17: a jump of the wall clock fires no delay early and expires nothing; monotonic time decides', async () => {
  const work = new Work();
  const clock = new Jumping();
  const { handles } = await stage([orderKind(orderMachine(work.logic))], { store: disk(), clock });
  const { handle } = await handles.create('order', { items: ['tea'] }, ALICE);
  await handles.send('order', handle, PAY, ALICE);
  work.end('receipt');
  await settled();
  for (const jump of [3_600_000, -3_600_000, 315_360_000_000, -315_360_000_000]) {
    clock.jumped += jump;
    await clock.advance(11_000);
    assert.is((await handles.get('order', handle, ALICE)).state, 'paid');
  }
  // Also while it hibernates.
  clock.jumped += 315_360_000_000;
  await clock.advance(15_000);
  assert.is((await handles.get('order', handle, ALICE)).state, 'paid');
  await clock.advance(1_500);
  assert.is((await handles.get('order', handle, ALICE)).state, 'shipped');
});

/** A wall clock that somebody sets. */
class Jumping extends SimulatedClock {
  jumped = 0;

  override date(): number {
    return super.date() + this.jumped;
  }
}

test('a persisted step does not run again; its work continues after a restart, with the same key', async () => {
  const done: string[] = [];
  const keys: string[] = [];
  let halted: Promise<void> | undefined = new Promise(() => {});
  const ship = fromSteps<{ item: string }, string>(async ({ input, step, key }) => {
    keys.push(key);
    const label = await step('label', () => {
      done.push('label');
      return `label of ${input.item}`;
    });
    await halted;
    return step('post', () => {
      done.push('post');
      return `posted ${label}`;
    });
  });
  const machine = setup({
    types: { context: {} as { posted?: string }, events: {} as { type: 'ship' } },
    actors: { ship },
  }).createMachine({
    id: 'parcel',
    context: {},
    initial: 'ready',
    states: {
      ready: { on: { ship: 'shipping' } },
      shipping: {
        invoke: {
          src: 'ship',
          input: { item: 'tea' },
          onDone: { target: 'shipped', actions: assign({ posted: ({ event }) => event.output }) },
        },
      },
      shipped: { on: { ship: 'shipping' } },
    },
  });
  const kind = {
    name: 'parcel',
    machine,
    version: '1',
    events: ['ship'],
    view: ({ context }: { context: unknown }) => context,
  };
  const first = await stage([kind], { store: disk() });
  const { handle } = await first.handles.create('parcel', {}, ALICE);
  await first.handles.send('parcel', handle, { type: 'ship', data: {} }, ALICE);
  await settled();
  assert.equal(done, ['label']);
  halted = undefined;
  const second = await first.again();
  await settled();
  assert.equal(done, ['label', 'post']);
  assert.equal((await second.handles.get('parcel', handle, ALICE)).view, { posted: 'posted label of tea' });
  assert.is(keys[0], keys[1]);
  assert.not.match(keys[0] ?? '', new RegExp(handle));
  // Entered anew, it is other work.
  await second.handles.send('parcel', handle, { type: 'ship', data: {} }, ALICE);
  await settled();
  assert.equal(done, ['label', 'post', 'label', 'post']);
  assert.is.not(keys[2], keys[0]);
});

test('R-23: an event with a key is applied once, also when it is repeated while on its way, or after a restart', async () => {
  const first = await stage([orderKind()], { store: disk() });
  const { handle } = await first.handles.create('order', {}, ALICE);
  const once = { idempotencyKey: 'call 1' };
  const [one, two] = await Promise.all([
    first.handles.send('order', handle, add('tea'), ALICE, once),
    first.handles.send('order', handle, add('tea'), ALICE, once),
  ]);
  assert.equal(one, two);
  await first.handles.send('order', handle, add('milk'), ALICE);
  const second = await first.again();
  const again = await second.handles.send('order', handle, add('tea'), ALICE, once);
  assert.equal(again.view, { items: ['tea'] });
  assert.equal((await second.handles.get('order', handle, ALICE)).view, { items: ['tea', 'milk'] });
  const made = await second.handles.create('order', {}, ALICE, { idempotencyKey: 'new' });
  const same = await second.handles.create('order', {}, ALICE, { idempotencyKey: 'new' });
  assert.is(made.handle, same.handle);
});
