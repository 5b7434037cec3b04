/** Time across the timeline: idle time is folded, and every pixel still has its time. */
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { placeRows } from '../../../inspector/src/timeline/rows.ts';
import {
  FOLD_AFTER,
  firstFrom,
  fitted,
  lengthOf,
  roundStep,
  stretchesOf,
  timeAt,
  widthOf,
  xOf,
  zoomed,
} from '../../../inspector/src/timeline/scale.ts';
import { suite } from '../../harness/door.ts';

const test = suite('timeline scale');

/** Ascending times, some of them long after the one before. */
const moments = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 900 }), fc.integer({ min: FOLD_AFTER + 1, max: 900_000 })), {
    minLength: 1,
    maxLength: 60,
  })
  .map((gaps) => {
    let at = 0;
    return gaps.map((gap) => (at += gap));
  });

test('a later time is never to the left of an earlier one', () => {
  fc.assert(
    fc.property(moments, fc.integer({ min: 50, max: 2_000 }), (times, width) => {
      const until = (times.at(-1) ?? 0) + 500;
      const scale = fitted(stretchesOf(times, until), width);
      let last = -1;
      for (const at of [...times, until]) {
        const x = xOf(scale, at);
        assert.ok(x >= last - 1e-6, `${at} is at ${x}, left of ${last}`);
        last = x;
      }
      assert.ok(Math.abs(last - width) < 1, `the end is at ${last} of ${width}`);
    }),
  );
});

test('the time at the pixel of a time is that time', () => {
  fc.assert(
    fc.property(moments, fc.double({ min: 0.001, max: 10, noNaN: true }), (times, k) => {
      const until = (times.at(-1) ?? 0) + 500;
      const scale = zoomed(stretchesOf(times, until), k, times[0] ?? 0, 40);
      for (const at of times) {
        const back = timeAt(scale, xOf(scale, at));
        assert.ok(Math.abs(back - at) < 1e-3, `${at} came back as ${back}`);
      }
    }),
  );
});

test('idle time takes the same room however long it was, and short idle time is not folded', () => {
  const hour = fitted(stretchesOf([0, 1_000, 3_601_000, 3_602_000], 3_602_000), 800);
  const day = fitted(stretchesOf([0, 1_000, 86_401_000, 86_402_000], 86_402_000), 800);
  assert.is(hour.starts.length, 2);
  assert.is(widthOf(hour), widthOf(day));
  assert.is(xOf(hour, 3_601_000), xOf(day, 86_401_000));
  assert.is(stretchesOf([0, FOLD_AFTER], FOLD_AFTER).starts.length, 1);
});

test('the time since the last record is folded, too', () => {
  assert.is(stretchesOf([0, 100], 60_000).starts.length, 2);
});

test('zooming leaves the time under the pointer where it is', () => {
  const stretches = stretchesOf([0, 500, 20_000, 21_000], 21_500);
  for (const at of [100, 480, 20_400]) assert.ok(Math.abs(xOf(zoomed(stretches, 3, at, 123), at) - 123) < 1e-6);
});

test('without any record there is still a scale', () => {
  const scale = fitted(stretchesOf([], 5_000), 300);
  assert.ok(Number.isFinite(xOf(scale, 5_000)) && Number.isFinite(timeAt(scale, 150)));
});

test('exchanges that overlap stand in lanes of their own, and those that do not share one', () => {
  const span = (seq: number, at: number, end: number) => ({ seq, at, end, label: 'ping', outcome: 'ok' as const });
  const row = { id: 'wire', label: 'wire', kind: 'stdio', states: [], marks: [] };
  const wire = [span(1, 0, 100), span(2, 50, 120), span(3, 110, 130)];
  const [place] = placeRows([{ ...row, wire }], 'full', 400);
  assert.equal(place?.lanes, [0, 1, 0]);
  assert.equal(placeRows([{ ...row, wire }], 'strip', 100)[0]?.lanes, [0, 0, 0]);
});

test('the first item from a time on is found among equal ones', () => {
  const items = [1, 2, 2, 2, 5].map((at) => ({ at }));
  assert.is(firstFrom(items, 2), 1);
  assert.is(firstFrom(items, 3), 4);
  assert.is(firstFrom(items, 6), 5);
});

test('marks of the axis are at round times, and lengths are said in a few characters', () => {
  assert.equal([0.4, 3, 7, 80, 120, 1_700].map(roundStep), [1, 5, 10, 100, 200, 2_000]);
  assert.equal(
    [4, 999, 1_500, 90_000, 7_200_000].map((ms) => lengthOf(ms)),
    ['4 ms', '999 ms', '1.5 s', '1.5 min', '2 h'],
  );
});

test('marks of the axis that stand beside each other are said in different words, however near they are', () => {
  for (const from of [0, 3_500, 61_000, 7_200_000])
    for (const step of [1, 2, 5, 10, 20, 50, 100, 500, 1_000, 20_000, 200_000]) {
      const said = Array.from({ length: 12 }, (_, index) => lengthOf(from + index * step, step));
      assert.is(new Set(said).size, 12, said.join(', '));
    }
  assert.equal(
    [3_500, 3_520, 3_540].map((ms) => lengthOf(ms, 20)),
    ['3.5 s', '3.52 s', '3.54 s'],
  );
});
