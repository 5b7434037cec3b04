/** The default resource executor: runs the reader and formats its result. */
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { describe, isObject } from '../protocol/json.ts';
import type { CacheHints, ReadResourceResult, ResourceContents } from '../protocol/types.ts';
import { isResourceContents, resourceContents, sentContents } from './content.ts';
import type { Context } from './context.ts';
import type { ResourceRead } from './execution.ts';

/** Characters of an address that an error repeats. */
const MAX_SHOWN = 2_048;

/**
 * A reader returns a string (text), bytes (a blob), `{ contents }` as on the wire, one content item or a list of them, or
 * undefined or null if there is no such resource.
 */
export async function executeRead(call: ResourceRead, ctx: Context): Promise<ReadResourceResult> {
  const { uri, variables, implementation } = call;
  return { ...implementation.hints, ...toReadResult(await implementation.read({ uri, variables }, ctx), call) };
}

function toReadResult(returned: unknown, { uri, resource }: ResourceRead): ReadResourceResult {
  if (typeof returned === 'string' || returned instanceof Uint8Array)
    return { contents: [resourceContents(uri, returned, resource.mimeType)] };
  if (isResourceContents(returned)) return { contents: [sentContents(returned)] };
  if (isContentsList(returned)) return { contents: returned.map(sentContents) };
  if (isObject(returned) && isContentsList(returned.contents)) {
    const { ttlMs: _, cacheScope: __, ...rest } = returned;
    return { ...rest, contents: returned.contents.map(sentContents), ...hints(returned) };
  }
  if (returned === undefined || returned === null)
    throw new ProtocolError(ErrorCode.ResourceNotFound, 'Resource not found', { uri: uri.slice(0, MAX_SHOWN) });
  throw new TypeError(
    `resource "${uri}": expected the reader to return a string, bytes, or contents, got ${describe(returned)}`,
  );
}

export function isContentsList(value: unknown): value is readonly ResourceContents[] {
  return Array.isArray(value) && value.every(isResourceContents);
}

/** The valid caching hints (2026-07-28 "Caching"); invalid ones are dropped. */
function hints({ ttlMs, cacheScope }: Readonly<Record<string, unknown>>): CacheHints {
  return {
    ...(typeof ttlMs === 'number' && ttlMs >= 0 ? { ttlMs: Math.floor(ttlMs) } : {}),
    ...(cacheScope === 'public' || cacheScope === 'private' ? { cacheScope } : {}),
  };
}
