/** Cohorts: what comes in one turn of the event loop is served together, once, in order, and one that fails takes nobody with it. */
import { once } from 'node:events';
import * as assert from 'uvu/assert';
import { settled } from '../../../src/testing.ts';
import { serveAtEndOfTurn } from '../../../src/transports/http/turn-batch.ts';
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

test('what joins while a cohort is served is of the next one', async () => {
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
