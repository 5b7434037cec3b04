/** The filter of `subscriptions/listen`: parsed from the wire and rendered for the acknowledgement. */
import { misfit } from './errors.ts';
import { isObject } from './json.ts';

/** The lists whose changes a client can subscribe to. */
type ListName = 'tools' | 'resources' | 'prompts' | 'events';

/** The changes that a subscription requests or is granted. */
export interface SubscriptionFilter {
  readonly lists: readonly ListName[];
  /** URIs of the resources; undefined if the client did not request this kind or the server does not offer it. */
  readonly resources: readonly string[] | undefined;
  /** Ids of the tasks; undefined under the same conditions. */
  readonly tasks: readonly string[] | undefined;
}

export type Listen = { readonly method: 'subscriptions/listen'; readonly filter: SubscriptionFilter };

const LISTS: readonly (readonly [member: string, list: ListName])[] = [
  ['toolsListChanged', 'tools'],
  ['promptsListChanged', 'prompts'],
  ['resourcesListChanged', 'resources'],
  ['eventsListChanged', 'events'],
];

/** Ignores unknown members of the filter: the server never sends notifications of an unknown kind. */
export function readListen(params: Readonly<Record<string, unknown>> | undefined): Listen {
  const notifications = params?.notifications;
  if (!isObject(notifications)) throw misfit('notifications', 'an object (it may be empty)', notifications);
  const lists = LISTS.flatMap(([member, list]) => (readFlag(notifications, member) ? [list] : []));
  return {
    method: 'subscriptions/listen',
    filter: {
      lists,
      resources: readStrings(notifications.resourceSubscriptions, 'resourceSubscriptions', 'uri'),
      tasks: readStrings(notifications.taskIds, 'taskIds', 'task id'),
    },
  };
}

function readFlag(notifications: Readonly<Record<string, unknown>>, member: string): boolean {
  const value = notifications[member] ?? undefined;
  if (value !== undefined && typeof value !== 'boolean')
    throw misfit(`notifications.${member}`, 'true or false', value);
  return value === true;
}

function readStrings(value: unknown, member: string, noun: string): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw misfit(`notifications.${member}`, `an array of ${noun}s`, value);
  return value.map((each: unknown, index) => {
    if (typeof each !== 'string') throw misfit(`notifications.${member}[${index}]`, `a ${noun}, as a string`, each);
    return each;
  });
}

/**
 * The filter as acknowledged, without the kinds that the server never sends (2026-07-28 subscriptions,
 * "Acknowledgment").
 */
export function renderFilter({ lists, resources, tasks }: SubscriptionFilter): Readonly<Record<string, unknown>> {
  const shown: Record<string, unknown> = {};
  for (const [member, list] of LISTS) if (lists.includes(list)) shown[member] = true;
  if (resources) shown.resourceSubscriptions = resources;
  if (tasks) shown.taskIds = tasks;
  return shown;
}
