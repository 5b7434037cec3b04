/** The public view of a handle: an instance of a machine that clients reach through tools. Types only. */
import type { JsonObject, JsonValue } from '../../core/protocol/json.ts';

/** The origin of an event or an answer: a person in a view, the client's own dialog, or a call of the model. */
export type ActedBy = 'view' | 'client' | 'model';

/** The same of an instance that may not exist. `absent`: there is none of this key. */
export type HandleStatus = LiveStatus | 'absent';

/** The lifecycle status of an instance, besides the state of its machine. */
export type LiveStatus =
  /** The instance accepts events. */
  | 'active'
  /** Its machine has reached its final state. */
  | 'done'
  /** Its machine has failed, or crashed too often and was quarantined. */
  | 'failed'
  /** A client has ended it. */
  | 'ended';

/** An instance as a client sees it. */
export interface HandleView {
  /** Opaque and unguessable: at least 128 random bits. */
  readonly handle: string;
  /** Its key, if the instances of its machine have one. */
  readonly key?: string;
  /** The name of its machine. */
  readonly machine: string;
  readonly status: HandleStatus;
  /** The XState state value: nested for paths, side by side for parallel states. */
  readonly state: JsonValue;
  /** The result of the author's `view`; undefined without one. */
  readonly view: JsonValue | undefined;
  /** The listed events that the instance accepts now. A guard may still reject an event because of its data. */
  readonly accepts: readonly string[];
  /** True: no event, timer or invocation leads out of the current state. It stays until it is ended or expires. */
  readonly deadEnd?: true;
  /** The open input requests of its machine; the next call on the handle asks the client. Absent if there are none. */
  readonly asks?: readonly HandleAsk[];
  /** Increases with each change. */
  readonly version: number;
  /** The final output if it is done; the reason if it has failed. */
  readonly output?: JsonValue;
  readonly failure?: string;
  /** ISO 8601. `expires` is the earlier of the end of its lifetime and the end of its idle time; empty if it has none. */
  readonly created: string;
  readonly expires: string;
  /** The changes by a person in a view that the model has not seen, oldest first. Absent if there are none. */
  readonly unseen?: readonly string[];
  /** The result of the call in states and reasons; absent for a call that has changed nothing and asked nothing. */
  readonly course?: HandleCourse;
}

/** The states that an instance has passed, and the reasons. */
export interface HandleCourse {
  /** Each state on one line, oldest first. */
  readonly states: readonly string[];
  readonly reasons: readonly string[];
}

/** An open input request of an instance. */
export interface HandleAsk {
  /** The id of the invocation that asks. */
  readonly id: string;
  readonly kind: 'elicit' | 'elicitUrl' | 'sample' | 'roots';
  /** The message for the user; absent if the request has none. */
  readonly message?: string;
}

/** An instance as a person sees it in a view: more than a model reads. */
export interface LiveHandle extends Omit<HandleView, 'asks'> {
  readonly asks: readonly LiveAsk[];
  /** The delays that are running. */
  readonly timers: readonly LiveTimer[];
  /** The events that the current states have, and that a guard rejects whatever their data is. */
  readonly blocked: readonly BlockedEvent[];
  /** The server's time, ISO 8601. */
  readonly now: string;
}

/** An event that cannot happen at the moment. */
export interface BlockedEvent {
  readonly event: string;
  /** The name of the guard that rejects it; the empty string for one without a name. */
  readonly guard: string;
}

/** An open question with all that is needed to answer it in a view. */
export interface LiveAsk extends HandleAsk {
  /** Its name among all questions of the instance: the same question, asked again later, has another. */
  readonly id: string;
  /** The form (`elicit`), as `requestedSchema` and as fields. */
  readonly schema?: JsonObject;
  readonly fields?: JsonValue;
  /** The page to open (`elicitUrl`). */
  readonly url?: string;
  /** The latest date at which it can be answered, ISO 8601. It closes earlier if its state is left. */
  readonly until: string;
}

interface LiveTimer {
  /** The name of the delay, or its length. */
  readonly label: string;
  /** The date at which it ends, ISO 8601, and its length in milliseconds. */
  readonly at: string;
  readonly lasts: number;
}

/** An event for an instance. */
export interface HandleEvent {
  /** One of the author's listed events. */
  readonly type: string;
  /** The checked arguments, which become the event's other members. */
  readonly data: JsonObject;
}
