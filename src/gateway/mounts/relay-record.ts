/** The stored position of one relay: what it asks of which upstream, and the cursor up to which the topic has the events. */

import { sha256 } from '../../core/kernel/sha256.ts';
import { isJsonObject, isObject, type JsonObject } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { Store } from '../../core/store/store.ts';

/** A subscription upstream. */
export interface RelayedSubscription {
  /** The name of the event type upstream. */
  readonly name: string;
  readonly arguments: JsonObject;
  /** The principal whose grant reads the events; undefined if the credentials of the mount do. */
  readonly principal: string | undefined;
}

export interface StoredRelay extends RelayedSubscription {
  /** Identifies the upstream: the cursor of another one says nothing. */
  readonly target: string | undefined;
  /** Undefined: the upstream cannot replay. */
  readonly cursor: string | undefined;
}

const VERSION = '1';
/** Milliseconds for which a position stays in the store: as long as a topic without events. */
const KEPT_MS = 30 * 86_400_000;

export class RelayRecord {
  readonly #store: Store;
  readonly #actor: string;

  /** @param topic the offered name of the type, and its topic */
  constructor(store: Store, topic: string) {
    this.#store = store;
    this.#actor = `server/relay/${sha256(topic)}`;
  }

  /** @returns undefined if nothing is stored. @throws {StoreError} */
  async read(): Promise<StoredRelay | undefined> {
    const stored = await this.#store.load(this.#actor);
    if (stored?.snapshot?.version !== VERSION) return undefined;
    const value = fromText(stored.snapshot.data, this.#actor);
    if (!isObject(value) || typeof value.name !== 'string' || !isJsonObject(value.arguments)) return undefined;
    return {
      name: value.name,
      arguments: value.arguments,
      ...{ principal: textOf(value.principal), target: textOf(value.target), cursor: textOf(value.cursor) },
    };
  }

  /** @param now milliseconds since 1970. @throws {StoreError} */
  async write(relay: StoredRelay, now: number): Promise<void> {
    const { principal = '' } = relay;
    const base = { id: this.#actor, kind: 'server', name: 'relay', principal, status: 'live' } as const;
    await this.#store.commit([
      { type: 'actor', actor: { ...base, created: now, expires: now + KEPT_MS } },
      { type: 'snapshot', actor: this.#actor, version: VERSION, data: toText(relay) },
    ]);
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
