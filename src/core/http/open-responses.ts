/**
 * The open responses of an endpoint, as a linked list: one entry comes and goes with every request, and a `Set` would
 * retain removed entries in memory (docs/adr/0006).
 */
import type { Clock } from '../kernel/clock.ts';
import type { Auth } from '../messages/auth.ts';
import type { HttpListener, HttpResponse } from './http-message.ts';
import { KEEP_ALIVE } from './sse.ts';

/** Milliseconds for which a stream outlives the authentication that opened it: its client may have a new token. */
const AFTER_END_MS = 60_000;

/** The time at which a stream of this caller ends. */
export function endOf(auth: Auth | undefined, clock: Pick<Clock, 'now' | 'date'>): number {
  if (auth?.expiresAt === undefined) return Number.POSITIVE_INFINITY;
  return clock.now() + auth.expiresAt - clock.date() + AFTER_END_MS;
}

/** An open response that needs periodic maintenance. */
export abstract class OpenResponse implements HttpListener {
  /** Neighbours in the list; only the list sets them. */
  before: OpenResponse | undefined;
  after: OpenResponse | undefined;
  /** The time at which it must end because its authentication has ended, in milliseconds of the server's clock. */
  endsAt: number;
  protected readonly response: HttpResponse;
  /** The client disconnected, or another response carries the rest. */
  protected gone = false;
  /** Bytes that the client has not read, at the last check, and the time since which it has read none. */
  #pending = 0;
  #since = 0;

  constructor(response: HttpResponse, endsAt: number) {
    this.response = response;
    this.endsAt = endsAt;
  }

  /**
   * Keeps a silent response open; disconnects a client that reads nothing.
   *
   * @param now milliseconds of the server's clock
   * @param keepAliveMs milliseconds of silence after which a comment is sent
   * @param stallMs milliseconds after which a client that reads nothing is disconnected
   * @returns false if it was disconnected
   */
  tend(now: number, keepAliveMs: number, stallMs: number): boolean {
    if (this.gone) return true;
    const { pending } = this.response;
    if (pending === 0 || pending < this.#pending || this.#pending === 0) this.#since = now;
    this.#pending = pending;
    if (pending > 0 && now - this.#since >= stallMs) {
      this.response.destroy();
      return false;
    }
    this.keepAlive(now, keepAliveMs);
    return true;
  }

  protected keepAlive(_now: number, _keepAliveMs: number): void {
    if (this.#pending === 0) this.response.write(KEEP_ALIVE);
  }

  /** Ends it, and asks its client to reconnect after this many milliseconds, with another token. */
  abstract expire(retryMs: number, now: number): void;

  /** Disconnects the client without another byte: another node owns the session now. */
  cut(): void {
    this.response.destroy();
  }

  /** The client has read everything at one moment. */
  drained(): void {
    this.#pending = 0;
  }

  abstract closed(): void;
}

export class OpenResponses {
  #first: OpenResponse | undefined;

  add(open: OpenResponse): void {
    open.before = undefined;
    open.after = this.#first;
    if (this.#first) this.#first.before = open;
    this.#first = open;
  }

  /** The caller must have added it and not removed it since. */
  remove(open: OpenResponse): void {
    if (open.before) open.before.after = open.after;
    else this.#first = open.after;
    if (open.after) open.after.before = open.before;
    open.before = open.after = undefined;
  }

  /** A snapshot of all entries. */
  all(): readonly OpenResponse[] {
    const all: OpenResponse[] = [];
    for (let open = this.#first; open; open = open.after) all.push(open);
    return all;
  }
}
