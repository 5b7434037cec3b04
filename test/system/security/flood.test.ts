/** S-41 to S-44 and S-46 together: floods of messages as large as they may be, for everything that a server can keep, at a process with little memory. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import * as assert from 'uvu/assert';
import { call } from '../../core/http/modern.ts';
import { Hosted } from '../../features/workers/hosted.ts';
import type { Amount, Flooded, Kind, Order } from '../../fixtures/supervision/flooder.ts';
import { startable } from '../../harness/compiled.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { atScale, PROOF } from '../../harness/scale.ts';

fullOnly('floods a server in each way; the quick test is the one of overload');

const test = suite('floods');
const FULL = PROOF;

/** Megabytes of heap, and how long each flood lasts, or how many messages it has: 240 MB, where the heap may have 185. */
const HEAP = FULL ? 512 : 128;
const FLOOD: Amount = FULL ? { ms: 60_000 } : { messages: 60, rejected: true };
/** Megabytes of a large message. */
const LARGE_MB = 4;
const SHORT_FLOOD: Amount = { messages: 12, rejected: false };

const KINDS: readonly Kind[] = [
  'client names',
  'capabilities of requests',
  'arguments of tasks',
  'results of tasks',
  'inputs of handles',
  'arguments of requests in flight',
  'arguments of requests that ask',
  'lists of objects',
];
/** Quick: one of what a session keeps, one of what a store keeps, one of what a call keeps. */
const QUICK: readonly Kind[] = ['client names', 'results of tasks', 'arguments of requests in flight'];
const FLOODS = atScale({ quick: QUICK, full: KINDS, proof: KINDS });

/** Sends the floods: the body of a message takes a process longer to send than the server to receive. */
let flooder: { readonly child: ChildProcess; readonly ended: Promise<never> } | undefined;
test.after(() => void flooder?.child.kill());

function openFlooder(): NonNullable<typeof flooder> {
  const child = fork(startable('test/fixtures/supervision/flooder.ts'), { execArgv: [] });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the flooder ended with code ${code}`);
  });
  ended.catch(() => {});
  return { child, ended };
}

/**
 * Calls a light tool again and again. This process does nothing else meanwhile: the flooder's work would delay the calls.
 *
 * @returns a function that ends it and returns how long each call took, in milliseconds, the shortest first
 */
async function watch(hosted: Hosted): Promise<() => Promise<readonly number[]>> {
  const times: number[] = [];
  let stopped = false;
  const light = async (): Promise<void> => {
    const answer = await (await call(hosted.url, 'light')).text();
    assert.match(answer, 'here');
  };
  // The first call opens the connection and is not measured.
  await light();
  const loop = async (): Promise<void> => {
    while (!stopped) {
      const began = performance.now();
      await light();
      times.push(performance.now() - began);
    }
  };
  const ended = loop().then(
    () => undefined,
    (error: unknown) => error,
  );
  return async () => {
    stopped = true;
    const error = await ended;
    if (error !== undefined) throw new Error(`the bystander failed: ${hosted.err}`, { cause: error });
    return times.sort((left, right) => left - right);
  };
}

/** Milliseconds of computing, and of the pauses between them. */
const SPIN_MS = 10;
const PAUSE_MS = 500;

/**
 * Computes now and then. @returns a function that ends it and returns how many times longer than its processor time computing
 * takes, because other programs have the processors. A flooded server is stretched as much.
 */
function stretching(): () => number {
  let [wall, used] = [0, 0];
  const timer = setInterval(() => {
    const [began, before] = [performance.now(), process.cpuUsage()];
    let spent = 0;
    while (spent < SPIN_MS) {
      const { user, system } = process.cpuUsage(before);
      spent = (user + system) / 1_000;
    }
    wall += performance.now() - began;
    used += spent;
  }, PAUSE_MS);
  return () => {
    clearInterval(timer);
    return used === 0 ? 1 : Math.max(1, wall / used);
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

async function watched(hosted: Hosted, kind: Kind, amount: Amount): Promise<Watched> {
  const stop = await watch(hosted);
  flooder ??= openFlooder();
  const { child, ended } = flooder;
  const flooded = Promise.race([once(child, 'message'), ended]);
  const order: Order = { url: hosted.url, kind, amount };
  child.send(order);
  const [result] = await flooded;
  if (!isFlooded(result)) throw new Error(`expected the result of a flood, got ${typeof result}`);
  return { ...result, times: await stop() };
}

for (const kind of FLOODS)
  test(`S-41, S-42, S-43, S-44, S-46: a flood of ${kind} does not exhaust the heap, and others are served meanwhile`, async () => {
    const hosted = await Hosted.open({ script: 'flooded.ts', node: [`--max-old-space-size=${HEAP}`] });
    // The same machine at the same moment, without the flood: other processes delay this bystander as much.
    const idle = FULL ? await Hosted.open({ script: 'flooded.ts' }) : undefined;
    try {
      const stop = idle && (await watch(idle));
      const stretched = FULL ? stretching() : undefined;
      let { sent, answered, refused, times } = await watched(hosted, kind, FLOOD);
      const factor = stretched?.() ?? 1;
      const calm = await stop?.();
      const without = calm
        ? `, of one without a flood ${at(calm, 0.99).toFixed(0)} ms; computing takes ${factor.toFixed(1)} times its processor time`
        : '';
      process.stdout.write(
        `${sent} sent, ${answered} answered, ${refused} refused; p99 of the bystander ${at(times, 0.99).toFixed(0)} ms${without}; load ${loadavg()[0]?.toFixed(1)}\n`,
      );
      assert.equal(hosted.endings, [], hosted.err);
      // Suspended requests give way to newer ones. Those that were accepted would fill the heap more than once.
      const evicts = FULL && kind === 'arguments of requests that ask';
      if (evicts) assert.ok(answered * LARGE_MB > HEAP, `${answered} answers do not fill the heap`);
      else assert.ok(refused > 0, 'expected refusals that name the limit');
      assert.match(await hosted.call('light'), /here/);
      if (calm) {
        const waited = (at(times, 0.99) - at(calm, 0.99)) / factor;
        return assert.ok(waited < 100, `the flood made the bystander wait for ${waited} ms of work`);
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
      await Promise.all([hosted.stop(), idle?.stop()]);
    }
  });
