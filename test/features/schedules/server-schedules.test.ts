/** Schedules of a server: each slot once, over downtime, crashes, long and failing handlers, and removal. */
import * as assert from 'uvu/assert';
import type {
  ScheduleHandler,
  ScheduleOptions,
  ScheduleSlot,
} from '../../../src/features/schedules/schedule-definition.ts';
import type { Server } from '../../../src/index.ts';
import { SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { TestStore } from '../../harness/test-store.ts';
import { later, type Serving, serving } from './support.ts';

const test = suite('schedules of a server');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A program with one schedule that notes its slots. */
function noting(options: ScheduleOptions, slots: ScheduleSlot[], then: ScheduleHandler = () => {}) {
  return (server: Server): void => {
    server.schedule('nightly', options, (slot, ctx) => {
      slots.push(slot);
      return then(slot, ctx);
    });
  };
}

const dates = (slots: readonly ScheduleSlot[]): string[] => slots.map(({ scheduledFor }) => scheduledFor.slice(5, 16));

test('a handler is called at each date of its pattern', async () => {
  const slots: ScheduleSlot[] = [];
  const { server, clock, logged } = await serving(noting({ cron: '0 3 * * *' }, slots), {});
  await clock.advance(3 * DAY);
  assert.equal(dates(slots), ['01-01T03:00', '01-02T03:00', '01-03T03:00']);
  assert.equal(
    slots.map(({ missed, attempt, schedule }) => [missed, attempt, schedule]),
    Array.from({ length: 3 }, () => [0, 1, 'nightly']),
  );
  assert.is(new Set(slots.map(({ key }) => key)).size, 3);
  assert.is(logged.filter((line) => line.includes('in the memory of this process')).length, 1);
  assert.match(server.metrics(), /troupe_schedule_lateness_seconds_count 3/);
  assert.match(server.metrics(), /troupe_attempts_total\{troupe_kind="schedule",troupe_result="done"\} 3/);
  await server.close();
});

test('nothing runs before the server listens', async () => {
  const slots: ScheduleSlot[] = [];
  let registered: Server | undefined;
  const { clock, server } = await serving((program) => {
    registered = program;
    noting({ everyMs: 1_000 }, slots)(program);
    assert.is(slots.length, 0);
  }, {});
  assert.is(registered, server);
  await clock.advance(2_000);
  assert.is(slots.length, 2);
  await server.close();
});

test('a schedule that is registered while the server serves runs, too, and one that is removed does not', async () => {
  const slots: ScheduleSlot[] = [];
  const store = new TestStore();
  const { server, clock } = await serving(() => {}, { store });
  const minutely = server.schedule('minutely', { everyMs: MINUTE }, (slot) => void slots.push(slot));
  await settled();
  assert.is(minutely.next, '2026-01-01T00:01:00.000Z');
  await clock.advance(MINUTE);
  assert.is(slots.length, 1);
  minutely.remove();
  await clock.advance(HOUR);
  assert.is(slots.length, 1);
  assert.equal(await store.list({ kind: 'schedule', limit: 9 }), []);
  server.schedule('minutely', { everyMs: HOUR }, () => {});
  assert.throws(
    () => server.schedule('minutely', { everyMs: HOUR }, () => {}),
    /schedule "minutely" is already registered/,
  );
  await server.close();
});

for (const [missed, expected] of [
  ['once', [['01-08T03:00', 6]]],
  ['skip', []],
  ['all', Array.from({ length: 7 }, (_, day) => [`01-0${day + 2}T03:00`, 0])],
] as const)
  test(`R-82: after a week of downtime, ${missed} makes up for slots as it says, then the next slot runs on its date`, async () => {
    const store = new TestStore();
    const slots: ScheduleSlot[] = [];
    const program = noting({ cron: '0 3 * * *', missed }, slots);
    const first = await serving(program, { store });
    await first.clock.advance(DAY);
    await first.server.close();
    slots.length = 0;
    const second = await serving(program, { store, clock: later(first, 7 * DAY + HOUR) });
    await settled();
    assert.equal(
      slots.map((slot) => [dates([slot])[0], slot.missed]),
      expected,
    );
    slots.length = 0;
    await second.clock.advance(DAY);
    assert.equal(dates(slots), ['01-09T03:00']);
    await second.server.close();
  });

test('R-82: a slot that passes before the first one has run is missed, too', async () => {
  const store = new TestStore();
  const slots: ScheduleSlot[] = [];
  const program = noting({ cron: '0 3 * * *' }, slots);
  const first = await serving(program, { store });
  await first.clock.advance(HOUR);
  await first.server.close();
  const second = await serving(program, { store, clock: later(first, 3 * HOUR) });
  await settled();
  assert.equal(dates(slots), ['01-01T03:00']);
  await second.server.close();
});

test('a handler that takes longer than its interval never runs twice at once', async () => {
  const slots: ScheduleSlot[] = [];
  const ends: (() => void)[] = [];
  const long = () => new Promise<void>((resolve) => ends.push(resolve));
  const { server, clock } = await serving(noting({ everyMs: MINUTE }, slots, long), {});
  await clock.advance(5 * MINUTE + 1);
  assert.is(slots.length, 1);
  ends.pop()?.();
  await settled();
  assert.equal(
    slots.map(({ scheduledFor, missed }) => [scheduledFor.slice(11, 19), missed]),
    [
      ['00:01:00', 0],
      ['00:05:00', 3],
    ],
  );
  ends.pop()?.();
  await server.close();
});

test('a handler that throws is an incident, and its next slot runs', async () => {
  const slots: ScheduleSlot[] = [];
  const fails: ScheduleHandler = () => {
    throw new Error('the report is empty');
  };
  const { server, clock, logged } = await serving(noting({ everyMs: MINUTE }, slots, fails), {});
  await clock.advance(2 * MINUTE);
  assert.is(slots.length, 2);
  assert.is(
    logged.filter((line) => /incident \S+ in schedule "nightly": Error: the report is empty/.test(line)).length,
    2,
  );
  assert.match(server.metrics(), /troupe_attempts_total\{troupe_kind="schedule",troupe_result="failed"\} 2/);
  await server.close();
});

test('the signal of a handler aborts at its deadline, and the next slot waits until the handler ends', async () => {
  const slots: ScheduleSlot[] = [];
  const signals: AbortSignal[] = [];
  let end = (): void => {};
  const deaf: ScheduleHandler = (_, { signal }) => {
    signals.push(signal);
    return new Promise<void>((resolve) => {
      end = resolve;
    });
  };
  const { server, clock, logged } = await serving(noting({ everyMs: MINUTE, timeoutMs: 90_000 }, slots, deaf), {});
  await clock.advance(MINUTE + 89_999);
  assert.is(signals[0]?.aborted, false);
  await clock.advance(1);
  assert.is(signals[0]?.aborted, true);
  assert.ok(logged.some((line) => line.includes('has run for 90000 ms (its timeoutMs)')));
  await clock.advance(HOUR);
  assert.is(slots.length, 1);
  end();
  await settled();
  assert.is(slots.length, 2);
  end();
  await server.close();
});

test('R-81: a slot and its successor are durable before the handler begins', async () => {
  const slots: ScheduleSlot[] = [];
  const store = new (class extends TestStore {
    held: (() => void) | undefined;
    holds = false;
    override async write(writes: Parameters<TestStore['write']>[0]): Promise<void> {
      if (this.holds)
        await new Promise<void>((resolve) => {
          this.held = resolve;
        });
      return super.write(writes);
    }
  })();
  const { server, clock } = await serving(noting({ everyMs: MINUTE }, slots), { store });
  store.holds = true;
  await clock.advance(MINUTE);
  assert.is(slots.length, 0);
  store.holds = false;
  store.held?.();
  await settled();
  assert.is(slots.length, 1);
  await server.close();
});

/** Runs until the first slot has begun, and then nothing of the process is left but its store. */
async function killedInSlot(store: TestStore, clock?: Serving['clock']): Promise<Serving> {
  const first = await serving(
    noting({ everyMs: MINUTE }, [], () => new Promise(() => {})),
    { store, ...(clock && { clock }) },
  );
  await first.clock.advance(MINUTE);
  return first;
}

test('R-81: a slot whose process is killed runs again with the same key, and after three deaths it is a dead letter', async () => {
  const store = new TestStore();
  const slots: ScheduleSlot[] = [];
  let last = await killedInSlot(store);
  last = await serving(
    noting({ everyMs: MINUTE }, slots, () => new Promise(() => {})),
    { store, clock: later(last, 1) },
  );
  last = await serving(
    noting({ everyMs: MINUTE }, slots, () => new Promise(() => {})),
    { store, clock: later(last, 1) },
  );
  await settled();
  assert.equal(
    slots.map(({ attempt, scheduledFor }) => [attempt, scheduledFor]),
    [
      [2, '2026-01-01T00:01:00.000Z'],
      [3, '2026-01-01T00:01:00.000Z'],
    ],
  );
  assert.is(slots[0]?.key, slots[1]?.key);
  slots.length = 0;
  const { server, clock, logged } = await serving(noting({ everyMs: MINUTE }, slots), { store, clock: later(last, 1) });
  assert.is(slots.length, 0);
  assert.ok(
    logged.some((line) => line.includes('the process ended 3 times during the slot of')),
    logged.join('\n'),
  );
  const [letter] = await server.deadLetters();
  assert.equal([letter?.attempts, letter?.mail], [3, 'slot 2026-01-01T00:01:00.000Z']);
  await clock.advance(MINUTE);
  assert.equal(dates(slots), ['01-01T00:02']);
  await server.close();
});

test('a stop aborts the signal and waits for the handler; one that is cut off begins again with the next start, and counts as no crash', async () => {
  const store = new TestStore();
  const slots: ScheduleSlot[] = [];
  const heeds: ScheduleHandler = (_, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const first = await serving(noting({ everyMs: MINUTE }, slots, heeds), { store });
  await first.clock.advance(MINUTE);
  await first.server.close();
  assert.not.ok(first.logged.some((line) => line.includes('incident')));
  const second = await serving(noting({ everyMs: MINUTE }, slots), { store, clock: later(first, 1) });
  await settled();
  assert.equal(
    slots.map(({ attempt, scheduledFor }) => [attempt, scheduledFor]),
    [
      [1, '2026-01-01T00:01:00.000Z'],
      [1, '2026-01-01T00:01:00.000Z'],
    ],
  );
  await second.server.close();
});

test('a result that the store rejects is stored later, and the slot does not run again', async () => {
  const slots: ScheduleSlot[] = [];
  const store = new (class extends TestStore {
    fails = false;
    override write(writes: Parameters<TestStore['write']>[0]): Promise<void> {
      return this.fails ? Promise.reject(new Error('the disk is full')) : super.write(writes);
    }
  })();
  const fill: ScheduleHandler = () => {
    store.fails = true;
  };
  const { server, clock, logged } = await serving(noting({ everyMs: HOUR }, slots, fill), { store });
  await clock.advance(HOUR + 10_000);
  assert.is(logged.filter((line) => line.includes('schedule "nightly" waits for the store')).length, 1);
  store.fails = false;
  await clock.advance(MINUTE);
  assert.is(slots.length, 1);
  store.fails = false;
  await clock.advance(HOUR);
  assert.is(slots.length, 2);
  store.fails = false;
  await clock.advance(MINUTE);
  await server.close();
});

test('other dates take effect with the next start: the missed slots of the old ones do not run', async () => {
  const store = new TestStore();
  const slots: ScheduleSlot[] = [];
  const first = await serving(noting({ cron: '0 3 * * *' }, slots), { store });
  await first.server.close();
  const second = await serving(noting({ cron: '0 12 * * *' }, slots), { store, clock: later(first, DAY) });
  await settled();
  assert.is(slots.length, 0);
  await second.clock.advance(DAY);
  assert.equal(dates(slots), ['01-02T12:00']);
  await second.server.close();
});

test('a date runs once, also over restarts; one that was past when it was registered does not run, and the log says so', async () => {
  const store = new TestStore();
  const slots: ScheduleSlot[] = [];
  const program = noting({ at: '2026-01-01T05:00:00Z' }, slots);
  const first = await serving(program, { store });
  await first.server.close();
  const second = await serving(program, { store, clock: later(first, DAY) });
  await settled();
  assert.equal(dates(slots), ['01-01T05:00']);
  await second.server.close();
  const third = await serving(program, { store, clock: later(second, DAY) });
  await third.clock.advance(DAY);
  assert.is(slots.length, 1);
  await third.server.close();
  const { server, logged } = await serving(noting({ at: '2025-01-01T05:00:00Z' }, slots), {});
  assert.ok(logged.some((line) => line.includes('its dates are all in the past')));
  await server.close();
});

test('a run without a slot begins at once, or after the one that runs, and leaves the next slot on its date', async () => {
  const slots: ScheduleSlot[] = [];
  const ends: (() => void)[] = [];
  const { server, clock } = await serving(() => {}, {});
  const hourly = server.schedule('hourly', { everyMs: HOUR }, (slot) => {
    slots.push(slot);
    return new Promise<void>((resolve) => ends.push(resolve));
  });
  assert.throws(() => server.schedule('later', { cron: '0 0 31 2 *' }, () => {}), /no date matches/);
  await clock.advance(MINUTE);
  hourly.run();
  hourly.run();
  await settled();
  assert.is(slots.length, 1);
  ends.pop()?.();
  await settled();
  assert.is(slots.length, 2);
  ends.pop()?.();
  await settled();
  assert.is(hourly.next, '2026-01-01T01:00:00.000Z');
  await clock.advance(HOUR - MINUTE);
  assert.equal(dates(slots), ['01-01T00:01', '01-01T00:01', '01-01T01:00']);
  ends.pop()?.();
  await server.close();
  assert.throws(() => hourly.run(), /schedule "hourly": this process does not run it now/);
});

test('names and handlers that are wrong are rejected with a correction', async () => {
  const { server } = await serving(() => {}, {});
  const schedule = (...args: readonly unknown[]): void => void Reflect.apply(server.schedule, server, args);
  for (const [args, message] of [
    [['a b', { everyMs: 1_000 }, () => {}], /server.schedule: expected a name of 1 to 64 letters/],
    [[undefined, { everyMs: 1_000 }, () => {}], /server.schedule: expected a name/],
    [['a', { everyMs: 1_000 }], /schedule "a": handler: expected a function/],
  ] as const)
    assert.throws(() => schedule(...args), message);
  await server.close();
});

test('R-83: a slot that passes while the machine is suspended runs within half a minute of its resumption, and a clock that is set back repeats none', async () => {
  let jumpMs = 0;
  const clock = new (class extends SimulatedClock {
    wall(): number {
      return this.date() + jumpMs;
    }
  })();
  const slots: ScheduleSlot[] = [];
  const { server } = await serving(noting({ cron: '0 3 * * *' }, slots), { clock });
  await clock.advance(HOUR);
  assert.is(slots.length, 0);
  jumpMs = 5 * HOUR;
  await clock.advance(30_000);
  assert.equal(dates(slots), ['01-01T03:00']);
  jumpMs = 0;
  await clock.advance(3 * HOUR);
  assert.is(slots.length, 1);
  await server.close();
});
