/** The judgement of a run: a late file does not refuse a change, a wrong one does. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, relative } from 'node:path';
import * as assert from 'uvu/assert';
import { compiled } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { objections } from './flaky.ts';
import { removeLeftBehind } from './job.ts';
import { companyOf, filesOf, growsWithScale, jobsOf, LANES, root } from './plan.ts';

const test = suite('runner');
const LINUX = process.platform === 'linux';

interface Run {
  readonly code: number | null;
  readonly output: string;
  readonly last: string;
}

/** Runs fixtures as the runner of all files does: each file that fails runs again, alone. */
function run(...fixtures: readonly string[]): Run {
  return runWith({}, ...fixtures);
}

function runWith(env: NodeJS.ProcessEnv, ...fixtures: readonly string[]): Run {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-runner-'));
  // What checks types and style is a program that finds an import in the wrong place.
  writeFileSync(join(folder, 'npm'), '#!/bin/sh\necho "src/a.ts:1:1 organizeImports" >&2\nexit 3\n', { mode: 0o755 });
  const files = fixtures.map((name) =>
    name.startsWith('--') ? name : join(root, 'test/fixtures/runner', `${name}.test.ts`),
  );
  const { status, stdout } = spawnSync(process.execPath, [compiled('test/run.ts'), '--rerun', ...files], {
    cwd: root,
    encoding: 'utf8',
    env: {
      ...process.env,
      PATH: `${folder}${delimiter}${process.env.PATH}`,
      TROUPE_FIXTURE_MARK: join(folder, 'ran'),
      TROUPE_TEST_ENDING_MS: '1000',
      ...env,
    },
  });
  rmSync(folder, { recursive: true });
  return { code: status, output: stdout, last: stdout.trim().split('\n').at(-1) ?? '' };
}

const COMPANIES = {
  none: 'no other',
  measuring: 'others that measure it',
  discovering: 'others that do so',
  any: 'others',
};

/** Whether a process runs. One that ended stays as a zombie until the process that adopted it asks for its exit code. */
function runs(pid: string): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

if (LINUX)
  test('the temporary files of a killed run do not stay in memory', () => {
    const memory = mkdtempSync(join(tmpdir(), 'troupe-runner-'));
    // Linux gives no process such a number.
    const killed = 4_194_305;
    const hourAgo = Date.now() / 1_000 - 3_600;
    for (const [name, used] of [
      [`troupe-test-${killed}-old`, hourAgo],
      [`troupe-test-${killed}-recent`, hourAgo + 3_600],
      [`troupe-test-${process.pid}-old`, hourAgo],
      ['other', hourAgo],
    ] as const) {
      mkdirSync(join(memory, name));
      utimesSync(join(memory, name), used, used);
    }
    removeLeftBehind(memory);
    const stay = ['other', `troupe-test-${killed}-recent`, `troupe-test-${process.pid}-old`];
    assert.equal(readdirSync(memory).sort(), stay.sort());
    rmSync(memory, { recursive: true });
  });

/** A run of two files, of which one has a test with the words, which fails at first. */
let filtered: Run | undefined;
function filteredRun(): Run {
  filtered ??= run('--title=passes when', 'flaky', 'wrong');
  return filtered;
}

test('a file that passes when it runs again alone leaves the run green, and is printed as flaky', () => {
  const { code, output, last } = filteredRun();
  assert.match(output, 'flaky: test/fixtures/runner/flaky.test.ts (first failure: passes when it runs again: late)');
  assert.is(last, '1 passed, 0 failed, 0 skipped');
  assert.is(code, 0);
});

test('a test that counts turns of the event loop is red with late input, and a test that waits for the input is not', () => {
  const { output, last } = runWith({ TROUPE_TEST_LATE_MS: '50' }, 'late-input');
  assert.match(output, /FAIL {2}late input {2}"counts turns"/);
  assert.is(last, '1 passed, 1 failed, 0 skipped');
});

test('--title runs the tests that have its words in their titles', () => {
  const { output, last } = filteredRun();
  assert.match(output, 'test/fixtures/runner/wrong.test.ts');
  assert.not.match(output, /FAIL {2}wrong/);
  assert.is(last, '1 passed, 0 failed, 0 skipped');
});

test.full('--title without a test that has its words is no success', () => {
  assert.is(run('--title=of no test', 'wrong').code, 1);
});

let red: Run;
test('a file that fails again makes the run red', () => {
  red = run('--check', 'wrong', 'conclusive', ...(LINUX ? ['leaking'] : []));
  assert.match(red.output, /^not green: .*test\/fixtures\/runner\/wrong\.test\.ts/m);
  assert.is(red.last, LINUX ? '1 passed, 4 failed, 0 skipped' : '0 passed, 3 failed, 0 skipped');
  assert.is(red.code, 1);
});

test('the last lines of a failed check of types and style are repeated at the end of the run', () => {
  const end = red.output.slice(red.output.lastIndexOf('not green: '));
  assert.match(end, 'npm run check');
  assert.match(end, /^check: src\/a\.ts:1:1 organizeImports\ncheck: npm run check ended with 3$/m);
});

test('a conclusive failure is not run again', () => {
  assert.match(red.output, 'conclusive.test.ts: not run again: loses an effect in its first run');
  assert.match(red.output, /^not green: .*test\/fixtures\/runner\/conclusive\.test\.ts/m);
});

if (LINUX)
  test('a process that a file leaves makes the run red, and is ended', () => {
    const { output } = red;
    const [, pid] = /leaking\.test\.ts: leaked process (\d+): .*setInterval/.exec(output) ?? [];
    assert.ok(pid, output);
    assert.match(output, /^not green: .*test\/fixtures\/runner\/leaking\.test\.ts/m);
    assert.is(runs(pid), false);
  });
else test.skip('a process that a file leaves makes the run red', 'only Linux shows whose process it is');

for (const [title, flaky, history, red] of [
  ['one flaky file is tolerated', ['a'], [], 0],
  ['two flaky files in one run are not', ['a', 'b'], [], 1],
  ['one file in two of five runs is not', ['a'], [['a'], [], [], []], 1],
  ['one file in the first and the last of six runs is tolerated', ['a'], [['a'], [], [], [], []], 0],
  ['other files in other runs are tolerated', ['a'], [['b'], ['c']], 0],
  ['a run without flaky files is green after any history', [], [['a'], ['a']], 0],
] as const)
  test(title, () => assert.is(objections(flaky, history).length, red));

for (const [title, code, company] of [
  ['measures memory', 'const { rss } = process.memoryUsage();', 'measuring'],
  ['counts the sockets of its process', 'const names = process.getActiveResourcesInfo();', 'measuring'],
  ['starts a program that listens for signals', 'const program = \'process.on("SIGTERM", () => {});\';', 'any'],
  ['starts a program of several lines', 'const program = `\n  process.stdin.resume();\n`;', 'any'],
  ['mentions a name in a comment', '// The child reads process.stdin.', 'any'],
  ['leaves a listener', "process.on('warning', hear);", 'none'],
  ['removes its listener', "process.on('warning', hear);\nprocess.off('warning', hear);", 'any'],
  ['listens for the exit of the process', "process.on('exit', clean);", 'any'],
  ['runs troupe dev in its process, which hooks the module loader', "new Running(['dev', target]);", 'none'],
  ['finds modules, which hooks the module loader', "server.discover('tools');", 'discovering'],
  ['imports a browser', "import { chromium } from 'playwright-core';", 'none'],
] as const)
  test(`a file that ${title} shares its process with ${COMPANIES[company]}`, () =>
    assert.is(companyOf([code]), company));

test('the rest of a full run is the files that have more in it', () => {
  const grows = (file: string): boolean => growsWithScale(join(root, 'test', file));
  for (const file of ['system/conformance/client.test.ts', 'core/store/damage.test.ts']) assert.ok(grows(file), file);
  for (const file of ['core/execution/content.test.ts', 'system/shutdown/server.test.ts'])
    assert.not.ok(grows(file), file);
});

test('few files of a quick run get a process of their own', () => {
  const files = filesOf([], false);
  const alone = jobsOf(files, new Map(), true).filter((job) => job.files.length === 1);
  assert.ok(alone.length + LANES < files.length / 8, alone.map((job) => relative(root, job.files[0] ?? '')).join('\n'));
});
