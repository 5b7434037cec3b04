/** Signatures of webhooks by the specification Standard Webhooks: secrets, signing and verifying. */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The prefix of a secret. */
const PREFIX = 'whsec_';
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const MIN_BYTES = 24;
const MAX_BYTES = 64;
/** Maximum number of signatures of one delivery that are compared: a header is written by a stranger. */
const MAX_SIGNATURES = 8;
/** An id is the value of a header and a part of what is signed. */
const ID = /^[!-~]{1,256}$/;

/** True for a text that may be the id of a delivery, which is an HTTP header: visible ASCII, at most 256 characters. */
export function isWebhookId(text: string): boolean {
  return ID.test(text);
}

/**
 * Reads a secret: `whsec_`, then 24 to 64 bytes in base64.
 *
 * @returns undefined for any other text
 * @example readWebhookSecret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')?.length // 24
 */
export function readWebhookSecret(text: string): Buffer | undefined {
  const encoded = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : '';
  // 64 bytes are 88 characters. Node would skip what is not base64.
  if (encoded.length > 88 || !BASE64.test(encoded)) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  const isWhole = bytes.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '');
  return isWhole && bytes.length >= MIN_BYTES && bytes.length <= MAX_BYTES ? bytes : undefined;
}

/**
 * Signs a delivery, once with each secret.
 *
 * @param seconds the time of the attempt, in seconds since 1970
 * @returns the value of `webhook-signature`
 */
export function signWebhook(
  secrets: readonly Buffer[],
  id: string,
  seconds: number,
  body: string | Uint8Array,
): string {
  return secrets.map((secret) => `v1,${digestOf(secret, id, seconds, body).toString('base64')}`).join(' ');
}

function digestOf(secret: Buffer, id: string, seconds: number, body: string | Uint8Array): Buffer {
  return createHmac('sha256', secret).update(`${id}.${seconds}.`).update(body).digest();
}

/** @returns undefined for a text that is not base64, part of which Node would decode */
function bytesOf(text: string): Buffer | undefined {
  if (text.length > 128) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

/** The headers of a delivery, as they came. */
export interface WebhookHeaders {
  readonly id: string | null | undefined;
  readonly timestamp: string | null | undefined;
  readonly signature: string | null | undefined;
}

/** A delivery that is genuine and recent, or the reason why it is not. */
export type VerifiedWebhook =
  | {
      readonly ok: true;
      readonly id: string;
      readonly seconds: number;
      /** The secrets that have signed it. */
      readonly by: readonly Buffer[];
    }
  | { readonly ok: false; readonly why: 'headers' | 'time' | 'signature' };

/**
 * Verifies a delivery: one of its signatures is one of the secrets', and its time is at most `toleranceMs` away. Compares in
 * constant time, and never throws.
 *
 * @param body the bytes as they came, before anything has parsed them
 * @param now milliseconds since 1970
 */
export function verifyWebhook(
  secrets: readonly Buffer[],
  { id, timestamp, signature }: WebhookHeaders,
  body: Uint8Array,
  now: number,
  toleranceMs = 300_000,
): VerifiedWebhook {
  if (!id || !isWebhookId(id) || !signature || !/^\d{1,12}$/.test(timestamp ?? ''))
    return { ok: false, why: 'headers' };
  const seconds = Number(timestamp);
  if (Math.abs(now - seconds * 1_000) > toleranceMs) return { ok: false, why: 'time' };
  const given = signature
    .split(' ', MAX_SIGNATURES)
    .flatMap((each) => (each.startsWith('v1,') ? (bytesOf(each.slice(3)) ?? []) : []));
  const by = secrets.filter((secret) => {
    const expected = digestOf(secret, id, seconds, body);
    let matches = false;
    for (const each of given) if (each.length === expected.length && timingSafeEqual(each, expected)) matches = true;
    return matches;
  });
  return by.length > 0 ? { ok: true, id, seconds, by } : { ok: false, why: 'signature' };
}
