/** The dates of schedules: patterns, daylight saving time, missed slots, and clocks that were wrong. */
import * as assert from 'uvu/assert';
import type { MissedSlots } from '../../../src/features/schedules/schedule-definition.ts';
import {
  continuedFrom,
  dueSlot,
  nextDue,
  offsetOf,
  readPlan,
  type SlotPlan,
} from '../../../src/features/schedules/schedule-slots.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';

const test = suite('slots of schedules');
const iso = (date: number | undefined): string | undefined =>
  date === undefined ? undefined : new Date(date).toISOString();
const plan = (given: object): SlotPlan => readPlan('schedule "s"', given, {});

/** The slots after a date. */
function slotsOf({ pattern }: SlotPlan, after: string, count: number): (string | undefined)[] {
  const slots: (string | undefined)[] = [];
  let at: number | undefined = Date.parse(after);
  for (let slot = 0; slot < count && at !== undefined; slot += 1) {
    at = pattern.next(at, 0);
    slots.push(iso(at));
  }
  return slots;
}

test('in Europe/Berlin, 02:30 in the gap of spring is 03:00, and 02:30 of autumn is once', () => {
  const nightly = plan({ cron: '30 2 * * *', timeZone: 'Europe/Berlin' });
  assert.equal(slotsOf(nightly, '2026-03-27T12:00:00Z', 3), [
    '2026-03-28T01:30:00.000Z',
    '2026-03-29T01:00:00.000Z',
    '2026-03-30T00:30:00.000Z',
  ]);
  assert.equal(slotsOf(nightly, '2026-10-24T12:00:00Z', 2), ['2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z']);
  // A list of hours keeps its time in the gap, too.
  const twice = plan({ cron: '30 2,14 * * *', timeZone: 'Europe/Berlin' });
  assert.equal(slotsOf(twice, '2026-03-28T14:00:00Z', 2), ['2026-03-29T01:00:00.000Z', '2026-03-29T12:30:00.000Z']);
  assert.equal(slotsOf(twice, '2026-10-24T14:00:00Z', 2), ['2026-10-25T00:30:00.000Z', '2026-10-25T13:30:00.000Z']);
  // Half hours of an hour that exists twice are four.
  const halves = plan({ cron: '*/30 2 * * *', timeZone: 'Europe/Berlin' });
  assert.is(slotsOf(halves, '2026-10-24T12:00:00Z', 5).at(-1), '2026-10-26T01:00:00.000Z');
});

test('a pattern without a time zone has UTC, whatever the zone of the machine', () => {
  assert.equal(slotsOf(plan({ cron: '0 3 * * *' }), '2026-07-01T00:00:00Z', 1), ['2026-07-01T03:00:00.000Z']);
});

test('an interval counts from its anchor, and does not drift when a slot is late', () => {
  const { pattern } = plan({ everyMs: 60_000 });
  assert.is(pattern.next(1_000, 1_000), 61_000);
  assert.is(pattern.next(60_999, 1_000), 61_000);
  assert.is(pattern.next(61_000 + 5_432, 1_000), 121_000);
  assert.is(pattern.latest(60_999, 1_000), undefined);
  assert.is(pattern.latest(121_000, 1_000), 121_000);
});

test('latest and next agree with a search by one step at a time', () => {
  // They cross a weekend and a change to winter time.
  const count = times(60, { quick: 30 });
  for (const cron of ['*/7 * * * *', '0 3 * * *', '15,45 8-17 * * MON-FRI', '0 0 L * *', '*/10 * * * * *']) {
    const { pattern } = plan({ cron, timeZone: 'America/New_York' });
    const begin = Date.parse('2026-10-30T22:00:00Z');
    const slots: number[] = [];
    for (let at = pattern.next(begin, 0); at !== undefined && slots.length < count; at = pattern.next(at, 0))
      slots.push(at);
    for (const [index, slot] of slots.entries()) {
      const before = slots[index - 1];
      assert.is(iso(pattern.latest(slot, 0)), iso(slot), cron);
      if (before !== undefined) {
        assert.is(iso(pattern.latest(slot - 1, 0)), iso(before), cron);
        assert.is(iso(pattern.next(before, 0)), iso(slot), cron);
        assert.is(iso(pattern.next(slot - 1, 0)), iso(slot), cron);
      }
    }
  }
});

const DAY = 86_400_000;
const LAST = Date.parse('2026-01-01T03:00:00Z');
const daily = (missed: MissedSlots): SlotPlan => plan({ cron: '0 3 * * *', missed });

test('R-82: after a week of downtime, once runs the last slot, skip none, and all each of them', () => {
  const now = LAST + 7 * DAY + 3_600_000;
  const progress = { last: LAST, anchor: LAST };
  const { scheduledFor, missed, skipped } = dueSlot(daily('once'), progress, 0, now) ?? {};
  assert.equal([scheduledFor, missed, skipped], ['2026-01-08T03:00:00.000Z', 6, false]);
  assert.is(dueSlot(daily('skip'), progress, 0, now)?.skipped, true);
  const ran: string[] = [];
  for (let last = LAST; ; ) {
    const due = dueSlot(daily('all'), { last, anchor: LAST }, 0, now);
    if (!due) break;
    assert.is(due.missed, 0);
    ran.push(due.scheduledFor);
    last = due.at;
  }
  assert.is(ran.length, 7);
  assert.is(ran[0], '2026-01-02T03:00:00.000Z');
});

test('a slot that is less than a minute late is not missed', () => {
  const progress = { last: LAST, anchor: LAST };
  assert.is(dueSlot(daily('skip'), progress, 0, LAST + DAY + 59_000)?.skipped, false);
  assert.is(dueSlot(daily('skip'), progress, 0, LAST + DAY + 60_000)?.skipped, true);
});

test('a schedule of each second that was down for a week runs at most 100 slots, and counts 1,000', () => {
  for (const given of [{ everyMs: 1_000 }, { cron: '* * * * * *' }]) {
    const progress = { last: LAST, anchor: LAST };
    const now = LAST + 7 * DAY;
    assert.is(dueSlot(plan(given), progress, 0, now)?.missed, 1_000);
    const first = dueSlot(plan({ ...given, missed: 'all' }), progress, 0, now);
    assert.equal([first?.at, first?.missed], [now - 99_000, 1_000]);
    const second = dueSlot(plan({ ...given, missed: 'all' }), { last: first?.at ?? 0, anchor: LAST }, 0, now);
    assert.equal([second?.at, second?.missed], [now - 98_000, 0]);
  }
});

test('no slot is due before its date, and the offset of a spread moves each by the same time', () => {
  const spread = plan({ cron: '0 3 * * *', spreadMs: 3_600_000 });
  const offsets = Array.from({ length: 100 }, (_, index) => offsetOf(spread, `key ${index}`));
  assert.ok(offsets.every((offset) => offset >= 0 && offset < 3_600_000));
  assert.ok(new Set(offsets).size > 90);
  const [offset = 0] = offsets;
  const progress = { last: LAST, anchor: LAST };
  assert.is(nextDue(spread, progress, offset), LAST + DAY + offset);
  assert.is(dueSlot(spread, progress, offset, LAST + DAY + offset - 1), undefined);
  assert.is(dueSlot(spread, progress, offset, LAST + DAY + offset)?.at, LAST + DAY);
});

test('R-83: a clock that is set back by up to three hours repeats no slot; further back, it counts from the present', () => {
  const progress = { last: LAST, anchor: LAST };
  assert.is(nextDue(daily('once'), continuedFrom(progress, LAST - 3_600_000), 0), LAST + DAY);
  const wrong = { last: LAST + 400 * DAY, anchor: LAST };
  assert.is(nextDue(daily('once'), continuedFrom(wrong, LAST + 1), 0), LAST + DAY);
});

test('a date is one slot, with Z or an offset', () => {
  const at = Date.parse('2026-12-24T17:00:00Z');
  for (const given of ['2026-12-24T18:00:00+01:00', '2026-12-24T17:00:00Z', new Date(at)]) {
    const once = plan({ at: given });
    assert.is(nextDue(once, { last: LAST, anchor: LAST }, 0), at);
    assert.is(nextDue(once, { last: at, anchor: LAST }, 0), undefined);
    assert.is(dueSlot(once, { last: LAST, anchor: LAST }, 0, at)?.at, at);
  }
});
