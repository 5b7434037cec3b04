/**
 * A tracing system whose errors are logged, because a broken one must not fail the requests that it watches, and whose spans of
 * rejected requests are limited.
 */

import type { InputRequest } from '../../messages/client-input.ts';
import type { Clock } from '../clock.ts';
import { TokenBucket } from '../token-bucket.ts';
import type { Instrument } from './instruments.ts';
import type {
  DeliverySpan,
  Ended,
  EndedSession,
  QuestionSpan,
  RequestSpan,
  SeenDelivery,
  SeenQuestion,
  SeenRequest,
  Telemetry,
  TraceIds,
} from './telemetry.ts';

type Failed = (error: unknown) => void;

/** Logs an error of a tracing system. The next thousand are counted with it. */
const LOG_EVERY = 1_000;
/** Maximum number of spans of rejected requests, in a second and at once: a flood of requests must not become a flood of spans. */
const REJECTED_PER_SECOND = 10;
const REJECTED_BURST = 100;

export class GuardedTelemetry implements Telemetry {
  readonly #telemetry: Telemetry;
  readonly #clock: Clock;
  readonly #rejected: TokenBucket;
  readonly #failed: Failed;

  constructor(telemetry: Telemetry, clock: Clock, log: (error: unknown) => void) {
    this.#telemetry = telemetry;
    this.#clock = clock;
    this.#rejected = new TokenBucket(REJECTED_PER_SECOND, REJECTED_BURST, clock.now());
    let failures = 0;
    this.#failed = (error) => {
      if (failures % LOG_EVERY === 0) log(error);
      failures += 1;
    };
  }

  begin(request: SeenRequest): RequestSpan | undefined {
    try {
      const span = this.#telemetry.begin(request);
      return span && new GuardedSpan(span, this.#failed);
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
  }

  /** Makes the span of a request that was rejected before it was admitted, unless there were too many. */
  rejected(seen: () => SeenRequest, ended: Ended): void {
    if (this.#rejected.take(this.#clock.now()) === 0) this.begin(seen())?.end(ended);
  }

  ask(question: SeenQuestion): QuestionSpan | undefined {
    try {
      const by = question.by instanceof GuardedSpan ? question.by.guarded : question.by;
      const span = this.#telemetry.ask({ ...question, by });
      return span && new GuardedQuestion(span, this.#failed);
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
  }

  deliver(delivery: SeenDelivery): DeliverySpan | undefined {
    const span = guard(this.#failed, () => this.#telemetry.deliver?.(delivery));
    return span && { end: (ended) => guard(this.#failed, () => span.end(ended)) };
  }

  session(ended: EndedSession): void {
    guard(this.#failed, () => this.#telemetry.session(ended));
  }

  observe(instruments: readonly Instrument[], reading: () => void): void {
    guard(this.#failed, () => this.#telemetry.observe?.(instruments, reading));
  }
}

class GuardedSpan implements RequestSpan {
  readonly guarded: RequestSpan;
  readonly #failed: Failed;

  constructor(span: RequestSpan, failed: Failed) {
    this.guarded = span;
    this.#failed = failed;
  }

  get traceparent(): string | undefined {
    return guard(this.#failed, () => this.guarded.traceparent);
  }

  get sampled(): TraceIds | undefined {
    return guard(this.#failed, () => this.guarded.sampled);
  }

  /** Runs the work in any case, and once. Its own errors are its caller's. */
  run<T>(work: () => T): T {
    let ran: { readonly result: T } | { readonly error: unknown } | undefined;
    guard(this.#failed, () =>
      this.guarded.run(() => {
        ran ??= attempt(work);
      }),
    );
    ran ??= attempt(work);
    if ('error' in ran) throw ran.error;
    return ran.result;
  }

  link(traceparent: string): void {
    guard(this.#failed, () => this.guarded.link(traceparent));
  }

  end(ended: Ended): void {
    guard(this.#failed, () => this.guarded.end(ended));
  }
}

class GuardedQuestion implements QuestionSpan {
  readonly #span: QuestionSpan;
  readonly #failed: Failed;

  constructor(span: QuestionSpan, failed: Failed) {
    this.#span = span;
    this.#failed = failed;
  }

  inject(id: string, input: InputRequest): InputRequest {
    try {
      return this.#span.inject(id, input);
    } catch (error) {
      this.#failed(error);
      return input;
    }
  }

  end(ended: Ended): void {
    guard(this.#failed, () => this.#span.end(ended));
  }
}

function attempt<T>(work: () => T): { readonly result: T } | { readonly error: unknown } {
  try {
    return { result: work() };
  } catch (error) {
    return { error };
  }
}

function guard<T>(failed: Failed, work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    failed(error);
    return undefined;
  }
}
