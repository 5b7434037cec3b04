/** S-21: a client that sends ten times what its rate allows gets just that rate, and nobody waits longer for it. */
import * as assert from 'uvu/assert';
import { call } from '../../core/http/modern.ts';
import { serving } from '../../core/http/session.ts';
import type { Stage } from '../../core/http/support.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';

const test = suite('overload');

const PER_SECOND = 100;
const STEP_MS = 100;
const STEPS = times(30, { quick: 10 });
const OFFERED = (10 * PER_SECOND * STEP_MS) / 1_000;
const authenticate = ({ header }: { header(name: string): string | undefined }): string | undefined =>
  header('authorization');

/** One call. @returns its status, and how long its answer took in ms */
async function ask(stage: Stage, authorization: string): Promise<{ status: number; ms: number }> {
  const started = performance.now();
  const answer = await call(stage.url, 'echo', { text: 'x' }, { headers: { authorization } });
  await answer.text();
  return { status: answer.status, ms: performance.now() - started };
}

function p99(times: readonly number[]): number {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN;
}

/** Offers so many calls at once in each step. @returns how long those took that were let in, in ms, and how many were not */
async function offer(stage: Stage, steps: number, each: number): Promise<{ times: number[]; refused: number }> {
  const times: number[] = [];
  let refused = 0;
  for (let step = 0; step < steps; step += 1) {
    for (const { status, ms } of await Promise.all(Array.from({ length: each }, () => ask(stage, 'ann')))) {
      if (status === 200) times.push(ms);
      else refused += 1;
      assert.ok(status === 200 || status === 429, String(status));
    }
    await stage.clock.advance(STEP_MS);
  }
  return { times, refused };
}

test('S-21: at ten times the rate, what is let in is at least 80 % of the rate and never more than it', () =>
  serving(
    async (stage) => {
      const burst = PER_SECOND / 10;
      const { times, refused } = await offer(stage, STEPS, OFFERED);
      const allowed = (PER_SECOND * STEPS * STEP_MS) / 1_000;
      assert.ok(times.length >= 0.8 * allowed && times.length <= allowed + burst, `${times.length} of ${allowed}`);
      assert.is(times.length + refused, STEPS * OFFERED);
    },
    { authenticate, rate: { perSecond: PER_SECOND, burst: PER_SECOND / 10 } },
  ));

test.full(
  'S-21: the 99th percentile of what is let in at ten times the rate is at most twice that of as many calls let in',
  () =>
    serving(
      (free) =>
        serving(
          async (limited) => {
            // The best of a few rounds: this machine does other things, too.
            let ratio = Number.POSITIVE_INFINITY;
            for (let round = 0; round < 4 && ratio > 2; round += 1) {
              const { times: all } = await offer(free, STEPS / 2, OFFERED);
              const { times: some } = await offer(limited, STEPS / 2, OFFERED);
              ratio = Math.min(ratio, p99(some) / p99(all));
            }
            assert.ok(ratio <= 2, String(ratio));
          },
          { authenticate, rate: { perSecond: PER_SECOND, burst: PER_SECOND / 10 } },
        ),
      { authenticate },
    ),
);

test('S-21: a client within its rate is never rejected, whatever the others do', () =>
  serving(
    async (stage) => {
      for (let step = 0; step < STEPS; step += 1) {
        const [{ status }] = await Promise.all([
          ask(stage, 'bob'),
          ...Array.from({ length: OFFERED }, () => ask(stage, 'ann')),
        ]);
        assert.is(status, 200);
        await stage.clock.advance(STEP_MS);
      }
    },
    { authenticate, rate: { perSecond: PER_SECOND, burst: PER_SECOND / 10 } },
  ));
