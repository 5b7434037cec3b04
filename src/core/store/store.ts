/** The persistence port: journal, snapshots, replies, timers, dead letters, and its errors. */
import type { Clock } from '../kernel/clock.ts';
import type { Nodes } from './membership.ts';

/** The kind of a stored actor; not part of its id. */
export type StoredKind =
  | 'handle'
  | 'session'
  | 'task'
  | 'question'
  | 'state'
  | 'approval'
  | 'grant'
  | 'run'
  | 'schedule'
  | 'topic'
  | 'hook'
  | 'webhook'
  | 'server';

/** One change. A batch of changes becomes durable completely or not at all. */
export type Write =
  /** Creates or replaces an actor's row. */
  | { readonly type: 'actor'; readonly actor: ActorRow }
  /** Replaces an actor's snapshot. */
  | { readonly type: 'snapshot'; readonly actor: string; readonly version: string; readonly data: string }
  /** Appends one event to its history or to one of its streams. `seq` grows within a stream. */
  | ({ readonly type: 'event'; readonly actor: string } & JournalEvent)
  /**
   * Stores the result of a request, for repeats of it; the empty string deletes it. `expires` in milliseconds since
   * 1970.
   */
  | ReplyWrite
  | { readonly type: 'timer'; readonly timer: TimerRow }
  | { readonly type: 'timer off'; readonly actor: string; readonly timer: string }
  | { readonly type: 'dead letter'; readonly letter: DeadLetter }
  /** The events of a stream up to this one are no longer needed. */
  | { readonly type: 'trim'; readonly actor: string; readonly stream: string; readonly upto: number }
  /** Deletes all data of this actor except its dead letters. */
  | { readonly type: 'forget'; readonly actor: string };

export interface ReplyWrite {
  readonly type: 'reply';
  readonly actor: string;
  readonly request: string;
  readonly data: string;
  readonly expires: number;
}

/** Stores an actor with its snapshot, unless another process has stored a newer one. */
export interface SnapshotSwap {
  readonly actor: ActorRow;
  /** Its version has never been used for this actor. */
  readonly snapshot: NonNullable<Stored['snapshot']>;
  /** The version of the snapshot that it replaces; undefined if the actor must not exist. */
  readonly expected: string | undefined;
}

export interface ActorRow {
  /** Unique in the store, such as `handle/order/V1StGXR8…`. */
  readonly id: string;
  readonly kind: StoredKind;
  /** The name within its kind: a machine's or a tool's. */
  readonly name: string;
  readonly principal: string;
  readonly status: string;
  /** Milliseconds since 1970; `expires` is undefined for actors that never expire. */
  readonly created: number;
  readonly expires: number | undefined;
}

/** The beginning of the names of streams whose events wait for somebody: retention deletes none of them, only `trim` does. */
export const OUT_STREAMS = 'out/';

export interface JournalEvent {
  /** The empty string for the actor's own history. */
  readonly stream: string;
  /** At least 1. */
  readonly seq: number;
  readonly kind: string;
  readonly data: string;
}

export interface TimerRow {
  readonly actor: string;
  /** Unique within its actor. */
  readonly timer: string;
  /** Milliseconds since 1970. */
  readonly due: number;
  readonly data: string;
}

/** A place in the order of timers: by their dates, then by their actors, then by their names. */
export type TimerPlace = Pick<TimerRow, 'due' | 'actor' | 'timer'>;

/** The timers that a query reads: all by default. */
export interface TimerChoice {
  /** The last timer of the previous page. */
  readonly after?: TimerPlace | undefined;
  /** The cells of their actors. */
  readonly cells?: readonly number[] | undefined;
  /** The beginning of the ids of their actors. All timers of such actors are few: the store may read all of them. */
  readonly prefix?: string | undefined;
}

/** A message that crashed its actor twice and is never processed again. */
export interface DeadLetter {
  readonly actor: string;
  readonly mail: string;
  readonly error: string;
  readonly attempts: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly incident: string;
}

/** The stored state of one actor. */
export interface Stored {
  readonly actor: ActorRow;
  readonly snapshot: { readonly version: string; readonly data: string } | undefined;
  readonly timers: readonly TimerRow[];
}

/** The reason for an error of the store. */
export type StoreFault =
  /** The disk is full, or the size limit is reached. Reads continue, and so do calls that change nothing. */
  | 'full'
  /** More calls are waiting than the limit allows. Nothing was begun; retry later. */
  | 'busy'
  /**
   * The disk failed, or the writing thread died; or the batch is invalid, for example an event older than its stream.
   */
  | 'failed'
  /** Some of the requested events were deleted by retention, which differs from never having existed. */
  | 'purged'
  /** The stored data differs from what was written. */
  | 'corrupt'
  /** Another process has it open. */
  | 'locked'
  /** The database has declared this node dead, and other nodes own its cells: nothing of the batch is stored. */
  | 'fenced'
  /** A later version of this package wrote it, or it is not a store. */
  | 'foreign'
  | 'closed';

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly fault: StoreFault;

  constructor(fault: StoreFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}

/** The error for an event that does not come after the last of its stream. */
export function notNewer(
  { actor, stream, seq }: { actor: string; stream: string; seq: number },
  last: number,
): StoreError {
  return new StoreError(
    'failed',
    `an event of ${actor}, stream "${stream}": expected a seq above ${last}, the seq of the last event, got ${seq}. The batch was not written`,
  );
}

/** The error for a request of deleted events. */
export function gone(actor: string, stream: string, after: number): StoreError {
  return new StoreError(
    'purged',
    `${actor}, stream "${stream}": events after ${after} were deleted. Read the remaining events (after 0), or start over`,
  );
}

export interface StoreHost {
  readonly clock: Clock;
  /**
   * True if the server joins {@link Store.nodes} next: other processes may have the store open, and until then it writes
   * nothing.
   */
  readonly shared?: boolean;
  log(level: 'info' | 'warning' | 'error', message: string): void;
}

/** The parameters of each query. A query that writes resolves when its writes are durable. */
interface StoreParameters {
  /** Stores a batch, completely or not at all. */
  readonly commit: { readonly writes: readonly Write[] };
  /** Stores a reply unless its request has one, in one step: of several processes that try, one succeeds. */
  readonly claim: { readonly reply: ReplyWrite };
  /** Stores a snapshot if it replaces the expected one, in one step: of several processes that try, one succeeds. */
  readonly swap: { readonly swap: SnapshotSwap };
  readonly load: { readonly actor: string };
  /**
   * Actors of one kind, the oldest first; optionally of one name, one principal or some cells; after this id, at most
   * `limit`.
   */
  readonly list: { readonly query: ListQuery };
  /** The events of a stream after `after`, at most `limit`; 0 requests all that are left. */
  readonly events: {
    readonly actor: string;
    readonly stream: string;
    readonly after: number;
    readonly limit: number;
  };
  /** The first and last event of each stream of an actor that has events. */
  readonly streams: { readonly actor: string };
  readonly reply: { readonly actor: string; readonly request: string };
  /** Timers that are due by then (milliseconds since 1970), in the order of {@link TimerPlace}. */
  readonly timers: { readonly until: number; readonly limit: number } & TimerChoice;
  readonly letters: { readonly limit: number };
  /** Deletes expired actors and replies, and data beyond the limits. */
  readonly sweep: { readonly now: number };
}

/** The value that answers each query. */
interface StoreValues {
  readonly commit: undefined;
  /** The existing reply; undefined when the new one is durable. */
  readonly claim: string | undefined;
  /** False if the stored snapshot is another one: nothing was stored. */
  readonly swap: boolean;
  readonly load: Stored | undefined;
  readonly list: ListedRows;
  /** Empty if there are no more events, never because some were deleted. */
  readonly events: readonly JournalEvent[];
  readonly streams: readonly StreamRow[];
  readonly reply: string | undefined;
  readonly timers: readonly TimerRow[];
  readonly letters: readonly DeadLetter[];
  /** Number of actors that were deleted. */
  readonly sweep: number;
}

export type QueryType = keyof StoreParameters;

/** A query for timers. */
export type TimersQuery = StoreParameters['timers'];

/** A question to the store, or a change of it. */
export type StoreQuery = { [K in QueryType]: { readonly type: K } & StoreParameters[K] }[QueryType];

/** The answer to a query of the same type. */
export type StoreAnswer = { [K in QueryType]: { readonly type: K; readonly value: StoreValues[K] } }[QueryType];

export type StoreChange = Extract<StoreQuery, { readonly type: 'commit' | 'claim' | 'swap' | 'sweep' }>;
export type StoreRead = Exclude<StoreQuery, StoreChange>;

/** Returns whether a query writes. */
export function isChange(query: StoreQuery): query is StoreChange {
  const { type } = query;
  return type === 'commit' || type === 'claim' || type === 'swap' || type === 'sweep';
}

/** Maximum number of damaged rows whose ids are remembered. */
const MAX_DAMAGED = 10_000;

/**
 * The store. A store of your own implements `open`, `ask` and `close`; the methods for each query are the same for all
 * stores. Batches become durable in the order of the calls. Reads see everything that was committed before, even if it
 * is not durable yet.
 */
export abstract class Store {
  /** For logs and the inspector, such as `sqlite(troupe.db)`. */
  abstract readonly name: string;
  /** True if its data outlives the process. If not, it stores only data that has no other place. */
  abstract readonly durable: boolean;
  /** Absent if nothing outlives the process. */
  declare readonly notes?: Notes;
  /** The nodes that share it. Absent if one process has it to itself. */
  declare readonly nodes?: Nodes;
  /** Actors whose row a list found but could not read. */
  readonly #damaged = new Set<string>();

  /** @throws {StoreError} `locked`, `foreign`, `failed` */
  abstract open(host: StoreHost): Promise<void>;

  /**
   * Answers a query.
   *
   * @throws {StoreError} of a query that writes: `full`, `busy`, `closed`, `corrupt`, `fenced`: nothing of it is stored.
   * `failed`: a thread or a disk failed, and it may or may not be stored; read the data to find out. Of a query that
   * reads: `corrupt` if the data is damaged or cannot be found, or if an event is missing between two others or at the
   * end; it never omits such data. `purged` if `after` is not 0 and later events, or the whole stream, were deleted
   */
  abstract ask(query: StoreQuery): Promise<StoreAnswer>;

  /** Makes all committed data durable and closes. Later calls fail with `closed`. */
  abstract close(): Promise<void>;

  /** The state of an open store that cannot read and write: the server is then not ready. Undefined if it can. */
  impairment(): 'not open' | 'read-only' | undefined {
    return undefined;
  }

  /**
   * Resolves when nearly all calls that wait for the store now have their responses; undefined if only a few wait. A job
   * that writes for thousands of clients waits for it between its slices, so that another client's write is never behind
   * all of them.
   */
  caughtUp(): Promise<void> | undefined {
    return undefined;
  }

  commit(writes: readonly Write[]): Promise<void> {
    return this.#valueOf({ type: 'commit', writes });
  }

  claim(reply: ReplyWrite): Promise<string | undefined> {
    return this.#valueOf({ type: 'claim', reply });
  }

  swap(swap: SnapshotSwap): Promise<boolean> {
    return this.#valueOf({ type: 'swap', swap });
  }

  load(actor: string): Promise<Stored | undefined> {
    return this.#valueOf({ type: 'load', actor });
  }

  async list(query: ListQuery): Promise<readonly ActorRow[]> {
    const { rows, damaged } = await this.#valueOf({ type: 'list', query });
    for (const id of damaged) if (this.#damaged.size < MAX_DAMAGED) this.#damaged.add(id);
    return rows;
  }

  /** Returns whether a list omitted this actor because its row is damaged: then the actor exists. */
  isDamaged(actor: string): boolean {
    // Beyond that number the ids are unknown, so any actor may be damaged.
    return this.#damaged.size >= MAX_DAMAGED || this.#damaged.has(actor);
  }

  events(actor: string, stream: string, after: number, limit: number): Promise<readonly JournalEvent[]> {
    return this.#valueOf({ type: 'events', actor, stream, after, limit });
  }

  streams(actor: string): Promise<readonly StreamRow[]> {
    return this.#valueOf({ type: 'streams', actor });
  }

  reply(actor: string, request: string): Promise<string | undefined> {
    return this.#valueOf({ type: 'reply', actor, request });
  }

  timers(until: number, limit: number, choice: TimerChoice = {}): Promise<readonly TimerRow[]> {
    return this.#valueOf({ type: 'timers', until, limit, ...choice });
  }

  deadLetters(limit: number): Promise<readonly DeadLetter[]> {
    return this.#valueOf({ type: 'letters', limit });
  }

  sweep(now: number): Promise<number> {
    return this.#valueOf({ type: 'sweep', now });
  }

  #valueOf<T extends QueryType>(query: StoreQuery & { readonly type: T }): Promise<StoreValues[T]> {
    return this.ask(query).then((answer) => {
      if (isOfType(answer, query.type)) return answer.value;
      throw new StoreError(
        'failed',
        `${this.name}: expected the answer to "${query.type}", got one to "${answer.type}"`,
      );
    });
  }
}

/** The type of an answer decides the type of its value. */
function isOfType<T extends QueryType>(
  answer: { readonly type: QueryType; readonly value: unknown },
  type: T,
): answer is { readonly type: T; readonly value: StoreValues[T] } {
  return answer.type === type;
}

/**
 * The event that this process is working on, so that the next process learns what crashed it. Available once the store
 * is open.
 */
export interface Notes {
  /** The marker that the previous process left; undefined if there was none. */
  readonly last: string | undefined;
  /** The process that wrote it; undefined if unknown. */
  readonly by?: NotedProcess | undefined;
  /**
   * The file of the marker, if any: a thread can record there that the process ends itself ({@link markEnded} in
   * crash-marker.ts).
   */
  readonly path?: string;
  /**
   * The memory of the marker, if a thread stores it: a thread that ends the process publishes it first
   * (`SharedMark.publish`).
   */
  readonly shared?: SharedArrayBuffer | undefined;
  /**
   * The events during which processes of this store have ended themselves, each with its number of times. Absent if the
   * next process on this machine reads {@link Notes.last} instead.
   */
  ended?(): Promise<readonly EndedMark[]>;
  /** Forgets the ends of processes during an event. */
  forget?(mark: string): Promise<void>;
  /**
   * Replaces the marker, one line. Written at once and without a sync: it outlives the process, but not the machine.
   */
  write(what: string): void;
  clear(): void;
}

export interface EndedMark {
  readonly mark: string;
  readonly times: number;
  /** Milliseconds since 1970, of the last time. */
  readonly at: number;
}

export interface NotedProcess {
  readonly pid: number;
  /** The process ended itself during the marked event: by `process.exit`, or by its watchdog. */
  readonly ended: boolean;
}

export interface ListQuery {
  readonly kind: StoredKind;
  readonly name?: string | undefined;
  readonly principal?: string | undefined;
  /** Only actors of these cells. All actors if undefined, also those without a cell. */
  readonly cells?: readonly number[] | undefined;
  /** The last row of the previous page. */
  readonly after?: Pick<ActorRow, 'created' | 'id'> | undefined;
  readonly limit: number;
}

/** The result of a list: the intact rows, and the ids of rows that it omits because they are damaged. */
export interface ListedRows {
  readonly rows: readonly ActorRow[];
  readonly damaged: readonly string[];
}

/** The two writes of a swap. */
export function writesOf({ actor, snapshot }: SnapshotSwap): readonly [Write, Write] {
  return [
    { type: 'actor', actor },
    { type: 'snapshot', actor: actor.id, ...snapshot },
  ];
}

/** Returns whether a swap finds the snapshot that it replaces. */
export function findsExpected({ expected }: SnapshotSwap, stored: Stored | undefined): boolean {
  return stored ? expected !== undefined && stored.snapshot?.version === expected : expected === undefined;
}

/** The order of timers. */
export function inOrderOfDates(a: TimerPlace, b: TimerPlace): number {
  if (a.due !== b.due) return a.due - b.due;
  if (a.actor !== b.actor) return a.actor < b.actor ? -1 : 1;
  return a.timer < b.timer ? -1 : a.timer > b.timer ? 1 : 0;
}

/** The order of lists: the oldest first; of two equally old actors, by id. */
export function inOrder(a: Pick<ActorRow, 'created' | 'id'>, b: Pick<ActorRow, 'created' | 'id'>): number {
  if (a.created !== b.created) return a.created - b.created;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

export interface StreamRow {
  readonly stream: string;
  readonly first: number;
  readonly last: number;
  /** The last event deleted by `trim` or retention: a reader that has seen less has a gap. 0 if none was deleted. */
  readonly purged: number;
}
