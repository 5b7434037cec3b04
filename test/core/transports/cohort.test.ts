/** Cohorts: what comes in one turn of the event loop is served together, once, in order; large messages one at a time. */
import { once } from 'node:events';
import * as assert from 'uvu/assert';
import { serveAlone, serveAtEndOfTurn } from '../../../src/core/transports/turn-batch.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('cohort');

test('requests are served together and in order, after the turn in which they came', async () => {
  const served: string[] = [];
  for (const name of ['a', 'b', 'c']) serveAtEndOfTurn({ serve: () => void served.push(name) });
  await undefined;
  assert.equal(served, []);
  await settled();
  assert.equal(served, ['a', 'b', 'c']);
});

test('a member that joins while a cohort is served belongs to the next cohort', async () => {
  const served: string[] = [];
  const turns: number[] = [];
  let turn = 0;
  const count = (): void => {
    turn += 1;
    if (turn < 5) setImmediate(count);
  };
  setImmediate(count);
  serveAtEndOfTurn({
    serve() {
      served.push('first');
      turns.push(turn);
      serveAtEndOfTurn({
        serve() {
          served.push('second');
          turns.push(turn);
        },
      });
    },
  });
  await settled();
  await settled();
  assert.equal(served, ['first', 'second']);
  assert.is((turns[1] ?? 0) - (turns[0] ?? 0), 1);
});

test('one that throws is an incident of its own: the others are served in the next turn, each once', async () => {
  const served: string[] = [];
  const failed = once(process, 'uncaughtException');
  for (const name of ['a', 'b', 'c', 'd'])
    serveAtEndOfTurn({
      serve() {
        served.push(name);
        if (name === 'b') throw new Error('b fails');
      },
    });
  const [error] = await failed;
  assert.match(String(error), 'b fails');
  await settled();
  assert.equal(served, ['a', 'b', 'c', 'd']);
});

/** Counts the turns of the event loop from now on, until `done`. */
function countTurns(): { turn: number; done: boolean } {
  const count = { turn: 0, done: false };
  const next = (): void => {
    count.turn += 1;
    if (!count.done) setImmediate(next);
  };
  setImmediate(next);
  return count;
}

test('S-46: large messages are served in order, one in each turn of the event loop', async () => {
  const count = countTurns();
  const served: (readonly [name: string, turn: number])[] = [];
  const arrive = (name: string): Promise<void> =>
    new Promise((resolve) => {
      serveAlone({
        serve() {
          served.push([name, count.turn]);
          resolve();
        },
      });
    });
  await Promise.all(['a', 'b', 'c'].map(arrive));
  count.done = true;
  assert.equal(
    served.map(([name]) => name),
    ['a', 'b', 'c'],
  );
  assert.is(new Set(served.map(([, turn]) => turn)).size, 3);
});

test('S-46: small requests pass between two large ones, and before a large one of the same turn', async () => {
  const served: string[] = [];
  await new Promise<void>((resolve) => {
    const small = (name: string) => ({ serve: () => void served.push(name) });
    const large = (name: string, then: () => void) => ({
      large: true,
      serve() {
        served.push(name);
        then();
      },
    });
    serveAtEndOfTurn(large('large 1', () => serveAtEndOfTurn(small('during large 1'))));
    serveAtEndOfTurn(large('large 2', () => serveAtEndOfTurn(small('during large 2'))));
    serveAtEndOfTurn(large('large 3', resolve));
    serveAtEndOfTurn(small('at once'));
  });
  assert.equal(served, ['at once', 'large 1', 'during large 1', 'large 2', 'during large 2', 'large 3']);
});
