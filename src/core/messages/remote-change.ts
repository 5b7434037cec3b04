/** The changes that nodes tell each other, and the topics for which each node has listeners. Types only. */
import type { Change } from './change-notices.ts';

/** A change that other nodes learn of. A subscription to a task is served by the owner of the task. */
export type RemoteChange = Exclude<Change, { readonly type: 'task changed' }>;

/** Learns for which resources a server has listeners: other nodes and mounted servers then report their changes. */
export interface ListenedResources {
  /** The first listener of a resource has joined. */
  listened(uri: string): void;
  /** The last one has left. */
  unlistened(uri: string): void;
}
