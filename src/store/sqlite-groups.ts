/** What the thread does with a group of jobs: one transaction for all of them, answers once it is durable, and what each failure means. */
import { type Db, explain, faultOf, isDisk } from './sqlite-database.ts';
import { SqliteJournal } from './sqlite-journal.ts';
import type { Answer, Found, Job, Question } from './sqlite-mail.ts';
import type { SqliteOptions } from './sqlite-options.ts';
import { SqliteRows } from './sqlite-rows.ts';
import type { ReplyWrite, Write } from './store.ts';

/** Of each kind of expired things, how many one transaction lets go. */
const SLICE = 100;
/** Pages that one transaction gives back to the disk. */
const PAGES = 500;
/** The share of empty pages that the file may keep. */
const EMPTY = 20;

/** A job that is done for now, and goes on after others. */
export const LATER = Symbol('later');

interface Sweep {
  after: readonly [number, string];
  /** Replies beyond their bound, once they are counted. */
  surplus: number | undefined;
  gone: number;
}

export class SqliteGroups {
  readonly #db: Db;
  readonly #path: string;
  readonly #options: SqliteOptions;
  readonly #rows: SqliteRows;
  readonly #journal: SqliteJournal;
  readonly #sweeps = new Map<number, Sweep>();
  /** The disk has failed: this connection is trusted no more. */
  broken = false;

  constructor(db: Db, path: string, options: SqliteOptions, report: (what: string) => void) {
    this.#db = db;
    this.#path = path;
    this.#options = options;
    this.#rows = new SqliteRows(db, report);
    this.#journal = new SqliteJournal(db, options);
  }

  /** Does them in their order. A job without an answer is to be done again later. */
  run(jobs: readonly Job[]): Answer[] {
    if (!jobs.some(({ question }) => changes(question))) return jobs.map((job) => this.#attempt(job));
    const answers: Answer[] = [];
    const swept: number[] = [];
    try {
      this.#db.run('BEGIN IMMEDIATE');
      for (const job of jobs) {
        if (!changes(job.question)) {
          this.#settle();
          answers.push(this.#attempt(job));
          continue;
        }
        const found = this.#change(job);
        if (found !== LATER) answers.push({ id: job.id, found });
        if (found !== LATER) swept.push(job.id);
      }
      this.#settle();
      this.#db.run('COMMIT');
      for (const id of swept) this.#sweeps.delete(id);
      return answers;
    } catch (error) {
      return this.#failed(jobs, error);
    }
  }

  #failed(jobs: readonly Job[], error: unknown): Answer[] {
    this.#rows.reset();
    this.#journal.reset();
    this.#rollBack();
    if (isDisk(error)) this.broken = true;
    // One batch that cannot be kept is no reason to refuse the others. A disk is, which would refuse each of them in turn.
    const alone = !this.broken && faultOf(error) !== 'full' && jobs.length > 1;
    if (alone) return jobs.flatMap((job) => this.run([job]));
    return jobs.map((job) => {
      if (!changes(job.question)) return this.#attempt(job);
      this.#sweeps.delete(job.id);
      return this.#refusal(job, error);
    });
  }

  #rollBack(): void {
    try {
      this.#db.rollback();
    } catch {
      // What is open now must not be added to.
      this.broken = true;
    }
  }

  #refusal({ id }: Job, error: unknown): Answer {
    return { id, fault: faultOf(error), message: explain(error, this.#path) };
  }

  #settle(): void {
    this.#rows.settle();
    this.#journal.settle();
  }

  #attempt(job: Job): Answer {
    try {
      return { id: job.id, found: this.#read(job.question) };
    } catch (error) {
      if (isDisk(error)) this.broken = true;
      return this.#refusal(job, error);
    }
  }

  #read(question: Question): Found {
    switch (question.type) {
      case 'load':
        return { type: 'stored', stored: this.#rows.load(question.actor) };
      case 'list':
        return { type: 'actors', rows: this.#rows.list(question.query) };
      case 'events': {
        const { actor, stream, after, limit } = question;
        return { type: 'events', events: this.#journal.events(actor, stream, after, limit) };
      }
      case 'streams':
        return { type: 'streams', rows: this.#journal.streams(question.actor) };
      case 'reply':
        return { type: 'reply', data: this.#rows.replyTo(question.actor, question.request) };
      case 'timers':
        return { type: 'timers', rows: this.#rows.timers(question.until, question.limit) };
      case 'dead letters':
        return { type: 'dead letters', letters: this.#rows.letters(question.limit) };
      case 'close':
        // Whoever copies the file after this has all of it.
        this.#db.pragma('wal_checkpoint(TRUNCATE)');
        return { type: 'done' };
      case 'commit':
      case 'claim':
      case 'sweep':
        throw new Error(`a ${question.type} is no reading`);
    }
  }

  #change({ id, question }: Job): Found | typeof LATER {
    if (question.type === 'commit') {
      for (const write of question.writes) this.#write(write);
      return { type: 'done' };
    }
    if (question.type === 'claim') return { type: 'reply', data: this.#claim(question.reply) };
    return question.type === 'sweep' ? this.#sweep(id, question.now) : { type: 'done' };
  }

  /** @returns the reply that is there; undefined where this one is written */
  #claim({ actor, request, data, expires }: ReplyWrite): string | undefined {
    const there = this.#rows.replyTo(actor, request);
    // An earlier version let go of a reply by taking its data away.
    if (there !== undefined && there !== '') return there;
    this.#rows.reply(actor, request, data, expires);
    return undefined;
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
        return this.#rows.reply(write.actor, write.request, write.data, write.expires);
      case 'timer':
        return this.#rows.timer(write.timer);
      case 'timer off':
        return this.#rows.timerOff(write.actor, write.timer);
      case 'dead letter':
        return this.#rows.letter(write.letter);
      case 'trim':
        return this.#journal.trim(write.actor, write.stream, write.upto);
      case 'forget':
        this.#journal.forget(write.actor);
        return this.#rows.forget(write.actor);
    }
  }

  /** One slice: what is committed meanwhile does not wait for all of it. */
  #sweep(id: number, now: number): Found | typeof LATER {
    const sweep = this.#sweeps.get(id) ?? { after: [Number.MIN_SAFE_INTEGER, ''], surplus: undefined, gone: 0 };
    this.#sweeps.set(id, sweep);
    const expired = this.#rows.expired(now, sweep.after, SLICE);
    for (const { id: actor } of expired) {
      this.#journal.forget(actor);
      this.#rows.forget(actor);
    }
    sweep.gone += expired.length;
    const last = expired.at(-1);
    if (last) sweep.after = [last.expires ?? 0, last.id];
    const more = expired.length === SLICE || this.#rows.sweepReplies(now, SLICE) === SLICE;
    if (more) return LATER;
    const { maxActorReplies, maxReplies, maxDeadLetters } = this.#options;
    sweep.surplus ??= this.#rows.replies() - maxReplies;
    if (sweep.surplus > 0) {
      this.#rows.sweepFirst(Math.min(sweep.surplus, SLICE));
      sweep.surplus -= SLICE;
      return LATER;
    }
    this.#rows.sweepCrowds(maxActorReplies, maxDeadLetters);
    this.#journal.sweep();
    return this.#shrink() ? LATER : { type: 'swept', gone: sweep.gone };
  }

  /** Gives empty pages back to the disk, some of them. @returns whether there are more */
  #shrink(): boolean {
    const [empty, all] = [this.#db.pragma('freelist_count') ?? 0, this.#db.pragma('page_count') ?? 0];
    if (empty * EMPTY <= all) return false;
    this.#db.pragma(`incremental_vacuum(${PAGES})`);
    return (this.#db.pragma('freelist_count') ?? 0) < empty;
  }
}

function changes({ type }: Question): boolean {
  return type === 'commit' || type === 'claim' || type === 'sweep';
}
