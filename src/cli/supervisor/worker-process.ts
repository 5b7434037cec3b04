/** One worker process: the supervisor's end of its pipes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { Duplex, type Readable, type Writable } from 'node:stream';
import { type Clock, systemClock, type Timer } from '../../core/kernel/clock.ts';
import type { PreviousProcess } from '../../core/server/launcher.ts';
import type { OwnProcess, ServerLink } from '../shim/server-link.ts';
import { describeExit, exitOf } from './child-exit.ts';
import { Heartbeat } from './heartbeat.ts';
import { processState } from './process-state.ts';

/** Maximum time in milliseconds beyond `limits.graceMs` for a worker to end. */
const SLACK_MS = 5_000;

/** The grace time of a worker that has not reported its `limits.graceMs`, in milliseconds. */
const UNKNOWN_GRACE_MS = 5_000;

/** Maximum time in milliseconds for a worker to end after one of its pipes closes: the pipes of a process also close when it ends. */
const CLOSED_MS = 1_000;

/** The interval between checks whether output of an ended worker still arrives, in milliseconds. */
const REMAINDER_MS = 250;

/**
 * Names the agent's session for a server with a durable store. All workers of this supervisor get the same name. It must be
 * unique, not secret, so it is made without `node:crypto`, which costs 3 to 6 ms before the first worker starts.
 */
const SESSION = [Date.now(), process.pid, process.hrtime.bigint(), Math.random().toString().slice(2)].join('-');

/** The signals with which the system or V8 ends a faulty process. Any other signal comes from outside, including SIGKILL when memory runs out. */
const FAULTS: ReadonlySet<string> = new Set(['SIGABRT', 'SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGTRAP', 'SIGSYS']);

/** The inspector's address and the recording: one worker at a time owns them. */
interface SharedInspection {
  /** The port that the first worker chose; later workers use it again. */
  port: number;
  readonly token: string;
  /** The number of workers that have owned it. */
  workers: number;
  /** Settles when no earlier worker owns it. */
  released: Promise<unknown>;
}

interface WorkerOptions {
  /** The arguments of node. */
  readonly command: readonly string[];
  /** Present if the server is inspected or recorded. */
  readonly inspection?: SharedInspection | undefined;
  readonly clock?: Clock;
}

/** The end of a worker. */
interface Ending {
  readonly code: number | null;
  /** The program has ended itself with code 0: the supervisor does not restart it. */
  readonly byItself: boolean;
  /** The worker failed; false if it was killed from outside. */
  readonly crashed: boolean;
  /** A description such as "the server was killed by SIGKILL". */
  readonly why: string;
}

/** The reason for which a worker cannot continue. */
interface Failure {
  readonly why: string;
  /** Its event loop was blocked for longer than the watchdog allows. */
  readonly blocked: boolean;
}

type WorkerState =
  | { readonly state: 'running'; readonly failure?: undefined }
  /** The process was killed, or a signal from outside has asked it to end. */
  | { readonly state: 'failing'; readonly failure: Failure }
  /** Another worker replaces it: its end is not a crash. */
  | { readonly state: 'replaced'; readonly failure: Failure | undefined }
  | { readonly state: 'ended'; readonly itself: boolean; readonly replaced: boolean; readonly failure?: undefined };

export class WorkerProcess {
  readonly link: ServerLink;
  /** Settles when the process has ended. */
  readonly ended: Promise<Ending>;
  /** True when the program has loaded; false if the process ends first. */
  readonly loaded: Promise<boolean>;
  readonly #child: ChildProcess;
  readonly #control: Duplex | undefined;
  readonly #inspection: SharedInspection | undefined;
  readonly #clock: Clock;
  readonly #heartbeat: Heartbeat;
  #graceMs = UNKNOWN_GRACE_MS;
  #durable = false;
  #deadline: Timer | undefined;
  #state: WorkerState = { state: 'running' };
  #onLoaded: (loaded: boolean) => void = () => {};

  constructor({ command, inspection, clock = systemClock }: WorkerOptions) {
    this.#clock = clock;
    this.#inspection = inspection;
    const child = spawn(process.execPath, command, {
      // The worker inherits stderr, so its output is not copied.
      stdio: ['pipe', 'pipe', 'inherit', 'pipe'],
      env: { ...process.env, TROUPE_WORKER: '1', TROUPE_SESSION: SESSION },
      windowsHide: true,
    });
    this.#child = child;
    const { stdin, stdout } = child;
    if (!stdin || !stdout) throw new Error('cannot start the worker process: the system has no free file descriptors');
    const [, , , control] = child.stdio;
    this.#control = control instanceof Duplex ? control : undefined;
    this.#listen(this.#control);
    this.#heartbeat = new Heartbeat({
      clock,
      ask: () => void this.#control?.write('beat\n'),
      state: () => (child.pid === undefined ? 'running' : processState(child.pid)),
      dead: (why, blocked) => this.#end(why, blocked),
    });
    this.loaded = new Promise((resolve) => {
      this.#onLoaded = resolve;
    });
    this.ended = this.#endOf(child);
    void this.ended.then(() => {
      this.#heartbeat.stop();
      this.#deadline?.cancel();
      this.#onLoaded(false);
    });
    this.link = this.#linkTo(stdout, stdin);
    if (inspection) this.#handOver(inspection);
  }

  /** Gives the worker the inspection once all earlier workers have ended: they share one port and one file. */
  #handOver(inspection: SharedInspection): void {
    const { released } = inspection;
    inspection.released = Promise.all([released, this.ended]);
    // The token goes through the pipe: other users can read arguments and environments.
    void released.then(() => {
      this.#control?.write(`watch ${inspection.workers} ${inspection.port} ${inspection.token}\n`);
      inspection.workers += 1;
    });
  }

  async #endOf(child: ChildProcess): Promise<Ending> {
    const exit = await exitOf(child);
    const { code, signal } = exit;
    await this.#readControl();
    const { failure } = this.#state;
    const why = describeExit(exit, failure?.why);
    const byItself = code === 0 && failure === undefined;
    this.#state = { state: 'ended', itself: byItself, replaced: this.replaced };
    const crashed = failure?.blocked === true || (signal === null ? code !== 0 : FAULTS.has(signal));
    return { code, byItself, crashed, why: `the server ${why}` };
  }

  /** Reads the rest of the control channel. A child process of the worker may hold it open, so the wait is limited. */
  async #readControl(): Promise<void> {
    const control = this.#control;
    if (!control || control.readableEnded || control.destroyed) return;
    const hold = this.#clock.hold();
    await new Promise<void>((resolve) => {
      control.once('end', resolve).once('close', resolve);
      this.#clock.after(REMAINDER_MS, resolve);
    });
    hold.cancel();
  }

  /** Another worker replaces this one: its end is not a crash. */
  get replaced(): boolean {
    const state = this.#state;
    return state.state === 'replaced' || (state.state === 'ended' && state.replaced);
  }

  /** The supervisor has asked the worker to end: its stdin is closed, or another worker replaces it. */
  get #ending(): boolean {
    return this.replaced || this.link.output.writableEnded;
  }

  /** Ends a worker that can no longer serve: no response of it can reach the agent. */
  #breaks(why: string): void {
    if (!this.#ending) this.#end(why);
  }

  #end(why: string, blocked = false): void {
    this.#fails({ why, blocked });
    this.kill();
  }

  /** The first failure counts, except that a later one may show that the event loop is blocked. */
  #fails({ why, blocked }: Failure): void {
    const { state, failure } = this.#state;
    if (state === 'ended') return;
    const first = { why: failure?.why ?? why, blocked: blocked || failure?.blocked === true };
    this.#state = { state: state === 'replaced' ? state : 'failing', failure: first };
  }

  /** A pipe has closed: the worker has ended, or has closed the pipe itself. */
  #closed(pipe: string): void {
    if (!this.#ending) this.#clock.after(CLOSED_MS, () => this.#breaks(`closed its ${pipe}`));
  }

  /** Allows the worker to serve. @param previous the previous worker, if any */
  release(previous: PreviousProcess | undefined): void {
    const ending = previous ? ` ${previous.pid} ${previous.crashed ? 'crashed' : 'killed'}` : '';
    this.#control?.write(`go${ending}\n`);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Kills the process. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #linkTo(input: Readable, output: Writable): ServerLink {
    // 'close' follows every error.
    for (const stream of [input, output]) stream.on('error', () => {});
    input.once('end', () => this.#closed('stdout'));
    output.once('close', () => this.#closed('stdin'));
    // After the end of stdin, the worker finishes its requests and ends.
    output.once('finish', () => {
      // A server without a stdio transport does not read stdin.
      this.#control?.write('end\n');
      this.#endInTime();
    });
    const durable = (): boolean => this.#durable;
    const endedItself = (): boolean => {
      const state = this.#state;
      return state.state === 'ended' && state.itself && !state.replaced;
    };
    const ownProcess: OwnProcess = {
      loopRuns: () => this.#heartbeat.loopRuns,
      kill: (why) => this.#end(why),
      get endedItself() {
        return endedItself();
      },
    };
    return {
      input,
      output,
      closed: this.ended.then(() => this.#readRemainder(input)),
      get durable() {
        return durable();
      },
      ownProcess,
      drain: () => {
        const { failure } = this.#state;
        this.#state =
          this.#state.state === 'ended' ? { ...this.#state, replaced: true } : { state: 'replaced', failure };
        this.#child.kill('SIGTERM');
        this.#endInTime();
      },
      destroy: () => this.kill(),
    };
  }

  #endInTime(): void {
    this.#deadline ??= this.#clock.after(this.#graceMs + SLACK_MS, () => this.kill());
  }

  /** Reads the rest of stdout. A child process of the worker may hold it open, so the wait ends when nothing more arrives. */
  async #readRemainder(input: Readable): Promise<void> {
    let read = 0;
    input.on('data', ({ length }: { length: number }) => {
      read += length;
    });
    for (let before = -1; !input.readableEnded && !input.destroyed && (before !== read || input.isPaused()); ) {
      before = read;
      const hold = this.#clock.hold();
      await new Promise<void>((resolve) => {
        input.once('close', resolve);
        this.#clock.after(REMAINDER_MS, resolve);
      });
      hold.cancel();
    }
    input.destroy();
  }

  #listen(control: Duplex | undefined): void {
    let rest = '';
    control?.setEncoding('utf8').on('error', () => {});
    control?.once('close', () => this.#closed('control channel'));
    control?.on('data', (chunk: string) => {
      const words = (rest + chunk).split('\n');
      rest = words.pop() ?? '';
      for (const word of words) this.#receive(word);
    });
  }

  #receive(word: string): void {
    const [name, value] = word.split(' ');
    if (name === 'loaded') this.#onLoaded(true);
    else if (name === 'keeps') this.#durable = true;
    else if (name === 'serves') this.#heartbeat.begin(Number(value) || undefined);
    else if (name === 'beat') this.#heartbeat.answered(value === 'debugged');
    else if (name === 'cut') this.#breaks(`lost its connection (${word.slice('cut '.length)})`);
    // The worker finishes its requests and ends.
    else if (name === 'asked' && !this.#ending) this.#fails({ why: `was asked to end by ${value}`, blocked: false });
    else if (name === 'grace') this.#graceMs = Number(value) || UNKNOWN_GRACE_MS;
    else if (name === 'inspecting' && this.#inspection) this.#inspection.port = Number(value) || 0;
  }
}
