/** A process with SQLite that the world reaches, killed again and again: what it has acknowledged happens, once in the state. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { receiver } from '../../features/events/delivery/support.ts';
import { startable } from '../../harness/compiled.ts';
import { fullOnly, suite, timeLimit } from '../../harness/door.ts';
import { freePort } from '../../harness/free-port.ts';
import { atScale } from '../../harness/scale.ts';
import { inTime } from '../../harness/wait.ts';
import { reach } from '../cluster/reached.ts';

fullOnly(
  'kills processes; the quick tests die at each write: deaths, durable-hooks, server-schedules and schedules of machines',
);

const KILLS = atScale({ quick: 2, full: 10, proof: 100 });
timeLimit(180_000 + KILLS * 30_000);

const test = suite('reached over kills');
const folder = mkdtempSync(join(tmpdir(), 'troupe-reached-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

test(`R-64, R-81, R-84, R-92: deliveries, slots and events that a process has acknowledged outlive ${KILLS} kills of it`, async () => {
  const [hook, port] = [await receiver(), await freePort()];
  const [secret, ledger] = ['the secret of a sender', join(folder, 'ledger')];
  const words = [startable('test/fixtures/cluster/reached.ts'), join(folder, 'store.db'), String(port), '0', secret];
  const env = { ...process.env, LEDGER: ledger, RECEIVER: hook.origin };
  const start = async () => {
    const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    await inTime(once(child.stdout, 'data'), 'the process to serve');
    return child;
  };
  let child = await start();
  const url = `http://127.0.0.1:${port}/mcp`;
  const kill = async (): Promise<void> => {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    child = await start();
  };
  try {
    process.stdout.write(`SQLite, ${await reach({ url, secret, ledger, hook, kills: KILLS, kill })}\n`);
  } finally {
    child.kill('SIGKILL');
    await hook.close();
  }
});
