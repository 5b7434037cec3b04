/** Whether an in-flight table has room for one more request, and if not, why. */

export interface RequestLimits {
  /** The name of the option that `maxInFlight` comes from. */
  readonly limit: 'maxInFlight' | 'maxStatelessInFlight';
  /** Most requests in flight at once, and most handlers running, with those that nobody waits for any more. */
  readonly maxInFlight: number;
  readonly maxRunning: number;
}

/**
 * @param size requests in flight
 * @param orphans handlers that run on although their request was ended
 * @returns why there is none, for the client; undefined where there is
 */
export function overloadReason(
  { limit, maxInFlight, maxRunning }: RequestLimits,
  size: number,
  orphans: number,
): string | undefined {
  if (size + orphans >= maxRunning)
    return `${orphans} handlers still run for requests of this connection that were cancelled or timed out, because they do not heed ctx.signal (the server's option is maxRunning)`;
  if (size < maxInFlight) return undefined;
  const where = limit === 'maxInFlight' ? 'on this connection' : 'without a session';
  return `${maxInFlight} requests are in flight ${where}, which is the limit: wait for an answer (the server's option is ${limit})`;
}
