/** S-41 to S-44 and S-46 together: floods of messages as large as they may be, for everything that a server can keep, at a process with little memory. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import * as assert from 'uvu/assert';
import type { Amount, Flooded, Kind } from '../fixtures/supervision/flooder.ts';
import { compiled } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { PROOF } from '../harness/scale.ts';
import { Hosted } from '../workers/hosted.ts';

const test = suite('floods');
const FULL = PROOF;

/** Megabytes of heap, and how long each flood lasts, or how many messages it has: 240 MB, where the heap may have 185. */
const HEAP = FULL ? 512 : 128;
const FLOOD: Amount = FULL ? { ms: 60_000 } : { messages: 60, rejected: true };
const SHORT_FLOOD: Amount = { messages: 12, rejected: false };

const FLOODS: readonly Kind[] = [
  'client names',
  'capabilities of requests',
  'arguments of tasks',
  'results of tasks',
  'inputs of handles',
  'arguments of requests in flight',
  'arguments of requests that ask',
  'lists of objects',
];

/**
 * Calls a light tool again and again, from a process that does nothing else: the flooder's own work would delay the calls.
 *
 * @returns a function that ends it and returns how long each call took, in milliseconds, the shortest first
 */
async function watch(hosted: Hosted): Promise<() => Promise<readonly number[]>> {
  const child = fork(compiled('test/fixtures/supervision/bystander.ts'), [hosted.url], { execArgv: [] });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the bystander ended with code ${code}: ${hosted.err}`);
  });
  const report = async (): Promise<unknown> => (await Promise.race([once(child, 'message'), ended]))[0];
  await report();
  return async () => {
    const reported = report();
    child.send('stop');
    const times = await reported;
    if (!Array.isArray(times)) throw new Error(`expected a list of times, got ${typeof times}`);
    return times.map(Number).sort((left, right) => left - right);
  };
}

function at(times: readonly number[], share: number): number {
  return times[Math.floor(times.length * share)] ?? Number.NaN;
}

function isFlooded(report: unknown): report is Flooded {
  return typeof report === 'object' && report !== null && 'refused' in report;
}

interface Watched extends Flooded {
  readonly times: readonly number[];
}

/** Floods from a process of its own, too: the body of a message takes a process longer to send than the server to receive. */
async function watched(hosted: Hosted, kind: Kind, amount: Amount): Promise<Watched> {
  const stop = await watch(hosted);
  const args = [hosted.url, kind, JSON.stringify(amount)];
  const child = fork(compiled('test/fixtures/supervision/flooder.ts'), args, { execArgv: [] });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the flooder ended with code ${code}: ${hosted.err}`);
  });
  const [result] = await Promise.race([once(child, 'message'), ended]);
  if (!isFlooded(result)) throw new Error(`expected the result of a flood, got ${typeof result}`);
  return { ...result, times: await stop() };
}

for (const kind of FLOODS)
  test(`S-41, S-42, S-43, S-44, S-46: a flood of ${kind} does not exhaust the heap, and others are served meanwhile`, async () => {
    const hosted = await Hosted.open({ script: 'flooded.ts', node: [`--max-old-space-size=${HEAP}`] });
    // The same machine at the same moment, without the flood: other processes delay this bystander as much.
    const idle = await Hosted.open({ script: 'flooded.ts' });
    try {
      const stop = await watch(idle);
      let { sent, answered, refused, times } = await watched(hosted, kind, FLOOD);
      const calm = await stop();
      process.stdout.write(
        `${sent} sent, ${answered} answered, ${refused} refused; p99 of the bystander ${at(times, 0.99).toFixed(0)} ms, of one without a flood ${at(calm, 0.99).toFixed(0)} ms; load ${loadavg()[0]?.toFixed(1)}\n`,
      );
      assert.equal(hosted.endings, [], hosted.err);
      assert.ok(refused > 0, 'expected refusals that name the limit');
      assert.match(await hosted.call('light'), /here/);
      if (FULL) {
        const waited = at(times, 0.99) - at(calm, 0.99);
        return assert.ok(waited < 100, `the flood made the bystander wait ${waited} ms`);
      }
      // The best of a few rounds: this machine does other things, too.
      let ratio = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 3 && ratio > 5; round += 1) {
        if (round > 0) ({ times } = await watched(hosted, kind, SHORT_FLOOD));
        // What a bystander waits for then, it waits for on this machine, whatever the server keeps.
        const rejected = await watched(hosted, 'arguments of an unknown tool', SHORT_FLOOD);
        ratio = Math.min(ratio, at(times, 0.5) / at(rejected.times, 0.5));
      }
      assert.ok(ratio <= 5, `the bystander waited ${ratio} times as long as in a flood that is rejected at once`);
      assert.equal(hosted.endings, [], hosted.err);
    } finally {
      await Promise.all([hosted.stop(), idle.stop()]);
    }
  });
