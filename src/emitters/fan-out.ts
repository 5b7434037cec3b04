/** The changes that are on their way to their hearers: one hearer at a time, each change once to each hearer. Pure: its owner sets the pace. */

/** The hearers of something in the order in which they joined, each with the number at which it joined. Numbers only grow. */
export type Hearers<H> = ReadonlyMap<H, number>;

/**
 * One change, or a later one of the same thing in its place, on its way round its hearers. It goes round as the hand of a clock
 * does: a later change goes on where the hand is, and round to there again. So a hearer is told of the latest, and nobody waits
 * for longer than one round, however often the thing changes.
 */
class Round<H, C> {
  #change: C;
  #hearers: Hearers<H>;
  #left: Iterator<readonly [H, number]>;
  /** Whoever joined at or before this has been told in this lap. */
  #at = 0;
  /** This lap is for those that joined at or before this, */
  #until: number;
  /** and the next lap for those that joined at or before this. 0: there is none. */
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

  /** The thing has changed again. */
  replace(hearers: Hearers<H>, change: C, number: number): void {
    this.#change = change;
    this.#until = number;
    this.#next = this.#at;
    if (hearers === this.#hearers) return;
    // All of the earlier hearers have left.
    this.#hearers = hearers;
    this.#left = hearers.entries();
    this.#at = 0;
    this.#next = 0;
  }

  /** Tells the next hearer. @returns false when this lap is over */
  step(tell: (hearer: H, change: C) => void): boolean {
    const { value, done } = this.#left.next();
    if (done || value[1] > this.#until) return false;
    this.#at = value[1];
    tell(value[0], this.#change);
    return true;
  }

  /** Begins another lap. @returns false when all have been told */
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

/** Its memory is one round for each thing that changed, and no list of who is still to be told. */
export class FanOut<H, C> {
  readonly #tell: (hearer: H, change: C) => void;
  /** By what changed; the first is being told. */
  readonly #rounds = new Map<string, Round<H, C>>();
  /** The first of them, and the rest after it. Kept: to look for the first anew is to pass by all that were deleted before it. */
  #rest: Iterator<readonly [string, Round<H, C>]> | undefined;
  #first: readonly [string, Round<H, C>] | undefined;

  constructor(tell: (hearer: H, change: C) => void) {
    this.#tell = tell;
  }

  /** Nobody is left to be told. */
  get done(): boolean {
    return this.#rounds.size === 0;
  }

  /**
   * Adds a change.
   *
   * @param key names what changed: a later change takes the place of one that is still on its way
   * @param number of the change: whoever joined later does not hear of it
   */
  add(key: string, hearers: Hearers<H>, change: C, number: number): void {
    const round = this.#rounds.get(key);
    if (round) round.replace(hearers, change, number);
    else this.#rounds.set(key, new Round(hearers, change, number));
  }

  /** Tells one hearer of one change. @returns false when nobody is left to be told */
  step(): boolean {
    while (this.#rounds.size > 0) {
      this.#rest ??= this.#rounds.entries();
      this.#first ??= this.#rest.next().value;
      if (!this.#first) break;
      const [key, round] = this.#first;
      if (round.step(this.#tell)) return true;
      this.#rounds.delete(key);
      this.#first = undefined;
      // At the end of the queue: what changes all the time holds up nothing else.
      if (round.again()) this.#rounds.set(key, round);
    }
    this.#rest = undefined;
    return false;
  }

  /** What a hearer has yet to be told of, in this order. */
  owed(hearer: H): readonly C[] {
    return [...this.#rounds.values()].flatMap((round) => (round.owes(hearer) ? [round.change] : []));
  }
}
