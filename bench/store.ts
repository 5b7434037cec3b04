/** The store benchmark: events made durable in a file on this machine's disk, flat out and at a steady pace. Fails where the goals are missed; `--rounds N`, `--seconds N`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/clock.ts';
import { sqlite } from '../src/store/sqlite/sqlite.ts';
import type { Store } from '../src/store/store.ts';
import { median } from './measured.ts';
import { type Offered, offerTo } from './offering.ts';

const OFFERED = 20_000;
/** Events a second; milliseconds. */
const GOALS = { perSecond: 20_000, ackP99: 15, loop: 5 };

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '5' } },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
const out = (line: string): void => void process.stdout.write(`${line}\n`);
const whole = (value: number): string => Math.round(value).toLocaleString('en');

const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-store-'));

async function opened(name: string): Promise<Store> {
  const store = sqlite(join(folder, name));
  await store.open({ clock: systemClock, log: (level, message) => out(`${level}: ${message}`) });
  return store;
}

/** As many as it takes, in lots of 500 that are on their way together. */
async function flatOut(store: Store, name: string, ms: number): Promise<number> {
  const started = performance.now();
  let count = 0;
  const lane = async (): Promise<void> => {
    while (performance.now() - started < ms) {
      const lot: Promise<void>[] = [];
      for (let n = 0; n < 500; n += 1, count += 1) {
        const [actor, seq] = [`${name}${count % 100}`, Math.floor(count / 100) + 1];
        lot.push(store.commit([{ type: 'event', actor, stream: 's', seq, kind: 'said', data: 'x'.repeat(300) }]));
      }
      await Promise.all(lot);
    }
  };
  await Promise.all([lane(), lane(), lane(), lane()]);
  return (count / (performance.now() - started)) * 1000;
}

const flat: number[] = [];
const steady: Offered[] = [];
out(`a store in a file, events of 300 bytes for 100 actors, node ${process.version}`);
out(
  '\n| round | flat out, events/s | acknowledged of 20,000/s | ack p50 ms | ack p99 ms | loop p99 ms | waited for a processor |',
);
out('|---|---|---|---|---|---|---|');
for (let round = 1; round <= rounds; round += 1) {
  const store = await opened(`${round}.db`);
  // The first second makes the code warm.
  await flatOut(store, 'warm', 1_000);
  const most = await flatOut(store, 'flat', seconds * 1_000);
  const offered = await offerTo(store, OFFERED, seconds * 1_000);
  await store.close();
  flat.push(most);
  steady.push(offered);
  const { perSecond, ackP50, ackP99, loops, starved } = offered;
  const row = [ackP50, ackP99, median(loops)].map((ms) => ms.toFixed(1));
  out(`| ${round} | ${whole(most)} | ${whole(perSecond)} | ${row.join(' | ')} | ${Math.round(starved * 100)} % |`);
}
rmSync(folder, { recursive: true, force: true });

const ack = median(steady.map(({ ackP99 }) => ackP99));
const loop = median(steady.map(({ loops }) => median(loops)));
const faults = [
  median(flat) < GOALS.perSecond ? `${whole(median(flat))} events/s, expected at least ${whole(GOALS.perSecond)}` : '',
  ack > GOALS.ackP99 ? `an acknowledgement p99 of ${ack.toFixed(1)} ms, expected at most ${GOALS.ackP99}` : '',
  loop > GOALS.loop ? `a main loop p99 of ${loop.toFixed(1)} ms, expected at most ${GOALS.loop}` : '',
].filter((fault) => fault !== '');
for (const fault of faults) out(`\nbelow the goal: ${fault}`);
if (faults.length > 0) process.exitCode = 1;
