/**
 * Translates the messages between a page of an upstream and its host: the page knows the names of its upstream, the host those of the
 * gateway. Whatever a page names, its message names a tool or a resource of its own upstream.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../src/core/protocol/json.ts';
import type { PageNames } from '../../../src/gateway/mounts/page-names.ts';
import { toOffered, toUpstream } from '../../../src/gateway/mounts/uri-names.ts';
import { convertUris } from '../../../src/gateway/mounts/uri-places.ts';

/** Requests of a page whose results list elements of all upstreams. */
const LISTS = ['resources', 'resourceTemplates', 'prompts', 'tools'] as const;
/** Requests of a page without a response yet. A host that never answers must not grow the page. */
const MAX_PENDING = 1_000;

export class Messages {
  readonly #names: PageNames;
  /** The upstream's name of a tool, by the offered one. */
  readonly #originals: ReadonlyMap<string, string>;
  /** The methods of the page's requests, by their ids. */
  readonly #pending = new Map<unknown, string>();

  constructor(names: PageNames) {
    this.#names = names;
    this.#originals = new Map(Object.entries(names.tools).map(([upstream, offered]) => [offered, upstream]));
  }

  /** A message of the page as its host gets it. What is no JSON-RPC message passes as it is. */
  toHost(message: unknown): unknown {
    if (!isMessage(message) || typeof message.method !== 'string') return message;
    const { id, method, params } = message;
    if (id !== undefined) {
      if (this.#pending.size >= MAX_PENDING) this.#pending.delete(this.#pending.keys().next().value);
      this.#pending.set(id, method);
    }
    if (!isJsonObject(params)) return message;
    if (method !== 'tools/call') return { ...message, params: convertUris(params, this.#offered) };
    const name = String(params.name);
    const { mount, tools } = this.#names;
    // No server has a tool with a slash: the call of an unknown name fails, and reaches no other upstream.
    return { ...message, params: { ...params, name: Object.hasOwn(tools, name) ? tools[name] : `${mount}/${name}` } };
  }

  /** A message of the host as the page gets it. */
  toPage(message: unknown): unknown {
    if (!isMessage(message)) return message;
    const { id, method, params, result } = message;
    if (typeof method === 'string') return isJsonObject(params) ? { ...message, params: this.#own(params) } : message;
    const asked = this.#pending.get(id);
    this.#pending.delete(id);
    if (!isJsonObject(result)) return message;
    return { ...message, result: asked?.endsWith('/list') ? this.#listed(result) : this.#own(result) };
  }

  /** The URI of a resource of the upstream as this server offers it. */
  readonly #offered = (uri: string): string => {
    const { mount, plain } = this.#names;
    return plain ? `${mount}+${uri}` : toOffered(mount, uri);
  };

  readonly #upstream = (uri: string): string => {
    const { mount, plain } = this.#names;
    return plain ? uri : (toUpstream(mount, uri) ?? uri);
  };

  /** Result or params with the upstream's names. The host names the tool that opened the view in its context. */
  #own(value: JsonObject): JsonObject {
    const own = convertUris(value, this.#upstream);
    const { hostContext } = own;
    if (isJsonObject(hostContext)) return { ...own, hostContext: this.#context(hostContext) };
    return this.#context(own);
  }

  #context(context: JsonObject): JsonObject {
    const { toolInfo } = context;
    if (!isJsonObject(toolInfo) || !isJsonObject(toolInfo.tool)) return context;
    const { tool } = toolInfo;
    const name = this.#originals.get(String(tool.name)) ?? tool.name;
    return { ...context, toolInfo: { ...toolInfo, tool: { ...convertUris(tool, this.#upstream), name } } };
  }

  /** A list without the elements of other upstreams. */
  #listed(result: JsonObject): JsonObject {
    const lists: Record<string, JsonValue> = {};
    for (const list of LISTS) {
      const items = result[list];
      if (Array.isArray(items)) lists[list] = items.flatMap((item) => this.#item(item));
    }
    return { ...result, ...lists };
  }

  #item(item: JsonValue): readonly JsonObject[] {
    if (!isJsonObject(item)) return [];
    const uri = item.uri ?? item.uriTemplate;
    if (typeof uri === 'string') {
      const { mount, plain } = this.#names;
      // Without a prefix, nothing tells whose a resource is.
      return plain || toUpstream(mount, uri) === undefined ? [] : [convertUris(item, this.#upstream)];
    }
    const name = this.#originals.get(String(item.name));
    return name === undefined ? [] : [{ ...convertUris(item, this.#upstream), name }];
  }
}

function isMessage(value: unknown): value is JsonObject {
  return isJsonObject(value) && value.jsonrpc === '2.0';
}
