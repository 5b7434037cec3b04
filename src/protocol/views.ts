/** The names and shapes of the extension MCP Apps (SEP-1865, 2026-01-26): views that a host shows beside a tool's result. */
import { declaredExtension, VIEWS_EXTENSION } from './extensions.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import type { ClientCapabilities } from './types.ts';

/** The type of a page. Hosts compare it character by character. */
export const PAGE_TYPE = 'text/html;profile=mcp-app';

/** A user of tools: the model, or the views of the server. */
export type Visibility = 'model' | 'app';

/** True if a client has declared that it shows views. A declaration without types counts. */
export function showsViews(capabilities: ClientCapabilities): boolean {
  const declared = declaredExtension(capabilities, VIEWS_EXTENSION);
  if (!declared) return false;
  const { mimeTypes } = declared;
  return !Array.isArray(mimeTypes) || mimeTypes.includes(PAGE_TYPE);
}

/** Adds to the `_meta` of a tool that its result opens a page. Some hosts only read the older name without `ui`. */
export function opensPage(meta: JsonObject | undefined, uri: string): JsonObject {
  return { ...meta, ui: { ...uiOf(meta), resourceUri: uri }, 'ui/resourceUri': uri };
}

/** Adds to the `_meta` of a tool the users that may see and call it. */
export function visibleTo(meta: JsonObject | undefined, visibility: readonly Visibility[]): JsonObject {
  return { ...meta, ui: { ...uiOf(meta), visibility: [...visibility] } };
}

function uiOf(meta: JsonObject | undefined): JsonObject {
  return isJsonObject(meta?.ui) ? meta.ui : {};
}
