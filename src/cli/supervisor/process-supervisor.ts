/** `troupe run`, the process that an agent starts: it holds the agent's pipes, and keeps a worker process behind them that serves. It loads no server. */
import { constants } from 'node:os';
import { type Clock, systemClock } from '../../clock.ts';
import { messageOf } from '../../protocol/json.ts';
import { watchParent } from '../../transports/parent-watch.ts';
import type { ServerLink } from '../shim/server-link.ts';
import { Shim } from '../shim/shim.ts';
import { say } from '../usage.ts';
import { GaveUp, Restarts } from './restarts.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Between two looks for a vanished parent process, in milliseconds. */
const PARENT_MS = 2_000;

/** How long a worker may take to load, or to take up the agent's session, in milliseconds. */
const START_MS = 30_000;

/** How long an agent that has ended may take to read what its last worker has said, in milliseconds. */
const FLUSH_MS = 2_000;

/** The exit code when the server crashes again and again: "internal software error" of sysexits(3). */
const GAVE_UP = 70;

/** The worker has ended by itself, with a code that is ours then. */
class Ended extends Error {
  readonly code: number;

  constructor(why: string, code: number) {
    super(why);
    this.code = code;
  }
}

/**
 * Serves the agent that started this process, and ends the process.
 *
 * @param first the worker that serves first
 * @param start makes another, which waits to be released
 */
export async function supervise(first: WorkerProcess, start: () => WorkerProcess): Promise<never> {
  return new Supervisor(first, start, systemClock).run();
}

class Supervisor {
  readonly #start: () => WorkerProcess;
  readonly #clock: Clock;
  readonly #restarts: Restarts;
  readonly #shim: Shim;
  /** It has been started, and waits to be asked for. */
  #next: WorkerProcess | undefined;
  #worker: WorkerProcess | undefined;
  #deploying = false;
  #leaving = false;

  constructor(first: WorkerProcess, start: () => WorkerProcess, clock: Clock) {
    this.#start = start;
    this.#clock = clock;
    this.#next = first;
    this.#restarts = new Restarts({ clock, say: tell });
    this.#shim = new Shim({
      input: process.stdin,
      output: process.stdout,
      dial: () => this.#dial(),
      patience: {
        failed(error) {
          throw error;
        },
        lost: (_livedMs, refusal) => this.#lost(refusal),
        deadline: (late) => {
          const timer = clock.after(START_MS, late);
          return () => timer.cancel();
        },
      },
      say: tell,
    });
  }

  async run(): Promise<never> {
    // With the agent gone stderr breaks, too: that is no reason to leave a worker behind.
    process.stderr.on('error', () => {});
    watchParent({
      clock: this.#clock,
      everyMs: PARENT_MS,
      onGone: () => {
        this.#shim.stop('the agent has gone');
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
      if (!(error instanceof Ended)) tell(messageOf(error));
    }
    const last = await this.#end();
    return new Promise(() => {
      const exit = (): void => process.exit(code ?? last);
      process.stdout.write('', exit);
      this.#clock.hold();
      this.#clock.after(FLUSH_MS, exit);
    });
  }

  /** The agent has ended, or is to: that it reads nothing more keeps no process. */
  #leaveInTime(): void {
    this.#leaving = true;
    const worker = this.#worker;
    void worker?.ended.then(({ code }) => {
      this.#clock.after(FLUSH_MS, () => {
        if (this.#worker === worker) process.exit(code ?? 1);
      });
    });
  }

  /** Ends what still runs. @returns the exit code of the worker that served last */
  async #end(): Promise<number> {
    this.#next?.kill();
    const worker = this.#worker;
    if (!worker) return 0;
    // An agent that reads nothing more needs no answers.
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
    const worker = this.#next ?? this.#start();
    this.#next = undefined;
    this.#worker = worker;
    if (this.#leaving) this.#leaveInTime();
    worker.release(before?.pid !== undefined && ending ? { pid: before.pid, crashed: ending.crashed } : undefined);
    return worker.link;
  }

  /** The worker has gone while the agent is there. @throws {Ended | GaveUp} */
  async #lost(refusal: string): Promise<void> {
    const worker = this.#worker;
    if (!worker || worker.replaced) return;
    const { code, byItself, why } = await worker.ended;
    if (byItself) throw new Ended('the server has ended', 0);
    // What has never worked is for its author to mend: it has said why.
    if (code !== null && !this.#shim.hasServed)
      throw new Ended(`${why} before it could serve: it says why on stderr`, code || 1);
    await this.#restarts.crashed(refusal === '' ? why : `the server would not go on with the session (${refusal})`);
  }

  #watchSignals(): void {
    let asked = false;
    const stop = (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void => {
      if (asked) {
        this.#worker?.kill();
        this.#next?.kill();
        process.exit(128 + constants.signals[signal]);
      }
      asked = true;
      this.#shim.stop('the server is shutting down');
      this.#leaveInTime();
    };
    process.on('SIGTERM', stop).on('SIGINT', stop);
    // On a terminal it says that the terminal has gone.
    process.on('SIGHUP', (signal) => (process.stdin.isTTY ? stop('SIGHUP') : void this.#deploy(signal)));
  }

  /** A new worker takes the place of the one that serves, once it has loaded; the agent keeps its session. */
  async #deploy(reason: string): Promise<void> {
    if (this.#deploying || this.#next) return tell(`${reason}: a new worker is being started already`);
    this.#deploying = true;
    const next = this.#start();
    const timer = this.#clock.after(START_MS, () => next.kill());
    const loaded = await next.loaded;
    timer.cancel();
    this.#deploying = false;
    if (this.#shim.isDone) return next.kill();
    if (!loaded) {
      const { why } = await next.ended;
      return tell(`${reason}: ${why} before it could serve: the worker before it goes on`);
    }
    tell(`${reason}: a new worker has loaded: the one before finishes what it has, and ends`);
    this.#next = next;
    this.#shim.handOver();
  }
}

function tell(line: string): void {
  say(`troupe run: ${line}`);
}
