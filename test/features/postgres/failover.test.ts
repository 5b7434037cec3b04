/** A store whose primary is replaced: it finds the new one at once, and accepts neither a standby nor the former primary. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { type Store, StoreError } from '../../../src/core/store/store.ts';
import { postgres } from '../../../src/features/postgres/postgres.ts';
import { PostgresAddress } from '../../../src/features/postgres/postgres-address.ts';
import type { PostgresConnection } from '../../../src/features/postgres/postgres-connection.ts';
import { PrimaryTimeline } from '../../../src/features/postgres/primary-timeline.ts';
import { ReconnectingConnection } from '../../../src/features/postgres/reconnecting-connection.ts';
import { actor, event, host } from '../../core/store/support.ts';
import { fullOnly } from '../../harness/door.ts';
import { type Postgres, postgresSuite, startPostgres } from '../../harness/postgres.ts';
import { TcpProxy } from '../../harness/tcp-proxy.ts';
import { until } from '../../harness/wait.ts';

fullOnly('starts two databases; the quick test is the contract of the store');

const test = postgresSuite('failover of PostgreSQL');

let primary: Postgres;
let standby: Postgres;
let url: string;
test.before(async () => {
  primary = await startPostgres({ fsync: false });
  url = await primary.database();
  standby = await primary.standby();
});
test.after(async () => {
  await primary.stop();
  await standby.stop();
});

async function faultOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return error instanceof StoreError ? `${error.fault}: ${error.message}` : String(error);
  }
  return 'none';
}

test('D-03: an attempt to connect that hangs, as to a machine that is gone, does not hold up the next one', async () => {
  const hanging: Socket[] = [];
  const passing: Socket[] = [];
  let opened = 0;
  const door: Server = createServer((near) => {
    opened += 1;
    // The first connection is lost, and the three attempts after it never get an answer.
    if (opened > 1 && opened < 5) return void hanging.push(near);
    const far = connect(primary.port, '127.0.0.1');
    passing.push(near);
    for (const socket of [near, far]) socket.on('error', () => {});
    near.pipe(far).pipe(near);
  }).listen(0, '127.0.0.1');
  await once(door, 'listening');
  const address = door.address();
  assert.ok(address !== null && typeof address === 'object');
  const connections: PostgresConnection[] = [];
  const connection = new ReconnectingConnection(
    new PostgresAddress(url.replace(`:${primary.port}/`, `:${address.port}/`)),
    // Longer than this test may take.
    { connectMs: 600_000, answerMs: 600_000, prepares: true, application: 'test' },
    new PrimaryTimeline(),
    {
      prepare: () => Promise.resolve(),
      up: (current) => void connections.push(current),
      down: () => {},
      gaveUp: () => {},
    },
  );
  await connection.open(5_000);
  passing[0]?.destroy();
  await until(() => connections.length === 2);
  assert.is(hanging.length, 3);
  assert.is(connection.current, connections[1]);
  // An attempt that gets its answer later changes nothing.
  await connection.close();
  for (const socket of [...hanging, ...passing]) socket.destroy();
  door.close();
});

test('D-03: a standby is not accepted, not even by the connections that read: its data may be older than what was acknowledged', async () => {
  const there = url.replace(`:${primary.port}/`, `:${standby.port}/`);
  const read = postgres(there, { session: url, lockMs: 1 });
  assert.match(await faultOf(read.open(host())), /^failed: .* is a standby, and is accepted once it is promoted/);
  const both = postgres(there, { lockMs: 1 });
  assert.match(await faultOf(both.open(host())), /^failed: .* is a standby/);
});

test('D-03: a commit that hangs because the standby is away has an unknown outcome, and its session does not keep the store locked', async () => {
  const store = postgres(url, { answerMs: 5_000, outageMs: 50 });
  await store.open(host());
  await store.commit([actor('hangs'), event('hangs', 's', 1)]);
  await standby.kill();
  assert.match(await faultOf(store.commit([event('hangs', 's', 2)])), /^failed: .* unknown whether/);
  await until(() => store.impairment() === undefined);
  await standby.start();
  await store.commit([event('hangs', 's', 3)]);
  // PostgreSQL keeps a commit that no standby has confirmed.
  assert.equal(
    (await store.events('hangs', 's', 0, 9)).map(({ seq }) => seq),
    [1, 2, 3],
  );
  await store.close();
});

test('D-03: a store is not ready before it can read again', async () => {
  const cable = await TcpProxy.open(primary.port);
  const store: Store = postgres(url.replace(`:${primary.port}/`, `:${cable.port}/`), { session: url, outageMs: 50 });
  await store.open(host());
  await store.commit([actor('reads')]);
  cable.cut();
  cable.reset();
  await until(() => store.impairment() === 'not open');
  await store.commit([event('reads', 's', 1)]);
  assert.match(await faultOf(store.load('reads')), /^busy: /);
  cable.heal();
  await until(() => store.impairment() === undefined);
  assert.is((await store.events('reads', 's', 0, 9)).length, 1);
  await store.close();
  await cable.close();
});

test('D-03: a store follows a promotion although its connections to the former primary hang, and never returns to that one', async () => {
  const [writes, reads] = [await TcpProxy.open(primary.port), await TcpProxy.open(primary.port)];
  const through = (cable: TcpProxy): string => url.replace(`:${primary.port}/`, `:${cable.port}/`);
  const to = host();
  const store: Store = postgres(through(reads), {
    session: through(writes),
    outageMs: 50,
    readers: 1,
    answerMs: 600_000,
  });
  await store.open(to);
  await store.commit([actor('a'), event('a', 's', 1)]);
  // The machine of the primary is cut off. It still runs, alone.
  writes.cut();
  const late = faultOf(store.commit([event('a', 's', 2)]));
  await standby.promote();
  writes.divert(standby.port);
  reads.lead(standby.port);
  assert.match(await late, /^failed: the connection to the database was lost/);
  await until(() => store.impairment() === undefined);
  await store.commit([event('a', 's', 3)]);
  // A careless operator leads the nodes back, and lets the former primary commit without a standby.
  await primary.query('ALTER SYSTEM RESET synchronous_standby_names');
  await primary.query('SELECT pg_reload_conf()');
  writes.lead(primary.port);
  await until(() => to.lines.some((line) => line.includes('is a former primary')));
  assert.match(await faultOf(store.commit([event('a', 's', 4)])), /^busy: /);
  assert.is(to.lines.filter((line) => line.includes('is a former primary')).length, 1);
  writes.lead(standby.port);
  await until(() => store.impairment() === undefined);
  await store.commit([event('a', 's', 5)]);
  assert.equal(
    (await store.events('a', 's', 0, 9)).map(({ seq }) => seq),
    [1, 3, 5],
  );
  await store.close();
  for (const cable of [writes, reads]) await cable.close();
});
