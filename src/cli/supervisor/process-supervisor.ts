/** The supervisor process of `troupe run`: holds the agent's pipes and restarts the worker process behind them. It does not load the server. */
import { type Clock, systemClock } from '../../core/kernel/clock.ts';
import { type RestartPolicy, Restarts } from '../../core/kernel/restarts.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { watchParent } from '../../core/transports/parent-watch.ts';
import type { ServerLink } from '../shim/server-link.ts';
import { Shim } from '../shim/shim.ts';
import { say } from '../usage.ts';
import { onSignals } from './child-exit.ts';
import type { WorkerProcess } from './worker-process.ts';

/** The interval between checks for the parent process, in milliseconds. */
const PARENT_MS = 2_000;

/** Maximum time in milliseconds for a worker to load, or to resume the agent's session. */
const START_MS = 30_000;

/** Maximum time in milliseconds for an agent that has closed stdin to read the last output. */
const FLUSH_MS = 2_000;

/** A worker that crashes more often would crash again. */
const POLICY: RestartPolicy = { restarts: 3, windowMs: 60_000, backOff: { fromMs: 100, toMs: 60_000 } };

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

/** The server crashed too often. */
class GaveUp extends Error {
  override readonly name = 'GaveUp';
}

type SupervisorState =
  | 'serving'
  /** The agent or the parent process has left. */
  | 'leaving'
  /** A signal has asked this process to stop. */
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
  readonly #restarts = new Restarts(POLICY);
  readonly #shim: Shim;
  #worker: WorkerProcess | undefined;
  #next: NextWorker;
  #state: SupervisorState = 'serving';

  constructor(first: WorkerProcess, start: () => WorkerProcess, clock: Clock) {
    this.#start = start;
    this.#clock = clock;
    this.#next = { state: 'waiting', worker: first };
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
    await this.#delay(refusal === '' ? why : `the server rejected the session (${refusal})`);
  }

  /** Resolves when another worker may start. @throws {GaveUp} */
  async #delay(why: string): Promise<void> {
    const { restarts, windowMs } = POLICY;
    const within = `within ${windowMs / 1_000} seconds`;
    // The hold keeps the process alive: the agent may have closed stdin and still wait for responses.
    const hold = this.#clock.hold();
    try {
      await new Promise<void>((resolve, reject) => {
        const delayMs = this.#restarts.restart(this.#clock, resolve);
        const { crashes } = this.#restarts;
        if (delayMs !== undefined) return report(`${why}: restarting (${crashes} of ${restarts} times ${within})`);
        reject(
          new GaveUp(`the server crashed ${crashes} times ${within} and will not be restarted. Last crash: ${why}`),
        );
      });
    } finally {
      hold.cancel();
    }
  }

  #watchSignals(): void {
    onSignals(
      () => {
        this.#state = 'stopping';
        this.#shim.stop('the server is shutting down');
        this.#leaveInTime();
      },
      () => {
        this.#worker?.kill();
        this.#next.worker?.kill();
      },
      (signal) => void this.#deploy(signal),
    );
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
