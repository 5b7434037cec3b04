/** The messages between a member and the thread that proves to the database that its node is alive. */
import type { StoreFault } from '../../core/store/store.ts';
import type { ClusterRead } from './cluster-tables.ts';
import type { Timeline } from './primary-timeline.ts';

export interface BeatStart {
  /** With its password: the thread opens its own connection. */
  readonly url: string;
  readonly schema: string;
  readonly node: string;
  readonly address: string;
  readonly version: string;
  /** Milliseconds for the first connection. */
  readonly joinMs: number;
  /** Two integers of 32 bits: see {@link SHARED}. */
  readonly shared: SharedArrayBuffer;
}

/** The indexes of the integers that both threads use. */
export const SHARED = {
  /** The number of the last beat that the main thread has seen: its event loop ran then. */
  seen: 0,
  /** 1 if the connection was without a break for longer than the lease: only then may this node fence another. */
  steady: 1,
} as const;

export type FromBeat =
  | { readonly type: 'joined'; readonly read: ClusterRead }
  | { readonly type: 'refused'; readonly fault: StoreFault; readonly message: string }
  | { readonly type: 'beat'; readonly beat: number; readonly read: ClusterRead }
  /** The thread has connected, to a primary on this timeline. */
  | { readonly type: 'primary'; readonly timeline: Timeline }
  | { readonly type: 'lost'; readonly why: string };

export interface ToBeat {
  readonly type: 'stop';
}
