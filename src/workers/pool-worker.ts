/** One thread of the pool, from here: it is given a call, carries what is said of it to the call's context, and ends it where it does not end itself. */
import type { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../clock.ts';
import type { Context } from '../input/context.ts';
import { messageOf } from '../protocol/json.ts';
import type { ThreadSource } from '../registry/thread-module.ts';
import type { PoolMail, ThreadMail, TransferredResult } from './pool-protocol.ts';
import { startThread } from './start-thread.ts';
import { decodeResult, encodeError, encodeResult } from './transfer.ts';

export interface PoolCall {
  readonly label: string;
  readonly source: ThreadSource;
  readonly args: unknown;
  readonly ctx: Context;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export interface PoolWorkerOptions {
  readonly clock: Clock;
  /** It can be given another call. */
  freed(): void;
  /** It is gone; with the call that it died of, if nobody had ended it. */
  ended(job: PoolCall | undefined, why: string): void;
}

/** Milliseconds that a handler is given to heed `ctx.signal`, before its thread is ended. */
const HEED_MS = 50;
/** Milliseconds that a module is given to load: that its first call did not wait for it is no fault of the module. */
const LOAD_MS = 30_000;
/** Milliseconds after which a thread without calls is ended: its memory is given back. */
const IDLE_MS = 30_000;

export class PoolWorker {
  readonly #options: PoolWorkerOptions;
  readonly #worker: Worker;
  #job: PoolCall | undefined;
  /** Its call was ended, and it has not said yet that it is done with it. */
  #abandoned = false;
  /** Its handler runs: what it runs in is loaded. */
  #began = false;
  #retired = false;
  #ending = false;
  #timer: Timer | undefined;
  #died = 'it called process.exit';
  readonly #steps = new Map<number, (given: TransferredResult) => void>();

  constructor(options: PoolWorkerOptions) {
    this.#options = options;
    // What it prints goes to stderr: stdout may belong to the protocol.
    const worker = startThread('pool-thread', { name: 'troupe cpu', stdout: true });
    worker.stdout.on('data', (chunk: Uint8Array) => void process.stderr.write(chunk));
    worker.on('message', (mail: ThreadMail) => this.#hear(mail));
    worker.on('error', (error) => {
      this.#died = messageOf(error);
    });
    worker.on('exit', () => this.#exit());
    // Last: to listen for messages holds the process again.
    worker.unref();
    this.#worker = worker;
  }

  get free(): boolean {
    return !this.#job && !this.#abandoned && !this.#retired && !this.#ending;
  }

  /** @throws {DOMException} for arguments that cannot be sent */
  run(job: PoolCall): void {
    const { client, session, principal, requestId, meta, elapsedMs } = job.ctx;
    const facts = { client, session, principal, requestId, meta, elapsedMs };
    this.#say({ type: 'run', source: job.source, args: job.args, facts });
    this.#timer?.cancel();
    this.#job = job;
  }

  /** Nobody waits for this call any more. */
  abort(job: PoolCall): void {
    if (this.#job !== job) return;
    this.#job = undefined;
    this.#abandoned = true;
    this.#steps.clear();
    this.#say({ type: 'abort', reason: messageOf(job.ctx.signal.reason) });
    this.#endIn(this.#began ? HEED_MS : LOAD_MS);
  }

  /** Takes no more calls, and ends with the one that it has. */
  retire(): void {
    this.#retired = true;
    if (!this.#job && !this.#abandoned) this.end();
  }

  #endIn(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(ms, () => this.end());
  }

  end(): void {
    this.#ending = true;
    this.#timer?.cancel();
    void this.#worker.terminate();
  }

  #say(mail: PoolMail): void {
    this.#worker.postMessage(mail);
  }

  #hear(mail: ThreadMail): void {
    if (mail.type === 'done') return this.#done(mail.given);
    if (mail.type === 'began') {
      this.#began = true;
      // It began before it heard that nobody waits for it.
      if (this.#abandoned) this.#endIn(HEED_MS);
      return;
    }
    const ctx = this.#job?.ctx;
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

  /** The step is recorded here, where the request is, and run there, where its code is. */
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
    if (this.#job?.ctx === ctx) this.#say({ type: 'step over', step, given });
  }

  #done(given: TransferredResult): void {
    const job = this.#job;
    this.#job = undefined;
    this.#abandoned = false;
    this.#began = false;
    this.#steps.clear();
    this.#timer?.cancel();
    if (job) {
      try {
        job.resolve(decodeResult(given));
      } catch (error) {
        job.reject(error);
      }
    }
    if (this.#retired) return this.end();
    this.#endIn(IDLE_MS);
    this.#options.freed();
  }

  #exit(): void {
    this.#timer?.cancel();
    const job = this.#job;
    this.#job = undefined;
    if (this.#ending) job?.reject(new Error('its thread was ended: the server stops, or what it runs was replaced'));
    this.#options.ended(this.#ending ? undefined : job, this.#died);
    this.#ending = true;
  }
}

/** What a handler says that is not as it must be: it is in another thread, and has gone on. */
function guard(said: () => void): void {
  try {
    said();
  } catch {
    // `ctx.progress` and the like throw for arguments of the wrong type: here nobody can be told any more.
  }
}
