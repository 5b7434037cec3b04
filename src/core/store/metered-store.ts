/** The decorators of a durable store: the owner of cells, the writes of the audit, and the metrics. */
import type { Clock } from '../kernel/clock.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import { cellOfActor } from '../protocol/cell.ts';
import type { CommitRiders } from './commit-rider.ts';
import { isChange, type Store, type StoreAnswer, StoreError, type StoreQuery, type Write } from './store.ts';
import { StoreAround } from './store-around.ts';
import { writtenActor } from './writes.ts';

/** Returns the store itself if its data does not outlive the process: its commits take no time. */
export function meteredStore(store: Store, clock: Clock, metrics: Metrics, riders: CommitRiders): MeasuredStore {
  return store.durable ? new RiddenStore(new MeteredStore(store, clock, metrics), riders) : store;
}

/** The store of a process that owns some of its cells. */
export function ownedStore(store: Store, owner: CellOwner): MeasuredStore {
  return store.durable ? new OwnedStore(store, owner) : store;
}

/** A store that can wait for the commits in flight. Without cells that move, it cannot. */
export interface MeasuredStore extends Store {
  written?(): Promise<void>;
}

/** Decides which cells this process may write. */
export interface CellOwner {
  owns(cell: number): boolean;
}

/** Measures what writes, and counts dead letters. */
class MeteredStore extends StoreAround {
  readonly #clock: Clock;
  readonly #metrics: Metrics;

  constructor(inner: Store, clock: Clock, metrics: Metrics) {
    super(inner);
    this.#clock = clock;
    this.#metrics = metrics;
  }

  override ask(query: StoreQuery): Promise<StoreAnswer> {
    const work = this.inner.ask(query);
    if (!isChange(query) || query.type === 'sweep') return work;
    if (query.type === 'commit')
      for (const { type } of query.writes) if (type === 'dead letter') this.#metrics.deadLetter();
    const from = this.#clock.now();
    const end = (): void => this.#metrics.committed(this.#clock.now() - from);
    this.#metrics.committing();
    work.then(end, end);
    return work;
  }
}

/** Lets the writes of a rider join each commit. */
class RiddenStore extends StoreAround {
  readonly #riders: CommitRiders;

  constructor(inner: Store, riders: CommitRiders) {
    super(inner);
    this.#riders = riders;
  }

  override ask(query: StoreQuery): Promise<StoreAnswer> {
    const { rider } = this.#riders;
    const joining = query.type === 'commit' ? rider?.board() : undefined;
    if (query.type !== 'commit' || !joining) return this.inner.ask(query);
    const commit = this.inner.ask({ type: 'commit', writes: [...joining, ...query.writes] });
    rider?.joined(commit);
    return commit;
  }
}

/** Rejects commits to the cells of other processes, and follows those in flight. */
class OwnedStore extends StoreAround implements MeasuredStore {
  readonly #owner: CellOwner;
  readonly #committing = new Set<Promise<StoreAnswer>>();

  constructor(inner: Store, owner: CellOwner) {
    super(inner);
    this.#owner = owner;
  }

  override ask(query: StoreQuery): Promise<StoreAnswer> {
    if (query.type !== 'commit') return this.inner.ask(query);
    const foreign = foreignIn(query.writes, this.#owner);
    if (foreign !== undefined) return Promise.reject(new StoreError('fenced', `${foreign}: another node owns it now`));
    const commit = this.inner.ask(query);
    this.#committing.add(commit);
    const end = (): void => void this.#committing.delete(commit);
    commit.then(end, end);
    return commit;
  }

  async written(): Promise<void> {
    await Promise.allSettled(this.#committing);
  }
}

/**
 * Returns an actor of a cell that this process does not own. Work that began before the cell moved may outlive it, also
 * after the node has joined again. Requests that ask are exempt: a call in flight keeps its steps, and only a retry by its
 * client makes the next owner read them.
 */
function foreignIn(writes: readonly Write[], owner: CellOwner): string | undefined {
  for (const write of writes) {
    // A dead letter is this process's own.
    if (write.type === 'dead letter') continue;
    const actor = writtenActor(write);
    const cell = actor.startsWith('question/') ? undefined : cellOfActor(actor);
    if (cell !== undefined && !owner.owns(cell)) return actor;
  }
  return undefined;
}
