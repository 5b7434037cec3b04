/** Jobs that wait for a thread: bounded in number and size, and taken in turns by principal. */

/** One waiting job. */
export interface QueuedJob {
  readonly principal: string;
  /** Characters that the job holds. */
  readonly length: number;
}

export class FairQueue<T extends QueuedJob> {
  readonly #limits: { readonly jobs: number; readonly length: number; readonly perPrincipal: number };
  /** The jobs of each principal, the principal whose turn is next first. */
  readonly #waiting = new Map<string, T[]>();
  #jobs = 0;
  #length = 0;

  /** @param limits the most jobs and characters of all principals, and jobs of one */
  constructor(limits: { readonly jobs: number; readonly length: number; readonly perPrincipal: number }) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#jobs;
  }

  /** @returns false if the queue is full, or the principal has its share of it */
  add(job: T): boolean {
    const { jobs, length, perPrincipal } = this.#limits;
    const own = this.#waiting.get(job.principal) ?? [];
    if (this.#jobs >= jobs || this.#length + job.length > length || own.length >= perPrincipal) return false;
    own.push(job);
    this.#waiting.set(job.principal, own);
    this.#jobs += 1;
    this.#length += job.length;
    return true;
  }

  /** Takes the oldest job that fits, of the principal whose turn it is, or of the next one that has such a job. */
  take(fits: (job: T) => boolean): T | undefined {
    for (const [principal, own] of this.#waiting) {
      const job = own.find(fits);
      if (!job) continue;
      this.remove(job);
      const rest = this.#waiting.get(principal);
      // Its next turn comes after those of all others.
      if (rest && this.#waiting.delete(principal)) this.#waiting.set(principal, rest);
      return job;
    }
    return undefined;
  }

  /** Takes all jobs that fit. */
  takeAll(fits: (job: T) => boolean): readonly T[] {
    const found = [...this.#waiting.values()].flat().filter(fits);
    for (const job of found) this.remove(job);
    return found;
  }

  /** @returns false if the job does not wait */
  remove(job: T): boolean {
    const own = this.#waiting.get(job.principal);
    const at = own?.indexOf(job) ?? -1;
    if (!own || at === -1) return false;
    own.splice(at, 1);
    if (own.length === 0) this.#waiting.delete(job.principal);
    this.#jobs -= 1;
    this.#length -= job.length;
    return true;
  }
}
