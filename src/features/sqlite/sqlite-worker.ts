/**
 * The thread of a store in a file: makes all waiting writes durable in one transaction while the next group collects.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { groupSize } from '../../core/store/waiting-calls.ts';
import { Displaced, type OpenedDatabase, openFile } from './database-file.ts';
import { GroupCommit } from './group-commit.ts';
import { explainFault, storeFaultOf } from './sqlite-database.ts';
import {
  type FromThread,
  type JobAnswer,
  type PostedJobs,
  type StoreJob,
  type ThreadStart,
  unpackJobs,
} from './sqlite-protocol.ts';

/** Each damaged row is logged once, up to this number. */
const MAX_REPORTED = 1_000;

const port = parentPort;
if (!port) throw new Error('this module runs in the thread of a store. Call sqlite() instead');
const tell = (mail: FromThread): void => port.postMessage(mail);

const start: ThreadStart = workerData;
const queue: StoreJob[] = [];
const reported = new Set<string>();

function report(what: string): void {
  if (reported.has(what) || reported.size >= MAX_REPORTED) return;
  reported.add(what);
  tell({ type: 'log', level: 'error', message: what });
}

function respond(answers: readonly JobAnswer[]): void {
  tell({ type: 'answers', answers: answers.map((answer) => (isBrief(answer) ? answer.id : answer)) });
}

function isBrief(answer: JobAnswer): boolean {
  if (!('found' in answer) || answer.found.value !== undefined) return false;
  return answer.found.type === 'commit' || answer.found.type === 'claim';
}

function open(): OpenedDatabase | undefined {
  try {
    const opened = openFile(start);
    for (const message of opened.notes) tell({ type: 'log', level: 'warning', message });
    for (const message of opened.damage) report(message);
    return opened;
  } catch (error) {
    if (error instanceof Displaced) tell({ type: 'displaced', message: error.message });
    else tell({ type: 'refused', fault: storeFaultOf(error), message: explainFault(error, start.path) });
    return undefined;
  }
}

/** As many jobs as one transaction may have. The end of the store is one of its own. */
function group(): StoreJob[] {
  const end = queue.findIndex(({ question }) => question.type === 'close');
  const jobs = end > 0 ? queue.slice(0, end) : queue;
  return queue.splice(
    0,
    groupSize(start.options, jobs, ({ question }) => (question.type === 'commit' ? question.writes.length : 1)),
  );
}

function serve(opened: OpenedDatabase): void {
  const { db, identity, release } = opened;
  const groups = new GroupCommit(opened, start.path, start.options, report);
  let ended = false;
  const end = (): void => {
    ended = true;
    // Its statements still hold the file; the end of the thread releases it.
    db.close();
    port?.close();
  };
  // When files were displaced, the mark and the lock stay as they are: another process may use them by now.
  const close = (): void => {
    const message = start.readOnly || start.snapshot ? undefined : identity.displaced();
    if (message === undefined) release();
    else tell({ type: 'displaced', message });
  };
  const answersTo = (jobs: readonly StoreJob[]): JobAnswer[] | undefined => {
    try {
      return groups.run(jobs);
    } catch (error) {
      if (!(error instanceof Displaced)) throw error;
      tell({ type: 'displaced', message: error.message });
      return undefined;
    }
  };
  port?.on('message', (first: PostedJobs) => {
    queue.push(...unpackJobs(first));
    while (queue.length > 0 && !ended) {
      // Jobs that arrived during the last transaction. No turn of an event loop lies in between.
      for (let more = receiveMessageOnPort(port); more; more = receiveMessageOnPort(port))
        queue.push(...unpackJobs(more.message));
      const jobs = group();
      const answers = answersTo(jobs);
      if (!answers) return end();
      const closing = jobs.find(({ question }) => question.type === 'close');
      if (closing) close();
      if (groups.broken) tell({ type: 'ending' });
      if (answers.length > 0) respond(answers);
      if (closing || groups.broken) return end();
      if (answers.length === jobs.length) continue;
      const answered = new Set(answers.map(({ id }) => id));
      queue.push(...jobs.filter(({ id }) => !answered.has(id)));
    }
  });
  tell({ type: 'open', database: identity.database });
}

const opened = open();
if (opened) serve(opened);
else port.close();
