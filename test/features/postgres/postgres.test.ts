/** The store in PostgreSQL: the contract of every store (D-11), groups, locks, faults of the database, and what it never shows. */
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import type { Member } from '../../../src/core/store/membership.ts';
import { type Store, StoreError, type StoreHost, type Write } from '../../../src/core/store/store.ts';
import { postgres } from '../../../src/features/postgres/postgres.ts';
import { PostgresAddress } from '../../../src/features/postgres/postgres-address.ts';
import { PostgresConnection } from '../../../src/features/postgres/postgres-connection.ts';
import type { PostgresOptions } from '../../../src/features/postgres/postgres-options.ts';
import { resolvePostgresOptions } from '../../../src/features/postgres/postgres-options.ts';
import { OpenedPostgres } from '../../../src/features/postgres/postgres-store.ts';
import { contract, faultOf } from '../../core/store/contract.ts';
import { actor, event, host } from '../../core/store/support.ts';
import { type Postgres, postgresSuite, startPostgres } from '../../harness/postgres.ts';
import { HANG_MS, until } from '../../harness/wait.ts';

let started: Promise<Postgres> | undefined;
/** One server for all. No test takes the power of its machine away, so that it need not wait for the disk. */
const running = (): Promise<Postgres> => (started ??= startPostgres({ fsync: false }));

contract('postgres', async () => postgres(await (await running()).database()), postgresSuite);

const test = postgresSuite('a store in PostgreSQL');
let server: Postgres;
const opened: { close(): Promise<void> }[] = [];
test.before(async () => {
  server = await running();
});
test.afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});
test.after(() => server.stop());

async function open(url: string, options: Partial<PostgresOptions> = {}, to: StoreHost = host()): Promise<Store> {
  const store = postgres(url, options);
  opened.push(store);
  await store.open(to);
  return store;
}

const seqs = async (store: Store, id: string, stream: string): Promise<number[]> =>
  (await store.events(id, stream, 0, 10_000)).map(({ seq }) => seq);

test('a second process is rejected as locked, and its error names the first; afterwards the store opens with all its data', async () => {
  const url = await server.database();
  const first = await open(url);
  const last = Promise.all([first.commit([actor('a'), event('a', 's', 1)]), first.commit([event('a', 's', 2)])]);
  try {
    await open(url, { lockMs: 1 });
    assert.unreachable();
  } catch (error) {
    assert.ok(error instanceof StoreError);
    assert.is(error.fault, 'locked');
    assert.match(error.message, `:${process.pid}`);
  }
  await first.close();
  await last;
  const second = await open(url);
  assert.equal(await seqs(second, 'a', 's'), [1, 2]);
  await second.commit([event('a', 's', 3)]);
  assert.is(await faultOf(second.commit([event('a', 's', 3)])), 'failed');
});

test.full(
  'a batch that follows on the end of a group joins the next group, with the batches that waited for it',
  async () => {
    const url = await server.database();
    const store = await open(url);
    const following = ['a', 'b'].map(async (id) => {
      await store.commit([event(id, 's', 1)]);
      // A client sends its next request in a later turn.
      await new Promise(setImmediate);
      await store.commit([event(id, 's', 2)]);
    });
    // The first group leaves in this turn.
    await new Promise(setImmediate);
    await Promise.all([...following, store.commit([event('c', 's', 1)])]);
    const rows = await server.query('SELECT xmin::text AS id FROM troupe.event ORDER BY seq, actor', url);
    const transactions = [...new Set(rows.map(({ id }) => id))];
    assert.equal(
      rows.map(({ id }) => transactions.indexOf(id)),
      [0, 0, 1, 1, 1],
    );
  },
);

test.full('two schemas of one database are two stores', async () => {
  const url = await server.database();
  const [one, two] = [await open(url), await open(url, { schema: 'other' })];
  await one.commit([actor('a')]);
  assert.is(await two.load('a'), undefined);
});

test.full('tables of others and of a later version are foreign, and stay as they are', async () => {
  const [later, other] = [await server.database(), await server.database()];
  await (await open(later)).close();
  await server.query('UPDATE troupe.store SET version = 99', later);
  await server.query('CREATE SCHEMA troupe CREATE TABLE theirs(a int)', other);
  assert.is(await faultOf(open(later)), 'foreign');
  assert.is(await faultOf(open(other)), 'foreign');
  const tables = await server.query(`SELECT relname FROM pg_class WHERE relnamespace = 'troupe'::regnamespace`, other);
  assert.equal(tables, [{ relname: 'theirs' }]);
});

test.full(
  'a role that may not create the schema is rejected with the statement that helps, after which the store opens',
  async () => {
    const url = new URL(await server.database());
    await server.query('CREATE ROLE clerk LOGIN', url.href);
    const clerk = Object.assign(new URL(url), { username: 'clerk' });
    try {
      await open(clerk.href);
      assert.unreachable();
    } catch (error) {
      assert.ok(error instanceof StoreError);
      assert.match(error.message, 'permission denied for database');
      assert.match(error.message, 'CREATE SCHEMA troupe AUTHORIZATION role');
    }
    await server.query('CREATE SCHEMA troupe AUTHORIZATION clerk', url.href);
    await (await open(clerk.href)).commit([actor('a')]);
  },
);

test.full(
  'a batch that deletes an actor and creates it again is one transaction, beside others in its group',
  async () => {
    const store = await open(await server.database());
    await store.commit([actor('a'), event('a', 's', 7), actor('b')]);
    const replies: Write[] = [{ type: 'reply', actor: 'a', request: 'r', data: '1', expires: 9e12 }];
    await Promise.all([
      store.commit([event('a', 's', 8), ...replies]),
      store.commit([{ type: 'forget', actor: 'a' }, actor('a', { status: 'again' }), event('a', 's', 1)]),
      store.commit([event('a', 's', 2), { type: 'forget', actor: 'b' }]),
      store.commit([
        { type: 'forget', actor: 'a' },
        event('a', 's', 1),
        { type: 'trim', actor: 'a', stream: 's', upto: 1 },
      ]),
      store.commit([event('a', 's', 5)]),
    ]);
    assert.equal(await store.streams('a'), [{ stream: 's', first: 5, last: 5, purged: 1 }]);
    assert.equal(
      [await store.load('a'), await store.load('b'), await store.reply('a', 'r')],
      [undefined, undefined, undefined],
    );
  },
);

test('R-01: of many claims of one call, also in one group with other writes of its reply, one is first', async () => {
  const store = await open(await server.database());
  const claim = (data: string, request = 'r') => ({ type: 'reply', actor: 'c', request, data, expires: 9e12 }) as const;
  const found = await Promise.all([
    store.claim(claim('one')),
    store.claim(claim('two')),
    store.commit([claim('ended')]),
    store.claim(claim('three')),
    store.commit([claim('')]),
    store.claim(claim('four')),
    store.claim(claim('five')),
  ]);
  assert.equal(found, [undefined, 'one', undefined, 'ended', undefined, undefined, 'four']);
  const others = await Promise.all([store.claim(claim('x', 'q')), store.claim(claim('y', 'q'))]);
  assert.equal(others, [undefined, 'x']);
  assert.equal(await Promise.all([store.claim(claim('z', 'q')), store.claim(claim('w', 'q'))]), ['x', 'x']);
});

test.full('a reply stays in the page of its marker, so that no index is written for it', async () => {
  const url = await server.database();
  const store = await open(url);
  const pages = async (): Promise<readonly unknown[]> =>
    (await server.query('SELECT (ctid::text::point)[0] AS page FROM troupe.reply ORDER BY request', url)).map(
      ({ page }) => page,
    );
  const write = (length: number): Promise<void> =>
    store.commit(
      Array.from({ length: 500 }, (_, n) => ({
        type: 'reply',
        actor: `session/Ab.${'s'.repeat(43)}`,
        request: String(n).padStart(43, '0'),
        data: 'x'.repeat(length),
        expires: 9e12,
      })),
    );
  await write(60);
  const markers = await pages();
  await write(250);
  assert.ok(new Set(markers).size > 10);
  assert.equal(await pages(), markers);
});

test('a text that PostgreSQL cannot store comes back as it was, and spoils no group', async () => {
  const store = await open(await server.database());
  const id = 'nul\0\u0001/"\\{},NULL';
  await Promise.all([
    store.commit([actor(id, { principal: 'a\0b', name: '\u0001z' }), event(id, '\0', 1, '\ud800"\\')]),
    store.commit([actor('beside'), { type: 'timer', timer: { actor: id, timer: '\0', due: 0.5, data: '\0' } }]),
  ]);
  const stored = await store.load(id);
  assert.equal([stored?.actor.id, stored?.actor.principal, stored?.actor.name], [id, 'a\0b', '\u0001z']);
  assert.equal(stored?.timers, [{ actor: id, timer: '\0', due: 0.5, data: '\0' }]);
  assert.equal(await store.events(id, '\0', 0, 9), [{ stream: '\0', seq: 1, kind: 'said', data: '\ufffd"\\' }]);
  assert.equal((await store.list({ kind: 'handle', principal: 'a\0b', limit: 9 })).length, 1);
});

test.full('a gap in a stream is damage', async () => {
  const url = await server.database();
  const store = await open(url);
  await store.commit([1, 2, 3, 4].map((seq) => event('a', 's', seq)));
  await server.query(`DELETE FROM troupe.event WHERE seq = 3`, url);
  assert.is(await faultOf(store.events('a', 's', 0, 9)), 'corrupt');
  assert.is(await faultOf(store.events('a', 's', 2, 9)), 'corrupt');
  assert.is(await faultOf(store.events('a', 's', 3, 9)), 'none');
});

test.full(
  'events beyond the limits are deleted, the oldest first, and of a history only those that a snapshot covers',
  async () => {
    const url = await server.database();
    const store = await open(url, { maxStreamEvents: 8, maxActorBytes: 2_000 });
    const write = async (from: number, to: number, stream: string, data = ''): Promise<void> => {
      for (let seq = from; seq <= to; seq += 1) await store.commit([event('a', stream, seq, data)]);
    };
    const left = async (stream: string): Promise<number[]> => {
      await store.commit([]);
      return seqs(store, 'a', stream);
    };
    await write(1, 9, 's');
    assert.equal(await left('s'), [3, 4, 5, 6, 7, 8, 9]);
    assert.is(await faultOf(store.events('a', 's', 1, 9)), 'purged');
    await write(1, 9, '');
    assert.is((await left('')).length, 9);
    await store.commit([actor('a'), { type: 'snapshot', actor: 'a', version: '1', data: '{}' }]);
    await write(10, 10, '');
    assert.equal(await left(''), [4, 5, 6, 7, 8, 9, 10]);
    await write(1, 3, 'large', 'x'.repeat(700));
    assert.equal(await left('large'), [3]);
  },
);

test.full(
  'a sweep deletes what has expired in pieces, and replies, dead letters and streams beyond their limits',
  async () => {
    const url = await server.database();
    const limits = { maxActorReplies: 2, maxReplies: 5, maxDeadLetters: 2, maxActorStreams: 1 };
    const store = await open(url, limits);
    const reply = (id: string, request: number, expires: number): Write => ({
      ...{ type: 'reply', actor: id, request: String(request), data: '1', expires },
    });
    const letter = (at: number): Write => ({
      type: 'dead letter',
      letter: { actor: 'a', mail: '', error: '', attempts: 2, at, incident: '' },
    });
    await store.commit([
      ...Array.from({ length: 2_500 }, (_, n) => actor(`old${n}`, { expires: n })),
      event('old7', 's', 4),
      ...[1, 2, 3].map((n) => reply('crowd', n, 9e9 + n)),
      ...[1, 2, 3, 4, 5].map((n) => reply(`one${n}`, 1, 8e9 + n)),
      ...[1, 2, 3, 4].map(letter),
      ...['s', 't', 'u'].map((stream) => event('trimmed', stream, 1)),
    ]);
    await store.commit(['s', 't', 'u'].map((stream) => ({ type: 'trim', actor: 'trimmed', stream, upto: 1 }) as const));
    assert.is(await store.sweep(2_400), 2_401);
    assert.is((await store.list({ kind: 'handle', limit: 9_999 })).length, 99);
    const counts = await server.query(
      `SELECT (SELECT string_agg(actor || request, ' ' ORDER BY expires) FROM troupe.reply) AS replies, (SELECT count(*)::int FROM troupe.stream) AS streams`,
      url,
    );
    assert.equal(counts, [{ replies: 'one3' + '1 one41 one51 crowd2 crowd3', streams: 1 }]);
    assert.equal(
      (await store.deadLetters(9)).map(({ at }) => at),
      [3, 4],
    );
    await store.commit([event('old7', 's', 1)]);
    assert.equal(await seqs(store, 'old7', 's'), [1]);
  },
);

test.full('waiting batches are limited, and a failed one leaves the others alone', async () => {
  const store = await open(await server.database(), { maxWaiting: 3, maxWaitingLength: 10_000 });
  const said = await Promise.all([1, 2, 3, 4].map((n) => faultOf(store.commit([actor(`b${n}`)]))));
  assert.equal(said, ['none', 'none', 'none', 'busy']);
  const long = (n: number): Promise<void> => store.commit([event('b1', 's', n, 'x'.repeat(9_000))]);
  assert.equal(await Promise.all([1, 2].map((n) => faultOf(long(n)))), ['none', 'busy']);
  assert.is(await faultOf(long(3)), 'none');
});

test.full('a batch that the database rejects takes no other batch of its group with it', async () => {
  const url = await server.database();
  const store = await open(url);
  await store.commit([actor('a')]);
  await server.query(`ALTER TABLE troupe.actor ADD CHECK (status <> 'bad')`, url);
  const said = await Promise.all(
    ['good', 'bad', 'good'].map((status, n) =>
      faultOf(store.commit([actor(`g${n}`, { status }), event('a', 's', n + 1)])),
    ),
  );
  assert.equal(said, ['none', 'failed', 'none']);
  assert.equal(await seqs(store, 'a', 's'), [1, 3]);
});

test.full('settings that lose data, and a clock that differs, are warnings at the start', async () => {
  const url = await server.database();
  await server.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = off`);
  const to = host({ ...systemClock, date: () => systemClock.date() - 600_000 });
  await open(url, {}, to);
  assert.is(to.lines.length, 3, to.lines.join('\n'));
  // The server of this file.
  assert.match(to.lines[0] ?? '', /^warning: .*fsync is off/);
  assert.match(to.lines[1] ?? '', /^warning: .*synchronous_commit is off/);
  assert.match(to.lines[2] ?? '', /the clock of this machine is (59|60|61)\d{4} ms behind the database's/);
});

test('D-03, D-12: a killed database loses nothing that was acknowledged; while it is away calls are rejected as busy, and afterwards they pass', async () => {
  const url = await server.database();
  const to = host();
  const store = await open(url, { outageMs: 50 }, to);
  await store.commit([actor('a'), event('a', 's', 1)]);
  assert.is(store.impairment(), undefined);
  await server.kill();
  const [during, read] = await Promise.all([faultOf(store.commit([event('a', 's', 2)])), faultOf(store.load('a'))]);
  assert.ok(during === 'busy' || during === 'failed', during);
  assert.is(read, 'busy');
  assert.is(store.impairment(), 'not open');
  assert.is(await faultOf(store.commit([event('a', 's', 3)])), 'busy');
  await server.start();
  await until(() => store.impairment() === undefined);
  await store.commit([event('a', 's', 4)]);
  assert.equal(await seqs(store, 'a', 's'), [1, 4]);
  assert.match(to.lines.join('\n'), /the connection is lost.*connecting again\n.*connected again/);
});

test.full('a process that lost its connection stops for good if another one has used the store since', async () => {
  const url = await server.database();
  const to = host();
  const store = await open(url, { outageMs: 50 }, to);
  await server.query(`UPDATE troupe.store SET holder = 'another'`, url);
  await server.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name LIKE 'troupe %'`,
  );
  await until(() => to.lines.some((line) => line.includes('another process has used')));
  assert.is(await faultOf(store.commit([actor('a')])), 'locked');
  assert.is(store.impairment(), 'not open');
});

test('D-12, N2, N5: a node that is fenced commits nothing, and its store refuses every batch until it joins again', async () => {
  const url = await server.database();
  const address = new PostgresAddress(url);
  const addresses = { reads: address, session: address };
  const store = new OpenedPostgres(addresses, resolvePostgresOptions({}), { ...host(), shared: true });
  await store.open();
  opened.push(store);
  assert.is(await faultOf(store.commit([actor('early')])), 'fenced');
  for (const node of ['n1', 'n2'])
    await server.query(`INSERT INTO troupe.node(id, address, version, lock) VALUES('${node}', '', '', 1)`, url);
  let refused = 0;
  store.fence.join('n1', () => {
    refused += 1;
  });
  await store.commit([actor('a'), event('a', 's', 1)]);
  await server.query(`UPDATE troupe.node SET fenced = true WHERE id = 'n1'`, url);
  const late = [
    store.commit([event('a', 's', 2)]),
    store.commit([{ type: 'forget', actor: 'a' }, actor('a'), event('a', 's', 1)]),
  ];
  assert.equal(await Promise.all(late.map(faultOf)), ['fenced', 'fenced']);
  assert.is(refused, 1);
  assert.is(store.fence.node, undefined);
  store.fence.join('n2', () => {});
  await store.commit([event('a', 's', 2)]);
  assert.equal(
    (await store.events('a', 's', 0, 9)).map(({ seq }) => seq),
    [1, 2],
  );
});

test('D-06: two nodes share a store, one of them wins each cell, a process without cluster is rejected as locked, and a fenced node commits nothing', async () => {
  const url = await server.database();
  const shared = { ...host(), shared: true };
  const stores = [await open(url, {}, shared), await open(url, {}, shared)] as const;
  assert.is(await faultOf(open(url, { lockMs: 1 })), 'locked');
  const lost: string[] = [];
  const members: Member[] = [];
  for (const { nodes } of stores) {
    assert.ok(nodes);
    members.push(
      await nodes.join({ address: 'x', version: '1' }, { changed: () => {}, lost: (why) => void lost.push(why) }),
    );
  }
  const [one, two] = stores;
  // Each begins at another cell, and both meet.
  const cells = Array.from({ length: 20 }, (_, cell) => cell);
  const won = await Promise.all(
    members.map((member, index) => {
      const order = index === 0 ? cells : [...cells].reverse();
      return Promise.all(order.map((cell) => member.claim([cell], undefined)));
    }),
  );
  assert.equal(
    won.flat(2).sort((a, b) => a - b),
    cells,
  );
  await Promise.all([one.commit([actor('a'), event('a', 's', 1)]), two.commit([actor('b')])]);
  assert.equal(
    (await two.list({ kind: 'handle', limit: 9 })).map(({ id }) => id),
    ['a', 'b'],
  );
  await server.query(`UPDATE troupe.node SET fenced = true WHERE id = '${members[0]?.id}'`, url);
  assert.is(await faultOf(one.commit([event('a', 's', 2)])), 'fenced');
  assert.is(lost.length, 1);
  await two.commit([event('a', 's', 2)]);
  await Promise.all(members.map((member) => member.leave()));
});

test.full('N3: to fence a node waits for its commits under way', async () => {
  const url = await server.database();
  const address = new PostgresAddress(url);
  const options = { connectMs: HANG_MS, answerMs: HANG_MS, prepares: true, application: 'test' };
  await (await open(url)).close();
  await server.query(`INSERT INTO troupe.node(id, address, version, lock) VALUES('n', '', '', 1)`, url);
  const [commit, fence] = [
    await PostgresConnection.open(address, options),
    await PostgresConnection.open(address, options),
  ];
  opened.push(commit, fence);
  await commit.run('BEGIN; SELECT FROM troupe.node WHERE NOT fenced FOR SHARE');
  let isFenced = false;
  const fencing = fence.run('UPDATE troupe.node SET fenced = true').then(() => {
    isFenced = true;
  });
  const waits = `SELECT wait_event_type AS waits FROM pg_stat_activity WHERE query LIKE 'UPDATE troupe.node%'`;
  while ((await server.query(waits))[0]?.waits !== 'Lock') assert.is(isFenced, false);
  await commit.run('COMMIT');
  await fencing;
});

test.full('no log, error or name of the store contains the password, also where the database rejects it', async () => {
  const url = new URL(await server.database());
  url.username = 'stranger';
  url.password = 's3cret';
  const to = host();
  const store = postgres(url.href, { lockMs: 1_000 });
  try {
    await store.open(to);
    assert.unreachable();
  } catch (error) {
    assert.ok(error instanceof StoreError);
    assert.match(error.message, /role "stranger" does not exist/);
    assert.not.match([store.name, error.message, error.stack, JSON.stringify(error), ...to.lines].join('\n'), /s3cret/);
  }
});
