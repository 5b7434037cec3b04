/** A store whose commits are measured and take writes of the audit with them, and whose dead letters are counted. */
import type { Clock } from '../clock.ts';
import { cellOfActor } from '../protocol/cell.ts';
import type { CommitRiders } from '../store/commit-rider.ts';
import type { Nodes } from '../store/membership.ts';
import type {
  ActorRow,
  DeadLetter,
  JournalEvent,
  ListQuery,
  Notes,
  ReplyWrite,
  Store,
  Stored,
  StoreHost,
  StreamRow,
  TimerRow,
  Write,
} from '../store/store.ts';
import { StoreError } from '../store/store.ts';
import { writtenActor } from '../store/written-actor.ts';
import type { Metrics } from './metrics.ts';

/** Returns the store itself if its data does not outlive the process: its commits take no time. */
export function meteredStore(
  store: Store,
  clock: Clock,
  metrics: Metrics,
  riders: CommitRiders,
  owner?: CellOwner,
): MeasuredStore {
  return store.durable ? new MeteredStore(store, clock, metrics, riders, owner) : store;
}

/** A store that can wait for the commits in flight. Without cells that move, it cannot. */
export interface MeasuredStore extends Store {
  written?(): Promise<void>;
}

/** Decides which cells this process may write. */
export interface CellOwner {
  owns(cell: number): boolean;
}

class MeteredStore implements MeasuredStore {
  readonly durable = true;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #riders: CommitRiders;
  /** Undefined for a process that owns the whole store. */
  readonly #owner: CellOwner | undefined;
  /** The commits in flight of a process whose cells move. */
  readonly #committing = new Set<Promise<void>>();
  readonly written?: () => Promise<void>;
  readonly notes?: Notes;
  readonly nodes?: Nodes;
  readonly caughtUp?: () => Promise<void> | undefined;
  readonly claim?: (reply: ReplyWrite) => Promise<string | undefined>;
  readonly first?: NonNullable<Store['first']>;
  readonly impairment?: () => 'not open' | 'read-only' | undefined;
  readonly isDamaged?: (actor: string) => boolean;

  constructor(store: Store, clock: Clock, metrics: Metrics, riders: CommitRiders, owner: CellOwner | undefined) {
    this.#riders = riders;
    this.#owner = owner;
    this.#store = store;
    this.#clock = clock;
    this.#metrics = metrics;
    if (owner) this.written = () => Promise.allSettled(this.#committing).then(() => {});
    if (store.notes) this.notes = store.notes;
    if (store.nodes) this.nodes = store.nodes;
    const caughtUp = store.caughtUp?.bind(store);
    if (caughtUp) this.caughtUp = caughtUp;
    const claim = store.claim?.bind(store);
    if (claim) this.claim = (reply) => this.#metered(claim(reply));
    const first = store.first?.bind(store);
    if (first) this.first = (actor, snapshot) => this.#metered(first(actor, snapshot));
    const impairment = store.impairment?.bind(store);
    if (impairment) this.impairment = impairment;
    const isDamaged = store.isDamaged?.bind(store);
    if (isDamaged) this.isDamaged = isDamaged;
  }

  get name(): string {
    return this.#store.name;
  }

  open(host: StoreHost): Promise<void> {
    return this.#store.open(host);
  }

  commit(writes: readonly Write[]): Promise<void> {
    const foreign = this.#owner && foreignIn(writes, this.#owner);
    if (foreign !== undefined) return Promise.reject(new StoreError('fenced', `${foreign}: another node owns it now`));
    for (const { type } of writes) if (type === 'dead letter') this.#metrics.deadLetter();
    const { rider } = this.#riders;
    const joining = rider?.board();
    const commit = this.#metered(this.#store.commit(joining ? [...joining, ...writes] : writes));
    if (joining) rider?.joined(commit);
    if (this.#owner) this.#follow(commit);
    return commit;
  }

  #follow(commit: Promise<void>): void {
    this.#committing.add(commit);
    const end = (): void => void this.#committing.delete(commit);
    commit.then(end, end);
  }

  load(actor: string): Promise<Stored | undefined> {
    return this.#store.load(actor);
  }

  list(query: ListQuery): Promise<readonly ActorRow[]> {
    return this.#store.list(query);
  }

  events(actor: string, stream: string, after: number, limit: number): Promise<readonly JournalEvent[]> {
    return this.#store.events(actor, stream, after, limit);
  }

  streams(actor: string): Promise<readonly StreamRow[]> {
    return this.#store.streams(actor);
  }

  reply(actor: string, request: string): Promise<string | undefined> {
    return this.#store.reply(actor, request);
  }

  timers(until: number, limit: number, cells?: readonly number[]): Promise<readonly TimerRow[]> {
    return this.#store.timers(until, limit, cells);
  }

  deadLetters(limit: number): Promise<readonly DeadLetter[]> {
    return this.#store.deadLetters(limit);
  }

  sweep(now: number): Promise<number> {
    return this.#store.sweep(now);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #metered<T>(work: Promise<T>): Promise<T> {
    const from = this.#clock.now();
    const end = (): void => this.#metrics.committed(this.#clock.now() - from);
    this.#metrics.committing();
    work.then(end, end);
    return work;
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
