/** What one session adds to the store, in batches of a turn each, and the gate that nothing of it passes before it is durable. */
import type { Clock, Timer } from '../clock.ts';
import { messageOf } from '../protocol/json.ts';
import { type Store, StoreError, type Write } from '../store/store.ts';

export interface OutputGateOptions {
  /** Whose events and snapshots these are. */
  readonly actor: string;
  readonly store: Store;
  readonly clock: Clock;
  incident(where: string, error: unknown): string;
}

interface Waiting {
  /** How many writes must be durable. */
  readonly after: number;
  run(): void;
  readonly failed: ((why: string) => void) | undefined;
}

/** Milliseconds after which a batch that the store did not take is tried again. */
const RETRY_MS = 1_000;

export class OutputGate {
  readonly #options: OutputGateOptions;
  #batch: Write[] = [];
  /** The latest snapshot and row that are not on their way: each replaces the one before. */
  readonly #latest = new Map<'snapshot' | 'actor', Write>();
  #added = 0;
  #durable = 0;
  /** How many writes had been added with the last that changed the state of the session: its snapshot, or its row. */
  #stated = 0;
  /** One batch at a time: a later one that the store took while it refused this one would leave a gap. */
  #state: 'still' | 'due' | 'committing' | 'failing' | 'closed' = 'still';
  readonly #waiting: Waiting[] = [];
  #retry: Timer | undefined;
  #sealed = false;
  /** A disk has failed under a batch, which may be kept all the same. */
  #unknown = false;

  constructor(options: OutputGateOptions) {
    this.#options = options;
  }

  /** Everything that was added is durable, and nobody waits. */
  get still(): boolean {
    return this.#durable === this.#added && this.#waiting.length === 0;
  }

  /** The store has refused what was added last: what need not be kept had better not be. */
  get failing(): boolean {
    return this.#state === 'failing';
  }

  add(write: Write): void {
    if (this.#state === 'closed' || this.#sealed) return;
    this.#added += 1;
    if (write.type === 'snapshot' || write.type === 'actor') {
      this.#latest.set(write.type, write);
      this.#stated = this.#added;
    } else this.#batch.push(write);
    if (this.#state !== 'still') return;
    this.#state = 'due';
    queueMicrotask(this.#commit);
  }

  gate(run: () => void, failed?: (why: string) => void): void {
    if (this.still) return run();
    this.#wait({ after: this.#added, run, failed });
  }

  /** Waits for the last snapshot and the last row only. */
  readGate(run: () => void, failed: (why: string) => void): void {
    if (this.#durable >= this.#stated) return run();
    this.#wait({ after: this.#stated, run, failed });
  }

  #wait(waiting: Waiting): void {
    if (this.#state === 'closed') return waiting.failed?.('the store is closed');
    this.#waiting.push(waiting);
  }

  /** Resolves when everything is durable that was added; or will not be, for now. */
  settled(): Promise<void> {
    return new Promise((resolve) => this.gate(resolve, () => resolve()));
  }

  /** What was added becomes durable still, and nothing more is added. */
  seal(): void {
    this.#sealed = true;
  }

  /** Takes no more, and lets nobody through. */
  close(): void {
    this.#state = 'closed';
    this.#retry?.cancel();
    this.#refuse('the store is closed');
  }

  readonly #commit = (): void => {
    if (this.#state === 'closed') return;
    const { store } = this.#options;
    const batch = [...this.#latest.values(), ...this.#batch];
    const upto = this.#added;
    this.#latest.clear();
    this.#batch = [];
    this.#state = 'committing';
    const unknown = this.#unknown;
    const committing = unknown ? this.#unkept(batch).then((left) => store.commit(left)) : store.commit(batch);
    committing.then(
      () => this.#committed(upto),
      (error: unknown) => this.#failed(batch, error),
    );
  };

  /** What is left of a batch of which nobody knows whether the store has kept it. */
  async #unkept(batch: readonly Write[]): Promise<readonly Write[]> {
    const rows = await this.#options.store.streams(this.#options.actor);
    const last = new Map(rows.map((row) => [row.stream, row.last]));
    return batch.filter((write) => write.type !== 'event' || write.seq > (last.get(write.stream) ?? 0));
  }

  #committed(upto: number): void {
    if (this.#state === 'closed') return;
    this.#durable = upto;
    this.#unknown = false;
    this.#state = 'still';
    if (this.#batch.length > 0 || this.#latest.size > 0) {
      this.#state = 'due';
      queueMicrotask(this.#commit);
    }
    for (let next = this.#waiting[0]; next && next.after <= this.#durable; next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#run(next.run);
    }
  }

  /** Nothing of a batch that was refused is kept: it comes first in the next. */
  #failed(batch: readonly Write[], error: unknown): void {
    if (this.#state === 'closed') return;
    const fault = error instanceof StoreError ? error.fault : 'failed';
    if (fault === 'closed') return this.close();
    this.#unknown ||= fault === 'failed';
    for (const write of batch)
      if ((write.type === 'snapshot' || write.type === 'actor') && !this.#latest.has(write.type))
        this.#latest.set(write.type, write);
    this.#batch = [...batch.filter(({ type }) => type !== 'snapshot' && type !== 'actor'), ...this.#batch];
    this.#state = 'failing';
    this.#retry = this.#options.clock.after(RETRY_MS, this.#commit);
    this.#refuse(messageOf(error));
  }

  /** Tells those that can be told; the others wait on, in their order. */
  #refuse(why: string): void {
    const waiting = this.#waiting.splice(0);
    for (const one of waiting) {
      const { failed } = one;
      if (failed) this.#run(() => failed(why));
      else if (this.#state !== 'closed') this.#waiting.push(one);
    }
  }

  #run(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#options.incident('what waited for the store', error);
    }
  }
}
