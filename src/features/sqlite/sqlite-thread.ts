/** The server's side of the store's thread: starts it, sends it queries, and restarts it after a crash. */

import type { Worker } from 'node:worker_threads';
import { SlicedQueue, systemClock, type Timer } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { startThread } from '../../core/kernel/package-files.ts';
import { type RestartPolicy, Restarts } from '../../core/kernel/restarts.ts';
import {
  isChange,
  type QueryType,
  type StoreAnswer,
  StoreError,
  type StoreFault,
  type StoreHost,
} from '../../core/store/store.ts';
import { EndedCalls, FEW_WAITING, refusedBy } from '../../core/store/waiting-calls.ts';
import { lengthOf } from '../../core/store/writes.ts';
import type { SqliteOptions } from './sqlite-options.ts';
import {
  type FromThread,
  type JobAnswer,
  packJobs,
  type StoreJob,
  type ThreadQuery,
  type ThreadStart,
} from './sqlite-protocol.ts';

interface PendingQuery {
  readonly since: number;
  readonly type: QueryType | 'close';
  readonly length: number;
  resolve(found: StoreAnswer): void;
  reject(error: StoreError): void;
}

/**
 * The file. `opening`: for the first time. `reopening`: its thread has ended, and the next one opens it, or is about to.
 * `failed`: it could not be opened, can no longer be read, or was removed or replaced.
 */
type State = 'opening' | 'open' | 'reopening' | 'failed' | 'closed';

/** One more failure makes the store read-only. */
const POLICY: RestartPolicy = { restarts: 4, windowMs: 60_000, backOff: { fromMs: 100, toMs: 60_000 } };

/**
 * With this many pending queries a second message goes to the thread before it has answered the first. Fewer queries
 * wait for its answer and form one transaction: their sync costs more than the wait.
 */
const MANY = 256;
/**
 * Turns of the event loop between an answer of several queries and the next message. In these turns clients that got
 * their responses send their next requests, whose writes then join the transaction.
 */
const GATHERING_TURNS = 3;

/** The answers of which only the id travels. */
const COMMITTED: StoreAnswer = { type: 'commit', value: undefined };
const CLAIMED: StoreAnswer = { type: 'claim', value: undefined };

export class StoreThread {
  readonly #path: string;
  readonly #options: SqliteOptions;
  readonly #host: StoreHost;
  readonly #snapshot: boolean;
  readonly #opened: { resolve(): void; reject(error: StoreError): void };
  /** Resolves when the file is open for the first time. */
  readonly opened: Promise<void>;
  #state: State = 'opening';
  /** The disk has failed too often: only reads are possible. */
  #readOnly = false;
  #worker: Worker | undefined;
  #outbox: StoreJob[] = [];
  readonly #waiting = new Map<number, PendingQuery>();
  /** Responses of the thread. In slices, because each lets the output of a client leave, and a group has thousands. */
  readonly #answers = new SlicedQueue<JobAnswer | number>(systemClock, (answer) => this.#answer(answer));
  /** By the ids of calls: commits have their responses in the order of the calls. */
  readonly #ended = new EndedCalls();
  #length = 0;
  #nextId = 1;
  /** Queries below this id have been sent. */
  #unsent = 1;
  /** Number of queries that the thread has not answered, without sweeps. */
  #inThread = 0;
  /** Turns of the event loop until the next message; 0 if none is scheduled. */
  #turns = 0;
  readonly #restarts = new Restarts(POLICY);
  #lateness: Timer | undefined;
  #why = '';
  /** The device and inode of the file, once it was open. */
  #database: string | undefined;
  /** Resolves when the thread has ended. */
  #gone = Promise.resolve();

  /** @param snapshot see {@link sqliteSnapshot} */
  constructor(path: string, options: SqliteOptions, host: StoreHost, snapshot: boolean) {
    this.#path = path;
    this.#options = options;
    this.#host = host;
    this.#snapshot = snapshot;
    let settle: { resolve(): void; reject(error: StoreError): void } = { resolve: () => {}, reject: () => {} };
    this.opened = new Promise<void>((resolve, reject) => {
      settle = { resolve, reject };
    });
    this.#opened = settle;
    this.#start();
  }

  /** @throws {StoreError} */
  ask(question: ThreadQuery): Promise<StoreAnswer> {
    const length = question.type === 'close' ? 0 : lengthOf(question);
    const refused = this.#refusal(question, length);
    if (refused) return Promise.reject(refused);
    const id = this.#nextId++;
    this.#outbox.push({ id, question, length });
    if (this.#mayFlush()) this.#flushSoon(1);
    this.#length += length;
    const { type } = question;
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) this.#worker?.ref();
      this.#waiting.set(id, { since: systemClock.now(), type, length, resolve, reject });
      this.#watch();
    });
  }

  impairment(): 'not open' | 'read-only' | undefined {
    if (this.#readOnly && (this.#isOpening || this.#state === 'open')) return 'read-only';
    return this.#state === 'open' ? undefined : 'not open';
  }

  /** Resolves when all calls that wait now, except the last few, have their responses; undefined if only a few wait. */
  caughtUp(): Promise<void> | undefined {
    return this.#waiting.size <= FEW_WAITING ? undefined : this.#ended.when(this.#nextId - FEW_WAITING);
  }

  /** Makes pending writes durable, and resolves when the thread has closed the file. */
  async close(): Promise<void> {
    const wasOpen = this.#state === 'open';
    const last = wasOpen ? this.ask({ type: 'close' }).catch(() => {}) : undefined;
    this.#state = 'closed';
    this.#restarts.stop();
    this.#post();
    if (!wasOpen) this.#rejectAll('closed', this.#closed());
    await last;
    if (!wasOpen) await this.#worker?.terminate();
    await this.#gone;
    this.#lateness?.cancel();
    this.#rejectAll('closed', this.#closed());
  }

  /** True while queries wait for a thread. */
  get #isOpening(): boolean {
    return this.#state === 'opening' || this.#state === 'reopening';
  }

  #refusal(question: ThreadQuery, length: number): StoreError | undefined {
    const writes = question.type !== 'close' && isChange(question);
    if (this.#state === 'closed') return new StoreError('closed', this.#closed());
    if (writes && this.#snapshot) return new StoreError('failed', `${this.#path} is open for reading only`);
    if (this.#state === 'failed' || (writes && this.#readOnly)) return new StoreError('failed', this.#why);
    if (question.type === 'close') return undefined;
    return refusedBy(this.#options, { size: this.#waiting.size, length: this.#length }, length);
  }

  #closed(): string {
    return `${this.#path} is closed: its server has stopped`;
  }

  #start(): void {
    const start: ThreadStart = {
      ...{ path: this.#path, options: this.#options, snapshot: this.#snapshot },
      ...{ readOnly: this.#readOnly, database: this.#database },
    };
    const worker = startThread('features/sqlite/sqlite-worker', { name: 'troupe store', workerData: start });
    this.#worker = worker;
    let over = false;
    let gone: () => void = () => {};
    this.#gone = new Promise((resolve) => {
      gone = resolve;
    });
    let refused: { fault: StoreFault; message: string } | undefined;
    const end = (why: string): void => {
      if (over) return;
      over = true;
      this.#worker = undefined;
      gone();
      this.#died(refused ?? { fault: 'failed', message: why });
    };
    worker.on('message', (mail: FromThread) => {
      if (over) return;
      if (mail.type === 'refused') refused = mail;
      else this.#hear(mail);
    });
    worker.on('error', (error) => end(`the thread of ${this.#path} crashed: ${error.message}`));
    worker.on('exit', () => end(`the thread of ${this.#path} exited`));
  }

  #hear(mail: Exclude<FromThread, { type: 'refused' }>): void {
    switch (mail.type) {
      case 'open':
        if (this.#state === 'closed') return;
        if (this.#isOpening) this.#state = 'open';
        this.#database ??= mail.database;
        this.#opened.resolve();
        if (this.#waiting.size === 0) this.#worker?.unref();
        return this.#post();
      case 'displaced':
        this.#host.log('error', mail.message);
        return this.#giveUp('failed', mail.message);
      case 'ending':
        if (this.#state === 'open') this.#state = 'reopening';
        return;
      case 'log':
        return this.#host.log(mail.level, mail.message);
      case 'answers':
        for (const answer of mail.answers) {
          // Counted at once: the thread is free for the next message although these responses are processed in slices.
          const waiting = this.#waiting.get(idOf(answer));
          if (waiting && waiting.type !== 'sweep') this.#inThread -= 1;
          this.#answers.add(answer);
        }
        if (this.#inThread === 0) this.#flushSoon(mail.answers.length > 1 ? GATHERING_TURNS : 1);
    }
  }

  #answer(answer: JobAnswer | number): void {
    const id = idOf(answer);
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#forget(id, waiting);
    if (typeof answer === 'number') waiting.resolve(waiting.type === 'claim' ? CLAIMED : COMMITTED);
    else if ('found' in answer) waiting.resolve(answer.found);
    else waiting.reject(new StoreError(answer.fault, answer.message));
  }

  #forget(id: number, { length }: PendingQuery): void {
    this.#waiting.delete(id);
    this.#length -= length;
    this.#ended.reached(id);
    if (this.#waiting.size > 0 || this.#isOpening) return;
    this.#lateness?.cancel();
    this.#lateness = undefined;
    // An idle store does not keep the process alive.
    if (this.#state !== 'closed') this.#worker?.unref();
  }

  /** Queries that were sent have an unknown outcome and fail; the others are sent to the next thread. */
  #died({ fault, message }: { fault: StoreFault; message: string }): void {
    this.#answers.flush();
    for (const [id, waiting] of this.#waiting) {
      if (id >= this.#unsent) break;
      this.#forget(id, waiting);
      waiting.reject(
        new StoreError(
          'failed',
          `${message}. It is unknown whether this write was persisted; read the data again to find out`,
        ),
      );
    }
    this.#inThread = 0;
    if (this.#state === 'closed' || this.#state === 'failed') return;
    if (this.#state === 'opening' || this.#readOnly) return this.#giveUp(fault, message);
    this.#state = 'reopening';
    const delayMs = this.#restarts.restart(this.#host.clock, () => this.#start());
    if (delayMs === undefined) {
      this.#why = `${this.#path} is read-only after ${this.#restarts.crashes} failures in a minute: ${message}. Check its disk, then restart this process`;
      this.#host.log('error', this.#why);
      this.#readOnly = true;
      this.#rejectAll('failed', this.#why);
      return this.#start();
    }
    this.#host.log('error', `${message}; the store reopens the file in ${durationOf(delayMs)}`);
  }

  #giveUp(fault: StoreFault, message: string): void {
    if (this.#state !== 'closed') this.#state = 'failed';
    this.#why = message;
    this.#opened.reject(new StoreError(fault, message));
    this.#rejectAll('failed', message);
  }

  #rejectAll(fault: StoreFault, message: string): void {
    this.#outbox = [];
    this.#answers.flush();
    for (const [id, waiting] of this.#waiting) {
      this.#forget(id, waiting);
      waiting.reject(new StoreError(fault, message));
    }
  }

  /** Returns whether pending queries go to the thread now: one transaction after the other, unless there are many. */
  #mayFlush(): boolean {
    return this.#inThread === 0 || this.#outbox.length >= MANY;
  }

  /** Posts one message after some turns of the event loop: posting costs more than its content. */
  #flushSoon(turns: number): void {
    if (this.#turns > 0 || this.#isOpening) return;
    this.#turns = turns;
    systemClock.soon(this.#nextTurn);
  }

  readonly #nextTurn = (): void => {
    this.#turns -= 1;
    if (this.#turns > 0 && this.#outbox.length < MANY) return systemClock.soon(this.#nextTurn);
    this.#turns = 0;
    if (this.#mayFlush()) this.#post();
  };

  #post(): void {
    if (this.#outbox.length === 0 || !this.#worker || this.#isOpening) return;
    this.#worker.postMessage(packJobs(this.#outbox));
    // The thread answers a sweep after many transactions: no query waits for it.
    for (const { question } of this.#outbox) if (question.type !== 'sweep') this.#inThread += 1;
    this.#unsent = this.#nextId;
    this.#outbox = [];
  }

  /**
   * Ends a thread that does not respond, because its disk hangs. Uses real time whatever the server's clock is, because
   * disks do.
   */
  #watch(): void {
    this.#lateness ??= systemClock.after(this.#options.answerMs, () => {
      this.#lateness = undefined;
      const [oldest] = this.#waiting.values();
      if (!oldest) return;
      if (systemClock.now() - oldest.since < this.#options.answerMs / 2) return this.#watch();
      const worker = this.#worker;
      if (!worker)
        return this.#rejectAll(
          'failed',
          `${this.#path} could not be opened within ${durationOf(this.#options.answerMs)} (answerMs)`,
        );
      worker.emit('error', new Error(`no response within ${durationOf(this.#options.answerMs)} (answerMs)`));
      void worker.terminate();
    });
  }
}

function idOf(answer: JobAnswer | number): number {
  return typeof answer === 'number' ? answer : answer.id;
}
