/** The context of a handler that runs in a thread: what it says goes to the pool by mail, and it can ask its client nothing. */
import { systemClock } from '../clock.ts';
import type { Context, Log } from '../input/context.ts';
import type { LogLevel } from '../protocol/types.ts';
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
  readonly requestId: Context['requestId'];
  readonly meta: Context['meta'];
  readonly elicit = asksNothing;
  readonly elicitUrl = asksNothing;
  readonly sample = asksNothing;
  readonly roots = asksNothing;
  readonly ask = asksNothing;
  readonly log: Log;
  readonly #send: (mail: ThreadMail) => void;
  readonly #elapsed: number;
  readonly #began = systemClock.now();
  readonly #abort = new AbortController();
  readonly #steps = new Map<number, Step>();
  #made = 0;

  constructor(facts: CallFacts, send: (mail: ThreadMail) => void) {
    this.client = facts.client;
    this.session = facts.session;
    this.principal = facts.principal;
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

  /** Functions of their own: handlers take `ctx` apart. */
  readonly progress: Context['progress'] = (done, total, message) =>
    this.#send({ type: 'progress', done, total, message });

  readonly closeStream: Context['closeStream'] = (retryMs) => this.#send({ type: 'close stream', retryMs });

  /** The pool knows what is recorded: it says whether the step is to be run, and what it gave. */
  readonly step: Context['step'] = <T>(name: string, fn: () => T | Promise<T>): Promise<T> => {
    const step = ++this.#made;
    return new Promise<T>((resolve, reject) => {
      this.#steps.set(step, {
        run: fn,
        over(given) {
          try {
            // The name is the author's promise that the step is the same, and with it its type.
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

function asksNothing(): Promise<never> {
  return Promise.reject(
    new Error(
      'a tool that runs in a thread (cpu) can ask its client nothing: ask in a tool of its own, or leave out cpu and run only what is long in a thread of yours',
    ),
  );
}
