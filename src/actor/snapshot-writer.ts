/** Persists an actor's state: one commit at a time, always of the newest state. Callers can wait for a commit. */
import type { Clock, Timer } from '../clock.ts';

export interface SnapshotWriterOptions<T> {
  readonly clock: Clock;
  /** Resolves when the state is durable. */
  save(state: T): Promise<void>;
  /** Called when this state is durable. */
  saved(state: T): void;
  /** Called when a commit failed; it is retried. */
  failed(error: unknown): void;
}

/** Called when all earlier changes are durable, or with the reason why they are not. */
export type AfterCommit = (error?: unknown) => void;

/** Milliseconds until a failed commit is retried. */
const AGAIN_MS = 1_000;

export class SnapshotWriter<T> {
  readonly #options: SnapshotWriterOptions<T>;
  /** The newest state that is not part of the current commit. */
  #next: { readonly state: T } | undefined;
  #waitingForNext: AfterCommit[] = [];
  #waiting: AfterCommit[] | undefined;
  #timer: Timer | undefined;
  #ended = false;

  constructor(options: SnapshotWriterOptions<T>) {
    this.#options = options;
  }

  changed(state: T): void {
    if (this.#ended) return;
    this.#next = { state };
    if (!this.#waiting && !this.#timer) this.#save();
  }

  /** Runs the callback once all changes up to now are durable; at once if they are. */
  after(run: AfterCommit): void {
    if (this.#next) {
      this.#waitingForNext.push(run);
      // A new waiter triggers the retry at once.
      if (!this.#waiting) this.#save();
    } else if (this.#waiting) this.#waiting.push(run);
    else run();
  }

  /** Persists no further changes; later waiters get an error. Earlier changes are still committed. */
  end(why: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#timer?.cancel();
    if (this.#next) this.#options.save(this.#next.state).catch((error: unknown) => this.#options.failed(error));
    this.#next = undefined;
    const waiting = [...(this.#waiting ?? []), ...this.#waitingForNext];
    this.#waiting = undefined;
    this.#waitingForNext = [];
    for (const run of waiting) run(why);
  }

  #save(): void {
    const next = this.#next;
    if (!next || this.#ended) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#next = undefined;
    this.#waiting = this.#waitingForNext;
    this.#waitingForNext = [];
    this.#options.save(next.state).then(
      () => this.#saved(next.state),
      (error: unknown) => this.#failed(next.state, error),
    );
  }

  #saved(state: T): void {
    if (this.#ended) return;
    this.#options.saved(state);
    this.#tell();
    this.#save();
  }

  #failed(state: T, error: unknown): void {
    if (this.#ended) return;
    this.#next ??= { state };
    this.#options.failed(error);
    this.#tell(error);
    if (this.#waitingForNext.length > 0) return this.#save();
    this.#timer ??= this.#options.clock.after(AGAIN_MS, () => this.#save());
  }

  #tell(error?: unknown): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const run of waiting) run(error);
  }
}
