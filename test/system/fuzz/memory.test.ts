/** What hostile input leaves behind in memory: nothing that grows with it. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { random, times } from '../../harness/scale.ts';
import { input } from './hostile.ts';
import { openTarget, type Target } from './target.ts';

const INPUTS = random(10_000);
const CHUNK = 500;
const CLIENTS = times(1_000, { quick: 150 });
/** Before the heap is measured. */
const WARM_INPUTS = times(5_000, { quick: 2_000 });
const WARM_CLIENTS = times(500, { quick: 150 });
const seed = Number(process.env.TROUPE_FUZZ_SEED ?? 20_261_121);
process.stdout.write(`fuzz seed ${seed} (TROUPE_FUZZ_SEED chooses another)\n`);

const test = suite('memory under hostile input');

/** Collects garbage where this Node lets us; without that the heap cannot be told from what is merely not collected yet. */
function collector(): (() => void) | undefined {
  setFlagsFromString('--expose-gc');
  const gc: unknown = runInNewContext('gc');
  return typeof gc === 'function' ? () => void Reflect.apply(gc, undefined, []) : undefined;
}

const heap = (collect: () => void): number => {
  for (let round = 0; round < 3; round += 1) collect();
  return process.memoryUsage().heapUsed;
};

/** A connection of a client that goes on and on; its session, if it opens one, stays. */
async function batter(target: Target, send: (text: string) => void, inputs: number, from: number): Promise<void> {
  for (let done = 0; done < inputs; done += CHUNK) {
    for (const { text, pause } of fc.sample(input, { seed: seed + from + done, numRuns: CHUNK })) {
      send(text);
      if (pause) await settled();
    }
    target.release();
    await settled();
  }
}

const collect = collector();
if (!collect) test.skip('the heap', 'this Node does not let us collect garbage');
else
  test(`${INPUTS} hostile inputs on one connection, and ${CLIENTS} connections that come and go, leave the heap as it was`, async () => {
    const target = await openTarget();
    const peer = target.connect();
    peer.onText(() => {});
    const send = (text: string): void => peer.send(text);
    const comeAndGo = async (clients: number): Promise<void> => {
      const inputs = fc.sample(input, { seed, numRuns: 3 * clients });
      for (let client = 0; client < clients; client += 1) {
        const other = target.connect();
        for (const { text } of inputs.slice(3 * client, 3 * client + 3)) other.send(text);
        if (client % 2 === 0) other.vanish();
        else other.close();
        target.release();
        await other.closed;
      }
    };
    // What is compiled and cached meanwhile does not depend on the number of inputs that follow.
    await batter(target, send, WARM_INPUTS, 0);
    await comeAndGo(WARM_CLIENTS);
    const before = heap(collect);
    const rssBefore = process.memoryUsage().rss;
    await batter(target, send, INPUTS, WARM_INPUTS);
    await comeAndGo(CLIENTS);
    const grown = heap(collect) - before;
    const rss = process.memoryUsage().rss - rssBefore;
    process.stdout.write(
      `heap ${(grown / 1_024).toFixed(0)} KiB, resident ${(rss / 1_024).toFixed(0)} KiB more after ${INPUTS} inputs\n`,
    );
    assert.ok(grown < 900_000, `the heap grew by ${grown} bytes`);
    assert.ok(rss < 64_000_000, `resident memory grew by ${rss} bytes`);
    peer.close();
    await target.server.close();
  });
