/** What the subscriptions actor hears, and what it tells those that listen: types only. */
import type { SubscriptionFilter } from '../protocol/subscription-filter.ts';
import type { ActiveRequest } from './active-request.ts';
import type { Announceable, Mailbox } from './mailbox.ts';
import type { RequestMail, RequestsMail } from './request-messages.ts';
import type { ListKind, SessionMail } from './session-messages.ts';
import type { TaskState } from './task-messages.ts';

/** Something that clients may want to hear of. */
export type Change =
  | { readonly type: 'list changed'; readonly what: ListKind }
  /** Where it is one principal's (a handle), the others do not hear of it, though they may watch its uri. */
  | { readonly type: 'resource updated'; readonly uri: string; readonly owner?: string }
  | { readonly type: 'task changed'; readonly task: TaskState };

/** What one subscription is told: first what it will hear of, then just that. */
export type ChangeNotice = { readonly type: 'acknowledged'; readonly filter: SubscriptionFilter } | Change;

export type SubscriptionsMail =
  /** A client wants to hear of changes, or no longer does. */
  | RequestMail
  | Change
  /** A change that concerns one session alone: one of its tasks, or what it may have missed. */
  | { readonly type: 'session changed'; readonly session: Announceable<SessionMail>; readonly change: Change }
  /** The time to gather changes is over. */
  | { readonly type: 'gathered' }
  /** The next slice of hearers is to be told of what was gathered. */
  | { readonly type: 'tell' }
  /** The server stops: everybody is to be told of what is left, now. */
  | { readonly type: 'tell all' }
  /** The server ends this subscription: tell it what is left to tell, and answer it. */
  | { readonly type: 'end'; readonly request: ActiveRequest }
  /** The client has ended it: tell it nothing more. */
  | { readonly type: 'ended'; readonly request: ActiveRequest }
  | { readonly type: 'session opened'; readonly session: Announceable<SessionMail> }
  /** A session is back that watches these, as it did before this process. */
  | {
      readonly type: 'session restored';
      readonly session: Announceable<SessionMail>;
      readonly watches: readonly string[];
    }
  /** A session is closed, or the connection of an in-flight table: nobody is there to be told. */
  | { readonly type: 'session closed'; readonly session: Announceable<SessionMail> }
  | { readonly type: 'connection closed'; readonly requests: Mailbox<RequestsMail> };
