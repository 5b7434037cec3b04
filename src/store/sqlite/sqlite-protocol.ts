/** What a store and its thread tell each other. */

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

/** How the thread begins. */
export interface ThreadStart {
  readonly path: string;
  readonly options: SqliteOptions;
  /** The disk has failed too often: nothing is written any more. */
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

/** What a question comes to. */
export type StoreResult =
  | { readonly type: 'done' }
  | { readonly type: 'stored'; readonly stored: Stored | undefined }
  /** `damaged`: the ids of rows that were left out, because they are not as they were written. */
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
  /** It could not be opened; the thread ends. */
  | { readonly type: 'refused'; readonly fault: StoreFault; readonly message: string }
  /** The disk has failed under it: it takes no more. What it has answers for, it says next, and ends. */
  | { readonly type: 'ending' }
  | { readonly type: 'answers'; readonly answers: readonly StoreAnswer[] }
  | { readonly type: 'log'; readonly level: 'info' | 'warning' | 'error'; readonly message: string };
