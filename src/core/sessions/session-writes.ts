/** The writes of one session between two commits: its latest row and snapshot, and everything else in order. */
import type { GatedWrites } from '../kernel/output-gate.ts';
import { type Store, StoreError, type Write } from '../store/store.ts';

export class SessionWrites implements GatedWrites<readonly Write[]> {
  readonly #store: Store;
  readonly #actor: string;
  #batch: Write[] = [];
  /** The latest snapshot and row that are not yet in a batch. Each replaces its predecessor. */
  readonly #latest = new Map<'snapshot' | 'actor', Write>();
  /** True after a disk error: the batch may or may not be durable. */
  #unknown = false;

  /** @param actor owns these events and snapshots */
  constructor(store: Store, actor: string) {
    this.#store = store;
    this.#actor = actor;
  }

  put(write: Write): void {
    if (isState(write)) this.#latest.set(write.type, write);
    else this.#batch.push(write);
  }

  take(): readonly Write[] {
    const batch = [...this.#latest.values(), ...this.#batch];
    this.#latest.clear();
    this.#batch = [];
    return batch;
  }

  commit(batch: readonly Write[]): Promise<void> {
    if (!this.#unknown) return this.#store.commit(batch);
    return this.#unkept(batch).then((left) => this.#store.commit(left));
  }

  durable(): void {
    this.#unknown = false;
  }

  /** Puts the batch in front of the next one. */
  rejected(batch: readonly Write[], error: unknown): 'retry' | 'close' {
    const fault = error instanceof StoreError ? error.fault : 'failed';
    if (fault === 'closed') return 'close';
    this.#unknown ||= fault === 'failed';
    for (const write of batch) if (isState(write) && !this.#latest.has(write.type)) this.#latest.set(write.type, write);
    this.#batch = [...batch.filter((write) => !isState(write)), ...this.#batch];
    return 'retry';
  }

  /** The part of a batch that is not durable, if the outcome of its commit is unknown. */
  async #unkept(batch: readonly Write[]): Promise<readonly Write[]> {
    const rows = await this.#store.streams(this.#actor);
    const last = new Map(rows.map((row) => [row.stream, row.last]));
    return batch.filter((write) => write.type !== 'event' || write.seq > (last.get(write.stream) ?? 0));
  }
}

/** Narrows a write to one of the session's state: its row or its snapshot. */
export function isState(write: Write): write is Extract<Write, { type: 'snapshot' | 'actor' }> {
  return write.type === 'snapshot' || write.type === 'actor';
}
