/** The verdict on an attempt to deliver an event, and the time of the next attempt. */
import { randomInt } from 'node:crypto';
import type { CallbackAnswer, FailureCategory } from './callback-sender.ts';

/** Milliseconds before each further attempt. After the last one, the subscription is suspended, or the event is given up. */
export const ATTEMPTS_MS: readonly number[] = [1_000, 5_000, 30_000, 120_000, 300_000];
/** Milliseconds between two attempts of a suspended subscription. */
export const PROBE_MS = 600_000;
/** Percent by which a delay is longer or shorter, so that subscriptions of one endpoint do not return together. */
const JITTER_PERCENT = 20;
/** The longest `Retry-After` that is followed. */
const MAX_RETRY_AFTER_MS = 900_000;

/**
 * `accepted`: a status of 2xx. `declined`: the endpoint does not want this event (410, 413), and the subscription stays. `rejected`:
 * it does not take this event now (another status of 3xx or 4xx). `down`: it cannot be reached, fails, or asks to wait.
 */
export type Verdict =
  | { readonly is: 'accepted' }
  | { readonly is: 'declined'; readonly category: FailureCategory }
  | { readonly is: 'rejected'; readonly category: FailureCategory }
  | { readonly is: 'down'; readonly category: FailureCategory; readonly retryAfterMs?: number | undefined };

/** Statuses of 4xx by which an endpoint asks for the same event later. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429]);

/** @param now milliseconds since 1970 */
export function verdictOf({ status, retryAfter }: Pick<CallbackAnswer, 'status' | 'retryAfter'>, now: number): Verdict {
  if (status >= 200 && status < 300) return { is: 'accepted' };
  if (status === 410 || status === 413) return { is: 'declined', category: 'http_4xx' };
  if (status >= 500 || status < 200)
    return { is: 'down', category: 'http_5xx', ...waitOf(status === 503, retryAfter, now) };
  if (LATER.has(status)) return { is: 'down', category: 'http_4xx', ...waitOf(status === 429, retryAfter, now) };
  return { is: 'rejected', category: 'http_4xx' };
}

/** `Retry-After`: seconds or a date (RFC 9110 section 10.2.3). Other text is no wish. */
function waitOf(obeys: boolean, text: string | undefined, now: number): { readonly retryAfterMs?: number } {
  if (!obeys || text === undefined) return {};
  const ms = /^\d{1,15}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? {} : { retryAfterMs: Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms)) };
}

/**
 * Milliseconds until the next attempt.
 *
 * @param failures failed attempts so far, at least 1
 * @returns undefined if there have been enough
 */
export function delayAfterFailure(failures: number, retryAfterMs = 0): number | undefined {
  const base = ATTEMPTS_MS[failures - 1];
  return base === undefined ? undefined : Math.max(retryAfterMs, jittered(base));
}

/** @param base milliseconds */
export function jittered(base: number): number {
  return Math.round((base * (100 + randomInt(-JITTER_PERCENT, JITTER_PERCENT + 1))) / 100);
}
