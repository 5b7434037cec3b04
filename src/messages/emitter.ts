/** What an emitter hears: everything that may leave for one client. Types only. */
import type { Dialect } from '../protocol/dialects/index.ts';
import type { WireError } from '../protocol/errors.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { LogLevel } from '../protocol/types.ts';
import type { InputRequest } from './asking.ts';
import type { Exchange, Reader } from './connection.ts';
import type { Batch, InFlight } from './in-flight.ts';
import type { AnswerMail } from './requests.ts';
import type { ListKind } from './session.ts';
import type { Told } from './subscriptions.ts';
import type { TaskState } from './tasks.ts';

export type Notification =
  | {
      readonly type: 'progress';
      readonly dialect: Dialect;
      readonly about: InFlight;
      readonly token: string | number;
      readonly progress: number;
      readonly total: number | undefined;
      readonly message: string | undefined;
    }
  | {
      readonly type: 'log';
      readonly dialect: Dialect;
      readonly about: InFlight | undefined;
      readonly level: LogLevel;
      readonly data: unknown;
      readonly logger: string | undefined;
    }
  | { readonly type: 'list changed'; readonly what: ListKind }
  | { readonly type: 'resource updated'; readonly uri: string }
  /** Of a task that was created in this session. */
  | { readonly type: 'task status'; readonly task: TaskState }
  /** For one subscription. Changes were gathered already. */
  | { readonly type: 'told'; readonly about: InFlight; readonly told: Told };

export type Answer =
  | AnswerMail
  /** An answer to what never became a request. */
  | {
      readonly type: 'refusal';
      readonly id: RequestId | undefined;
      readonly dialect: Dialect;
      readonly error: WireError;
      readonly batch: Batch | undefined;
      readonly exchange: Exchange | undefined;
      /** The HTTP status that goes with it. */
      readonly status: number;
    };

/** A request of ours to the client, and that nobody waits for its answer any more: like an answer, never dropped. */
export type Ask =
  | { readonly type: 'ask'; readonly id: RequestId; readonly about: InFlight; readonly input: InputRequest }
  | { readonly type: 'withdrawn'; readonly id: RequestId; readonly about: InFlight; readonly reason: string };

export type EmitterMail =
  | Answer
  | Ask
  | Notification
  /** A request will get no answer: it was cancelled. */
  | { readonly type: 'unanswered'; readonly request: InFlight }
  /** A handler lets go of its client's exchange for a while (SEP-1699). */
  | { readonly type: 'release'; readonly request: InFlight; readonly retryMs: number }
  | { readonly type: 'slow'; readonly reader: Reader }
  | { readonly type: 'drained'; readonly reader: Reader }
  | { readonly type: 'close'; readonly reason: string };
