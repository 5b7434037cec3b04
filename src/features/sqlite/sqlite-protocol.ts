/** The messages between a store and its thread. */
import type { ReplyWrite, StoreAnswer, StoreFault, StoreQuery, StoreRead, Write } from '../../core/store/store.ts';
import type { SqliteOptions } from './sqlite-options.ts';

/** The start parameters of the thread. */
export interface ThreadStart {
  readonly path: string;
  readonly options: SqliteOptions;
  /** The disk has failed too often: the store is read-only. */
  readonly readOnly: boolean;
  /** The store shows the file as it is now, while another process may write to it. */
  readonly snapshot: boolean;
  /** The device and inode of the file that the previous thread had open; undefined for the first thread. */
  readonly database: string | undefined;
}

/** A query, or the end of the store. */
export type ThreadQuery = StoreQuery | { readonly type: 'close' };

export type ThreadRead = StoreRead | { readonly type: 'close' };

export interface StoreJob {
  readonly id: number;
  readonly question: ThreadQuery;
  /** The characters that it writes. */
  readonly length: number;
}

/**
 * Jobs on their way to the thread. Most jobs are commits and claims of replies only, and a thread reads one long text in
 * a fraction of the time of many short ones: so these jobs travel as one text and a list of numbers.
 */
export interface PostedJobs {
  /** A job; or the id of a claim or of a commit of replies only. */
  readonly jobs: readonly (StoreJob | number)[];
  /** The actors, requests and data of all these replies, without separators. */
  readonly text: string;
  /**
   * For each of these jobs its length and number of replies, or {@link CLAIM} for a claim of one; for each reply the
   * lengths of its actor, request and data, and its expiry. {@link SAME} in place of the first length repeats the actor
   * of the reply before.
   */
  readonly numbers: readonly number[];
}

const SAME = -1;
const CLAIM = -1;

export function packJobs(jobs: readonly StoreJob[]): PostedJobs {
  const numbers: number[] = [];
  let text = '';
  let last: string | undefined;
  const posted = jobs.map((job) => {
    const { id, question, length } = job;
    const replies = repliesIn(question);
    if (!replies) return job;
    numbers.push(length, question.type === 'claim' ? CLAIM : replies.length);
    for (const { actor, request, data, expires } of replies) {
      numbers.push(actor === last ? SAME : actor.length, request.length, data.length, expires);
      text += actor === last ? request : actor + request;
      text += data;
      last = actor;
    }
    return id;
  });
  return { jobs: posted, text, numbers };
}

export function unpackJobs({ jobs, text, numbers }: PostedJobs): readonly StoreJob[] {
  let [actor, at, next] = ['', 0, 0];
  const number = (): number => numbers[next++] ?? 0;
  const words = (length: number): string => {
    at += length;
    return text.slice(at - length, at);
  };
  const reply = (): ReplyWrite => {
    const [of, name, body] = [number(), number(), number()];
    if (of !== SAME) actor = words(of);
    return { type: 'reply', actor, request: words(name), data: words(body), expires: number() };
  };
  return jobs.map((job): StoreJob => {
    if (typeof job !== 'number') return job;
    const length = number();
    const count = number();
    if (count === CLAIM) return { id: job, question: { type: 'claim', reply: reply() }, length };
    const writes: ReplyWrite[] = [];
    while (writes.length < count) writes.push(reply());
    return { id: job, question: { type: 'commit', writes }, length };
  });
}

/** The replies of a job that contains nothing else. */
function repliesIn(question: ThreadQuery): readonly ReplyWrite[] | undefined {
  if (question.type === 'claim') return [question.reply];
  return question.type === 'commit' && question.writes.every(isReply) ? question.writes : undefined;
}

function isReply(write: Write): write is ReplyWrite {
  return write.type === 'reply';
}

export type JobAnswer =
  | { readonly id: number; readonly found: StoreAnswer }
  | { readonly id: number; readonly fault: StoreFault; readonly message: string };

export type FromThread =
  | { readonly type: 'open'; readonly database: string | undefined }
  /** The file could not be opened; the thread ends. */
  | { readonly type: 'refused'; readonly fault: StoreFault; readonly message: string }
  /** A file of the store was removed or replaced: the thread ends, and no other thread may open what is there now. */
  | { readonly type: 'displaced'; readonly message: string }
  /** The disk failed: the thread accepts no more jobs, sends the remaining responses, and ends. */
  | { readonly type: 'ending' }
  /** In the order of the jobs; of a commit, a won claim and the end of the store, which are most jobs, only the id. */
  | { readonly type: 'answers'; readonly answers: readonly (JobAnswer | number)[] }
  | { readonly type: 'log'; readonly level: 'info' | 'warning' | 'error'; readonly message: string };
