/** `--store URL` and TROUPE_STORE: sessions survive the process, and no text contains the password. */
import { readdirSync, readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { Tree } from '../features/discovery/tree.ts';
import { fullOnly } from '../harness/door.ts';
import { type Databases, postgresSuite, sharedPostgres } from '../harness/postgres.ts';
import { Cli, TROUPE } from './cli.ts';

fullOnly('starts a database; the quick test of `troupe run` is run.test.ts');

const test = postgresSuite('--store');

const PROGRAM = `import { createServer, stdio } from '${TROUPE}';
const server = createServer({ name: 'kept', version: '1.0.0' });
server.tool('where', {}, () => String(process.pid));
await server.listen(stdio());
`;
const PASSWORD = 's3cret-of-the-database';
const { path } = new Tree({ 'package.json': '{ "type": "module" }', 'server.mjs': PROGRAM });

let database: Databases;
test.before(async () => {
  database = await sharedPostgres();
});
test.after(() => database.stop());

const variable = (name: string): string => `\${${name}}`;

/** The URL of a new database, with a password that this server does not ask for. */
async function withPassword(): Promise<string> {
  const url = new URL(await database.database());
  url.password = PASSWORD;
  return url.href;
}

async function post(url: string, body: object, session?: string): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(session === undefined ? {} : { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...body }),
  });
}

const INITIALIZE = {
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
};

/** The arguments of all processes of this machine. */
function listed(): string {
  if (process.platform !== 'linux') return '';
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      } catch {
        return '';
      }
    })
    .join('\n');
}

test('serve keeps sessions in the database of TROUPE_STORE, and shows its password nowhere', async () => {
  const env = { TROUPE_STORE: await withPassword() };
  const serve = async (): Promise<{ cli: Cli; url: string }> => {
    const cli = new Cli(['serve', 'server.mjs', '--http', '0', '--inspect'], { cwd: path, env });
    await cli.said('Claude Desktop');
    return { cli, url: /at (http:\S+);/.exec(cli.err)?.[1] ?? '' };
  };
  const first = await serve();
  const session = (await post(first.url, INITIALIZE)).headers.get('mcp-session-id') ?? '';
  await post(first.url, { method: 'notifications/initialized' }, session);
  assert.not.ok(listed().includes(PASSWORD));
  first.cli.process.kill('SIGKILL');
  await first.cli.exit;
  const next = await serve();
  const listing = await post(next.url, { id: 2, method: 'tools/list' }, session);
  assert.is(listing.status, 200);
  assert.match(await listing.text(), '"where"');
  next.cli.process.kill('SIGTERM');
  assert.is(await next.cli.exit, 0);
  assert.not.ok((first.cli.err + next.cli.err).includes(PASSWORD));
});

test('run expands a variable in the worker, whose arguments show the text as it was written', async () => {
  const env = { DATABASE: await withPassword() };
  const cli = new Cli(['run', 'server.mjs', '--store', variable('DATABASE')], { cwd: path, env });
  await cli.initialize();
  const before = await cli.call('where');
  assert.ok(!listed().includes(PASSWORD));
  const rows = await database.query('SELECT count(*) AS n FROM troupe.reply', env.DATABASE);
  assert.ok(Number(rows[0]?.n) > 0);
  process.kill(Number(before), 'SIGKILL');
  // The next worker waits until the database has seen the end of the first.
  assert.is.not(await cli.call('where'), before);
  assert.is(await cli.end(), 0);
  assert.not.ok(cli.err.includes(PASSWORD));
});

test('a password in the arguments is reported', async () => {
  const cli = new Cli(['serve', 'server.mjs', '--http', '0', '--store', await withPassword()], { cwd: path });
  await cli.said('Claude Desktop');
  assert.match(cli.err, 'other users of this machine can read the password in the list of processes');
  assert.not.ok(cli.err.includes(PASSWORD));
  cli.process.kill('SIGTERM');
  assert.is(await cli.exit, 0);
});
