/** Bits that a disk has turned: what is not as it was written is never served as if it were. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { sqlite } from '../../src/store/sqlite.ts';
import { type JournalEvent, StoreError, type Write } from '../../src/store/store.ts';
import { suite, timeLimit } from '../harness/door.ts';
import { actor, event, folder, full, host, type Opened, openHere, random } from './support.ts';

timeLimit(600_000);
const test = suite('damage');
const place = folder();
const FLIPS = full ? 1_000 : 60;
const EVENTS = 20;
test.after(place.remove);

const text = (n: number): string => JSON.stringify({ n, said: `words that mean something ${n}`.repeat(6) });

/** The data of an event, which is nowhere else in the file. */
const said = (n: number): string => JSON.stringify({ event: n, said: 'so many words '.repeat(20) });

let bytes: Buffer | undefined;

/** A store with something of everything, closed. @returns its bytes */
function written(): Buffer {
  if (bytes) return bytes;
  const path = join(place.path, 'whole.db');
  const { db, commit } = openHere(path);
  for (let n = 1; n <= EVENTS; n += 1) {
    const writes: Write[] = [
      actor(`a${n}`, { principal: `principal ${n}`, created: n }),
      { type: 'snapshot', actor: `a${n}`, version: '1', data: text(n) },
      { type: 'reply', actor: `a${n}`, request: 'r', data: text(n), expires: 9e12 },
      { type: 'timer', timer: { actor: `a${n}`, timer: 't', due: n, data: text(n) } },
      { type: 'dead letter', letter: { actor: `a${n}`, mail: text(n), error: 'e', attempts: 2, at: n, incident: 'i' } },
      event('a1', 's', n, said(n)),
    ];
    commit(...writes);
  }
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
  bytes = readFileSync(path);
  return bytes;
}

/** Where a text lies in the file. */
function placesOf(text: string, file: Buffer): number[] {
  const places: number[] = [];
  for (let at = file.indexOf(text); at >= 0; at = file.indexOf(text, at + 1)) places.push(at);
  return places;
}

/** What is served now, of everything, and what was found to be damaged. */
function served(opened: Opened): { readonly values: string[]; readonly refused: number } {
  const values: string[] = [];
  let refused = 0;
  const ask = (question: Parameters<Opened['ask']>[0]): void => {
    const answer = opened.ask(question);
    if ('fault' in answer) {
      assert.is(answer.fault, 'corrupt', answer.message);
      refused += 1;
    } else values.push(...flat(answer.found));
  };
  ask({ type: 'events', actor: 'a1', stream: 's', after: 0, limit: 1_000 });
  ask({ type: 'list', query: { kind: 'handle', limit: 1_000 } });
  ask({ type: 'timers', until: 9e12, limit: 1_000 });
  ask({ type: 'dead letters', limit: 1_000 });
  for (let n = 1; n <= EVENTS; n += 1) {
    ask({ type: 'load', actor: `a${n}` });
    ask({ type: 'reply', actor: `a${n}`, request: 'r' });
  }
  return { values, refused };
}

/** Each thing that was found, for itself. */
function flat(found: object): string[] {
  return Object.values(found).flatMap((value: unknown) => {
    if (Array.isArray(value)) return value.map((each) => JSON.stringify(each));
    if (typeof value === 'object' && value !== null) return flat(value);
    return value === undefined ? [] : [JSON.stringify(value)];
  });
}

/** The file with one bit turned, and opened. */
function turned(whole: Buffer, places: readonly number[], bit: number, report: () => void): Opened {
  const copy = Buffer.from(whole);
  for (const at of places) copy[at] = (copy[at] ?? 0) ^ (1 << bit);
  const file = join(place.path, `damaged-${places[0]}-${bit}-${performance.now()}.db`);
  writeFileSync(file, copy);
  return openHere(file, {}, report);
}

test(`R-04: each bit that is turned in an event is found (${FLIPS} of them)`, () => {
  const whole = written();
  const numbers = random(5);
  for (let n = 0; n < FLIPS; n += 1) {
    const event = said(1 + Math.floor(numbers() * EVENTS));
    // Where its page has been written anew, what was there before is there still: no row, but nobody can tell.
    const at = Math.floor(numbers() * event.length);
    const places = placesOf(event, whole).map((place) => place + at);
    const opened = turned(whole, places, Math.floor(numbers() * 8), () => {});
    const answer = opened.ask({ type: 'events', actor: 'a1', stream: 's', after: 0, limit: 1_000 });
    assert.is('fault' in answer ? answer.fault : 'served', 'corrupt', `at ${places[0]}`);
    opened.db.close();
  }
});

test(`R-04: no bit that is turned in a row, its head or its keys is served (${FLIPS} of them)`, () => {
  const whole = written();
  const numbers = random(11);
  const rows = placesOf('{"n":', whole);
  assert.ok(rows.length >= 4 * EVENTS);
  const right = new Set(served(turned(whole, [], 0, () => {})).values);
  let [found, missing, elsewhere] = [0, 0, 0];
  for (let n = 0; n < FLIPS; n += 1) {
    const at = (rows[Math.floor(numbers() * rows.length)] ?? 0) - 60 + Math.floor(numbers() * 80);
    let reports = 0;
    const opened = turned(whole, [at], Math.floor(numbers() * 8), () => {
      reports += 1;
    });
    const { values, refused } = served(opened);
    for (const value of values) assert.ok(right.has(value), `the bit at ${at} is served: ${value}`);
    if (reports + refused > 0) found += 1;
    // Its key in an index: the row is not found, as if it were not there. Or what was a row once.
    else if (new Set(values).size < right.size) missing += 1;
    else elsewhere += 1;
    opened.db.close();
  }
  process.stdout.write(
    `R-04: ${FLIPS} bits: ${found} found, ${missing} hid a row, ${elsewhere} in no row, none served\n`,
  );
  assert.ok(found > FLIPS / 4);
});

/** The stream of 20 events after something was done to the file behind the store's back. */
async function after(sql: string): Promise<readonly JournalEvent[] | string> {
  const path = join(place.path, `changed-${Math.abs(hash(sql))}.db`);
  const { db, commit } = openHere(path);
  for (let n = 1; n <= 20; n += 1) commit(event('a', 's', n));
  db.run(sql);
  db.run('DELETE FROM timer; INSERT OR IGNORE INTO opened SELECT 1 WHERE 0');
  db.close();
  const copy = `${path}.copy`;
  db.close();
  for (const end of ['', '-wal'])
    if (existsSync(`${path}${end}`)) writeFileSync(`${copy}${end}`, readFileSync(`${path}${end}`));
  const store = sqlite(copy);
  await store.open(host());
  try {
    return await store.events('a', 's', 0, 100);
  } catch (error) {
    return error instanceof StoreError ? error.fault : String(error);
  } finally {
    await store.close();
  }
}

const hash = (text: string): number => [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) | 0, 7);

test('R-04: an event that is removed, put in, moved or cut off is found', async () => {
  assert.is((await after('SELECT 1')).length, 20);
  for (const sql of [
    'DELETE FROM event WHERE seq = 10',
    'DELETE FROM event WHERE seq = 1',
    'DELETE FROM event WHERE seq > 15',
    'UPDATE event SET seq = 21 WHERE seq = 20',
    'UPDATE event SET data = (SELECT data FROM event WHERE seq = 2) WHERE seq = 3',
    'INSERT INTO event SELECT 99, stream, 30, kind, data, prev, crc FROM event WHERE seq = 20',
    'UPDATE stream SET last = 30',
  ])
    assert.is(await after(sql), 'corrupt', sql);
});
