/** The messages between a store and its thread. */

import type {
  ActorRow,
  DeadLetter,
  JournalEvent,
  ListQuery,
  ReplyWrite,
  Stored,
  StoreFault,
  StreamRow,
  TimerRow,
  Write,
} from '../store.ts';
import type { SqliteOptions } from './sqlite-options.ts';

/** The start parameters of the thread. */
export interface ThreadStart {
  readonly path: string;
  readonly options: SqliteOptions;
  /** The disk has failed too often: the store is read-only. */
  readonly readOnly: boolean;
}

export type StoreQuery =
  | { readonly type: 'commit'; readonly writes: readonly Write[]; readonly length: number }
  | { readonly type: 'claim'; readonly reply: ReplyWrite; readonly length: number }
  | { readonly type: 'load'; readonly actor: string }
  | { readonly type: 'list'; readonly query: ListQuery }
  | {
      readonly type: 'events';
      readonly actor: string;
      readonly stream: string;
      readonly after: number;
      readonly limit: number;
    }
  | { readonly type: 'streams'; readonly actor: string }
  | { readonly type: 'reply'; readonly actor: string; readonly request: string }
  | { readonly type: 'timers'; readonly until: number; readonly limit: number }
  | { readonly type: 'dead letters'; readonly limit: number }
  | { readonly type: 'sweep'; readonly now: number }
  | { readonly type: 'close' };

export interface StoreJob {
  readonly id: number;
  readonly question: StoreQuery;
}

/** The result of a query. */
export type StoreResult =
  | { readonly type: 'done' }
  | { readonly type: 'stored'; readonly stored: Stored | undefined }
  /** `damaged`: the ids of rows that were omitted because they are damaged. */
  | { readonly type: 'actors'; readonly rows: readonly ActorRow[]; readonly damaged: readonly string[] }
  | { readonly type: 'events'; readonly events: readonly JournalEvent[] }
  | { readonly type: 'streams'; readonly rows: readonly StreamRow[] }
  | { readonly type: 'reply'; readonly data: string | undefined }
  | { readonly type: 'timers'; readonly rows: readonly TimerRow[] }
  | { readonly type: 'dead letters'; readonly letters: readonly DeadLetter[] }
  | { readonly type: 'swept'; readonly gone: number };

export type StoreAnswer =
  | { readonly id: number; readonly found: StoreResult }
  | { readonly id: number; readonly fault: StoreFault; readonly message: string };

export type FromThread =
  | { readonly type: 'open' }
  /** The file could not be opened; the thread ends. */
  | { readonly type: 'refused'; readonly fault: StoreFault; readonly message: string }
  /** The disk failed: the thread accepts no more jobs, sends the remaining responses, and ends. */
  | { readonly type: 'ending' }
  | { readonly type: 'answers'; readonly answers: readonly StoreAnswer[] }
  | { readonly type: 'log'; readonly level: 'info' | 'warning' | 'error'; readonly message: string };
