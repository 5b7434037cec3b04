/** The door keeps its word: nothing that goes wrong in a test file passes for success. */
import { spawnSync } from 'node:child_process';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { compiled } from './compiled.ts';
import { fullOnly, suite } from './door.ts';

fullOnly('starts a process for each fixture; the quick test of a run is runner.test.ts');

const here = dirname(fileURLToPath(import.meta.url));
const test = suite('door');

interface Run {
  readonly code: number | null;
  readonly last: string;
  readonly output: string;
}

/** @param env a shorter limit of each test */
function run(fixtures: readonly string[], env: NodeJS.ProcessEnv = {}): Run {
  const files = fixtures.map((fixture) => join(here, '../fixtures/door', `${fixture}.ts`));
  const { status, stdout } = spawnSync(process.execPath, [compiled('test/run.ts'), ...files], {
    cwd: resolve(here, '../..'),
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  return { code: status, last: stdout.trim().split('\n').at(-1) ?? '', output: stdout };
}

const BAD = {
  'non-error': 'a thrown string fails',
  before: 'a before hook that throws fails its tests',
  after: 'an after hook that throws fails its suite',
  late: 'a test beyond its time fails',
  empty: 'a file without tests fails',
  exit: 'a test that ends the process fails its file',
  title: 'a title that is a wish fails its file',
  twice: 'two tests of one title fail their file',
  signal: 'a file whose process is killed fails, and its signal is named',
};

let bad: Run | undefined;
for (const [fixture, what] of Object.entries(BAD))
  test(what, () => {
    bad ??= run(Object.keys(BAD), { TROUPE_TEST_LIMIT_MS: '5000' });
    assert.is(bad.code, 1);
    const wrong = /^not green: (.*)$/m.exec(bad.output)?.[1]?.split(', ');
    assert.ok(wrong?.includes(`test/fixtures/door/${fixture}.ts`), bad.output);
    assert.match(bad.last, /^\d+ passed, 9 failed, 0 skipped$/);
    if (fixture === 'signal') assert.match(bad.output, /signal\.ts: its process was ended by SIGKILL/);
  });

test('a good file passes, and its skipped test is reported with its reason', () => {
  const { code, last, output } = run(['good']);
  assert.is(code, 0);
  assert.is(last, '2 passed, 0 failed, 1 skipped');
  assert.match(output, /skipped: first: needs what is not here \(it is not here\)/);
});
