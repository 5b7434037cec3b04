/** The changes that clients can listen for. Types only. */
import type { JsonObject } from '../protocol/json.ts';
import type { SubscriptionFilter } from '../protocol/subscription-filter.ts';
import type { TaskState } from './results.ts';

export type ListKind = 'tools' | 'resources' | 'prompts' | 'events';

/** A change that clients can listen for. */
export type Change =
  | { readonly type: 'list changed'; readonly what: ListKind }
  /** If it belongs to one principal (a handle), other principals are not notified, even if they watch the URI. */
  | { readonly type: 'resource updated'; readonly uri: string; readonly owner?: string }
  | { readonly type: 'task changed'; readonly task: TaskState };

/** A notification for one subscription: first its acknowledged filter, then changes. */
export type ChangeNotice =
  | { readonly type: 'acknowledged'; readonly filter: SubscriptionFilter }
  | Change
  /** A notification of a stream of events. */
  | { readonly type: 'streamed'; readonly method: string; readonly params: JsonObject }
  /** Sends nothing: called when everything before it was passed to the transport. */
  | { readonly type: 'passed'; passed(): void };
