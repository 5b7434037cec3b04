/** The failures of requests over HTTP: statuses, bodies that are no messages, and streams that end early. */
import type { Clock } from '../../core/kernel/clock.ts';
import { errorMessageIn } from '../client-codec.ts';
import type { CallFailure, CarriedOut } from '../client-errors.ts';
import type { ChannelFailure } from './channel.ts';
import type { OriginResponse } from './http-origin.ts';
import { isGone, saysLostSession } from './lost-session.ts';

/** Bytes of a response that is no message, read for the error message. */
export const EXCERPT_BYTES = 2_048;

/** Longest that a body may take to explain a status, in milliseconds. */
const EXCERPT_MS = 2_000;

/** Reads the beginning of a body, which explains enough. The rest may have no end, or never come. */
export function readExcerpt(response: OriginResponse, clock: Clock, then: (text: string) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let read = false;
  const finish = (): void => {
    if (read) return;
    read = true;
    late.cancel();
    then(Buffer.concat(chunks).toString('utf8'));
  };
  const enough = (): void => {
    response.destroy();
    finish();
  };
  const late = clock.after(EXCERPT_MS, enough);
  response.body.on('data', (chunk: Buffer) => {
    if (read) return;
    bytes += chunk.length;
    chunks.push(chunk);
    if (bytes > EXCERPT_BYTES) enough();
  });
  response.body.on('end', finish);
  response.body.on('close', finish);
}

/**
 * The meaning of a response of 400 or above.
 *
 * @param text the beginning of its body
 * @param inSession the request belongs to a session
 * @param now milliseconds since 1970
 */
export function rejectionOf(response: OriginResponse, text: string, inSession: boolean, now: number): ChannelFailure {
  const { status, headers } = response;
  const challenge = headers['www-authenticate'];
  const explained = excerpt(text);
  if (inSession && challenge === undefined && (isGone(status) || saysLostSession(text)))
    return { kind: 'session lost', status, text: explained };
  if (status === 401 || (status === 403 && challenge?.includes('insufficient_scope')))
    return { kind: 'unauthorized', status, challenge, text: explained, inSession };
  if (status === 403)
    return {
      reason: 'forbidden',
      message: `the server rejected the request with HTTP 403${explained === '' ? '. The token, the Origin or the Host is not allowed there' : explained}`,
      carriedOut: 'no',
    };
  return rejected(response, text, now);
}

function rejected({ status, headers }: OriginResponse, text: string, now: number): CallFailure {
  const retryAfterMs = retryAfter(headers['retry-after'], now);
  const wait = retryAfterMs === undefined ? '' : ` It asks to wait ${Math.ceil(retryAfterMs / 1_000)} s.`;
  const message = `the server responded with HTTP ${status}${excerpt(text)}.${wait}`;
  // 429 and 503 say that the request was not processed (RFC 6585 section 4, RFC 9110 section 15.6.4).
  if (status === 429 || status === 503) return { reason: 'overloaded', message, carriedOut: 'no', retryAfterMs };
  if (status >= 500) return { reason: 'unreachable', message, carriedOut: 'unknown', retryAfterMs };
  return { reason: status === 404 || status === 405 ? 'not mcp' : 'refused', message, carriedOut: 'no', retryAfterMs };
}

/** @param error of the body, if it could not be decoded */
export function cut(carriedOut: CarriedOut, error?: Error | null): CallFailure {
  return error && 'code' in error && /^(ERR_|Z_)/.test(String(error.code)) && !/PREMATURE/.test(String(error.code))
    ? { reason: 'malformed', message: `the response cannot be decoded: ${error.message}`, carriedOut: 'yes' }
    : { reason: 'closed', message: 'the response ended before it was complete', carriedOut };
}

export function tooLong(max: number): CallFailure {
  return {
    reason: 'too long',
    message: `expected a message of at most ${max} bytes, got a longer one. The option is maxMessageBytes`,
    carriedOut: 'yes',
  };
}

export function notMcp(status: number, type: string, text: string): CallFailure {
  return {
    reason: 'not mcp',
    message: `expected a JSON-RPC message as application/json or text/event-stream, got HTTP ${status} with ${type.slice(0, 100) || 'no content type'}${excerpt(text)}. Check the address`,
    carriedOut: 'unknown',
  };
}

/** The beginning of a body, or the message of its JSON-RPC error, as the end of a sentence; empty without one. */
export function excerpt(text: string): string {
  const line = (errorMessageIn(text) ?? text).replace(/\s+/g, ' ').trim();
  return line === '' ? '' : `: "${line.length > 160 ? `${line.slice(0, 160)}…` : line}"`;
}

/** `Retry-After` in milliseconds: seconds, or a date (RFC 9110 section 10.2.3). */
function retryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1_000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
