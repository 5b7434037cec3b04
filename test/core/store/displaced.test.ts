/** A store whose file is removed, renamed or replaced while it is open: nothing is acknowledged, and nothing that is there now is touched. */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { type Store, StoreError } from '../../../src/core/store/store.ts';
import { sqlite } from '../../../src/features/sqlite/sqlite.ts';
import { SimulatedClock } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';
import { actor, folder, host } from './support.ts';

const test = suite('displaced files');
const place = folder();
test.after(place.remove);

type Host = ReturnType<typeof host>;

/** An open store with one acknowledged batch. */
async function opened(name: string, told: Host): Promise<{ readonly path: string; readonly store: Store }> {
  const path = join(place.path, name);
  const store = sqlite(path);
  await store.open(told);
  await store.commit([actor('a1')]);
  return { path, store };
}

async function failing(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => new Error('it was acknowledged'),
    (reason: unknown) => reason,
  );
  assert.instance(error, StoreError, String(error));
  assert.is(error instanceof StoreError && error.fault, 'failed');
  return String(error);
}

/** The bytes of every file whose name begins so, except the crash marker, which is this process's own. */
function bytesOf(path: string): Readonly<Record<string, string>> {
  const names = readdirSync(place.path).filter(
    (name) => join(place.path, name).startsWith(path) && !name.endsWith('-notes'),
  );
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(place.path, name), 'base64')]));
}

for (const [what, end, displace, words] of [
  ['removed', '', (path: string) => rmSync(path), /removed or renamed/],
  ['renamed', '', (path: string) => renameSync(path, join(place.path, `away ${path.length}`)), /removed or renamed/],
  [
    'replaced',
    '',
    (path: string) => {
      writeFileSync(`${path}.new`, 'a restored copy');
      renameSync(`${path}.new`, path);
    },
    /replaced by another file/,
  ],
  ['removed', '-wal', (path: string) => rmSync(`${path}-wal`), /removed or renamed/],
] as const)
  test(`R-52: acknowledges nothing after troupe.db${end} was ${what}, and the operator's log has it once`, async () => {
    const told = host();
    const { path, store } = await opened(`${what}${end}.db`, told);
    assert.is(store.impairment(), undefined);
    displace(path);
    const message = await failing(store.commit([actor('a2')]));
    assert.match(message, words);
    assert.match(message, `${path}${end} was`);
    assert.match(message, /restart this process$/);
    assert.is(await failing(store.commit([actor('a3')])), message);
    assert.is(await failing(store.load('a1')), message);
    assert.is(await failing(store.sweep(1)), message);
    assert.is(told.lines.length, 1);
    assert.is(store.impairment(), 'not open');
    assert.match(told.lines[0] ?? '', /^error: .* while the store was open/);
    await store.close();
  });

test('R-52: a sweep notices it in a store without writes, and so does the end of the store', async () => {
  const swept = await opened('swept.db', host());
  rmSync(swept.path);
  assert.match(await failing(swept.store.sweep(1)), /removed or renamed/);
  await swept.store.close();
  const told = host();
  const ended = await opened('ended.db', told);
  rmSync(ended.path);
  await ended.store.close();
  assert.match(told.lines.join('\n'), /^error: .*ended\.db was removed or renamed/);
});

test('R-52: the files that are there now stay byte for byte as they are', async () => {
  const { path, store } = await opened('theirs.db', host());
  for (const end of ['', '-wal', '-shm', '-mark', '.lock']) {
    writeFileSync(`${path}.new`, `the ${end} of a restored copy`);
    renameSync(`${path}.new`, `${path}${end}`);
  }
  const before = bytesOf(path);
  assert.is(Object.keys(before).length, 5);
  await failing(store.commit([actor('a2')]));
  await store.close();
  assert.equal(bytesOf(path), before);
});

test('R-52: a file that was replaced between two threads of the store is not opened', async () => {
  const clock = new SimulatedClock();
  let reported = (_: string): void => {};
  const report = new Promise<string>((resolve) => {
    reported = resolve;
  });
  const { path, store } = await opened('between.db', { clock, lines: [], log: (_, message) => reported(message) });
  // A version that is no text ends the thread, and the next one waits.
  await failing(store.commit(JSON.parse('[{"type":"snapshot","actor":"a1","version":5,"data":""}]')));
  assert.match(await report, /reopens the file in 100 ms/);
  const other = await opened('other.db', host());
  await other.store.close();
  for (const end of ['', '-mark']) renameSync(`${other.path}${end}`, `${path}${end}`);
  const before = bytesOf(path);
  const next = failing(store.commit([actor('a2')]));
  await clock.advance(100);
  assert.match(await next, /between\.db was replaced by another file/);
  assert.equal(bytesOf(path)['between.db'], before['between.db']);
  await store.close();
  assert.ok(existsSync(path));
});
