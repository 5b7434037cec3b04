/** Durations of exchanges by method: their number, the median, the 99th percentile and the slowest. */
import type { WireExchange } from './wire-exchange.ts';

export interface Timing {
  readonly method: string;
  readonly count: number;
  readonly failed: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly slowest: number;
}

/** Timings of ended exchanges by method, and by tool for calls of tools; the most frequent first. */
export function timings(exchanges: readonly WireExchange[]): readonly Timing[] {
  const groups = new Map<string, WireExchange[]>();
  for (const exchange of exchanges) {
    if (exchange.kind !== 'request' || exchange.endAt === undefined) continue;
    const method = exchange.method === 'tools/call' ? `tools/call ${exchange.target ?? ''}`.trim() : exchange.method;
    const group = groups.get(method);
    if (group) group.push(exchange);
    else groups.set(method, [exchange]);
  }
  return [...groups]
    .map(([method, group]) => timing(method, group))
    .sort((a, b) => b.count - a.count || (a.method < b.method ? -1 : 1));
}

/** The timing of ended exchanges. */
export function timing(method: string, group: readonly WireExchange[]): Timing {
  const times = group.map(({ at, endAt }) => (endAt ?? at) - at).sort((a, b) => a - b);
  return {
    method,
    count: times.length,
    failed: group.filter(({ status }) => status === 'error' || status === 'isError').length,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    slowest: times.at(-1) ?? 0,
  };
}

/** The smallest value that at least this part of all values does not exceed. @param sorted ascending */
export function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0;
}
