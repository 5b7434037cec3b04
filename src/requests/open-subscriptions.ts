/** The open subscriptions of one in-flight table: requests that run nothing and have no deadline, bounded apart from those that do. */
import type { ActiveRequest } from '../messages/active-request.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { SubscriptionsMail } from '../messages/subscription-messages.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';

export interface OpenSubscriptionsOptions {
  /** Hears which subscriptions have ended, or are to end. */
  readonly subscriptions: Pick<Mailbox<SubscriptionsMail>, 'send'>;
  /** The name of the option that `maxListens` comes from. */
  readonly listenLimit: 'maxListens' | 'maxStatelessListens';
  /** Most subscriptions open at once: they are no part of what `maxInFlight` counts. */
  readonly maxListens: number;
}

export class OpenSubscriptions {
  readonly #options: OpenSubscriptionsOptions;
  /** By their keys. Made when the first comes: most connections have none. */
  #open: Map<RequestId, ActiveRequest> | undefined;

  constructor(options: OpenSubscriptionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open?.size ?? 0;
  }

  get(key: RequestId): ActiveRequest | undefined {
    return this.#open?.get(key);
  }

  /** Adds a request whose key nobody has; it stays until its client or the server ends it (2026-07-28 subscriptions, "Cancellation"). @returns why it cannot */
  add(request: ActiveRequest, now: number): string | undefined {
    const { listenLimit, maxListens } = this.#options;
    if (this.size >= maxListens)
      return `${maxListens} subscriptions are open ${listenLimit === 'maxListens' ? 'on this connection' : 'without a session'}, which is the limit: end one, or ask for more in one (the server's option is ${listenLimit})`;
    request.admitted = now;
    request.timeoutMs = Number.POSITIVE_INFINITY;
    request.deadline = Number.POSITIVE_INFINITY;
    request.latest = Number.POSITIVE_INFINITY;
    this.#open ??= new Map();
    this.#open.set(request.key, request);
    return undefined;
  }

  /** @returns false when this very request was not there */
  delete(request: ActiveRequest): boolean {
    return this.#open?.get(request.key) === request && this.#open.delete(request.key);
  }

  /** Nothing more may be said of it. @returns false where it is no subscription */
  ended(request: ActiveRequest): boolean {
    if (request.operation.method !== 'subscriptions/listen') return false;
    this.#options.subscriptions.send({ type: 'ended', request });
    return true;
  }

  /** Has each of them answered, when it was told what is left to tell. */
  endAll(): void {
    for (const request of this.#open?.values() ?? []) this.#options.subscriptions.send({ type: 'end', request });
  }
}
