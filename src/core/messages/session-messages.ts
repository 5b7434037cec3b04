/** The mailbox of a session. Types only. */

import type { RequestId } from '../protocol/jsonrpc.ts';
import type { LogLevel } from '../protocol/types.ts';
import type { ListKind } from './change-notices.ts';
import type { InputRequest, RepliedMail, Reply } from './client-input.ts';
import type { Mailbox } from './mailbox.ts';
import type { RequestMail } from './request-messages.ts';
import type { RequestView } from './request-view.ts';
import type { TaskState } from './results.ts';
import type { QuestionSpan } from './spans.ts';

/** A request to the client of a session, on behalf of one of its requests. */
export interface AskMail {
  readonly type: 'ask';
  readonly about: RequestView;
  readonly input: InputRequest;
  /** Its span in a tracing system. */
  readonly span?: QuestionSpan | undefined;
  /** The name of the input request at the actor that asks, which gets the reply. */
  readonly key: string;
  readonly from: Mailbox<RepliedMail>;
}

export type SessionMail =
  /** A request of its client. */
  | RequestMail
  /** A request that the in-flight table returned because the session itself serves it. */
  | { readonly type: 'serve'; readonly request: RequestView }
  | AskMail
  /** The answer to this is no longer needed. */
  | { readonly type: 'withdraw'; readonly ask: AskMail; readonly reason: string }
  /** The client has responded to a request of ours. */
  | { readonly type: 'response'; readonly id: RequestId; readonly reply: Reply }
  | { readonly type: 'initialized' }
  /** No message has used it for a while. */
  | { readonly type: 'rest' }
  /** The roots of its client have changed. */
  | { readonly type: 'roots changed' }
  /** The user has completed what a page asked for (2025-11-25 elicitation, "Completion Notifications"). */
  | { readonly type: 'page completed'; readonly elicitationId: string }
  | { readonly type: 'list changed'; readonly what: ListKind }
  /** A resource that it watches has changed. */
  | { readonly type: 'resource updated'; readonly uri: string; readonly owner?: string }
  /** The status of one of its tasks has changed. */
  | { readonly type: 'task changed'; readonly task: TaskState }
  /** The session begins or ends watching a resource. */
  | { readonly type: 'watches'; readonly uri: string; readonly watches: boolean }
  /** The session leaves memory; the store holds it. */
  | { readonly type: 'hibernate'; readonly reason: string }
  | { readonly type: 'close'; readonly reason: string };

/** The mutable state of a session, which survives a restart. */
export interface SessionState {
  readonly initialized: boolean;
  readonly logLevel: LogLevel;
  /** The resources that it watches. */
  readonly watches: readonly string[];
}
