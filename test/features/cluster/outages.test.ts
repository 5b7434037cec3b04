/** Nodes on PostgreSQL: timers while their node dies and clocks differ, a database that is away, an event that ends its process, and the death of all. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { ask, openSession, type Session } from '../../core/http/support.ts';
import { startable } from '../../harness/compiled.ts';
import { timeLimit } from '../../harness/door.ts';
import { type Databases, Postgres, postgresSuite, sharedPostgres, startPostgres } from '../../harness/postgres.ts';
import { atScale, SCALE } from '../../harness/scale.ts';
import { elapse, until } from '../../harness/wait.ts';

const test = postgresSuite('nodes on PostgreSQL');
const FIXTURE = startable('test/fixtures/nodes/bells.ts');
const TIMERS = atScale({ quick: 8, full: 60, proof: 10_000 });
const PRINCIPALS = atScale({ quick: 3, full: 20, proof: 20 });
const LANES = 32;
const TEN_MINUTES = 600_000;
/** Timers that show how long the others take to set, and the least time for that in milliseconds. */
const TRIALS = atScale({ quick: 4, full: 20, proof: 20 });
const LEAST_DUE_MS = 3_000;
/** Attempts to set all timers before they are due, each with more time than the one before. */
const ATTEMPTS = 4;
timeLimit(atScale({ quick: 150_000, full: 300_000, proof: 600_000 }));

const OUTAGE_MS = atScale({ quick: 3_000, full: 3_000, proof: 28_000 });

const folder = mkdtempSync(join(tmpdir(), 'troupe-nodes-'));
const ledger = join(folder, 'ledger');
let database: Databases;
/** The server of this file, for the tests that kill it. */
function server(): Postgres {
  if (database instanceof Postgres) return database;
  throw new Error('expected a server of this file, got that of the run');
}
const nodes: Node[] = [];
test.before(async () => {
  // No test takes the power of its machine away. The tests that kill the server are left to the full run.
  database = SCALE === 'quick' ? await sharedPostgres() : await startPostgres({ fsync: false });
});
test.afterEach(async () => {
  for (const node of nodes.splice(0)) await node.kill();
});
test.after(async () => {
  await database.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Node {
  readonly child: ChildProcess;
  readonly url: string;
  readonly alive: boolean;
  kill(): Promise<void>;
}

/** @param ahead milliseconds by which its clock is ahead */
async function start(url: string, ahead = 0): Promise<Node> {
  const child = spawn(process.execPath, [FIXTURE, url, String(ahead), ledger], { stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = once(child, 'exit');
  let log = '';
  child.stderr.on('data', (data: Buffer) => {
    log += data.toString();
  });
  const [line] = await Promise.race([
    once(child.stdout, 'data'),
    exited.then(() => {
      throw new Error(`the node did not start: ${log}`);
    }),
  ]);
  const node: Node = {
    ...{ child, url: String(line).trim() },
    get alive() {
      return child.exitCode === null && child.signalCode === null;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
  nodes.push(node);
  return node;
}

/** Resolves when the nodes serve. */
async function ready(some: readonly Node[]): Promise<void> {
  for (const { url } of some)
    await until(
      async () => (await fetch(new URL('/readyz', url)).catch(() => undefined))?.status === 200,
      `${url} to be ready`,
    );
}

const seats = (url: string): Promise<readonly Record<string, unknown>[]> =>
  database.query('SELECT id, fenced FROM troupe.node ORDER BY id', url);

/** The session at another node. */
async function callAt(node: Node, session: Session, id: number, name: string, args: object): Promise<string> {
  const body = { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } };
  const answer = await ask(node.url, { headers: session.headers, body });
  return answer.text();
}

const rings = (prefix: string): readonly (readonly [name: string, at: number])[] =>
  existsSync(ledger)
    ? readFileSync(ledger, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith(prefix))
        .map((line) => [line.split(' ')[0] ?? '', Number(line.split(' ')[1])] as const)
    : [];

test('D-13, D-16: timers that fall due while their node is dead fire once, never early, though one clock is ten minutes ahead and the other behind', async () => {
  const url = await database.database();
  const [first, second] = [await start(url, TEN_MINUTES), await start(url, -TEN_MINUTES)];
  const sessions: Session[] = [];
  for (let n = 0; n < PRINCIPALS; n += 1)
    sessions.push(await openSession(first.url, '2025-11-25', { authorization: `p${n}` }));
  const set = async (count: number, msOf: () => number, prefix: string): Promise<void> => {
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let n = next++; n < count; n = next++) {
        const args = { ms: msOf(), name: `${prefix}${n}` };
        const answer = await sessions[n % PRINCIPALS]?.call(`${prefix}${n}`, 'bell_create', args);
        assert.match((await answer?.text()) ?? '', /"handle"/);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  };
  const from = performance.now();
  await set(TRIALS, () => TEN_MINUTES, 'trial');
  const expectedMs = ((performance.now() - from) * TIMERS) / TRIALS;
  let due = 0;
  let prefix = '';
  for (let attempt = 1; due - Date.now() < 200; attempt += 1) {
    assert.ok(attempt <= ATTEMPTS, 'the timers were due before all of them were set: the machine becomes ever slower');
    due = Date.now() + Math.max(LEAST_DUE_MS, Math.round(2 ** attempt * expectedMs));
    prefix = `bell${attempt}-`;
    await set(TIMERS, () => Math.max(1, due - Date.now()), prefix);
  }
  assert.equal(rings(prefix), []);
  await elapse(due - 100 - Date.now(), 'the timers are nearly due');
  await first.kill();
  await until(
    () => rings(prefix).length >= TIMERS,
    () => `${TIMERS} timers; ${rings(prefix).length} fired`,
  );
  const found = rings(prefix);
  const times = found.map(([, at]) => at - due);
  process.stdout.write(
    `D-16: ${found.length} of ${TIMERS} timers, from ${Math.min(...times)} to ${Math.max(...times)} ms after their time\n`,
  );
  assert.is(new Set(found.map(([name]) => name)).size, TIMERS);
  assert.is(found.length, TIMERS, 'a timer fired twice');
  // Two clocks of one machine, and what a message takes, differ by some milliseconds.
  assert.ok(Math.min(...times) >= -50, `a timer fired ${-Math.min(...times)} ms early`);
  assert.ok(second.alive);
});

// Each node is a process, whose start takes a second of processor time.
const testFull = SCALE === 'quick' ? () => {} : test;

testFull(
  'D-03: a database that is away for longer than the lease fences no node, and afterwards all of them serve',
  async () => {
    const url = await database.database();
    const both = [await start(url), await start(url)];
    const session = await openSession(both[0]?.url ?? '');
    const before = await seats(url);
    assert.is(before.length, 2);
    await server().kill();
    await elapse(OUTAGE_MS, 'the outage');
    await server().start();
    const from = performance.now();
    await ready(both);
    process.stdout.write(
      `D-03: ${both.length} nodes ready ${Math.round(performance.now() - from)} ms after the database\n`,
    );
    // Whoever would take the others for dead does so within a lease.
    await elapse(2_500, 'a node takes another for dead');
    assert.equal(await seats(url), before);
    for (const [index, node] of both.entries())
      assert.match(await callAt(node, session, index + 1, 'bell_create', { ms: 60_000, name: 'later' }), /"handle"/);
  },
);

testFull('D-15: an event that ends its process ends two nodes at most, and is a dead letter at the third', async () => {
  const url = await database.database();
  const three = [await start(url), await start(url), await start(url)];
  const [entry] = three;
  const session = await openSession(entry?.url ?? '');
  const made = await (await session.call(1, 'bell_create', { ms: 60_000, name: 'bomb' })).text();
  const handle = /"handle":"([^"]+)"/.exec(made)?.[1];
  assert.ok(handle, made);
  let answer = '';
  for (let id = 2; !answer.includes('quarantined'); id += 1) {
    assert.ok(id < 60, `expected a dead letter, got ${answer}`);
    const alive = three.filter((node) => node.alive);
    assert.ok(alive.length > 0, 'all nodes have died of one event');
    const node = alive[id % alive.length];
    // A new id each time: a client that does not know that its call was the cause.
    answer = node ? await callAt(node, session, id, 'bell_blow', { handle }).catch(String) : '';
    await elapse(100, 'a node ends');
  }
  assert.match(answer, /blow.{1,3}crashed this instance 2 times and was quarantined/);
  assert.is(three.filter((node) => node.alive).length, 1);
  const letters = await database.query('SELECT count(*)::int AS count FROM troupe.dead_letter', url);
  assert.equal(letters, [{ count: 1 }]);
});

testFull(
  'D-21: after all nodes and the database were killed at once, sessions, handles and results are there',
  async () => {
    const url = await database.database();
    const [first, second] = [await start(url), await start(url)];
    const sessions: (readonly [Session, string])[] = [];
    for (let n = 0; n < PRINCIPALS; n += 1) {
      const session = await openSession(n % 2 ? first.url : second.url, '2025-11-25', { authorization: `q${n}` });
      const name = `all${n}`;
      sessions.push([session, await (await session.call(1, 'bell_create', { ms: 60_000, name })).text()]);
    }
    await Promise.all([first.kill(), second.kill(), server().kill()]);
    await server().start();
    const again = [await start(url), await start(url)];
    for (const [index, [session, made]] of sessions.entries()) {
      const node = again[index % 2];
      assert.ok(node);
      // The call is known, and its result is the same.
      const args = /"handle":"([^"]+)"/.exec(made)?.[1];
      assert.ok(args, made);
      assert.match(await callAt(node, session, 2, 'bell_get', { handle: args }), /"rings":0/);
    }
  },
);
