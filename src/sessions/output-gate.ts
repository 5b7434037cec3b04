/**
 * The output gate of one session: writes its data in one batch a turn, and holds back output until the data is durable.
 */
import type { ActorSystem } from '../actor/actor-system.ts';
import type { Timer } from '../clock.ts';
import { messageOf } from '../protocol/json.ts';
import { type Store, StoreError, type Write } from '../store/store.ts';

export interface OutputGateOptions {
  /** The actor that owns these events and snapshots. */
  readonly actor: string;
  readonly store: Store;
  readonly system: ActorSystem;
}

interface Waiting {
  /** The number of writes that must be durable. */
  readonly after: number;
  run(): void;
  readonly failed: ((why: string) => void) | undefined;
}

/** Milliseconds until a batch that the store rejected is retried. */
const RETRY_MS = 1_000;

export class OutputGate {
  readonly #options: OutputGateOptions;
  #batch: Write[] = [];
  /** The latest snapshot and row that are not yet in a batch. Each replaces its predecessor. */
  readonly #latest = new Map<'snapshot' | 'actor', Write>();
  #added = 0;
  #durable = 0;
  /** The number of writes up to the last change of the session's state (its snapshot or its row). */
  #stated = 0;
  /** One batch at a time: if the store rejected a batch but accepted the next one, there would be a gap. */
  #state: 'still' | 'due' | 'committing' | 'failing' | 'closed' = 'still';
  readonly #waiting: Waiting[] = [];
  #retry: Timer | undefined;
  #sealed = false;
  /** True after a disk error: the batch may or may not be durable. */
  #unknown = false;

  constructor(options: OutputGateOptions) {
    this.#options = options;
  }

  /** True if all writes are durable and nothing waits. */
  get still(): boolean {
    return this.#durable === this.#added && this.#waiting.length === 0;
  }

  /** True if the store rejected the last batch: optional writes should be skipped. */
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

  /** Waits only for the last snapshot and the last row. */
  readGate(run: () => void, failed: (why: string) => void): void {
    if (this.#durable >= this.#stated) return run();
    this.#wait({ after: this.#stated, run, failed });
  }

  #wait(waiting: Waiting): void {
    if (this.#state === 'closed') return waiting.failed?.('the store is closed');
    this.#waiting.push(waiting);
  }

  /** Resolves when all writes are durable, or cannot be for now. */
  settled(): Promise<void> {
    return new Promise((resolve) => this.gate(resolve, () => resolve()));
  }

  /** Accepts no more writes. Earlier writes still become durable. */
  seal(): void {
    this.#sealed = true;
  }

  /** Accepts no more writes and rejects everything that waits. */
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

  /** The part of a batch that is not durable, if the outcome of its commit is unknown. */
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

  /** Puts a rejected batch in front of the next one. */
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
    this.#retry = this.#options.system.clock.after(RETRY_MS, this.#commit);
    this.#refuse(messageOf(error));
  }

  /** Rejects the waiters that can be rejected. The others keep waiting, in order. */
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
      this.#options.system.incident('output that waited for the store', error);
    }
  }
}
