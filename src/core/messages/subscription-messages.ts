/** The mailbox of the subscriptions actor. Types only. */
import type { Change } from './change-notices.ts';
import type { Mailbox } from './mailbox.ts';
import type { RequestMail, RequestsMail } from './request-messages.ts';
import type { RequestView } from './request-view.ts';
import type { SessionMail } from './session-messages.ts';

/** All notifications that were pending are sent. */
export interface Flushed {
  readonly type: 'flushed';
}

/** A call that waits for changes of one resource. */
export interface ResourceWatch {
  readonly uri: string;
  readonly principal: string;
  announce(): void;
}

export type SubscriptionsMail =
  /** A client begins or ends listening for changes. */
  | RequestMail
  | Change
  /** A change that concerns only one session: one of its tasks, or a change that it may have missed. */
  | { readonly type: 'session changed'; readonly session: Mailbox<SessionMail>; readonly change: Change }
  /** A list has changed for one owner of calls without a session, by its key. */
  | { readonly type: 'owner changed'; readonly owner: string; readonly change: Change }
  /** A call begins or ends waiting for changes of a resource. */
  | { readonly type: 'watch' | 'watch ended'; readonly watch: ResourceWatch }
  /** The coalescing time is over. */
  | { readonly type: 'flush' }
  /** Notify the next slice of listeners. */
  | { readonly type: 'next slice' }
  /** The server stops: send all pending notifications in slices, take no more changes, then reply. */
  | { readonly type: 'flush all'; readonly flushed: Mailbox<Flushed> }
  /** The server ends this subscription: send its pending notifications, then the response. */
  | { readonly type: 'end'; readonly request: RequestView }
  /** The client has ended this subscription: send nothing more. */
  | { readonly type: 'ended'; readonly request: RequestView }
  | { readonly type: 'session opened'; readonly session: Mailbox<SessionMail> }
  /** A session was restored that watched these resources in an earlier process. */
  | {
      readonly type: 'session restored';
      readonly session: Mailbox<SessionMail>;
      readonly watches: readonly string[];
    }
  /** A session, or the connection of an in-flight table, is closed: its listeners are gone. */
  | { readonly type: 'session closed'; readonly session: Mailbox<SessionMail> }
  | { readonly type: 'connection closed'; readonly requests: Mailbox<RequestsMail> };
