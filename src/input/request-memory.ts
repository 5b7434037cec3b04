/** Counts what the handler of one request makes the server retain: the results of its steps, its open questions, and the replies to them. */
import type { HeldMemory, RequestView } from '../messages/request-view.ts';
import type { Quota, Reservation } from '../quota.ts';

export class RequestMemory implements HeldMemory {
  readonly #taken: Reservation;
  #released = false;

  constructor(retained: Quota, { client }: RequestView) {
    this.#taken = retained.take(client.principal, 0, client.session?.id);
  }

  hold(bytes: number, forced?: 'forced'): string | undefined {
    return this.#released ? undefined : this.#taken.resize(this.#taken.amount + bytes, forced)?.message;
  }

  free(bytes: number): void {
    if (!this.#released) this.#taken.resize(Math.max(0, this.#taken.amount - bytes));
  }

  release(): void {
    this.#released = true;
    this.#taken.release();
  }
}
