/**
 * The receiving side of event webhooks (SEP-3415; experimental): verifies the deliveries of MCP servers, answers their challenges, and
 * passes each event on once. Works with any server, not only with those of this package.
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, systemClock, within } from '../../core/kernel/clock.ts';
import { type OperatorLog, stderrLog } from '../../core/kernel/operator-log.ts';
import { readWebhookSecret, verifyWebhook } from '../../core/kernel/standard-webhooks.ts';
import { throttledLog } from '../../core/kernel/throttled-log.ts';
import { isJsonObject, isObject, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import { writeExact } from '../../core/protocol/json-text.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { RecentNames } from '../../core/sessions/recent-names.ts';
import { HookBodyError, readContent } from './hook-content.ts';

/** An event that a server has delivered. */
export interface ReceivedEvent {
  readonly id: string;
  readonly name: string;
  /** When it happened, in ISO 8601. */
  readonly timestamp: string;
  /** Untrusted, as the result of a tool is. */
  readonly data: JsonObject;
  /** Everything up to here was delivered: `client.subscribe(…, { since: cursor })` continues here. Undefined: the server cannot replay. */
  readonly cursor: string | undefined;
  /** The id of the subscription, from the header `X-MCP-Subscription-Id`, which no signature covers. */
  readonly subscription: string | undefined;
}

/** Some events were skipped, or may have been. Delivery continues after them. */
export interface ReceivedGap extends Pick<ReceivedEvent, 'cursor' | 'subscription'> {}

/** The server has ended a subscription. */
export interface ReceivedEnd extends Pick<ReceivedEvent, 'subscription'> {
  readonly error: { readonly code: number; readonly message: string; readonly data: unknown };
}

/** The names of the deliveries that were received: a `Set` of texts, or a durable one. */
export interface ReceivedIds {
  has(key: string): boolean | Promise<boolean>;
  add(key: string): unknown;
}

/** Secrets as text: `whsec_`, and 24 to 64 bytes in base64. */
export type ReceiverSecrets = string | readonly string[];

export interface ReceiverOptions {
  /**
   * The secrets of the subscriptions that deliver here, at most 64; during a rotation the old and the new one. Or a function that
   * returns those of a subscription, whose id comes from a header that no signature covers: give each subscription a secret of its own.
   * If it returns undefined, the subscription is not known yet, and the server delivers again; if it returns no secret, it is rejected.
   */
  readonly secrets:
    | ReceiverSecrets
    | ((subscription: string | undefined) => ReceiverSecrets | undefined | Promise<ReceiverSecrets | undefined>);
  /**
   * Takes an event. The server has its answer when the returned promise resolves, so store the event before that, and work on it
   * afterwards. If it rejects, the server delivers the event again.
   */
  onEvent(event: ReceivedEvent): unknown;
  /** Learns that events were skipped. */
  onGap?(gap: ReceivedGap): unknown;
  /** Learns that a server has ended a subscription. */
  onTerminated?(end: ReceivedEnd): unknown;
  /**
   * Remembers what was received, by a text of 43 characters. Default: the last 10,000 deliveries, in memory. A durable one also
   * recognizes those that come again after a restart.
   */
  readonly received?: ReceivedIds;
  /** Longest body, in bytes, at most 4 MiB. Default 512 KiB. A longer one gets 413. */
  readonly maxBytes?: number;
  /** Milliseconds in which a body must arrive, and again in which it must be taken. Default 5,000; then the server repeats it. */
  readonly timeoutMs?: number;
  /** Milliseconds by which the time of a signature may differ, before or after. Default 300,000; at most an hour. */
  readonly toleranceMs?: number;
  /** Receives what the callbacks throw. Default: stderr. */
  readonly log?: OperatorLog;
  readonly clock?: Clock;
}

/** A receiver of events, for each kind of HTTP server. */
export interface Receiver {
  /**
   * Answers a request. Never rejects.
   *
   * @example export const POST = hook.fetch;
   */
  readonly fetch: (request: Request) => Promise<Response>;
  /**
   * Answers a request of `node:http`. Mount it before any body parser: the signature covers the bytes. Never rejects.
   *
   * @example app.post('/events', hook.node);
   */
  readonly node: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
}

const MIB = 1024 ** 2;
const MAX_SECRETS = 64;
const MAX_RECEIVED = 10_000;
/** Deliveries at once, and the bytes of their bodies. */
const MAX_OPEN = 1_000;
const MAX_OPEN_BYTES = 64 * MIB;
const MAX_CHALLENGE = 4_096;
const MAX_ID = 1_024;
const DEFAULTS = { maxBytes: MIB / 2, timeoutMs: 5_000, toleranceMs: 300_000 } as const;
const JSON_TYPE = { 'content-type': 'application/json' };

const ROWS: option.Rows<ReceiverOptions> = {
  secrets: option.needed((given) => (option.isFunction(given) ? undefined : secretsProblem(given))),
  onEvent: option.needed(option.functional),
  onGap: option.functional,
  onTerminated: option.functional,
  received: option.expected(
    'an object with "has" and "add", such as a Set',
    (value) => isObject(value) && option.isFunction(value.has) && option.isFunction(value.add),
  ),
  maxBytes: option.whole(1, 4 * MIB),
  timeoutMs: option.duration,
  toleranceMs: option.whole(1, 3_600_000),
  log: option.functional,
  clock: option.clock,
};

/** A request, whatever server it has arrived at. */
interface Arrival {
  readonly method: string;
  header(name: string): string | undefined;
  /** Undefined: something has read it. */
  readonly body: AsyncIterable<Uint8Array> | undefined;
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text?: string;
}

/** A request that is answered without a callback. */
class Refusal extends Error {
  readonly answer: Answer;

  constructor(answer: Answer) {
    super(`answered with ${answer.status}`);
    this.answer = answer;
  }
}

const AGAIN: Answer = { status: 503, headers: { 'retry-after': '1' } };

/**
 * Receives the events that MCP servers deliver to a URL of this program (docs/event-webhooks.md).
 *
 * @throws {TypeError | RangeError} for an invalid option; the message contains no secret
 * @example
 * const hook = receiver({ secrets: process.env.EVENTS_SECRET ?? '', onEvent: ({ id, data }) => queue.add(id, data) });
 * http.createServer(hook.node).listen(8080);
 */
export function receiver(options: ReceiverOptions): Receiver {
  option.check('receiver: ', options, ROWS);
  const deliveries = new EventReceiver(options);
  return {
    fetch: async (request) => {
      const { status, headers, text } = await deliveries.answer({
        method: request.method,
        header: (name) => request.headers.get(name) ?? undefined,
        body: request.bodyUsed ? undefined : (request.body ?? NO_BODY),
      });
      return new Response(text ?? null, { status, ...(headers && { headers }) });
    },
    node: async (request, response) => {
      const { status, headers, text } = await deliveries.answer({
        method: request.method ?? '',
        header: (name) => [request.headers[name] ?? []].flat().join(', ') || undefined,
        // Its connection still has to carry the answer.
        body: request.readableDidRead ? undefined : request.iterator({ destroyOnReturn: false }),
      });
      // The rest of an unread body would be taken for the next request.
      const closes = request.readableEnded ? {} : { connection: 'close' };
      response.on('error', () => {});
      response.writeHead(status, { ...headers, ...closes }).end(text);
    },
  };
}

const NO_BODY: AsyncIterable<Uint8Array> = { async *[Symbol.asyncIterator]() {} };

class EventReceiver {
  readonly #options: ReceiverOptions;
  readonly #bounds: Required<Pick<ReceiverOptions, keyof typeof DEFAULTS>>;
  readonly #clock: Clock;
  readonly #log: OperatorLog;
  readonly #received: ReceivedIds;
  /** By key: the deliveries that a callback is taking. */
  readonly #taking = new Map<string, Promise<void>>();
  #open = 0;
  #bytes = 0;

  constructor(options: ReceiverOptions) {
    const { maxBytes, timeoutMs, toleranceMs } = options;
    this.#options = options;
    this.#bounds = { ...DEFAULTS, ...option.withoutUndefined({ maxBytes, timeoutMs, toleranceMs }) };
    this.#clock = options.clock ?? systemClock;
    this.#log = throttledLog(options.log ?? stderrLog, this.#clock);
    this.#received = options.received ?? new RecentNames(MAX_RECEIVED);
  }

  /** Never rejects. */
  async answer(arrival: Arrival): Promise<Answer> {
    if (arrival.method !== 'POST') return { status: 405, headers: { allow: 'POST' } };
    if (this.#open >= MAX_OPEN || this.#bytes >= MAX_OPEN_BYTES) return AGAIN;
    this.#open += 1;
    let bytes = 0;
    try {
      const body = await this.#read(arrival, (more) => {
        bytes += more;
        this.#bytes += more;
      });
      return await this.#receive(arrival, body);
    } catch (error) {
      if (error instanceof Refusal) return error.answer;
      this.#log('error', `receiver: a delivery was not taken, and the server delivers it again: ${messageOf(error)}`);
      return AGAIN;
    } finally {
      this.#open -= 1;
      this.#bytes -= bytes;
    }
  }

  /** @throws {Refusal} */
  async #read({ header, body }: Arrival, count: (bytes: number) => void): Promise<Buffer> {
    const { maxBytes, timeoutMs } = this.#bounds;
    // Signatures cover the bytes as they came, and nothing else unpacks them.
    if (!/^(?:identity)?$/i.test(header('content-encoding') ?? '')) throw new Refusal({ status: 415 });
    if (Number(header('content-length') ?? 0) > maxBytes) throw new Refusal({ status: 413 });
    if (!body) {
      this.#log('error', 'receiver: the body was already read. Mount the receiver before any body parser');
      throw new Refusal({ status: 500 });
    }
    const iterator = body[Symbol.asyncIterator]();
    const chunks: Uint8Array[] = [];
    let total = 0;
    let isOver = false;
    const read = async (): Promise<Buffer> => {
      for (;;) {
        const { done, value } = await iterator.next();
        if (done === true || isOver) return Buffer.concat(chunks);
        total += value.length;
        count(value.length);
        if (total > maxBytes) throw new Refusal({ status: 413 });
        chunks.push(value);
      }
    };
    const late = (): Refusal => new Refusal({ status: 408 });
    try {
      return await within(read(), this.#clock, timeoutMs, late);
    } catch (error) {
      isOver = true;
      void Promise.resolve(iterator.return?.()).catch(() => {});
      throw error instanceof Refusal ? error : new Refusal({ status: 400 });
    }
  }

  /** @throws {Refusal} and what a callback throws */
  async #receive({ header }: Arrival, body: Buffer): Promise<Answer> {
    const { timeoutMs, toleranceMs } = this.#bounds;
    const [id, timestamp, signature] = ['id', 'timestamp', 'signature'].map((name) => header(`webhook-${name}`));
    const subscription = header('x-mcp-subscription-id')?.slice(0, 256);
    const secrets = await within(
      this.#secrets(subscription),
      this.#clock,
      timeoutMs,
      () => new Error('no secrets in time'),
    );
    const verified = verifyWebhook(secrets, { id, timestamp, signature }, body, this.#clock.date(), toleranceMs);
    // A stranger learns nothing of the reason.
    if (!verified.ok) return { status: 401 };
    const delivery = readDelivery(body, subscription);
    if (!delivery) return { status: 400, text: 'expected an event, or a control message, of SEP-3415\n' };
    if (delivery.is === 'verification')
      return { status: 200, headers: JSON_TYPE, text: writeExact({ challenge: delivery.challenge }) };
    if (delivery.is === 'unknown') return { status: 204 };
    // The same event of another subscription is another delivery, and only the secret says reliably whose it is.
    const name = delivery.is === 'event' ? `event ${delivery.event.id}` : `message ${verified.id}`;
    const keys = verified.by.map((secret) =>
      createHmac('sha256', secret).update(`received ${name}`).digest('base64url'),
    );
    const late = (): Refusal => new Refusal(AGAIN);
    await within(
      this.#once(keys, () => this.#take(delivery)),
      this.#clock,
      timeoutMs,
      late,
    );
    return { status: 204 };
  }

  /** @throws {Refusal} for a subscription that is not known yet */
  async #secrets(subscription: string | undefined): Promise<readonly Buffer[]> {
    const { secrets } = this.#options;
    const given = typeof secrets === 'function' ? await secrets(subscription) : secrets;
    // A delivery may overtake the answer to `events/subscribe` (SEP-3415, "Subscribe and delivery race").
    if (given === undefined) throw new Refusal(AGAIN);
    return [given]
      .flat()
      .slice(0, MAX_SECRETS)
      .flatMap((each) => readWebhookSecret(each) ?? []);
  }

  /** Takes a delivery unless it was taken under one of its names. Equal ones at the same moment wait for the first. */
  async #once(keys: readonly string[], take: () => unknown): Promise<void> {
    const taking = keys.flatMap((key) => this.#taking.get(key) ?? [])[0];
    if (taking) return taking;
    if (this.#taking.size >= MAX_OPEN) throw new Refusal(AGAIN);
    const work = (async () => {
      for (const key of keys) if (await this.#received.has(key)) return;
      await take();
      // It is taken: a memory that fails now must not bring it again.
      for (const key of keys)
        try {
          await this.#received.add(key);
        } catch (error) {
          this.#log('warning', `receiver: a delivery was taken, and could not be remembered: ${messageOf(error)}`);
        }
    })().finally(() => {
      for (const key of keys) this.#taking.delete(key);
    });
    for (const key of keys) this.#taking.set(key, work);
    return work;
  }

  #take(delivery: TakenDelivery): unknown {
    const { onEvent, onGap, onTerminated } = this.#options;
    switch (delivery.is) {
      case 'event':
        return onEvent.call(this.#options, delivery.event);
      case 'gap':
        return onGap?.call(this.#options, delivery.gap);
      case 'terminated':
        return onTerminated?.call(this.#options, delivery.end);
    }
  }
}

type TakenDelivery =
  | { readonly is: 'event'; readonly event: ReceivedEvent }
  | { readonly is: 'gap'; readonly gap: ReceivedGap }
  | { readonly is: 'terminated'; readonly end: ReceivedEnd };

type Delivery =
  | TakenDelivery
  | { readonly is: 'verification'; readonly challenge: string }
  | { readonly is: 'unknown' };

/** Reads a verified body. @returns undefined for one that is neither an event nor a control message */
function readDelivery(bytes: Buffer, subscription: string | undefined): Delivery | undefined {
  let body: unknown;
  try {
    body = readContent('json', bytes);
  } catch (error) {
    if (error instanceof HookBodyError) return undefined;
    throw error;
  }
  if (!isJsonObject(body)) return undefined;
  const cursor = typeof body.cursor === 'string' ? body.cursor : undefined;
  switch (body.type) {
    case undefined:
    case null: {
      const { eventId: id, name, timestamp, data } = body;
      const isNamed = option.isFilled(id) && id.length <= MAX_ID && option.isFilled(name);
      if (!isNamed || typeof timestamp !== 'string' || !isJsonObject(data)) return undefined;
      return { is: 'event', event: { id, name, timestamp, data, cursor, subscription } };
    }
    case 'verification': {
      const { challenge } = body;
      const isChallenge = option.isFilled(challenge) && challenge.length <= MAX_CHALLENGE;
      return isChallenge ? { is: 'verification', challenge } : undefined;
    }
    case 'gap':
      return { is: 'gap', gap: { cursor, subscription } };
    case 'terminated': {
      const { code, message, data } = isObject(body.error) ? body.error : {};
      const error = { code: Number.isSafeInteger(code) ? Number(code) : 0, message: String(message ?? ''), data };
      return { is: 'terminated', end: { error, subscription } };
    }
    default:
      // A later version of the protocol: a rejection would bring it again and again.
      return typeof body.type === 'string' ? { is: 'unknown' } : undefined;
  }
}

/** Never contains a secret, because errors are logged. */
function secretsProblem(given: unknown): string | undefined {
  const all: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (all.length === 0 || all.length > MAX_SECRETS) return `expected 1 to ${MAX_SECRETS} secrets, got ${all.length}`;
  const isWrong = all.some((each) => typeof each !== 'string' || !readWebhookSecret(each));
  return isWrong ? 'expected "whsec_" and 24 to 64 bytes in base64, got something else' : undefined;
}
