/** Runs that move to another node while a request waits for them: the request is answered, and the other node continues the run. */
import * as assert from 'uvu/assert';
import { CELLS } from '../../../src/core/protocol/cell.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { CallableFunctions } from '../../../src/features/code/functions/code-functions.ts';
import { connect, SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { TestStore } from '../../harness/test-store.ts';
import { inTime, until } from '../../harness/wait.ts';
import { pass, pausedIn, resultIn, runModern, type Workshop, workshop } from './support.ts';

const test = suite('runs that move while a request waits');

const ADA = { auth: { principal: 'ada' } } as const;
const ALL_CELLS = new Set(Array.from({ length: CELLS }, (_, cell) => cell));
const SLEEPS = 'await t.write({ n: 1 }); await sleep(60000); return t.write({ n: 2 });';

/** Two servers of one store: the second continues what the first lets go of. */
function pair(): { readonly one: Workshop; readonly two: Workshop; readonly clock: SimulatedClock } {
  const inner = memoryStore();
  const clock = new SimulatedClock();
  const [one, two] = [0, 1].map(() => workshop({ store: new TestStore(inner) }, undefined, clock));
  if (!one || !two) throw new Error('expected two servers');
  return { one, two, clock };
}

for (const [how, flush] of [
  ['gives up its cells', true],
  ['has lost its cells', false],
] as const)
  test(`R-130: a request that waits for a run is answered when its node ${how}, and the other node continues the run`, async () => {
    const { one, two, clock } = pair();
    const client = await connect(one.server, ADA);
    const begun = runModern(client, { code: SLEEPS });
    await until(() => [...one.runs().working()].length === 1 && one.written.length === 1);
    await pass(clock, 20_000);
    const run = pausedIn(await begun);
    // The request that resumes a run asks nobody anything.
    const resumed = runModern(client, { resume: run });
    await until(() => [...one.runs().working()].length === 1);
    await one.runs().drop(ALL_CELLS, flush);
    const moved = await inTime(resumed, 'the response of a request whose run has moved');
    assert.is(pausedIn(moved), run);
    assert.match(textOf(moved), /another node continues this run\. Nothing has failed/);
    assert.is(one.runs().size, 0);
    const other = await connect(two.server, ADA);
    await pass(clock, 40_000);
    await until(() => two.written.length === 1);
    assert.is(resultIn(await runModern(other, { resume: run })), 'wrote 2');
    assert.equal([one.written, two.written], [[1], [2]]);
  });

test('the first request of a run is answered when the run moves, too', async () => {
  const { one, two, clock } = pair();
  const first = runModern(await connect(one.server, ADA), { code: SLEEPS });
  await until(() => one.written.length === 1);
  await pass(clock, 0);
  await one.runs().drop(ALL_CELLS, true);
  const run = pausedIn(await inTime(first, 'the response of a request whose run has moved'));
  const resumed = runModern(await connect(two.server, ADA), { resume: run });
  await pass(clock, 60_000);
  assert.is(pausedIn(await resumed), run);
  await until(() => two.written.length === 1);
  assert.is(resultIn(await runModern(await connect(two.server, ADA), { resume: run })), 'wrote 2');
});

test('a request that finds its run in the moment in which the run moves is answered, too', async () => {
  const { one, two, clock } = pair();
  const client = await connect(one.server, ADA);
  const begun = runModern(client, { code: SLEEPS });
  await until(() => one.written.length === 1);
  await pass(clock, 20_000);
  const run = pausedIn(await begun);
  const functions: CallableFunctions = {
    ...{ groups: [], find: () => undefined, near: () => [], declared: () => undefined, learn: () => {} },
  };
  one.server.tool('late', {}, (_: unknown, ctx) => {
    const resumed = one.runs().run({ resume: run }, ctx, functions);
    one.runs().drop(ALL_CELLS, false);
    return resumed;
  });
  const late = await inTime(client.modern('tools/call', { name: 'late' }), 'the response of a late request');
  assert.is(pausedIn(late), run);
  assert.is(two.written.length, 0);
});
