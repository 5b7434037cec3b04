/**
 * The threads for tools that compute for long (`cpu`): bounded in number. A thread whose call exceeds its deadline is
 * terminated, and every call gets a response.
 */
import type { Context } from '../../core/execution/context.ts';
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import { Restarts } from '../../core/kernel/restarts.ts';
import { ErrorCode, ProtocolError, ToolError } from '../../core/protocol/errors.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { ThreadSource } from '../../core/registry/define.ts';
import { type PoolCall, PoolWorker } from './pool-worker.ts';

interface PoolOptions {
  readonly system: ActorSystem;
  /** Maximum number of threads, and of calls that wait for a thread. */
  readonly limits: { readonly cpuThreads: number; readonly maxCpuQueue: number };
}

/** Makes the handler of a tool that runs in a thread. */
type ThreadRunner = (label: string, source: ThreadSource) => (args: unknown, ctx: Context) => Promise<unknown>;

/** A tool whose threads crash is quarantined; other tools continue. */
const POLICY = { restarts: 3, windowMs: 5_000 };

export class Pool {
  readonly #options: PoolOptions;
  readonly #threads = new Set<PoolWorker>();
  readonly #queue: PoolCall[] = [];
  /** The tools whose threads have crashed. At most one for each registered tool. */
  readonly #restarts = new Map<string, Restarts>();
  readonly #modules = new Set<string>();
  /** Incremented when a module is registered again: threads that loaded the old module take no further calls. */
  #generation = 0;
  #ended = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** The number of threads, and of calls that wait for one. */
  get size(): { readonly threads: number; readonly waiting: number } {
    return { threads: this.#threads.size, waiting: this.#queue.length };
  }

  readonly runner: ThreadRunner = (label, source) => {
    if (this.#modules.has(source.module)) this.#renew();
    this.#modules.add(source.module);
    return (args, ctx) => this.#run({ label, source, args, ctx });
  };

  /** Terminates every thread, because the server has stopped. */
  end(): void {
    this.#ended = true;
    for (const thread of this.#threads) thread.end();
    for (const job of this.#queue.splice(0)) job.reject(new Error('the server has stopped'));
  }

  #renew(): void {
    this.#generation += 1;
    for (const thread of this.#threads) thread.retire();
  }

  #run({ label, source, args, ctx }: Pick<PoolCall, 'label' | 'source' | 'args' | 'ctx'>): Promise<unknown> {
    const { maxCpuQueue, cpuThreads } = this.#options.limits;
    ctx.signal.throwIfAborted();
    if (this.#restarts.get(label)?.quarantined)
      throw new ToolError(`${label} crashed its threads too often and is quarantined: the operator can release it`);
    if (this.#ended) throw new Error('the server has stopped');
    if (this.#queue.length >= maxCpuQueue) {
      this.#options.system.metrics.refused('limits.maxCpuQueue');
      throw new ProtocolError(
        ErrorCode.Overloaded,
        `${maxCpuQueue} calls wait for one of ${cpuThreads} threads, which is the limit: retry later (the server's options are maxCpuQueue and cpuThreads)`,
      );
    }
    return new Promise((resolve, reject) => {
      const over = (): void => ctx.signal.removeEventListener('abort', aborted);
      const job: PoolCall = {
        label,
        source,
        args,
        ctx,
        resolve(value) {
          over();
          resolve(value);
        },
        reject(error) {
          over();
          reject(error);
        },
      };
      const aborted = (): void => {
        const at = this.#queue.indexOf(job);
        if (at !== -1) this.#queue.splice(at, 1);
        for (const thread of this.#threads) thread.abort(job);
        job.reject(ctx.signal.reason);
      };
      ctx.signal.addEventListener('abort', aborted, { once: true });
      this.#queue.push(job);
      this.#pump();
    });
  }

  /** Assigns waiting calls to free threads or to new ones. */
  #pump(): void {
    while (this.#queue.length > 0 && !this.#ended) {
      const thread = [...this.#threads].find(({ free }) => free) ?? this.#start();
      const job = thread && this.#queue.shift();
      if (!job) return;
      try {
        thread.run(job);
      } catch (error) {
        // For example, a schema may have converted arguments into functions.
        job.reject(new Error(`${job.label} runs in a thread, and its arguments cannot be cloned: ${messageOf(error)}`));
      }
    }
  }

  #start(): PoolWorker | undefined {
    if (this.#threads.size >= this.#options.limits.cpuThreads) return undefined;
    const thread: PoolWorker = new PoolWorker({
      clock: this.#options.system.clock,
      freed: () => this.#pump(),
      ended: (job, why) => {
        this.#threads.delete(thread);
        if (job) this.#crashed(job, why);
        this.#pump();
      },
    });
    this.#threads.add(thread);
    return thread;
  }

  /** Handles a thread that crashed in a call. */
  #crashed({ label, reject }: PoolCall, why: string): void {
    const { clock, quarantine } = this.#options.system;
    // Its executor logs the error.
    reject(new Error(`${label} crashed the thread that it ran in: ${why}`));
    const restarts = this.#restarts.get(label) ?? new Restarts(POLICY);
    this.#restarts.set(label, restarts);
    if (restarts.quarantined || restarts.crashed(clock.now())) return;
    quarantine.add(`cpu/${label}`, 'executor', why, () => void this.#restarts.delete(label));
  }
}
