/**
 * A subscription of events whose server delivers them to a URL (SEP-3415; experimental): subscribes, refreshes before the grant ends,
 * subscribes again from its cursor if the grant has ended, and shows how the delivery goes.
 */
import { randomBytes } from 'node:crypto';
import { delayAfter } from '../core/kernel/back-off.ts';
import { afterAny, type Clock, type Timer } from '../core/kernel/clock.ts';
import { readWebhookSecret } from '../core/kernel/standard-webhooks.ts';
import { ErrorCode } from '../core/protocol/errors.ts';
import { isObject, type JsonObject } from '../core/protocol/json.ts';
import * as option from '../core/protocol/option-rows.ts';
import { ErrorResponse } from './client-errors.ts';
import { FINAL_CODES } from './server-events.ts';

/** The options of `client.subscribe`. */
export interface SubscribeOptions {
  /** The https URL to which the server delivers: the address of a `receiver` of `troupe/webhooks`. */
  readonly url: string | URL;
  /** Signs the deliveries: `whsec_`, and 24 to 64 bytes in base64. Default: a random one, `secret` of the subscription. */
  readonly secret?: string | undefined;
  /** Milliseconds until the subscription ends unless it is refreshed; null: without an end. The server may grant less. Default: as the server likes. */
  readonly ttlMs?: number | null | undefined;
  /** The cursor of an earlier event or subscription. Default: from now. */
  readonly since?: string | undefined;
  /** Milliseconds: older events are not delivered. */
  readonly maxAgeMs?: number | undefined;
  /** Is called when the state, the error or the delivery has changed. */
  readonly onChange?: ((subscription: CallbackSubscription) => void) | undefined;
  /** Learns from the server that events were skipped. A server of SEP-3415 tells the receiver, too. */
  readonly onGap?: ((cursor: string | undefined) => void) | undefined;
}

/**
 * - `active`: the server has granted it, and delivers.
 * - `failing`: the last refresh has failed; the grant has not ended.
 * - `lapsed`: the grant has ended, and refreshes fail. The first that succeeds continues at the cursor.
 * - `ended`: it was unsubscribed, the server rejects it for good, or the client is closed.
 */
export type SubscriptionState = 'active' | 'failing' | 'lapsed' | 'ended';

/** The delivery, as the server has reported it with the last refresh. Undefined: it has reported nothing. */
export interface DeliveryStatus {
  /** False if the server had suspended the delivery, which the refresh has resumed. */
  readonly active: boolean;
  /** One of `connection_refused`, `timeout`, `tls_error`, `http_4xx`, `http_5xx` and `challenge_failed`. */
  readonly lastError: string | undefined;
  /** ISO 8601. */
  readonly lastDeliveryAt: string | undefined;
  readonly failedSince: string | undefined;
}

/** The connection of a subscription. */
export interface SubscriptionHost {
  readonly clock: Clock;
  send(method: string, params: JsonObject): Promise<unknown>;
  /** Calls back when the client closes, until the returned function is called. */
  closes(end: () => void): () => void;
  /** Reports what a callback of the program has thrown. */
  report(error: unknown): void;
}

const BACK_OFF = { fromMs: 1_000, toMs: 60_000 };
/** Milliseconds after which a subscription without an end is refreshed, which shows its delivery and resumes it. */
const LONGEST_MS = 86_400_000;
/** Milliseconds of a grant that has ended by the clock of this machine when it arrives: that clock is wrong. */
const UNCLEAR_MS = 60_000;
const LEAST_MS = 1_000;
const NOT_FOUND: ReadonlySet<number> = new Set([ErrorCode.EventNotFound, ErrorCode.SketchNotFound]);
/** The event type, or its method, is not there: while a server is deployed, that passes. */
const MAY_RETURN: ReadonlySet<number> = new Set([...NOT_FOUND, ErrorCode.MethodNotFound]);

const ROWS: option.Rows<SubscribeOptions> = {
  url: option.needed(option.expected('a URL', (value) => URL.canParse(String(value)))),
  // The secret is in no message.
  secret: (given) =>
    typeof given === 'string' && readWebhookSecret(given)
      ? undefined
      : 'expected "whsec_" and 24 to 64 bytes in base64, got something else',
  ttlMs: (given) => (given === null ? undefined : option.duration(given)),
  since: option.filled,
  maxAgeMs: option.expected('whole milliseconds', (value) => option.isWhole(value, 0)),
  onChange: option.functional,
  onGap: option.functional,
};

/** Made by `client.subscribe`. Does not keep the process alive. */
export class CallbackSubscription {
  readonly name: string;
  readonly arguments: JsonObject;
  readonly url: string;
  /** The secret of its deliveries. A later process that subscribes with it, and with the cursor, continues this subscription. */
  readonly secret: string;
  readonly #options: SubscribeOptions;
  readonly #host: SubscriptionHost;
  #id = '';
  #state: SubscriptionState = 'lapsed';
  #cursor: string | undefined;
  #error: Error | undefined;
  #delivery: DeliveryStatus | undefined;
  /** By the monotonic clock; undefined: it does not end. */
  #endsAt: number | undefined;
  #refreshBefore: number | undefined;
  #failures = 0;
  #timer: Timer | undefined;
  #lapse: Timer | undefined;
  #running: Promise<void> | undefined;
  readonly #unfollow: () => void;

  /** @internal Use `client.subscribe`. @throws {TypeError | RangeError} for an invalid option */
  constructor(name: string, args: JsonObject, options: SubscribeOptions, host: SubscriptionHost) {
    option.check('subscribe: ', options, ROWS);
    this.name = name;
    this.arguments = args;
    this.url = new URL(options.url).href;
    this.secret = options.secret ?? `whsec_${randomBytes(32).toString('base64')}`;
    this.#options = options;
    this.#cursor = options.since;
    this.#host = host;
    this.#unfollow = host.closes(() => this.#end(undefined));
  }

  /** The id of the subscription at the server: the header `X-MCP-Subscription-Id` of its deliveries. */
  get id(): string {
    return this.#id;
  }

  get state(): SubscriptionState {
    return this.#state;
  }

  /** The position up to which the server has delivered, as far as this client knows. Undefined: the server cannot replay. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  /** The error of the last refresh; undefined if it has succeeded. */
  get error(): Error | undefined {
    return this.#error;
  }

  get delivery(): DeliveryStatus | undefined {
    return this.#delivery;
  }

  /** When the grant ends, in milliseconds since 1970 by the clock of the server; undefined: never. */
  get refreshBefore(): number | undefined {
    return this.#refreshBefore;
  }

  /** Remembers the cursor of an event that was received: if the grant ends, the subscription continues there. */
  received(cursor: string | undefined): void {
    if (cursor !== undefined && this.#state !== 'ended') this.#cursor = cursor;
  }

  /** @internal Subscribes for the first time. @throws what the server answers */
  async begin(): Promise<this> {
    await this.refresh();
    if (!this.#error) return this;
    this.#end(this.#error);
    throw this.#error;
  }

  /** Refreshes now, also to resume a delivery that the server has suspended. Resolves in either case: see `state` and `error`. */
  refresh(): Promise<void> {
    if (this.#state === 'ended') return Promise.resolve();
    this.#running ??= this.#refresh().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /**
   * Ends the subscription at the server. Idempotent.
   *
   * @throws {ClientError} if the server cannot be reached: the subscription then ends there by its time
   */
  async unsubscribe(): Promise<void> {
    if (this.#state === 'ended') return;
    this.#end(undefined);
    await this.#running;
    const { name, arguments: args, url } = this;
    try {
      await this.#host.send('events/unsubscribe', { name, arguments: args, delivery: { url } });
    } catch (error) {
      // It has ended already.
      if (!(error instanceof ErrorResponse) || !NOT_FOUND.has(error.code)) throw error;
    }
  }

  async #refresh(): Promise<void> {
    this.#timer?.cancel();
    const { ttlMs, maxAgeMs } = this.#options;
    const { name, arguments: args, url, secret } = this;
    const params: JsonObject = {
      ...{ name, arguments: args, delivery: { mode: 'webhook', url, secret } },
      // A live subscription ignores it; one that has ended begins there.
      cursor: this.#cursor ?? null,
      ...(ttlMs === undefined ? {} : { ttlMs }),
      ...(maxAgeMs === undefined ? {} : { maxAgeMs }),
    };
    const sentAt = this.#host.clock.now();
    try {
      const result = await this.#host.send('events/subscribe', params);
      if (this.#state !== 'ended') this.#granted(result, sentAt);
    } catch (error) {
      if (this.#state !== 'ended') this.#failed(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #granted(result: unknown, sentAt: number): void {
    const { id, refreshBefore, cursor, truncated, deliveryStatus } = isObject(result) ? result : {};
    const at = refreshBefore == null ? undefined : Date.parse(String(refreshBefore));
    if (!option.isFilled(id) || Number.isNaN(at))
      return this.#failed(
        new Error('events/subscribe: expected "id" and a date in "refreshBefore", got something else'),
      );
    const { clock } = this.#host;
    this.#id = id;
    this.#refreshBefore = at;
    if (typeof cursor === 'string') this.#cursor = cursor;
    this.#delivery = statusIn(deliveryStatus) ?? this.#delivery;
    this.#failures = 0;
    const left = at === undefined ? undefined : at - clock.date();
    const { ttlMs } = this.#options;
    // The wall clocks differ. No server grants more than the wish.
    const longest = ttlMs ?? Number.POSITIVE_INFINITY;
    const lasts = left === undefined ? undefined : Math.min(longest, left > 0 ? left : UNCLEAR_MS);
    this.#endsAt = lasts === undefined ? undefined : sentAt + lasts;
    this.#lapse?.cancel();
    this.#lapse = lasts === undefined ? undefined : afterAny(clock, lasts, () => this.#change('lapsed', this.#error));
    this.#later(Math.max(LEAST_MS, Math.min(LONGEST_MS, lasts === undefined ? LONGEST_MS : lasts / 2)));
    this.#change('active', undefined);
    if (truncated === true) this.#call(() => this.#options.onGap?.(this.#cursor));
  }

  #failed(error: Error): void {
    const isOver = this.#endsAt !== undefined && this.#host.clock.now() >= this.#endsAt;
    const code = error instanceof ErrorResponse ? error.code : 0;
    if (FINAL_CODES.has(code) && (isOver || !MAY_RETURN.has(code))) return this.#end(error);
    this.#failures += 1;
    this.#later(delayAfter(BACK_OFF, Math.min(this.#failures, 10)));
    this.#change(this.#id === '' || isOver ? 'lapsed' : 'failing', error);
  }

  #later(ms: number): void {
    this.#timer?.cancel();
    this.#timer = afterAny(this.#host.clock, ms, () => void this.refresh());
  }

  #end(error: Error | undefined): void {
    if (this.#state === 'ended') return;
    this.#timer?.cancel();
    this.#lapse?.cancel();
    this.#unfollow();
    this.#change('ended', error);
  }

  #change(state: SubscriptionState, error: Error | undefined): void {
    const isSame = this.#state === state && this.#error === error && state !== 'active';
    this.#state = state;
    this.#error = error;
    if (!isSame) this.#call(() => this.#options.onChange?.(this));
  }

  #call(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#host.report(error);
    }
  }
}

function statusIn(status: unknown): DeliveryStatus | undefined {
  if (!isObject(status) || typeof status.active !== 'boolean') return undefined;
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
  const { active, lastError, lastDeliveryAt, failedSince } = status;
  return { active, lastError: text(lastError), lastDeliveryAt: text(lastDeliveryAt), failedSince: text(failedSince) };
}
