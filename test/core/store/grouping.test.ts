/** Which writes share a transaction of the store's thread, and which do not wait for each other. */
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import * as assert from 'uvu/assert';
import type { Store } from '../../../src/core/store/store.ts';
import { sqlite } from '../../../src/features/sqlite/sqlite.ts';
import { suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { actor, event, folder, host } from './support.ts';

const test = suite('grouping of writes');
const place = folder();
test.after(place.remove);

async function opened(name: string): Promise<Store> {
  const store = sqlite(join(place.path, name));
  await store.open(host());
  return store;
}

/** Holds the messages to threads back. */
function holding() {
  const held: (() => void)[] = [];
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (this: Worker, ...mail: Parameters<typeof postMessage>) {
    held.push(() => postMessage.apply(this, mail));
  };
  return {
    held,
    release() {
      Worker.prototype.postMessage = postMessage;
      for (const send of held.splice(0)) send();
    },
  };
}

const reply = (request: number) =>
  ({ type: 'reply', actor: 'a', request: `r${request}`, data: 'ü', expires: 1 }) as const;

test('writes of several turns form one message while the thread has not answered the one before', async () => {
  const store = await opened('one.db');
  const { held, release } = holding();
  const commits = [store.commit([actor('a')])];
  try {
    for (let n = 1; n <= 20; n += 1) {
      await turn();
      commits.push(n % 2 === 0 ? store.commit([event('a', 's', n)]) : store.commit([reply(n)]));
    }
    await turn();
    assert.is(held.length, 1);
  } finally {
    release();
  }
  await Promise.all(commits);
  assert.is((await store.events('a', 's', 0, 100)).length, 10);
  assert.is(await store.reply('a', 'r19'), 'ü');
  await store.close();
});

test('many writes do not wait for the message before', async () => {
  const store = await opened('many.db');
  const { held, release } = holding();
  const commits = [store.commit([actor('a')])];
  try {
    await turn();
    for (let n = 1; n <= 300; n += 1) commits.push(store.commit([event('a', 's', n)]));
    await turn();
    assert.is(held.length, 2);
  } finally {
    release();
  }
  await Promise.all(commits);
  assert.is((await store.events('a', 's', 0, 1_000)).length, 300);
  await store.close();
});

test('claims travel with other replies: a request has one claim, and the other claims get its data', async () => {
  const store = await opened('claims.db');
  const claim = (request: number, data: string) => store.claim({ ...reply(request), data });
  const asked = [
    claim(1, 'first'),
    store.commit([reply(2), event('a', 's', 1)]),
    claim(1, 'second'),
    claim(2, 'third'),
  ];
  assert.equal(await Promise.all(asked), [undefined, undefined, 'first', 'ü']);
  await store.close();
});

/** Rows that a sweep deletes in several pieces. */
const ROWS = atScale({ quick: 4_000, full: 10_000, proof: 10_000 });

test.full('a write does not wait for a sweep', async () => {
  const store = await opened('sweep.db');
  await store.commit(Array.from({ length: ROWS }, (_, n) => actor(`a${n}`, { expires: 1 })));
  let swept = 0;
  const sweep = store.sweep(2).then((gone) => {
    swept = gone;
  });
  await store.commit([actor('b')]);
  let commits = 0;
  while (swept === 0) {
    await store.commit([actor('b')]);
    commits += 1;
  }
  await sweep;
  assert.is(swept, ROWS);
  assert.ok(commits > 1, `${commits} commits during the sweep`);
  await store.close();
});
