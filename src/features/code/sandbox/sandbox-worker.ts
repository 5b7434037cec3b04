/** One thread of the sandboxes, seen from the main thread: sends it one job at a time, and terminates it if a job does not end. */
import type { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../../core/kernel/clock.ts';
import { startThread } from '../../../core/kernel/package-files.ts';
import { timeIn } from './processor-time.ts';
import type { SandboxMail, SandboxThreadData, SandboxThreadMail } from './sandbox-protocol.ts';
import type { ScriptSlice } from './script.ts';

/** The job of a thread: a script until its rest. */
export interface SandboxJob {
  readonly mail: Exclude<SandboxMail, { type: 'drop' }>;
  readonly resolve: (slice: ScriptSlice | undefined) => void;
}

interface SandboxWorkerOptions extends Omit<SandboxThreadData, 'shared' | 'engine'> {
  readonly clock: Clock;
  /** Milliseconds after the bound of a job until its thread is terminated. */
  readonly graceMs: number;
  /** Called when the thread can take a job, with the runs that it holds no longer. */
  freed(evicted: readonly string[]): void;
  /**
   * Called when the thread has ended, with the job that it had.
   *
   * @param why undefined if the server ended the thread
   */
  ended(job: SandboxJob | undefined, why: SandboxDeath | undefined): void;
}

/** *stuck*: the script did not end when it was interrupted. */
export interface SandboxDeath {
  readonly type: 'stuck' | 'crashed';
  readonly error: Error;
}

const STUCK: SandboxDeath = { type: 'stuck', error: new Error('the script did not end when it was interrupted') };

/** Milliseconds in which a thread must have loaded its engine. */
const LOAD_MS = 30_000;
/** A script that waits for a processor has at most so many times the bound of a run. */
const PATIENCE = 10;
/** No count of the steps of a script. Where the system tells no time of a thread, a script that has made none meanwhile is stuck. */
const NEVER = -1;
/** Milliseconds until an idle thread is terminated to release its memory. The owners of its scripts repeat them. */
const IDLE_MS = 60_000;
/** The stack of WebAssembly is that of the thread. The engine ends a deep recursion before the thread does. */
const STACK_MIB = 8;
/** The memory of a thread outside of its sandboxes: the texts of messages. */
const HEAP_MIB = 256;

/** The engine that the first thread of this process has compiled. V8 shares its code: a later thread starts in a fourth of the processor time. */
let engine: WebAssembly.Module | undefined;

export class SandboxWorker {
  readonly #options: SandboxWorkerOptions;
  readonly #worker: Worker;
  readonly #shared = new SharedArrayBuffer(8);
  readonly #signals = new Int32Array(this.#shared);
  #ready = false;
  /** See {@link timeIn}. */
  #times: string | undefined;
  #job: SandboxJob | undefined;
  #timer: Timer | undefined;
  #death: SandboxDeath | undefined = { type: 'crashed', error: new Error('the thread ended by itself') };

  constructor(options: SandboxWorkerOptions) {
    this.#options = options;
    const { bounds, warm, clock } = options;
    const workerData: SandboxThreadData = { bounds, warm, shared: this.#shared, engine };
    // Its output goes to stderr: stdout may belong to the protocol.
    this.#worker = startThread('features/code/sandbox/sandbox-thread', {
      name: 'troupe sandbox',
      stdout: true,
      workerData,
      resourceLimits: { stackSizeMb: STACK_MIB, maxOldGenerationSizeMb: HEAP_MIB },
    });
    this.#worker.stdout.on('data', (chunk: Uint8Array) => void process.stderr.write(chunk));
    this.#worker.on('message', (mail: SandboxThreadMail) => this.#hear(mail));
    this.#worker.on('error', (error) => {
      if (this.#death?.type === 'crashed') this.#death = { type: 'crashed', error };
    });
    this.#worker.on('exit', () => this.#exit());
    this.#timer = clock.after(LOAD_MS, () =>
      this.#terminate({ type: 'crashed', error: new Error(`the engine did not load within ${LOAD_MS} ms`) }),
    );
  }

  get free(): boolean {
    return this.#ready && !this.#job;
  }

  /** The run whose script the thread is computing. */
  get run(): string | undefined {
    return this.#job?.mail.run;
  }

  take(job: SandboxJob): void {
    this.#job = job;
    this.#worker.ref();
    this.#worker.postMessage(job.mail);
    const { sliceMs, runMs } = this.#options.bounds;
    const deliveries = job.mail.deliveries.length + (job.mail.type === 'begin' ? 1 : 0);
    this.#watch(Math.min(sliceMs * deliveries, runMs));
  }

  /** Forgets the script of a run, and ends it if it runs. */
  drop(run: string): void {
    if (this.#job?.mail.run === run) Atomics.store(this.#signals, 0, this.#job.mail.job);
    else this.#worker.postMessage({ type: 'drop', run } satisfies SandboxMail);
  }

  end(): void {
    this.#terminate(undefined);
  }

  /** Terminates the thread if its job has not ended after so many milliseconds of its processor, and some more. */
  #watch(allowedMs: number): void {
    const job = this.#job;
    const { clock, bounds, graceMs } = this.#options;
    const began = clock.now();
    const since = this.#processorMs();
    const look = (waitMs: number, beats: number): void => {
      this.#timer?.cancel();
      this.#timer = clock.after(waitMs, () =>
        // After a stall of the event loop, the message may be there.
        clock.soon(() => {
          if (this.#job !== job) return;
          const used = this.#processorMs();
          const now = Atomics.load(this.#signals, 1);
          const leftMs = used === undefined || since === undefined ? undefined : allowedMs + graceMs - (used - since);
          const isStuck = leftMs === undefined ? now === beats : leftMs <= 0;
          if (isStuck || clock.now() - began > PATIENCE * bounds.runMs) this.#terminate(STUCK);
          else look(Math.max(leftMs ?? 0, graceMs), now);
        }),
      );
    };
    look(allowedMs + graceMs, NEVER);
  }

  /** Milliseconds that the thread has been on a processor, where the system tells them. */
  #processorMs(): number | undefined {
    return this.#times === undefined ? undefined : timeIn(this.#times);
  }

  #terminate(death: SandboxDeath | undefined): void {
    this.#death = death;
    this.#timer?.cancel();
    void this.#worker.terminate();
  }

  #hear(mail: SandboxThreadMail): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(IDLE_MS, () => this.end());
    // Only a thread that works for somebody keeps the process alive.
    this.#worker.unref();
    if (mail.type === 'ready') {
      this.#ready = true;
      this.#times = mail.times;
      engine = mail.engine;
      return this.#options.freed([]);
    }
    const job = this.#job;
    if (job?.mail.job !== mail.job) return;
    this.#job = undefined;
    job.resolve(mail.slice);
    this.#options.freed(mail.evicted);
  }

  #exit(): void {
    this.#timer?.cancel();
    const job = this.#job;
    this.#job = undefined;
    this.#options.ended(job, this.#death);
  }
}
