/** Admission control of one in-flight table. */

export interface RequestLimits {
  /** Name of the option that sets `maxInFlight`. */
  readonly limit: 'maxInFlight' | 'maxStatelessInFlight';
  /** Limit for requests in flight, and separately for running handlers, including those whose request has ended. */
  readonly maxInFlight: number;
  readonly maxRunning: number;
}

/**
 * @param size requests in flight
 * @param orphans handlers that still run although their requests have ended
 * @returns the reason for the client why the table is full; undefined if it has room
 */
export function overloadReason(
  { limit, maxInFlight, maxRunning }: RequestLimits,
  size: number,
  orphans: number,
): string | undefined {
  if (size + orphans >= maxRunning)
    return `${orphans} handlers of this connection still run although their requests were cancelled or timed out, because they ignore ctx.signal (the server's option is maxRunning)`;
  if (size < maxInFlight) return undefined;
  const where = limit === 'maxInFlight' ? 'on this connection' : 'without a session';
  return `${maxInFlight} requests are in flight ${where}, which is the limit: wait for a response (the server's option is ${limit})`;
}
