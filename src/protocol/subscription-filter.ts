/** The filter of `subscriptions/listen`: what a client wants to hear of, read from the wire and shown on it. */
import { misfit } from './errors.ts';
import { isObject } from './json.ts';

/** The lists whose changes can be heard of. */
export type ListName = 'tools' | 'resources' | 'prompts';

/** What a subscription asks for, or is granted. */
export interface SubscriptionFilter {
  readonly lists: readonly ListName[];
  /** The uris of the resources; undefined where no kind of it was asked for, or can be had. */
  readonly resources: readonly string[] | undefined;
  /** The ids of the tasks; undefined as above. */
  readonly tasks: readonly string[] | undefined;
}

export type Listen = { readonly method: 'subscriptions/listen'; readonly filter: SubscriptionFilter };

const LISTS: readonly (readonly [member: string, list: ListName])[] = [
  ['toolsListChanged', 'tools'],
  ['promptsListChanged', 'prompts'],
  ['resourcesListChanged', 'resources'],
];

/** Members of the filter that are not known are kinds of changes that nobody can be told of: they are read over. */
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
  const value = notifications[member];
  if (value !== undefined && typeof value !== 'boolean')
    throw misfit(`notifications.${member}`, 'true or false', value);
  return value === true;
}

function readStrings(value: unknown, member: string, noun: string): readonly string[] | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw misfit(`notifications.${member}`, `an array of ${noun}s`, value);
  return value.map((each: unknown, index) => {
    if (typeof each !== 'string') throw misfit(`notifications.${member}[${index}]`, `a ${noun}, as a string`, each);
    return each;
  });
}

/** As it is acknowledged: kinds that nobody is told of are left out (2026-07-28 subscriptions, "Acknowledgment"). */
export function renderFilter({ lists, resources, tasks }: SubscriptionFilter): Readonly<Record<string, unknown>> {
  const shown: Record<string, unknown> = {};
  for (const [member, list] of LISTS) if (lists.includes(list)) shown[member] = true;
  if (resources) shown.resourceSubscriptions = resources;
  if (tasks) shown.taskIds = tasks;
  return shown;
}
