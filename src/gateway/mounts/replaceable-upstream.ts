/** The upstream of a mount, which another may replace: calls that begin go to the present one, and those of earlier ones finish. */

import type { CallOwner } from '../../core/execution/request-context.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { JsonObject } from '../../core/protocol/json.ts';
import type { ConnectionFollower, Upstream } from './upstream.ts';

/** Milliseconds before an upstream that was replaced is closed: a call may have its connection, and not be sent yet. */
const SETTLE_MS = 1_000;
/** Longest that the calls of an upstream that was replaced or removed may take, in milliseconds: as a call with progress. */
const DRAIN_MS = 600_000;

export class ReplaceableUpstream {
  readonly #clock: Clock;
  #current: Upstream;
  /** Replaced, with calls in flight. */
  readonly #draining = new Set<Upstream>();
  #follower: ConnectionFollower | undefined;
  #only: CallOwner | undefined;
  #closed = false;

  constructor(first: Upstream, clock: Clock) {
    this.#current = first;
    this.#clock = clock;
  }

  /** The upstream for calls that begin now. */
  get current(): Upstream {
    return this.#current;
  }

  /** The only client of the server, if it has one. */
  get only(): CallOwner | undefined {
    return this.#only;
  }

  /** The server has one client: see `Upstream`. */
  serves(only: CallOwner): void {
    this.#only = only;
    this.#current.serves(only);
  }

  follow(follower: ConnectionFollower): void {
    this.#follower = follower;
    for (const upstream of this.#all()) upstream.follow(follower);
  }

  keepRoots(owner: CallOwner, roots: JsonObject): void {
    for (const upstream of this.#all()) upstream.keepRoots(owner, roots);
  }

  released(ownerKey: string): void {
    if (this.#only?.key === ownerKey) this.#only = undefined;
    for (const upstream of this.#all()) upstream.released(ownerKey);
  }

  /** Takes another upstream. The earlier one is closed when its calls have finished. */
  replace(next: Upstream): void {
    // The server may have closed the mount while the next upstream was listed.
    if (this.#closed) return void next.close();
    const before = this.#current;
    this.#current = next;
    if (this.#follower) next.follow(this.#follower);
    this.#draining.add(before);
    this.#clock.after(SETTLE_MS, () => {
      void before.close(DRAIN_MS).finally(() => this.#draining.delete(before));
    });
  }

  /** @param drainMs milliseconds for the calls in flight. Default: those of the connections */
  async close(drainMs?: number): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#all().map((upstream) => upstream.close(drainMs)));
  }

  /** Closes after the calls in flight, as an upstream that was replaced. */
  drain(): Promise<void> {
    return this.close(DRAIN_MS);
  }

  #all(): readonly Upstream[] {
    return [this.#current, ...this.#draining];
  }
}
