/** The params of the methods of subscriptions to callbacks, and their readers. */
import { misfit } from '../../../core/protocol/errors.ts';
import { isObject, type JsonObject } from '../../../core/protocol/json.ts';
import { cursorOf, type Params, textMember } from '../../../core/protocol/operations.ts';
import { subscriptionArguments, wholeMember } from '../event-requests.ts';

export interface EventsUnsubscribe {
  readonly method: 'events/unsubscribe';
  readonly name: string;
  readonly arguments: JsonObject;
  readonly url: string;
}

export interface EventsSubscribe extends Omit<EventsUnsubscribe, 'method'> {
  readonly method: 'events/subscribe';
  readonly secret: string;
  /** Undefined: from now. */
  readonly cursor: string | undefined;
  /** Milliseconds: older events are not delivered. */
  readonly maxAgeMs: number | undefined;
  /** The wish of the client in milliseconds; null: without an end. */
  readonly ttlMs: number | null | undefined;
}

declare module '../../../core/protocol/operations.ts' {
  interface Operations {
    readonly webhooks: EventsSubscribe | EventsUnsubscribe;
  }
}

/** @throws {ProtocolError} -32602. The secret is in no message */
export function readEventsSubscribe(params: Params): EventsSubscribe {
  const delivery = deliveryOf(params);
  const { mode, secret } = delivery;
  if (mode !== 'webhook') throw misfit('delivery.mode', '"webhook"', mode);
  return {
    ...{ method: 'events/subscribe', name: textMember(params, 'name'), arguments: subscriptionArguments(params) },
    url: textMember(delivery, 'url', 'delivery.'),
    // Another value is no secret, and is rejected as such, without a word about it.
    secret: typeof secret === 'string' ? secret : '',
    cursor: cursorOf(params),
    maxAgeMs: wholeMember(params, 'maxAgeMs', 0),
    ttlMs: params?.ttlMs === null ? null : wholeMember(params, 'ttlMs', 0),
  };
}

/** @throws {ProtocolError} -32602 */
export function readEventsUnsubscribe(params: Params): EventsUnsubscribe {
  return {
    ...{ method: 'events/unsubscribe', name: textMember(params, 'name'), arguments: subscriptionArguments(params) },
    url: textMember(deliveryOf(params), 'url', 'delivery.'),
  };
}

function deliveryOf(params: Params): Readonly<Record<string, unknown>> {
  const delivery = params?.delivery;
  if (!isObject(delivery)) throw misfit('delivery', 'an object', delivery);
  return delivery;
}
