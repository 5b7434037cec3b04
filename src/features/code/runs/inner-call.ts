/** One attempt of a call of a script: a request of its own that passes all gates, with a deadline, and one outcome. */
import { type Clock, LONGEST_TIMER_MS, type Timer } from '../../../core/kernel/clock.ts';
import { durationOf } from '../../../core/kernel/duration.ts';
import type { Auth } from '../../../core/messages/auth.ts';
import type { CallVia } from '../../../core/messages/authorization-rule.ts';
import type { ClientFacts } from '../../../core/messages/client-facts.ts';
import type { Mailbox } from '../../../core/messages/mailbox.ts';
import type { RequestsMail } from '../../../core/messages/request-messages.ts';
import type { RequestView } from '../../../core/messages/request-view.ts';
import type { Outcome } from '../../../core/messages/results.ts';
import { ErrorCode, wireError } from '../../../core/protocol/errors.ts';
import type { Operation } from '../../../core/protocol/operations.ts';
import { oneOutcome } from '../../../core/requests/active-request.ts';
import { endInner, type InnerRequest, innerRequest } from '../../../core/requests/inner-requests.ts';
import type { Core } from '../../../core/server/feature.ts';

interface InnerCallOptions {
  readonly core: Pick<Core, 'stages' | 'system' | 'limits'>;
  /** The address of the table that admits it. No other run has it, by which a gateway distinguishes clients. */
  readonly address: string;
  readonly operation: Operation;
  readonly client: ClientFacts;
  readonly auth: Auth | undefined;
  readonly via: CallVia;
  readonly owner: InnerRequest['owner'];
  /** The span of the request that runs the script. */
  readonly traceparent: string | undefined;
  readonly label: string;
  /** Called once. */
  ended(outcome: Outcome): void;
}

/** The error of a request that ended before its handler. */
class InnerCallEnded extends Error {
  override readonly name = 'AbortError';
}

/** The target of requests that serves an operation. */
function servedBy({ method }: Operation): 'resources' | 'tasks' | 'tools' {
  if (method === 'resources/read') return 'resources';
  return method.startsWith('tasks/') ? 'tasks' : 'tools';
}

export class InnerCall {
  readonly #options: InnerCallOptions;
  readonly #clock: Clock;
  readonly #request: RequestView;
  #timer: Timer | undefined;
  #timeoutMs: number;
  #deadline = 0;
  #alarm = Number.POSITIVE_INFINITY;
  #over = false;

  constructor(options: InnerCallOptions) {
    const { core, operation, client, auth, via, owner, address } = options;
    const { system, limits } = core;
    this.#options = options;
    this.#clock = system.clock;
    this.#timeoutMs = limits.timeoutMs;
    const { inspection, metrics, telemetry } = system;
    const outcome = oneOutcome(address, (given) => this.#ended(given));
    const requests: Mailbox<RequestsMail> = {
      address,
      send: (mail) => {
        if (mail.type === 'extend deadline') this.#allow(mail.timeoutMs);
        // As of every modern client: progress restarts the time.
        else if (mail.type === 'progress') this.#allow(this.#timeoutMs);
        else outcome.send(mail);
      },
    };
    const id = `${via.run}/${via.call}`;
    const { traceparent } = options;
    const span = telemetry?.begin({
      ...{ operation, id, element: metrics.elementOf(operation), http: undefined, transport: 'run' },
      ...{ protocolVersion: client.dialect.revision, session: undefined },
      meta: traceparent === undefined ? undefined : { traceparent },
    });
    this.#request = innerRequest({
      ...{ id, operation, client, auth, via, owner, requests, span },
      servedBy: servedBy(operation),
      cause: inspection.on ? inspection.cause : 0,
      now: this.#clock.now(),
      timeoutMs: limits.timeoutMs,
    });
  }

  /** Sends it through the gates. */
  start(): void {
    const request = this.#request;
    this.#allow(this.#timeoutMs);
    this.#options.core.stages.route({ type: 'request', request });
  }

  /** Ends it: its handler is aborted, also while it waits for an answer. */
  cancel(why: string): void {
    const wasOver = this.#over;
    this.#stop();
    endInner(this.#request, 'cancel', new InnerCallEnded(why));
    if (!wasOver) this.#request.span?.end({ error: 'cancelled', seconds: this.#seconds() });
  }

  #seconds(): number {
    return (this.#clock.now() - this.#request.admitted) / 1_000;
  }

  #allow(ms: number): void {
    if (this.#over) return;
    this.#timeoutMs = ms;
    this.#deadline = this.#clock.now() + ms;
    // A deadline that moves away needs no new timer.
    if (this.#deadline < this.#alarm) this.#watch(ms);
  }

  #watch(ms: number): void {
    this.#timer?.cancel();
    const after = Math.min(Math.max(0, Math.ceil(ms)), LONGEST_TIMER_MS);
    this.#alarm = this.#clock.now() + after;
    this.#timer = this.#clock.after(after, () => {
      this.#alarm = Number.POSITIVE_INFINITY;
      const left = this.#deadline - this.#clock.now();
      if (this.#over) return;
      if (left > 0) return this.#watch(left);
      const { label } = this.#options;
      const why = `${label} took longer than its timeout of ${durationOf(this.#timeoutMs)}`;
      endInner(this.#request, 'expire', new InnerCallEnded(why));
      this.#ended({ ok: false, error: wireError(ErrorCode.TimedOut, why) });
    });
  }

  #stop(): void {
    this.#over = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #ended(outcome: Outcome): void {
    if (this.#over) return;
    this.#stop();
    const error = outcome.ok ? undefined : String(outcome.error.code);
    this.#request.span?.end({ error, seconds: this.#seconds(), outcome });
    this.#options.ended(outcome);
  }
}
