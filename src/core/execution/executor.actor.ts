/** The executor actor: holds implementations, runs one for each request, and responds with the outcome. */

import { type Actor, type ActorSystem, type AfterTurn, type Behaviour, spawn } from '../kernel/actor.ts';
import type { Facts } from '../kernel/inspection/records.ts';
import type { ExecutorMail } from '../messages/executor-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { RequestView } from '../messages/request-view.ts';
import type { Outcome, Result } from '../messages/results.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { isThenable } from '../protocol/json.ts';
import { respond } from '../requests/active-request.ts';
import { type Labelled, type RunningElement, running } from '../requests/running.ts';
import type { HandlerErrors } from './handler-errors.ts';
import type { Stages } from './stages.ts';

interface ExecutorOptions<I extends Labelled, T, R> {
  readonly system: ActorSystem;
  readonly address: string;
  readonly errors: HandlerErrors;
  /** Runs an implementation. A thrown error becomes the error response. */
  run(request: RequestView, implementation: I, target: T): R | Promise<R>;
  readonly stages: Pick<Stages, 'mayRun'>;
  /** Adds the name of what was run to the result. */
  wrap(result: R): Result;
}

export function spawnExecutor<I extends Labelled, T, R>(options: ExecutorOptions<I, T, R>): Actor<ExecutorMail<I, T>> {
  return spawn(
    { kind: 'executor', address: options.address },
    options.system,
    (self, afterwards) => new Executor(options, self, afterwards),
  );
}

class Executor<I extends Labelled, T, R> implements Behaviour<ExecutorMail<I, T>> {
  readonly #options: ExecutorOptions<I, T, R>;
  readonly #implementations = new Map<number, I>();
  /** The implementations of requests that a gate may send again. */
  readonly #delayed = new WeakMap<RequestView, I>();
  #waiting = 0;

  readonly #self: Mailbox<ExecutorMail<I, T>>;
  readonly #afterwards: AfterTurn;

  constructor(options: ExecutorOptions<I, T, R>, self: Mailbox<ExecutorMail<I, T>>, afterwards: AfterTurn) {
    this.#options = options;
    this.#self = self;
    this.#afterwards = afterwards;
  }

  facts(): Facts {
    return { implementations: [...this.#implementations.values()].map(({ label }) => label), running: this.#waiting };
  }

  state(): string {
    return this.#waiting === 0 ? 'idle' : `running (${this.#waiting})`;
  }

  receive(mail: ExecutorMail<I, T>): void {
    switch (mail.type) {
      case 'execute':
        return this.#afterwards(this.#execute, mail);
      case 'attach':
        this.#implementations.set(mail.ref, mail.implementation);
        return;
      case 'detach':
        this.#implementations.delete(mail.ref);
    }
  }

  readonly #execute = (mail: Extract<ExecutorMail<I, T>, { type: 'execute' }>): void => {
    const { request, ref, target } = mail;
    const implementation = this.#implementations.get(ref) ?? this.#delayed.get(request);
    const { stages, system } = this.#options;
    // Read during the turn: a promise that settles later has lost the turn's cause.
    const { inspection } = system;
    const cause = inspection.on ? inspection.cause : 0;
    const label = implementation?.label ?? this.#options.address;
    try {
      if (!stages.mayRun(request, label, request.continues ? () => this.#self.send(mail) : never)) {
        // Its source may replace the implementation while what the request continues is read.
        if (implementation) this.#delayed.set(request, implementation);
        return;
      }
    } catch (error) {
      return this.#settle(request, this.#failure(request, label, error, cause), cause);
    }
    if (!implementation) {
      const gone = 'this element was removed before the request reached it';
      const error = new ProtocolError(ErrorCode.InvalidParams, gone);
      return this.#settle(request, this.#failure(request, this.#options.address, error, cause), cause);
    }
    const run: RunningElement = { label: implementation.label, request };
    let result: R | Promise<R>;
    let later: PromiseLike<R> | undefined;
    try {
      const { span } = request;
      result =
        span === undefined
          ? running.run(run, this.#options.run, request, implementation, target)
          : span.run(() => running.run(run, this.#options.run, request, implementation, target));
      // Inside the try block: the result of an author's executor may throw when it is inspected.
      later = isThenable(result) ? result : undefined;
    } catch (error) {
      // A handler that throws before its first await ends its request, not the executor.
      run.request = undefined;
      return this.#settle(request, this.#failure(request, implementation.label, error, cause), cause);
    }
    if (!later) {
      // Not a promise: `isThenable` returned false.
      run.request = undefined;
      return this.#settle(request, { ok: true, result: this.#options.wrap(result as R) }, cause);
    }
    this.#waiting += 1;
    // A foreign thenable may throw or settle twice; the promise from Promise.resolve does neither.
    Promise.resolve(later).then(
      (value) => {
        run.request = undefined;
        this.#waiting -= 1;
        this.#settle(request, { ok: true, result: this.#options.wrap(value) }, cause);
      },
      (error) => {
        run.request = undefined;
        this.#waiting -= 1;
        this.#settle(request, this.#failure(request, implementation.label, error, cause), cause);
      },
    );
  };

  #settle(request: RequestView, outcome: Outcome, cause: number): void {
    // The table that admitted the request may be gone, together with its connection.
    request.held?.release();
    // Its interactive request may need it still, and releases it.
    if (!request.interactive) request.memory?.release();
    const { address, system } = this.#options;
    const { inspection } = system;
    if (!inspection.on) return conclude(request, outcome);
    inspection.withCause(cause || request.cause, () => conclude(request, outcome));
    // No message reports the end of this run.
    const live = inspection.live(address);
    if (live) inspection.markStale(live);
  }

  #failure(request: RequestView, label: string, error: unknown, cause: number): Outcome {
    const { address, errors, system } = this.#options;
    const failed = (): Outcome => ({ ok: false, error: errors.ofRequest(address, label, error, request.signal) });
    const { inspection } = system;
    return inspection.on ? inspection.withCause(cause || request.cause, failed) : failed();
  }

  crashed(mail: ExecutorMail<I, T>, error: unknown): void {
    if (mail.type !== 'execute') return;
    const { address, system } = this.#options;
    const { cause } = system.inspection;
    this.#settle(mail.request, this.#failure(mail.request, address, error, cause), cause);
  }
}

/** For requests that continue nothing: they run at once. */
function never(): void {}

/** Responds to a request. A request that asked its client for input may be answered under another id. */
function conclude(request: RequestView, outcome: Outcome): void {
  if (request.interactive) request.interactive.send({ type: 'done', outcome });
  else respond(request, outcome);
}
