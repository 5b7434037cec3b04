/** Input requests to a client, and its replies. Types only. */
import type { JsonObject } from '../protocol/json.ts';
import type { Mailbox } from './mailbox.ts';
import type { AskMail } from './session-messages.ts';

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
  /** The handler that waits. It gets one outcome. */
  readonly from: Mailbox<QuestionOutcome>;
}

/** The outcome of a question: the client's reply, or the reason why there is none. */
export type QuestionOutcome =
  | RepliedMail
  | { readonly type: 'unanswered'; readonly key: string; readonly error: Error };

/** A client's reply to one input request, by the key that the asking actor gave to it. */
export interface RepliedMail {
  readonly type: 'replied';
  readonly key: string;
  readonly reply: Reply;
  /** The request to which a session has replied: the actor may have withdrawn it meanwhile. */
  readonly ask?: AskMail;
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
  readonly checkpoint?: string | undefined;
  /** The span of the request that asked first, as a `traceparent`. */
  readonly trace?: string | undefined;
  /** True if no request is in flight for it: its client may still retry. */
  readonly waits?: boolean;
}
