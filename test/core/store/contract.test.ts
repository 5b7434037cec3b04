/** The contract of every store (D-11, with the tests of) in memory and in a file; postgres/postgres.test.ts has the same in PostgreSQL. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { StoreError } from '../../../src/core/store/store.ts';
import { sqlite } from '../../../src/features/sqlite/sqlite.ts';
import { Db } from '../../../src/features/sqlite/sqlite-database.ts';
import { suite } from '../../harness/door.ts';
import { contract, faultOf } from './contract.ts';
import { actor, event, folder, host } from './support.ts';

const place = folder();

contract('memory', memoryStore);
contract('sqlite', () => sqlite(join(place.path, 'contract.db')));

const test = suite('a store in a file');
test.after(place.remove);

test('it holds after close() what it held before', async () => {
  const path = join(place.path, 'again.db');
  const first = sqlite(path);
  await first.open(host());
  const kept = Array.from({ length: 50 }, (_, n) => first.commit([actor(`k${n}`), event(`k${n}`, 's', 1)]));
  await first.close();
  await Promise.all(kept);
  const second = sqlite(path);
  await second.open(host());
  assert.is((await second.list({ kind: 'handle', limit: 100 })).length, 50);
  await second.close();
});

test('waiting calls are limited: the next one is rejected with the name of the limit, and later ones are accepted', async () => {
  const store = sqlite(join(place.path, 'busy.db'), { maxWaiting: 3, maxWaitingLength: 10_000 });
  await store.open(host());
  const said = await Promise.all([1, 2, 3, 4, 5].map((n) => faultOf(store.commit([actor(`b${n}`)]))));
  assert.equal(said, ['none', 'none', 'none', 'busy', 'busy']);
  const long = (n: number): Promise<void> => store.commit([event('b1', 's', n, 'x'.repeat(9_000))]);
  assert.equal(await Promise.all([1, 2].map((n) => faultOf(long(n)))), ['none', 'busy']);
  assert.is(await faultOf(long(3)), 'none');
  await store.close();
});

test('a file that is no store is left as it is', async () => {
  const [text, other, later] = ['text.db', 'other.db', 'later.db'].map((name) => join(place.path, name));
  assert.ok(text && other && later);
  writeFileSync(text, 'not a database, but long enough to be taken for one '.repeat(40));
  const foreign = new Db(other);
  foreign.run('CREATE TABLE theirs(a)');
  foreign.close();
  const first = sqlite(later);
  await first.open(host());
  await first.close();
  const newer = new Db(later);
  newer.run('PRAGMA user_version = 99');
  newer.close();
  for (const [path, why] of [
    [text, /not an SQLite database\. Name another file/],
    [other, /another program's SQLite database\. Name another file/],
    [later, /got format 99, .* Use that version, or name another file/],
  ] as const) {
    const before = readFileSync(path);
    const store = sqlite(path);
    await store.open(host()).then(
      () => assert.unreachable(),
      (error: StoreError) => {
        assert.is(error.fault, 'foreign', path);
        assert.match(error.message, why);
      },
    );
    await store.close();
    assert.equal(readFileSync(path), before, path);
  }
});

test('an empty path is refused with what was expected', () => {
  assert.throws(() => sqlite(''), /expected the path of a file/);
});
