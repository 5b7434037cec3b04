/** The resources of one upstream that clients of its mount watch: one subscription upstream for all of them. */
import type { Client } from '../client/connected-client.ts';
import type { Changes } from '../client/server-changes.ts';
import type { Clock, Timer } from '../clock.ts';
import { isObject } from '../protocol/json.ts';
import type { Upstream } from './upstream.ts';

export interface WatchedResourcesOptions {
  readonly upstream: Upstream;
  readonly clock: Clock;
  /** Milliseconds in which clients that begin or cease to watch are gathered into one subscription. */
  readonly gatherMs: number;
  /** Receives the URI upstream of a resource that has changed, or may have. */
  updated(uri: string): void;
}

/** Milliseconds after which an upstream that could not be reached is asked again. */
const RETRY_MS = 10_000;

export class WatchedResources {
  readonly #options: WatchedResourcesOptions;
  readonly #watched = new Set<string>();
  #changes: Changes | undefined;
  #timer: Timer | undefined;
  /** Counts subscriptions: one that was opened for an earlier set of resources is not used. */
  #generation = 0;

  constructor(options: WatchedResourcesOptions) {
    this.#options = options;
  }

  /** The number of watched resources. */
  get size(): number {
    return this.#watched.size;
  }

  /** The first client begins to watch a resource, by its URI upstream. */
  watch(uri: string): void {
    if (this.#watched.has(uri)) return;
    this.#watched.add(uri);
    this.#subscribeAfter(this.#options.gatherMs);
  }

  /** The last client ceases to watch a resource. */
  unwatch(uri: string): void {
    if (this.#watched.delete(uri)) this.#subscribeAfter(this.#options.gatherMs);
  }

  /** Another upstream took the place of the present one. */
  subscribeAgain(): void {
    if (this.#watched.size > 0) this.#subscribeAfter(0);
  }

  close(): void {
    this.#generation += 1;
    this.#watched.clear();
    this.#timer?.cancel();
    this.#changes?.end();
    this.#changes = undefined;
  }

  #subscribeAfter(ms: number): void {
    this.#timer ??= this.#options.clock.after(ms, () => {
      this.#timer = undefined;
      void this.#subscribe();
    });
  }

  /** Subscribes to the resources that are watched now, then ends the subscription before. */
  async #subscribe(): Promise<void> {
    this.#generation += 1;
    const generation = this.#generation;
    let client: Client | undefined;
    try {
      client = this.#watched.size === 0 ? undefined : await this.#options.upstream.catalogue();
    } catch {
      // Changes may be missed until then: the resources count as changed.
      if (generation === this.#generation) this.#subscribeAfter(RETRY_MS);
      return;
    }
    if (generation !== this.#generation) return;
    const before = this.#changes;
    this.#changes = client && subscribes(client) ? client.changes({ resources: [...this.#watched] }) : undefined;
    if (this.#changes) void this.#follow(this.#changes);
    before?.end();
  }

  async #follow(changes: Changes): Promise<void> {
    const { updated } = this.#options;
    try {
      for await (const change of changes) {
        if (change.type === 'missed') for (const uri of this.#watched) updated(uri);
        else if (change.type === 'resource')
          // An upstream may report a part of what is watched (2025-11-25 resources, "Subscriptions").
          for (const uri of this.#watched) if (change.uri === uri || change.uri.startsWith(`${uri}/`)) updated(uri);
      }
    } catch {
      // The upstream has no subscriptions, although it announces them.
    }
  }
}

function subscribes({ server: { capabilities, era } }: Client): boolean {
  const { resources } = capabilities;
  return era === 'modern' || (isObject(resources) && resources.subscribe === true);
}
