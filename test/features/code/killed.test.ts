/** Scripts whose process is killed at writes of their journal in SQLite: the next process continues them, and repeats no effect. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { isObject } from '../../../src/core/protocol/json.ts';
import { createServer, sqlite } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { answerTask, shopOf } from '../../fixtures/code/shop.ts';
import { startable } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';

const folder = mkdtempSync(join(tmpdir(), 'troupe-code-'));
const test = suite('killed scripts');
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** The writes of the journal, in order: those before its call is a task are left out. */
const WRITES = [
  ...[
    [3, 'delivered'],
    [4, 'started'],
    [5, 'delivered'],
  ],
  ...[
    [6, 'started'],
    [8, 'delivered'],
    [9, 'asked'],
    [10, 'answered'],
    [11, 'delivered'],
    [14, 'ended'],
  ],
] as const;

async function killed(number: number, when: 'before' | 'after'): Promise<{ text: string; ran: readonly string[] }> {
  const [path, log] = [join(folder, `${number}-${when}.db`), join(folder, `${number}-${when}.log`)];
  const program = spawn(
    process.execPath,
    [ENGINE, startable('test/fixtures/code/dying.ts'), path, log, String(number), when],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
  const [, signal] = await once(program, 'exit');
  const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n') : [];
  assert.is(signal, 'SIGKILL', `the fixture did not die ${when} write ${number}: ${lines.join(', ')}`);
  const task = lines.find((line) => line.startsWith('task '))?.slice('task '.length);
  if (task === undefined) throw new Error(`expected a task before write ${number}, got ${lines.join(', ')}`);
  const ran = lines.flatMap((line) => (line.startsWith('ran ') ? line.slice('ran '.length) : []));
  const options = { log: () => {}, code: { effects: 'allow' }, store: sqlite(path) } as const;
  const server = createServer({ name: 'gateway', version: '1.0.0', ...options });
  shopOf(server, (what) => ran.push(what));
  const text = await answerTask(await connect(server, { auth: { principal: 'ada' } }), task);
  await server.close();
  return { text, ran };
}

/** A process that dies before a write has done nothing that the store does not have. */
const WHEN = atScale<readonly ('before' | 'after')[]>({
  quick: ['after'],
  full: ['before', 'after'],
  proof: ['before', 'after'],
});
/** The write of the quick run: before an effect. That of restarts.test.ts ends a process at each of them, in memory. */
const QUICK = 4;
/** V8 spends a second on optimizing the engine of scripts, which computes for milliseconds here. */
const ENGINE = '--liftoff-only';

for (const [number, kind] of WRITES) {
  const run = number === QUICK ? test : test.full;
  run(`a process that is killed around the write "${kind}" (${number}) repeats no effect of its script`, async () => {
    for (const when of WHEN) {
      const { text, ran } = await killed(number, when);
      const where = `${when}: ${text}, ran ${ran}`;
      assert.is(new Set(ran).size, ran.length, where);
      const value: unknown = JSON.parse(text);
      const result: unknown = isObject(value) ? value.result : undefined;
      const [done, ...others]: readonly unknown[] = Array.isArray(result) ? result : [];
      assert.equal(others, [4, 'Ada'], where);
      for (const [place, n] of ['1', '3', '4'].entries()) {
        const learned: unknown = Array.isArray(done) ? done[place] : undefined;
        assert.ok(learned === `wrote ${n}` ? ran.includes(n) : learned === 'unknown', where);
      }
    }
  });
}
