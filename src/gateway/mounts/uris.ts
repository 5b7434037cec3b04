/** The URIs under which a mount offers the resources of its upstream, and the way back. */

import type { JsonObject, JsonValue } from '../../core/protocol/json.ts';
import { isJsonObject } from '../../core/protocol/json.ts';
import { copyNumbers } from '../../core/protocol/json-text.ts';

const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/;
/** Schemes that hosts look at (MCP Apps, SEP-2640): the mount's name becomes the first segment after `//`. */
const KEPT = ['ui://', 'skill://'];

/**
 * The offered form of an upstream's URI or URI template. A template's values pass unchanged: expanding the offered
 * template gives a URI that `toUpstream` converts to the expansion of the upstream's.
 *
 * @param mount the mount's name; false for a mount that offers its URIs unchanged
 * @example
 * toOffered('gh', 'file:///{+path}'); // 'gh+file:///{+path}'
 * toOffered('gh', 'ui://board/main'); // 'ui://gh/board/main'
 * toOffered('gh', 'readme'); // 'gh:readme': a text without a scheme
 */
export function toOffered(mount: string | false, uri: string): string {
  if (mount === false) return uri;
  for (const scheme of KEPT) if (uri.startsWith(scheme)) return `${scheme}${mount}/${uri.slice(scheme.length)}`;
  return SCHEME.test(uri) ? `${mount}+${uri}` : `${mount}:${uri}`;
}

/** The upstream's form of an offered URI; undefined if the URI is of another mount. */
export function toUpstream(mount: string | false, uri: string): string | undefined {
  if (mount === false) return uri;
  for (const scheme of KEPT) {
    const start = `${scheme}${mount}/`;
    if (uri.startsWith(start)) return scheme + uri.slice(start.length);
  }
  if (uri.startsWith(`${mount}:`)) return uri.slice(mount.length + 1);
  const rest = uri.startsWith(`${mount}+`) ? uri.slice(mount.length + 1) : '';
  return SCHEME.test(rest) ? rest : undefined;
}

/** The id under which a client knows a page that an upstream asks its user to open: two upstreams may use the same id. */
export function offeredPage(mount: string, elicitationId: string): string {
  return `${mount}:${elicitationId}`;
}

/** The members of results and content blocks that hold objects with URIs. Texts, arguments and structured content do not. */
const LISTS = ['content', 'contents', 'messages', 'resources', 'resourceTemplates', 'skills', 'tools', 'prompts'];

/**
 * Converts the URIs of a result, definition, content block or notification to their offered form, where the protocol has
 * URIs of resources: `uri`, `uriTemplate`, resource links, embedded resources, `_meta.ui.resourceUri`. Texts, structured
 * content, icons and links for people are unchanged.
 *
 * @returns the same object if nothing changes
 */
export function rewriteUris<T extends JsonValue>(mount: string | false, value: T): T;
export function rewriteUris(mount: string | false, value: JsonValue): JsonValue {
  return mount !== false && isJsonObject(value) ? rewritten(mount, value) : value;
}

/** Levels of objects with URIs: result, message, result of a tool, embedded resource; an upstream may nest them deeper. */
const DEPTH = 8;

function rewritten(mount: string, value: JsonObject, level = 0): JsonObject {
  if (level > DEPTH) return value;
  const changes: Record<string, JsonValue> = {};
  let changed = false;
  const change = (member: string, to: JsonValue | undefined): void => {
    if (to === undefined || to === value[member]) return;
    changes[member] = to;
    changed = true;
  };
  // Of the content blocks, only a resource link has a URI of its own.
  if (value.type === undefined || value.type === 'resource_link') {
    if (typeof value.uri === 'string') change('uri', toOffered(mount, value.uri));
    if (typeof value.uriTemplate === 'string') change('uriTemplate', toOffered(mount, value.uriTemplate));
  }
  if (value.type === 'resource' && isJsonObject(value.resource))
    change('resource', rewritten(mount, value.resource, level + 1));
  for (const member of LISTS) {
    const list = value[member];
    if (Array.isArray(list)) change(member, each(mount, list, level + 1));
    // A message of a prompt has one block, and one of sampling may have it, too.
    else if (isJsonObject(list)) change(member, rewritten(mount, list, level + 1));
  }
  if (isJsonObject(value._meta)) change('_meta', rewrittenMeta(mount, value._meta));
  return changed ? copyNumbers(value, { ...value, ...changes }) : value;
}

function each(mount: string, list: readonly JsonValue[], level: number): readonly JsonValue[] {
  let changed = false;
  const items = list.map((item) => {
    const next = isJsonObject(item) ? rewritten(mount, item, level) : item;
    changed ||= next !== item;
    return next;
  });
  return changed ? copyNumbers(list, items) : list;
}

/** The page of a tool (MCP Apps), in both places where hosts look for it. */
function rewrittenMeta(mount: string, meta: JsonObject): JsonObject {
  const { ui, 'ui/resourceUri': older } = meta;
  const nested = isJsonObject(ui) && typeof ui.resourceUri === 'string' ? ui.resourceUri : undefined;
  if (nested === undefined && typeof older !== 'string') return meta;
  return copyNumbers(meta, {
    ...meta,
    ...(isJsonObject(ui) &&
      nested !== undefined && { ui: copyNumbers(ui, { ...ui, resourceUri: toOffered(mount, nested) }) }),
    ...(typeof older === 'string' && { 'ui/resourceUri': toOffered(mount, older) }),
  });
}
