/** The mailbox of an emitter: everything that may be sent to one client. Types only. */
import type { Dialect } from '../protocol/dialects/index.ts';
import type { WireError } from '../protocol/errors.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { LogLevel } from '../protocol/types.ts';
import type { ChangeNotice, ListKind } from './change-notices.ts';
import type { InputRequest } from './client-input.ts';
import type { Exchange, Reader } from './connection-events.ts';
import type { AnswerMail } from './request-messages.ts';
import type { Batch, RequestView } from './request-view.ts';
import type { TaskState } from './results.ts';

export type Notification =
  | {
      readonly type: 'progress';
      readonly dialect: Dialect;
      readonly about: RequestView;
      readonly token: string | number;
      readonly progress: number;
      readonly total: number | undefined;
      readonly message: string | undefined;
    }
  | {
      readonly type: 'log';
      readonly dialect: Dialect;
      readonly about: RequestView | undefined;
      readonly level: LogLevel;
      readonly data: unknown;
      readonly logger: string | undefined;
    }
  | { readonly type: 'list changed'; readonly what: ListKind }
  | { readonly type: 'resource updated'; readonly uri: string }
  | { readonly type: 'page completed'; readonly elicitationId: string }
  /** About a task that was created in this session. */
  | { readonly type: 'task status'; readonly task: TaskState }
  /** For one subscription. Changes are already coalesced. */
  | { readonly type: 'notification'; readonly about: RequestView; readonly notice: ChangeNotice };

export type ResultMail =
  | AnswerMail
  /** A response to something that never became a request. */
  | {
      readonly type: 'refusal';
      readonly id: RequestId | undefined;
      readonly dialect: Dialect;
      readonly error: WireError;
      readonly batch: Batch | undefined;
      readonly exchange: Exchange | undefined;
      /** Its HTTP status. */
      readonly status: number;
    };

/** A request to the client, or its cancellation. Like a response, never dropped. */
export type Ask =
  | { readonly type: 'ask'; readonly id: RequestId; readonly about: RequestView; readonly input: InputRequest }
  | { readonly type: 'withdrawn'; readonly id: RequestId; readonly about: RequestView; readonly reason: string };

export type EmitterMail =
  | ResultMail
  | Ask
  | Notification
  /** A request will get no response: it was cancelled. */
  | { readonly type: 'unanswered'; readonly request: RequestView }
  /** A handler releases its client's exchange for a while (SEP-1699). */
  | { readonly type: 'release'; readonly request: RequestView; readonly retryMs: number }
  | { readonly type: 'slow'; readonly reader: Reader }
  | { readonly type: 'drained'; readonly reader: Reader }
  | { readonly type: 'close'; readonly reason: string };
