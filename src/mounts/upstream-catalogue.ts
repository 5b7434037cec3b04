/** The catalogue of an upstream: its definitions as it sent them, and how they are listed, stored and read again. */
import type { Client } from '../client/connected-client.ts';
import { isJsonObject, isObject, type JsonObject } from '../protocol/json.ts';
import type { Prompt, Resource, ResourceTemplate, Tool } from '../protocol/types.ts';
import { jsonLength } from '../results/size.ts';

export interface UpstreamCatalogue {
  /** The capabilities that the upstream announces. */
  readonly capabilities: JsonObject;
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly templates: readonly ResourceTemplate[];
  readonly prompts: readonly Prompt[];
}

/**
 * Lists everything that an upstream offers. The client bounds the pages and the elements of each list.
 *
 * @param maxLength most characters of the catalogue as JSON
 * @param timeoutMs for each page
 * @throws {Error} if a list fails, or the catalogue is too long
 */
export async function listUpstream(client: Client, maxLength: number, timeoutMs: number): Promise<UpstreamCatalogue> {
  const fresh = { fresh: true, timeoutMs } as const;
  const [tools, resources, templates, prompts] = await Promise.all([
    client.tools(fresh),
    client.resources(fresh),
    client.templates(fresh),
    client.prompts(fresh),
  ]);
  const { capabilities } = client.server;
  const catalogue = {
    capabilities: isJsonObject(capabilities) ? capabilities : {},
    tools,
    resources,
    templates,
    prompts,
  };
  if (jsonLength(catalogue, maxLength) > maxLength)
    throw new Error(`its lists have more than ${maxLength} characters. The option is maxListBytes`);
  return catalogue;
}

/** Reads a stored catalogue. @returns undefined if it was stored in another form */
export function readCatalogue(value: unknown): UpstreamCatalogue | undefined {
  if (!isObject(value) || !isJsonObject(value.capabilities)) return undefined;
  const { capabilities, tools, resources, templates, prompts } = value;
  if (!isList<Tool>(tools, 'name') || !isList<Resource>(resources, 'uri')) return undefined;
  if (!isList<ResourceTemplate>(templates, 'uriTemplate') || !isList<Prompt>(prompts, 'name')) return undefined;
  return { capabilities, tools, resources, templates, prompts };
}

/** The client has checked the definitions when it listed them. */
function isList<T>(value: unknown, key: string): value is readonly T[] {
  return Array.isArray(value) && value.every((item) => isObject(item) && typeof item[key] === 'string');
}
