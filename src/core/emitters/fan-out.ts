/**
 * Distributes changes to listeners: one listener at a time, each change once to each listener. Pure: its owner sets the
 * pace.
 */

/** Listeners in the order in which they joined, each with the number at which it joined. Numbers only increase. */
export type Listeners<H> = ReadonlyMap<H, number>;

/**
 * One subject's latest change on its way around the listeners, like the hand of a clock: a newer change continues at
 * the hand's position and goes round to that position again. Each listener receives the latest change, and none waits
 * longer than one round, however often the subject changes.
 */
class Round<H, C> {
  #change: C;
  #listeners: Listeners<H>;
  #left: Iterator<readonly [H, number]>;
  /** Listeners that joined at or before this number have been notified in this lap. */
  #at = 0;
  /** This lap ends at listeners that joined at or before this number. */
  #until: number;
  /** The next lap ends at listeners that joined at or before this number. 0: there is no next lap. */
  #next = 0;

  constructor(listeners: Listeners<H>, change: C, number: number) {
    this.#change = change;
    this.#listeners = listeners;
    this.#left = listeners.entries();
    this.#until = number;
  }

  get change(): C {
    return this.#change;
  }

  /** Replaces the change by a newer one. */
  replace(listeners: Listeners<H>, change: C, number: number): void {
    this.#change = change;
    this.#until = number;
    this.#next = this.#at;
    if (listeners === this.#listeners) return;
    // All of the earlier listeners have left.
    this.#listeners = listeners;
    this.#left = listeners.entries();
    this.#at = 0;
    this.#next = 0;
  }

  /** Notifies the next listener. @returns false if this lap is over */
  step(notify: (listener: H, change: C) => void): boolean {
    const { value, done } = this.#left.next();
    if (done || value[1] > this.#until) return false;
    this.#at = value[1];
    notify(value[0], this.#change);
    return true;
  }

  /** Begins the next lap. @returns false if all listeners have been notified */
  again(): boolean {
    if (this.#next === 0) return false;
    this.#left = this.#listeners.entries();
    this.#at = 0;
    this.#until = this.#next;
    this.#next = 0;
    return true;
  }

  owes(listener: H): boolean {
    const joined = this.#listeners.get(listener);
    return joined !== undefined && ((joined > this.#at && joined <= this.#until) || joined <= this.#next);
  }
}

/** Uses memory for one round for each changed subject, not for a list of pending listeners. */
export class FanOut<H, C> {
  readonly #notify: (listener: H, change: C) => void;
  /** By subject. The first round is in progress. */
  readonly #rounds = new Map<string, Round<H, C>>();
  /** An iterator from the first round on. Kept between calls: a new iterator would have to skip all deleted entries. */
  #rest: Iterator<readonly [string, Round<H, C>]> | undefined;
  #first: readonly [string, Round<H, C>] | undefined;

  constructor(notify: (listener: H, change: C) => void) {
    this.#notify = notify;
  }

  /** True if no listener is left to notify. */
  get done(): boolean {
    return this.#rounds.size === 0;
  }

  /**
   * Adds a change.
   * @param key the subject: a newer change of the same subject replaces one that is in progress
   * @param number the number of the change; listeners that join later do not receive it
   */
  add(key: string, listeners: Listeners<H>, change: C, number: number): void {
    const round = this.#rounds.get(key);
    if (round) round.replace(listeners, change, number);
    else this.#rounds.set(key, new Round(listeners, change, number));
  }

  /** Notifies one listener of one change. @returns false if no listener is left */
  step(): boolean {
    while (this.#rounds.size > 0) {
      this.#rest ??= this.#rounds.entries();
      this.#first ??= this.#rest.next().value;
      if (!this.#first) break;
      const [key, round] = this.#first;
      if (round.step(this.#notify)) return true;
      this.#rounds.delete(key);
      this.#first = undefined;
      // At the end of the queue, so that a subject that changes constantly does not delay the others.
      if (round.again()) this.#rounds.set(key, round);
    }
    this.#rest = undefined;
    return false;
  }

  /** The changes that a listener has not received yet, in order. */
  pendingFor(listener: H): readonly C[] {
    return [...this.#rounds.values()].flatMap((round) => (round.owes(listener) ? [round.change] : []));
  }
}
