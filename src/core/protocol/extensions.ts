/**
 * Extensions of the protocol (SEP-2133): their identifiers, and the settings that a client declares for one. A client of
 * any revision may declare an extension, because extensions have revisions of their own.
 */
import { isJsonObject, isObject, type JsonObject } from './json.ts';
import type { ClientCapabilities } from './types.ts';

/** Views, also called MCP Apps (SEP-1865). */
export const VIEWS_EXTENSION = 'io.modelcontextprotocol/ui';
/** Events (SEP-3415). */
export const EVENTS_EXTENSION = 'io.modelcontextprotocol/events';

/**
 * The settings that a client declares for an extension; undefined if it declares none. Clients that are older than the
 * member `extensions` declare extensions in `experimental`.
 */
export function declaredExtension(
  { extensions, experimental }: ClientCapabilities,
  identifier: string,
): JsonObject | undefined {
  return settingsIn(extensions, identifier) ?? settingsIn(experimental, identifier);
}

/** The settings of an extension in `capabilities.extensions`, of a client or of a server. */
export function settingsIn(extensions: unknown, identifier: string): JsonObject | undefined {
  const settings = isObject(extensions) ? extensions[identifier] : undefined;
  return isJsonObject(settings) ? settings : undefined;
}
