/** The names and shapes of the extension MCP Apps (SEP-1865, 2026-01-26): views that a host shows beside a tool's result. */
import { declaredExtension, VIEWS_EXTENSION } from './extensions.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import type { ClientCapabilities } from './types.ts';

/** The type of a page. Hosts compare it character by character. */
export const PAGE_TYPE = 'text/html;profile=mcp-app';

/** The tool with which views wait for changes of a resource. */
export const WATCH_TOOL = 'troupe_watch';

/** The tool for the answers of a model, and of a person in a view. */
export const ANSWER_TOOL = 'troupe_answer';

/** The instance of a machine that a call of that tool answers for; undefined if it answers for a call of a tool. */
export function answeredInstance({ id }: Readonly<Record<string, unknown>>): string | undefined {
  return typeof id === 'string' && id.startsWith('troupe://') ? id : undefined;
}

/** The resource that a call of a view shows, and the argument that names it. */
export interface ShownResource {
  readonly member: 'uri' | 'id';
  readonly uri: string;
}

/** @returns undefined for a call that shows no resource */
export function shownResource(tool: string, args: Readonly<Record<string, unknown>>): ShownResource | undefined {
  if (tool === WATCH_TOOL) return typeof args.uri === 'string' ? { member: 'uri', uri: args.uri } : undefined;
  const instance = tool === ANSWER_TOOL ? answeredInstance(args) : undefined;
  return instance === undefined ? undefined : { member: 'id', uri: instance };
}

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
