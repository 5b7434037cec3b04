/** How often the page is shown anew. */
import * as assert from 'uvu/assert';
import { waitOf } from '../../../inspector/src/store/pace.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the pace of the page');

/** The times at which panels are shown anew, where something changes each millisecond. */
function shownIn(ms: number, actors: number): readonly number[] {
  const shown: number[] = [];
  let due: number | undefined;
  for (let at = 0; at < ms; at += 1) {
    due ??= at + waitOf(actors, at - (shown.at(-1) ?? Number.NEGATIVE_INFINITY));
    if (at < due) continue;
    shown.push(at);
    due = undefined;
  }
  return shown;
}

test('of more than a thousand actors, the first change is shown at once, and then at most four a second', () => {
  assert.equal(shownIn(1_000, 1_001), [0, 250, 500, 750]);
});

test('of few actors, changes of 50 ms are shown together', () => {
  assert.is(shownIn(1_000, 1_000).length, 19);
});
