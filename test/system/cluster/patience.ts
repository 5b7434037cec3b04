/** How long a client of a system whose processes are killed waits for one answer before it asks again. */
import { ClientError } from 'troupe/client';
import { HANG_MS } from '../../harness/wait.ts';

/**
 * A process that is killed or paused while it has a request never answers, and on a busy machine each answer may take longer than any
 * fixed time. So after each wait in vain, the next one is twice as long.
 */
export class Patience {
  /** Milliseconds to wait for the next answer. */
  ms: number;

  constructor(ms: number) {
    this.ms = ms;
  }

  /** An attempt has failed. */
  failed(error: unknown): void {
    const isLate = error instanceof ClientError ? error.reason === 'timed out' : Object(error).name === 'TimeoutError';
    if (isLate) this.ms = Math.min(2 * this.ms, HANG_MS);
  }
}
