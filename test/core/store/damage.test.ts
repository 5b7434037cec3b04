/** Bits that a disk has turned: what is not as it was written is never served as if it were. */
import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { type JournalEvent, StoreError, type Write } from '../../../src/core/store/store.ts';
import { sqlite } from '../../../src/features/sqlite/sqlite.ts';
import { suite, timeLimit } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { actor, event, folder, host, type Opened, openHere, random } from './support.ts';

timeLimit(600_000);
const test = suite('damage');
const place = folder();
const FLIPS = atScale({ quick: 10, full: 30, proof: 1_000 });
/** Each so many of the rejected starts is mended: a start is a thread, whose start is what it costs. */
const MENDED = atScale({ quick: 5, full: 5, proof: 1 });
/** Each so many of the damages is tried. */
const STARTS = atScale({ quick: 10, full: 1, proof: 1 });
const EVENTS = 20;
const PAGE = 4_096;
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

/** @returns undefined where the file is too damaged to be opened, and says so */
function orDamaged(open: () => Opened): Opened | undefined {
  try {
    return open();
  } catch (error) {
    assert.match(error instanceof Error ? error.message : String(error), /damaged|malformed/);
    return undefined;
  }
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
  ask({ type: 'timers', until: 9e12, limit: 1_000, cells: undefined });
  ask({ type: 'letters', limit: 1_000 });
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

test.full(`R-04: no bit that is turned in a row, its head or its keys is served (${FLIPS} of them)`, () => {
  const whole = written();
  const numbers = random(11);
  const rows = placesOf('{"n":', whole);
  assert.ok(rows.length >= 4 * EVENTS);
  const right = new Set(served(turned(whole, [], 0, () => {})).values);
  let [found, refusedWhole, elsewhere] = [0, 0, 0];
  for (let n = 0; n < FLIPS; n += 1) {
    const at = (rows[Math.floor(numbers() * rows.length)] ?? 0) - 60 + Math.floor(numbers() * 80);
    let reports = 0;
    const opened = orDamaged(() =>
      turned(whole, [at], Math.floor(numbers() * 8), () => {
        reports += 1;
      }),
    );
    if (!opened) {
      refusedWhole += 1;
      continue;
    }
    const { values, refused } = served(opened);
    for (const value of values) assert.ok(right.has(value), `the bit at ${at} is served: ${value}`);
    if (reports + refused > 0) found += 1;
    else {
      assert.is(new Set(values).size, right.size, `the bit at ${at} hides a row`);
      elsewhere += 1;
    }
    opened.db.close();
  }
  process.stdout.write(
    `R-04: ${FLIPS} bits: ${found} found, ${refusedWhole} refused with the file, ${elsewhere} in no row, none served\n`,
  );
  assert.ok(found > FLIPS / 4);
});

/** The stream of 20 events after something was done to the file behind the store's back. */
async function after(sql: string): Promise<readonly JournalEvent[] | string> {
  const path = join(place.path, `changed-${Math.abs(hash(sql))}.db`);
  const { db, commit } = openHere(path);
  for (let n = 1; n <= 20; n += 1) commit(event('a', 's', n));
  db.run(sql);
  db.run('DELETE FROM timer');
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

test.full('R-04: an event that is removed, put in, moved or cut off is found', async () => {
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

/** A closed store of some actors, with its mark. */
async function closed(name: string): Promise<string> {
  const path = join(place.path, name);
  const store = sqlite(path);
  await store.open(host());
  for (let n = 1; n <= 5; n += 1) await store.commit([actor(`a${n}`), event(`a${n}`, 's', 1)]);
  await store.close();
  return path;
}

/** The fault with which a file is not opened, and what it says; `none` where it is. */
async function opening(
  path: string,
): Promise<{ readonly fault: string; readonly message: string; readonly lines: readonly string[] }> {
  const store = sqlite(path);
  const told = host();
  try {
    await store.open(told);
    return { fault: 'none', message: '', lines: told.lines };
  } catch (error) {
    assert.instance(error, StoreError);
    return { fault: error instanceof StoreError ? error.fault : '', message: String(error), lines: told.lines };
  } finally {
    await store.close();
  }
}

test.full('R-43: a store that is cut to nothing, or gone, is damage and no new store; nothing is written', async () => {
  const cut = await closed('cut.db');
  for (const size of [0, 1, 100, 4_096, 20_480]) {
    truncateSync(cut, size);
    const { fault, message } = await opening(cut);
    assert.is(fault, 'corrupt', `${size} bytes: ${message}`);
    assert.is(statSync(cut).size, size);
    writeFileSync(cut, readFileSync(await closed(`cut ${size}.db`)));
  }
  const gone = await closed('gone.db');
  rmSync(gone);
  assert.match(
    (await opening(gone)).message,
    /the file is missing, and .*gone\.db-mark shows that it was a store\. Restore a backup\. To/,
  );
  assert.not.ok(existsSync(gone));
  rmSync(`${gone}-mark`);
  assert.is((await opening(gone)).fault, 'none');
});

test.full(
  'R-43: a file that is empty and was no store is a new one; a file of a few bytes is another program’s',
  async () => {
    const path = join(place.path, 'touched.db');
    writeFileSync(path, '');
    assert.is((await opening(path)).fault, 'none');
    for (const bytes of ['x', '{}', 'x'.repeat(511)]) {
      const other = join(place.path, `${bytes.length}.txt`);
      writeFileSync(other, bytes);
      assert.is((await opening(other)).fault, 'foreign');
      assert.is(readFileSync(other, 'utf8'), bytes);
    }
  },
);

test.full('R-43: a log that is damaged or removed takes no acknowledged batch in silence', async () => {
  const path = join(place.path, 'log.db');
  const { db, commit } = openHere(path);
  for (let n = 1; n <= 9; n += 1) commit(actor(`a${n}`));
  const log = readFileSync(`${path}-wal`);
  const file = readFileSync(path);
  const mark = readFileSync(`${path}-mark`);
  db.close();
  const numbers = random(7);
  const damages: readonly (Buffer | undefined)[] = [
    undefined,
    log.subarray(0, log.length - 4_096),
    ...Array.from({ length: FLIPS / 10 }, () => {
      const copy = Buffer.from(log);
      const at = Math.floor(numbers() * copy.length);
      copy[at] = (copy[at] ?? 0) ^ (1 << Math.floor(numbers() * 8));
      return copy;
    }),
  ];
  for (const [n, damaged] of damages.entries()) {
    const copy = join(place.path, `log ${n}.db`);
    writeFileSync(copy, file);
    writeFileSync(`${copy}-mark`, mark);
    if (damaged) writeFileSync(`${copy}-wal`, damaged);
    const { fault, message } = await opening(copy);
    // A frame that a later one replaced is needed by nobody.
    if (fault === 'none') {
      const { ask, db: again } = openHere(copy);
      for (let n = 1; n <= 9; n += 1) {
        const answer = ask({ type: 'load', actor: `a${n}` });
        assert.ok('found' in answer && answer.found.type === 'load' && answer.found.value, `a${n} is lost`);
      }
      again.close();
    } else assert.is(fault, 'corrupt', message);
    if (n < 2) assert.match(message, /has lost 1 acknowledged transactions|has no tables, and/);
  }
});

test.full('R-43: an older copy in the place of a store is refused until its mark is removed, too', async () => {
  const path = await closed('older.db');
  const copy = readFileSync(path);
  const store = sqlite(path);
  await store.open(host());
  await store.commit([actor('newer')]);
  await store.close();
  writeFileSync(path, copy);
  const { fault, message } = await opening(path);
  assert.is(fault, 'corrupt');
  assert.match(message, /to continue with the existing data, remove .*older\.db-mark/);
  rmSync(`${path}-mark`);
  assert.is((await opening(path)).fault, 'none');
});

test.full(
  'a torn mark leaves the one before it; an unreadable mark is replaced, and the operator is notified',
  async () => {
    const path = await closed('torn.db');
    const mark = readFileSync(`${path}-mark`, 'latin1');
    writeFileSync(`${path}-mark`, mark.replace(/commits (\d)/, 'commits x'));
    assert.is((await opening(path)).fault, 'none');
    writeFileSync(`${path}-mark`, '');
    const { fault, lines } = await opening(path);
    assert.is(fault, 'none');
    assert.match(lines.join('\n'), /torn\.db-mark is unreadable/);
  },
);

/** The bytes of a store's files, by the end of their names; undefined for a file that does not exist. */
type Files = Readonly<Record<'' | '-wal' | '-mark', Buffer | undefined>>;

function filesOf(path: string): Files {
  const read = (end: string): Buffer | undefined =>
    existsSync(`${path}${end}`) ? readFileSync(`${path}${end}`) : undefined;
  return { '': read(''), '-wal': read('-wal'), '-mark': read('-mark') };
}

function put(path: string, files: Files): void {
  for (const [end, content] of Object.entries(files)) {
    rmSync(`${path}${end}`, { force: true });
    if (content) writeFileSync(`${path}${end}`, content);
  }
}

/** One store at three moments: killed in the middle of its life, killed at its end, closed. */
function moments(name: string): {
  readonly middle: Files;
  readonly killed: Files;
  readonly closed: Files;
  readonly unwritten: number;
} {
  const path = join(place.path, name);
  const { db, commit, ask } = openHere(path);
  const write = (from: number): void => {
    for (let n = from; n < from + 5; n += 1) commit(actor(`a${n}`), event(`a${n}`, 's', 1));
  };
  write(1);
  // The log begins again, in the same file: its frames are newer than the file, not older.
  db.pragma('wal_checkpoint(TRUNCATE)');
  write(6);
  const middle = filesOf(path);
  write(11);
  const killed = filesOf(path);
  // The place of a page that is in the file alone: no log has it.
  const [row] = db.prepare("SELECT CAST(rootpage AS REAL) FROM sqlite_schema WHERE name = 'dead_letter'").all();
  const unwritten = (Number(row?.[0]) - 1) * PAGE;
  ask({ type: 'close' });
  const closed = { ...filesOf(path), '-wal': undefined };
  db.close();
  return { middle, killed, closed, unwritten };
}

const flipped = (file: Buffer | undefined, at: number, bit = 2): Buffer => {
  const copy = Buffer.from(file ?? '');
  const place = at < 0 ? copy.length + at : at;
  copy[place] = (copy[place] ?? 0) ^ bit;
  return copy;
};

test('R-47: a start that is rejected leaves the file, its log and its mark as they were', async () => {
  const { middle, killed, closed, unwritten } = moments('moments.db');
  const log = killed['-wal'] ?? Buffer.alloc(0);
  const rejected: Readonly<Record<string, Files>> = {
    'an older log beside a closed file': { ...closed, '-wal': middle['-wal'] },
    'an older log': { ...killed, '-wal': middle['-wal'] },
    'an older file and log': { ...middle, '-mark': killed['-mark'] },
    'a bit in the last frame': { ...killed, '-wal': flipped(log, -3_000) },
    'a bit in the head of the last frame': { ...killed, '-wal': flipped(log, -4_110) },
    'a log without its last frame': { ...killed, '-wal': log.subarray(0, -4_120) },
    'a log without its last bytes': { ...killed, '-wal': log.subarray(0, -100) },
    'half a log': { ...killed, '-wal': log.subarray(0, log.length / 2) },
    'an empty log': { ...killed, '-wal': Buffer.alloc(0) },
    'no log': { ...killed, '-wal': undefined },
    'a damaged page below a sound log': { ...killed, '': flipped(killed[''], unwritten, 0xff) },
    'a damaged page in a closed file': { ...closed, '': flipped(closed[''], unwritten, 0xff) },
    'another program': { ...closed, '': flipped(closed[''], 71) },
    'a later version': { ...closed, '': flipped(closed[''], 63, 0xff) },
    'another text encoding': { ...closed, '': flipped(closed[''], 59) },
    'no head': { ...closed, '': flipped(closed[''], 0) },
    'no head, below a log': { ...killed, '': flipped(killed[''], 0), '-wal': log.subarray(0, 4_152) },
    'a short file': { ...killed, '': killed['']?.subarray(0, 5_000) },
    'an empty file': { ...killed, '': Buffer.alloc(0) },
    'no file': { ...killed, '': undefined },
  };
  for (const [n, [what, files]] of Object.entries(rejected).entries()) {
    if (n % STARTS > 0) continue;
    const path = join(place.path, `rejected, ${what}?#%20'.db`);
    put(path, files);
    const { fault, message } = await opening(path);
    assert.ok(fault === 'corrupt' || fault === 'foreign', `${what}: ${fault} ${message}`);
    const after = filesOf(path);
    // A reader of a closed file leaves an empty log, which is none.
    for (const end of ['', '-wal', '-mark'] as const)
      assert.equal(after[end]?.length ? after[end] : Buffer.alloc(0), files[end] ?? Buffer.alloc(0), `${what}: ${end}`);
    assert.is(existsSync(path), files[''] !== undefined, what);
    if (n % MENDED > 0) continue;
    // With the right files in their place, it opens.
    put(path, killed);
    rmSync(`${path}-shm`, { force: true });
    assert.equal(await opening(path).then(({ fault, lines }) => [fault, lines]), ['none', []], what);
  }
});

test('R-48: another store’s file or log in the place of a store is damage, whatever its transaction count', async () => {
  const mine = moments('mine.db');
  const other = moments('other.db');
  const path = join(place.path, 'replaced.db');
  const cases: readonly Files[] = [
    { ...other.closed, '-mark': mine.middle['-mark'] },
    { ...other.killed, '-mark': mine.killed['-mark'] },
    { ...mine.closed, '-wal': other.killed['-wal'] },
  ];
  for (const files of cases) {
    put(path, files);
    rmSync(`${path}-shm`, { force: true });
    const { fault, message } = await opening(path);
    assert.is(fault, 'corrupt');
    assert.match(message, /is not the store of its mark/);
  }
  // To continue with it is the operator's decision.
  put(path, { ...other.closed, '-mark': undefined });
  assert.equal(await opening(path).then(({ fault, lines }) => [fault, lines]), ['none', []]);
  assert.is(statSync(`${path}-mark`).size, 108);
});

test.full('a mark that was cut is reported', async () => {
  const path = await closed('cut mark.db');
  for (const size of [40, 60, 80, 100]) {
    truncateSync(`${path}-mark`, size);
    const { fault, lines } = await opening(path);
    assert.is(fault, 'none');
    assert.match(lines.join('\n'), /cut mark\.db-mark is damaged: a part of it is unreadable/);
    assert.equal((await opening(path)).lines, []);
  }
});
