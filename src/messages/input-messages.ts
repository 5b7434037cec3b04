/** What a request that asks its client something hears, and what it asks: types only. */
import type { JsonObject } from '../protocol/json.ts';
import type { ActiveRequest } from './active-request.ts';
import type { Mailbox } from './mailbox.ts';
import type { Outcome } from './results.ts';
import type { TaskMail } from './task-messages.ts';

/** What a server may ask a client. */
export type InputMethod = 'elicitation/create' | 'sampling/createMessage' | 'roots/list';

/** A question as it goes over the wire: a request of the server (legacy), or an entry of `inputRequests` (modern, tasks). */
export interface InputRequest {
  readonly method: InputMethod;
  readonly params: JsonObject;
}

/** What a client made of a question: what it answered, which nobody has looked at yet, or an error. */
export type Reply =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: { readonly code: number; readonly message: string } };

/** A question to the model that called. */
export interface ByModel {
  /** The tool has an output schema, which no question fits. */
  readonly structured: boolean;
  /** Why the client cannot be asked: said where the model cannot be, either. */
  readonly otherwise: Error;
}

/** One question that a handler waits for. */
export interface Question {
  /** Names it within its request: the same in every run, so that a recorded answer is found again. */
  readonly key: string;
  readonly request: InputRequest;
  /** The client cannot be asked this: the model that called is, by the result of its call. */
  readonly model?: ByModel | undefined;
  /** Takes the reply. Called once, or `fail` is. */
  reply(reply: Reply): void;
  fail(error: Error): void;
}

/** What an earlier run of the same request has recorded. */
export interface RecordedReply {
  /** The id of the conversation that it belongs to; absent where the client answers without having been asked. */
  readonly id: string | undefined;
  /** The times that the client was asked. */
  readonly round: number;
  /** By key, what was replied. */
  readonly replies: Readonly<Record<string, unknown>>;
  /** By name, what completed steps gave. */
  readonly steps: JsonObject;
  /** The place that its statechart had come to, as it was last kept; undefined where none was. */
  readonly place?: string | undefined;
  /** Nobody waits for an answer now: its client may come back. */
  readonly waits?: boolean;
}

/** Whoever runs the handler of a request, as its conversation sees it. */
export interface HandlerRun {
  /** From now on the handler runs for this request: its client's newer one. */
  carryOn(request: ActiveRequest): void;
  /** What completed steps have given, as far as JSON can hold it. */
  steps(): JsonObject;
  /** It waits for its client, or does so no longer. */
  waits(waiting: boolean): void;
}

/** What a conversation hears: a request that asks its client something, from its first question to its end. */
export type InteractiveRequestMail =
  /** Its handler asks. */
  | { readonly type: 'ask'; readonly questions: readonly Question[] }
  /** Everything that the handler asks in one turn has been asked: put it to the client. */
  | { readonly type: 'put' }
  /** The client has replied to one question. */
  | { readonly type: 'replied'; readonly key: string; readonly reply: Reply }
  /** Its handler waits no longer for the answers to these. */
  | { readonly type: 'dropped'; readonly keys: readonly string[]; readonly reason: Error }
  /** The client has come back with another request. */
  | { readonly type: 'resumed'; readonly request: ActiveRequest; readonly responses: Readonly<Record<string, unknown>> }
  /** The request that carries it becomes this task: it is answered with that, and everything else goes there from now on. */
  | { readonly type: 'detach'; readonly task: Mailbox<TaskMail> }
  /** Its handler says how far it is. */
  | { readonly type: 'progressed'; readonly message: string }
  /** The request that carries it was ended: by its client, or by its deadline. */
  | { readonly type: 'aborted'; readonly reason: Error }
  /** Nobody answered in time, or others needed the room. */
  | { readonly type: 'expired'; readonly reason: Error }
  /** Its handler has ended. */
  | { readonly type: 'done'; readonly outcome: Outcome }
  /** What this answer to a request rests on is durable; or why it is not. */
  | { readonly type: 'kept'; readonly request: ActiveRequest; readonly outcome: Outcome; readonly error?: unknown };
