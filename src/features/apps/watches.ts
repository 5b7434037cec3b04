/**
 * The calls with which views wait for a change of a resource: bounded, ended by the change, their time, a newer call of the
 * same view, or the end of the server. Nothing runs while they wait, except one timer for all.
 */
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import type { Quota } from '../../core/kernel/quota.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { SubscriptionsMail } from '../../core/messages/subscription-messages.ts';

/** The end of a wait. `replaced`: the same view waits in a newer call. */
export type WaitEnd = 'changed' | 'over' | 'replaced';

interface WatchesOptions {
  readonly clock: Clock;
  /** Receives the changes of resources. */
  readonly subscriptions: Mailbox<SubscriptionsMail>;
  /** Counts the waiting calls. */
  readonly quota: Quota;
}

export class Watches {
  readonly #options: WatchesOptions;
  /** The waiting calls, in the order of their beginning. */
  readonly #open = new Set<PendingWatch>();
  readonly #ofView = new Map<string, PendingWatch>();
  #timer: Timer | undefined;
  #alarm = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(options: WatchesOptions) {
    this.#options = options;
  }

  /**
   * Listens for changes of the resource of a call. Another call that the same view waits in is replaced.
   *
   * @returns the message of the limit that is reached, if there is no room
   */
  begin(watch: PendingWatch): string | undefined {
    const { view, principal, session, until } = watch;
    if (view !== undefined) this.#ofView.get(view)?.end('replaced');
    const excess = this.#options.quota.excess(principal, 1, session);
    if (excess) return excess.message;
    this.#options.quota.add(principal, 1, session);
    this.#open.add(watch);
    if (view !== undefined) this.#ofView.set(view, watch);
    this.#options.subscriptions.send({ type: 'watch', watch });
    if (this.#closed) watch.end('over');
    else if (until < this.#alarm) this.#wakeAt(until);
    return undefined;
  }

  /** Removes a call that waits no more. Only {@link PendingWatch.end} calls it. */
  ended(watch: PendingWatch): void {
    const { view, principal, session } = watch;
    if (!this.#open.delete(watch)) return;
    this.#options.quota.remove(principal, 1, session);
    if (view !== undefined && this.#ofView.get(view) === watch) this.#ofView.delete(view);
    this.#options.subscriptions.send({ type: 'watch ended', watch });
  }

  /** Ends every wait: the server stops. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    for (const watch of this.#open) watch.end('over');
  }

  #wakeAt(time: number): void {
    const { clock } = this.#options;
    this.#timer?.cancel();
    this.#alarm = time;
    this.#timer = clock.after(Math.max(0, Math.ceil(time - clock.now())), () => this.#wake());
  }

  #wake(): void {
    this.#alarm = Number.POSITIVE_INFINITY;
    const now = this.#options.clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const watch of this.#open)
      if (watch.until <= now) watch.end('over');
      else next = Math.min(next, watch.until);
    if (next < Number.POSITIVE_INFINITY) this.#wakeAt(next);
  }
}

/** One call that waits. Small, because thousands of them wait: it holds no promise of its own. */
export class PendingWatch {
  readonly uri: string;
  readonly principal: string;
  readonly session: string | undefined;
  readonly view: string | undefined;
  readonly until: number;
  readonly #watches: Watches;
  /** Receives each change, and the end. */
  readonly #report: (end: WaitEnd) => void;
  #over = false;

  /**
   * @param session of a client that has one
   * @param view the view that waits; undefined for a call without a key
   * @param until the time at which the wait is over, in milliseconds of the clock
   */
  constructor(
    watches: Watches,
    uri: string,
    principal: string,
    session: string | undefined,
    view: string | undefined,
    until: number,
    report: (end: WaitEnd) => void,
  ) {
    this.uri = uri;
    this.principal = principal;
    this.session = session;
    this.view = view;
    this.until = until;
    this.#watches = watches;
    this.#report = report;
  }

  /** Receives a change of the resource. */
  announce(): void {
    if (!this.#over) this.#report('changed');
  }

  /** Ends the wait. Further calls have no effect. */
  end(end: WaitEnd): void {
    if (this.#over) return;
    this.stop();
    this.#report(end);
  }

  /** Ends the wait without a report. */
  stop(): void {
    this.#over = true;
    this.#watches.ended(this);
  }
}
