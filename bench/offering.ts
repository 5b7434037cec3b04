/** Offers a store events at a steady pace, whatever it makes of them, and measures how late it is, and the loop. */
import { existsSync, readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Store } from '../src/core/store/store.ts';

export interface Offered {
  readonly offered: number;
  readonly refused: number;
  /** How late the loop was, p99 in milliseconds, in each fifth of the time in which it came round at all. */
  readonly loops: readonly number[];
  /** Of the time, what this thread was at work without a processor and without waiting for one: in a call that blocks. Linux only. */
  readonly blocked: number;
  /** Of the time, what it waited for a processor that others had. */
  readonly starved: number;
  /** Milliseconds until an event was acknowledged. */
  readonly ackP50: number;
  readonly ackP99: number;
  /** Acknowledged, for each second. */
  readonly perSecond: number;
}

const ACTORS = 100;
const PARTS = 5;
const DATA = 'x'.repeat(300);

/** Milliseconds that this thread has had a processor, and has waited for one. */
function scheduled(): readonly [number, number] {
  const file = `/proc/self/task/${process.pid}/schedstat`;
  const [ran = 0, waited = 0] = existsSync(file) ? readFileSync(file, 'utf8').split(' ').map(Number) : [];
  return [ran / 1e6, waited / 1e6];
}

export async function offerTo(store: Store, perSecond: number, ms: number): Promise<Offered> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const loops: number[] = [];
  const took: number[] = [];
  const on: Promise<void>[] = [];
  let [offered, refused] = [0, 0];
  const [ran, waited] = scheduled();
  const utilization = performance.eventLoopUtilization();
  const started = performance.now();
  const gone = (): number => performance.now() - started;
  const part = (): void => {
    if (delay.count > 0) loops.push(delay.percentile(99) / 1e6);
    delay.reset();
  };
  delay.enable();
  for (let parts = 1; gone() < ms; ) {
    if (gone() > (parts * ms) / PARTS) {
      part();
      parts += 1;
    }
    for (const due = Math.floor((gone() / 1000) * perSecond); offered < due; offered += 1) {
      const at = performance.now();
      const seq = Math.floor(offered / ACTORS) + 1;
      const kept = store.commit([
        { type: 'event', actor: `a${offered % ACTORS}`, stream: 's', seq, kind: 'said', data: DATA },
      ]);
      on.push(
        kept.then(
          () => void took.push(performance.now() - at),
          () => {
            refused += 1;
          },
        ),
      );
    }
    await sleep(1);
  }
  part();
  delay.disable();
  const { active } = performance.eventLoopUtilization(utilization);
  const [had, lacked] = scheduled();
  const blocked = Math.max(0, active - (had - ran) - (lacked - waited)) / gone();
  const starved = (lacked - waited) / gone();
  await Promise.all(on);
  const all = gone();
  took.sort((a, b) => a - b);
  const at = (share: number): number => took[Math.floor(took.length * share)] ?? Number.NaN;
  const perSecondDone = (took.length / all) * 1000;
  return { offered, refused, loops, blocked, starved, ackP50: at(0.5), ackP99: at(0.99), perSecond: perSecondDone };
}
