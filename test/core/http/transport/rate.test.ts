/** The token bucket: a burst at once, then the rate, and waiting as long as it says is enough. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { TokenBucket } from '../../../../src/core/kernel/token-bucket.ts';
import { suite } from '../../../harness/door.ts';
import { random } from '../../../harness/scale.ts';

const test = suite('token bucket');

test('a burst is let in at once, the next one waits for a token', () => {
  const bucket = new TokenBucket(10, 3, 1_000);
  assert.equal(
    [1, 2, 3, 4, 5].map(() => bucket.take(1_000)),
    [0, 0, 0, 100, 100],
  );
  assert.is(bucket.take(1_040), 60);
  assert.is(bucket.take(1_099.5), 1);
  assert.is(bucket.take(1_100), 0);
  assert.is(bucket.take(1_100), 100);
});

test('it holds no more than a burst, however long no request came', () => {
  const bucket = new TokenBucket(1, 2, 0);
  assert.equal(
    [1, 2, 3].map(() => bucket.take(1e12)),
    [0, 0, 1_000],
  );
});

test('being refused costs nothing', () => {
  const bucket = new TokenBucket(1, 1, 0);
  bucket.take(0);
  for (let now = 0; now < 1_000; now += 1) assert.is(bucket.take(now), 1_000 - now);
  assert.is(bucket.take(1_000), 0);
});

test('a rate below one a second is kept', () => {
  const bucket = new TokenBucket(0.1, 1, 0);
  assert.equal([bucket.take(0), bucket.take(0), bucket.take(9_999), bucket.take(10_000)], [0, 10_000, 1, 0]);
});

test('a time that goes back gains nothing', () => {
  const bucket = new TokenBucket(1, 1, 5_000);
  assert.is(bucket.take(5_000), 0);
  for (const now of [0, 4_000, 5_000, 0, 5_000]) assert.is(bucket.take(now), 1_000);
  assert.is(bucket.take(6_000), 0);
});

const rate = fc.double({ min: 0.01, max: 100_000, noNaN: true });
const start = fc.double({ min: 0, max: 1e9, noNaN: true });

test('a client that waits as long as it was asked to is let in', () => {
  fc.assert(
    fc.property(
      rate,
      fc.integer({ min: 1, max: 5 }),
      start,
      fc.array(fc.double({ min: 0, max: 50, noNaN: true })),
      (perSecond, burst, from, gaps) => {
        const bucket = new TokenBucket(perSecond, burst, from);
        let now = from;
        for (const gap of gaps) {
          now += gap;
          const wait = bucket.take(now);
          if (wait === 0) continue;
          assert.ok(Number.isInteger(wait) && wait >= 1);
          now += wait;
          assert.is(bucket.take(now), 0);
        }
      },
    ),
    { numRuns: random(5_000) },
  );
});

// A burst of one would overflow between two takes.
test('no more are let in than the burst and the rate allow, and no fewer are for long', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1_000 }),
      fc.integer({ min: 2, max: 50 }),
      start,
      (perSecond, burst, from) => {
        const bucket = new TokenBucket(perSecond, burst, from);
        let taken = 0;
        for (let ms = 0; ms <= 2_000; ms += 0.5) if (bucket.take(from + ms) === 0) taken += 1;
        const due = burst + perSecond * 2;
        assert.ok(taken <= due && taken >= due - 1, `${taken} of ${due}`);
      },
    ),
    { numRuns: random(200) },
  );
});

test('numbers out of bounds are refused by name', () => {
  for (const wrong of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => new TokenBucket(wrong, 1, 0), /^rate\.perSecond: expected a number above 0/);
  for (const wrong of [0, 0.9, -1, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => new TokenBucket(1, wrong, 0), /^rate\.burst: expected a number of at least 1/);
});
