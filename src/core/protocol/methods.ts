/**
 * The table of methods: kind, eras, required capability, reader of the params, and who serves it. No other code decides that by
 * the name of a method. The rows here are the core's; features add theirs when they open.
 */
import {
  type Operation,
  type Params,
  readBare,
  readCallTool,
  readComplete,
  readGetPrompt,
  readInitialize,
  readList,
  readReadResource,
  readSetLevel,
  readSubscribe,
} from './operations.ts';
import type { Era } from './revisions.ts';
import { readListen } from './subscription-filter.ts';
import type { ServerCapabilities } from './types.ts';

export interface RequestMethod {
  readonly kind: 'request';
  readonly eras: readonly Era[];
  /** The capability that the server must offer for this method to exist. */
  readonly needs?: keyof ServerCapabilities;
  /** The extension that the server must use for this method to exist. */
  readonly extension?: string;
  /** If absent, the method is listed but not implemented, and the server responds with -32601. */
  readonly served?: {
    /** The name of the actor or service that serves it. Several methods may have the same. */
    readonly by: string;
    /** @throws {ProtocolError} -32602 for params that it does not accept */
    read(params: Params): Operation;
  };
  /** Served even before a session exists. */
  readonly always?: true;
  /**
   * The parameter that the HTTP request repeats as `Mcp-Name` (2026-07-28 streamable-http, "Standard Request Headers";
   * ext-tasks, "Routing Headers").
   */
  readonly named?: string;
}

interface NotificationMethod {
  readonly kind: 'notification';
  readonly eras: readonly Era[];
}

export type Method = RequestMethod | NotificationMethod;
export type ServedMethod = RequestMethod & { readonly served: NonNullable<RequestMethod['served']> };

export const LEGACY_ERA: readonly Era[] = ['legacy'];
export const MODERN_ERA: readonly Era[] = ['modern'];
export const BOTH_ERAS: readonly Era[] = ['legacy', 'modern'];

/** The methods of the core. */
export const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  // Lifecycle
  ['initialize', { kind: 'request', eras: LEGACY_ERA, always: true, served: { by: 'session', read: readInitialize } }],
  ['notifications/initialized', { kind: 'notification', eras: LEGACY_ERA }],
  ['ping', { kind: 'request', eras: LEGACY_ERA, always: true, served: { by: 'server', read: readBare('ping') } }],
  [
    'server/discover',
    { kind: 'request', eras: MODERN_ERA, served: { by: 'server', read: readBare('server/discover') } },
  ],
  ['notifications/cancelled', { kind: 'notification', eras: BOTH_ERAS }],
  ['notifications/progress', { kind: 'notification', eras: LEGACY_ERA }],
  // Tools
  [
    'tools/list',
    { kind: 'request', eras: BOTH_ERAS, needs: 'tools', served: { by: 'tools', read: readList('tools/list') } },
  ],
  [
    'tools/call',
    { kind: 'request', eras: BOTH_ERAS, needs: 'tools', named: 'name', served: { by: 'tools', read: readCallTool } },
  ],
  // Resources
  [
    'resources/list',
    {
      kind: 'request',
      eras: BOTH_ERAS,
      needs: 'resources',
      served: { by: 'resources', read: readList('resources/list') },
    },
  ],
  [
    'resources/templates/list',
    {
      kind: 'request',
      eras: BOTH_ERAS,
      needs: 'resources',
      served: { by: 'resources', read: readList('resources/templates/list') },
    },
  ],
  [
    'resources/read',
    {
      kind: 'request',
      eras: BOTH_ERAS,
      needs: 'resources',
      named: 'uri',
      served: { by: 'resources', read: readReadResource },
    },
  ],
  [
    'resources/subscribe',
    {
      kind: 'request',
      eras: LEGACY_ERA,
      needs: 'resources',
      served: { by: 'subscriptions', read: readSubscribe('resources/subscribe') },
    },
  ],
  [
    'resources/unsubscribe',
    {
      kind: 'request',
      eras: LEGACY_ERA,
      needs: 'resources',
      served: { by: 'subscriptions', read: readSubscribe('resources/unsubscribe') },
    },
  ],
  // Prompts
  [
    'prompts/list',
    { kind: 'request', eras: BOTH_ERAS, needs: 'prompts', served: { by: 'prompts', read: readList('prompts/list') } },
  ],
  [
    'prompts/get',
    {
      kind: 'request',
      eras: BOTH_ERAS,
      needs: 'prompts',
      named: 'name',
      served: { by: 'prompts', read: readGetPrompt },
    },
  ],
  // Utilities
  [
    'completion/complete',
    { kind: 'request', eras: BOTH_ERAS, needs: 'completions', served: { by: 'completions', read: readComplete } },
  ],
  [
    'logging/setLevel',
    { kind: 'request', eras: LEGACY_ERA, needs: 'logging', served: { by: 'session', read: readSetLevel } },
  ],
  ['notifications/roots/list_changed', { kind: 'notification', eras: LEGACY_ERA }],
  [
    'subscriptions/listen',
    { kind: 'request', eras: MODERN_ERA, served: { by: 'subscriptions', read: (params) => readListen(params) } },
  ],
]);

/** The methods of one server: those of the core, and those that its features add. */
export class Methods {
  readonly #rows = new Map(METHODS);
  /** The implemented requests of each era. */
  readonly served: Readonly<Record<Era, ReadonlyMap<string, ServedMethod>>>;
  readonly #served = { legacy: new Map<string, ServedMethod>(), modern: new Map<string, ServedMethod>() };

  constructor() {
    this.served = this.#served;
    for (const [name, method] of METHODS) this.#serve(name, method);
  }

  get(name: string): Method | undefined {
    return this.#rows.get(name);
  }

  /** The names of the implemented requests. */
  get names(): readonly string[] {
    return [...new Set([...this.#served.legacy.keys(), ...this.#served.modern.keys()])];
  }

  /** Adds a method. @throws {Error} if there is one of that name */
  add(name: string, method: Method): void {
    if (this.#rows.has(name)) throw new Error(`there are two methods "${name}": give one of them another name`);
    this.#rows.set(name, method);
    this.#serve(name, method);
  }

  #serve(name: string, method: Method): void {
    if (method.kind !== 'request' || !method.served) return;
    for (const era of method.eras) this.#served[era].set(name, { ...method, served: method.served });
  }
}
