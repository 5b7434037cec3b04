/** Membership in PostgreSQL: which node owns a cell and which node is dead, with real processes and a real database. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import pg from 'pg';
import * as assert from 'uvu/assert';
import type { Member } from '../../../src/core/store/membership.ts';
import { StoreError } from '../../../src/core/store/store.ts';
import { ClusterTables } from '../../../src/features/postgres/cluster-tables.ts';
import { PostgresAddress } from '../../../src/features/postgres/postgres-address.ts';
import { PostgresConnection } from '../../../src/features/postgres/postgres-connection.ts';
import { PostgresMember } from '../../../src/features/postgres/postgres-member.ts';
import { ensureSchema } from '../../../src/features/postgres/postgres-schema.ts';
import { PrimaryTimeline } from '../../../src/features/postgres/primary-timeline.ts';
import { WriteFence } from '../../../src/features/postgres/write-fence.ts';
import type { Command, Report } from '../../fixtures/postgres/member.ts';
import { compiled } from '../../harness/compiled.ts';
import { fullOnly } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { type Postgres, postgresSuite, startPostgres } from '../../harness/postgres.ts';
import { atScale } from '../../harness/scale.ts';
import { TcpProxy } from '../../harness/tcp-proxy.ts';
import { HANG_MS, until } from '../../harness/wait.ts';

fullOnly('races for the rows of a database; the quick test is the contract of the store');

const test = postgresSuite('membership in PostgreSQL');
const LEASE_MS = 2_000;
/** One of several nodes that race wins each cell. */
const RACES = atScale({ quick: 300, full: 300, proof: 10_000 });

let server: Postgres;
let url: string;
const members: Member[] = [];
const children: ChildProcess[] = [];

test.before(async () => {
  // What a commit leaves to the database's own time is not written within a test.
  server = await startPostgres({ fsync: false, settings: { wal_writer_delay: 10_000 } });
});
test.beforeEach(async () => {
  url = await server.database();
  const options = { connectMs: HANG_MS, answerMs: HANG_MS, prepares: true, application: 'test' };
  const connection = await PostgresConnection.open(new PostgresAddress(url), options);
  await ensureSchema(connection, 'troupe', 'test');
  await connection.close();
});
test.afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await Promise.all(members.splice(0).map((member) => member.leave()));
});
test.after(() => server.stop());

interface Joined {
  readonly member: Member;
  readonly fence: WriteFence;
  /** The reasons of all calls of `lost`. */
  readonly lost: readonly string[];
  /** Number of calls of `changed`. */
  readonly changes: () => number;
}

async function join(address = '127.0.0.1:7401', through = url): Promise<Joined> {
  const lost: string[] = [];
  let changes = 0;
  const fence = new WriteFence(() => {});
  const primary = new PrimaryTimeline();
  const seat = {
    ...{ address: new PostgresAddress(through), schema: 'troupe', joinMs: HANG_MS },
    ...{ primary, fence },
  };
  const member = await PostgresMember.join(
    seat,
    { address, version: '1.0.0' },
    {
      changed() {
        changes += 1;
      },
      lost: (why) => void lost.push(why),
    },
  );
  members.push(member);
  return { member, fence, lost, changes: () => changes };
}

test('a copy of the database, whose tables have the same numbers, keeps its transactions', async () => {
  const { pathname } = new URL(url);
  const copy = `${url.slice(0, url.lastIndexOf(pathname))}/copy${url.slice(url.lastIndexOf(pathname) + pathname.length)}`;
  await server.query(`CREATE DATABASE copy TEMPLATE ${pathname.slice(1)}`);
  const options = { connectMs: HANG_MS, answerMs: HANG_MS, prepares: true, application: 'test' };
  const open = (at: string): Promise<PostgresConnection> => PostgresConnection.open(new PostgresAddress(at), options);
  const [here, there] = [await open(url), await open(copy)];
  const tables = new ClusterTables('troupe', 'one');
  const begin = async (connection: PostgresConnection): Promise<void> => {
    await connection.run('BEGIN');
    await connection.run('SELECT FROM troupe.node FOR SHARE');
  };
  await Promise.all([begin(here), begin(there)]);
  const judge = await open(url);
  const idle =
    "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND state_change < now() - interval '1.1 s'";
  // Until both count as abandoned.
  while ((await server.query(idle)).length < 2);
  await tables.endAbandoned(judge);
  await here.ended;
  await there.run('COMMIT');
  assert.is(there.failure, undefined);
  await Promise.all([there.close(), judge.close()]);
});

/** A member in a process of its own. */
async function joinChild(): Promise<{
  readonly child: ChildProcess;
  readonly id: string;
  readonly lost: readonly string[];
  claim(cells: readonly number[]): Promise<void>;
  command(command: Command): void;
}> {
  const child = fork(compiled('test/fixtures/postgres/member.ts'), [url], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  children.push(child);
  const lost: string[] = [];
  child.on('message', (report: Report) => {
    if (report.type === 'lost') lost.push(report.why);
  });
  const [joined] = (await once(child, 'message')) as [Report];
  if (joined.type !== 'joined') throw new Error(`expected joined, got ${joined.type}`);
  const command = (command: Command): void => void child.send(command);
  return {
    child,
    id: joined.id,
    lost,
    command,
    async claim(cells) {
      command({ type: 'claim', cells });
      await once(child, 'message');
    },
  };
}

/** Asks until the database fences the node. @returns the milliseconds that it took */
async function fenced(member: Member, node: string): Promise<number> {
  const began = performance.now();
  await until(() => member.fence(node).catch(() => false), `${node} to be fenced`);
  return performance.now() - began;
}

/** Resolves when this member may judge others: it was connected for longer than the lease. */
async function steady({ member }: Joined): Promise<void> {
  await fenced(member, 'a node that was never there');
}

async function joinAndKill(): Promise<{ readonly id: string }> {
  const child = await joinChild();
  child.child.kill('SIGKILL');
  await once(child.child, 'exit');
  return child;
}

const outcome = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof StoreError ? error.fault : String(error)),
  );

test('a node sees its peers, owns what it claims, and leaves its cells free', async () => {
  const a = await join('127.0.0.1:1');
  const b = await join('127.0.0.1:2');
  await a.member.refresh();
  assert.equal(a.member.peers(), [{ node: b.member.id, address: '127.0.0.1:2', version: '1.0.0', leaving: false }]);
  assert.equal(a.fence.node, a.member.id);
  assert.equal(await a.member.claim([3, 1, 2], undefined), [1, 2, 3]);
  assert.equal(await b.member.claim([3, 4], undefined), [4]);
  assert.equal(await b.member.claim([3], a.member.id), []);
  await b.member.refresh();
  assert.equal(
    [0, 1, 4].map((cell) => b.member.ownerOf(cell)),
    [undefined, a.member.id, b.member.id],
  );
  await a.member.release([1, 4], b.member.id);
  assert.is(a.member.ownerOf(1), b.member.id);
  await b.member.refresh();
  assert.equal(
    [1, 3, 4].map((cell) => b.member.ownerOf(cell)),
    [b.member.id, a.member.id, b.member.id],
  );
  await a.member.release([3], 'a node that was never there');
  await a.member.claim([9], undefined);
  await b.member.refresh();
  assert.is(b.member.ownerOf(3), undefined);
  await a.member.retire();
  await b.member.refresh();
  assert.equal(
    b.member.peers().map(({ leaving }) => leaving),
    [true],
  );
  const before = b.changes();
  await a.member.leave();
  await b.member.refresh();
  assert.equal(b.member.peers(), []);
  assert.is(b.member.ownerOf(9), undefined);
  assert.ok(b.changes() > before);
  assert.is(await outcome(a.member.claim([9], undefined)), 'fenced');
  assert.equal([a.lost, b.lost], [[], []]);
  // Late by as much as the machine delays a beat.
  assert.ok(Math.abs(b.member.date() - Date.now()) < 10_000);
});

test('D-06: of the nodes that race for a cell, exactly one wins it', async () => {
  const racers = [await join(), await join(), await join()];
  const cells = Array.from({ length: 50 }, (_, cell) => cell);
  for (let races = 0; races < RACES; races += cells.length) {
    const won = await Promise.all(
      racers.map(async ({ member }, index) => {
        // Each begins at another cell, and all meet.
        const order = [...cells.slice(index * 17), ...cells.slice(0, index * 17)];
        return (await Promise.all(order.map((cell) => member.claim([cell], undefined)))).flat();
      }),
    );
    assert.equal(
      won.flat().sort((a, b) => a - b),
      cells,
    );
    for (const [index, { member }] of racers.entries()) await member.release(won[index] ?? [], undefined);
  }
});

test('D-12: a node is fenced at once when its process is killed, and never while it runs', async () => {
  const a = await join();
  await steady(a);
  const b = await joinChild();
  await b.claim([1, 2]);
  assert.not(await a.member.fence(b.id));
  assert.equal(await a.member.claim([1], undefined), []);
  b.child.kill('SIGKILL');
  await once(b.child, 'exit');
  // Its lease does not end within this test.
  await server.query(
    `UPDATE troupe.beat SET at = at + interval '1 hour', loop_at = loop_at + interval '1 hour' WHERE node = '${b.id}'`,
    url,
  );
  assertFigure(await fenced(a.member, b.id), LEASE_MS / 10, 'D-12, fenced after a kill');
  assert.equal(await a.member.claim([1, 2], b.id), [1, 2]);
  assert.is(a.lost.length, 0);
});

test('a paused node is fenced after its lease without being asked about, and says so once when it runs again', async () => {
  const a = await join();
  await steady(a);
  const b = await joinChild();
  await b.claim([1]);
  await a.member.refresh();
  b.child.kill('SIGSTOP');
  const began = performance.now();
  await until(() => !a.member.peers().some(({ node }) => node === b.id));
  assertFigure(performance.now() - began, LEASE_MS + 500, 'fenced after a pause');
  assert.equal(await a.member.claim([1], b.id), [1]);
  b.child.kill('SIGCONT');
  await until(() => b.lost.length > 0);
  await a.member.refresh();
  assert.is(b.lost.length, 1);
});

test('a node without its database is fenced after its lease, and lets go of everything once it is back', async () => {
  const cable = await TcpProxy.open(server.port);
  const a = await join();
  const b = await join('127.0.0.1:2', url.replace(`:${server.port}/`, `:${cable.port}/`));
  await steady(a);
  assert.equal(await b.member.claim([1], undefined), [1]);
  assert.ok(b.member.connected());
  cable.cut();
  const began = performance.now();
  const claim = outcome(b.member.claim([2], undefined));
  await until(() => !a.member.peers().some(({ node }) => node === b.member.id));
  assertFigure(performance.now() - began, LEASE_MS + 500, 'fenced after a cut');
  assert.equal(b.lost, []);
  await until(() => !b.member.connected());
  cable.heal();
  await until(() => b.lost.length > 0);
  assert.is(await claim, 'fenced');
  assert.is(b.fence.node, undefined);
  assert.equal(await a.member.claim([1, 2], undefined), [1, 2]);
  await a.member.refresh();
  assert.is(b.lost.length, 1);
  await cable.close();
});

test('N3: to fence a node waits for its commits under way', async () => {
  const a = await join();
  await steady(a);
  const { id } = await joinAndKill();
  const commit = new pg.Client({ connectionString: url });
  await commit.connect();
  await commit.query('BEGIN');
  await commit.query('SELECT id FROM troupe.node WHERE id = $1 AND NOT fenced FOR SHARE', [id]);
  let fenced = false;
  const fencing = a.member.fence(id).then((done) => {
    fenced = done;
  });
  const waiting = "SELECT FROM pg_stat_activity WHERE application_name = 'troupe member' AND wait_event_type = 'Lock'";
  let waits = false;
  while (!waits) waits = (await server.query(waiting)).length > 0;
  assert.not(fenced);
  await commit.query('COMMIT');
  await fencing;
  assert.ok(fenced);
  await commit.end();
});

test('a node that was paused within a commit is fenced all the same', async () => {
  const a = await join();
  await steady(a);
  const { id } = await joinAndKill();
  const commit = new pg.Client({ connectionString: url });
  const ended = new Promise((resolve) => commit.once('end', resolve));
  commit.on('error', () => {});
  await commit.connect();
  await commit.query('BEGIN');
  await commit.query('SELECT id FROM troupe.node WHERE id = $1 AND NOT fenced FOR SHARE', [id]);
  await fenced(a.member, id);
  await ended;
});

test('D-03, N1: a node still owns the cell that it has claimed right before the database is killed', async () => {
  const a = await join();
  assert.equal(await a.member.claim([7], undefined), [7]);
  await server.kill();
  await server.start();
  assert.equal(await server.query('SELECT node FROM troupe.cell WHERE n = 7', url), [{ node: a.member.id }]);
});

test('D-03: no node is fenced when the database is killed and started again', async () => {
  const [a, b] = [await join(), await join()];
  await a.member.claim([1], undefined);
  await steady(b);
  await server.kill();
  // `failed`: this statement met the end of its connection.
  assert.ok(['busy', 'failed'].includes(await outcome(b.member.claim([2], undefined))));
  await server.start();
  let answered = false;
  await until(() => {
    void b.member.claim([2], undefined).then(
      () => {
        answered = true;
      },
      () => {},
    );
    return answered;
  });
  assert.not(await b.member.fence(a.member.id));
  await steady(b);
  await a.member.refresh();
  assert.equal([a.lost, b.lost], [[], []]);
  assert.equal([a.member.ownerOf(1), a.member.ownerOf(2)], [a.member.id, b.member.id]);
});
