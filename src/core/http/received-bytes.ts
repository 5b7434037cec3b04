/** The received part of a large request body in the server's byte quota. */
import type { Reservation } from '../kernel/quota.ts';
import type { BodyFault, BodyLimits } from './http-message.ts';

/** Bodies of up to this number of bytes count by the number of exchanges alone. */
export const SMALL_BODY = 16_384;

/**
 * Checks the declared length of a body before any of it is read (RFC 9110 section 15.5.14). Only received bytes are
 * reserved, because a client that sends nothing uses no memory.
 *
 * @param declared bytes; 0 if the length is unknown
 */
export function lengthFault(
  declared: number,
  principal: string,
  { maxMessageBytes, retained }: BodyLimits,
): BodyFault | undefined {
  if (declared > maxMessageBytes) return { fault: 'too long' };
  const excess = declared > SMALL_BODY ? retained.excess(principal, declared) : undefined;
  return excess && { fault: 'no room', why: excess.message };
}

/** The received part of one large body in the byte quota. */
export class ReceivedBytes {
  readonly #reservation: Reservation;

  constructor({ retained }: BodyLimits, principal: string) {
    this.#reservation = retained.take(principal, 0);
  }

  /** @param bytes all that were received */
  grow(bytes: number): BodyFault | undefined {
    const excess = this.#reservation.resize(bytes);
    return excess && { fault: 'no room', why: excess.message };
  }

  release(): void {
    this.#reservation.release();
  }
}
