/**
 * The table of all methods: kind, eras, required capability, reader of the params, and who serves it. No other code decides
 * that by the name of a method.
 */
import {
  type Operation,
  type Params,
  readBare,
  readCallTool,
  readComplete,
  readGetPrompt,
  readGetSkill,
  readInitialize,
  readList,
  readReadDirectory,
  readReadResource,
  readSetLevel,
  readSubscribe,
} from './operations.ts';
import type { Era } from './revisions.ts';
import { SKILLS_EXTENSION } from './skills.ts';
import { readListen } from './subscription-filter.ts';
import { readListTasks, readTask, readUpdateTask } from './task-params.ts';
import type { ServerCapabilities } from './types.ts';

/** The actor or service that serves a request. */
export type ServedBy =
  | 'session'
  | 'server'
  | 'tools'
  | 'resources'
  | 'skills'
  | 'prompts'
  | 'completions'
  | 'subscriptions'
  | 'tasks';

export interface RequestMethod {
  readonly kind: 'request';
  readonly eras: readonly Era[];
  /** The capability that the server must offer for this method to exist. */
  readonly needs?: keyof ServerCapabilities;
  /** The extension that the server must use for this method to exist. */
  readonly extension?: string;
  /** If absent, the method is listed but not implemented, and the server responds with -32601. */
  readonly served?: { readonly by: ServedBy; read(params: Params): Operation };
  /** Served even before a session exists. */
  readonly always?: true;
  /**
   * The parameter that the HTTP request repeats as `Mcp-Name` (2026-07-28 streamable-http, "Standard Request Headers";
   * ext-tasks, "Routing Headers").
   */
  readonly named?: 'name' | 'uri' | 'taskId';
}

export interface NotificationMethod {
  readonly kind: 'notification';
  readonly eras: readonly Era[];
}

export type Method = RequestMethod | NotificationMethod;

const LEGACY: readonly Era[] = ['legacy'];
const MODERN: readonly Era[] = ['modern'];
const BOTH: readonly Era[] = ['legacy', 'modern'];

export const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  // Lifecycle
  ['initialize', { kind: 'request', eras: LEGACY, always: true, served: { by: 'session', read: readInitialize } }],
  ['notifications/initialized', { kind: 'notification', eras: LEGACY }],
  ['ping', { kind: 'request', eras: LEGACY, always: true, served: { by: 'server', read: readBare('ping') } }],
  ['server/discover', { kind: 'request', eras: MODERN, served: { by: 'server', read: readBare('server/discover') } }],
  ['notifications/cancelled', { kind: 'notification', eras: BOTH }],
  ['notifications/progress', { kind: 'notification', eras: LEGACY }],
  // Tools
  [
    'tools/list',
    { kind: 'request', eras: BOTH, needs: 'tools', served: { by: 'tools', read: readList('tools/list') } },
  ],
  [
    'tools/call',
    { kind: 'request', eras: BOTH, needs: 'tools', named: 'name', served: { by: 'tools', read: readCallTool } },
  ],
  // Resources
  [
    'resources/list',
    { kind: 'request', eras: BOTH, needs: 'resources', served: { by: 'resources', read: readList('resources/list') } },
  ],
  [
    'resources/templates/list',
    {
      kind: 'request',
      eras: BOTH,
      needs: 'resources',
      served: { by: 'resources', read: readList('resources/templates/list') },
    },
  ],
  [
    'resources/read',
    {
      kind: 'request',
      eras: BOTH,
      needs: 'resources',
      named: 'uri',
      served: { by: 'resources', read: readReadResource },
    },
  ],
  [
    'resources/subscribe',
    {
      kind: 'request',
      eras: LEGACY,
      needs: 'resources',
      served: { by: 'subscriptions', read: readSubscribe('resources/subscribe') },
    },
  ],
  [
    'resources/unsubscribe',
    {
      kind: 'request',
      eras: LEGACY,
      needs: 'resources',
      served: { by: 'subscriptions', read: readSubscribe('resources/unsubscribe') },
    },
  ],
  // Skills: an extension of every revision (SEP-2640)
  [
    'skills/list',
    {
      kind: 'request',
      eras: BOTH,
      extension: SKILLS_EXTENSION,
      served: { by: 'skills', read: readList('skills/list') },
    },
  ],
  [
    'skills/get',
    { kind: 'request', eras: BOTH, extension: SKILLS_EXTENSION, served: { by: 'skills', read: readGetSkill } },
  ],
  [
    'resources/directory/read',
    { kind: 'request', eras: BOTH, extension: SKILLS_EXTENSION, served: { by: 'skills', read: readReadDirectory } },
  ],
  // Prompts
  [
    'prompts/list',
    { kind: 'request', eras: BOTH, needs: 'prompts', served: { by: 'prompts', read: readList('prompts/list') } },
  ],
  [
    'prompts/get',
    { kind: 'request', eras: BOTH, needs: 'prompts', named: 'name', served: { by: 'prompts', read: readGetPrompt } },
  ],
  // Utilities
  [
    'completion/complete',
    { kind: 'request', eras: BOTH, needs: 'completions', served: { by: 'completions', read: readComplete } },
  ],
  [
    'logging/setLevel',
    { kind: 'request', eras: LEGACY, needs: 'logging', served: { by: 'session', read: readSetLevel } },
  ],
  ['notifications/roots/list_changed', { kind: 'notification', eras: LEGACY }],
  ['subscriptions/listen', { kind: 'request', eras: MODERN, served: { by: 'subscriptions', read: readListen } }],
  // Tasks: an extension in the modern era, experimental in 2025-11-25
  [
    'tasks/get',
    {
      kind: 'request',
      eras: BOTH,
      needs: 'tasks',
      named: 'taskId',
      served: { by: 'tasks', read: readTask('tasks/get') },
    },
  ],
  [
    'tasks/update',
    { kind: 'request', eras: MODERN, needs: 'tasks', named: 'taskId', served: { by: 'tasks', read: readUpdateTask } },
  ],
  [
    'tasks/cancel',
    {
      kind: 'request',
      eras: BOTH,
      needs: 'tasks',
      named: 'taskId',
      served: { by: 'tasks', read: readTask('tasks/cancel') },
    },
  ],
  ['tasks/list', { kind: 'request', eras: LEGACY, needs: 'tasks', served: { by: 'tasks', read: readListTasks } }],
  [
    'tasks/result',
    { kind: 'request', eras: LEGACY, needs: 'tasks', served: { by: 'tasks', read: readTask('tasks/result') } },
  ],
]);

export type ServedMethod = RequestMethod & { readonly served: NonNullable<RequestMethod['served']> };

/** The implemented requests of each era. */
export const SERVED: Readonly<Record<Era, ReadonlyMap<string, ServedMethod>>> = {
  legacy: servedIn('legacy'),
  modern: servedIn('modern'),
};

function servedIn(era: Era): ReadonlyMap<string, ServedMethod> {
  const served = new Map<string, ServedMethod>();
  for (const [name, method] of METHODS) {
    if (method.kind === 'request' && method.served && method.eras.includes(era))
      served.set(name, { ...method, served: method.served });
  }
  return served;
}
