/**
 * Runs the test files on all cores, the slowest first, and closes on one line that counts all tests. Short files that leave their
 * process as they found it share a process, which loads the sources once for all of them; every other file gets its own.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import spawn from 'cross-spawn';
import { compile, compiled } from './harness/compiled.ts';
import type { Totals } from './harness/door.ts';

const USAGE = 'usage: node --import tsx test/run.ts [--check] [--full] [--timings] [FILE…]';
const OPTIONS = ['--check', '--full', '--timings'];
const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
/** Seconds that the slow files took when they were last timed: only their order matters. `npm run test:timings` writes it. */
const DURATIONS = join(here, 'durations.json');
/** Files that take less are not listed. */
const SLOW_S = 2;
/** A file that takes this long gains little from a shared process, and alone it starts when it is its turn. */
const LONG_S = 8;
/** Tests wait for about half of their time (for timers, disks, other processes): two lanes a core leave a core idle now and then. */
const LANES = Math.ceil(2.5 * availableParallelism());
/** Longest that a process may live on after its tests, in milliseconds. */
const LINGER_MS = 5_000;

/** What a child reports of one file, on the IPC channel. */
type Report =
  | { readonly kind: 'begin'; readonly file: string }
  | {
      readonly kind: 'end';
      readonly file: string;
      readonly totals: Totals;
      readonly seconds: number;
      /** Processor seconds, those of ended child processes included. The first file of a process includes its start. */
      readonly processor: number;
    };

/** Linux counts processor time in hundredths of a second. */
const TICKS = 100;

/** Processor seconds of this process and of its ended children. The pages of a browser are not in it: they are no children of a process that waits for them. */
function processorSeconds(): number {
  if (process.platform !== 'linux') {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000_000;
  }
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // utime, stime, cutime and cstime: proc(5) counts them from the name, which is in brackets.
  const times = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15);
  return times.reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS;
}

/** The child's side: loads and runs one file after the other. */
async function runInside(files: readonly string[]): Promise<void> {
  const { runRegistered } = await import('./harness/door.ts');
  const tell = (report: Report): void => void process.send?.(report);
  let used = 0;
  const active: (readonly string[])[] = [];
  for (const file of files) {
    process.stdout.write(`\n${relative(root, file)}\n`);
    tell({ kind: 'begin', file });
    const began = performance.now();
    let totals: Totals = { passed: 0, failed: 1, skipped: 0 };
    try {
      await import(pathToFileURL(compiled(file)).href);
      totals = await runRegistered();
    } catch (error) {
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      process.stderr.write(`${file} did not run: ${reason}\n`);
    }
    if (totals.failed > 0) process.exitCode = 1;
    const before = used;
    used = processorSeconds();
    tell({ kind: 'end', file, totals, seconds: (performance.now() - began) / 1000, processor: used - before });
    active.push(process.getActiveResourcesInfo());
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

/**
 * Files that `npm test` leaves to `npm run test:full`, because each takes many seconds of the processor and another file of
 * its subject is quick: of views the order, of the page its overview, of `troupe run` its programs and restarts, of errors at a
 * start the options, of nodes outages and continuity, of clients v1 and v2-http, of floods the overload, of retention the store's
 * contract, of examples the order, of the first hour the tutorial, of a shutdown the server's.
 */
const ONLY_FULL: ReadonlySet<string> = new Set([
  'test/apps/browser/machine.test.ts',
  'test/apps/browser/tool.test.ts',
  'test/bench/suite.test.ts',
  'test/cli/long-lived.test.ts',
  'test/cli/pipes.test.ts',
  'test/cli/responses.test.ts',
  'test/cli/startup-errors.test.ts',
  'test/cli/store-option.test.ts',
  'test/cli/stored-audit.test.ts',
  'test/cli/supervised.test.ts',
  'test/client/peers.test.ts',
  'test/clients/mcp-remote.test.ts',
  'test/clients/v1-http.test.ts',
  'test/clients/v2.test.ts',
  'test/cluster/promotion.test.ts',
  'test/cluster/takeover.test.ts',
  'test/durable/database.test.ts',
  'test/durable/deadly.test.ts',
  'test/examples/nodes.test.ts',
  'test/examples/order-kill.test.ts',
  'test/examples/refund.test.ts',
  'test/first-hour/migration.test.ts',
  'test/harness/postgres.test.ts',
  'test/inspector/browser/acts.test.ts',
  'test/inspector/browser/apps.test.ts',
  'test/inspector/browser/looks.test.ts',
  'test/inspector/browser/page.test.ts',
  'test/inspector/browser/server-view.test.ts',
  'test/inspector/browser/sharing.test.ts',
  'test/mounts/killed.test.ts',
  'test/mounts/official-clients.test.ts',
  'test/mounts/peers.test.ts',
  'test/security/flood.test.ts',
  'test/shutdown/process.test.ts',
  'test/simulation/nodes.test.ts',
  'test/store/damage.test.ts',
  'test/store/postgres/failover.test.ts',
  'test/store/postgres/membership.test.ts',
  'test/store/retention.test.ts',
]);

interface Job {
  readonly files: readonly string[];
  readonly seconds: number;
}

async function runAll(words: readonly string[]): Promise<void> {
  const timings = words.includes('--timings');
  const named = words.filter((word) => !word.startsWith('--')).map((file) => resolve(file));
  if (words.some((word) => word.startsWith('--') && !OPTIONS.includes(word))) throw new Error(USAGE);
  if (words.includes('--full')) process.env.TROUPE_SCALE = 'full';
  const missing = named.find((file) => !existsSync(file));
  if (missing !== undefined) throw new Error(`there is no test file ${missing}\n${USAGE}`);
  const full = process.env.TROUPE_SCALE !== undefined && process.env.TROUPE_SCALE !== 'quick';
  const files = named.length > 0 ? named : testFiles().filter((file) => full || !ONLY_FULL.has(relative(root, file)));
  const expected = readDurations();
  const totals = { passed: 0, failed: 0, skipped: 0 };
  const broken = new Set<string>();
  const seconds = new Map<string, number>();
  const processor = new Map<string, number>();
  const began = performance.now();
  const check = words.includes('--check') ? runCheck() : undefined;
  await compile();
  // A few named files are quickest side by side; a whole run is quickest with few processes.
  const queue = jobsOf(files, named.length > 0 && named.length <= 2 * LANES ? () => false : sharesProcess, expected);
  const lane = async (): Promise<void> => {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      const result = await runJob(job.files);
      process.stdout.write(result.output);
      for (const { file, totals: counted, seconds: took, processor: used } of result.ended) {
        totals.passed += counted.passed;
        totals.failed += counted.failed;
        totals.skipped += counted.skipped;
        seconds.set(file, took);
        processor.set(file, used);
        if (counted.failed > 0) broken.add(relative(root, file));
      }
      // A process that died takes the file that it was in with it; the files after that one run in another process.
      // A process that fails after its tests, all of which passed, counts as its last file.
      const fails = result.code !== 0 && result.ended.every(({ totals: { failed } }) => failed === 0);
      const died = result.current ?? (fails ? job.files.at(-1) : undefined);
      if (died !== undefined) broken.add(relative(root, died));
      if (died !== undefined && result.signal)
        process.stdout.write(`\n${relative(root, died)}: its process was ended by ${result.signal}\n`);
      const rest = job.files.slice(result.ended.length + (result.current === undefined ? 0 : 1));
      if (rest.length > 0) queue.push({ files: rest, seconds: 0 });
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  if (check && !(await check)) broken.add('npm run check');
  if (timings) {
    report(seconds, processor);
    if (named.length === 0) writeDurations(seconds);
  }
  if (broken.size > 0) process.stdout.write(`\nnot green: ${[...broken].join(', ')}\n`);
  const failed = Math.max(totals.failed, broken.size);
  const took = ((performance.now() - began) / 1000).toFixed(1);
  process.stdout.write(`\n${files.length} files in ${took} s, ${processorSeconds().toFixed(1)} s of processor time\n`);
  process.stdout.write(`${totals.passed} passed, ${failed} failed, ${totals.skipped} skipped\n`);
  process.exitCode = failed > 0 || totals.passed === 0 ? 1 : 0;
}

/** Checks types and style beside the first files, and prints what it finds at once. @returns true if it finds nothing */
async function runCheck(): Promise<boolean> {
  const child = spawn('npm', ['run', '--silent', 'check'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'close');
  return code === 0;
}

function testFiles(): string[] {
  return readdirSync(here, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') && !file.includes('fixtures'))
    .sort()
    .map((file) => join(here, file));
}

/** The slowest first, so that no long file is left over at the end; files that share a process are dealt out evenly. */
function jobsOf(
  files: readonly string[],
  shares: (file: string) => boolean,
  expected: ReadonlyMap<string, number>,
): Job[] {
  const slow = (file: string): number => expected.get(relative(root, file)) ?? SLOW_S / 4;
  const shared: { files: string[]; seconds: number }[] = Array.from({ length: LANES }, () => ({
    files: [],
    seconds: 0,
  }));
  const alone: Job[] = [];
  for (const file of [...files].sort((a, b) => slow(b) - slow(a))) {
    if (slow(file) >= LONG_S || !shares(file)) {
      alone.push({ files: [file], seconds: slow(file) });
      continue;
    }
    const least = shared.reduce((a, b) => (b.seconds < a.seconds ? b : a));
    least.files.push(file);
    least.seconds += slow(file);
  }
  return [...alone, ...shared.filter((job) => job.files.length > 0)].sort((a, b) => b.seconds - a.seconds);
}

/**
 * The names of what a file can change in its process for the files after it, such as a hook of the module loader, and of what
 * the files before it change for its measurements. A file that has one of them, itself or in a file of the tests that it
 * imports, runs in a process of its own.
 */
const PROCESS =
  /node:(?:inspector|v8)\b|playwright|\bpreloadAjv\b|\.discover\(|(?<![.\w])process\.(?:emit|stdin|memoryUsage|chdir|execArgv|title|getActiveResourcesInfo)\b|(?<![.\w])process\.(?:on|once)\('(?!exit')|(?<![.\w])process\.(?:exitCode|env\.\w+|stdout\.write|stderr\.write) = |delete process\.env|\bgc\(|Object\.assign\(globalThis|globalThis\.\w+ = |console\.\w+ = |\bError\.\w+ = /;

function sharesProcess(file: string): boolean {
  const seen = new Set<string>();
  const look = (path: string): boolean => {
    if (seen.has(path)) return true;
    seen.add(path);
    const text = readFileSync(path, 'utf8');
    if (PROCESS.test(text)) return false;
    return [...text.matchAll(/from '(\.[^']+\.ts)'/g)]
      .map(([, from = '']) => resolve(dirname(path), from))
      .filter((from) => from.startsWith(here) && existsSync(from) && from !== join(here, 'harness', 'door.ts'))
      .every(look);
  };
  return look(file);
}

interface JobResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
  readonly ended: readonly Extract<Report, { kind: 'end' }>[];
  /** The file that was running when the process died. */
  readonly current: string | undefined;
}

function runJob(files: readonly string[]): Promise<JobResult> {
  return new Promise((done) => {
    const child: ChildProcess = spawn(process.execPath, [compiled(import.meta.url), '--inside', ...files], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...process.env, NODE_NO_WARNINGS: '1' },
    });
    let output = '';
    let current: string | undefined;
    const ended: Extract<Report, { kind: 'end' }>[] = [];
    const gather = (text: string): void => {
      output += text;
    };
    child.stdout?.setEncoding('utf8').on('data', gather);
    child.stderr?.setEncoding('utf8').on('data', gather);
    child.on('message', (message) => {
      const report = message as Report;
      if (report.kind === 'end') ended.push(report);
      current = report.kind === 'begin' ? report.file : undefined;
    });
    child.on('close', (code, signal) => done({ code, signal, output, ended, current }));
  });
}

function readDurations(): Map<string, number> {
  if (!existsSync(DURATIONS)) return new Map();
  const listed = JSON.parse(readFileSync(DURATIONS, 'utf8')) as Record<string, number>;
  return new Map(Object.entries(listed));
}

function writeDurations(seconds: ReadonlyMap<string, number>): void {
  const listed = [...seconds]
    .filter(([, took]) => took >= SLOW_S)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([file, took]) => [relative(root, file), Math.round(took)] as const);
  writeFileSync(DURATIONS, `${JSON.stringify(Object.fromEntries(listed), undefined, 2)}\n`);
}

/** The seconds of each file, and its processor seconds: the sum of those bounds the duration of a run. */
function report(seconds: ReadonlyMap<string, number>, processor: ReadonlyMap<string, number>): void {
  process.stdout.write('\n seconds processor\n');
  const used = (file: string): number => processor.get(file) ?? 0;
  for (const [file, took] of [...seconds].sort(([a], [b]) => used(b) - used(a)))
    process.stdout.write(
      `${took.toFixed(2).padStart(8)} ${used(file).toFixed(2).padStart(9)}  ${relative(root, file)}\n`,
    );
}

const args = process.argv.slice(2);
if (args[0] === '--inside') await runInside(args.slice(1));
else await runAll(args);
