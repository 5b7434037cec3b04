/** The PostgreSQL of the tests: it survives a crash of its own with its data, and never survives its test. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import pg from 'pg';
import * as assert from 'uvu/assert';
import { compiled } from './compiled.ts';
import { fullOnly } from './door.ts';
import { postgresSuite, startPostgres } from './postgres.ts';
import { until } from './wait.ts';

fullOnly('starts several databases; the tests of the store start one');

const test = postgresSuite('postgres harness');

/** Connects, and waits for the end of the connection. */
async function watch(url: string): Promise<{ readonly ended: Promise<void> }> {
  const client = new pg.Client({ connectionString: url });
  // Without a listener, a lost connection would end the process.
  client.on('error', () => {});
  await client.connect();
  return { ended: new Promise((ended) => client.once('end', ended)) };
}

test('keeps its port and what was committed when it is killed and started again', async () => {
  const server = await startPostgres();
  try {
    const url = await server.database();
    await server.query('CREATE TABLE kept(n int)', url);
    await server.query('INSERT INTO kept VALUES (1)', url);
    const cut = await watch(url);
    await server.kill();
    await cut.ended;
    await server.start();
    assert.equal(await server.query('SELECT n FROM kept', url), [{ n: 1 }]);
  } finally {
    await server.stop();
  }
  assert.not(existsSync(server.folder));
});

test('ends with the process that started it, also when that is killed', async () => {
  const holder = spawn(process.execPath, [compiled('test/fixtures/postgres/holder.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = await once(holder.stdout.setEncoding('utf8'), 'data');
  const [url = '', folder = ''] = String(line).trim().split(' ');
  const cut = await watch(url);
  holder.kill('SIGKILL');
  await cut.ended;
  await until(() => !existsSync(folder));
});
