/** Makes what an actor is durable: one commit at a time, always of the newest, and whoever must not be heard before it waits. */
import type { Clock, Timer } from '../clock.ts';

export interface SnapshotWriterOptions<T> {
  readonly clock: Clock;
  /** Resolves when it is durable. */
  save(state: T): Promise<void>;
  /** This is durable now. */
  saved(state: T): void;
  /** It could not be made durable; it is tried again. */
  failed(error: unknown): void;
}

/** Hears that all is durable that had changed before it asked; or why it is not. */
export type AfterCommit = (error?: unknown) => void;

/** Milliseconds after which what could not be made durable is tried again. */
const AGAIN_MS = 1_000;

export class SnapshotWriter<T> {
  readonly #options: SnapshotWriterOptions<T>;
  /** What has changed since the commit that is under way. */
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

  /** Runs it once everything is durable that has changed until now: at once, if it is. */
  after(run: AfterCommit): void {
    if (this.#next) {
      this.#waitingForNext.push(run);
      // Whoever asks need not wait until it is tried again by itself.
      if (!this.#waiting) this.#save();
    } else if (this.#waiting) this.#waiting.push(run);
    else run();
  }

  /** What changes from now on is not made durable; who waits is told so. What has changed is on its way. */
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
