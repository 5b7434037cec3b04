/** The context of a handler in a thread: sends messages to the pool. It cannot ask the client for input. */

import { setMaxListeners } from 'node:events';
import type { Context, Log } from '../../core/execution/context.ts';
import { systemClock } from '../../core/kernel/clock.ts';
import { restoredAuth } from '../../core/messages/auth.ts';
import type { LogLevel } from '../../core/protocol/types.ts';
import type { CallFacts, ThreadMail, TransferredResult } from './pool-protocol.ts';
import { decodeResult, encodeError, encodeResult } from './transfer.ts';

interface Step {
  run(): unknown;
  over(given: TransferredResult): void;
}

export class ThreadContext implements Context {
  readonly client: Context['client'];
  readonly session: Context['session'];
  readonly principal: string;
  readonly auth: Context['auth'];
  readonly approval: Context['approval'];
  readonly requestId: Context['requestId'];
  readonly meta: Context['meta'];
  readonly elicit = asksNothing;
  readonly elicitUrl = asksNothing;
  readonly sample = asksNothing;
  readonly roots = asksNothing;
  readonly ask = asksNothing;
  readonly approve = asksNothing;
  readonly state = NO_STATE;
  readonly emit = emitsNothing;
  readonly log: Log;
  readonly #send: (mail: ThreadMail) => void;
  readonly #elapsed: number;
  readonly #began = systemClock.now();
  readonly #abort = new AbortController();
  readonly #steps = new Map<number, Step>();
  #made = 0;

  constructor(facts: CallFacts, send: (mail: ThreadMail) => void) {
    setMaxListeners(0, this.#abort.signal);
    this.client = facts.client;
    this.session = facts.session;
    this.principal = facts.principal;
    this.auth = facts.auth && restoredAuth(facts.auth);
    this.approval = facts.approval;
    this.requestId = facts.requestId;
    this.meta = facts.meta;
    this.#elapsed = facts.elapsedMs;
    this.#send = send;
    const write = (level: LogLevel, data: unknown, logger?: string): void => send({ type: 'log', level, data, logger });
    this.log = Object.assign(write, {
      debug: (data: unknown, logger?: string) => write('debug', data, logger),
      info: (data: unknown, logger?: string) => write('info', data, logger),
      warning: (data: unknown, logger?: string) => write('warning', data, logger),
      error: (data: unknown, logger?: string) => write('error', data, logger),
    });
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get elapsedMs(): number {
    return this.#elapsed + systemClock.now() - this.#began;
  }

  /** Separate functions, because handlers destructure `ctx`. */
  readonly progress: Context['progress'] = (done, total, message) =>
    this.#send({ type: 'progress', done, total, message });

  readonly closeStream: Context['closeStream'] = (retryMs) => this.#send({ type: 'close stream', retryMs });

  /** The pool has the recorded results: it decides whether the step runs, and returns the result. */
  readonly step: Context['step'] = <T>(name: string, fn: () => T | Promise<T>): Promise<T> => {
    const step = ++this.#made;
    return new Promise<T>((resolve, reject) => {
      this.#steps.set(step, {
        run: fn,
        over(given) {
          try {
            // By reusing the name, the author promises the same step, and therefore the same type.
            resolve(decodeResult(given) as T);
          } catch (error) {
            reject(error);
          }
        },
      });
      this.#send({ type: 'step', step, name });
    });
  };

  async runStep(step: number): Promise<void> {
    const found = this.#steps.get(step);
    if (!found) return;
    let given: TransferredResult;
    try {
      given = encodeResult(await found.run());
    } catch (error) {
      given = encodeError(error);
    }
    this.#send({ type: 'step ran', step, given });
  }

  stepOver(step: number, given: TransferredResult): void {
    const found = this.#steps.get(step);
    this.#steps.delete(step);
    found?.over(given);
  }

  abort(reason: string): void {
    this.#abort.abort(new Error(reason));
  }
}

function emitsNothing(): Promise<never> {
  const why = 'a tool that runs in a thread (cpu) has no ctx.emit: let another tool emit what it returns';
  return Promise.reject(new TypeError(why));
}

/** State is read and written by the main thread. */
const NO_STATE: Context['state'] = {
  scope: undefined,
  session: undefined,
  ...{ get: hasNoState, set: hasNoState, delete: hasNoState, update: hasNoState, list: hasNoState, clear: hasNoState },
};

function hasNoState(): Promise<never> {
  return Promise.reject(
    new Error(
      'a tool that runs in a thread (cpu) has no ctx.state: omit cpu, read what it needs and start your own thread for the long computation, or let another tool store the result',
    ),
  );
}

function asksNothing(): Promise<never> {
  return Promise.reject(
    new Error(
      'a tool that runs in a thread (cpu) cannot ask its client for input: ask in another tool, or omit cpu and start your own thread for the long computation',
    ),
  );
}
