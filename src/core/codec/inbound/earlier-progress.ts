/** The progress that an interrupted run of a request has reported: what the next run reports must be more (MCP progress). */
import { isObject } from '../../protocol/json.ts';
import { readIncoming } from '../../protocol/jsonrpc.ts';
import { type ParseLimits, parseText } from './parse.ts';

const METHOD = 'notifications/progress';

/**
 * The last progress among the messages of an earlier run.
 *
 * @param sent the messages, the oldest first
 * @param token the progress token of the request: the stream of a batch has the progress of several
 * @returns undefined if it reported none
 */
export function lastProgressIn(
  sent: readonly string[],
  token: string | number | undefined,
  limits: ParseLimits,
): number | undefined {
  if (token === undefined) return undefined;
  for (const text of sent.toReversed()) {
    const parsed = text.includes(METHOD) ? parseText(text, limits) : undefined;
    const message = parsed?.ok ? readIncoming(parsed.value) : undefined;
    if (message?.kind !== 'notification' || message.method !== METHOD || !isObject(message.params)) continue;
    const { progress, progressToken } = message.params;
    if (progressToken === token && typeof progress === 'number') return progress;
  }
  return undefined;
}
