/** `troupe audit --store`: the records of all nodes of a cluster, while they run, under a role that may only read. */
import * as assert from 'uvu/assert';
import { createServer, postgres, type Server } from '../../src/index.ts';
import { connect, type TestClient } from '../../src/testing/testing.ts';
import { fullOnly } from '../harness/door.ts';
import { type Databases, postgresSuite, sharedPostgres } from '../harness/postgres.ts';
import { Cli } from './cli.ts';

fullOnly('starts a database; the quick test of the audit is audit.test.ts');

const test = postgresSuite('troupe audit --store');
const PASSWORD = 's3cret-of-the-database';

let database: Databases;
test.before(async () => {
  database = await sharedPostgres();
});
test.after(() => database.stop());

async function run(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const cli = new Cli(['audit', ...args], { env: { TROUPE_STORE: '', ...env } });
  let out = '';
  cli.process.stdout?.removeAllListeners('data').on('data', (text: string) => {
    out += text;
  });
  return { code: await cli.end(), out, err: cli.err };
}

interface Record {
  readonly at: string;
  readonly event: string;
  readonly element?: string;
}

const recordsIn = (out: string): readonly Record[] =>
  out.split('\n').flatMap((line): Record[] => (line === '' ? [] : [JSON.parse(line)]));

/** A node whose one tool has its name. */
async function node(
  url: string,
  name: string,
): Promise<{ server: Server; client: TestClient; call(): Promise<unknown> }> {
  const server = createServer({
    ...{ name: 's', version: '1', store: postgres(url), audit: { to: 'store' }, log: () => {} },
    cluster: { listen: '127.0.0.1:0', secret: 'a secret that all nodes of this test share' },
  });
  server.tool(name, () => 'done');
  const client = await connect(server);
  return { server, client, call: () => client.modern('tools/call', { name, arguments: {} }) };
}

test('prints the records of all nodes in the order of their times, while they run and after they have stopped', async () => {
  const url = await database.database();
  const [one, two] = [await node(url, 'one'), await node(url, 'two')];
  for (const { call } of [one, two, one, two, two]) await call();
  await database.query(
    `CREATE ROLE auditor LOGIN; GRANT USAGE ON SCHEMA troupe TO auditor; GRANT SELECT ON ALL TABLES IN SCHEMA troupe TO auditor`,
    url,
  );
  const reader = new URL(url);
  reader.username = 'auditor';
  reader.password = PASSWORD;
  const seen = await run(['--json'], { TROUPE_STORE: reader.href });
  assert.equal([seen.code, seen.err], [0, '']);
  const records = recordsIn(seen.out);
  assert.equal(records.map(({ event, element = '' }) => `${event} ${element}`.trim()).sort(), [
    'call tool one',
    'call tool one',
    'call tool two',
    'call tool two',
    'call tool two',
    'started',
    'started',
  ]);
  const times = records.map(({ at }) => at);
  assert.equal(times, [...times].sort());
  // The nodes serve on.
  for (const { call } of [one, two]) await call();
  const some = await run(['--store', url, '--element', 'tool two', '--json']);
  assert.equal([some.code, some.err, recordsIn(some.out).length], [0, '', 4]);
  for (const { server } of [one, two]) await server.close();
  const after = recordsIn((await run(['--store', url, '--limit', '2', '--json'])).out);
  assert.equal(
    after.map(({ event }) => event),
    ['stopped', 'stopped'],
  );
});

test('a database without a store, and a text that is no URL, are named without the password', async () => {
  const empty = new URL(await database.database());
  empty.password = PASSWORD;
  const none = await run([], { TROUPE_STORE: empty.href });
  assert.is(none.code, 1);
  assert.match(none.err, 'schema troupe: there is no store');
  const [row] = await database.query(
    "SELECT count(*)::int AS n FROM pg_namespace WHERE nspname = 'troupe'",
    empty.href,
  );
  assert.is(row?.n, 0);
  const wrong = await run([], { TROUPE_STORE: `mysql://a:${PASSWORD}@b/c` });
  assert.is(wrong.code, 2);
  assert.match(wrong.err, 'troupe audit: TROUPE_STORE: expected the URL of a database');
  for (const { err } of [none, wrong]) assert.not.match(err, PASSWORD);
  assert.match((await run(['--store', empty.href])).err, 'other users of this machine can read the password');
});
