/** S-03: the time of a refusal does not tell whether a session is somebody else's or was made up. */
import * as assert from 'uvu/assert';
import { PING, serving } from '../../core/http/session.ts';
import { ask, openSession } from '../../core/http/support.ts';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { times } from '../../harness/scale.ts';

const test = suite('times of refusals');

const ROUNDS = times(1_000, { quick: 200 });

test('S-03: another principal’s session is refused as fast as one that does not exist, to less than 1 ms', () =>
  serving(
    async ({ url }) => {
      const session = await openSession(url, '2025-11-25', { authorization: 'ann' });
      const made = session.id.replace(/./g, 'x');
      const times = new Map<string, number[]>([
        [session.id, []],
        [made, []],
      ]);
      for (let round = 0; round < ROUNDS; round += 1) {
        for (const [id, all] of times) {
          const started = performance.now();
          const answer = await ask(url, { body: PING, headers: { authorization: 'bob', 'mcp-session-id': id } });
          await answer.text();
          assert.is(answer.status, 404);
          all.push(performance.now() - started);
        }
      }
      const [theirs = Number.NaN, none = Number.NaN] = [...times.values()].map(median);
      assertFigure(Math.abs(theirs - none), 1, `the difference of ${theirs} and ${none} ms`);
    },
    { authenticate: ({ header }) => header('authorization') },
  ));

function median(times: readonly number[]): number {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}
