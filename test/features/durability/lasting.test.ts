/** A worker process under a supervisor, which keeps the pipes of stdio and repeats what was in flight: the same session, by TROUPE_SESSION. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import * as assert from 'uvu/assert';
import { initialize } from '../../core/http/support.ts';
import { startable } from '../../harness/compiled.ts';
import { fullOnly, suite } from '../../harness/door.ts';

fullOnly('starts three workers; the quick tests of a session after its process are those of sessions.test.ts');

const test = suite('a session that outlives its worker');
const FIXTURE = startable('test/fixtures/durable/worker.ts');

/** What a worker of this session answers to a call with the id 1; it is killed then. */
async function answer(file: string, session: string): Promise<string> {
  const env = { ...process.env, TROUPE_SESSION: session };
  const child = spawn(process.execPath, [FIXTURE, file], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env,
  });
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'who', arguments: {} } };
  child.stdin.write(`${JSON.stringify(initialize('2025-11-25'))}\n${JSON.stringify(call)}\n`);
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const message = JSON.parse(line);
      if (message.id === 1) return message.result.content[0].text;
    }
    return 'nothing';
  } finally {
    child.kill('SIGKILL');
  }
}

test('R-01: a call that was answered is not run again by the next worker of the session, and is by another’s', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-lasting-'));
  try {
    const file = join(folder, 'a.db');
    const first = await answer(file, 'one-session');
    assert.is(await answer(file, 'one-session'), first);
    assert.is.not(await answer(file, 'another-session'), first);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
