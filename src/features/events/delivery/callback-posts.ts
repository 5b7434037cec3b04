/** Signs and sends the POSTs of all subscriptions, within the bounds of hosts and principals, and finds out what the answers mean. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { readWebhookSecret, signWebhook } from '../../../core/kernel/standard-webhooks.ts';
import type { SeenDelivery } from '../../../core/kernel/telemetry/telemetry.ts';
import { isObject } from '../../../core/protocol/json.ts';
import type { Core } from '../../../core/server/feature.ts';
import { Attempts } from '../../../core/store/attempts.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import { type AllowedOrigins, hostOf } from './callback-address.ts';
import { CallbackFailed, CallbackSender, type FailureCategory } from './callback-sender.ts';
import { type Verdict, verdictOf } from './delivery-attempts.ts';
import { type DeliveryLimits, DeliverySlots } from './delivery-slots.ts';
import { openSecrets, type SigningSecrets, type StoredSubscription } from './subscription-record.ts';

const LIMITS: DeliveryLimits = { all: 512, principal: 100, host: 50 };
/** Milliseconds for one POST, until its response is complete. */
const TIMEOUT_MS = 10_000;
/** Bytes of a body besides the data of its event. */
const ENVELOPE_BYTES = 4_096;

/** A POST: the value of `webhook-id`, and its body. */
interface CallbackPost {
  readonly id: string;
  readonly body: string;
  /** The `traceparent` of what has emitted its event. */
  readonly trace?: string | undefined;
}

export class CallbackPosts {
  readonly #core: Core;
  readonly #sender: CallbackSender;
  readonly #slots = new DeliverySlots(LIMITS);
  /** The attempts of all events. */
  readonly attempts: Attempts;

  constructor(core: Core, allowed: AllowedOrigins) {
    const { clock } = core.system;
    this.#core = core;
    this.#sender = new CallbackSender({ clock, allowed, timeoutMs: TIMEOUT_MS, perOrigin: LIMITS.host });
    this.attempts = new Attempts(core.system, 'event');
  }

  /** Sends a body. Never rejects. */
  async send(record: StoredSubscription, post: CallbackPost): Promise<Verdict> {
    const { log, clock, telemetry } = this.#core.system;
    const secrets = openSecrets(this.#core.keys.ring, record);
    if (!secrets) {
      log(
        'warning',
        `webhook ${record.id}: no key of this server opens its secret. It is delivered again once its client refreshes it`,
        {
          event: 'client',
        },
      );
      return { is: 'down', category: 'connection_refused' };
    }
    // A receiver may reject what is longer, and no attempt makes it shorter.
    const most = this.#core.limits.maxEventBytes + ENVELOPE_BYTES;
    if (Buffer.byteLength(post.body) > most) return { is: 'declined', category: 'http_4xx' };
    const began = clock.now();
    const span = telemetry?.deliver(seenDelivery(record, post));
    const verdict = await this.#post(record, secrets, post).then(
      (answer) => verdictOf(answer, clock.date()),
      (error: unknown): Verdict => ({ is: 'down', category: categoryOf(error) }),
    );
    const failure = verdict.is === 'accepted' ? undefined : verdict.category;
    span?.end({ error: failure, seconds: (clock.now() - began) / 1_000 });
    this.attempts.count(failure ?? 'done');
    return verdict;
  }

  /**
   * Asks an endpoint whether it wants deliveries. Never rejects.
   *
   * @returns undefined if it does
   */
  async challenge(record: StoredSubscription, secret: string): Promise<FailureCategory | undefined> {
    const challenge = randomBytes(32).toString('base64url');
    const post = {
      id: `msg_verification_${randomBytes(12).toString('base64url')}`,
      body: toText({ type: 'verification', challenge }),
    };
    let failure: FailureCategory | undefined;
    try {
      const { status, body } = await this.#post(record, { current: secret }, post, true);
      if (status >= 500) failure = 'http_5xx';
      else if (status < 200 || status >= 300) failure = 'http_4xx';
      else if (!isEcho(body, challenge)) failure = 'challenge_failed';
    } catch (error) {
      failure = categoryOf(error);
    }
    this.attempts.count(failure ?? 'verified');
    return failure;
  }

  async #post(
    { principal, url: text, id }: StoredSubscription,
    secrets: SigningSecrets,
    post: CallbackPost,
    reads = false,
  ): Promise<{ status: number; retryAfter: string | undefined; body: string }> {
    const { clock } = this.#core.system;
    const url = new URL(text);
    await this.#slots.take(principal, url.host);
    let late = false;
    try {
      // Each attempt has a time and a signature of its own.
      const now = clock.date();
      const seconds = Math.floor(now / 1_000);
      const { current, previous, previousUntil = 0 } = secrets;
      const keys = [current, ...(previous !== undefined && now < previousUntil ? [previous] : [])];
      const signature = signWebhook(
        keys.flatMap((key) => readWebhookSecret(key) ?? []),
        post.id,
        seconds,
        post.body,
      );
      const headers = {
        'webhook-id': post.id,
        'webhook-timestamp': String(seconds),
        'webhook-signature': signature,
        'x-mcp-subscription-id': id,
      };
      return await this.#sender.post(url, headers, post.body, reads);
    } catch (error) {
      late = categoryOf(error) === 'timeout';
      throw error;
    } finally {
      this.#slots.free(principal, url.host, late);
    }
  }

  close(): void {
    this.#sender.close();
  }
}

function seenDelivery(
  { name, url: text, failures = 0 }: StoredSubscription,
  { id, trace }: CallbackPost,
): SeenDelivery {
  const url = new URL(text);
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  return { event: name, id, address: hostOf(url), port, failures, traceparent: trace };
}

function categoryOf(error: unknown): FailureCategory {
  return error instanceof CallbackFailed ? error.category : 'connection_refused';
}

function isEcho(body: string, challenge: string): boolean {
  let answer: unknown;
  try {
    answer = fromText(body, 'the answer to a challenge');
  } catch {
    return false;
  }
  const echo = isObject(answer) && typeof answer.challenge === 'string' ? answer.challenge : '';
  const [given, expected] = [Buffer.from(echo), Buffer.from(challenge)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
