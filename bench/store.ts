/** The store benchmark: events made durable in a file on this machine's disk, flat out and at a steady pace; and calls in a file beside calls in PostgreSQL. Fails where the goals are missed; `--rounds N`, `--seconds N`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/core/kernel/clock.ts';
import type { Store } from '../src/core/store/store.ts';
import { postgres } from '../src/features/postgres/postgres.ts';
import { sqlite } from '../src/features/sqlite/sqlite.ts';
import { programs, startPostgres } from '../test/harness/postgres.ts';
import { median } from './measured.ts';
import { type Offered, offerTo } from './offering.ts';

const OFFERED = 20_000;
/** Events a second; milliseconds. */
const GOALS = { perSecond: 20_000, ackP99: 15, loop: 5, postgres: 1.2 };
/** Calls that are on their way together. */
const IN_FLIGHT = 64;

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

/** A durable call: one event and its reply, in one batch. @returns calls a second, and microseconds of this process for each */
async function calls(store: Store, name: string, ms: number): Promise<readonly [perSecond: number, micros: number]> {
  const [started, used] = [performance.now(), process.cpuUsage()];
  let count = 0;
  const lane = async (_: unknown, index: number): Promise<void> => {
    const actor = `${name}${index}`;
    for (let seq = 1; performance.now() - started < ms; seq += 1, count += 1)
      await store.commit([
        { type: 'event', actor, stream: 's', seq, kind: 'said', data: 'x'.repeat(300) },
        { type: 'reply', actor, request: String(seq), data: 'x'.repeat(300), expires: 9e12 },
      ]);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  const { user, system } = process.cpuUsage(used);
  return [(count / (performance.now() - started)) * 1000, (user + system) / count];
}

/** Calls in a file and in PostgreSQL, in turns. @returns the ratio of the medians; undefined where there is no PostgreSQL */
async function besidePostgres(): Promise<number | undefined> {
  if (programs === undefined) return void out('\nno PostgreSQL: its calls are not measured');
  const server = await startPostgres();
  const host = { clock: systemClock, log: (level: string, message: string) => out(`${level}: ${message}`) };
  const database = postgres(server.url);
  await database.open(host);
  const file = await opened('beside.db');
  const found: { readonly file: number; readonly database: number }[] = [];
  out(
    `\n| round, ${IN_FLIGHT} calls in flight | sqlite, calls/s | µs each | postgres, calls/s | µs each |\n|---|---|---|---|---|`,
  );
  for (let round = 0; round <= rounds; round += 1) {
    const [inFile, fileMicros] = await calls(file, `${round}-`, seconds * 500);
    const [inDatabase, databaseMicros] = await calls(database, `${round}-`, seconds * 500);
    // The first round makes the code warm.
    if (round === 0) continue;
    found.push({ file: inFile, database: inDatabase });
    out(`| ${round} | ${[inFile, fileMicros, inDatabase, databaseMicros].map(whole).join(' | ')} |`);
  }
  await Promise.all([file.close(), database.close()]);
  await server.stop();
  return median(found.map(({ database }) => database)) / median(found.map(({ file }) => file));
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
const beside = await besidePostgres();
if (beside !== undefined) out(`postgres: ${beside.toFixed(2)} × sqlite`);
rmSync(folder, { recursive: true, force: true });

const ack = median(steady.map(({ ackP99 }) => ackP99));
const loop = median(steady.map(({ loops }) => median(loops)));
const faults = [
  median(flat) < GOALS.perSecond ? `${whole(median(flat))} events/s, expected at least ${whole(GOALS.perSecond)}` : '',
  ack > GOALS.ackP99 ? `an acknowledgement p99 of ${ack.toFixed(1)} ms, expected at most ${GOALS.ackP99}` : '',
  loop > GOALS.loop ? `a main loop p99 of ${loop.toFixed(1)} ms, expected at most ${GOALS.loop}` : '',
  beside !== undefined && beside < GOALS.postgres
    ? `${beside.toFixed(2)} × the calls of sqlite in PostgreSQL, expected at least ${GOALS.postgres}`
    : '',
].filter((fault) => fault !== '');
for (const fault of faults) out(`\nbelow the goal: ${fault}`);
if (faults.length > 0) process.exitCode = 1;
