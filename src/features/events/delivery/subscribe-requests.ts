/** Serves `events/subscribe` and `events/unsubscribe`: checks the request, verifies the endpoint, grants a time, and answers. */
import { isoOf } from '../../../core/kernel/clock.ts';
import { readWebhookSecret } from '../../../core/kernel/standard-webhooks.ts';
import type { Auth } from '../../../core/messages/auth.ts';
import { ErrorCode, ProtocolError } from '../../../core/protocol/errors.ts';
import type { JsonObject } from '../../../core/protocol/json.ts';
import { ANONYMOUS, LOCAL } from '../../../core/protocol/principals.ts';
import type { Core } from '../../../core/server/feature.ts';
import { digest } from '../../../core/store/seal.ts';
import { EventCursors, type EventPosition } from '../event-cursor.ts';
import { topicOf } from '../event-definition.ts';
import type { EventTopics, KnownEvent } from '../event-topics.ts';
import { type EventsProfile, eventsError } from '../event-wire.ts';
import { checkedArguments } from '../subscription.ts';
import { type AllowedOrigins, readCallback } from './callback-address.ts';
import type { CallbackPosts } from './callback-posts.ts';
import { EndpointVerification } from './endpoint-verification.ts';
import type { EventsSubscribe, EventsUnsubscribe } from './subscribe-params.ts';
import { idOfSubscription, openSecrets, type StoredSubscription, sealSecrets } from './subscription-record.ts';
import type { WebhookDelivery } from './webhook-delivery.actor.ts';
import type { WebhookSubscriptions } from './webhook-subscriptions.ts';

export interface SubscribeRequestsOptions {
  readonly core: Core;
  readonly topics: EventTopics;
  readonly posts: CallbackPosts;
  readonly subscriptions: WebhookSubscriptions;
  readonly allowed: AllowedOrigins;
}

/** The shortest grant, in milliseconds. */
const MIN_TTL_MS = 60_000;
/** The longest grant without a durable store: a subscription does not outlive the process. */
const MAX_MEMORY_TTL_MS = 1_800_000;
/** Milliseconds for which deliveries are signed with the secret before, too. */
const ROTATION_MS = 3_600_000;
/** Pages of events in which the first one that is young enough is looked for. */
const MAX_SEEK_PAGES = 10;
const SEEK_PAGE = 1_000;

/** The caller of a request about subscriptions, as the node knows it that has got the request. */
export interface Subscriber {
  readonly principal: string;
  readonly auth: Auth | undefined;
  readonly profile: EventsProfile;
  /** True if the event type does not exist for this caller. */
  readonly hidden: boolean;
}

/** The first position of a subscription. */
interface Beginning {
  readonly position: EventPosition;
  readonly truncated: boolean;
}

export class SubscribeRequests {
  readonly #options: SubscribeRequestsOptions;
  readonly #verification: EndpointVerification;
  /** The last request of each subscription: one after the other. */
  readonly #last = new Map<string, Promise<unknown>>();

  constructor(options: SubscribeRequestsOptions) {
    this.#options = options;
    this.#verification = new EndpointVerification(options.core.system.clock);
  }

  /** @throws {ProtocolError} */
  async subscribe(subscriber: Subscriber, asked: EventsSubscribe): Promise<JsonObject> {
    const { topics, allowed } = this.#options;
    const { principal, profile, hidden } = subscriber;
    this.#admit(principal, profile);
    const known = hidden ? undefined : topics.known(asked.name);
    if (!known)
      throw eventsError('not found', profile, `there is no event type "${shown(asked.name)}"`, { kind: 'event' });
    if (!known.type.delivery.includes('webhook'))
      throw eventsError('unsupported', profile, `the event type "${asked.name}" is not delivered to webhooks`, {
        feature: 'deliveryMode',
        value: 'webhook',
      });
    const callback = readCallback(asked.url, allowed);
    if ('expected' in callback) throw invalid('url', callback.expected);
    // The secret itself is in no message.
    if (!readWebhookSecret(asked.secret)) throw invalid('secret', '"whsec_" and 24 to 64 bytes in base64');
    const checked = await checkedArguments(known, asked.arguments);
    const key = { principal, url: callback.url.href, name: asked.name, arguments: asked.arguments };
    const id = idOfSubscription(key);
    return this.#inTurn(id, async () => {
      const fromNow = asked.cursor === undefined;
      await known.implementation.source?.feed({ arguments: asked.arguments, principal, fromNow });
      const existing = this.#options.subscriptions.find(id);
      const record = this.#recordOf(existing, { ...key, id }, asked, checked, subscriber, known);
      return existing ? this.#refresh(existing, record) : this.#create(record, asked, callback.url);
    });
  }

  /** @throws {ProtocolError} */
  async unsubscribe(
    { principal, profile }: Subscriber,
    { name, arguments: given, url: text }: EventsUnsubscribe,
  ): Promise<JsonObject> {
    const { allowed, subscriptions } = this.#options;
    this.#admit(principal, profile);
    const callback = readCallback(text, allowed);
    if ('expected' in callback) throw invalid('url', callback.expected);
    const id = idOfSubscription({ principal, url: callback.url.href, name, arguments: given });
    return this.#inTurn(id, async () => {
      const existing = subscriptions.find(id);
      if (existing) await subscriptions.unsubscribe(existing);
      else if (profile === 'sep')
        throw eventsError('not found', profile, 'there is no subscription of this caller with these members', {
          kind: 'subscription',
        });
      return {};
    });
  }

  #admit(principal: string, profile: EventsProfile): void {
    if (principal === ANONYMOUS)
      throw eventsError(
        'forbidden',
        profile,
        'webhooks need an authenticated caller: without one, anybody could end the subscriptions of others',
      );
    const { callbacks } = this.#options.core.options.events ?? {};
    if (callbacks === false)
      throw eventsError('unsupported', profile, 'this server delivers to no webhooks', {
        feature: 'deliveryMode',
        value: 'webhook',
      });
    if (principal === LOCAL && !callbacks?.local)
      throw eventsError(
        'forbidden',
        profile,
        'this server delivers to no webhooks of the user of its machine (its option is events.callbacks.local). Use events/stream or events/poll',
      );
  }

  #recordOf(
    existing: WebhookDelivery | undefined,
    key: Pick<StoredSubscription, 'id' | 'principal' | 'url' | 'name' | 'arguments'>,
    asked: EventsSubscribe,
    checked: JsonObject,
    { auth, profile }: Subscriber,
    { implementation }: KnownEvent,
  ): StoredSubscription {
    const { ring } = this.#options.core.keys;
    const now = this.#options.core.system.clock.date();
    const before = existing && openSecrets(ring, existing.record);
    const isOther = before !== undefined && before.current !== asked.secret;
    const previous = isOther ? { previous: before.current, previousUntil: now + ROTATION_MS } : before;
    const secrets = sealSecrets(ring, key.id, { ...previous, current: asked.secret });
    const isSame = digest(checked) === digest(asked.arguments);
    return {
      ...{ state: 'live', created: now, epoch: '', seq: 0 },
      ...(existing?.record ?? { by: topicOf(implementation, checked, asked.arguments, key.principal) }),
      ...{ ...key, profile, secrets, auth, until: this.#until(asked.ttlMs, now) },
      ...(isSame ? { checked: undefined } : { checked }),
    };
  }

  /** The end of a subscription; null without one. */
  #until(ttlMs: number | null | undefined, now: number): number | null {
    const { core } = this.#options;
    const { noExpiry = false } = core.options.events?.callbacks || {};
    const { webhookTtlMs, maxWebhookTtlMs } = core.limits;
    if (ttlMs === null && noExpiry && core.store.durable) return null;
    const most = core.store.durable ? maxWebhookTtlMs : Math.min(maxWebhookTtlMs, MAX_MEMORY_TTL_MS);
    const wanted = ttlMs === null ? most : (ttlMs ?? webhookTtlMs);
    return now + Math.max(MIN_TTL_MS, Math.min(most, wanted));
  }

  async #create(record: StoredSubscription, asked: EventsSubscribe, url: URL): Promise<JsonObject> {
    const { subscriptions, posts } = this.#options;
    const { profile, principal } = record;
    const reservation = subscriptions.reserve(principal);
    if ('message' in reservation)
      throw eventsError('exhausted', profile, reservation.message, { limit: 'subscriptions', max: reservation.max });
    try {
      // It begins before its endpoint is verified: what happens meanwhile is for it, too.
      const { position, truncated } = await this.#begin(record, asked);
      const begun = { ...record, epoch: position.epoch, seq: position.seq };
      if (subscriptions.hasEndpoint(principal, url.href)) this.#verification.keep(principal, url.href);
      const verified = await this.#verification.verify(principal, url, () => posts.challenge(begun, asked.secret));
      if (!verified.ok) throw unverified(verified, profile);
      const answer = {
        id: begun.id,
        refreshBefore: begun.until === null ? null : isoOf(begun.until),
        cursor: subscriptions.cursorOf(begun, begun.seq),
        truncated,
      };
      await subscriptions.create(begun);
      return answer;
    } catch (error) {
      reservation.release();
      throw error;
    }
  }

  /** The first position of a new subscription: that of its cursor, or the newest event. */
  async #begin(
    { principal, name, arguments: given, by }: StoredSubscription,
    asked: EventsSubscribe,
  ): Promise<Beginning> {
    const { core, topics } = this.#options;
    if (asked.cursor === undefined) {
      const { epoch, head } = await topics.read(name, by, Number.MAX_SAFE_INTEGER, 0);
      return { position: { epoch, seq: head }, truncated: false };
    }
    const after = new EventCursors(core.keys.ring, principal, name, given).open(asked.cursor);
    const { epoch, head, purged } = await topics.read(name, by, after?.seq ?? Number.MAX_SAFE_INTEGER, 0);
    // No key of this server has sealed it: it says nothing about a position.
    if (!after) return { position: { epoch, seq: head }, truncated: true };
    if (after.epoch !== epoch && after.seq > 0)
      return this.#seek(name, by, { epoch, seq: purged }, asked.maxAgeMs, true);
    if (after.seq > head) return { position: { epoch, seq: head }, truncated: true };
    return this.#seek(name, by, { epoch, seq: Math.max(after.seq, purged) }, asked.maxAgeMs, after.seq < purged);
  }

  /** Skips the events that are too old for the client. */
  async #seek(
    name: string,
    by: string,
    from: EventPosition,
    maxAgeMs: number | undefined,
    truncated: boolean,
  ): Promise<Beginning> {
    if (maxAgeMs === undefined) return { position: from, truncated };
    const { core, topics } = this.#options;
    const since = core.system.clock.date() - maxAgeMs;
    let { seq } = from;
    for (let pages = 0; pages < MAX_SEEK_PAGES; pages += 1) {
      const { events } = await topics.read(name, by, seq, SEEK_PAGE);
      const first = events.find(({ at }) => at >= since);
      const last = events.at(-1);
      const next = first ? first.seq - 1 : (last?.seq ?? seq);
      if (first || !last) return { position: { ...from, seq: next }, truncated: truncated || next > from.seq };
      seq = next;
    }
    const { head } = await topics.read(name, by, Number.MAX_SAFE_INTEGER, 0);
    return { position: { ...from, seq: head }, truncated: true };
  }

  async #refresh(existing: WebhookDelivery, record: StoredSubscription): Promise<JsonObject> {
    const { subscriptions } = this.#options;
    const { record: before, throttledMs } = existing;
    await subscriptions.refresh(existing, record);
    const { lastDeliveryAt, lastError = null, failedSince } = before;
    return {
      id: record.id,
      refreshBefore: record.until === null ? null : isoOf(record.until),
      cursor: subscriptions.cursorOf(before, before.seq),
      truncated: before.gap === true,
      deliveryStatus: {
        active: before.state !== 'suspended',
        ...(lastDeliveryAt === undefined ? {} : { lastDeliveryAt: isoOf(lastDeliveryAt) }),
        lastError: failedSince === undefined ? null : lastError,
        ...(failedSince === undefined ? {} : { failedSince: isoOf(failedSince) }),
        ...(throttledMs === undefined ? {} : { throttled: true, retryAfterMs: throttledMs }),
      },
    };
  }

  /** Runs the requests about one subscription one after the other. */
  #inTurn<T>(id: string, run: () => Promise<T>): Promise<T> {
    const before = this.#last.get(id) ?? Promise.resolve();
    const result = before.then(run, run);
    const settled = result.then(
      () => {},
      () => {},
    );
    this.#last.set(id, settled);
    void settled.then(() => {
      if (this.#last.get(id) === settled) this.#last.delete(id);
    });
    return result;
  }
}

function invalid(member: 'url' | 'secret', expected: string): ProtocolError {
  return new ProtocolError(ErrorCode.InvalidParams, `params.delivery.${member}: expected ${expected}`);
}

function unverified(
  verified: { readonly category: string } | { readonly limit: number; readonly retryAfterMs: number },
  profile: EventsProfile,
): ProtocolError {
  if ('category' in verified)
    return eventsError(
      'callback',
      profile,
      `the endpoint was not verified (${verified.category}): it must echo the challenge in a response of 2xx`,
      {
        reason: verified.category,
      },
    );
  const { limit, retryAfterMs } = verified;
  return eventsError(
    'exhausted',
    profile,
    `too many endpoints were verified: at most ${limit} in a minute. Retry later`,
    {
      limit: 'verifications',
      max: limit,
      retryAfterMs,
    },
  );
}

function shown(name: string): string {
  return name.length > 128 ? `${name.slice(0, 128)}…` : name;
}
