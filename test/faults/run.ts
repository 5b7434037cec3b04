/**
 * `npm run test:faults`: runs the reliability tests at their full numbers, then each of them against its broken build,
 * which it must find.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BrokenBuild } from './broken-build.ts';
import { BROKEN_BUILDS } from './broken-builds.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const COPIED = [
  'bench',
  'bundle.ts',
  'dist',
  'src',
  'machines',
  'test',
  'examples',
  'docs',
  'package.json',
  'tsconfig.json',
  'tsconfig.base.json',
];
/** Longest that one broken build may take to be found, in milliseconds: some hang, and that is how they are found. */
const LONGEST_MS = 300_000;

const [only, ...rest] = process.argv.slice(2);
if (rest.length > 0) throw new Error('usage: npm run test:faults [-- full | broken | ID | PART of the path of a test]');

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
  const builds = BROKEN_BUILDS.filter((build) => id === undefined || build.id === id || build.test.includes(id))
    // Those that are built leave their dist behind, for the next that is built.
    .sort((a, b) => Number(a.built ?? false) - Number(b.built ?? false));
  if (builds.length === 0) throw new Error(`no broken build has the id or the test ${String(id)}`);
  const copy = mkdtempSync(join(tmpdir(), 'troupe-broken-'));
  let good = true;
  try {
    for (const name of COPIED) cpSync(join(root, name), join(copy, name), { recursive: true, force: true });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    for (const build of builds) {
      const verdict = await findsIt(copy, build);
      good &&= verdict === 'found';
      process.stdout.write(`${build.id.padEnd(6)} ${verdict.padEnd(10)} ${build.why}\n`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  return good;
}

/** Breaks the copy, runs the one test file in it, and mends it. */
async function findsIt(copy: string, build: BrokenBuild): Promise<'found' | 'NOT FOUND' | 'NO BREAK'> {
  const path = join(copy, build.file);
  const text = readFileSync(path, 'utf8');
  if (text.split(build.find).length !== 2) return 'NO BREAK';
  writeFileSync(
    path,
    text.replace(build.find, () => build.replace),
  );
  try {
    if (build.built) {
      await run(copy, [], {}, ['node_modules/typescript/bin/tsc', '-b', 'machines', 'src']);
      await run(copy, [], {}, ['--import', 'tsx', 'bundle.ts']);
    }
    const { code, output } = await run(copy, [build.test], { TROUPE_SCALE: 'full' }, undefined);
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
    const timer =
      cwd === root ? undefined : setTimeout(() => child.pid && process.kill(-child.pid, 'SIGKILL'), LONGEST_MS);
    child.on('close', (code) => {
      clearTimeout(timer);
      done({ code, output });
    });
  });
}
