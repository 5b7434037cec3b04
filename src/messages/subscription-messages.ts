/** The mailbox of the subscriptions actor, and the notifications for its listeners. Types only. */
import type { SubscriptionFilter } from '../protocol/subscription-filter.ts';
import type { Announceable, Mailbox } from './mailbox.ts';
import type { RequestMail, RequestsMail } from './request-messages.ts';
import type { RequestView } from './request-view.ts';
import type { ListKind, SessionMail } from './session-messages.ts';
import type { TaskState } from './task-messages.ts';

/** A change that clients can listen for. */
export type Change =
  | { readonly type: 'list changed'; readonly what: ListKind }
  /** If it belongs to one principal (a handle), other principals are not notified, even if they watch the URI. */
  | { readonly type: 'resource updated'; readonly uri: string; readonly owner?: string }
  | { readonly type: 'task changed'; readonly task: TaskState };

/** A notification for one subscription: first its acknowledged filter, then changes. */
export type ChangeNotice = { readonly type: 'acknowledged'; readonly filter: SubscriptionFilter } | Change;

export type SubscriptionsMail =
  /** A client begins or ends listening for changes. */
  | RequestMail
  | Change
  /** A change that concerns only one session: one of its tasks, or a change that it may have missed. */
  | { readonly type: 'session changed'; readonly session: Announceable<SessionMail>; readonly change: Change }
  /** The coalescing time is over. */
  | { readonly type: 'flush' }
  /** Notify the next slice of listeners. */
  | { readonly type: 'next slice' }
  /** The server stops: send all pending notifications now. */
  | { readonly type: 'flush all' }
  /** The server ends this subscription: send its pending notifications, then the response. */
  | { readonly type: 'end'; readonly request: RequestView }
  /** The client has ended this subscription: send nothing more. */
  | { readonly type: 'ended'; readonly request: RequestView }
  | { readonly type: 'session opened'; readonly session: Announceable<SessionMail> }
  /** A session was restored that watched these resources in an earlier process. */
  | {
      readonly type: 'session restored';
      readonly session: Announceable<SessionMail>;
      readonly watches: readonly string[];
    }
  /** A session, or the connection of an in-flight table, is closed: its listeners are gone. */
  | { readonly type: 'session closed'; readonly session: Announceable<SessionMail> }
  | { readonly type: 'connection closed'; readonly requests: Mailbox<RequestsMail> };
