/** The port through which what must survive this process is kept: journal, snapshots, replies, timers, dead letters; and its errors. */
import type { Clock } from '../clock.ts';

/** What an actor in the store is; part of no id. */
export type StoredKind = 'handle' | 'session' | 'task' | 'question' | 'server';

/** One change. A batch of them becomes durable together, or not at all. */
export type Write =
  /** There is such an actor; replaces what was said of it before. */
  | { readonly type: 'actor'; readonly actor: ActorRow }
  /** What it is now; replaces the snapshot before. */
  | { readonly type: 'snapshot'; readonly actor: string; readonly version: string; readonly data: string }
  /** One event more of its history, or of one of its streams. `seq` grows within a stream. */
  | ({ readonly type: 'event'; readonly actor: string } & JournalEvent)
  /**
   * What a request came to, to be said again when it is repeated; the empty string lets go of it. `expires` in milliseconds
   * since 1970.
   */
  | ReplyWrite
  | { readonly type: 'timer'; readonly timer: TimerRow }
  | { readonly type: 'timer off'; readonly actor: string; readonly timer: string }
  | { readonly type: 'dead letter'; readonly letter: DeadLetter }
  /** The events of a stream up to this one are asked for no more. */
  | { readonly type: 'trim'; readonly actor: string; readonly stream: string; readonly upto: number }
  /** Everything of this actor, but its dead letters. */
  | { readonly type: 'forget'; readonly actor: string };

export interface ReplyWrite {
  readonly type: 'reply';
  readonly actor: string;
  readonly request: string;
  readonly data: string;
  readonly expires: number;
}

export interface ActorRow {
  /** Unique in the store, such as `handle/order/V1StGXR8…`. */
  readonly id: string;
  readonly kind: StoredKind;
  /** What kind of them: a machine's name, a tool's. */
  readonly name: string;
  readonly principal: string;
  readonly status: string;
  /** Milliseconds since 1970; `expires` is undefined for what does not. */
  readonly created: number;
  readonly expires: number | undefined;
}

export interface JournalEvent {
  /** Of the actor's own history: the empty string. */
  readonly stream: string;
  /** At least 1. */
  readonly seq: number;
  readonly kind: string;
  readonly data: string;
}

export interface TimerRow {
  readonly actor: string;
  /** Unique for its actor. */
  readonly timer: string;
  /** Milliseconds since 1970. */
  readonly due: number;
  readonly data: string;
}

/** Mail that crashed its actor twice, and was set aside. */
export interface DeadLetter {
  readonly actor: string;
  readonly mail: string;
  readonly error: string;
  readonly attempts: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly incident: string;
}

/** One actor as it was last kept. */
export interface Stored {
  readonly actor: ActorRow;
  readonly snapshot: { readonly version: string; readonly data: string } | undefined;
  readonly timers: readonly TimerRow[];
}

/** Why the store did not do what it was asked. */
export type StoreFault =
  /** Its disk is full, or its bound is reached: what reads goes on, and so does what changes nothing. */
  | 'full'
  /** More waits to be written or read than its bound allows: nothing was begun, try again. */
  | 'busy'
  /** Its disk fails, or the thread that writes has died; or the batch cannot be kept, such as an event that is older than its stream. */
  | 'failed'
  /** Some of the events that were asked for are gone: what retention took is told apart from what never was. */
  | 'purged'
  /** What it read is not what was written. */
  | 'corrupt'
  /** Another process has it open. */
  | 'locked'
  /** It was written by a later version of this package, or is no store. */
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

/** The refusal of an event that does not come after the last of its stream. */
export function notNewer(
  { actor, stream, seq }: { actor: string; stream: string; seq: number },
  last: number,
): StoreError {
  return new StoreError(
    'failed',
    `an event of ${actor}, stream "${stream}": expected a seq above ${last}, the seq of the last event, got ${seq}. The batch was not written`,
  );
}

/** The answer to whoever asks for events that are gone. */
export function gone(actor: string, stream: string, after: number): StoreError {
  return new StoreError(
    'purged',
    `${actor}, stream "${stream}": events after ${after} were deleted. Read the remaining events (after 0), or start over`,
  );
}

export interface StoreHost {
  readonly clock: Clock;
  log(level: 'info' | 'warning' | 'error', message: string): void;
}

/**
 * Keeps what must survive. Batches become durable in the order of the calls. All reads see what was committed before, also
 * where it is not yet durable.
 */
export interface Store {
  /** For logs and the inspector, such as `sqlite(troupe.db)`. */
  readonly name: string;
  /** Whether what it keeps outlives the process. Where it does not, only what has no other place is kept in it. */
  readonly durable: boolean;
  /** Absent where nothing outlives the process. */
  readonly notes?: Notes;
  /** @throws {StoreError} `locked`, `foreign`, `failed` */
  open(host: StoreHost): Promise<void>;
  /**
   * Resolves when the batch is durable. It is kept whole or not at all.
   *
   * @throws {StoreError} `full`, `busy`, `closed`, `corrupt`: then nothing of it is kept. `failed`: where a thread or a disk
   * failed under it, nobody can know whether it was; what is read next is what holds
   */
  commit(writes: readonly Write[]): Promise<void>;
  /** @throws {StoreError} `corrupt` where it exists, and is not as it was written or cannot be found: never undefined */
  load(actor: string): Promise<Stored | undefined>;
  /** Actors of one kind, the oldest first; those of one name or principal, where given; after this id, at most `limit`. */
  list(query: ListQuery): Promise<readonly ActorRow[]>;
  /**
   * The events of a stream after `after`, at most `limit`; 0 asks for all that are left. An empty answer says that there are no
   * more, never that some are gone.
   *
   * @throws {StoreError} `corrupt` where one of them is not as it was written, or is missing between two others or at the end;
   * `purged` where `after` is not 0 and events that came after it are gone, or the whole stream, of which somebody saw that one
   */
  events(actor: string, stream: string, after: number, limit: number): Promise<readonly JournalEvent[]>;
  /** The first and last event of each stream of an actor that has any left. */
  streams(actor: string): Promise<readonly StreamRow[]>;
  /** @throws {StoreError} `corrupt`, likewise */
  reply(actor: string, request: string): Promise<string | undefined>;
  /**
   * Keeps a reply unless there is one to this request, in one step in place of `reply` and `commit`. Optional: the server falls
   * back on these.
   *
   * @returns the reply that is there already; undefined when this one is durable
   * @throws {StoreError} as `commit`
   */
  claim?(reply: ReplyWrite): Promise<string | undefined>;
  /**
   * Whether a list has left this actor out, because its row is not as it was written: then it exists, whatever the list says.
   * Absent where no row can be damaged.
   */
  isDamaged?(actor: string): boolean;
  /** Timers due until then (milliseconds since 1970), the earliest first. */
  timers(until: number, limit: number): Promise<readonly TimerRow[]>;
  deadLetters(limit: number): Promise<readonly DeadLetter[]>;
  /** Forgets actors and replies that have expired, and what is beyond the bounds. @returns how many actors */
  sweep(now: number): Promise<number>;
  /** Makes durable what was committed, and closes. Later calls fail with `closed`. */
  close(): Promise<void>;
}

/** What this process is in the middle of, so that the next one learns what ended it. Known once the store is open. */
export interface Notes {
  /** What the process before this one had noted when it ended; undefined where it was in the middle of nothing. */
  readonly last: string | undefined;
  /** The process that had noted it; undefined where that is not known. */
  readonly by?: NotedProcess | undefined;
  /** The file in which it is noted, if it is one: a thread can say there that the process ends itself ({@link markEnded} in notes.ts). */
  readonly path?: string;
  /** In place of what was noted before: one line. At once, and without a sync: it outlives the process, and not the machine. */
  write(what: string): void;
  clear(): void;
}

export interface NotedProcess {
  readonly pid: number;
  /** It has ended itself in the middle of what it had noted: by `process.exit`, or by its watchdog. */
  readonly ended: boolean;
}

export interface ListQuery {
  readonly kind: StoredKind;
  readonly name?: string | undefined;
  readonly principal?: string | undefined;
  /** The last of the page before. */
  readonly after?: ActorRow | undefined;
  readonly limit: number;
}

export interface StreamRow {
  readonly stream: string;
  readonly first: number;
  readonly last: number;
  /** The last event that is gone, by `trim` or by retention: whoever has seen less than that has a gap. 0: none is. */
  readonly purged: number;
}
