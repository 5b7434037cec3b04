/** What the answer of a callback means, and when the next attempt follows. */
import * as assert from 'uvu/assert';
import {
  ATTEMPTS_MS,
  delayAfterFailure,
  verdictOf,
} from '../../../../src/features/events/delivery/delivery-attempts.ts';
import { suite } from '../../../harness/door.ts';

const test = suite('attempts of webhooks');

test('each status is accepted, declined, rejected, or a sign that the endpoint is down', () => {
  const table: readonly (readonly [readonly number[], string])[] = [
    [[200, 201, 204, 299], 'accepted'],
    [[410, 413], 'declined http_4xx'],
    [[300, 301, 302, 307, 308, 400, 401, 403, 404, 422], 'rejected http_4xx'],
    [[408, 425, 429], 'down http_4xx'],
    [[500, 502, 503, 599, 777, 199], 'down http_5xx'],
  ];
  for (const [statuses, expected] of table)
    for (const status of statuses) {
      const verdict = verdictOf({ status, retryAfter: undefined }, 0);
      assert.is('category' in verdict ? `${verdict.is} ${verdict.category}` : verdict.is, expected, String(status));
    }
});

test('Retry-After of 429 and 503 is obeyed up to 15 minutes, and what it cannot mean is ignored', () => {
  const now = Date.UTC(2026, 0, 1);
  const table: readonly (readonly [number, string, number | undefined])[] = [
    [429, '60', 60_000],
    [503, '0', 0],
    [503, '1000000000', 900_000],
    [429, '999999999999999', 900_000],
    [429, '9999999999999999999999', undefined],
    [429, '1e9', undefined],
    [429, '-5', 0],
    [429, 'soon', undefined],
    [503, new Date(now + 120_000).toUTCString(), 120_000],
    [503, new Date(now - 120_000).toUTCString(), 0],
    [503, new Date(now + 86_400_000).toUTCString(), 900_000],
    [500, '60', undefined],
    [425, '60', undefined],
  ];
  for (const [status, retryAfter, expected] of table) {
    const verdict = verdictOf({ status, retryAfter }, now);
    assert.is(verdict.is === 'down' ? verdict.retryAfterMs : 'not down', expected, `${status} ${retryAfter}`);
  }
});

test('the attempts are after 1, 5, 30, 120 and 300 s with a fifth of jitter, then there are none', () => {
  for (const [index, ms] of ATTEMPTS_MS.entries()) {
    const delays = Array.from({ length: 50 }, () => delayAfterFailure(index + 1) ?? -1);
    assert.ok(delays.every((delay) => delay >= ms * 0.8 && delay <= ms * 1.2));
    assert.ok(new Set(delays).size > 5);
  }
  assert.is(delayAfterFailure(ATTEMPTS_MS.length + 1), undefined);
  assert.is(delayAfterFailure(1, 900_000), 900_000);
});
