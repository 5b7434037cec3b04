/** A short soak, so that the long one (`npm run test:soak`) does not rot: the same calls, and fewer. */
import * as assert from 'uvu/assert';
import { type Sample, slope, soak } from '../../../bench/soaking.ts';
import { suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';

const CALLS = atScale({ quick: 1_500, full: 20_000, proof: 20_000 });
const test = suite('a short soak');

test(`${CALLS} calls of both eras, some failing, reporting or cancelled, are each answered right, and leave nothing behind`, async () => {
  const heard: Sample[] = [];
  const { samples, cancelled, code } = await soak({
    calls: CALLS,
    every: CALLS / 10,
    weighed: (sample) => void heard.push(sample),
  });
  assert.is(code, 0);
  assert.is(cancelled, Math.floor(CALLS / 41));
  assert.equal(
    samples.map(({ calls }) => calls),
    Array.from({ length: 10 }, (_, n) => (n + 1) * (CALLS / 10)),
  );
  assert.equal(heard, samples);
  const [early, late] = [samples[2]?.resident, samples.at(-1)?.resident];
  if (early === undefined || late === undefined)
    return void process.stdout.write('resident memory is not known here\n');
  assert.ok(late - early < 25_000_000, `grew from ${early} to ${late} bytes`);
});

test('the slope is that of the second half, for each 100,000 calls', () => {
  const samples = (resident: (calls: number) => number | undefined): Sample[] =>
    Array.from({ length: 20 }, (_, n) => (n + 1) * 50_000).map((calls) => ({
      calls,
      seconds: 1,
      resident: resident(calls),
    }));
  const near = (got: number | undefined, wanted: number): void =>
    assert.ok(got !== undefined && Math.abs(got - wanted) < 1, `${got}, not ${wanted}`);
  near(slope(samples((calls) => 5_000_000 + 20 * calls)), 2_000_000);
  near(slope(samples((calls) => (calls < 500_000 ? 100 * calls : 60_000_000))), 0);
  assert.is(slope(samples(() => undefined)), undefined);
});
