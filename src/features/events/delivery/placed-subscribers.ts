/** Serves the requests of a subscriber at the node that owns its subscriptions, over the calls between nodes. */
import { isAuth, restoredAuth } from '../../../core/messages/auth.ts';
import { NodeCallError, type NodeCalls } from '../../../core/messages/node-calls.ts';
import type { RequestView } from '../../../core/messages/request-view.ts';
import { ErrorCode, type ErrorCodeValue, ProtocolError } from '../../../core/protocol/errors.ts';
import { isJsonObject, isObject, type JsonObject, type JsonValue } from '../../../core/protocol/json.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import { profileOf } from '../event-wire.ts';
import type { EventWebhooks } from './event-webhooks.ts';
import {
  type EventsSubscribe,
  type EventsUnsubscribe,
  readEventsSubscribe,
  readEventsUnsubscribe,
} from './subscribe-params.ts';
import type { Subscriber } from './subscribe-requests.ts';
import { cellOfSubscriber } from './subscriber-cell.ts';

type Operation = EventsSubscribe | EventsUnsubscribe;

/** The name of the service between nodes. */
const SERVICE = 'webhooks';

export class PlacedSubscribers {
  readonly #calls: NodeCalls;

  /** @param webhooks those of this node, which open with the first request */
  constructor(calls: NodeCalls, webhooks: () => Pick<EventWebhooks, 'serve'>) {
    this.#calls = calls;
    calls.serve(SERVICE, async ({ request }) => {
      const { subscriber, operation } = readRequest(String(request));
      try {
        return { result: await webhooks().serve(subscriber, operation) };
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        const { code, message, data } = error;
        return { code, message, data };
      }
    });
  }

  /** @throws {ProtocolError} */
  async serve({ client, auth, hidden }: RequestView, operation: Operation): Promise<JsonObject> {
    const { principal } = client;
    const subscriber: Subscriber = { principal, auth, profile: profileOf(client.capabilities), hidden };
    try {
      // The same request again finds the subscription.
      const request = toText({ subscriber, operation: paramsOf(operation) });
      return resultIn(await this.#calls.call(cellOfSubscriber(principal), SERVICE, { request }, true));
    } catch (error) {
      if (error instanceof NodeCallError && error.reason !== 'failed')
        throw new ProtocolError(ErrorCode.Overloaded, error.message);
      throw error;
    }
  }
}

/** The params of a request, which the other node reads as those of a client. */
function paramsOf(operation: Operation): JsonObject {
  const { method, name, arguments: given, url } = operation;
  const { secret, cursor, maxAgeMs, ttlMs }: Partial<EventsSubscribe> =
    operation.method === 'events/subscribe' ? operation : {};
  const delivery = { mode: 'webhook', url, secret };
  return { method, params: { name, arguments: given, delivery, cursor, maxAgeMs, ttlMs } };
}

/** @throws {TypeError | ProtocolError} for what no node has sent */
function readRequest(text: string): { readonly subscriber: Subscriber; readonly operation: Operation } {
  const value = fromText(text, 'the request of a subscriber at another node');
  const { subscriber, operation } = isJsonObject(value) ? value : {};
  if (!isJsonObject(subscriber) || !isJsonObject(operation) || !isObject(operation.params))
    throw new TypeError('expected the request of a subscriber');
  const { principal, auth, profile, hidden } = subscriber;
  const { method, params } = operation;
  return {
    subscriber: {
      ...{ principal: String(principal), auth: isAuth(auth) ? restoredAuth(auth) : undefined },
      ...{ profile: profile === 'sep' ? profile : 'sketch', hidden: hidden === true },
    },
    operation: method === 'events/subscribe' ? readEventsSubscribe(params) : readEventsUnsubscribe(params),
  };
}

/** @throws {ProtocolError} that the owner has thrown */
function resultIn(answer: JsonValue): JsonObject {
  const { result, code, message, data } = isJsonObject(answer) ? answer : {};
  if (isJsonObject(result)) return result;
  if (isCode(code)) throw new ProtocolError(code, String(message), data);
  throw new TypeError('expected the answer to a subscriber');
}

/** That of an upstream, or of another version, is not in our list. */
function isCode(code: unknown): code is ErrorCodeValue {
  return Number.isSafeInteger(code);
}
