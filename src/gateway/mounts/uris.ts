/** Converts the URIs of what an upstream sends to those of its mount. */
import { isJsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { copyNumbers } from '../../core/protocol/json-text.ts';
import { toOffered } from './uri-names.ts';
import { convertUris } from './uri-places.ts';

/** The id under which a client knows a page that an upstream asks its user to open: two upstreams may use the same id. */
export function offeredPage(mount: string, elicitationId: string): string {
  return `${mount}:${elicitationId}`;
}

/**
 * Converts the URIs of a result, definition, content block or notification to their offered form, see {@link convertUris}.
 *
 * @returns the same object if nothing changes
 */
export function rewriteUris<T extends JsonValue>(mount: string | false, value: T): T;
export function rewriteUris(mount: string | false, value: JsonValue): JsonValue {
  if (mount === false || !isJsonObject(value)) return value;
  return convertUris(value, (uri) => toOffered(mount, uri), copyNumbers);
}
