/**
 * One thread of the pool, seen from the main thread: runs a call, forwards its messages to the call's context, and
 * terminates the thread if the call does not end.
 */
import type { Worker } from 'node:worker_threads';
import { type PoolWorkerEvent, poolWorkerMachine } from '../../../machines/pool-worker.ts';
import type { Context } from '../../core/execution/context.ts';
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import { startThread } from '../../core/kernel/package-files.ts';
import { step } from '../../core/kernel/step.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { ThreadSource } from '../../core/registry/define.ts';
import type { PoolMail, ThreadMail, TransferredResult } from './pool-protocol.ts';
import { decodeResult, encodeError, encodeResult } from './transfer.ts';

export interface PoolCall {
  readonly label: string;
  readonly source: ThreadSource;
  readonly args: unknown;
  readonly ctx: Context;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface PoolWorkerOptions {
  readonly clock: Clock;
  /** Called when the thread can take another call. */
  freed(): void;
  /** Called when the thread has ended, with the call that ended it unless that call was aborted. */
  ended(job: PoolCall | undefined, why: string): void;
}

/** Milliseconds for a handler to react to `ctx.signal` before its thread is terminated. */
const HEED_MS = 50;
/** Milliseconds in which a module must load. The limit applies even if the call that needed the module ends earlier. */
const LOAD_MS = 30_000;
/** Milliseconds until an idle thread is terminated to release its memory. */
const IDLE_MS = 30_000;

export class PoolWorker {
  readonly #options: PoolWorkerOptions;
  readonly #worker: Worker;
  /** Decides what the thread may do now. */
  #state = poolWorkerMachine.initial;
  #call: PoolCall | undefined;
  #timer: Timer | undefined;
  #died = 'it called process.exit';
  readonly #steps = new Map<number, (given: TransferredResult) => void>();

  constructor(options: PoolWorkerOptions) {
    this.#options = options;
    // Its output goes to stderr: stdout may belong to the protocol.
    const worker = startThread('features/workers/pool-thread', { name: 'troupe cpu', stdout: true });
    worker.stdout.on('data', (chunk: Uint8Array) => void process.stderr.write(chunk));
    worker.on('message', (mail: ThreadMail) => this.#hear(mail));
    worker.on('error', (error) => {
      this.#died = messageOf(error);
    });
    worker.on('exit', () => this.#exit());
    // Last, because adding a message listener refs the worker again.
    worker.unref();
    this.#worker = worker;
  }

  get free(): boolean {
    return this.#state.hasTag('free');
  }

  /** @throws {DOMException} if the arguments cannot be cloned */
  run(job: PoolCall): void {
    const { client, session, principal, auth, approval, requestId, meta, elapsedMs } = job.ctx;
    const facts = { client, session, principal, auth, approval, requestId, meta, elapsedMs };
    this.#say({ type: 'run', source: job.source, args: job.args, facts });
    this.#timer?.cancel();
    this.#take('run');
    this.#call = job;
  }

  /** Aborts a call whose result is no longer needed. */
  abort(job: PoolCall): void {
    if (this.#call !== job || !this.#take('abort')) return;
    this.#call = undefined;
    this.#steps.clear();
    this.#say({ type: 'abort', reason: messageOf(job.ctx.signal.reason) });
    this.#endIn(this.#state.hasTag('handling') ? HEED_MS : LOAD_MS);
  }

  /** Takes no further calls, and ends after the current one. */
  retire(): void {
    if (this.#take('retire') && this.#state.hasTag('ending')) this.#terminate();
  }

  #endIn(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(ms, () => this.end());
  }

  end(): void {
    if (this.#take('end')) this.#terminate();
  }

  #terminate(): void {
    this.#timer?.cancel();
    void this.#worker.terminate();
  }

  /** @returns false if the current state does not accept the event; nothing happens then */
  #take(event: PoolWorkerEvent['type']): boolean {
    const next = step(this.#state, { type: event });
    if (next) this.#state = next;
    return next !== undefined;
  }

  #say(mail: PoolMail): void {
    this.#worker.postMessage(mail);
  }

  #hear(mail: ThreadMail): void {
    if (mail.type === 'done') return this.#done(mail.given);
    if (mail.type === 'began') {
      // The handler started before the abort reached the thread.
      if (this.#take('began') && this.#state.hasTag('aborted')) this.#endIn(HEED_MS);
      return;
    }
    const ctx = this.#call?.ctx;
    if (!ctx) return;
    switch (mail.type) {
      case 'progress':
        return guard(() => ctx.progress(mail.done, mail.total, mail.message));
      case 'log':
        return guard(() => ctx.log(mail.level, mail.data, mail.logger));
      case 'close stream':
        return guard(() => ctx.closeStream(mail.retryMs));
      case 'step':
        return void this.#step(ctx, mail.step, mail.name);
      case 'step ran':
        this.#steps.get(mail.step)?.(mail.given);
        this.#steps.delete(mail.step);
    }
  }

  /** Runs a step: its result is recorded here, with the request; its code runs in the thread. */
  async #step(ctx: Context, step: number, name: string): Promise<void> {
    let given: TransferredResult;
    try {
      const value = await ctx.step(name, () => {
        this.#say({ type: 'run step', step });
        return new Promise<unknown>((resolve, reject) => {
          this.#steps.set(step, (ran) => {
            try {
              resolve(decodeResult(ran));
            } catch (error) {
              reject(error);
            }
          });
        });
      });
      given = encodeResult(value);
    } catch (error) {
      given = encodeError(error);
    }
    if (this.#call?.ctx === ctx) this.#say({ type: 'step over', step, given });
  }

  #done(given: TransferredResult): void {
    // A result that arrives while the thread is being terminated still counts.
    this.#take('done');
    const job = this.#call;
    this.#call = undefined;
    this.#steps.clear();
    this.#timer?.cancel();
    if (job) {
      try {
        job.resolve(decodeResult(given));
      } catch (error) {
        job.reject(error);
      }
    }
    if (this.#state.hasTag('ending')) return this.#terminate();
    this.#endIn(IDLE_MS);
    this.#options.freed();
  }

  #exit(): void {
    this.#timer?.cancel();
    const job = this.#call;
    this.#call = undefined;
    const ending = this.#state.hasTag('ending');
    this.#take('exit');
    if (ending) job?.reject(new Error('its thread was terminated because the server stops or its module was replaced'));
    this.#options.ended(ending ? undefined : job, this.#died);
  }
}

/** Ignores errors of invalid messages: the handler in the other thread has already continued. */
function guard(said: () => void): void {
  try {
    said();
  } catch {
    // `ctx.progress`, for example, throws for arguments of the wrong type; the handler can no longer receive that
    // error.
  }
}
