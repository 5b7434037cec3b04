/** The progress of a request, from its progress notifications. */
import { isRecord, member, textOfValue } from './plain-values.ts';
import type { WireExchange } from './wire-exchange.ts';

export const PROGRESS = 'notifications/progress';

/** The last reported progress. */
export interface Progress {
  readonly done: number;
  /** Absent: the amount of work is unknown. */
  readonly total?: number;
  readonly message?: string;
  /** The number of notifications until now. */
  readonly reports: number;
}

/** @returns undefined before the first notification */
export function progressOf({ notices }: Pick<WireExchange, 'notices'>, seq: number): Progress | undefined {
  const known = notices.filter((notice) => notice.method === PROGRESS && notice.seq <= seq);
  const params = member(known.at(-1)?.message, 'params');
  if (!isRecord(params) || typeof params.progress !== 'number') return undefined;
  const { progress, total } = params;
  const message = textOfValue(params.message);
  return {
    done: progress,
    reports: known.length,
    ...(typeof total === 'number' && total > 0 ? { total } : {}),
    ...(message === undefined ? {} : { message }),
  };
}
