/** Schedules of machines: each slot changes the state once, in the commit of its successor, over kills, downtime and reloads. */
import * as assert from 'uvu/assert';
import { assign, setup } from 'xstate';
import { isObject } from '../../../src/core/protocol/json.ts';
import type { Store } from '../../../src/core/store/store.ts';
import type { MachineKind } from '../../../src/features/machines/machine-definition.ts';
import type { MachineSchedule } from '../../../src/features/schedules/schedule-definition.ts';
import { readPlan } from '../../../src/features/schedules/schedule-slots.ts';
import { createServer } from '../../../src/index.ts';
import { connect, SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { ALICE, disk, FULL, type Stage, stage } from './support.ts';

const test = suite('schedules of machines');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Slots {
  readonly slots: readonly (readonly [string, number])[];
}

/** A machine that notes its slots while it is open. */
const machine = setup({
  types: {
    context: {} as Slots,
    events: {} as
      | { type: 'tidy'; scheduledFor: string; missed: number }
      | { type: 'close' }
      | { type: 'open' }
      | { type: 'boom'; scheduledFor: string; missed: number }
      | { type: 'end' },
  },
  actions: {
    explode: () => {
      throw new Error('boom');
    },
  },
}).createMachine({
  context: { slots: [] },
  initial: 'open',
  states: {
    open: {
      on: {
        tidy: {
          actions: assign({
            slots: ({ context, event }) => [...context.slots, [event.scheduledFor.slice(5, 16), event.missed] as const],
          }),
        },
        close: 'closed',
        end: 'over',
        boom: { actions: 'explode' },
      },
    },
    closed: { on: { open: 'open' } },
    over: { type: 'final' },
  },
});

function kindOf(schedules: Readonly<Record<string, MachineSchedule>>): MachineKind {
  const plans = Object.entries(schedules).map(([name, given]) => {
    const { event } = given;
    return [name, { ...readPlan(name, given, { event: () => undefined }), event }] as const;
  });
  return {
    ...{ name: 'room', machine, version: '1', events: ['close', 'open', 'end'], ttlMs: 60 * DAY },
    view: (snapshot) => snapshot.context,
    schedules: plans.length === 0 ? undefined : new Map(plans),
  };
}

const NIGHTLY = { nightly: { cron: '0 3 * * *', event: 'tidy' } };
const slotsOf = async ({ handles }: Stage, handle: string): Promise<unknown> => {
  const { view } = await handles.get('room', handle, ALICE);
  return view && typeof view === 'object' && 'slots' in view ? view.slots : undefined;
};

/** The names of the timers in a store. */
const timersIn = async (store: Store): Promise<string[]> =>
  (await store.timers(Number.MAX_SAFE_INTEGER, 99)).map(({ timer }) => timer).sort();

test('a slot sends the instance an event, which clients cannot send; the instance hibernates in between', async () => {
  const world = await stage([kindOf(NIGHTLY)]);
  const { handle } = await world.handles.create('room', {}, ALICE);
  await world.clock.advance(HOUR);
  assert.is(world.handles.hibernating().count, 1);
  await world.clock.advance(2 * DAY);
  assert.equal(await slotsOf(world, handle), [
    ['01-01T03:00', 0],
    ['01-02T03:00', 0],
  ]);
  await world.handles.stop();
});

/** A clock whose date is corrected, as that of a database. */
class CorrectedClock extends SimulatedClock {
  readonly dateIsSteady = true;
  behind = 0;

  override date(): number {
    return super.date() - this.behind;
  }
}

test('R-82: an instance in memory whose date was set back a moment gets its slot a moment later', async () => {
  const clock = new CorrectedClock();
  const world = await stage([kindOf({ beat: { everyMs: 10_000, event: 'tidy' } })], { clock });
  const { handle } = await world.handles.create('room', {}, ALICE);
  clock.behind = 7;
  await clock.advance(10_000);
  assert.equal(await slotsOf(world, handle), []);
  await clock.advance(7);
  assert.equal(await slotsOf(world, handle), [['01-01T00:00', 0]]);
  await world.handles.stop();
});

test('R-81: the event of a slot and the timer of its successor are one commit', async () => {
  const store = disk();
  const world = await stage([kindOf(NIGHTLY)], { store });
  await world.handles.create('room', {}, ALICE);
  store.batches.length = 0;
  await world.clock.advance(3 * HOUR);
  const [batch = []] = store.batches;
  assert.is(store.batches.length, 1);
  const timer = batch.find((write) => write.type === 'timer');
  assert.is(timer?.type === 'timer' && new Date(timer.timer.due).toISOString(), '2026-01-02T03:00:00.000Z');
  assert.ok(batch.some((write) => write.type === 'snapshot' && write.data.includes('01-01T03:00')));
  await world.handles.stop();
});

test('R-81: a kill before a commit repeats the slot, and one after it does not', async () => {
  const store = disk();
  const first = await stage([kindOf(NIGHTLY)], { store });
  const { handle } = await first.handles.create('room', {}, ALICE);
  store.held = true;
  await first.clock.advance(3 * HOUR);
  const second = await first.again({ store: store.crash(), laterMs: 1_000 });
  await second.clock.advance(0);
  assert.equal(await slotsOf(second, handle), [['01-01T03:00', 0]]);
  const third = await second.again({ laterMs: 1_000 });
  await third.clock.advance(0);
  assert.equal(await slotsOf(third, handle), [['01-01T03:00', 0]]);
});

test('R-82: after a week of downtime, an instance gets one event for all missed slots, or one for each', async () => {
  const both = { ...NIGHTLY, each: { cron: '30 3 * * *', event: 'tidy', missed: 'all' as const } };
  const store = disk();
  const first = await stage([kindOf(both)], { store });
  const { handle } = await first.handles.create('room', {}, ALICE);
  const later = await first.again({ store: store.crash(), laterMs: 7 * DAY });
  await later.clock.advance(1);
  assert.equal(await slotsOf(later, handle), [
    ['01-07T03:00', 6],
    ...Array.from({ length: 7 }, (_, day) => [`01-0${day + 1}T03:30`, 0]),
  ]);
  await later.clock.advance(DAY);
  assert.is(((await slotsOf(later, handle)) as unknown[]).length, 10);
  await later.handles.stop();
});

test('a slot that the state does not accept is noted, and the next one follows', async () => {
  const store = disk();
  const world = await stage([kindOf(NIGHTLY)], { store });
  const { handle } = await world.handles.create('room', {}, ALICE);
  await world.handles.send('room', handle, { type: 'close', data: {} }, ALICE);
  await world.clock.advance(DAY);
  await world.handles.send('room', handle, { type: 'open', data: {} }, ALICE);
  assert.equal(await slotsOf(world, handle), []);
  await world.clock.advance(DAY);
  assert.equal(await slotsOf(world, handle), [['01-02T03:00', 0]]);
  const history = [...store.history.values()].flat();
  assert.is(history.filter(({ kind, data }) => kind === 'ignored' && data.includes('"tidy"')).length, 1);
  await world.handles.stop();
});

test('an instance that has ended has no slots, and leaves no timers', async () => {
  const store = disk();
  const world = await stage([kindOf(NIGHTLY)], { store });
  const { handle } = await world.handles.create('room', {}, ALICE);
  assert.equal(await timersIn(store), ['schedule nightly']);
  await world.handles.send('room', handle, { type: 'end', data: {} }, ALICE);
  assert.equal(await timersIn(store), []);
  await world.clock.advance(2 * DAY);
  assert.equal(await slotsOf(world, handle), []);
  await world.handles.stop();
});

test('a schedule that is added, changed or removed takes effect for hibernating instances, at once or with the next start', async () => {
  const store = disk();
  const first = await stage([kindOf({})], { store });
  const { handle } = await first.handles.create('room', {}, ALICE);
  await first.clock.advance(HOUR);
  first.handles.define(kindOf(NIGHTLY));
  await settled();
  await first.clock.advance(0);
  assert.equal(await timersIn(store), ['schedule nightly']);
  await first.clock.advance(3 * HOUR);
  assert.equal(await slotsOf(first, handle), [['01-01T03:00', 0]]);
  await first.clock.advance(HOUR);
  await first.handles.stop();
  const noon = { nightly: { cron: '0 12 * * *', event: 'tidy' }, beat: { everyMs: HOUR, event: 'tidy' } };
  const second = await first.again({ kinds: [kindOf(noon)], laterMs: DAY });
  await second.clock.advance(0);
  assert.equal(await timersIn(store), ['schedule beat', 'schedule nightly']);
  await second.clock.advance(7 * HOUR + 1);
  assert.equal(((await slotsOf(second, handle)) as unknown[]).length, 9);
  await second.handles.stop();
  const third = await second.again({ kinds: [kindOf({})], laterMs: DAY });
  await third.clock.advance(0);
  assert.equal(await timersIn(store), []);
  await third.clock.advance(DAY);
  assert.equal(((await slotsOf(third, handle)) as unknown[]).length, 9);
  await third.handles.stop();
});

test('a slot whose event crashes its instance twice is a dead letter, and the next slot follows; the instance lives', async () => {
  const store = disk();
  const world = await stage([kindOf({ bad: { cron: '0 2 * * *', event: 'boom' }, ...NIGHTLY })], { store });
  const { handle } = await world.handles.create('room', {}, ALICE);
  await world.clock.advance(DAY);
  assert.equal(await slotsOf(world, handle), [['01-01T03:00', 0]]);
  assert.is((await store.deadLetters(9)).length, 1);
  const due = (await store.timers(Number.MAX_SAFE_INTEGER, 9)).map((row) =>
    new Date(row.due).toISOString().slice(5, 16),
  );
  assert.equal(due, ['01-02T02:00', '01-02T03:00']);
  await world.handles.stop();
});

test('a slot waits while the store rejects, and changes the state once', async () => {
  const store = disk();
  const world = await stage([kindOf(NIGHTLY)], { store });
  const { handle } = await world.handles.create('room', {}, ALICE);
  await world.clock.advance(3 * HOUR - 1);
  store.fails = FULL;
  await world.clock.advance(5_000);
  store.fails = undefined;
  await world.clock.advance(MINUTE);
  assert.equal(await slotsOf(world, handle), [['01-01T03:00', 0]]);
  await world.handles.stop();
});

test('slots of many instances are spread, and each keeps its own time', async () => {
  const store = disk();
  const world = await stage([kindOf({ nightly: { ...NIGHTLY.nightly, spreadMs: HOUR } })], { store });
  for (let instance = 0; instance < 20; instance += 1) await world.handles.create('room', {}, ALICE);
  const dates = async (): Promise<number[]> =>
    (await store.timers(Number.MAX_SAFE_INTEGER, 99)).map(({ due }) => due % DAY);
  const before = await dates();
  assert.ok(new Set(before).size > 15);
  assert.ok(before.every((due) => due >= 3 * HOUR && due < 4 * HOUR));
  await world.clock.advance(DAY);
  assert.equal(await dates(), before);
  await world.handles.stop();
});

test('schedules are options of a machine: a test advances a day and sees the slot, and each mistake has a correction', async () => {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'rooms', version: '1.0.0', clock });
  const events = { close: true, open: true } as const;
  server.machine('room', machine, {
    events,
    view: ({ context }) => context,
    schedules: { nightly: { cron: '0 3 * * *', timeZone: 'Europe/Berlin', event: 'tidy' } },
  });
  const client = await connect(server, { auth: { principal: 'ada' } });
  const { structuredContent } = await client.call('room_create', {});
  const handle = isObject(structuredContent) ? structuredContent.handle : undefined;
  await clock.advance(DAY);
  const shown = (await client.call('room_get', { handle })).structuredContent;
  assert.equal(isObject(shown) ? shown.view : undefined, { slots: [['01-01T02:00', 0]] });
  await server.close();
  const register = (schedules: object): void =>
    void Reflect.apply(server.machine, server, ['other', machine, { events, schedules }]);
  assert.throws(() => register({ 'a b': { everyMs: 1_000, event: 'tidy' } }), /expected a name of 1 to 64 letters/);
});
