/** The restart policy: how often and how soon a crashed server restarts. */
import * as assert from 'uvu/assert';
import { GaveUp, Restarts } from '../../src/cli/supervisor/restarts.ts';
import { SimulatedClock, settled } from '../../src/testing/simulated-clock.ts';
import { suite } from '../harness/door.ts';

const test = suite('restarts');

/** Crashes, and says after how many milliseconds it may start again. */
async function crash(restarts: Restarts, clock: SimulatedClock): Promise<number> {
  const began = clock.now();
  let over = false;
  const waits = restarts.crashed('it died').finally(() => {
    over = true;
  });
  waits.catch(() => {});
  await settled();
  while (!over && clock.now() - began < 10_000) {
    await clock.advance(10);
    await settled();
  }
  await waits;
  return clock.now() - began;
}

test('three crashes within a minute lead to restarts with growing delays; the fourth is the end', async () => {
  const clock = new SimulatedClock();
  const said: string[] = [];
  const restarts = new Restarts({ clock, say: (line) => void said.push(line) });
  const waited = [];
  for (let time = 0; time < 3; time += 1) waited.push(await crash(restarts, clock));
  assert.equal(waited, [100, 200, 400]);
  assert.match(said[2] ?? '', 'it died: restarting (3 of 3 times within 60 seconds)');
  const error = await crash(restarts, clock).catch((thrown: unknown) => thrown);
  assert.instance(error, GaveUp);
  assert.match(
    String(error),
    'the server crashed 4 times within 60 seconds and will not be restarted. Last crash: it died',
  );
  assert.is(clock.timers, 0);
});

test('crashes that are further apart do not count', async () => {
  const clock = new SimulatedClock();
  const restarts = new Restarts({ clock, say: () => {} });
  for (let time = 0; time < 20; time += 1) {
    assert.is(await crash(restarts, clock), time % 2 === 0 ? 100 : 200);
    await clock.advance(time % 2 === 0 ? 1_000 : 60_000);
  }
});
