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
  /** The device and inode of the file that the previous thread had open; undefined for the first thread. */
  readonly database: string | undefined;
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

/**
 * Jobs on their way to the thread. Most writes are replies, and a thread reads a list of texts in a third of the time
 * of a list of objects: so replies travel in columns, and their jobs have their places in them.
 */
export interface PostedJobs {
  readonly jobs: readonly PostedJob[];
  readonly actors: readonly string[];
  readonly requests: readonly string[];
  readonly data: readonly string[];
  readonly expires: readonly number[];
}

interface PostedJob {
  readonly id: number;
  /** A commit with the place of each reply in the columns. */
  readonly writes?: readonly (Write | number)[];
  readonly length?: number;
  readonly question?: StoreQuery;
}

export function packJobs(jobs: readonly StoreJob[]): PostedJobs {
  const actors: string[] = [];
  const requests: string[] = [];
  const data: string[] = [];
  const expires: number[] = [];
  const placeOf = (write: Write): Write | number => {
    if (write.type !== 'reply') return write;
    actors.push(write.actor);
    requests.push(write.request);
    data.push(write.data);
    return expires.push(write.expires) - 1;
  };
  const posted = jobs.map((job): PostedJob => {
    const { id, question } = job;
    if (question.type !== 'commit') return job;
    return { id, writes: question.writes.map(placeOf), length: question.length };
  });
  return { jobs: posted, actors, requests, data, expires };
}

export function unpackJobs({ jobs, actors, requests, data, expires }: PostedJobs): readonly StoreJob[] {
  const writeAt = (write: Write | number): Write =>
    typeof write !== 'number'
      ? write
      : {
          type: 'reply',
          actor: actors[write] ?? '',
          request: requests[write] ?? '',
          data: data[write] ?? '',
          expires: expires[write] ?? 0,
        };
  return jobs.map(({ id, question, writes, length }): StoreJob => {
    const commit = { type: 'commit', writes: (writes ?? []).map(writeAt), length: length ?? 0 } as const;
    return { id, question: question ?? commit };
  });
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
  | { readonly type: 'open'; readonly database: string | undefined }
  /** The file could not be opened; the thread ends. */
  | { readonly type: 'refused'; readonly fault: StoreFault; readonly message: string }
  /** A file of the store was removed or replaced: the thread ends, and no other thread may open what is there now. */
  | { readonly type: 'displaced'; readonly message: string }
  /** The disk failed: the thread accepts no more jobs, sends the remaining responses, and ends. */
  | { readonly type: 'ending' }
  /** In the order of the jobs; of a job whose result is `done`, as that of most is, only the id. */
  | { readonly type: 'answers'; readonly answers: readonly (StoreAnswer | number)[] }
  | { readonly type: 'log'; readonly level: 'info' | 'warning' | 'error'; readonly message: string };
