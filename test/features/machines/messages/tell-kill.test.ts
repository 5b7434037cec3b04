/** Messages over kills of a process with its store in a file: whatever the process was doing, each takes effect once, in order. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import * as assert from 'uvu/assert';
import { startable } from '../../../harness/compiled.ts';
import { fullOnly, suite } from '../../../harness/door.ts';
import { atScale } from '../../../harness/scale.ts';

fullOnly('kills processes; the quick test dies before and after each write of a store in memory');

const test = suite('messages over kills');
const folder = mkdtempSync(join(tmpdir(), 'troupe-tell-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the fixture. @returns the last line that it has printed */
async function run(file: string, killAfter?: number): Promise<string> {
  const args = [startable('test/fixtures/durable/telling.ts'), file, ...(killAfter === undefined ? ['until'] : [])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  let last = '';
  let lines = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    last = line;
    lines += 1;
    if (lines === killAfter) child.kill('SIGKILL');
  }
  const [code, signal] = await ended;
  assert.is(signal ?? code, killAfter === undefined ? 0 : 'SIGKILL');
  return last;
}

test('R-58: a process that is killed while it tells loses no message that it has acknowledged, and repeats none', async () => {
  const file = join(folder, 'shop.db');
  let acknowledged = 0;
  for (let life = 0; life < atScale({ quick: 3, full: 8, proof: 60 }); life += 1)
    acknowledged = Number(await run(file, 1 + ((life * 17) % 41)));
  const end: unknown = JSON.parse(await run(file));
  const { ordered, taken } = end as { ordered: number; taken: readonly number[] };
  assert.ok(ordered >= acknowledged, `${ordered} of ${acknowledged}`);
  assert.equal(
    taken,
    Array.from({ length: ordered }, (_, at) => at + 1),
  );
});
