/** The batches that wait for the database or are on their way to it: bounded, in order. */

import type { ReplyWrite, SnapshotSwap, StoreError, Write } from '../../core/store/store.ts';
import { EndedCalls, FEW_WAITING, groupSize, refusedBy } from '../../core/store/waiting-calls.ts';
import { lengthOf, writtenActor } from '../../core/store/writes.ts';
import type { PostgresOptions } from './postgres-options.ts';

/** A job that the stored data may reject: the claim of a reply, or the swap of a snapshot. */
export interface Conditional {
  readonly claim?: ReplyWrite;
  readonly swap?: SnapshotSwap;
}

/** A batch, or a job that the stored data may reject. */
export interface WriteJob extends Conditional {
  /** The writes of a claim or a swap, if it is one. */
  readonly writes: readonly Write[];
  readonly length: number;
  /** @param existing the earlier reply of a claim; not undefined for a swap that found another snapshot */
  resolve(existing?: string): void;
  reject(error: StoreError): void;
}

/** Actors of ended jobs are dropped when more than these are known. */
const MAX_ACTORS = 20_000;

export class WriteQueue {
  readonly #options: PostgresOptions;
  /** Waiting jobs, in order. */
  #waiting: WriteJob[] = [];
  /** Jobs of the group on its way. */
  #sent: readonly WriteJob[] = [];
  #length = 0;
  /** The number of the newest job that writes each actor. */
  readonly #newest = new Map<string, number>();
  /** Number of jobs that were ever added, and that have ended. */
  #added = 0;
  #ended = 0;
  /** By the numbers of jobs. */
  readonly #calls = new EndedCalls();

  constructor(options: PostgresOptions) {
    this.#options = options;
  }

  /** Number of jobs that have not ended. */
  get size(): number {
    return this.#added - this.#ended;
  }

  get waits(): boolean {
    return this.#waiting.length > 0;
  }

  /** @throws {StoreError} `busy` */
  add(writes: readonly Write[], conditional: Conditional = {}): Promise<string | undefined> {
    const length = lengthOf({ type: 'commit', writes });
    const refused = refusedBy(this.#options, { size: this.size, length: this.#length }, length);
    if (refused) return Promise.reject(refused);
    this.#length += length;
    this.#added += 1;
    for (const write of writes) this.#newest.set(writtenActor(write), this.#added);
    return new Promise(
      (resolve, reject) => void this.#waiting.push({ writes, ...conditional, length, resolve, reject }),
    );
  }

  /** Takes the next group. It must be {@link end}ed before the next one is taken. */
  take(): readonly WriteJob[] {
    this.#sent = this.#waiting.splice(
      0,
      groupSize(this.#options, this.#waiting, ({ writes }) => writes.length),
    );
    return this.#sent;
  }

  /** The group on its way has ended: its jobs have their outcomes. */
  end(): void {
    for (const { length } of this.#sent) this.#length -= length;
    this.#ended += this.#sent.length;
    this.#sent = [];
    this.#notify();
  }

  /** Rejects all waiting jobs. */
  reject(error: StoreError): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const job of waiting) {
      this.#length -= job.length;
      job.reject(error);
    }
    this.#ended += waiting.length;
    this.#notify();
  }

  /** Resolves when all jobs but the last few have ended; undefined if only a few wait. */
  caughtUp(): Promise<void> | undefined {
    return this.size <= FEW_WAITING ? undefined : this.#calls.when(this.#added - FEW_WAITING);
  }

  /** Resolves when all jobs that are there now have ended; undefined if there are none. */
  settled(): Promise<void> | undefined {
    return this.size === 0 ? undefined : this.#calls.when(this.#added);
  }

  /** Resolves when the jobs that write this actor have ended; undefined if none writes it. */
  settledOf(actor: string): Promise<void> | undefined {
    const newest = this.#newest.get(actor) ?? 0;
    return newest <= this.#ended ? undefined : this.#calls.when(newest);
  }

  #notify(): void {
    if (this.size === 0) this.#newest.clear();
    else if (this.#newest.size > MAX_ACTORS)
      for (const [actor, newest] of this.#newest) if (newest <= this.#ended) this.#newest.delete(actor);
    this.#calls.reached(this.#ended);
  }
}
