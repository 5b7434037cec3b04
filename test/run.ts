/** Runs the test files, each in a process of its own, two at a time, and closes on one line that counts them all. */
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const one = process.argv.indexOf('--one');

if (one !== -1) await runOne(process.argv[one + 1] ?? '');
else await runAll(process.argv.slice(2));

/** The child's part: loads one file, runs what it registered, reports the count on the IPC channel. */
async function runOne(file: string): Promise<void> {
  const { runRegistered } = await import('./harness/door.ts');
  try {
    await import(pathToFileURL(resolve(file)).href);
    const totals = await runRegistered();
    process.send?.(totals);
    process.exitCode = totals.failed > 0 ? 1 : 0;
  } catch (error) {
    process.stderr.write(
      `${file} did not run: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    process.exitCode = 1;
  }
  process.disconnect?.();
  // A test that left a timer or a socket behind must not hold the whole run; one that leaves the process alive says so.
  setTimeout(() => {
    process.stderr.write(
      `${file}: something keeps the process alive after its tests: ${process.getActiveResourcesInfo().join(', ')}\n`,
    );
    process.exit(1);
  }, 5_000).unref();
}

async function runAll(named: readonly string[]): Promise<void> {
  const files = named.length > 0 ? [...named] : testFiles();
  const totals = { passed: 0, failed: 0, skipped: 0 };
  const broken: string[] = [];
  const started = performance.now();
  const queue = [...files];
  const lane = async (): Promise<void> => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const result = await child(file);
      process.stdout.write(result.output);
      totals.passed += result.totals?.passed ?? 0;
      totals.failed += result.totals?.failed ?? 0;
      totals.skipped += result.totals?.skipped ?? 0;
      if (result.code !== 0 || !result.totals) broken.push(relative(process.cwd(), file));
    }
  };
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, lane));
  if (broken.length > 0) process.stdout.write(`\nnot green: ${broken.join(', ')}\n`);
  const failed = Math.max(totals.failed, broken.length);
  process.stdout.write(`\n${files.length} files in ${((performance.now() - started) / 1000).toFixed(1)} s\n`);
  process.stdout.write(`${totals.passed} passed, ${failed} failed, ${totals.skipped} skipped\n`);
  process.exitCode = failed > 0 || totals.passed === 0 ? 1 : 0;
}

function testFiles(): string[] {
  return readdirSync(here, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') && !file.includes('fixtures'))
    .sort()
    .map((file) => join(here, file));
}

interface Child {
  readonly code: number | null;
  readonly output: string;
  readonly totals?: { passed: number; failed: number; skipped: number };
}

function child(file: string): Promise<Child> {
  return new Promise((done) => {
    const proc = spawn(process.execPath, ['--import', 'tsx', fileURLToPath(import.meta.url), '--one', file], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...process.env, NODE_NO_WARNINGS: '1' },
    });
    let output = `\n${relative(process.cwd(), file)}\n`;
    let totals: Child['totals'];
    proc.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    proc.stderr?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    proc.on('message', (message) => {
      totals = message as Child['totals'];
    });
    proc.on('close', (code) => done({ code, output, ...(totals ? { totals } : {}) }));
  });
}
