/** Each mistake of a beginner is told in the words of the table, and docs/mistakes.md has the same words. */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { FirstHour } from './first-hour.ts';
import { makeMistake } from './make-mistake.ts';
import { MISTAKES } from './mistakes.ts';
import { pageOf, secondsOf, written } from './mistakes-page.ts';

const test = suite('mistakes of beginners');
/** Those of which no other quick test has the words. */
const QUICK = ['`tsx` runs a program that only exports its server', 'The tested file listens on stdio'];

let hour: FirstHour;
test.before(() => {
  hour = FirstHour.linked('.');
});
test.after(() => hour.close());

for (const { title: group, mistakes } of MISTAKES)
  for (const mistake of mistakes) {
    const { title, says } = mistake;
    const add = QUICK.includes(title) ? test : test.full;
    add(`${group}: ${title}`, async () => {
      const { seconds, output } = await makeMistake(mistake, hour, '.', `${group}-${title}`.replace(/\W+/g, '-'));
      assert.ok(seconds !== undefined, `expected the words\n${says}\nin\n${output}`);
    });
  }

test('the page has the words of the table', () => {
  const page = written();
  const seconds = secondsOf(page);
  assert.is(seconds.length, MISTAKES.flatMap(({ mistakes }) => mistakes).length);
  assert.is(page, pageOf(seconds));
});

test('the table has 65 mistakes and more, each once in its group', () => {
  const titles = MISTAKES.flatMap(({ title, mistakes }) => mistakes.map((mistake) => `${title}: ${mistake.title}`));
  assert.ok(titles.length >= 65);
  assert.is(new Set(titles).size, titles.length);
});
