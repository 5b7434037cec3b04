/** The lifecycle of a server's store: opens before the first transport, closes after the last. */
import type { ActorSystem } from '../kernel/actor-system.ts';
import type { Timer } from '../kernel/clock.ts';
import { errorFields } from '../kernel/operator-log.ts';
import type { CellHolder } from '../messages/cell-holder.ts';
import { messageOf } from '../protocol/json.ts';
import { type CellOwner, type MeasuredStore, ownedStore } from '../store/metered-store.ts';
import type { Store } from '../store/store.ts';

interface StoreLifecycleOptions {
  readonly system: ActorSystem;
  readonly store: MeasuredStore;
}

/** The node of a process that shares its store. */
interface StoreNode {
  /** Joins, before the first commit. @throws {StoreError | Error} */
  join(): Promise<void>;
  /** Claims cells, and lets this process take them up. @throws {StoreError} */
  own(): Promise<void>;
}

/** Milliseconds between two sweeps of expired data. */
const SWEEP_MS = 60_000;

export class StoreLifecycle implements CellHolder {
  #store: MeasuredStore;
  readonly #options: StoreLifecycleOptions;
  readonly #restorers: (() => Promise<void>)[] = [];
  readonly #holders: CellHolder[] = [];
  /** Decides which cells this process takes up; undefined if it owns all. */
  #node: StoreNode | undefined;
  #opening: Promise<void> | undefined;
  #sweep: Timer | undefined;
  #open = false;
  #closed = false;

  constructor(options: StoreLifecycleOptions) {
    this.#options = options;
    this.#store = options.store;
  }

  get store(): Store {
    return this.#store;
  }

  /**
   * Registers a function that runs once, after the store has opened and before anything is served. Functions run in the
   * order of registration, and before anything is taken up.
   */
  restoring(restore: () => Promise<void>): void {
    this.#restorers.push(restore);
  }

  /** Registers a part that takes up the stored data of cells: in the order of registration, and lets go in reverse order. */
  taking(holder: CellHolder): void {
    this.#holders.push(holder);
  }

  /** Leaves it to a node which cells this process takes up, and when. Without a node, the process takes everything. */
  ownedBy(node: StoreNode & CellOwner): void {
    this.#node = node;
    this.#store = ownedStore(this.#store, node);
  }

  /** Takes up the data of cells; of the whole store if undefined. @throws {StoreError} */
  async take(cells: readonly number[] | undefined): Promise<void> {
    for (const holder of this.#holders) await holder.take(cells);
  }

  /**
   * Lets go of cells.
   *
   * @param flush see {@link CellHolder.drop}
   */
  async drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    const holders = [...this.#holders].reverse();
    if (flush) for (const holder of holders) await holder.drop(cells, true);
    else await Promise.all(holders.map((holder) => holder.drop(cells, false)));
  }

  *working(): Iterable<number> {
    for (const holder of this.#holders) yield* holder.working?.() ?? [];
  }

  async written(): Promise<void> {
    await this.#store.written?.();
  }

  /** The reason for which the store cannot serve requests; undefined if it can. */
  get impairment(): 'store not open' | 'store read-only' | undefined {
    const impairment = this.#open ? this.store.impairment() : 'not open';
    return impairment && `store ${impairment}`;
  }

  /** Opens the store once, and lets all services restore their data. @throws {StoreError} */
  open(): Promise<void> {
    this.#opening ??= this.#openStore();
    return this.#opening;
  }

  async #openStore(): Promise<void> {
    const { clock, log } = this.#options.system;
    const { store } = this;
    const shared = this.#node !== undefined;
    await store.open({ clock, shared, log: (level, message) => log(level, message, { event: 'store' }) });
    await this.#node?.join();
    for (const restore of this.#restorers) await restore();
    await (this.#node ? this.#node.own() : this.take(undefined));
    this.#open = true;
    this.#sweepLater();
  }

  #sweepLater(): void {
    const { clock, log } = this.#options.system;
    const { store } = this;
    if (this.#closed) return;
    this.#sweep = clock.after(SWEEP_MS, () => {
      store
        .sweep(clock.date())
        .catch((error: unknown) =>
          log('warning', `expired data stays in the store for now: ${messageOf(error)}`, errorFields('store', error)),
        )
        .then(() => this.#sweepLater());
    });
  }

  /** Flushes pending writes and closes the store. Never rejects: the caller could do nothing about it. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#sweep?.cancel();
    if (!this.#opening) return;
    await this.#opening.catch(() => {});
    try {
      await this.store.close();
    } catch (error) {
      this.#options.system.log(
        'error',
        `${this.store.name} could not be closed: ${messageOf(error)}`,
        errorFields('store', error),
      );
    }
  }
}
