/** Packs of replies: each reply is as it was written last, after any order of writes, sweeps, failures, crashes and flipped bits. */
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import type { Write } from '../../../src/core/store/store.ts';
import type { JobAnswer } from '../../../src/features/sqlite/sqlite-protocol.ts';
import { suite, timeLimit } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { event, folder, type Opened, openHere, random } from './support.ts';

timeLimit(600_000);
const test = suite('packs');
const place = folder();
test.after(place.remove);

const FAR = 9e12;
const STEPS = atScale({ quick: 120, full: 400, proof: 4_000 });
const FLIPS = atScale({ quick: 15, full: 60, proof: 2_000 });

const reply = (actor: string, request: string, data: string, expires = FAR): Write => ({
  type: 'reply',
  actor,
  request,
  data,
  expires,
});

function dataOf(answer: JobAnswer): string | undefined {
  assert.ok('found' in answer && answer.found.type === 'reply', JSON.stringify(answer));
  return 'found' in answer && answer.found.type === 'reply' ? answer.found.value : undefined;
}

/** The number of rows in a table. */
function count({ db }: Opened, table: 'pack' | 'reply'): number {
  return Number(db.prepare(`SELECT CAST(count(*) AS REAL) FROM ${table}`).all()[0]?.[0]);
}

/** A store that does not wait for the disk: no test of this file takes its power away. */
function open(path: string, report?: (what: string) => void): Opened {
  const opened = openHere(path, {}, report);
  opened.db.pragma('synchronous=OFF');
  return opened;
}

/** The files of a store as `kill -9` leaves them, opened as those of another. */
function copied(path: string, to: string): Opened {
  for (const end of ['', '-wal', '-mark'])
    if (existsSync(`${path}${end}`)) copyFileSync(`${path}${end}`, `${to}${end}`);
  return open(to);
}

test('one pack for each transaction; a sweep or the end of the store moves replies to rows', () => {
  const path = join(place.path, 'moves.db');
  const opened = open(path);
  opened.commit(reply('a', 'r1', 'one', 100), reply('a', 'r2', 'two'), reply('b', 'r1', 'three'));
  opened.commit(reply('a', 'r2', ''), reply('b', 'r2', 'four'));
  assert.equal([count(opened, 'pack'), count(opened, 'reply')], [2, 0]);
  opened.ask({ type: 'sweep', now: 500 });
  assert.equal([count(opened, 'pack'), count(opened, 'reply')], [0, 2]);
  opened.commit(reply('c', 'r', 'five'), reply('b', 'r1', 'again'), reply('b', 'long', 'x'.repeat(50_000)));
  assert.equal([count(opened, 'pack'), count(opened, 'reply')], [1, 3]);
  opened.ask({ type: 'close' });
  assert.equal([count(opened, 'pack'), count(opened, 'reply')], [0, 4]);
  opened.db.close();
  const next = copied(path, join(place.path, 'moved.db'));
  const of = (actor: string, request: string): string | undefined =>
    dataOf(next.ask({ type: 'reply', actor, request }));
  assert.equal(
    [of('a', 'r1'), of('a', 'r2'), of('b', 'r1'), of('b', 'r2'), of('c', 'r')],
    [undefined, undefined, 'again', 'four', 'five'],
  );
  assert.is(of('b', 'long')?.length, 50_000);
  assert.is(next.integrity(), 'ok');
  next.db.close();
});

test('R-26: packs take 8 MiB at most: replies of the oldest move to rows, unless they were deleted meanwhile', () => {
  const path = join(place.path, 'most.db');
  const opened = open(path);
  const data = (n: number): string => `${n} ${'x'.repeat(16_000)}`;
  for (let n = 0; n < 1_000; n += 10) {
    const some = Array.from({ length: 10 }, (_, place) => n + place);
    opened.commit(
      ...some.map((each) => reply('a', `request ${each}`, data(each))),
      // Every second reply lives for a hundred others.
      ...(n < 100 ? [] : some.filter((each) => each % 2).map((each) => reply('a', `request ${each - 100}`, ''))),
    );
  }
  const [row = []] = opened.db.prepare('SELECT CAST(sum(length(keys) + length(data)) AS REAL) FROM pack').all();
  assert.ok(Number(row[0]) <= 8 * 1024 ** 2 && Number(row[0]) > 7 * 1024 ** 2, String(row[0]));
  // Half of those that had to make room.
  assert.ok(count(opened, 'reply') > 150 && count(opened, 'reply') < 300, String(count(opened, 'reply')));
  const next = copied(path, join(place.path, 'most-2.db'));
  for (let n = 0; n < 1_000; n += 1) {
    const found = dataOf(next.ask({ type: 'reply', actor: 'a', request: `request ${n}` }));
    assert.ok(found === (n % 2 && n < 900 ? undefined : data(n)), `${n}: ${found?.slice(0, 10)}`);
  }
  next.db.close();
  opened.db.close();
});

test(`R-01: ${STEPS} random writes, sweeps, failures and crashes: each reply is the last that was acknowledged`, () => {
  const numbers = random(7);
  const pick = (most: number): number => Math.floor(numbers() * most);
  const path = (n: number): string => join(place.path, `random-${n}.db`);
  let [at, crashes, now, most] = [0, 0, 0, 0];
  let opened = open(path(at));
  let expected = new Map<string, { data: string; expires: number }>();
  for (let step = 0; step < STEPS; step += 1) {
    const wanted = new Map(expected);
    const writes: Write[] = [];
    for (let n = pick(6); n >= 0; n -= 1) {
      const [actor, request, kind] = [`actor ${pick(5)}`, `request ${pick(60)}`, pick(20)];
      if (kind === 0) {
        writes.push({ type: 'forget', actor });
        for (const key of wanted.keys()) if (key.startsWith(`${actor} `)) wanted.delete(key);
      } else if (kind < 4) {
        writes.push(reply(actor, request, ''));
        wanted.delete(`${actor} ${request}`);
      } else {
        // Long enough that the oldest packs make room, and some too long for a pack.
        const data = `${step} ü ${'x'.repeat(pick(kind === 4 ? 20_000 : 16_000))}`;
        const expires = now + 1 + pick(400);
        writes.push(reply(actor, request, data, expires));
        wanted.set(`${actor} ${request}`, { data, expires });
      }
    }
    if (pick(6) === 0) {
      // An event that is not the next one fails its whole batch.
      const answer = opened.commit(...writes, event('e', 's', 2), event('e', 's', 1));
      assert.ok('fault' in answer);
    } else {
      assert.ok('found' in opened.commit(...writes));
      expected = wanted;
    }
    if (pick(40) === 0) {
      now += pick(50);
      opened.ask({ type: 'sweep', now });
      expected = new Map([...expected].filter(([, { expires }]) => expires > now));
    }
    most = Math.max(most, count(opened, 'reply'));
    if (pick(80) === 0) {
      const last = path(at);
      at += 1;
      crashes += 1;
      const next = copied(last, path(at));
      opened.db.close();
      opened = next;
    }
    if (step % 10 === 0)
      for (let actor = 0; actor < 5; actor += 1)
        for (let request = 0; request < 60; request += 1) {
          const question = { actor: `actor ${actor}`, request: `request ${request}` };
          const found = dataOf(opened.ask({ type: 'reply', ...question }));
          const { data } = expected.get(`${question.actor} ${question.request}`) ?? {};
          assert.ok(found === data, `step ${step}: ${question.actor}, ${question.request}: ${found} is not ${data}`);
        }
  }
  assert.ok(crashes > 0 && most > 0);
  assert.is(opened.integrity(), 'ok');
  opened.db.close();
});

test(`R-41: none of ${FLIPS} bits turned in packs hides a reply or serves another`, () => {
  const path = join(place.path, 'flips.db');
  const opened = open(path);
  const names = Array.from({ length: 40 }, (_, n) => ({ actor: `actor ${n % 5}`, request: `request ${n}` }));
  const said = (request: string): string => JSON.stringify({ said: request.repeat(20) });
  for (let n = 0; n < names.length; n += 10)
    opened.commit(...names.slice(n, n + 10).map(({ actor, request }) => reply(actor, request, said(request))));
  opened.db.pragma('wal_checkpoint(TRUNCATE)');
  opened.db.close();
  const whole = readFileSync(path);
  const [first, last] = [whole.indexOf('"actor 0"') - 64, whole.lastIndexOf('"request 39"') + 64];
  const numbers = random(11);
  const found = { refused: 0, damaged: 0, harmless: 0 };
  for (let n = 0; n < FLIPS; n += 1) {
    const copy = Buffer.from(whole);
    const at = first + Math.floor(numbers() * (last - first));
    copy[at] = (copy[at] ?? 0) ^ (1 << Math.floor(numbers() * 8));
    const file = join(place.path, `flip-${n}.db`);
    writeFileSync(file, copy);
    const reports: string[] = [];
    let store: Opened;
    try {
      store = open(file, (what) => void reports.push(what));
    } catch (error) {
      assert.match(String(error), /is damaged|malformed/);
      found.refused += 1;
      continue;
    }
    const wanted = (): number =>
      names.filter(({ actor, request }) => {
        const answer = store.ask({ type: 'reply', actor, request });
        if ('fault' in answer) assert.is(answer.fault, 'corrupt');
        else assert.is(dataOf(answer), said(request), `byte ${at}: ${reports.join()}`);
        return 'fault' in answer;
      }).length;
    const damaged = wanted();
    assert.ok(damaged === 0 || reports.length > 0);
    // What is damaged stays known as damaged when it moves to a row.
    store.ask({ type: 'sweep', now: 1 });
    assert.is(wanted(), damaged);
    if (damaged > 0) found.damaged += 1;
    else if (reports.length === 0) found.harmless += 1;
    store.db.close();
  }
  assert.ok(found.damaged > FLIPS / 4 && found.harmless < FLIPS / 2, JSON.stringify(found));
});
