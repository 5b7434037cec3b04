/** What the in-flight table of one connection or session hears: types only. */

import type { RequestId } from '../protocol/jsonrpc.ts';
import type { LogLevel } from '../protocol/types.ts';
import type { ActiveRequest } from './active-request.ts';
import type { Outcome } from './results.ts';
import type { ChangeNotice } from './subscription-messages.ts';

/** A request on its way. One object travels from the door to the registry. */
export interface RequestMail {
  readonly type: 'request';
  readonly request: ActiveRequest;
}

/** Its answer, on the way back: one object travels from the executor to the emitter. */
export interface AnswerMail {
  readonly type: 'answer';
  readonly request: ActiveRequest;
  readonly outcome: Outcome;
}

export type RequestsMail =
  /** A new request: admit it, or refuse it. */
  | RequestMail
  /** The client no longer wants the request of this key. */
  | { readonly type: 'cancel'; readonly key: RequestId; readonly reason: string | undefined }
  /** Whoever served it is done. */
  | AnswerMail
  /** Its handler reports progress. */
  | {
      readonly type: 'progress';
      readonly request: ActiveRequest;
      readonly progress: number;
      readonly total: number | undefined;
      readonly message: string | undefined;
    }
  /** Its handler logs something for the client. */
  | {
      readonly type: 'log';
      readonly request: ActiveRequest;
      readonly level: LogLevel;
      readonly data: unknown;
      readonly logger: string | undefined;
    }
  /** It was answered, and its handler waited; now nobody waits for that any more, and it runs on. */
  | { readonly type: 'runs on'; readonly request: ActiveRequest }
  /** It is a subscription, and this is for it. */
  | { readonly type: 'tell'; readonly request: ActiveRequest; readonly told: ChangeNotice }
  /** What serves it asks for another time than the server's default, in milliseconds from now. */
  | { readonly type: 'allow'; readonly request: ActiveRequest; readonly timeoutMs: number }
  /** Its handler lets go of the client's exchange, to be asked again after so many milliseconds (SEP-1699). */
  | { readonly type: 'release'; readonly request: ActiveRequest; readonly retryMs: number }
  /** The earliest deadline has come. */
  | { readonly type: 'deadline' }
  /** Take no new requests. */
  | { readonly type: 'drain' }
  /** Time is over, or the client disconnected: abort what is in flight, and say so to whoever still hears it. */
  | { readonly type: 'abandon'; readonly reason: string };
