/**
 * The resources of one upstream that clients of its mount watch: one subscription upstream for all of them on each connection. A
 * legacy server may report a change only on the connection whose call made it.
 */
import type { ConnectedClient } from '../../client/connected-client.ts';
import type { Changes } from '../../client/server-changes.ts';
import { delayAfter } from '../../core/kernel/back-off.ts';
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import type { RuntimeLog } from '../../core/kernel/operator-log.ts';
import { isObject, messageOf } from '../../core/protocol/json.ts';
import type { ReplaceableUpstream } from './replaceable-upstream.ts';
import type { ConnectionFollower } from './upstream.ts';

interface WatchedResourcesOptions {
  readonly upstream: ReplaceableUpstream;
  readonly clock: Clock;
  /** Milliseconds in which clients that begin or cease to watch are gathered into one subscription. */
  readonly gatherMs: number;
  /** Receives the URI upstream of a resource that has changed, or may have. */
  updated(uri: string): void;
  log: RuntimeLog;
}

/** Delays in milliseconds after which an upstream that could not be reached is asked again: doubled with each failure. */
const RETRY = { fromMs: 1_000, toMs: 60_000 } as const;

export class WatchedResources implements ConnectionFollower {
  readonly #options: WatchedResourcesOptions;
  readonly #watched = new Set<string>();
  /** The connections to follow, with what each reports. The catalogue's is among them once something is watched. */
  readonly #followed = new Map<ConnectedClient, Changes | undefined>();
  #timer: Timer | undefined;
  /** Counts subscriptions: one that was opened for an earlier set of resources is not used. */
  #generation = 0;
  /** Consecutive times that the upstream could not be reached. */
  #failures = 0;
  /** The upstream has granted a connection no subscription: it may grant one when its lists have changed. */
  #refused = false;

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

  /** The lists of the upstream have changed: a resource that it did not have may be there now. */
  listed(): void {
    if (this.#refused) this.subscribeAgain();
  }

  /** Calls of an owner use this connection from now on. It is followed before the first of them is sent. */
  opened(client: ConnectedClient): void {
    this.#followed.set(client, this.#changesOf(client));
  }

  closed(client: ConnectedClient): void {
    this.#followed.get(client)?.end();
    this.#followed.delete(client);
  }

  close(): void {
    this.#generation += 1;
    this.#watched.clear();
    this.#timer?.cancel();
    for (const changes of this.#followed.values()) changes?.end();
    this.#followed.clear();
  }

  #subscribeAfter(ms: number): void {
    this.#timer ??= this.#options.clock.after(ms, () => {
      this.#timer = undefined;
      void this.#subscribe();
    });
  }

  /** Subscribes to the resources that are watched now, then ends the subscriptions before. */
  async #subscribe(): Promise<void> {
    this.#generation += 1;
    const generation = this.#generation;
    let client: ConnectedClient | undefined;
    try {
      client = this.#watched.size === 0 ? undefined : await this.#options.upstream.current.catalogue();
    } catch {
      // Changes may be missed until then: the resources count as changed.
      if (generation !== this.#generation) return;
      this.#failures += 1;
      this.#subscribeAfter(delayAfter(RETRY, this.#failures));
      return;
    }
    if (generation !== this.#generation) return;
    this.#failures = 0;
    this.#refused = false;
    for (const each of new Set([...this.#followed.keys(), ...(client ? [client] : [])])) {
      const before = this.#followed.get(each);
      this.#followed.set(each, this.#changesOf(each));
      before?.end();
    }
  }

  #changesOf(client: ConnectedClient): Changes | undefined {
    if (this.#watched.size === 0 || !subscribes(client)) return undefined;
    const changes = client.changes({ resources: [...this.#watched] });
    void this.#follow(changes);
    return changes;
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
    } catch (error) {
      this.#refused = true;
      this.#options.log('info', `changes of watched resources are not reported: ${messageOf(error)}`, {
        event: 'mount',
      });
    }
  }
}

function subscribes({ server: { capabilities, era } }: ConnectedClient): boolean {
  const { resources } = capabilities;
  return era === 'modern' || (isObject(resources) && resources.subscribe === true);
}
