/**
 * Processes a group of jobs in the store's thread: one transaction for all, responses once it is durable, and the
 * meaning of each failure.
 */

import type { KnownKeys } from '../../core/store/known-keys.ts';
import {
  findsExpected,
  isChange,
  type ReplyWrite,
  type SnapshotSwap,
  type StoreAnswer,
  type StoreChange,
  type Write,
  writesOf,
} from '../../core/store/store.ts';
import type { CommitMark } from './commit-mark.ts';
import { COUNT_COMMIT, Displaced, type OpenedDatabase } from './database-file.ts';
import type { FileIdentity } from './file-identity.ts';
import { SqliteJournal } from './journal.ts';
import { ReplyPacks } from './reply-packs.ts';
import { type Db, damaged, explainFault, isDisk, type Statement, storeFaultOf } from './sqlite-database.ts';
import type { SqliteOptions } from './sqlite-options.ts';
import type { JobAnswer, StoreJob, ThreadQuery, ThreadRead } from './sqlite-protocol.ts';
import { StateRows } from './state-rows.ts';

/** Maximum number of expired items of each kind that one transaction deletes. */
const SLICE = 100;
/** Number of pages that one transaction returns to the disk. */
const PAGES = 500;
/** The file may have one empty page in this many. */
const EMPTY = 20;

/** A job that pauses and continues after other jobs. */
const LATER = Symbol('later');

interface Sweep {
  after: readonly [number, string];
  /** The last reply that was checked; undefined when all were. */
  reply: readonly [number, number] | undefined;
  /** The newest pack of replies when the packs had their turn: it and all older ones move to rows. */
  pack: number | undefined;
  /** Number of replies beyond the limit, once counted. */
  surplus: number | undefined;
  gone: number;
}

export class GroupCommit {
  readonly #db: Db;
  readonly #path: string;
  readonly #options: SqliteOptions;
  readonly #report: (what: string) => void;
  readonly #keys: KnownKeys;
  readonly #mark: CommitMark;
  readonly #identity: FileIdentity;
  readonly #begin: Statement;
  readonly #count: Statement;
  readonly #commit: Statement;
  readonly #rows: StateRows;
  readonly #replies: ReplyPacks;
  readonly #journal: SqliteJournal;
  readonly #sweeps = new Map<number, Sweep>();
  /** The disk has failed: this connection is no longer used. */
  broken = false;

  /** @param report receives damage, for the operator */
  constructor(
    { db, keys, packs, mark, identity }: OpenedDatabase,
    path: string,
    options: SqliteOptions,
    report: (what: string) => void,
  ) {
    this.#db = db;
    this.#path = path;
    this.#options = options;
    this.#report = report;
    this.#keys = keys;
    this.#mark = mark;
    this.#identity = identity;
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#count = db.prepare(COUNT_COMMIT);
    this.#commit = db.prepare('COMMIT');
    this.#rows = new StateRows(db, keys, report);
    this.#replies = new ReplyPacks(db, this.#rows, packs);
    this.#journal = new SqliteJournal(db, keys, options);
  }

  /**
   * Runs the jobs in order. A job without a response runs again later.
   *
   * @throws {Displaced} if the transaction went to a file that its path no longer leads to: nothing is acknowledged
   */
  run(jobs: readonly StoreJob[]): JobAnswer[] {
    const isTransaction = jobs.some(({ question }) => changes(question));
    const answers: JobAnswer[] = [];
    const swept: number[] = [];
    try {
      if (isTransaction) this.#begin.run();
      for (const { id, question } of jobs) {
        if (!changes(question)) {
          this.#settle();
          answers.push(this.#attempt(id, question));
          continue;
        }
        const found = this.#change(id, question);
        if (found !== LATER) answers.push({ id, found });
        if (found !== LATER) swept.push(id);
      }
      if (isTransaction) this.#finish();
      for (const id of swept) this.#sweeps.delete(id);
      return answers;
    } catch (error) {
      if (error instanceof Displaced) throw error;
      return this.#failed(jobs, error);
    }
  }

  /** After the transaction, so that a file that was removed during it is noticed. @throws {Displaced} */
  #mustBeInPlace(): void {
    const displaced = this.#identity.displaced();
    if (displaced !== undefined) throw new Displaced(displaced);
  }

  /** Writes the deferred rows, and makes the transaction durable. */
  #finish(): void {
    this.#settle();
    this.#replies.write();
    this.#count.run();
    this.#commit.run();
    this.#mustBeInPlace();
    this.#keys.keep();
    this.#replies.keep();
    this.#mark.count();
  }

  /** Forgets the transaction. */
  #undo(): void {
    this.#rows.reset();
    this.#replies.reset();
    this.#journal.reset();
    this.#keys.undo();
    this.#rollBack();
  }

  #failed(jobs: readonly StoreJob[], error: unknown): JobAnswer[] {
    this.#undo();
    if (isDisk(error)) this.broken = true;
    // One invalid batch must not fail the others. A failing disk would reject each of them in turn, so it is not
    // retried.
    const alone = !this.broken && storeFaultOf(error) !== 'full' && jobs.length > 1;
    if (alone) return jobs.flatMap((job) => this.run([job]));
    return jobs.map(({ id, question }) => {
      if (!changes(question)) return this.#attempt(id, question);
      this.#sweeps.delete(id);
      return this.#refusal(id, error);
    });
  }

  #rollBack(): void {
    try {
      this.#db.rollback();
    } catch {
      // The open transaction must not grow.
      this.broken = true;
    }
  }

  /** @param error for a store that was open, "not a store" means that it is damaged */
  #refusal(id: number, error: unknown): JobAnswer {
    const [fault, message] = [storeFaultOf(error), explainFault(error, this.#path)];
    if (fault === 'foreign') return this.#refusal(id, damaged(`the head of ${this.#path}`));
    if (fault === 'corrupt') this.#report(message);
    return { id, fault, message };
  }

  #settle(): void {
    this.#rows.settle();
    this.#journal.settle();
  }

  #attempt(id: number, question: ThreadRead): JobAnswer {
    try {
      return { id, found: this.#read(question) };
    } catch (error) {
      if (isDisk(error)) this.broken = true;
      return this.#refusal(id, error);
    }
  }

  #read(question: ThreadRead): StoreAnswer {
    switch (question.type) {
      case 'load':
        return { type: 'load', value: this.#rows.load(question.actor) };
      case 'list':
        return { type: 'list', value: this.#rows.list(question.query) };
      case 'events': {
        const { actor, stream, after, limit } = question;
        return { type: 'events', value: this.#journal.events(actor, stream, after, limit) };
      }
      case 'streams':
        return { type: 'streams', value: this.#journal.streams(question.actor) };
      case 'reply':
        return { type: 'reply', value: this.#replies.replyTo(question.actor, question.request) };
      case 'timers':
        return { type: 'timers', value: this.#rows.timers(question) };
      case 'letters':
        return { type: 'letters', value: this.#rows.letters(question.limit) };
      case 'close':
        this.#movePacks();
        // A copy of the file after this contains everything.
        this.#db.pragma('wal_checkpoint(TRUNCATE)');
        return { type: 'commit', value: undefined };
    }
  }

  #change(id: number, question: StoreChange): StoreAnswer | typeof LATER {
    switch (question.type) {
      case 'commit':
        for (const write of question.writes) this.#write(write);
        return { type: 'commit', value: undefined };
      case 'claim':
        return { type: 'claim', value: this.#claim(question.reply) };
      case 'swap':
        return { type: 'swap', value: this.#swap(question.swap) };
      case 'sweep':
        return this.#sweep(id, question.now);
    }
  }

  /** @returns the existing reply; undefined if this one was written */
  #claim({ actor, request, data, expires }: ReplyWrite): string | undefined {
    const there = this.#replies.replyTo(actor, request);
    if (there === undefined) this.#replies.reply(actor, request, data, expires);
    return there;
  }

  #swap(swap: SnapshotSwap): boolean {
    // Rows written before it in this transaction count, too.
    this.#settle();
    const finds = findsExpected(swap, this.#rows.load(swap.actor.id));
    if (finds) for (const write of writesOf(swap)) this.#write(write);
    return finds;
  }

  #write(write: Write): void {
    switch (write.type) {
      case 'actor':
        return this.#rows.actor(write.actor);
      case 'snapshot':
        this.#journal.covered(write.actor);
        return this.#rows.snapshot(write.actor, write.version, write.data);
      case 'event':
        return this.#journal.append(write.actor, write);
      case 'reply':
        return this.#replies.reply(write.actor, write.request, write.data, write.expires);
      case 'timer':
        return this.#rows.timer(write.timer);
      case 'timer off':
        return this.#rows.timerOff(write.actor, write.timer);
      case 'dead letter':
        return this.#rows.letter(write.letter);
      case 'trim':
        return this.#journal.trim(write.actor, write.stream, write.upto);
      case 'forget':
        return this.#forget(write.actor);
    }
  }

  /** One slice, so that concurrent commits do not wait for the whole sweep. */
  #sweep(id: number, now: number): StoreAnswer | typeof LATER {
    // Rows written before it in this transaction may live longer now.
    this.#settle();
    const begin = Number.MIN_SAFE_INTEGER;
    const sweep = this.#sweeps.get(id) ?? {
      after: [begin, ''],
      reply: [begin, 0],
      pack: undefined,
      surplus: undefined,
      gone: 0,
    };
    this.#sweeps.set(id, sweep);
    const expired = this.#rows.expired(now, sweep.after, SLICE);
    for (const { id } of expired) if (this.#whole(() => this.#forget(id))) sweep.gone += 1;
    const last = expired.at(-1);
    if (last) sweep.after = [last.expires ?? 0, last.id];
    if (expired.length === SLICE) return LATER;
    const { reply } = sweep;
    sweep.reply = undefined;
    this.#whole(() => {
      sweep.reply = reply && this.#rows.sweepReplies(now, reply, SLICE);
    });
    if (sweep.reply) return LATER;
    if (sweep.pack === undefined) this.#whole(() => this.#journal.sweep());
    sweep.pack ??= this.#replies.newest;
    if (this.#replies.move(sweep.pack, now, SLICE)) return LATER;
    const { maxActorReplies, maxReplies, maxDeadLetters } = this.#options;
    sweep.surplus ??= this.#rows.replies() - maxReplies;
    const { surplus } = sweep;
    if (surplus > 0) {
      this.#whole(() => this.#rows.sweepFirst(Math.min(surplus, SLICE)));
      sweep.surplus = surplus - SLICE;
      return LATER;
    }
    this.#whole(() => this.#rows.sweepCrowds(maxActorReplies, maxDeadLetters));
    return this.#shrink() ? LATER : { type: 'sweep', value: sweep.gone };
  }

  #forget(actor: string): void {
    this.#journal.forget(actor);
    this.#replies.forget(actor);
    this.#rows.forget(actor);
  }

  /**
   * Moves all replies to rows, and returns the space of their packs to the disk. If that fails, the next start reads the
   * packs.
   */
  #movePacks(): void {
    if (this.#replies.isEmpty || this.#db.inTransaction) return;
    try {
      this.#begin.run();
      this.#replies.move(this.#replies.newest, Number.NEGATIVE_INFINITY);
      while (this.#shrink());
      this.#finish();
    } catch {
      this.#undo();
    }
  }

  /**
   * A part of a sweep, completely or not at all: damaged rows remain, and the sweep continues. @returns whether it
   * succeeded
   */
  #whole(part: () => void): boolean {
    const [keys, replies] = [this.#keys.position, this.#replies.position];
    this.#settle();
    this.#db.run('SAVEPOINT part');
    try {
      part();
      this.#settle();
      this.#db.run('RELEASE part');
      return true;
    } catch (error) {
      if (storeFaultOf(error) !== 'corrupt') throw error;
      this.#db.run('ROLLBACK TO part');
      this.#db.run('RELEASE part');
      this.#keys.undo(keys);
      this.#replies.undo(replies);
      this.#journal.reset();
      this.#report(explainFault(error, this.#path));
      return false;
    }
  }

  /** Returns some empty pages to the disk. @returns whether there are more */
  #shrink(): boolean {
    const [empty, all] = [this.#db.pragma('freelist_count') ?? 0, this.#db.pragma('page_count') ?? 0];
    if (empty * EMPTY <= all) return false;
    this.#db.pragma(`incremental_vacuum(${PAGES})`);
    return (this.#db.pragma('freelist_count') ?? 0) < empty;
  }
}

function changes(question: ThreadQuery): question is StoreChange {
  return question.type !== 'close' && isChange(question);
}
