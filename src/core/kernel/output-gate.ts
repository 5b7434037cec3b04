/**
 * The output gate of an actor: commits its writes one batch at a time, in order, and holds back output until the writes
 * that it rests on are durable (docs/adr/0028).
 */

import { messageOf } from '../protocol/json.ts';
import type { ActorSystem } from './actor-system.ts';
import type { Timer } from './clock.ts';

/** The writes of an actor that are not in a batch yet. */
export interface GatedWrites<B> {
  /** Takes all of them as one batch. Called only if something was added. */
  take(): B;
  /** Resolves when the batch is durable. */
  commit(batch: B): Promise<void>;
  /** Called when the batch is durable, before the output that waits for it. */
  durable(batch: B): void;
  /**
   * Called when the store rejected the batch.
   *
   * @returns `retry` if the writes were put back and are committed again; `discard` if they are not; `close` if the
   * store accepts no more
   */
  rejected(batch: B, error: unknown): 'retry' | 'discard' | 'close';
}

/** Receives the reason why output must not leave. */
type Refused = (why: string, error: unknown) => void;

interface HeldOutput {
  /** The number of additions that must be durable. */
  readonly after: number;
  run(): void;
  readonly failed: Refused | undefined;
}

/** Milliseconds until a rejected batch is retried. */
const RETRY_MS = 1_000;

export class OutputGate<B> {
  readonly #writes: GatedWrites<B>;
  readonly #system: Pick<ActorSystem, 'clock' | 'incident'>;
  #added = 0;
  #durable = 0;
  /** One batch at a time: if the store rejected a batch but accepted the next one, there would be a gap. */
  #state: 'still' | 'due' | 'committing' | 'failing' | 'closed' = 'still';
  #waiting: HeldOutput[] = [];
  #retry: Timer | undefined;

  constructor(writes: GatedWrites<B>, system: Pick<ActorSystem, 'clock' | 'incident'>) {
    this.#writes = writes;
    this.#system = system;
  }

  /** True if all writes are durable and nothing waits. */
  get still(): boolean {
    return this.#durable === this.#added && this.#waiting.length === 0;
  }

  /** True if the store rejected the last batch: optional writes should be skipped. */
  get failing(): boolean {
    return this.#state === 'failing';
  }

  get closed(): boolean {
    return this.#state === 'closed';
  }

  /** The number of additions so far: a position for {@link afterAddition}. */
  get added(): number {
    return this.#added;
  }

  /**
   * Announces that the actor has more to write.
   *
   * @param atOnce commits now; otherwise everything that is added until the next microtask forms one batch
   */
  add(atOnce = false): void {
    if (this.#state === 'closed') return;
    this.#added += 1;
    if (this.#state !== 'still') return;
    this.#state = 'due';
    if (atOnce) this.#commit();
    else queueMicrotask(this.#commit);
  }

  /**
   * Runs output when all earlier additions are durable; at once if nothing is pending; always in order. If the store
   * rejects them, calls `failed` instead; without `failed`, the output waits until a retry succeeds.
   */
  after(run: () => void, failed?: Refused): void {
    if (this.still) return run();
    this.#wait({ after: this.#added, run, failed });
  }

  /** The same for output that rests on the additions up to a position only; at once if these are durable. */
  afterAddition(position: number, run: () => void, failed: Refused): void {
    if (this.#durable >= position) return run();
    this.#wait({ after: position, run, failed });
  }

  /** Accepts no more writes, and rejects everything that waits. */
  close(why: string, error: unknown = new Error(why)): void {
    this.#state = 'closed';
    this.#retry?.cancel();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { failed } of waiting) this.#refuse(failed, why, error);
  }

  #wait(waiting: HeldOutput): void {
    if (this.#state === 'closed') return waiting.failed?.('the store is closed', new Error('the store is closed'));
    this.#waiting.push(waiting);
    // Output that can be rejected does not wait for the retry.
    if (this.#state === 'failing' && waiting.failed) this.#commit();
  }

  readonly #commit = (): void => {
    // A scheduled commit may have been overtaken.
    if (this.#state !== 'due' && this.#state !== 'failing') return;
    this.#retry?.cancel();
    const batch = this.#writes.take();
    const upto = this.#added;
    this.#state = 'committing';
    this.#writes.commit(batch).then(
      () => this.#committed(batch, upto),
      (error: unknown) => this.#rejected(batch, upto, error),
    );
  };

  #committed(batch: B, upto: number): void {
    if (this.#state === 'closed') return;
    this.#ends(upto);
    try {
      this.#writes.durable(batch);
    } catch (error) {
      this.#faulty(error);
    }
    for (let next = this.#waiting[0]; next && next.after <= this.#durable; next = this.#waiting[0]) {
      this.#waiting.shift();
      try {
        next.run();
      } catch (error) {
        this.#faulty(error);
      }
    }
  }

  #rejected(batch: B, upto: number, error: unknown): void {
    if (this.#state === 'closed') return;
    const then = this.#writes.rejected(batch, error);
    const why = messageOf(error);
    if (then === 'close') return this.close('the store is closed', error);
    if (then === 'discard') this.#ends(upto);
    else this.#state = 'failing';
    const waiting = this.#waiting;
    // Output that cannot be rejected keeps waiting, in order, unless its writes were discarded.
    this.#waiting = waiting.filter(({ after, failed }) => after > upto || (then === 'retry' && !failed));
    for (const { after, failed } of waiting) if (after <= upto) this.#refuse(failed, why, error);
    if (!this.failing) return;
    if (this.#waiting.some(({ failed }) => failed)) return this.#commit();
    this.#retry = this.#system.clock.after(RETRY_MS, this.#commit);
  }

  /** The batch is no longer pending. */
  #ends(upto: number): void {
    this.#durable = upto;
    this.#state = 'still';
    if (this.#added === upto) return;
    this.#state = 'due';
    queueMicrotask(this.#commit);
  }

  #refuse(failed: Refused | undefined, why: string, error: unknown): void {
    try {
      failed?.(why, error);
    } catch (fault) {
      this.#faulty(fault);
    }
  }

  #faulty(error: unknown): void {
    this.#system.incident('output that waited for the store', error);
  }
}
