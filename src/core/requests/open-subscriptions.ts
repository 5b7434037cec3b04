/**
 * The open subscriptions of one in-flight table: requests without a handler and without a deadline, bounded separately
 * from other requests.
 */
import { type Clock, inSlices } from '../kernel/clock.ts';
import type { Excess } from '../kernel/quota.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { SubscriptionsMail } from '../messages/subscription-messages.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import { STAY_OPEN } from '../protocol/operations.ts';
import type { ActiveRequest } from './active-request.ts';

export interface OpenSubscriptionsOptions {
  /** Receives the subscriptions that have ended or must end. */
  readonly subscriptions: Pick<Mailbox<SubscriptionsMail>, 'send'>;
  /** Name of the option that sets `maxListens`. */
  readonly listenLimit: 'maxListens' | 'maxStatelessListens';
  /** Maximum number of open subscriptions. They do not count against `maxInFlight`. */
  readonly maxListens: number;
}

export class OpenSubscriptions {
  readonly #options: OpenSubscriptionsOptions;
  /** By key. */
  readonly #open = new Map<RequestId, ActiveRequest>();
  /** Number of open `subscriptions/listen`. Streams of events have limits of their own. */
  #listens = 0;

  constructor(options: OpenSubscriptionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  all(): readonly ActiveRequest[] {
    return [...this.#open.values()];
  }

  get(key: RequestId): ActiveRequest | undefined {
    return this.#open.get(key);
  }

  /**
   * Adds a request with an unused key. It stays until its client or the server ends it (2026-07-28 subscriptions,
   * "Cancellation"). @returns the limit that rejects it
   */
  add(request: ActiveRequest, now: number): Pick<Excess, 'option' | 'message'> | undefined {
    const { listenLimit, maxListens } = this.#options;
    const listens = !isStream(request);
    if (listens && this.#listens >= maxListens)
      return {
        option: `limits.${listenLimit}`,
        message: `${maxListens} subscriptions are open ${listenLimit === 'maxListens' ? 'on this connection' : 'without a session'}, which is the limit: end one, or combine several into one (the server's option is ${listenLimit})`,
      };
    request.admitted = now;
    request.timeoutMs = Number.POSITIVE_INFINITY;
    request.deadline = Number.POSITIVE_INFINITY;
    request.latest = Number.POSITIVE_INFINITY;
    this.#open.set(request.key, request);
    if (listens) this.#listens += 1;
    return undefined;
  }

  /** @returns false if this request was not in the table */
  delete(request: ActiveRequest): boolean {
    const deleted = this.#open.get(request.key) === request && this.#open.delete(request.key);
    if (deleted && !isStream(request)) this.#listens -= 1;
    return deleted;
  }

  /**
   * Marks the end of a subscription: nothing more may be sent for it. @returns false if the request is not a
   * subscription
   */
  ended(request: ActiveRequest): boolean {
    if (!STAY_OPEN.has(request.operation.method)) return false;
    if (!isStream(request)) this.#options.subscriptions.send({ type: 'ended', request });
    return true;
  }

  /** Ends every subscription after its pending notifications are sent, with a response. */
  endAll(): void {
    for (const request of this.#open.values()) this.#end(request);
  }

  /** Does the same in slices, so that the end of thousands of subscriptions does not block other requests. */
  endInSlices(clock: Clock): void {
    inSlices(clock, this.#open.values(), (request) => this.#end(request), nothing);
  }

  #end(request: ActiveRequest): void {
    if (!isStream(request)) this.#options.subscriptions.send({ type: 'end', request });
    // The events notice it, and respond.
    else request.abort(new Error('the server ends this stream'));
  }
}

/** True for a stream of events. Its limits are those of the events. */
function isStream({ operation }: ActiveRequest): boolean {
  return operation.method === 'events/stream';
}

function nothing(): void {}
