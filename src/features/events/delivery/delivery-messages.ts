/** The mailbox of the delivery of one subscription. Types only. */
import type { JsonObject } from '../../../core/protocol/json.ts';
import type { Termination } from '../event-wire.ts';
import type { TopicPage } from './delivered-topics.ts';
import type { Verdict } from './delivery-attempts.ts';
import type { StoredSubscription } from './subscription-record.ts';

export type DeliveryMail =
  /** It was created or read from the store. */
  | { readonly type: 'begin' }
  /** An event may be for it: everything up to `upto` is not. */
  | { readonly type: 'news'; readonly upto: number }
  | { readonly type: 'page'; readonly page: TopicPage }
  /** The topic could not be read, or the rights could not be checked. */
  | { readonly type: 'delayed' }
  /** Its caller may receive events, or may no longer; `later`: that could not be found out. */
  | { readonly type: 'checked'; readonly refusal: Termination | 'later' | undefined }
  /** An attempt has ended. */
  | { readonly type: 'attempted'; readonly item: DeliveryItem; readonly verdict: Verdict }
  /** The time of its next attempt, or of its end. */
  | { readonly type: 'due' }
  /** An operator has had the dead letter of this event delivered. */
  | { readonly type: 'revived'; readonly seq: number }
  /** Its client has subscribed again. */
  | { readonly type: 'refresh'; readonly record: StoredSubscription }
  /** Its client, the server or an operator ends it. */
  | { readonly type: 'end'; readonly how: 'unsubscribe' | 'terminate'; readonly reason: Termination | undefined }
  /** Another process delivers from now on, or the server stops. */
  | { readonly type: 'let go' };

/** A POST that has to be accepted: an event, or the news that some were skipped. */
export interface DeliveryItem {
  readonly of: 'event' | 'gap';
  /** Of the event; for a gap, the last one that was skipped. */
  readonly seq: number;
  /** The header `webhook-id`. */
  readonly id: string;
  /** The members of the body besides the cursor. */
  readonly body: JsonObject;
  /** The `traceparent` of what has emitted the event. */
  readonly trace?: string | undefined;
  status: 'new' | 'sending' | 'waiting';
  /** The attempts that its endpoint has rejected. */
  rejections: number;
}
