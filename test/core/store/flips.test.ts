/** Bits that a disk has turned anywhere in the file, its indexes and its free pages included: nothing is served wrong, and nothing is lost in silence. */
import { closeSync, existsSync, openSync, readFileSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { ActorRow, StoreAnswer, StoredKind, StoreQuery, Write } from '../../../src/core/store/store.ts';
import { suite, timeLimit } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { event, folder, type Opened, openHere, random } from './support.ts';

timeLimit(1_800_000);
const test = suite('flips');
const place = folder();
test.after(place.remove);

const FLIPS = atScale({ quick: 10, full: 30, proof: 1_000 });
const ACTORS = atScale({ quick: 60, full: 100, proof: 200 });
const PAGE = 4_096;
/** The first byte of a page that holds rows of a table. Every other page is an index, an inner page, an overflow, free, or a map. */
const ROWS = 0x0d;
const KINDS: readonly StoredKind[] = ['handle', 'session', 'task'];
const FAR = 9e12;

const idOf = (n: number): string =>
  `${KINDS[n % 3]}/${String((n * 7919) % 100_000).padStart(5, '0')}/${'x'.repeat(n % 20)}`;
const said = (what: string, n: number): string => JSON.stringify({ what, n, filler: `${what} ${n} `.repeat(8) });

function rowOf(n: number): ActorRow {
  const [kind, principal] = [KINDS[n % 3] ?? 'handle', `principal ${n % 5}`];
  return { id: idOf(n), kind, name: 'order', principal, status: 'active', created: n, expires: FAR + n };
}

/** What was acknowledged, by the question that asks for it. */
type Oracle = Map<string, { readonly question: StoreQuery; expected: string }>;

const oracle: Oracle = new Map();
let whole: Buffer | undefined;
let files = 0;

function expect(question: StoreQuery, found: StoreAnswer): void {
  oracle.set(JSON.stringify(question), { question, expected: JSON.stringify(found) });
}

/** A closed store with something of everything: several levels of each index, overflow pages, free pages. */
function written(): Buffer {
  if (whole) return whole;
  const path = join(place.path, 'whole.db');
  const opened = openHere(path);
  for (let n = 0; n < ACTORS; n += 1) {
    // Replies before this move to rows, replies after it stay in packs.
    if (n === ACTORS / 2) opened.ask({ type: 'sweep', now: 1 });
    const id = idOf(n);
    const writes: Write[] = [
      { type: 'actor', actor: rowOf(n) },
      { type: 'snapshot', actor: id, version: '1', data: said('snapshot', n).repeat(n % 50 === 0 ? 40 : 1) },
      ...[1, 2, 3].map((request): Write => {
        const [name, data] = [`request ${n} ${request}`, said('reply', n * 10 + request)];
        return { type: 'reply', actor: id, request: name, data, expires: FAR + n };
      }),
      event(id, '', 1, said('history', n)),
      event(id, 'out', 1, said('event', n)),
      event(id, 'out', 2, said('event', n)),
    ];
    for (const timer of n % 2 ? ['remind', 'close'] : [])
      writes.push({ type: 'timer', timer: { actor: id, timer, due: FAR + n, data: said(timer, n) } });
    opened.commit(...writes);
  }
  // Free pages.
  for (let n = 0; n < 6; n += 1) opened.commit(event('gone', 's', n + 1, 'x'.repeat(8_000)));
  opened.commit({ type: 'forget', actor: 'gone' });
  opened.db.pragma('wal_checkpoint(TRUNCATE)');
  for (const question of questions()) {
    const answer = opened.ask(question);
    assert.ok('found' in answer);
    if ('found' in answer) expect(question, answer.found);
  }
  opened.db.close();
  whole = readFileSync(path);
  return whole;
}

function questions(): StoreQuery[] {
  const all: StoreQuery[] = KINDS.map((kind) => ({ type: 'list', query: { kind, limit: ACTORS } }));
  all.push({ type: 'timers', until: Number.MAX_SAFE_INTEGER, limit: ACTORS, cells: undefined });
  for (let n = 0; n < ACTORS; n += 1) {
    const actor = idOf(n);
    all.push({ type: 'load', actor }, { type: 'streams', actor });
    for (const request of [1, 2, 3]) all.push({ type: 'reply', actor, request: `request ${n} ${request}` });
    for (const stream of ['', 'out']) all.push({ type: 'events', actor, stream, after: 0, limit: 10 });
  }
  return all;
}

interface Verdict {
  /** Questions that were answered with `corrupt`. */
  refused: number;
  /** Answers that are neither right nor a refusal. */
  readonly wrong: string[];
}

/** Asks for everything. Each answer is what was acknowledged, or says that it is damaged. */
function judge(opened: Opened, reports: readonly string[]): Verdict {
  const verdict: Verdict = { refused: 0, wrong: [] };
  for (const { question, expected } of oracle.values()) {
    const answer = opened.ask(question);
    if ('fault' in answer) {
      verdict.refused += 1;
      if (answer.fault !== 'corrupt' || reports.length === 0) verdict.wrong.push(`${answer.fault}: ${answer.message}`);
      continue;
    }
    const { found } = answer;
    if (JSON.stringify(found) === expected) continue;
    if (!isPart(found, expected, reports))
      verdict.wrong.push(`${JSON.stringify(question)} is answered with ${JSON.stringify(found).slice(0, 200)}`);
    else verdict.refused += 1;
  }
  return verdict;
}

function rowsIn(found: StoreAnswer): readonly unknown[] {
  return found.type === 'list' ? found.value.rows : found.type === 'timers' ? found.value : [];
}

/** A list may leave rows out where it says so: by their ids, or to the operator. */
function isPart(found: StoreAnswer, expected: string, reports: readonly string[]): boolean {
  if (found.type !== 'list' && found.type !== 'timers') return false;
  const right: StoreAnswer = JSON.parse(expected);
  const rows = new Set(rowsIn(right).map((row) => JSON.stringify(row)));
  for (const row of rowsIn(found)) if (!rows.delete(JSON.stringify(row))) return false;
  if (reports.length === 0) return false;
  if (found.type === 'timers') return true;
  // A handle, session or task that is left out must be known to be damaged.
  return [...rows].every((row) => found.value.damaged.some((id) => row.includes(JSON.stringify(id))));
}

/** Half of the bits are anywhere, half where no rows are. */
function* places(seed: number): Generator<{ readonly at: number; readonly bit: number }> {
  const file = written();
  const numbers = random(seed);
  const others = [...Array(file.length / PAGE).keys()].filter((page) => page === 0 || file[page * PAGE] !== ROWS);
  for (let n = 0; n < FLIPS; n += 1) {
    const anywhere = Math.floor(numbers() * file.length);
    const page = others[Math.floor(numbers() * others.length)] ?? 0;
    const elsewhere = page * PAGE + Math.floor(numbers() * PAGE);
    yield { at: n % 2 ? anywhere : elsewhere, bit: Math.floor(numbers() * 8) };
  }
}

function faultOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Gives its space back, and leaves the file: this process has not quite closed it, and SQLite would take another file that gets
 * its inode for it.
 */
function remove(path: string): void {
  for (const end of ['', '-wal']) if (existsSync(`${path}${end}`)) truncateSync(`${path}${end}`);
}

test(`R-41: none of ${FLIPS} bits turned anywhere in a closed file is served wrong or lost in silence`, async () => {
  const file = written();
  const count = { refused: 0, repaired: 0, part: 0, harmless: 0 };
  for (const { at, bit } of places(41)) {
    files += 1;
    const path = join(place.path, `closed-${files}.db`);
    const copy = Buffer.from(file);
    copy[at] = (copy[at] ?? 0) ^ (1 << bit);
    writeFileSync(path, copy);
    const reports: string[] = [];
    let opened: Opened | undefined;
    try {
      opened = openHere(path, {}, (what) => void reports.push(what));
    } catch (error) {
      assert.match(
        faultOf(error),
        /damaged|malformed|not a database|foreign|expected a store|lost|readonly|unsupported|expected what was written/,
        `the bit ${bit} of ${at}`,
      );
      count.refused += 1;
    }
    if (opened) {
      const { refused, wrong } = judge(opened, reports);
      assert.equal(wrong, [], `bit ${bit} at ${at} (page ${Math.floor(at / PAGE) + 1}): ${reports.join(' | ')}`);
      if (refused > 0) count.part += 1;
      else if (reports.length > 0) count.repaired += 1;
      else count.harmless += 1;
      opened.db.close();
    }
    remove(path);
    await turnOfTheLoop();
  }
  process.stdout.write(`R-41: ${FLIPS} bits in a closed file: ${JSON.stringify(count)}\n`);
  assert.ok(count.refused + count.repaired + count.part > FLIPS / 3);
});

/** Turns a bit of a file that is open, of which SQLite then has nothing in memory. */
function turn(path: string, at: number, bit: number, { db }: Opened): void {
  const file = openSync(path, 'r+');
  const byte = Buffer.from([((written()[at] ?? 0) ^ (1 << bit)) & 0xff]);
  writeSync(file, byte, 0, 1, at);
  closeSync(file);
  db.pragma('shrink_memory');
}

test(`R-42: none of ${FLIPS} bits turned under a store that is open is served wrong, lost in silence, or written over`, async () => {
  const file = written();
  const count = { found: 0, unseen: 0, writes: 0, refusals: 0 };
  for (const { at, bit } of places(42)) {
    files += 1;
    const path = join(place.path, `open-${files}.db`);
    writeFileSync(path, file);
    const reports: string[] = [];
    const opened = openHere(path, {}, (what) => void reports.push(what));
    opened.db.pragma('synchronous=OFF');
    turn(path, at, bit, opened);
    // What it must answer now, by question: what was acknowledged last.
    const now = new Map(oracle);
    for (const [key, { question }] of now) if (question.type === 'list' || question.type === 'timers') now.delete(key);
    const write = (writes: readonly Write[], then: ReadonlyMap<string, string>): void => {
      const answer = opened.commit(...writes);
      count.writes += 1;
      if ('fault' in answer) {
        assert.is(answer.fault, 'corrupt', `${answer.message}, bit ${bit} at ${at}`);
        count.refusals += 1;
        return;
      }
      for (const [key, expected] of then) {
        const { question } = now.get(key) ?? { question: undefined };
        if (question) now.set(key, { question, expected });
      }
    };
    for (let n = 0; n < ACTORS; n += 1) change(n, write);
    const swept = opened.ask({ type: 'sweep', now: 1 });
    assert.ok('found' in swept || swept.fault === 'corrupt');
    let found = 0;
    for (const { question, expected } of now.values()) {
      const answer = opened.ask(question);
      if ('found' in answer)
        assert.is(
          JSON.stringify(answer.found),
          expected,
          `${JSON.stringify(question)}, bit ${bit} at ${at} (page ${Math.floor(at / PAGE) + 1}): ${reports.join(' | ')}`,
        );
      else {
        assert.is(answer.fault, 'corrupt', `${answer.message}, bit ${bit} at ${at}`);
        assert.ok(reports.length > 0);
        found += 1;
      }
    }
    if (found > 0 || reports.length > 0) count.found += 1;
    else count.unseen += 1;
    opened.db.close();
    remove(path);
    await turnOfTheLoop();
  }
  process.stdout.write(`R-42: ${FLIPS} bits under an open store: ${JSON.stringify(count)}\n`);
  assert.ok(count.found > 0);
});

/** Where a text is outside the pages of rows: as a key of an index, or as what the page once held. */
function indexed(text: string): number[] {
  const file = written();
  const found: number[] = [];
  for (let at = file.indexOf(text); at >= 0; at = file.indexOf(text, at + 1))
    if (file[Math.floor(at / PAGE) * PAGE] !== ROWS) found.push(at);
  return found;
}

/** Asks for something, and writes it, with each place turned where an index has its key. */
function astray(key: string, question: StoreQuery, writes: readonly Write[], bit = 1): void {
  const places = indexed(key);
  assert.ok(places.length > 0, `no index has ${key}`);
  let [hidden, refused] = [0, 0];
  for (const at of places) {
    files += 1;
    const path = join(place.path, `astray-${files}.db`);
    writeFileSync(path, written());
    const reports: string[] = [];
    const opened = openHere(path, {}, (what) => void reports.push(what));
    turn(path, at, bit, opened);
    const { expected } = oracle.get(JSON.stringify(question)) ?? {};
    const before = opened.ask(question);
    if ('fault' in before) {
      hidden += 1;
      assert.is(before.fault, 'corrupt', before.message);
      assert.is(reports.length, 1, 'the operator is told');
      const answer = opened.commit(...writes);
      if ('fault' in answer) {
        refused += 1;
        assert.is(answer.fault, 'corrupt', answer.message);
      }
      const after = opened.ask(question);
      assert.is('fault' in after && after.fault, 'corrupt', 'nothing takes its place');
    } else assert.is(JSON.stringify(before.found), expected);
    opened.db.close();
    remove(path);
  }
  assert.ok(hidden > 0, `nothing hides ${key}`);
  // A timer that is hidden makes its actor damaged, which can be written all the same.
  assert.ok(refused > 0, `${key} is written over`);
}

test('R-42: an actor, a reply, a timer, a stream to which its index no longer leads is damaged: it is not missing, and not written over', () => {
  const id = idOf(7);
  const data = '"new"';
  astray(id, { type: 'load', actor: id }, [
    { type: 'actor', actor: rowOf(7) },
    { type: 'snapshot', actor: id, version: '1', data },
  ]);
  astray('request 7 2', { type: 'reply', actor: id, request: 'request 7 2' }, [
    { type: 'reply', actor: id, request: 'request 7 2', data, expires: FAR },
  ]);
  astray(`${id}remind`, { type: 'load', actor: id }, [{ type: 'timer off', actor: id, timer: 'remind' }]);
  astray(`${id}out`, { type: 'events', actor: id, stream: 'out', after: 0, limit: 10 }, [event(id, 'out', 3, data)]);
  // A key that is greater than before: a search for all of an actor ends before it.
  astray(`${id}out`, { type: 'streams', actor: id }, [{ type: 'forget', actor: id }], 3);
});

test('R-41: an index that was damaged while its store was closed is rebuilt from its rows, and nothing is lost', () => {
  let rebuilt = 0;
  for (const at of indexed('request 7 2')) {
    const path = join(place.path, `rebuilt-${at}.db`);
    const copy = Buffer.from(written());
    copy[at] = (copy[at] ?? 0) ^ 2;
    writeFileSync(path, copy);
    const reports: string[] = [];
    const opened = openHere(path, {}, (what) => void reports.push(what));
    if (/an index of reply was damaged .* It was rebuilt from the rows/.test(reports.join('\n'))) rebuilt += 1;
    else assert.equal(reports, []);
    assert.equal(judge(opened, []), { refused: 0, wrong: [] });
    assert.is(opened.integrity(), 'ok');
    opened.db.close();
    remove(path);
  }
  assert.ok(rebuilt > 0);
});

const key = (question: StoreQuery): string => JSON.stringify(question);

/** Something else is written of each actor, and what it leads to. */
function change(n: number, write: (writes: readonly Write[], then: ReadonlyMap<string, string>) => void): void {
  const id = idOf(n);
  const request = `request ${n} 1`;
  const data = said('again', n);
  const is = (question: StoreQuery, found: StoreAnswer): [string, string] => [key(question), JSON.stringify(found)];
  switch (n % 4) {
    case 0:
      return write(
        [{ type: 'reply', actor: id, request, data, expires: FAR }],
        new Map([is({ type: 'reply', actor: id, request }, { type: 'reply', value: data })]),
      );
    case 1: {
      const added = event(id, 'out', 3, data);
      const question: StoreQuery = { type: 'streams', actor: id };
      const events: StoreQuery = { type: 'events', actor: id, stream: 'out', after: 0, limit: 10 };
      const before: { value: readonly unknown[] } = JSON.parse(oracle.get(key(events))?.expected ?? '');
      const last = { stream: 'out', seq: 3, kind: 'said', data };
      const rows = [
        { stream: '', first: 1, last: 1, purged: 0 },
        { stream: 'out', first: 1, last: 3, purged: 0 },
      ];
      return write(
        [added],
        new Map([
          is(question, { type: 'streams', value: rows }),
          [key(events), JSON.stringify({ type: 'events', value: [...before.value, last] })],
        ]),
      );
    }
    case 2:
      return write(
        [{ type: 'forget', actor: id }],
        new Map([
          is({ type: 'load', actor: id }, { type: 'load', value: undefined }),
          is({ type: 'streams', actor: id }, { type: 'streams', value: [] }),
          ...[1, 2, 3].map((each) =>
            is({ type: 'reply', actor: id, request: `request ${n} ${each}` }, { type: 'reply', value: undefined }),
          ),
          ...['', 'out'].map((stream) =>
            is({ type: 'events', actor: id, stream, after: 0, limit: 10 }, { type: 'events', value: [] }),
          ),
        ]),
      );
    default:
      return write(
        [
          { type: 'snapshot', actor: id, version: '2', data },
          { type: 'timer off', actor: id, timer: 'remind' },
          { type: 'timer off', actor: id, timer: 'close' },
        ],
        new Map([
          is(
            { type: 'load', actor: id },
            {
              type: 'load',
              value: {
                actor: rowOf(n),
                snapshot: { version: '2', data },
                timers: [],
              },
            },
          ),
        ]),
      );
  }
}
