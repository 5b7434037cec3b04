/** The mailbox of an interactive request, and the input requests that it sends. Types only. */
import type { JsonObject } from '../protocol/json.ts';
import type { Mailbox } from './mailbox.ts';
import type { RequestView } from './request-view.ts';
import type { Outcome } from './results.ts';
import type { TaskMail } from './task-messages.ts';

/** The requests that a server may send to a client. */
export type InputMethod = 'elicitation/create' | 'sampling/createMessage' | 'roots/list';

/**
 * An input request as it goes over the wire: a request of the server (legacy), or an entry of `inputRequests` (modern,
 * tasks).
 */
export interface InputRequest {
  readonly method: InputMethod;
  readonly params: JsonObject;
}

/** A client's reply to an input request: its unchecked answer, or an error. */
export type Reply =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: { readonly code: number; readonly message: string } };

/** An input request that the calling model answers. */
export interface ByModel {
  /** True if the tool has an output schema, which an input request cannot fit. */
  readonly structured: boolean;
  /** The reason why the client cannot be asked; used if the model cannot be asked, either. */
  readonly otherwise: Error;
}

/** One input request that a handler waits for. */
export interface Question {
  /** Its name within the request. It is the same in every run, so that a recorded answer is found again. */
  readonly key: string;
  readonly request: InputRequest;
  /** Present if the client cannot be asked: the result of the call then asks the calling model. */
  readonly model?: ByModel | undefined;
  /** Called with the reply. Either this or `fail` is called, once. */
  reply(reply: Reply): void;
  fail(error: Error): void;
}

/** The record of an earlier run of the same request. */
export interface RecordedReply {
  /** The id of its interactive request; absent if the client answers without having been asked. */
  readonly id: string | undefined;
  /** The number of times that the client was asked. */
  readonly round: number;
  /** The replies, by key. */
  readonly replies: Readonly<Record<string, unknown>>;
  /** The results of completed steps, by name. */
  readonly steps: JsonObject;
  /** The last stored checkpoint of its statechart; undefined if there is none. */
  readonly place?: string | undefined;
  /** True if no request is in flight for it: its client may still retry. */
  readonly waits?: boolean;
}

/** The run of a handler, as its interactive request uses it. */
export interface HandlerRun {
  /** Continues the handler for a newer request of its client. */
  continueFor(request: RequestView): void;
  /** The results of completed steps, as far as they are JSON. */
  steps(): JsonObject;
  /** Called when it begins or ends waiting for its client. */
  waits(waiting: boolean): void;
}

/** The messages of an interactive request, from its first input request to its end. */
export type InteractiveRequestMail =
  /** Its handler asks for input. */
  | { readonly type: 'ask'; readonly questions: readonly Question[] }
  /** The handler has asked everything of this turn: send the input requests. */
  | { readonly type: 'collected' }
  /** The client has replied to one input request. */
  | { readonly type: 'replied'; readonly key: string; readonly reply: Reply }
  /** Its handler no longer waits for these answers. */
  | { readonly type: 'dropped'; readonly keys: readonly string[]; readonly reason: Error }
  /** The client has retried with another request. */
  | { readonly type: 'resumed'; readonly request: RequestView; readonly responses: Readonly<Record<string, unknown>> }
  /** The request that carries it becomes this task: respond with the task, and send everything else to it. */
  | { readonly type: 'detach'; readonly task: Mailbox<TaskMail> }
  /** Its handler reports progress. */
  | { readonly type: 'progressed'; readonly message: string }
  /** The request that carries it was ended by its client or by its deadline. */
  | { readonly type: 'aborted'; readonly reason: Error }
  /** No answer came in time, or it was evicted. */
  | { readonly type: 'expired'; readonly reason: Error }
  /** Its handler has ended. */
  | { readonly type: 'done'; readonly outcome: Outcome }
  /** The data behind this response is durable, or the reason why it is not. */
  | { readonly type: 'stored'; readonly request: RequestView; readonly outcome: Outcome; readonly error?: unknown };
