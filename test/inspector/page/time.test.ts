/** Times on the page: a time of another day has its date. */
import * as assert from 'uvu/assert';
import { wallClock } from '../../../inspector/src/parts/time.ts';
import { suite } from '../../harness/door.ts';

const test = suite('times of the page');

test('a time of today has no date, another day has one, another year has its year', () => {
  const now = new Date(2026, 10, 22, 18, 5, 9).getTime();
  assert.is(wallClock(new Date(2026, 10, 22, 7, 4, 3, 21).getTime(), true, now), '07:04:03.021');
  assert.is(wallClock(new Date(2026, 10, 21, 23, 59, 59).getTime(), false, now), 'Nov 21 23:59:59');
  assert.is(wallClock(new Date(2025, 11, 31, 23, 59, 59).getTime(), false, now), 'Dec 31, 2025 23:59:59');
});
