/**
 * Distributes changes to listeners: one listener at a time, each change once to each listener. Pure: its owner sets the
 * pace.
 */

/** Listeners in the order in which they joined, each with the number at which it joined. Numbers only increase. */
export type Hearers<H> = ReadonlyMap<H, number>;

/**
 * One subject's latest change on its way around the listeners, like the hand of a clock: a newer change continues at
 * the hand's position and goes round to that position again. Each listener receives the latest change, and none waits
 * longer than one round, however often the subject changes.
 */
class Round<H, C> {
  #change: C;
  #hearers: Hearers<H>;
  #left: Iterator<readonly [H, number]>;
  /** Listeners that joined at or before this number have been notified in this lap. */
  #at = 0;
  /** This lap ends at listeners that joined at or before this number. */
  #until: number;
  /** The next lap ends at listeners that joined at or before this number. 0: there is no next lap. */
  #next = 0;

  constructor(hearers: Hearers<H>, change: C, number: number) {
    this.#change = change;
    this.#hearers = hearers;
    this.#left = hearers.entries();
    this.#until = number;
  }

  get change(): C {
    return this.#change;
  }

  /** Replaces the change by a newer one. */
  replace(hearers: Hearers<H>, change: C, number: number): void {
    this.#change = change;
    this.#until = number;
    this.#next = this.#at;
    if (hearers === this.#hearers) return;
    // All of the earlier listeners have left.
    this.#hearers = hearers;
    this.#left = hearers.entries();
    this.#at = 0;
    this.#next = 0;
  }

  /** Notifies the next listener. @returns false if this lap is over */
  step(tell: (hearer: H, change: C) => void): boolean {
    const { value, done } = this.#left.next();
    if (done || value[1] > this.#until) return false;
    this.#at = value[1];
    tell(value[0], this.#change);
    return true;
  }

  /** Begins the next lap. @returns false if all listeners have been notified */
  again(): boolean {
    if (this.#next === 0) return false;
    this.#left = this.#hearers.entries();
    this.#at = 0;
    this.#until = this.#next;
    this.#next = 0;
    return true;
  }

  owes(hearer: H): boolean {
    const joined = this.#hearers.get(hearer);
    return joined !== undefined && ((joined > this.#at && joined <= this.#until) || joined <= this.#next);
  }
}

/** Uses memory for one round for each changed subject, not for a list of pending listeners. */
export class FanOut<H, C> {
  readonly #tell: (hearer: H, change: C) => void;
  /** By subject. The first round is in progress. */
  readonly #rounds = new Map<string, Round<H, C>>();
  /** An iterator from the first round on. Kept between calls: a new iterator would have to skip all deleted entries. */
  #rest: Iterator<readonly [string, Round<H, C>]> | undefined;
  #first: readonly [string, Round<H, C>] | undefined;

  constructor(tell: (hearer: H, change: C) => void) {
    this.#tell = tell;
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
  add(key: string, hearers: Hearers<H>, change: C, number: number): void {
    const round = this.#rounds.get(key);
    if (round) round.replace(hearers, change, number);
    else this.#rounds.set(key, new Round(hearers, change, number));
  }

  /** Notifies one listener of one change. @returns false if no listener is left */
  step(): boolean {
    while (this.#rounds.size > 0) {
      this.#rest ??= this.#rounds.entries();
      this.#first ??= this.#rest.next().value;
      if (!this.#first) break;
      const [key, round] = this.#first;
      if (round.step(this.#tell)) return true;
      this.#rounds.delete(key);
      this.#first = undefined;
      // At the end of the queue, so that a subject that changes constantly does not delay the others.
      if (round.again()) this.#rounds.set(key, round);
    }
    this.#rest = undefined;
    return false;
  }

  /** The changes that a listener has not received yet, in order. */
  owed(hearer: H): readonly C[] {
    return [...this.#rounds.values()].flatMap((round) => (round.owes(hearer) ? [round.change] : []));
  }
}
