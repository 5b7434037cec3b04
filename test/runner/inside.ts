/** The process of a job: loads and runs one test file after the other, and reports each to the runner. */
import { relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { processWide } from '../../src/core/kernel/global-registry.ts';
import { compiled } from '../harness/compiled.ts';
import { runRegistered, type Totals } from '../harness/door.ts';
import { HANG_MS } from '../harness/wait.ts';
import { root } from './plan.ts';
import { processorTimes, type Report } from './reports.ts';

/** The state of the product's guard of stdout, whichever copy of the product has it. */
const stdout = processWide('troupe.stdout', (): { guard?: { release(): void } | undefined; serves: boolean } => ({
  serves: false,
}));

/** The waits of `troupe/testing`. */
const waits = processWide('troupe.testing.waits', () => ({ deadlineMs: 0, timers: new Set<NodeJS.Timeout>() }));
// A busy machine takes longer than their default.
waits.deadlineMs = HANG_MS;

/** Longest that a process may live on after its tests, in milliseconds: a busy machine closes the last sockets late. */
const LINGER_MS = 30_000;

export async function runInside(files: readonly string[]): Promise<void> {
  const tell = (report: Report): void => void process.send?.(report);
  let used = { own: 0, children: 0 };
  const active: (readonly string[])[] = [];
  const restore = surroundings();
  for (const file of files) {
    process.stdout.write(`\n${relative(root, file)}\n`);
    tell({ kind: 'begin', file });
    const began = performance.now();
    let totals: Totals = { passed: 0, failed: 1, skipped: 0, failure: 'did not run', conclusive: false, expensive: [] };
    let loading = 0;
    try {
      await import(pathToFileURL(compiled(file)).href);
      loading = processorTimes().own - used.own;
      totals = await runRegistered();
    } catch (error) {
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      process.stderr.write(`${file} did not run: ${reason}\n`);
    }
    if (totals.failed > 0) process.exitCode = 1;
    const before = used;
    used = processorTimes();
    const children = used.children - before.children;
    const processor = used.own - before.own + children;
    tell({ kind: 'end', file, totals, seconds: (performance.now() - began) / 1000, processor, loading, children });
    // No test awaits what is left of them, such as the answer of a process that was killed.
    for (const timer of waits.timers) timer.unref();
    active.push(process.getActiveResourcesInfo());
    restore();
  }
  process.disconnect?.();
  // A test that leaves a timer or a socket behind fails its process, but does not hold up the run.
  setTimeout(() => {
    process.stderr.write(
      `\n${relative(root, files.at(-1) ?? '')}: still active after the tests: ${leftBehind(files, active)}\n`,
    );
    process.exit(1);
  }, LINGER_MS).unref();
}

/** Remembers the environment and the outputs, which files replace. @returns what restores them for the next file */
function surroundings(): () => void {
  const env = { ...process.env };
  const writes = [process.stdout, process.stderr].map((stream) => [stream, stream.write] as const);
  const said = { ...console };
  return () => {
    // A command that served in this process has taken stdout for itself, for as long as its process lives.
    stdout.guard?.release();
    for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
    Object.assign(process.env, env);
    // An output that nobody replaced has its method from its class.
    for (const [stream, write] of writes) if (stream.write !== write) stream.write = write;
    Object.assign(console, said);
  };
}

/** What keeps the process alive, and for each kind the file since which as many are there: probably the one that left them. */
function leftBehind(files: readonly string[], active: readonly (readonly string[])[]): string {
  const count = (all: readonly string[], kind: string): number => all.filter((each) => each === kind).length;
  const left = process.getActiveResourcesInfo();
  return [...new Set(left)]
    .map((kind) => {
      const before = active.findLastIndex((all) => count(all, kind) < count(left, kind));
      return `${count(left, kind)} ${kind} since ${relative(root, files[before + 1] ?? 'the end')}`;
    })
    .join(', ');
}
