/**
 * The open exchanges and streams, as a linked list: one entry comes and goes with every request, and a `Set` would
 * retain removed entries in memory (docs/adr/0006).
 */

import type { Clock } from '../../clock.ts';
import type { Auth } from '../../messages/auth.ts';

/** An open response that needs periodic maintenance. */
export interface Open {
  /** Neighbours in the list; only the list sets them. */
  before: Open | undefined;
  after: Open | undefined;
  /**
   * Keeps a silent response open; disconnects a client that reads nothing.
   *
   * @param now milliseconds of the server's clock
   * @param keepAliveMs milliseconds of silence after which a comment is sent
   * @param stallMs milliseconds after which a client that reads nothing is disconnected
   * @returns false if it was disconnected
   */
  tend(now: number, keepAliveMs: number, stallMs: number): boolean;
  /** The time at which it must end because its authentication has ended, in milliseconds of the server's clock. */
  readonly endsAt: number;
  /** Ends it, and asks its client to reconnect after this many milliseconds, with another token. */
  expire(retryMs: number, now: number): void;
}

/** Milliseconds for which a stream outlives the authentication that opened it: its client may have a new token. */
const AFTER_END_MS = 60_000;

/** The time at which a stream of this caller ends. */
export function endOf(auth: Auth | undefined, clock: Pick<Clock, 'now' | 'date'>): number {
  if (auth?.expiresAt === undefined) return Number.POSITIVE_INFINITY;
  return clock.now() + auth.expiresAt - clock.date() + AFTER_END_MS;
}

export class OpenList {
  #first: Open | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(open: Open): void {
    open.before = undefined;
    open.after = this.#first;
    if (this.#first) this.#first.before = open;
    this.#first = open;
    this.#size += 1;
  }

  /** The caller must have added it and not removed it since. */
  remove(open: Open): void {
    if (open.before) open.before.after = open.after;
    else this.#first = open.after;
    if (open.after) open.after.before = open.before;
    open.before = open.after = undefined;
    this.#size -= 1;
  }

  /** A snapshot of all entries. */
  all(): readonly Open[] {
    const all: Open[] = [];
    for (let open = this.#first; open; open = open.after) all.push(open);
    return all;
  }
}
