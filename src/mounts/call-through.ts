/** Passes one call of a downstream client to the upstream of a mount, and its result back. */
import type { Context } from '../input/context.ts';
import { ownerOfCall } from '../input/request-context.ts';
import { isJsonObject, type JsonObject } from '../protocol/json.ts';
import { META } from '../protocol/meta.ts';
import type { Upstream } from './upstream.ts';

/**
 * Sends one request to the upstream, with the cancellation, progress and log messages of the call.
 *
 * @returns the result as it came, without what it says of its hop
 * @throws {ErrorResponse | ClientError} as the upstream's connection does
 */
export async function callThrough(
  ctx: Context,
  upstream: Upstream,
  method: string,
  params: JsonObject,
): Promise<JsonObject> {
  const owner = ownerOfCall(ctx);
  try {
    const client = await upstream.for(owner);
    const result = await client.request(method, params, {
      signal: ctx.signal,
      onProgress: ({ progress, total, message }) => ctx.progress(progress, total, message),
      onLog: ({ level, data, logger }) =>
        ctx.log(level, data, logger === undefined ? upstream.name : `${upstream.name}/${logger}`),
    });
    return isJsonObject(result) ? withoutHop(result) : {};
  } finally {
    if (owner.once) upstream.released(owner.key);
  }
}

/** Removes what a result says of its hop alone (2026-07-28 basic, "Results"): this server says it of itself. */
function withoutHop({ resultType: _, ...result }: JsonObject): JsonObject {
  if (!isJsonObject(result._meta)) return result;
  const { [META.serverInfo]: __, ...meta } = result._meta;
  const { _meta: ___, ...others } = result;
  return Object.keys(meta).length === 0 ? others : { ...others, _meta: meta };
}
