/** The mailbox of the audit log: the events that an operator wants to prove later. Types only. */

import type { Mailbox } from '../../../core/messages/mailbox.ts';
import type { RequestView } from '../../../core/messages/request-view.ts';
import type { JsonValue } from '../../../core/protocol/json.ts';

/** The caller of an audited event. A request's `client` is one; a caller without a session names itself. */
export interface AuditCaller {
  readonly principal: string;
  readonly info?: { readonly name: string; readonly version?: string | undefined } | undefined;
  /** Its session, whose id is a secret: the log writes a digest of it. */
  readonly session?: { readonly id: string } | undefined;
}

/** The parts that any event about a request may have. */
interface AboutRequest {
  readonly by: AuditCaller;
  /** The element, as its kind and its name: `tool refund`. */
  readonly element?: string | undefined;
  /** The request itself, if it was admitted: the log writes the id of its trace and the address of its client. */
  readonly request?: Pick<RequestView, 'exchange' | 'meta' | 'span'> | undefined;
  /** The address of the client, if there is no request or its connection may close first. */
  readonly remoteAddress?: string | undefined;
}

/** A call of a tool, as the audit log writes it. */
export interface AuditedCall extends AboutRequest {
  /** Names the call in its two records, if its start is recorded. */
  readonly call?: string | undefined;
  readonly element: string;
  readonly argumentsDigest: string;
  /** The arguments as the option `redact` returned them. */
  readonly arguments?: JsonValue | undefined;
}

/** The audit log's answer about one record. */
export interface AuditStored {
  readonly type: 'stored';
  /** The reason why the record is not stored; undefined if it is. */
  readonly error: unknown;
}

export type AuditMail =
  /** A rule or a missing scope denied a request. */
  | (AboutRequest & {
      readonly type: 'denied';
      /** The reason for the operator, such as the text of `{ deny }`. */
      readonly rule?: string | undefined;
      readonly scopesHad?: readonly string[] | undefined;
      readonly scopesNeeded?: readonly string[] | undefined;
      readonly incident?: string | undefined;
    })
  /** A limit rejected a request. `rule` is the option that sets the limit. */
  | (AboutRequest & { readonly type: 'limited'; readonly rule: string })
  /** A call that may change something begins: it waits for `stored`. */
  | { readonly type: 'call started'; readonly call: AuditedCall; readonly stored: Mailbox<AuditStored> }
  | {
      readonly type: 'call ended';
      readonly call: AuditedCall;
      readonly event: 'call' | 'read';
      readonly outcome: 'ok' | 'error' | 'not run';
      readonly errorType?: string | undefined;
      /** The incident under which the error of its handler is in the operator's log. */
      readonly incident?: string | undefined;
      readonly ms?: number | undefined;
    }
  | { readonly type: 'session opened'; readonly by: AuditCaller }
  | { readonly type: 'session ended'; readonly by: AuditCaller; readonly reason: string }
  /** A handler asked its client, or the model that called: `question` is the method of the input request. */
  | (AboutRequest & { readonly type: 'asked'; readonly question: string; readonly from: 'client' | 'model' })
  /** `outcome` is `accepted`, `declined` or `cancelled` for a form, and `answered` or `error` otherwise. */
  | (AboutRequest & {
      readonly type: 'answered';
      readonly question: string;
      readonly from: 'client' | 'model';
      readonly outcome: 'accepted' | 'declined' | 'cancelled' | 'answered' | 'error';
    })
  /** An approval has entered a state. */
  | (AboutRequest & {
      readonly type: 'approval';
      readonly outcome: string;
      /** Its id, and the digest of everything that it is about. */
      readonly approval: string;
      readonly binding: string;
      /** The names of the rules that demand it. */
      readonly rule: string;
      /** The person who has decided, and the way. */
      readonly approver: string | undefined;
      readonly via: string | undefined;
    })
  | { readonly type: 'dead letter'; readonly element: string; readonly incident: string }
  /** An inspector with control acted on the server. */
  | {
      readonly type: 'control';
      readonly action: string;
      readonly element?: string | undefined;
      readonly principal?: string;
    }
  | { readonly type: 'started' }
  | { readonly type: 'stopped'; readonly reason: string }
  /** Writes everything that is counted and not yet written, then answers. */
  | { readonly type: 'flush'; readonly stored: Mailbox<AuditStored> }
  /** Ten seconds of repeated rejections are over. */
  | { readonly type: 'window over' }
  /** The destination has stored this number of records, or failed. `lost` of them have no call that is rejected instead. */
  | { readonly type: 'written'; readonly count: number; readonly lost: number; readonly error: unknown };
