/** Questions that nobody ever answers leave no more than the few that may wait (`npm run test:soak` asks 100,000). */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { abandonQuestions, canWeigh } from './abandoning.ts';

const test = suite('abandoned questions');
const QUESTIONS = atScale({ quick: 1_000, full: 8_000, proof: 20_000 });
const WAIT = QUESTIONS / 8;
/** What the process itself takes in the meantime, such as compiled code. A question that stays takes several KB. */
const NOISE_BYTES = 2_000_000;

if (!canWeigh) test.skip('the heap', 'this Node does not let us collect garbage');
else
  test(`${QUESTIONS} abandoned questions leave memory flat`, async () => {
    const { asked, waiting, grown, told } = await abandonQuestions(QUESTIONS, WAIT);
    process.stdout.write(`${asked} asked, ${waiting} wait, heap ${(grown / 1_024).toFixed(0)} KiB more\n`);
    assert.is(asked, QUESTIONS);
    assert.is(waiting, WAIT);
    // Each ended question leaves its id, which must not be reused: 100 bytes each, 100,000 of them at most.
    assert.ok(grown < 200 * QUESTIONS + NOISE_BYTES, `the heap grew by ${grown} bytes`);
    assert.equal(told, []);
  });
