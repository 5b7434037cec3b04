/** Time that nobody can move: what waits and what expires goes by a clock that no jump of the wall clock reaches. */
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { createServer, ErrorCode, memoryStore } from '../../../src/index.ts';
import { connect, SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { errorResponse } from '../../harness/results.ts';

const test = suite('clock');
const HOUR = 3_600_000;

/** Runs `body` while the wall clock of this process is moved by so much. */
async function jumped(ms: number, body: () => Promise<void> | void): Promise<void> {
  const { now } = Date;
  Date.now = () => now() + ms;
  try {
    await body();
  } finally {
    Date.now = now;
  }
}

for (const [what, ms] of [
  ['an hour ahead', HOUR],
  ['an hour back', -HOUR],
  ['ten years ahead', 10 * 365 * 24 * HOUR],
  ['30 seconds back', -30_000],
] as const)
  test(`R-17: a wall clock that jumps ${what} moves neither dates nor timers`, async () => {
    const date = systemClock.date();
    const now = systemClock.now();
    await jumped(ms, async () => {
      assert.ok(Math.abs(systemClock.date() - date) < 1_000, 'the date has jumped');
      assert.ok(Math.abs(systemClock.now() - now) < 1_000, 'the time has jumped');
      const began = performance.now();
      await new Promise<void>((resolve) => {
        const timer = systemClock.hold();
        systemClock.after(30, () => {
          timer.cancel();
          resolve();
        });
      });
      const took = performance.now() - began;
      assert.ok(took >= 25, `a timer of 30 ms took ${took} ms`);
      assertFigure(took, 1_500, 'a timer of 30 ms while the clock jumps');
    });
  });

test('R-17: nothing in a store expires because the wall clock has jumped', async () => {
  const store = memoryStore();
  const expires = systemClock.date() + 10_000;
  const row = {
    id: 'handle/x/1',
    kind: 'handle',
    name: 'x',
    principal: 'p',
    status: 'live',
    created: 1,
    expires,
  } as const;
  await store.commit([{ type: 'actor', actor: row }]);
  await jumped(10 * HOUR, async () => {
    assert.is(await store.sweep(systemClock.date()), 0);
    assert.ok(await store.load(row.id));
  });
  assert.is(await store.sweep(expires), 1);
});

test('R-17: a deadline comes by the server’s clock, whatever the wall clock says meanwhile', async () => {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'jumps', version: '1.0.0', clock, limits: { timeoutMs: 1_000 } });
  server.tool('wait', {}, () => new Promise(() => {}));
  const client = await connect(server);
  await jumped(HOUR, async () => {
    const answer = errorResponse(client.call('wait'));
    let answered = false;
    void answer.then(() => {
      answered = true;
    });
    await clock.advance(900);
    assert.is(answered, false);
    await clock.advance(200);
    assert.is((await answer).code, ErrorCode.TimedOut);
  });
  await server.close();
});
