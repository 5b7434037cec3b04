/** The catalogue of an upstream: its definitions as it sent them, and how they are listed, stored and read again. */
import type { ConnectedClient } from '../../client/connected-client.ts';
import { readEventType, type ServerEventType } from '../../client/server-events.ts';
import { jsonLength } from '../../core/execution/size.ts';
import { isJsonObject, isObject, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { SkillEntry } from '../../core/protocol/skills.ts';
import type { Prompt, Resource, ResourceTemplate, Tool } from '../../core/protocol/types.ts';
import { problemOfToolApproval, type ToolApproval } from './mount-approvals.ts';

export interface UpstreamCatalogue {
  /** The capabilities that the upstream announces. */
  readonly capabilities: JsonObject;
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly templates: readonly ResourceTemplate[];
  readonly prompts: readonly Prompt[];
  readonly skills: readonly SkillEntry[];
  /** The event types; undefined if the upstream has none. */
  readonly events?: readonly ServerEventType[] | undefined;
  /** The requests that a direct upstream makes for calls of its tools, by their names: parts of their pins. */
  readonly requests?: Readonly<Record<string, JsonObject>> | undefined;
  /** The options of single tools, by their names: those of the operator, beside the options of the mount. */
  readonly policies?: Readonly<Record<string, MountedToolPolicy>> | undefined;
  /** The tools are too many for a list. The option of the mount has precedence. */
  readonly expose?: 'search' | undefined;
  /** One sentence for each list that the upstream announces and does not return. */
  readonly problems?: readonly string[];
  /** The era and the version of the server. Its next version may speak another era. */
  readonly era?: Era | undefined;
  readonly version?: string | undefined;
  /** The lists that shared caches may keep. */
  readonly isPublic?: Readonly<Partial<Record<'tools' | 'resources' | 'prompts', boolean>>>;
}

/** The options of one tool. */
export interface MountedToolPolicy {
  readonly timeoutMs?: number | undefined;
  /** The calls that people must approve; `true`: by their callers. */
  readonly approve?: ToolApproval | undefined;
}

const LISTS = ['tools', 'resources', 'prompts'] as const;
/** The least time between two listings of an upstream that announces no changes, in milliseconds. */
const LEAST_FRESH_MS = 30_000;

/**
 * Lists everything that an upstream offers. The client bounds the pages and the elements of each list.
 *
 * @param maxLength most characters of the catalogue as JSON
 * @param timeoutMs for each page
 * @throws {Error} if a list fails, or the catalogue is too long
 */
export async function listUpstream(
  client: ConnectedClient,
  maxLength: number,
  timeoutMs: number,
): Promise<UpstreamCatalogue> {
  const fresh = { fresh: true, timeoutMs } as const;
  const problems: string[] = [];
  const [tools, resources, templates, prompts, skills, events] = await Promise.all([
    client.tools(fresh),
    client.resources(fresh),
    client.templates(fresh),
    client.prompts(fresh),
    // An extension that fails takes no tool with it.
    client.skills(fresh).catch((error: unknown) => {
      problems.push(`its skills are left out: ${messageOf(error)}`);
      return [];
    }),
    client.eventTypes(fresh).catch((error: unknown) => {
      problems.push(`its events are left out: ${messageOf(error)}`);
      return [];
    }),
  ]);
  const { capabilities } = client.server;
  const catalogue = {
    capabilities: isJsonObject(capabilities) ? capabilities : {},
    tools,
    resources,
    templates,
    prompts,
    skills,
    ...(events.length > 0 && { events }),
    ...(problems.length > 0 && { problems }),
    era: client.server.era,
    version: client.server.version,
    isPublic: client.listHints.isPublic,
  };
  if (jsonLength(catalogue, maxLength) > maxLength)
    throw new Error(`its lists have more than ${maxLength} characters. The option is maxListBytes`);
  return catalogue;
}

/**
 * The time until an upstream is listed again although it has announced no change.
 *
 * @param longestMs of an upstream that announces changes, or gives its lists no time
 */
export function freshMsOf({ listHints, server: { capabilities } }: ConnectedClient, longestMs: number): number {
  const announced = LISTS.every((list) => {
    const capability = capabilities[list];
    return capability === undefined || (isObject(capability) && capability.listChanged === true);
  });
  const { freshForMs } = listHints;
  return announced || freshForMs === 0 ? longestMs : Math.min(longestMs, Math.max(LEAST_FRESH_MS, freshForMs));
}

/** The catalogue to store. A server of another version than before may be one of another era, too: the next start asks it. */
export function withCertainEra(catalogue: UpstreamCatalogue, before: UpstreamCatalogue | undefined): UpstreamCatalogue {
  return before && before.version !== catalogue.version ? { ...catalogue, era: undefined } : catalogue;
}

/** Reads a stored catalogue. @returns undefined if it was stored in another form */
export function readCatalogue(value: unknown): UpstreamCatalogue | undefined {
  if (!isObject(value) || !isJsonObject(value.capabilities)) return undefined;
  const { capabilities, tools, resources, templates, prompts, skills } = value;
  if (!isList<Tool>(tools, 'name') || !isList<Resource>(resources, 'uri')) return undefined;
  if (!isList<ResourceTemplate>(templates, 'uriTemplate') || !isList<Prompt>(prompts, 'name')) return undefined;
  if (!isList<SkillEntry>(skills, 'uri')) return undefined;
  // A catalogue of an earlier version has none.
  const events = Array.isArray(value.events) ? value.events.flatMap((each) => readEventType(each) ?? []) : undefined;
  const isPublic = isObject(value.isPublic) ? value.isPublic : {};
  const shared = Object.fromEntries(LISTS.map((list) => [list, isPublic[list] === true]));
  const era = value.era === 'legacy' || value.era === 'modern' ? value.era : undefined;
  const version = typeof value.version === 'string' ? value.version : undefined;
  const requests = isObject(value.requests)
    ? Object.fromEntries(
        Object.entries(value.requests).filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1])),
      )
    : undefined;
  const policies = value.policies === undefined ? undefined : readPolicies(value.policies);
  // Without its policies, a tool would run unapproved.
  if (policies === 'damaged') return undefined;
  const expose = value.expose === 'search' ? value.expose : undefined;
  return {
    capabilities,
    tools,
    resources,
    templates,
    prompts,
    skills,
    events,
    requests,
    policies,
    expose,
    era,
    version,
    isPublic: shared,
  };
}

function readPolicies(value: unknown): Readonly<Record<string, MountedToolPolicy>> | 'damaged' {
  if (!isObject(value)) return 'damaged';
  const policies = Object.entries(value);
  return policies.every((entry): entry is [string, MountedToolPolicy] => isPolicy(entry[1]))
    ? Object.fromEntries(policies)
    : 'damaged';
}

function isPolicy(value: unknown): value is MountedToolPolicy {
  if (!isObject(value)) return false;
  const { timeoutMs, approve } = value;
  return (
    (timeoutMs === undefined || option.duration(timeoutMs) === undefined) &&
    (approve === undefined || problemOfToolApproval(approve) === undefined)
  );
}

/** The client has checked the definitions when it listed them. */
function isList<T>(value: unknown, key: string): value is readonly T[] {
  return Array.isArray(value) && value.every((item) => isObject(item) && typeof item[key] === 'string');
}
