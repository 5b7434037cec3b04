/** Runs a job of test files in a process, and judges how that process ended. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import spawn from 'cross-spawn';
import { compiled } from '../harness/compiled.ts';
import { type Job, root } from './plan.ts';
import type { Ended, Report } from './reports.ts';
import { runPostgres } from './run-postgres.ts';

/** The environment variable by which the processes of a job are found when it has ended. */
export const MARK = 'TROUPE_TEST_JOB';
/** Longest that a process of a job may take to end after the job, in milliseconds. */
const ENDING_MS = Number(process.env.TROUPE_TEST_ENDING_MS ?? 30_000);

/** A file that failed. */
export interface Failure {
  readonly file: string;
  /** The first of its failures, in one line. */
  readonly reason: string;
  /** A failure that another run cannot excuse: a leaked process, a lost acknowledged effect, a simulated world. */
  readonly conclusive: boolean;
}

export interface JobResult {
  readonly output: string;
  readonly ended: readonly Ended[];
  readonly failures: readonly Failure[];
  /** The files after one that ended the process. */
  readonly rest: readonly string[];
}

/**
 * The options of a process that many files share: young objects get 64 MB before V8 collects them, instead of 16. The code of a
 * test runs a few times, so V8 optimizes it 15 times as late. In six pairs of runs beside other work, both saved 4 to 28 % of
 * the processor time.
 */
const ROOMY = ['--max-semi-space-size=64', '--interrupt-budget=1000000'];

/**
 * The options of each process of a quick run: WebAssembly is compiled once, fast. A script of a test computes for milliseconds, and
 * V8 spends half a second of processor time on optimizing its engine. The full run has the settings of Node.
 */
const QUICK = ['--liftoff-only'];

/** The arguments of the runner choose the scale after this file was loaded. */
const isQuick = (): boolean => (process.env.TROUPE_SCALE ?? 'quick') === 'quick';

/** The option of a process whose input is late, if the run asks for it. */
const late = (): readonly string[] =>
  process.env.TROUPE_TEST_LATE_MS === undefined
    ? []
    : ['--import', pathToFileURL(compiled('test/harness/late-io.ts')).href];

let started = 0;

/** The directories of this run: the state of the commands of the tests, in place of the person's own, and their temporary files. */
interface Directories {
  readonly state: string;
  readonly temporary: string;
}

let directories: Directories | undefined;

function directoriesOfRun(): Directories {
  if (directories !== undefined) return directories;
  const memory = inMemory();
  if (memory) removeLeftBehind(MEMORY);
  const temporary = mkdtempSync(join(memory ? MEMORY : tmpdir(), `troupe-test-${process.pid}-`));
  process.once('exit', () => rmSync(temporary, { recursive: true, force: true }));
  // PostgreSQL, which runs as another user, has its directory below it.
  chmodSync(temporary, 0o711);
  const state = join(temporary, 'state');
  mkdirSync(state);
  directories = { state, temporary };
  return directories;
}

/** The file system in memory that Linux has. */
const MEMORY = '/dev/shm';
/** Bytes that must be free there. */
const ROOM = { quick: 4 * 1024 ** 3, full: 8 * 1024 ** 3 };

/** How long nothing was made in a directory that a killed run has left, in milliseconds. */
const LEFT_MS = 600_000;

/** Removes the directories of runs that were killed, whose files would stay in memory. */
export function removeLeftBehind(memory: string): void {
  for (const name of readdirSync(memory)) {
    const [, pid] = /^troupe-test-(\d+)-/.exec(name) ?? [];
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    const folder = join(memory, name);
    const made = statSync(folder, { throwIfNoEntry: false });
    // Another container may share this memory, and has other processes.
    if (made !== undefined && made.uid === process.getuid?.() && Date.now() - made.mtimeMs > LEFT_MS)
      rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Whether the temporary files of this run are in memory: an eighth of the processor time of tests with stores went into the files
 * and the syncs of a disk, and a disk that others use makes a test wait for minutes. A run with repetitions (`--proof`) writes to the
 * disk, so that each test has been seen on both. A container may have little room there, or forbid programs.
 */
function inMemory(): boolean {
  const scale = process.env.TROUPE_SCALE ?? 'quick';
  if (scale === 'proof' || !existsSync('/proc/mounts')) return false;
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .find(([, folder]) => folder === MEMORY);
  if (mount === undefined || mount[3]?.split(',').some((option) => option === 'noexec' || option === 'ro'))
    return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= ROOM[scale === 'quick' ? 'quick' : 'full'];
}

export async function runJob({ files, roomy = false }: Job): Promise<JobResult> {
  const mark = `${process.pid}-${++started}`;
  const { output, ended, current, code, signal } = await endOf(files, roomy, mark);
  const failures: Failure[] = ended
    .filter(({ totals }) => totals.failed > 0)
    .map(({ file, totals: { failure, conclusive } }) => ({ file, reason: failure ?? 'failed', conclusive }));
  // A process that died takes the file that it was in with it. One that fails after its tests, all of which passed, counts as its last file.
  const died = current ?? (code !== 0 && failures.length === 0 ? files.at(-1) : undefined);
  let text = output;
  if (died !== undefined) {
    const reason = signal ? `its process was ended by ${signal}` : `its process ended with ${code}`;
    failures.push({ file: died, reason, conclusive: false });
    if (signal) text += `\n${relative(root, died)}: ${reason}\n`;
  }
  for (const [pid, command] of await leaked(mark)) {
    const reason = `leaked process ${pid}: ${command}`;
    text += `\n${files.map((file) => relative(root, file)).join(', ')}: ${reason}\n`;
    failures.push({ file: files.at(-1) ?? '', reason, conclusive: true });
    kill(pid);
  }
  return { output: text, ended, failures, rest: files.slice(ended.length + (current === undefined ? 0 : 1)) };
}

interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
  readonly ended: readonly Ended[];
  /** The file that was running when the process ended. */
  readonly current: string | undefined;
}

function endOf(files: readonly string[], roomy: boolean, mark: string): Promise<End> {
  const { state, temporary } = directoriesOfRun();
  return new Promise((done) => {
    const child = spawn(
      process.execPath,
      [...(isQuick() ? QUICK : []), ...(roomy ? ROOMY : []), ...late(), compiled('test/run.ts'), '--inside', ...files],
      {
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
        env: {
          ...process.env,
          ...{ NODE_NO_WARNINGS: '1', XDG_STATE_HOME: state, LOCALAPPDATA: state, TMPDIR: temporary, [MARK]: mark },
        },
      },
    );
    let output = '';
    let current: string | undefined;
    const ended: Ended[] = [];
    const gather = (text: string): void => {
      output += text;
    };
    child.stdout?.setEncoding('utf8').on('data', gather);
    child.stderr?.setEncoding('utf8').on('data', gather);
    child.on('message', (message) => {
      const report = message as Report;
      if (report.kind === 'postgres')
        return void runPostgres(temporary).then((answer) => child.connected && child.send(answer));
      if (report.kind === 'end') ended.push(report);
      current = report.kind === 'begin' ? report.file : undefined;
    });
    child.on('close', (code, signal) => done({ code, signal, output, ended, current }));
  });
}

/** The processes that a job leaves, with their commands. A process that is ending gets its time. */
async function leaked(mark: string): Promise<Map<number, string>> {
  const until = performance.now() + ENDING_MS;
  for (;;) {
    const alive = processesOf(mark);
    if (alive.size === 0 || performance.now() > until) return alive;
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** The living processes that inherited the mark of a job. Only Linux shows the environment of other processes. */
function processesOf(mark: string): Map<number, string> {
  const found = new Map<number, string>();
  if (!existsSync('/proc/self/environ')) return found;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const environment = readFileSync(join('/proc', pid, 'environ'), 'utf8');
      if (!environment.split('\0').includes(`${MARK}=${mark}`)) continue;
      const state = /^\d+ \(.*\) (\w)/s.exec(readFileSync(join('/proc', pid, 'stat'), 'utf8'))?.[1];
      // A zombie has ended; the process that adopted it has not asked for its exit code yet.
      if (state === 'Z') continue;
      found.set(
        Number(pid),
        readFileSync(join('/proc', pid, 'cmdline'), 'utf8')
          .replaceAll('\0', ' ')
          .trim(),
      );
    } catch {
      // The process ended in between, or belongs to another user.
    }
  }
  return found;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended in the meantime.
  }
}
