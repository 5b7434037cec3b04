/** The contract of every store (D-11): tests that a store passes wherever it keeps its data. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { withCell } from '../../../src/core/protocol/cell.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import {
  type ActorRow,
  type ReplyWrite,
  type Store,
  StoreError,
  type TimerChoice,
  type TimerPlace,
  type Write,
} from '../../../src/core/store/store.ts';
import { suite } from '../../harness/door.ts';
import { random } from '../../harness/scale.ts';
import { actor, event, host, row } from './support.ts';

/** The fault with which some work fails; `none` if it succeeds. */
export async function faultOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return error instanceof StoreError ? error.fault : String(error);
  }
  return 'none';
}

const seqs = async (store: Store, id: string, stream: string, after = 0, limit = 100): Promise<number[]> =>
  (await store.events(id, stream, after, limit)).map(({ seq }) => seq);

const timer = (id: string, name: string, due: number): Write => ({
  type: 'timer',
  timer: { actor: id, timer: name, due, data: `"${name}"` },
});

const reply = (id: string, request: string, expires: number): ReplyWrite => ({
  type: 'reply',
  actor: id,
  request,
  data: `"${request}"`,
  expires,
});

const RUNS = random(400);

/** Actors, streams, timers and requests of random batches: few, so that writes meet. */
const ACTORS = ['law/0', 'law/1', 'law/2'];
const NAMES = ['a', 'b'];

function changes(): fc.Arbitrary<Write> {
  const id = fc.constantFrom(...ACTORS);
  const name = fc.constantFrom(...NAMES);
  const number = fc.integer({ min: 1, max: 6 });
  const data = fc.constantFrom('', '"é"', '{"n":1}', '"\\u0000"');
  return fc.oneof(
    fc
      .tuple(id, name, number)
      .map(([id, status, created]) => actor(id, { status, created, kind: 'task', name: 'law' })),
    fc.tuple(id, data, name).map(([id, data, version]): Write => ({ type: 'snapshot', actor: id, version, data })),
    fc.tuple(id, name, number, data).map(([id, stream, seq, data]) => event(id, stream, seq, data)),
    fc.tuple(id, name, number).map(([id, stream, upto]): Write => ({ type: 'trim', actor: id, stream, upto })),
    fc.tuple(id, name, data).map(([id, request, data]): Write => ({ ...reply(id, request, 9e12), data })),
    fc.tuple(id, name, number).map(([id, name, due]) => timer(id, name, due)),
    fc.tuple(id, name).map(([id, timer]): Write => ({ type: 'timer off', actor: id, timer })),
    id.map((id): Write => ({ type: 'forget', actor: id })),
  );
}

/** All that can be read of these actors. */
async function readOf(store: Store): Promise<unknown> {
  const read: unknown[] = [(await store.list({ kind: 'task', name: 'law', limit: 9 })).map(({ id }) => id)];
  for (const id of ACTORS) {
    const { timers = [], ...stored } = (await store.load(id)) ?? {};
    read.push(
      stored,
      [...timers].sort((a, b) => (a.timer < b.timer ? -1 : 1)),
    );
    read.push([...(await store.streams(id))].sort((a, b) => (a.stream < b.stream ? -1 : 1)));
    for (const name of NAMES) {
      read.push(await store.reply(id, name));
      for (const after of [0, 2, 4])
        read.push(await store.events(id, name, after, 9).catch(({ fault }: StoreError) => fault));
    }
  }
  return read;
}

/** Registers the tests of the contract for one kind of store. */
export function contract(name: string, make: () => Store | Promise<Store>, suiteOf = suite): void {
  const test = suiteOf(`D-11, the contract of a store: ${name}`);
  let store: Store;
  test.before(async () => {
    store = await make();
    await store.open(host());
  });
  test.after(() => store.close());

  test('an actor is loaded as it was kept: the last row, the last snapshot, its timers', async () => {
    await store.commit([
      actor('load', { status: 'new', expires: 7.5, principal: 'zoë', created: 3.25 }),
      { type: 'snapshot', actor: 'load', version: '1', data: '{"n":1}' },
      { type: 'snapshot', actor: 'load', version: '2', data: '' },
      timer('load', 'a', 10.5),
      timer('load', 'b', 20),
    ]);
    await store.commit([actor('load', { status: 'old' }), { type: 'timer off', actor: 'load', timer: 'b' }]);
    const stored = await store.load('load');
    assert.equal(stored?.actor.status, 'old');
    assert.is(stored?.actor.expires, undefined);
    assert.equal(stored?.snapshot, { version: '2', data: '' });
    assert.equal(stored?.timers, [{ actor: 'load', timer: 'a', due: 10.5, data: '"a"' }]);
    assert.is(await store.load('nobody'), undefined);
  });

  test('a read sees what was committed before it, without waiting for that', async () => {
    const kept = store.commit([actor('soon'), { type: 'snapshot', actor: 'soon', version: '1', data: '1' }]);
    const again = store.commit([{ type: 'snapshot', actor: 'soon', version: '1', data: '2' }, event('soon', 's', 1)]);
    assert.is((await store.load('soon'))?.snapshot?.data, '2');
    assert.equal(await seqs(store, 'soon', 's'), [1]);
    await Promise.all([kept, again]);
  });

  test('a list is in order of age, continues after a row, and has only the requested rows', async () => {
    const rows: ActorRow[] = [];
    for (let n = 0; n < 25; n += 1) {
      const row = actor(`list/${String(n).padStart(2, '0')}`, {
        kind: 'task',
        name: n % 2 ? 'odd' : 'even',
        principal: n % 3 ? 'ann' : 'bob',
        created: Math.floor(n / 5),
      });
      await store.commit([row]);
      if (row.type === 'actor') rows.push(row.actor);
    }
    const pages: string[] = [];
    for (let after: ActorRow | undefined; ; ) {
      const page = await store.list({ kind: 'task', limit: 4, after });
      pages.push(...page.map(({ id }) => id));
      after = page.at(-1);
      if (page.length < 4) break;
    }
    assert.equal(
      pages,
      rows.map(({ id }) => id),
    );
    const some = await store.list({ kind: 'task', name: 'odd', principal: 'bob', limit: 3, after: rows[3] });
    assert.equal(
      some.map(({ id }) => id),
      ['list/09', 'list/15', 'list/21'],
    );
    assert.equal(await store.list({ kind: 'server', limit: 5 }), []);
  });

  test('events are read after one, in pages, with what was written', async () => {
    const writes = [1, 2, 5, 9].map((seq) => event('events', 'out', seq, seq === 5 ? '' : `"é${seq}"`));
    await store.commit([actor('events'), ...writes, event('events', 'in', 1)]);
    assert.equal(await seqs(store, 'events', 'out'), [1, 2, 5, 9]);
    assert.equal(await seqs(store, 'events', 'out', 2, 1), [5]);
    assert.equal(await seqs(store, 'events', 'out', 9), []);
    const [last] = await store.events('events', 'out', 5, 5);
    assert.equal(last, { stream: 'out', seq: 9, kind: 'said', data: '"é9"' });
    const streams = [...(await store.streams('events'))].sort((a, b) => (a.stream < b.stream ? -1 : 1));
    assert.equal(streams, [
      { stream: 'in', first: 1, last: 1, purged: 0 },
      { stream: 'out', first: 1, last: 9, purged: 0 },
    ]);
  });

  test('R-26: purged events are distinguished from events that never existed', async () => {
    await store.commit([actor('gone'), ...[1, 2, 3, 4].map((seq) => event('gone', 's', seq))]);
    await store.commit([{ type: 'trim', actor: 'gone', stream: 's', upto: 2 }]);
    assert.equal(await seqs(store, 'gone', 's', 2), [3, 4]);
    assert.equal(await seqs(store, 'gone', 's', 0), [3, 4]);
    assert.is(await faultOf(store.events('gone', 's', 1, 10)), 'purged');
    assert.equal(await store.streams('gone'), [{ stream: 's', first: 3, last: 4, purged: 2 }]);
    await store.commit([{ type: 'trim', actor: 'gone', stream: 's', upto: 99 }]);
    assert.equal(await store.streams('gone'), []);
    assert.equal(await seqs(store, 'gone', 's', 4), []);
    assert.is(await faultOf(store.events('gone', 's', 3, 10)), 'purged');
    assert.is(await faultOf(store.events('gone', 'never', 3, 10)), 'purged');
    assert.equal(await seqs(store, 'gone', 'never'), []);
    await store.commit([event('gone', 's', 5)]);
    assert.equal(await seqs(store, 'gone', 's', 4), [5]);
  });

  test('a batch is kept whole or not at all, and one that cannot be kept takes no other with it', async () => {
    await store.commit([actor('whole'), event('whole', 's', 5)]);
    const good = store.commit([event('whole', 's', 6)]);
    const bad = store.commit([actor('half'), event('whole', 't', 1), event('whole', 's', 6)]);
    const next = store.commit([event('whole', 's', 7)]);
    assert.equal(await Promise.all([good, bad, next].map(faultOf)), ['none', 'failed', 'none']);
    assert.is(await store.load('half'), undefined);
    assert.equal(await seqs(store, 'whole', 't'), []);
    assert.equal(await seqs(store, 'whole', 's'), [5, 6, 7]);
    const anew: Write[] = [{ type: 'forget', actor: 'whole' }, actor('whole'), event('whole', 's', 1)];
    assert.is(await faultOf(store.commit(anew)), 'none');
    assert.equal(await seqs(store, 'whole', 's'), [1]);
  });

  test('replies are found by their request until they expire', async () => {
    await store.commit([actor('reply'), reply('reply', 'r1', 100), reply('reply', 'r2', 900)]);
    await store.commit([reply('reply', 'r2', 950)]);
    assert.is(await store.reply('reply', 'r1'), '"r1"');
    assert.is(await store.reply('reply', 'r3'), undefined);
    await store.sweep(500);
    assert.is(await store.reply('reply', 'r1'), undefined);
    assert.is(await store.reply('reply', 'r2'), '"r2"');
  });

  test('a reply may be written again, as it expires or later; an empty one lets go of it', async () => {
    const again = (data: string, expires: number): Write => ({
      type: 'reply',
      actor: 'again',
      request: 'r',
      data,
      expires,
    });
    await store.commit([actor('again'), again('begun', 900)]);
    for (const [data, expires] of [
      ['ended', 900],
      ['ended later', 950],
      ['ended later still', 950],
    ] as const) {
      await store.commit([again(data, expires)]);
      assert.is(await store.reply('again', 'r'), data);
    }
    await store.commit([again('', 950)]);
    assert.is(await store.reply('again', 'r'), undefined);
    await store.commit([again('anew', 950)]);
    assert.is(await store.reply('again', 'r'), 'anew');
  });

  test('R-01: a call is claimed once, in one step', async () => {
    const claim = (data: string) => ({ type: 'reply', actor: 'claim', request: 'r', data, expires: 900 }) as const;
    const [first, second] = await Promise.all([store.claim(claim('one')), store.claim(claim('two'))]);
    assert.equal([first, second], [undefined, 'one']);
    assert.is(await store.reply('claim', 'r'), 'one');
    await store.commit([claim('ended')]);
    assert.is(await store.claim(claim('three')), 'ended');
    await store.commit([claim('')]);
    assert.is(await store.claim(claim('four')), undefined);
    assert.is(await store.reply('claim', 'r'), 'four');
  });

  test('a swap stores a snapshot only in the place of the expected one, in one step', async () => {
    const swap = (version: string, expected: string | undefined) =>
      store.swap({
        actor: row('swapped', { kind: 'state', status: version }),
        snapshot: { version, data: `"${version}"` },
        expected,
      });
    const stored = async () => {
      const { actor, snapshot } = (await store.load('swapped')) ?? {};
      assert.is(actor?.status, snapshot?.version);
      return snapshot?.version;
    };
    assert.is(await swap('lost', 'unknown'), false);
    assert.is(await store.load('swapped'), undefined);
    assert.equal(await Promise.all(['a', 'b', 'c'].map((version) => swap(version, undefined))), [true, false, false]);
    assert.equal(await Promise.all(['d', 'e'].map((version) => swap(version, 'a'))), [true, false]);
    assert.is(await stored(), 'd');
    // In one group with the writes of others before and after it.
    const group = [
      store.commit([
        { type: 'snapshot', actor: 'swapped', version: 'f', data: '"f"' },
        actor('swapped', { status: 'f' }),
      ]),
      swap('g', 'd'),
      swap('h', 'f'),
      swap('i', 'h'),
      store.commit([{ type: 'forget', actor: 'swapped' }]),
      swap('j', 'i'),
      swap('k', undefined),
    ];
    assert.equal(await Promise.all(group), [undefined, false, true, true, undefined, false, true]);
    assert.is(await stored(), 'k');
    assert.is(await swap('l', undefined), false);
    assert.is(await swap('l', 'k'), true);
    assert.is(await stored(), 'l');
  });

  test('lists and timers of some cells have the actors of these cells only', async () => {
    const cells = [3, 700, 3, 1_023, 700, 3];
    const ids = cells.map((cell, n) => `task/${withCell(cell, `of-a-cell-number-${n}-----`.slice(0, 22))}`);
    const others = ['task/of-no-cell', `server/${withCell(3, 'x'.repeat(22))}`];
    await store.commit(
      [...ids, ...others].flatMap((id, n) => [
        actor(id, { kind: 'task', name: 'celled', created: 100 + n }),
        timer(id, 'due', 50 + n),
      ]),
    );
    const listed = async (asked: readonly number[] | undefined, limit: number, after?: ActorRow): Promise<string[]> => {
      const rows = await store.list({ kind: 'task', name: 'celled', cells: asked, limit, after });
      return rows.map(({ id }) => id);
    };
    const due = async (asked: readonly number[] | undefined, limit: number): Promise<string[]> =>
      (await store.timers(99, limit, { cells: asked })).flatMap((row) => (row.timer === 'due' ? [row.actor] : []));
    const of = (...asked: readonly number[]): string[] => ids.filter((_, n) => asked.includes(cells[n] ?? -1));
    assert.equal(await listed([3], 9), of(3));
    assert.equal(await listed([3, 1_023], 2), of(3, 1_023).slice(0, 2));
    const [, second] = await store.list({ kind: 'task', name: 'celled', limit: 2, cells: [3, 1_023] });
    assert.equal(await listed([3, 1_023], 9, second), of(3, 1_023).slice(2));
    assert.equal([await listed([], 9), await listed([4], 9)], [[], []]);
    assert.equal(await listed(undefined, 9), [...ids, ...others]);
    assert.equal(await due([3], 9), of(3));
    assert.equal(await due([700, 3], 3), of(700, 3).slice(0, 3));
    assert.equal(await due(undefined, 9), [...ids, ...others]);
    await store.commit([...ids, ...others].map((id): Write => ({ type: 'forget', actor: id })));
  });

  test('timers fall due in their order, the late ones too', async () => {
    await store.commit([actor('timers'), timer('timers', 'z', 3_000), timer('timers', 'y', 1_000)]);
    await store.commit([timer('timers', 'x', 2_000), timer('timers', 'y', 2_500)]);
    const due = (await store.timers(2_999, 10)).filter((row) => row.actor === 'timers');
    assert.equal(
      due.map(({ timer }) => timer),
      ['x', 'y'],
    );
    assert.is((await store.timers(9_999, 1)).length, 1);
  });

  test('timers are read page by page, in the order of dates, actors and names, also of some actors or cells only', async () => {
    const ids = ['pages/a', 'pages/b', 'pages2/c'];
    const at = 70_000;
    const writes = ids.flatMap((id) => [...['x', 'y'].map((name) => timer(id, name, at)), timer(id, 'w', at + 1)]);
    await store.commit([...ids.map((id) => actor(id)), ...writes]);
    const expected = [...ids.flatMap((id) => [`${id} x`, `${id} y`]), ...ids.map((id) => `${id} w`)];
    const read = async (choice: TimerChoice, limit: number): Promise<string[]> => {
      const found: string[] = [];
      for (let after: TimerPlace = { due: at, actor: '', timer: '' }; ; ) {
        const rows = await store.timers(at + 1, limit, { ...choice, after });
        found.push(...rows.map((row) => `${row.actor} ${row.timer}`));
        const last = rows.at(-1);
        if (!last || rows.length < limit) return found;
        after = last;
      }
    };
    for (const limit of [1, 2, 3, 9, 99]) {
      assert.equal(await read({}, limit), expected);
      assert.equal(
        await read({ prefix: 'pages/' }, limit),
        expected.filter((text) => text.startsWith('pages/')),
      );
      assert.equal(await read({ cells: [5] }, limit), []);
    }
    assert.equal(await store.timers(at, 9, { prefix: 'none/' }), []);
    assert.equal(
      (await store.timers(Number.MAX_SAFE_INTEGER, 1, { prefix: 'pages2/' })).map(({ timer }) => timer),
      ['x'],
    );
    await store.commit(ids.map((id): Write => ({ type: 'forget', actor: id })));
  });

  test('dead letters are returned the oldest first, and outlive their actor', async () => {
    const letters = [1, 2, 3].map((at) => ({
      actor: 'dead',
      mail: `m${at}`,
      error: 'no',
      attempts: 2,
      at,
      incident: 'i',
    }));
    await store.commit([actor('dead'), ...letters.map((letter): Write => ({ type: 'dead letter', letter }))]);
    await store.commit([{ type: 'forget', actor: 'dead' }]);
    assert.equal(await store.deadLetters(2), letters.slice(1));
  });

  test('an actor that is forgotten, or has expired, leaves nothing', async () => {
    const all = (id: string, expires: number | undefined): Write[] => [
      actor(id, { expires, kind: 'question' }),
      { type: 'snapshot', actor: id, version: '1', data: '{}' },
      event(id, '', 1),
      event(id, 's', 1),
      timer(id, 't', 1),
      reply(id, 'r', 9e12),
    ];
    await store.commit([...all('f1', undefined), ...all('f2', 10_000), ...all('f3', 10_001)]);
    await store.commit([{ type: 'forget', actor: 'f1' }]);
    assert.is(await store.sweep(10_000), 1);
    for (const id of ['f1', 'f2']) {
      assert.is(await store.load(id), undefined);
      assert.equal(await store.streams(id), []);
      assert.is(await store.reply(id, 'r'), undefined);
      assert.equal(
        (await store.timers(9e12, 100)).filter((row) => row.actor === id),
        [],
      );
    }
    assert.is((await store.load('f3'))?.snapshot?.data, '{}');
    assert.equal(
      (await store.list({ kind: 'question', limit: 9 })).map(({ id }) => id),
      ['f3'],
    );
  });

  test('random batches, alone and in groups, are kept and rejected as in memory', async () => {
    const inMemory = memoryStore();
    await inMemory.open(host());
    const batch = fc.array(changes(), { minLength: 1, maxLength: 5 });
    const groups = fc.array(fc.array(batch, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(groups, async (groups) => {
        for (const each of [store, inMemory])
          await each.commit(ACTORS.map((id): Write => ({ type: 'forget', actor: id })));
        for (const group of groups) {
          const faults = async (each: Store): Promise<readonly string[]> =>
            Promise.all(group.map((writes) => faultOf(each.commit(writes))));
          assert.equal(await faults(store), await faults(inMemory));
        }
        assert.equal(await readOf(store), await readOf(inMemory));
      }),
      { numRuns: RUNS },
    );
    await inMemory.close();
  });

  test('a commit after close() is rejected', async () => {
    const last = store.commit([actor('last')]);
    await store.close();
    assert.is(await faultOf(last), 'none');
    assert.is(await faultOf(store.commit([actor('late')])), 'closed');
  });
}
