/** Retention: the file stays within its bounds, and what is gone says so. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import type { StoreQuery } from '../../../src/core/store/store.ts';
import { fullOnly, suite, timeLimit } from '../../harness/door.ts';
import { actor, event, folder, full, openHere, random } from './support.ts';

fullOnly('fills a database; the quick test is the contract of the store');

timeLimit(600_000);
const test = suite('retention');
const place = folder();
test.after(place.remove);

const data = (size: number): string => JSON.stringify({ filler: 'x'.repeat(size) });
const reading = (id: string, stream: string, after: number): StoreQuery => ({
  type: 'events',
  actor: id,
  stream,
  after,
  limit: 10_000,
});

test('R-26: a stream keeps its newest events, and says that the others are gone', () => {
  const { commit, ask, events } = openHere(join(place.path, 'stream.db'), { maxStreamEvents: 50 });
  commit(actor('a'));
  for (let n = 1; n <= 300; n += 1) {
    commit(event('a', 's', n));
    if (n < 50) continue;
    const kept = events('a', 's');
    assert.ok(kept.length <= 50 && kept.length >= 40, `${kept.length}`);
    assert.is(kept.at(-1)?.seq, n);
  }
  const first = events('a', 's')[0]?.seq ?? 0;
  const before = ask(reading('a', 's', first - 2));
  assert.is('fault' in before && before.fault, 'purged');
  const exact = ask(reading('a', 's', first - 1));
  assert.ok('found' in exact && exact.found.type === 'events' && exact.found.value[0]?.seq === first);
});

test('R-26: of its own history an actor loses only what its snapshot covers', () => {
  const { commit, events } = openHere(join(place.path, 'history.db'), { maxStreamEvents: 100, maxActorBytes: 20_000 });
  commit(actor('a'));
  for (let n = 1; n <= 300; n += 1) commit(event('a', '', n));
  assert.is(events('a', '').length, 300);
  commit({ type: 'snapshot', actor: 'a', version: '1', data: '{}' });
  for (let n = 301; n <= 350; n += 1) commit(event('a', '', n));
  const kept = events('a', '').map(({ seq }) => seq);
  assert.ok(kept.length <= 100, `${kept.length}`);
  assert.is(kept.at(-1), 350);
  for (let n = 301; n <= 350; n += 1) assert.ok(kept.includes(n));
});

test('R-26: an actor keeps so many bytes in all its streams; the oldest give way', () => {
  const path = join(place.path, 'actor.db');
  const { commit, ask, events } = openHere(path, { maxActorBytes: 40_000 });
  commit(actor('a'), actor('b'), event('b', 's', 1));
  for (let n = 1; n <= 200; n += 1) {
    commit(event('a', `s${n % 5}`, n, data(1_000)));
    const held = [0, 1, 2, 3, 4].flatMap((stream) => events('a', `s${stream}`));
    assert.ok(held.length <= 40, `${held.length}`);
    assert.ok(held.some(({ seq }) => seq === n));
  }
  assert.is(events('b', 's').length, 1);
  const streams = ask({ type: 'streams', actor: 'a' });
  assert.ok(
    'found' in streams && streams.found.type === 'streams' && streams.found.value.every(({ purged }) => purged > 0),
  );
});

test('R-58: messages that wait in an outbox are kept, however many there are, and go with a trim only', () => {
  const { commit, events } = openHere(join(place.path, 'out.db'), { maxStreamEvents: 10, maxActorBytes: 20_000 });
  commit(actor('a'), event('a', 'out/x', 1, data(30_000)));
  for (let n = 2; n <= 40; n += 1) commit(event('a', 'out/x', n), event('a', 's', n, data(1_000)));
  assert.is(events('a', 'out/x').length, 40);
  assert.ok(events('a', 's').length < 10);
  commit({ type: 'trim', actor: 'a', stream: 'out/x', upto: 39 });
  assert.equal(
    events('a', 'out/x').map(({ seq }) => seq),
    [40],
  );
});

test('R-26: replies, dead letters and what is remembered of streams are bounded', () => {
  const bounds = { maxActorReplies: 10, maxDeadLetters: 5, maxActorStreams: 7 };
  const { commit, ask, events } = openHere(join(place.path, 'rows.db'), bounds);
  commit(actor('a'));
  for (let n = 1; n <= 30; n += 1) {
    commit(
      { type: 'reply', actor: 'a', request: String(n), data: '1', expires: 1_000 + n },
      { type: 'dead letter', letter: { actor: 'a', mail: String(n), error: 'e', attempts: 2, at: n, incident: 'i' } },
      event('a', `s${n}`, 9),
      { type: 'trim', actor: 'a', stream: `s${n}`, upto: 9 },
    );
  }
  ask({ type: 'sweep', now: 1 });
  const kept = Array.from({ length: 30 }, (_, n) => ask({ type: 'reply', actor: 'a', request: String(n + 1) }));
  const there = kept.map(
    (answer) => 'found' in answer && answer.found.type === 'reply' && answer.found.value !== undefined,
  );
  assert.equal(
    there,
    there.map((_, n) => n >= 20),
  );
  const letters = ask({ type: 'letters', limit: 100 });
  assert.ok('found' in letters && letters.found.type === 'letters' && letters.found.value.length === 5);
  // Remembered or not: nobody is told that there is nothing, who has seen something.
  assert.equal(events('a', 's1'), []);
  for (const stream of ['s1', 's30']) {
    const answer = ask(reading('a', stream, 3));
    assert.is('fault' in answer && answer.fault, 'purged');
  }
});

test('R-26: all replies together are bounded: those that expire first give way', () => {
  const { commit, ask } = openHere(join(place.path, 'replies.db'), { maxReplies: 300 });
  for (let n = 1; n <= 700; n += 1)
    commit({ type: 'reply', actor: `a${n}`, request: 'r', data: '1', expires: 1_000 + n });
  ask({ type: 'sweep', now: 1 });
  const kept = Array.from({ length: 700 }, (_, n) => ask({ type: 'reply', actor: `a${n + 1}`, request: 'r' })).map(
    (answer) => 'found' in answer && answer.found.type === 'reply' && answer.found.value !== undefined,
  );
  assert.equal(
    kept,
    kept.map((_, n) => n >= 400),
  );
});

test('R-26: a day of sessions that come and go leaves the file within its bound', () => {
  const path = join(place.path, 'day.db');
  const maxBytes = 6 * 1024 * 1024;
  const { db, commit, ask } = openHere(path, { maxBytes, maxStreamEvents: 50, maxActorBytes: 64 * 1024 });
  const numbers = random(2);
  const hours = full ? 24 : 1;
  let [most, refused] = [0, 0];
  // Each minute ten sessions open, live for a quarter of an hour, and say a good deal.
  for (let minute = 0; minute < hours * 60; minute += 1) {
    for (let n = 0; n < 10; n += 1) {
      const id = `session/${minute}/${n}`;
      const writes = [actor(id, { kind: 'session', created: minute, expires: minute + 15 })];
      for (let seq = 1; seq <= 60; seq += 1) writes.push(event(id, 's', seq, data(200 + numbers() * 600)));
      if ('fault' in commit(...writes)) refused += 1;
    }
    ask({ type: 'sweep', now: minute });
    most = Math.max(most, statSync(path).size);
  }
  ask({ type: 'sweep', now: 1e9 });
  db.pragma('wal_checkpoint(TRUNCATE)');
  const left = statSync(path).size;
  const megabytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);
  process.stdout.write(
    `R-26: ${hours} h: at most ${megabytes(most)} MB of ${megabytes(maxBytes)}, ${megabytes(left)} MB left\n`,
  );
  assert.is(refused, 0);
  assert.ok(most <= maxBytes * 1.1, `${most}`);
  assert.ok(left <= 1024 * 1024, `${left}`);
});

test('R-18: a file that has reached its bound is full, and takes more once something is let go', () => {
  const path = join(place.path, 'bound.db');
  const { commit, ask, events } = openHere(path, { maxBytes: 1024 * 1024 });
  let n = 0;
  for (let answer = commit(actor('a0')); 'found' in answer && n < 1_000; n += 1)
    answer = commit(actor(`a${n}`, { expires: n }), event(`a${n}`, 's', 1, data(4_000)));
  assert.ok(n > 100 && n < 300, `${n}`);
  const refused = commit(event('a1', 's', 2, data(4_000)));
  assert.is('fault' in refused && refused.fault, 'full');
  assert.match('message' in refused ? refused.message : '', /raise maxBytes/);
  assert.is(events('a1', 's').length, 1);
  assert.ok(statSync(path).size <= 1024 * 1024 * 1.1);
  const swept = ask({ type: 'sweep', now: 50 });
  assert.ok('found' in swept && swept.found.type === 'sweep' && swept.found.value > 40, JSON.stringify(swept));
  assert.ok('found' in commit(event('a100', 's', 2, data(4_000))));
});
