/** The door keeps its word: nothing that goes wrong in a test file passes for success. */
import { spawnSync } from 'node:child_process';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { suite } from './door.ts';

const here = dirname(fileURLToPath(import.meta.url));
const test = suite('door');

function run(fixture: string): { code: number | null; last: string; output: string } {
  const file = join(here, '../fixtures/door', `${fixture}.ts`);
  const { status, stdout } = spawnSync(process.execPath, ['--import', 'tsx', join(here, '../run.ts'), file], {
    cwd: resolve(here, '../..'),
    encoding: 'utf8',
  });
  return { code: status, last: stdout.trim().split('\n').at(-1) ?? '', output: stdout };
}

for (const [fixture, what] of [
  ['non-error', 'a thrown string fails'],
  ['before', 'a before hook that throws fails its tests'],
  ['after', 'an after hook that throws fails its suite'],
  ['late', 'a test beyond its time fails'],
  ['empty', 'a file without tests fails'],
  ['exit', 'a test that ends the process fails its file'],
  ['title', 'a title that is a wish fails its file'],
  ['twice', 'two tests of one title fail their file'],
] as const) {
  test(what, () => {
    const { code, last } = run(fixture);
    assert.is(code, 1);
    assert.match(last, /^\d+ passed, 1 failed, 0 skipped$/);
  });
}

test('a good file passes, and its skipped test is reported with its reason', () => {
  const { code, last, output } = run('good');
  assert.is(code, 0);
  assert.is(last, '2 passed, 0 failed, 1 skipped');
  assert.match(output, /skipped: first: needs what is not here \(it is not here\)/);
});

test('a file whose process is killed fails, and its signal is named', () => {
  const { code, output } = run('signal');
  assert.is(code, 1);
  assert.match(output, /signal\.ts: its process was ended by SIGKILL/);
});
