/** Persistence of a transport's session, if the server's store is durable. Types only. */

/** The kinds of stored stream events. Only messages have an event id that clients see. */
export type StoredEventKind =
  /** The stream begins; its data names the request that it answers. */
  | 'opened'
  | 'message'
  /** A message that arrived while nothing read the stream. */
  | 'waiting'
  /** The last message of the stream. */
  | 'last'
  /** The stream ends without a last message. */
  | 'end';

export interface StoredEvent {
  readonly seq: number;
  readonly kind: string;
  readonly data: string;
}

/** The storage of one session. The writes of one turn become durable together, in order. */
export interface SessionStorage {
  /** Adds an event. `seq` increases by one within a stream, from 1. */
  event(stream: string, seq: number, kind: StoredEventKind, data: string): void;
  /** The events of a stream up to this one are no longer needed. */
  trim(stream: string, upto: number): void;
  /**
   * The output gate: calls `run` when all earlier writes are durable; at once if none is pending; always in order. If
   * the store fails, calls `failed` instead; without `failed`, waits until the store works again.
   */
  gate(run: () => void, failed?: (why: string) => void): void;
  /**
   * The gate for a response that changed nothing: waits for the state of the session only. Such a response cannot
   * reveal the reply of another call, nor an event of another stream.
   */
  readGate(run: () => void, failed: (why: string) => void): void;
  /** The ids of the streams with stored events. */
  streams(): Promise<readonly string[]>;
  /** The stored events of a stream, at most `limit`. @throws if the data is invalid */
  events(stream: string, limit: number): Promise<readonly StoredEvent[]>;
  /** Records a use; the session expires after this many idle milliseconds. */
  used(idleMs: number): void;
  /** Idle milliseconds after which it may hibernate, as far as the server knows; undefined if it may not. */
  readonly sleepsAfterMs: number | undefined;
  /** Hibernates. The next request restores it. */
  sleep(): void;
  /** Ends the session for good: no restart restores it. */
  end(): void;
}
