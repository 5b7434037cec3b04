/** The mailbox of the in-flight table of one connection or session. Types only. */

import type { RequestId } from '../protocol/jsonrpc.ts';
import type { LogLevel } from '../protocol/types.ts';
import type { ChangeNotice } from './change-notices.ts';
import type { Mailbox } from './mailbox.ts';
import type { RequestView } from './request-view.ts';
import type { Outcome } from './results.ts';

/** A request. One object travels from the inbound codec to the registry. */
export interface RequestMail {
  readonly type: 'request';
  readonly request: RequestView;
}

/** A response. One object travels from the executor to the emitter. */
export interface AnswerMail {
  readonly type: 'answer';
  readonly request: RequestView;
  readonly outcome: Outcome;
}

/** The messages to the interactive request that a request has become. */
export type ContinuationMail =
  /** Its handler reports progress. */
  | { readonly type: 'progressed'; readonly message: string }
  /** Its handler has ended. */
  | { readonly type: 'done'; readonly outcome: Outcome };

export type RequestsMail =
  /** A new request: admit or reject it. */
  | RequestMail
  /** The client cancels the request of this key. */
  | { readonly type: 'cancel'; readonly key: RequestId; readonly reason: string | undefined }
  /** The outcome of a request. */
  | AnswerMail
  /** Its handler reports progress. */
  | {
      readonly type: 'progress';
      readonly request: RequestView;
      readonly progress: number;
      readonly total: number | undefined;
      readonly message: string | undefined;
    }
  /** Its handler sends a log message to the client. */
  | {
      readonly type: 'log';
      readonly request: RequestView;
      readonly level: LogLevel;
      readonly data: unknown;
      readonly logger: string | undefined;
    }
  /** The request was answered while its handler waited. Nothing waits for the handler any more, but it still runs. */
  | { readonly type: 'detached'; readonly request: RequestView }
  /** A notification for a subscription. */
  | { readonly type: 'notify'; readonly request: RequestView; readonly notice: ChangeNotice }
  /** Sets another timeout than the server's default, in milliseconds from now. */
  | { readonly type: 'extend deadline'; readonly request: RequestView; readonly timeoutMs: number }
  /** Its handler releases the client's exchange; the client asks again after this many milliseconds (SEP-1699). */
  | { readonly type: 'release'; readonly request: RequestView; readonly retryMs: number }
  /** The earliest deadline has passed. */
  | { readonly type: 'deadline' }
  /** Accept no new requests. The connection ends, too, once nothing is in flight, if its client has ended its input. */
  | { readonly type: 'drain'; readonly inputEnded?: true }
  /**
   * The grace time is over, or the client disconnected: abort what is in flight, with error responses where a client can
   * receive them.
   */
  | { readonly type: 'abandon'; readonly reason: string };

/** Asks the rules before a request is served. */
export interface RequestAdmission {
  /** Passes an admitted request on, at once unless a rule is asynchronous; responds to all others. */
  admit(mail: RequestMail, admitted: (mail: RequestMail) => void): void;
  /** The same for a request whose parameters have changed since it was admitted. */
  admitChanged(mail: RequestMail, admitted: (mail: RequestMail) => void): void;
}

/** The actor or service that serves requests of one kind. */
export type RequestTarget = Pick<Mailbox<RequestMail>, 'send'>;

/** Passes each admitted request to the actor or service that serves it. */
export interface RequestRoutes {
  /** A bound function: an in-flight table calls it at the end of a turn. */
  readonly route: (mail: RequestMail) => void;
}
