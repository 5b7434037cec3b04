/** The supervisor process of `troupe run`: holds the agent's pipes and restarts the worker process behind them. It does not load the server. */
import { constants } from 'node:os';
import { type Clock, systemClock } from '../../core/kernel/clock.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { watchParent } from '../../core/transports/parent-watch.ts';
import type { ServerLink } from '../shim/server-link.ts';
import { Shim } from '../shim/shim.ts';
import { say } from '../usage.ts';
import { GaveUp, Restarts } from './restarts.ts';
import type { WorkerProcess } from './worker-process.ts';

/** The interval between checks for the parent process, in milliseconds. */
const PARENT_MS = 2_000;

/** Maximum time in milliseconds for a worker to load, or to resume the agent's session. */
const START_MS = 30_000;

/** Maximum time in milliseconds for an agent that has closed stdin to read the last output. */
const FLUSH_MS = 2_000;

/** The exit code after too many crashes: "internal software error" of sysexits(3). */
const GAVE_UP = 70;

/** The worker has ended and must not be restarted. The supervisor exits with its code. */
class Ended extends Error {
  readonly code: number;

  constructor(why: string, code: number) {
    super(why);
    this.code = code;
  }
}

/**
 * Serves the agent that started this process, then ends the process.
 *
 * @param first the first worker
 * @param start starts another worker, which loads the program and waits for its release
 */
export async function supervise(first: WorkerProcess, start: () => WorkerProcess): Promise<never> {
  return new Supervisor(first, start, systemClock).run();
}

type SupervisorState =
  | 'serving'
  /** The agent or the parent process has left. */
  | 'leaving'
  /** A signal has asked this process to stop. A second one stops it at once. */
  | 'stopping';

/** The worker after the current one. */
type NextWorker =
  | { readonly state: 'none'; readonly worker?: undefined }
  /** Its program loads, in order to replace the current worker. */
  | { readonly state: 'loading'; readonly worker: WorkerProcess }
  /** The worker waits for its release. */
  | { readonly state: 'waiting'; readonly worker: WorkerProcess };

const NONE: NextWorker = { state: 'none' };

class Supervisor {
  readonly #start: () => WorkerProcess;
  readonly #clock: Clock;
  readonly #restarts: Restarts;
  readonly #shim: Shim;
  #worker: WorkerProcess | undefined;
  #next: NextWorker;
  #state: SupervisorState = 'serving';

  constructor(first: WorkerProcess, start: () => WorkerProcess, clock: Clock) {
    this.#start = start;
    this.#clock = clock;
    this.#next = { state: 'waiting', worker: first };
    this.#restarts = new Restarts({ clock, say: report });
    this.#shim = new Shim({
      input: process.stdin,
      output: process.stdout,
      dial: () => this.#dial(),
      retryPolicy: {
        failed(error) {
          throw error;
        },
        lost: (_livedMs, refusal) => this.#lost(refusal),
        deadline: (late) => {
          const timer = clock.after(START_MS, late);
          return () => timer.cancel();
        },
      },
      say: report,
    });
  }

  async run(): Promise<never> {
    // After the agent exits, stderr breaks, too. An unhandled error would leave the worker running.
    process.stderr.on('error', () => {});
    watchParent({
      clock: this.#clock,
      everyMs: PARENT_MS,
      onGone: () => {
        this.#shim.stop('the agent has exited');
        this.#leaveInTime();
      },
      onUnable() {},
    });
    this.#watchSignals();
    process.stdin.once('end', () => this.#leaveInTime()).once('close', () => this.#leaveInTime());
    let code: number | undefined;
    try {
      await this.#shim.run();
    } catch (error) {
      code = error instanceof Ended ? error.code : error instanceof GaveUp ? GAVE_UP : 1;
      if (!(error instanceof Ended)) report(messageOf(error));
    }
    const last = await this.#end();
    return new Promise(() => {
      const exit = (): void => process.exit(code ?? last);
      process.stdout.write('', exit);
      this.#clock.hold();
      this.#clock.after(FLUSH_MS, exit);
    });
  }

  /** Exits soon after the worker has ended, even if the agent does not read the remaining output. */
  #leaveInTime(): void {
    if (this.#state === 'serving') this.#state = 'leaving';
    const worker = this.#worker;
    void worker?.ended.then(({ code }) => {
      this.#clock.after(FLUSH_MS, () => {
        if (this.#worker === worker) process.exit(code ?? 1);
      });
    });
  }

  /** Ends the running workers. @returns the exit code of the last worker that served */
  async #end(): Promise<number> {
    this.#next.worker?.kill();
    const worker = this.#worker;
    if (!worker) return 0;
    // Drain the output even if the agent does not read, so that the worker can end.
    worker.link.input.resume();
    worker.link.output.end();
    const hold = this.#clock.hold();
    const { code } = await worker.ended;
    hold.cancel();
    return code ?? 1;
  }

  async #dial(): Promise<ServerLink> {
    const before = this.#worker;
    const ending = await before?.ended;
    const next = this.#next;
    const worker = next.state === 'waiting' ? next.worker : this.#start();
    if (next.state === 'waiting') this.#next = NONE;
    this.#worker = worker;
    if (this.#state !== 'serving') this.#leaveInTime();
    worker.release(before?.pid !== undefined && ending ? { pid: before.pid, crashed: ending.crashed } : undefined);
    return worker.link;
  }

  /** The worker has ended while the agent is connected. @throws {Ended | GaveUp} */
  async #lost(refusal: string): Promise<void> {
    const worker = this.#worker;
    if (!worker || worker.replaced) return;
    const { code, byItself, why } = await worker.ended;
    if (byItself) throw new Ended('the server has ended', 0);
    // A program that fails before it ever served has an error that a restart does not fix. The worker has printed it.
    if (code !== null && !this.#shim.hasServed)
      throw new Ended(`${why} before it could serve: see its output on stderr`, code || 1);
    await this.#restarts.crashed(refusal === '' ? why : `the server rejected the session (${refusal})`);
  }

  #watchSignals(): void {
    const stop = (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void => {
      if (this.#state === 'stopping') {
        this.#worker?.kill();
        this.#next.worker?.kill();
        process.exit(128 + constants.signals[signal]);
      }
      this.#state = 'stopping';
      this.#shim.stop('the server is shutting down');
      this.#leaveInTime();
    };
    process.on('SIGTERM', stop).on('SIGINT', stop);
    // On a terminal, SIGHUP means that the terminal was closed.
    process.on('SIGHUP', (signal) => (process.stdin.isTTY ? stop('SIGHUP') : void this.#deploy(signal)));
  }

  /** Loads a new worker and replaces the current one with it. The agent keeps its session. */
  async #deploy(reason: string): Promise<void> {
    if (this.#next.state !== 'none') return report(`${reason}: a new worker is already starting`);
    const next = this.#start();
    this.#next = { state: 'loading', worker: next };
    const timer = this.#clock.after(START_MS, () => next.kill());
    const loaded = await next.loaded;
    timer.cancel();
    this.#next = NONE;
    if (this.#shim.isDone) return next.kill();
    if (!loaded) {
      const { why } = await next.ended;
      return report(`${reason}: ${why} before it could serve: the current worker continues`);
    }
    report(`${reason}: a new worker has loaded: the old worker finishes its requests and ends`);
    this.#next = { state: 'waiting', worker: next };
    this.#shim.handOver();
  }
}

function report(line: string): void {
  say(`troupe run: ${line}`);
}
