/** The places of URIs in the messages of the protocol. A view's page converts its messages with it, so it uses nothing of Node. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';

/** The members of results and content blocks that hold objects with URIs. Texts, arguments and structured content do not. */
const LISTS = ['content', 'contents', 'messages', 'resources', 'resourceTemplates', 'skills', 'tools', 'prompts'];
/** Levels of objects with URIs: result, message, result of a tool, embedded resource; an upstream may nest them deeper. */
const DEPTH = 8;

/** Remembers what belongs to an object for its shallow copy. @returns the copy */
type Copy = <T extends object>(from: object, to: T) => T;

/**
 * Converts the URIs of a result, definition, content block or notification, where the protocol has URIs of resources: `uri`,
 * `uriTemplate`, resource links, embedded resources, `_meta.ui.resourceUri`. Texts, structured content, icons and links for
 * people are unchanged.
 *
 * @returns the same object if nothing changes
 * @example convertUris({ uri: 'a:b' }, (uri) => `gh+${uri}`) // { uri: 'gh+a:b' }
 */
export function convertUris(
  value: JsonObject,
  convert: (uri: string) => string,
  copy: Copy = (_, to) => to,
): JsonObject {
  return converted(value, 0);

  function converted(value: JsonObject, level: number): JsonObject {
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
      if (typeof value.uri === 'string') change('uri', convert(value.uri));
      if (typeof value.uriTemplate === 'string') change('uriTemplate', convert(value.uriTemplate));
    }
    if (value.type === 'resource' && isJsonObject(value.resource))
      change('resource', converted(value.resource, level + 1));
    for (const member of LISTS) {
      const list = value[member];
      if (Array.isArray(list)) change(member, each(list, level + 1));
      // A message of a prompt has one block, and one of sampling may have it, too.
      else if (isJsonObject(list)) change(member, converted(list, level + 1));
    }
    if (isJsonObject(value._meta)) change('_meta', convertedMeta(value._meta));
    return changed ? copy(value, { ...value, ...changes }) : value;
  }

  function each(list: readonly JsonValue[], level: number): readonly JsonValue[] {
    let changed = false;
    const items = list.map((item) => {
      const next = isJsonObject(item) ? converted(item, level) : item;
      changed ||= next !== item;
      return next;
    });
    return changed ? copy(list, items) : list;
  }

  /** The page of a tool (MCP Apps), in both places where hosts look for it. */
  function convertedMeta(meta: JsonObject): JsonObject {
    const { ui, 'ui/resourceUri': older } = meta;
    const nested = isJsonObject(ui) && typeof ui.resourceUri === 'string' ? ui.resourceUri : undefined;
    if (nested === undefined && typeof older !== 'string') return meta;
    return copy(meta, {
      ...meta,
      ...(isJsonObject(ui) && nested !== undefined && { ui: copy(ui, { ...ui, resourceUri: convert(nested) }) }),
      ...(typeof older === 'string' && { 'ui/resourceUri': convert(older) }),
    });
  }
}
