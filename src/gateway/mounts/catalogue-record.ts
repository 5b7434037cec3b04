/** The stored catalogue of a mount, which the next start offers before its upstream answers. */
import type { Clock } from '../../core/kernel/clock.ts';
import { isObject } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { ActorRow, Store } from '../../core/store/store.ts';
import { readCatalogue, type UpstreamCatalogue } from './upstream-catalogue.ts';

export interface StoredCatalogue {
  /** The time of its listing, in milliseconds since 1970. */
  readonly at: number;
  readonly catalogue: UpstreamCatalogue;
}

interface CatalogueRecordOptions {
  readonly mount: string;
  /** Identifies the upstream: the catalogue of another one is not read. Undefined: nothing is stored. */
  readonly targetKey: string | undefined;
  readonly clock: Clock;
}

const VERSION = '1';

export class CatalogueRecord {
  readonly #options: CatalogueRecordOptions;
  #store: Store | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** The catalogue to write next. */
  #next: StoredCatalogue | undefined;

  constructor(options: CatalogueRecordOptions) {
    this.#options = options;
  }

  get #actor(): string {
    return `server/mount/${this.#options.mount}`;
  }

  /** @throws {StoreError} if it cannot be read */
  async read(store: Store): Promise<StoredCatalogue | undefined> {
    const { targetKey } = this.#options;
    this.open(store);
    if (!this.#store) return undefined;
    const stored = await store.load(this.#actor);
    if (stored?.snapshot?.version !== VERSION) return undefined;
    const value = fromText(stored.snapshot.data, this.#actor);
    if (!isObject(value) || value.target !== targetKey || typeof value.at !== 'number') return undefined;
    const catalogue = readCatalogue(value.catalogue);
    return catalogue && { at: value.at, catalogue };
  }

  /** Takes the store for what is written from now on. */
  open(store: Store): void {
    if (store.durable && this.#options.targetKey !== undefined) this.#store = store;
  }

  /** Stores a catalogue. Of those that wait for the store, only the last is written. */
  write(stored: StoredCatalogue): void {
    if (!this.#store) return;
    const waiting = this.#next !== undefined;
    this.#next = stored;
    if (!waiting) this.#writing = this.#writing.then(() => this.#write());
  }

  /** Resolves when nothing is left to write. */
  written(): Promise<void> {
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { clock, targetKey } = this.#options;
    const next = this.#next;
    this.#next = undefined;
    if (!next || !this.#store) return;
    const base = { id: this.#actor, kind: 'server', name: 'mount', principal: '', status: 'live' } as const;
    const actor: ActorRow = { ...base, created: clock.date(), expires: undefined };
    const data = toText({ target: targetKey, ...next });
    try {
      await this.#store.commit([
        { type: 'actor', actor },
        { type: 'snapshot', actor: this.#actor, version: VERSION, data },
      ]);
    } catch {
      // The store reports its faults itself; the next start then lists the upstream first.
    }
  }
}
