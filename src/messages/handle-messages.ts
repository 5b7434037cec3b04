/** What is said of a handle: an instance of a machine that clients reach through tools. Types only. */
import type { JsonObject, JsonValue } from '../protocol/json.ts';

/** Where an instance is in its life, beside the states of its machine. */
export type HandleStatus =
  /** It takes events. */
  | 'active'
  /** Its machine has come to its final state. */
  | 'done'
  /** Its machine has failed, or crashed too often and was set aside. */
  | 'failed'
  /** A client has ended it. */
  | 'ended';

/** An instance as a client sees it. */
export interface HandleView {
  /** Opaque, and unguessable: at least 128 random bits. */
  readonly handle: string;
  /** The name of its machine. */
  readonly machine: string;
  readonly status: HandleStatus;
  /** The state as XState has it: a path's parts nested, parallel ones side by side. */
  readonly state: JsonValue;
  /** What the author's `view` makes of the context; undefined where there is none. */
  readonly view: JsonValue | undefined;
  /** The events that are taken now, of those that the author listed. A guard may still say no to the data of one. */
  readonly accepts: readonly string[];
  /** What its machine waits for its client to answer; the next call on the handle asks it. Absent where nothing is open. */
  readonly asks?: readonly HandleAsk[];
  /** Grows with each change. */
  readonly version: number;
  /** The final output, once it is done; why it failed, once it has. */
  readonly output?: JsonValue;
  readonly failure?: string;
  /** ISO 8601. `expires` is the earlier of its end of life, and of its end for want of use. */
  readonly created: string;
  readonly expires: string;
}

/** A question that an instance has open. */
export interface HandleAsk {
  /** The id of the invocation that asks. */
  readonly id: string;
  readonly kind: 'elicit' | 'elicitUrl' | 'sample' | 'roots';
  /** What a user is told; absent where the question has no words. */
  readonly message?: string;
}

/** An event for an instance. */
export interface HandleEvent {
  /** One of those that the author listed. */
  readonly type: string;
  /** The checked arguments, which become the event's other members. */
  readonly data: JsonObject;
}
