/** The verifiers of webhooks: HMAC of the raw body as GitHub, Stripe, Slack and Standard Webhooks sign it, and others by description. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { verifyWebhook } from '../../core/kernel/standard-webhooks.ts';
import { describe, isObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { HookRequest, HookVerifier } from './hook-request.ts';

/** The secret of a webhook. */
export interface HookSecret {
  /**
   * The secret that the sender signs with, such as `process.env.GITHUB_SECRET`; during a rotation the old and the new one. Each has
   * at least 8 characters and no space around it. At most 8.
   */
  readonly secret: string | readonly string[] | undefined;
}

/** The secret of a webhook whose signatures have a time. */
export interface DatedHookSecret extends HookSecret {
  /** Milliseconds by which the time of a signature may differ from that of this server, before or after. Default 300,000; at most an hour. */
  readonly toleranceMs?: number;
}

/** The secret of a webhook whose signatures cover the body alone. */
export interface BodyHookSecret extends HookSecret {
  /**
   * `body` (default): a delivery is a repeat if its body is, because nothing else is signed. `id`: if its id is. Then two deliveries
   * with equal bodies both count, and so does a recorded request that a stranger sends again under another id.
   */
  readonly repeats?: 'body' | 'id';
}

/** A signature of the body alone, and where a request has it. */
export interface HmacOptions extends BodyHookSecret {
  /** The header with the signature, such as `X-Shopify-Hmac-Sha256`. */
  readonly header: string;
  /** Default `hex`. */
  readonly encoding?: 'hex' | 'base64';
  /** Default `sha256`. */
  readonly algorithm?: 'sha256' | 'sha512';
  /** The text before the signature, such as `sha256=`. Default: none. */
  readonly prefix?: string;
  /** The header with the id of a delivery. Nothing signs it, so that it decides nothing unless `repeats` says so. */
  readonly idHeader?: string;
  /** The header with the kind of a delivery. Nothing signs it. */
  readonly typeHeader?: string;
}

const TOLERANCE_MS = 300_000;
const MAX_TOLERANCE_MS = 3_600_000;
const MIN_SECRET = 8;
const MAX_SECRETS = 8;
/** Maximum number of signatures of one request that are compared: a stranger may have written the header. */
const MAX_SIGNATURES = 8;
const HEX_SHA256 = /^[0-9a-f]{64}$/i;
const SECONDS = /^\d{1,12}$/;

const SECRET = option.needed((given) => secretsProblem(given));
const TOLERANCE = option.expected(`whole milliseconds from 1 to ${MAX_TOLERANCE_MS}`, (value) =>
  option.isWhole(value, 1, MAX_TOLERANCE_MS),
);
const HEADER = option.expected(
  'the name of a header',
  (value) => typeof value === 'string' && /^[\w!#$%&'*+\-.^`|~]{1,100}$/.test(value),
);
const PLAIN: option.Rows<BodyHookSecret> = { secret: SECRET, repeats: option.oneOf('body', 'id') };
const DATED: option.Rows<DatedHookSecret> = { secret: SECRET, toleranceMs: TOLERANCE };
const HMAC: option.Rows<HmacOptions> = {
  ...PLAIN,
  header: option.needed(HEADER),
  encoding: option.oneOf('hex', 'base64'),
  algorithm: option.oneOf('sha256', 'sha512'),
  prefix: option.anyText,
  idHeader: HEADER,
  typeHeader: HEADER,
};

/**
 * Verifies the deliveries of GitHub by `X-Hub-Signature-256`. GitHub signs no time and no id, so that a delivery is a repeat if its
 * body is, unless `repeats` is `id`.
 *
 * @throws {TypeError} if the secret is missing or too short; the message does not contain it
 * @example server.webhook('/hooks/github', { verify: github({ secret: process.env.GITHUB_SECRET }), to: handle });
 */
export function github(options: BodyHookSecret): HookVerifier {
  option.check('github: ', options, PLAIN);
  return hmac({
    ...{ ...options, header: 'x-hub-signature-256', prefix: 'sha256=' },
    ...{ idHeader: 'x-github-delivery', typeHeader: 'x-github-event' },
  });
}

/**
 * Verifies an HMAC of the body in a header, as Shopify, Linear and others send it. A delivery is a repeat if its body is.
 *
 * @throws {TypeError} for an invalid option; the message does not contain the secret
 * @example hmac({ secret, header: 'X-Shopify-Hmac-Sha256', encoding: 'base64', typeHeader: 'X-Shopify-Topic' });
 */
export function hmac(options: HmacOptions): HookVerifier {
  option.check('hmac: ', options, HMAC);
  const { header, encoding = 'hex', algorithm = 'sha256', prefix = '', idHeader, typeHeader, repeats } = options;
  const keys = secretsIn(options).map((text) => Buffer.from(text));
  return (request) => {
    const value = request.only(header);
    if (value === undefined || !value.startsWith(prefix)) return undefined;
    const given = decoded(value.slice(prefix.length), encoding);
    if (!given || !isSigned(keys, [request.body], [given], algorithm)) return undefined;
    const id = idHeader === undefined ? undefined : request.only(idHeader);
    return {
      ...{ id, once: repeats === 'id' ? id : undefined },
      type: typeHeader === undefined ? undefined : request.only(typeHeader),
    };
  };
}

/**
 * Verifies the events of Stripe by `Stripe-Signature`. The secret is used as it is, with its `whsec_`. The `id` of the event names
 * the delivery, and its `type` is the kind.
 *
 * @throws {TypeError | RangeError} for an invalid option; the message does not contain the secret
 * @example server.webhook('/hooks/stripe', { verify: stripe({ secret: process.env.STRIPE_SECRET }), to: handle });
 */
export function stripe(options: DatedHookSecret): HookVerifier {
  option.check('stripe: ', options, DATED);
  const keys = secretsIn(options).map((text) => Buffer.from(text));
  return (request) => {
    const parts = (request.only('stripe-signature') ?? '').split(',', 2 * MAX_SIGNATURES).map((part) => part.trim());
    const valuesOf = (name: string): readonly string[] =>
      parts.flatMap((part) => (part.startsWith(`${name}=`) ? [part.slice(name.length + 1)] : []));
    const [seconds, second] = valuesOf('t');
    if (seconds === undefined || second !== undefined || !isRecent(seconds, request, options)) return undefined;
    const given = valuesOf('v1').flatMap((text) => decoded(text, 'hex') ?? []);
    if (!isSigned(keys, [`${seconds}.`, request.body], given)) return undefined;
    const { id, type } = membersOf(request);
    return { once: id, id, type };
  };
}

/**
 * Verifies the requests of Slack by `X-Slack-Signature`, and answers its `url_verification`. The `event_id` names an event; the
 * signature names a command or an interaction, which have none.
 *
 * @throws {TypeError | RangeError} for an invalid option; the message does not contain the secret
 * @example server.webhook('/hooks/slack', { verify: slack({ secret: process.env.SLACK_SIGNING_SECRET }), to: handle });
 */
export function slack(options: DatedHookSecret): HookVerifier {
  option.check('slack: ', options, DATED);
  const keys = secretsIn(options).map((text) => Buffer.from(text));
  return (request) => {
    const seconds = request.only('x-slack-request-timestamp') ?? '';
    const signature = request.only('x-slack-signature') ?? '';
    const given = signature.startsWith('v0=') ? decoded(signature.slice(3), 'hex') : undefined;
    if (!given || !isRecent(seconds, request, options)) return undefined;
    if (!isSigned(keys, [`v0:${seconds}:`, request.body], [given])) return undefined;
    const { event_id: event, type, challenge } = membersOf(request);
    if (type === 'url_verification') return { type, reply: challenge ?? '' };
    // Not the header as it came: hexadecimal digits have two cases, and both are genuine.
    return { once: event ?? `v0=${given.toString('hex')}`, id: event, type: eventTypeOf(request) ?? type };
  };
}

/**
 * Verifies deliveries by the specification Standard Webhooks, and those of Svix, whose headers have other names. A secret is base64
 * after `whsec_` or `v1,whsec_`.
 *
 * @throws {TypeError | RangeError} for an invalid option; the message does not contain the secret
 * @example server.webhook('/hooks/billing', { verify: standardWebhooks({ secret: process.env.BILLING_SECRET }), to: handle });
 */
export function standardWebhooks(options: DatedHookSecret): HookVerifier {
  option.check('standardWebhooks: ', options, DATED);
  const keys = secretsIn(options).map(standardKey);
  return (request) => {
    const prefix = request.header('webhook-signature') === undefined ? 'svix' : 'webhook';
    const [id, timestamp, signature] = ['id', 'timestamp', 'signature'].map((name) =>
      request.only(`${prefix}-${name}`),
    );
    const verified = verifyWebhook(keys, { id, timestamp, signature }, request.body, request.now, options.toleranceMs);
    return verified.ok ? { once: verified.id, id: verified.id, type: membersOf(request).type } : undefined;
  };
}

/** True if one of the given signatures is that of one of the keys. Its time does not depend on which. */
function isSigned(
  keys: readonly Uint8Array[],
  parts: readonly (string | Uint8Array)[],
  given: readonly Uint8Array[],
  algorithm: 'sha256' | 'sha512' = 'sha256',
): boolean {
  let matches = false;
  for (const key of keys) {
    const signer = createHmac(algorithm, key);
    for (const part of parts) signer.update(part);
    const expected = signer.digest();
    for (const each of given) if (each.length === expected.length && timingSafeEqual(each, expected)) matches = true;
  }
  return matches;
}

function isRecent(seconds: string, { now }: HookRequest, { toleranceMs = TOLERANCE_MS }: DatedHookSecret): boolean {
  return SECONDS.test(seconds) && Math.abs(now - Number(seconds) * 1_000) <= toleranceMs;
}

/** @returns undefined for a text in another encoding, part of which Node would decode */
function decoded(text: string, encoding: 'hex' | 'base64'): Buffer | undefined {
  if (text.length > 128) return undefined;
  const bytes = Buffer.from(text, encoding);
  if (encoding === 'hex') return HEX_SHA256.test(text) || /^[0-9a-f]{128}$/i.test(text) ? bytes : undefined;
  return isBase64Of(bytes, text) ? bytes : undefined;
}

/** True for the base64 of these bytes, with or without its padding, in the alphabet of MIME or of URLs. */
function isBase64Of(bytes: Buffer, text: string): boolean {
  return bytes.toString('base64url') === text.replace(/=+$/, '').replace(/\+/g, '-').replace(/\//g, '_');
}

interface BodyMembers {
  readonly id?: string | undefined;
  readonly type?: string | undefined;
  readonly event_id?: string | undefined;
  readonly challenge?: string | undefined;
}

/** The texts in a verified body. */
function membersOf(request: HookRequest): BodyMembers {
  const body = request.json();
  if (!isObject(body)) return {};
  const text = (value: unknown): string | undefined => (option.isFilled(value) ? value : undefined);
  const { id, type, event_id: event, challenge } = body;
  return { id: text(id), type: text(type), event_id: text(event), challenge: text(challenge) };
}

/** The kind of the event that an envelope of Slack contains. */
function eventTypeOf(request: HookRequest): string | undefined {
  const body = request.json();
  const event = isObject(body) ? body.event : undefined;
  return isObject(event) && option.isFilled(event.type) ? event.type : undefined;
}

function secretsIn({ secret }: HookSecret): readonly string[] {
  return typeof secret === 'string' ? [secret] : (secret ?? []);
}

/** Never contains a secret, because errors are logged. */
function secretsProblem(given: unknown): string | undefined {
  const all: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (all.length === 0 || all.length > MAX_SECRETS) return `expected 1 to ${MAX_SECRETS} secrets, got ${all.length}`;
  for (const each of all) {
    if (typeof each !== 'string')
      return `expected a secret as a string, got ${describe(each)}. Set the environment variable that it is read from`;
    if (each.length < MIN_SECRET) return `expected at least ${MIN_SECRET} characters, got ${each.length}`;
    if (each.trim() !== each) return 'expected a secret without spaces or line breaks around it';
  }
  return undefined;
}

/** @throws {TypeError} for a secret that is not base64 */
function standardKey(text: string): Buffer {
  // Supabase shows its secrets with the version of the signature in front.
  const encoded = text.replace(/^(?:v1,)?whsec_/, '');
  const key = Buffer.from(encoded, 'base64');
  if (key.length >= MIN_SECRET && key.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '')) return key;
  throw new TypeError('standardWebhooks: secret: expected base64 after "whsec_", got other text');
}
