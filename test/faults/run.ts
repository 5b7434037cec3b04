/**
 * `npm run test:faults`: runs the reliability tests at their full numbers, then each of them against its broken build,
 * which it must find.
 */
import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BrokenBuild } from './broken-build.ts';
import { BROKEN_BUILDS } from './broken-builds.ts';
import { Declarations } from './declarations.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const COPIED = [
  'apps',
  'bench',
  'build',
  'dist',
  'inspector',
  'src',
  'machines',
  'test',
  'examples',
  'docs',
  'package.json',
  'tsconfig.json',
  'tsconfig.src.json',
  'tsconfig.base.json',
];
/** Maximum time in milliseconds for one broken build to be found. */
const LONGEST_MS = 150_000;

const [only, ...rest] = process.argv.slice(2);
if (rest.length > 0)
  throw new Error('usage: npm run test:faults [-- full | broken | ID | PART of the path of a test, or of why]');

/** Ends the processes of the step in progress. */
let endStep: (() => void) | undefined;
let copied: string | undefined;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => {
    endStep?.();
    if (copied !== undefined) rmSync(copied, { recursive: true, force: true });
    process.exit(1);
  });

let failed = false;
if (only === undefined || only === 'full') failed = !(await full());
if (only !== 'full') failed = !(await broken(only === 'broken' ? undefined : only)) || failed;
process.exitCode = failed ? 1 : 0;

/** The files of all broken builds, whole, at the full numbers. */
async function full(): Promise<boolean> {
  const files = [...new Set(BROKEN_BUILDS.map(({ test }) => test))];
  const { code } = await run(root, files, { TROUPE_SCALE: 'proof' }, undefined);
  return code === 0;
}

async function broken(id: string | undefined): Promise<boolean> {
  const builds = BROKEN_BUILDS.filter(
    (build) => id === undefined || build.id === id || build.test.includes(id) || build.why.includes(id),
  )
    // Those that are built leave their dist behind, for the next that is built.
    .sort((a, b) => Number(a.built ?? false) - Number(b.built ?? false));
  if (builds.length === 0) throw new Error(`no broken build has the id, the test or the reason ${String(id)}`);
  const copy = mkdtempSync(join(tmpdir(), 'troupe-broken-'));
  copied = copy;
  let good = true;
  try {
    for (const name of COPIED) cpSync(join(root, name), join(copy, name), { recursive: true, force: true });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    const declarations = new Declarations(copy);
    for (const build of builds) {
      const verdict = await findsIt(copy, declarations, build);
      good &&= verdict === 'found';
      process.stdout.write(`${build.id.padEnd(6)} ${verdict.padEnd(10)} ${build.why}\n`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  return good;
}

/** Breaks the copy, runs the one test file in it, and mends it. */
async function findsIt(copy: string, declarations: Declarations, build: BrokenBuild): Promise<'found' | 'NOT FOUND'> {
  const change = declarations.broken(build);
  const path = join(copy, change.path);
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, change.text);
  try {
    if (build.built) {
      await run(copy, [], {}, ['--import', 'tsx', 'build/bundle.ts']);
    }
    // The test process ends at the first failed test that names the promise.
    const { code, output } = await run(
      copy,
      [build.test],
      { TROUPE_SCALE: 'full', TROUPE_PROMISE: build.id },
      undefined,
    );
    // Only a test that names the promise counts, or that took its whole file with it, as uvu says: a build that cannot even be
    // loaded proves nothing.
    const failed = new RegExp(`FAIL.*${build.id}\\b`).test(output) || output.includes('Exiting early');
    return code !== 0 && failed ? 'found' : 'NOT FOUND';
  } finally {
    writeFileSync(path, text);
  }
}

function run(
  cwd: string,
  files: readonly string[],
  env: Readonly<Record<string, string>>,
  command: readonly string[] | undefined,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const args = command ?? ['--import', 'tsx', 'test/run.ts', ...files];
  return new Promise((done) => {
    const child = spawn(process.execPath, [...args], {
      cwd,
      env: { ...process.env, ...env },
      stdio: cwd === root ? 'inherit' : ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (output += text));
    endStep = () => endProcesses(child.pid, cwd);
    const timer = cwd === root ? undefined : setTimeout(endStep, LONGEST_MS);
    // A process that a broken build left behind holds the pipes open.
    child.on('exit', () => endStep?.());
    child.on('close', (code) => {
      clearTimeout(timer);
      endStep = undefined;
      done({ code, output });
    });
  });
}

/** Kills the group of a process, and the processes of other groups that run in the copy: tests start detached processes, too. */
function endProcesses(group: number | undefined, cwd: string): void {
  if (group !== undefined) kill(-group);
  if (cwd === root || !existsSync('/proc')) return;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const directory = readlinkSync(`/proc/${pid}/cwd`);
      if (directory === cwd || directory.startsWith(`${cwd}/`)) kill(Number(pid));
    } catch {
      // The process has ended, or belongs to another user.
    }
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
