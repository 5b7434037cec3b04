/** A program that writes to a store for the tests: it is killed, its disk is slow, full, or fails. `writer.ts MODE FOLDER …`. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { offerTo } from '../../../bench/offering.ts';
import { StoreError } from '../../../src/core/store/store.ts';
import { sqlite } from '../../../src/features/sqlite/sqlite.ts';
import { batch, host, openHere } from './support.ts';

const [mode = '', folder = '', count = '1000', size = '100'] = process.argv.slice(2);
const path = join(folder, 'store.db');
const acks = openSync(join(folder, 'acks'), 'a');
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const acknowledge = (n: number): void => void writeSync(acks, `${n}\n`);
const roomy = { maxStreamEvents: 1_000_000, maxActorBytes: 2 ** 40 };
const known = host();

/** Writes batches, four of them on their way at a time, and acknowledges each. */
async function write(): Promise<void> {
  const store = sqlite(path, roomy);
  await store.open(known);
  say('open');
  let next = 1;
  const lane = async (): Promise<void> => {
    for (let n = next++; n <= Number(count); n = next++) {
      await store.commit(batch(n, Number(size)));
      acknowledge(n);
    }
  };
  await Promise.all([lane(), lane(), lane(), lane()]);
  await store.close();
  say('done');
}

/** As it would be with `synchronous=NORMAL`: what the test of power loss must find. */
function writeCarelessly(): void {
  const { db, commit } = openHere(path, roomy);
  db.pragma('synchronous=NORMAL');
  for (let n = 1; n <= Number(count); n += 1) {
    commit(...batch(n, Number(size)));
    acknowledge(n);
  }
  say('done');
  process.exit(0);
}

/** One batch for each line on stdin: says what it came to. */
async function obey(): Promise<void> {
  const store = sqlite(path, roomy);
  await store.open(known);
  say('open');
  let n = 0;
  let reported = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    try {
      if (line === 'write') {
        n += 1;
        await store.commit(batch(n, Number(size)));
        acknowledge(n);
        say(`kept ${n}`);
      } else if (line === 'read') {
        say(`read ${(await store.events('a1', 's', 0, 10_000)).length}`);
      } else if (line === 'impairment') {
        say(String(store.impairment()));
      } else if (line === 'close') {
        await store.close();
        say('closed');
        break;
      }
    } catch (error) {
      say(error instanceof StoreError ? error.fault : `unexpected: ${String(error)}`);
    }
    // Also what the store has logged since the previous command: its thread may end between two of them.
    if (known.lines.length > reported) process.stderr.write(`${known.lines.slice(reported).join('\n')}\n`);
    reported = known.lines.length;
  }
}

/** Offers so many events a second, for a while; says how late the loop was, and how late the acknowledgements. */
async function offer(): Promise<void> {
  const [perSecond, ms] = [Number(count), Number(size)];
  const store = sqlite(path, roomy);
  await store.open(known);
  say('open');
  say(JSON.stringify(await offerTo(store, perSecond, ms)));
  await store.close();
}

const modes: Readonly<Record<string, () => Promise<void> | void>> = { write, careless: writeCarelessly, obey, offer };
await modes[mode]?.();
closeSync(acks);
process.exit(0);
