/** The changes of a server as an async iterable: subscribes again after a lost connection, and reports the gap. */
import { isObject, type JsonObject } from '../core/protocol/json.ts';

/** The changes to receive. */
export interface ChangesFilter {
  readonly tools?: boolean;
  readonly prompts?: boolean;
  /** Changes of the list of resources. */
  readonly resourceList?: boolean;
  /** Changes of the list of event types (experimental). */
  readonly eventTypes?: boolean;
  /** URIs of resources whose content is watched. */
  readonly resources?: readonly string[];
  /** Ids of tasks. */
  readonly tasks?: readonly string[];
}

export type ServerChange =
  | { readonly type: 'tools' | 'prompts' | 'resourceList' | 'eventTypes' }
  | { readonly type: 'resource'; readonly uri: string }
  | { readonly type: 'task'; readonly id: string }
  /** Changes may have been missed: read again what matters. */
  | { readonly type: 'missed' };

/** Subscribes for one iterable. */
interface Subscriber {
  start(changes: Changes): void;
  stop(changes: Changes): void;
  /** Keeps the process alive while a reader waits for a change. */
  hold<T>(work: () => Promise<T>): Promise<T>;
}

/**
 * Equal changes that are still unread become one, so that a slow reader holds at most one change for each thing that
 * it watches. Iterate it once; leaving the loop ends the subscription.
 */
export class Changes implements AsyncIterableIterator<ServerChange> {
  readonly filter: ChangesFilter;
  readonly #subscriber: Subscriber;
  readonly #pending = new Map<string, ServerChange>();
  #waiting: { resolve(result: IteratorResult<ServerChange>): void; reject(error: unknown): void } | undefined;
  #ended = false;
  #error: Error | undefined;

  constructor(filter: ChangesFilter, subscriber: Subscriber) {
    this.filter = filter;
    this.#subscriber = subscriber;
    subscriber.start(this);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<ServerChange>> {
    const [first] = this.#pending;
    if (first) {
      this.#pending.delete(first[0]);
      return Promise.resolve({ done: false, value: first[1] });
    }
    if (this.#error) {
      const error = this.#error;
      this.#error = undefined;
      return Promise.reject(error);
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    if (this.#waiting) return Promise.reject(new Error('changes: expected one `next` at a time'));
    const change = new Promise<IteratorResult<ServerChange>>((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
    return this.#subscriber.hold(() => change);
  }

  return(): Promise<IteratorResult<ServerChange>> {
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** @internal A change, if the filter wants it. */
  offer(change: ServerChange): void {
    if (this.#ended || !this.#wants(change)) return;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) return waiting.resolve({ done: false, value: change });
    this.#pending.set(keyOf(change), change);
  }

  /** Ends the subscription. @param error what the reader receives after the pending changes */
  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#subscriber.stop(this);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (!waiting) this.#error = error;
    else if (error) waiting.reject(error);
    else waiting.resolve({ done: true, value: undefined });
  }

  #wants(change: ServerChange): boolean {
    const { tools, prompts, resourceList, eventTypes, resources, tasks } = this.filter;
    switch (change.type) {
      case 'tools':
        return tools === true;
      case 'prompts':
        return prompts === true;
      case 'resourceList':
        return resourceList === true;
      case 'eventTypes':
        return eventTypes === true;
      case 'resource':
        // A server may report a part of what is watched (2025-11-25 resources, "Subscriptions").
        return resources?.some((uri) => change.uri === uri || change.uri.startsWith(`${uri}/`)) === true;
      case 'task':
        return tasks?.includes(change.id) === true;
      case 'missed':
        return true;
    }
  }
}

/** The filter of `subscriptions/listen` (2026-07-28 patterns/subscriptions, "Notification Filter"). */
export function listenParams({
  tools,
  prompts,
  resourceList,
  eventTypes,
  resources,
  tasks,
}: ChangesFilter): JsonObject {
  return {
    notifications: {
      ...(tools ? { toolsListChanged: true } : {}),
      ...(prompts ? { promptsListChanged: true } : {}),
      ...(resourceList ? { resourcesListChanged: true } : {}),
      ...(eventTypes ? { eventsListChanged: true } : {}),
      ...(resources ? { resourceSubscriptions: [...resources] } : {}),
      ...(tasks ? { taskIds: [...tasks] } : {}),
    },
  };
}

/** True if a filter asks for nothing. */
export function isEmpty(filter: ChangesFilter): boolean {
  return partsOf(filter).length === 0;
}

/**
 * The parts of a filter that a server does not grant.
 *
 * @param granted `notifications` of the acknowledgement
 * @returns undefined if it grants everything, or does not say what it grants
 */
export function notGranted(
  filter: ChangesFilter,
  granted: unknown,
): { readonly what: string; readonly all: boolean } | undefined {
  if (!isObject(granted)) return undefined;
  const parts = partsOf(filter);
  const missing = parts.filter(({ member, element }) => {
    const value = granted[member];
    return element === undefined ? value !== true : !(Array.isArray(value) && value.includes(element));
  });
  const [first, ...others] = missing.map(({ what }) => what);
  if (first === undefined) return undefined;
  const what = others.length === 0 ? first : `${first} and ${others.length} more`;
  // A server may write a URI in another way.
  const all = parts.every(({ member }) => {
    const value = granted[member];
    return Array.isArray(value) ? value.length === 0 : value !== true;
  });
  return { what, all };
}

/** The parts of a filter, each with the member of the wire that has it. */
function partsOf({ tools, prompts, resourceList, eventTypes, resources = [], tasks = [] }: ChangesFilter): readonly {
  readonly member: string;
  readonly element?: string;
  readonly what: string;
}[] {
  return [
    ...(tools ? [{ member: 'toolsListChanged', what: 'tools' }] : []),
    ...(prompts ? [{ member: 'promptsListChanged', what: 'prompts' }] : []),
    ...(resourceList ? [{ member: 'resourcesListChanged', what: 'the list of resources' }] : []),
    ...(eventTypes ? [{ member: 'eventsListChanged', what: 'the event types' }] : []),
    ...resources.map((uri) => ({ member: 'resourceSubscriptions', element: uri, what: `the resource ${uri}` })),
    ...tasks.map((id) => ({ member: 'taskIds', element: id, what: `the task ${id}` })),
  ];
}

/** The change that a notification reports. */
export function changeOf(method: string, params: JsonObject): ServerChange | undefined {
  switch (method) {
    case 'notifications/tools/list_changed':
      return { type: 'tools' };
    case 'notifications/prompts/list_changed':
      return { type: 'prompts' };
    case 'notifications/resources/list_changed':
      return { type: 'resourceList' };
    case 'notifications/events/list_changed':
      return { type: 'eventTypes' };
    case 'notifications/resources/updated':
      return typeof params.uri === 'string' ? { type: 'resource', uri: params.uri } : undefined;
    case 'notifications/tasks/status':
    case 'notifications/tasks':
      return typeof params.taskId === 'string' ? { type: 'task', id: params.taskId } : undefined;
    default:
      return undefined;
  }
}

function keyOf(change: ServerChange): string {
  if (change.type === 'resource') return `resource ${change.uri}`;
  return change.type === 'task' ? `task ${change.id}` : change.type;
}
