/**
 * The sandboxes of a server: threads that run the scripts of all principals. They know nothing of MCP, of stores and of tools: the owner
 * of a run answers its calls, and repeats a script whose thread has ended.
 */
import type { ActorSystem } from '../../../core/kernel/actor-system.ts';
import { type RestartPolicy, Restarts } from '../../../core/kernel/restarts.ts';
import { ErrorCode, ProtocolError } from '../../../core/protocol/errors.ts';
import { ENGINE } from './engine.ts';
import { FairQueue } from './fair-queue.ts';
import { type SandboxDeath, type SandboxJob, SandboxWorker } from './sandbox-worker.ts';
import type { ScriptBounds } from './sandboxed-script.ts';
import type { Delivery, Script, ScriptEnd, ScriptSlice } from './script.ts';

export interface SandboxesOptions extends Partial<ScriptBounds> {
  readonly system: Pick<ActorSystem, 'clock' | 'incident' | 'log' | 'metrics'>;
  /** Default: 2. One principal occupies at most all but one of them. */
  readonly threads?: number;
  /** Scripts that wait in each thread at most. Others are repeated by their owners. Default: 16. */
  readonly warm?: number;
  /** Slices that wait for a thread at most. Default: 1,000; of one principal 100. */
  readonly maxWaiting?: number;
  /** Milliseconds after the bound of a slice until its thread is terminated. Default: 500. */
  readonly graceMs?: number;
}

const BOUNDS: ScriptBounds = {
  sliceMs: 1_000,
  runMs: 10_000,
  memoryBytes: 33_554_432,
  maxCalls: 1_000,
  maxOutputLength: 1_048_576,
};
/** Bytes of the text of a script. */
const MAX_CODE_BYTES = 65_536;
/** The share of one principal of the slices that wait. */
const SHARE = 10;
/** Characters of the scripts and deliveries that wait. */
const MAX_WAITING_LENGTH = 67_108_864;
/** One more crash within the window, and no thread starts until the window is over. A script that is stuck is no crash. */
const POLICY: RestartPolicy = { restarts: 5, windowMs: 60_000, backOff: { fromMs: 100, toMs: 5_000 } };

/** One slice that waits for a thread, or runs. */
interface SliceJob extends SandboxJob {
  readonly principal: string;
  readonly length: number;
  /** The only thread that can run it, because it holds the script. */
  readonly thread: SandboxWorker | undefined;
}

interface LiveRun {
  readonly principal: string;
  /** Undefined until a thread has begun it. */
  thread: SandboxWorker | undefined;
}

export class Sandboxes {
  readonly id = ENGINE;
  readonly #system: SandboxesOptions['system'];
  readonly #bounds: ScriptBounds;
  readonly #threadLimit: number;
  readonly #warm: number;
  readonly #graceMs: number;
  readonly #queue: FairQueue<SliceJob>;
  readonly #threads = new Set<SandboxWorker>();
  /** The running jobs, by their threads. */
  readonly #running = new Map<SandboxWorker, SliceJob>();
  readonly #runs = new Map<string, LiveRun>();
  readonly #restarts = new Restarts(POLICY);
  #restarting = false;
  #lastJob = 0;
  #ended = false;

  constructor({ system, threads = 2, warm = 16, maxWaiting = 1_000, graceMs = 500, ...bounds }: SandboxesOptions) {
    this.#system = system;
    this.#bounds = { ...BOUNDS, ...bounds };
    this.#threadLimit = threads;
    this.#warm = warm;
    this.#graceMs = graceMs;
    const perPrincipal = Math.max(1, Math.floor(maxWaiting / SHARE));
    this.#queue = new FairQueue({ jobs: maxWaiting, length: MAX_WAITING_LENGTH, perPrincipal });
  }

  /** The number of threads, of slices that wait for one, and of scripts that a thread holds. */
  get size(): { readonly threads: number; readonly waiting: number; readonly scripts: number } {
    return { threads: this.#threads.size, waiting: this.#queue.size, scripts: this.#runs.size };
  }

  /**
   * Starts a script, or repeats it with all deliveries so far: then the slice has the calls of the whole way.
   *
   * @param run the id of the run, which names the script in {@link proceed} and {@link drop}
   * @param principal whose turn it is
   * @throws {ProtocolError} if too many slices wait
   * @throws the reason of the signal
   */
  async begin(
    run: string,
    principal: string,
    script: Script,
    deliveries: readonly Delivery[] = [],
    signal?: AbortSignal,
  ): Promise<ScriptSlice> {
    signal?.throwIfAborted();
    const bytes = Buffer.byteLength(script.code);
    if (bytes > MAX_CODE_BYTES)
      return ending({
        type: 'invalid',
        message: `the script is ${bytes} bytes long, and at most ${MAX_CODE_BYTES} are allowed: shorten it, and load data by calls`,
      });
    this.drop(run);
    this.#runs.set(run, { principal, thread: undefined });
    const aborted = (): void => this.drop(run);
    signal?.addEventListener('abort', aborted, { once: true });
    try {
      const length = script.code.length + lengthOf(deliveries);
      const mail = { type: 'begin', job: this.#nextJob(), run, script, deliveries } as const;
      const slice = await this.#ask({ principal, length, thread: undefined, mail });
      signal?.throwIfAborted();
      return slice ?? ending(DROPPED);
    } finally {
      signal?.removeEventListener('abort', aborted);
    }
  }

  /**
   * Settles calls of a script, in this order, and lets it continue.
   *
   * @returns undefined if no thread holds the script any more: begin it again with all deliveries
   * @throws {ProtocolError} if too many slices wait
   */
  async proceed(run: string, deliveries: readonly Delivery[]): Promise<ScriptSlice | undefined> {
    const live = this.#runs.get(run);
    if (!live?.thread) return undefined;
    const { principal, thread } = live;
    const mail = { type: 'proceed', job: this.#nextJob(), run, deliveries } as const;
    return this.#ask({ principal, length: lengthOf(deliveries), thread, mail });
  }

  /** Forgets a script, and ends it if it runs. Its open promises resolve with the end *dropped*. */
  drop(run: string): void {
    const live = this.#runs.get(run);
    this.#runs.delete(run);
    for (const { resolve } of this.#queue.takeAll(({ mail }) => mail.run === run)) resolve(ending(DROPPED));
    live?.thread?.drop(run);
  }

  /** Terminates all threads, because the server has stopped. */
  end(): void {
    this.#ended = true;
    this.#restarts.stop();
    for (const { resolve } of this.#queue.takeAll(() => true)) resolve(ending(DROPPED));
    for (const thread of this.#threads) thread.end();
  }

  #nextJob(): number {
    this.#lastJob += 1;
    return this.#lastJob;
  }

  #ask(wanted: Omit<SliceJob, 'resolve'>): Promise<ScriptSlice | undefined> {
    if (this.#ended) return Promise.resolve(ending(DROPPED));
    const { run } = wanted.mail;
    const live = this.#runs.get(run);
    return new Promise((resolve, reject) => {
      const job: SliceJob = {
        ...wanted,
        resolve: (slice) => {
          const isDropped = this.#runs.get(run) !== live;
          // It came to a rest before it was interrupted.
          if (isDropped && !slice?.end) live?.thread?.drop(run);
          if (!isDropped && (!slice || slice.end)) this.#runs.delete(run);
          resolve(isDropped ? ending(DROPPED) : slice);
        },
      };
      if (this.#queue.add(job)) return this.#pump();
      this.#runs.delete(run);
      this.#system.metrics.refused('code.threads');
      const words = 'too many scripts wait for a thread: retry later (the option of the server is code.threads)';
      reject(new ProtocolError(ErrorCode.Overloaded, words));
    });
  }

  /** Gives waiting slices to free threads, and starts threads for those that no thread can take. */
  #pump(): void {
    if (this.#ended) return;
    for (const thread of this.#threads) {
      if (!thread.free) continue;
      const job = this.#queue.take((each) => this.#fits(each, thread));
      if (job) this.#give(thread, job);
    }
    // A second thread starts although one principal may not occupy it: then it is ready for another one.
    const starting = [...this.#threads].filter((thread) => !thread.free && !this.#running.has(thread)).length;
    if (this.#queue.size > starting && this.#threads.size < this.#threadLimit && !this.#restarting) this.#start();
  }

  #give(thread: SandboxWorker, job: SliceJob): void {
    const live = this.#runs.get(job.mail.run);
    if (live) live.thread = thread;
    this.#running.set(thread, job);
    thread.take(job);
  }

  /** A thread that holds the script takes its slices. One thread is always there for the other principals. */
  #fits({ thread: holder, principal }: SliceJob, thread: SandboxWorker): boolean {
    if (holder && holder !== thread) return false;
    const own = [...this.#running.values()].filter((job) => job.principal === principal).length;
    return own < Math.max(1, this.#threadLimit - 1);
  }

  #start(): void {
    const thread: SandboxWorker = new SandboxWorker({
      clock: this.#system.clock,
      bounds: this.#bounds,
      warm: this.#warm,
      graceMs: this.#graceMs,
      freed: (evicted) => {
        this.#running.delete(thread);
        for (const run of evicted) this.#forget(thread, run);
        this.#pump();
      },
      ended: (job, why) => this.#threadEnded(thread, job, why),
    });
    this.#threads.add(thread);
  }

  /** A thread holds a script no more: its owner begins it again. */
  #forget(thread: SandboxWorker, run: string): void {
    if (this.#runs.get(run)?.thread !== thread) return;
    for (const { resolve } of this.#queue.takeAll(({ mail }) => mail.run === run)) resolve(undefined);
    this.#runs.delete(run);
  }

  #threadEnded(thread: SandboxWorker, job: SandboxJob | undefined, why: SandboxDeath | undefined): void {
    this.#threads.delete(thread);
    this.#running.delete(thread);
    job?.resolve(ending(why ? endOf(why, this.#bounds) : DROPPED));
    for (const run of [...this.#runs.keys()]) this.#forget(thread, run);
    if (why?.type === 'crashed') this.#crashed(why.error);
    else this.#pump();
  }

  #crashed(error: Error): void {
    this.#system.incident('a thread of the sandboxes', error);
    this.#restarting = true;
    const delayMs = this.#restarts.restart(this.#system.clock, () => {
      this.#restarting = false;
      this.#pump();
    });
    if (delayMs !== undefined) return;
    const refused = ending({
      type: 'stopped',
      why: 'engine',
      message: 'the sandboxes crashed too often: retry in a minute',
    });
    for (const { resolve } of this.#queue.takeAll(() => true)) resolve(refused);
    this.#system.clock.after(POLICY.windowMs, () => {
      this.#restarts.release();
      this.#restarting = false;
      this.#pump();
    });
  }
}

const DROPPED: ScriptEnd = { type: 'stopped', why: 'dropped', message: 'the run was cancelled' };

/** The slice of a script that did nothing more. */
function ending(end: ScriptEnd): ScriptSlice {
  return { calls: [], logs: [], end, processorMs: 0, memoryBytes: 0, unfinished: [] };
}

function endOf({ type, error }: SandboxDeath, { sliceMs }: ScriptBounds): ScriptEnd {
  if (type === 'crashed')
    return { type: 'stopped', why: 'engine', message: `the thread of the script ended: ${error.message}` };
  return {
    type: 'stopped',
    why: 'processor time',
    message: `the script computed for more than ${sliceMs} ms in one operation of the language: look for a huge array, string or number`,
  };
}

function lengthOf(deliveries: readonly Delivery[]): number {
  return deliveries.reduce((sum, each) => sum + ('value' in each ? each.value.length : each.error.message.length), 0);
}
