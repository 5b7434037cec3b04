/** What a session hears: types only. */
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { LogLevel } from '../protocol/types.ts';
import type { ActiveRequest } from './active-request.ts';
import type { InputRequest, Reply } from './input-messages.ts';
import type { RequestMail } from './request-messages.ts';
import type { TaskState } from './task-messages.ts';

/** A question to the client of a session, for one of its requests. */
export interface AskMail {
  readonly type: 'ask';
  readonly about: ActiveRequest;
  readonly input: InputRequest;
  reply(reply: Reply): void;
}

export type SessionMail =
  /** A request of its client. */
  | RequestMail
  /** A request that came back through the in-flight table because the session itself serves it. */
  | { readonly type: 'serve'; readonly request: ActiveRequest }
  | AskMail
  /** Nobody waits for the answer to this any more. */
  | { readonly type: 'withdraw'; readonly ask: AskMail; readonly reason: string }
  /** The client has answered a request of ours. */
  | { readonly type: 'response'; readonly id: RequestId; readonly reply: Reply }
  | { readonly type: 'initialized' }
  | { readonly type: 'list changed'; readonly what: ListKind }
  /** A resource that it watches has changed. */
  | { readonly type: 'resource updated'; readonly uri: string; readonly owner?: string }
  /** A task that was created in it has another status. */
  | { readonly type: 'task changed'; readonly task: TaskState }
  /** It watches a resource from now on, or no longer. */
  | { readonly type: 'watches'; readonly uri: string; readonly watches: boolean }
  | { readonly type: 'close'; readonly reason: string };

/** What a session is beside what it was opened with: what a restart must not change. */
export interface SessionState {
  readonly initialized: boolean;
  readonly logLevel: LogLevel;
  /** The resources that it watches. */
  readonly watches: readonly string[];
}

export type ListKind = 'tools' | 'resources' | 'prompts';
