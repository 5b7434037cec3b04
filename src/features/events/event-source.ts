/**
 * Feeds the topics of event types whose events happen at another server: what a mount is for the events of its server. Types only.
 */
import type { JsonObject } from '../../core/protocol/json.ts';
import type { EventsFailure } from './event-wire.ts';

/** A subscription to events of another server, as its client asks for it. */
export interface SourcedSubscription {
  readonly arguments: JsonObject;
  readonly principal: string;
  /** It begins now, and not at a cursor. */
  readonly fromNow: boolean;
}

/** The reason for which a topic gets no events any more. */
export interface SourceFailure {
  readonly failure: EventsFailure;
  readonly message: string;
  readonly data?: JsonObject | undefined;
}

export interface EventSource {
  /** The topic of a subscription, as the value of `by` names topics: one for all subscriptions that may share it. */
  topicOf(args: JsonObject, principal: string): string;
  /**
   * Feeds the topic of a subscription, for a while after each call.
   *
   * @returns once the topic will have every event from now on
   * @throws {ProtocolError} with codes of SEP-3415, which the server translates for others
   */
  feed(subscription: SourcedSubscription): Promise<void>;
  /** Feeds a topic that was fed before until the returned function is called: something listens to it. */
  hold(topic: string): () => void;
  /** Undefined while the other server has not rejected the subscription of a topic for good. */
  failureOf(topic: string): SourceFailure | undefined;
}
