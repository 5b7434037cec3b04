/** The journal of one request's steps, at the end of the request, and at the end of a process that leaves it to another. */
import * as assert from 'uvu/assert';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { RequestRecord } from '../../../src/features/asking/request-record.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the journal of steps');

async function make() {
  const now = new SimulatedClock().date();
  const store = memoryStore();
  const actor = 'question/one';
  const journal = new RequestRecord({
    store,
    limits: { maxSteps: 10, maxStepsLength: 1_000 },
    actor,
    principal: 'ada',
    row: () => ({
      id: actor,
      kind: 'question',
      name: '',
      principal: 'ada',
      status: 'open',
      created: now,
      expires: now + 60_000,
    }),
    call: () => undefined,
    fresh: true,
  });
  return { journal, steps: () => RequestRecord.steps(store, actor, 10) };
}

async function refused(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return String(error);
  }
  return 'it was not refused';
}

test('R-01: a step of a call that is left to the next process neither begins nor is relied on', async () => {
  const { journal, steps } = await make();
  await journal.record('begin', [1]);
  journal.end(true);
  assert.match(await refused(journal.record('charge', [2])), /could not be persisted: this server is stopping/);
  assert.match(await refused(journal.before('ship')), /was not run: this server is stopping/);
  assert.equal({ ...(await steps()) }, { begin: [1] });
});

test('a handler that outlives its request continues, and nothing more is recorded of it', async () => {
  const { journal, steps } = await make();
  await journal.record('begin', [1]);
  journal.end();
  assert.is(await journal.before('tidy up'), undefined);
  await journal.record('tidy up', []);
  assert.equal({ ...(await steps()) }, { begin: [1] });
});
