/** A server whose store is in PostgreSQL: its process is killed, its database is killed, or both. */
import * as assert from 'uvu/assert';
import { openSession, type Session, textIn } from '../../core/http/support.ts';
import { conclusive, fullOnly, timeLimit } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { type Postgres, postgresSuite, startPostgres } from '../../harness/postgres.ts';
import { atScale } from '../../harness/scale.ts';
import { until } from '../../harness/wait.ts';
import { DurableServer } from './process.ts';

fullOnly('kills processes beside a database; the quick tests of nodes are outages.test.ts and continuity.test.ts');

const test = postgresSuite('a server on PostgreSQL');
const KILLS = atScale({ quick: 1, full: 1, proof: 50 });
const CALLS = atScale({ quick: 20, full: 20, proof: 200 });
const SESSIONS = atScale({ quick: 20, full: 20, proof: 1_000 });
timeLimit(atScale({ quick: 60_000, full: 300_000, proof: 1_200_000 }));

let database: Postgres;
let server: DurableServer;
test.before(async () => {
  database = await startPostgres();
  server = new DurableServer({}, database.url);
  await server.start();
});
test.after(async () => {
  await server.remove();
  await database.stop();
});

const charge = (session: Session, id: number, round: string): ReturnType<Session['call']> =>
  session.call(id, 'charge', { key: `${round}-${id}`, ms: (id * 37) % 150 });

/** Calls in flight while something is killed. @returns the results that their client has */
async function killDuringCalls(
  session: Session,
  round: string,
  kill: () => Promise<void>,
): Promise<Map<number, string>> {
  const results = new Map<number, string>();
  const calls = Array.from({ length: CALLS }, async (_, index) => {
    try {
      const response = await (await charge(session, index + 1, round)).json();
      if (response.result) results.set(index + 1, textIn(response));
    } catch {
      // The process was killed before it had answered.
    }
  });
  await until(() => results.size > 0, 'a result');
  await kill();
  await Promise.all(calls);
  return results;
}

/** Repeats every call: a result is repeated, and no call runs twice. */
async function repeatAll(session: Session, round: string, results: ReadonlyMap<number, string>): Promise<void> {
  for (let id = 1; id <= CALLS; id += 1) {
    const known = results.get(id);
    const again = await (await charge(session, id, round)).json();
    if (known !== undefined) assert.is(textIn(again), known);
  }
  const keys = server.ran().filter((key) => key.startsWith(`${round}-`));
  conclusive(() => assert.is(new Set(keys).size, keys.length, 'a call ran twice'));
}

/** Resolves when the server is ready. @returns milliseconds */
async function ready(): Promise<number> {
  const from = performance.now();
  await until(async () => (await fetch(new URL('/readyz', server.url))).status === 200, 'the server to be ready');
  return performance.now() - from;
}

test('R-01, R-02: a killed process loses no result, no call runs twice, and its sessions exist without a new initialize', async () => {
  for (let round = 0; round < KILLS; round += 1) {
    const session = await openSession(server.url, '2025-11-25', { authorization: `p${round}` });
    const results = await killDuringCalls(session, `p${round}`, () => server.kill());
    await server.start();
    await repeatAll(session, `p${round}`, results);
  }
});

test('R-01, D-03: a killed database loses no result; calls that change something are rejected, others are served, and the server is back within a second', async () => {
  for (let round = 0; round < KILLS; round += 1) {
    const session = await openSession(server.url, '2025-11-25', { authorization: `d${round}` });
    const results = await killDuringCalls(session, `d${round}`, () => database.kill());
    const rejected = await (await charge(session, 1_000, `d${round}`)).json();
    assert.is(rejected.error?.code, -32603);
    // Clients do not learn where the database is.
    assert.match(rejected.error?.message ?? '', /the call did not run: .*the database is not reachable/);
    assert.not.match(rejected.error?.message ?? '', /127\.0\.0\.1/);
    const look = await session.call(1_001, 'look', { key: 'look' });
    assert.is(textIn(await look.json()), 'looked at look');
    assert.is((await fetch(new URL('/readyz', server.url))).status, 503);
    const opening = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
      }),
    });
    assert.equal([opening.status, opening.headers.get('retry-after')], [503, '1']);
    await opening.text();
    await database.start();
    const back = await ready();
    assertFigure(back, 1_000, 'D-03, ready after the database');
    await repeatAll(session, `d${round}`, results);
  }
});

test('D-21: when the process and the database are killed at once, sessions and results are there after both have started', async () => {
  const sessions: Session[] = [];
  for (let index = 0; index < SESSIONS; index += 1)
    sessions.push(await openSession(server.url, '2025-11-25', { authorization: `all${index % 50}` }));
  const session = await openSession(server.url);
  const results = await killDuringCalls(session, 'both', () =>
    Promise.all([database.kill(), server.kill()]).then(() => {}),
  );
  await database.start();
  await server.start();
  const from = performance.now();
  const found = await Promise.all(
    sessions.map(async (each) => textIn(await (await each.call(9, 'look', { key: 'a' })).json())),
  );
  process.stdout.write(`D-21: ${SESSIONS} sessions called in ${Math.round(performance.now() - from)} ms\n`);
  assert.equal(new Set(found), new Set(['looked at a']));
  await repeatAll(session, 'both', results);
});
