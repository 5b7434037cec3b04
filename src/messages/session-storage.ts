/** What a transport keeps of a session beyond its process, and how it wakes one: where the server's store is durable. Types only. */
import type { Dialect } from '../protocol/dialects/index.ts';
import type { ConnectionId } from './connection-events.ts';

/** What is kept of a stream. Only messages have an event id that a client sees. */
export type StoredEventKind =
  /** It begins; its data names the request that it answers. */
  | 'opened'
  | 'message'
  /** A message that nobody read when it came. */
  | 'waiting'
  /** The message that it ends with. */
  | 'last'
  /** It ends without one. */
  | 'end';

export interface StoredEvent {
  readonly seq: number;
  readonly kind: string;
  readonly data: string;
}

/** One session as its transport keeps it. What is added in one turn becomes durable together, and in order. */
export interface SessionStorage {
  /** Adds an event. `seq` grows by one within a stream, from 1. */
  event(stream: string, seq: number, kind: StoredEventKind, data: string): void;
  /** The events of a stream up to this one will not be asked for any more. */
  trim(stream: string, upto: number): void;
  /**
   * The output gate: runs this when everything that was added before is durable; at once where nothing is on its way, and
   * always in order. Where the store fails, `failed` is run instead; without one, it waits until the store does its work again.
   */
  gate(run: () => void, failed?: (why: string) => void): void;
  /**
   * The gate of a response that changed nothing: it waits for the state of the session alone. No request can observe a reply
   * of another call, nor an event of a stream that is not its own.
   */
  readGate(run: () => void, failed: (why: string) => void): void;
  /** The ids of the streams of which anything is kept. */
  streams(): Promise<readonly string[]>;
  /** What is kept of a stream, at most `limit` events. @throws when it is not what was written */
  events(stream: string, limit: number): Promise<readonly StoredEvent[]>;
  /** It is in use, and ends when it is not for so many milliseconds. */
  used(idleMs: number): void;
  /** Whether it could leave memory, as far as the server knows, once nobody has used it for so many milliseconds. */
  readonly sleepsAfterMs: number | undefined;
  /** It leaves memory, and wakes with the next request. */
  sleep(): void;
  /** It is over, for good: no restart brings it back. */
  end(): void;
}

/** A session that is about to wake. */
export interface WokenSession {
  readonly dialect: Dialect;
  readonly keeper: SessionStorage;
  /** Opens its connection: from now on it is awake. */
  connect(): ConnectionId;
}

export interface DormantSessions {
  /**
   * A session of this principal that is kept and not awake; `damaged` where the store has one, and what it has of it is not as it
   * was written.
   *
   * @throws when the store cannot say
   */
  wake(id: string, principal: string): Promise<WokenSession | 'damaged' | undefined>;
}
