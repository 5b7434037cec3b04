/** Randomness from a seed: the same seed gives the same numbers, in this process and in every other. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
    // Neighbouring seeds begin far apart.
    this.next();
    this.next();
  }

  /** From 0 up to 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from 0 up to `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  /** A whole number of both ends. */
  between(from: number, to: number): number {
    return from + this.below(to - from + 1);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly [T, ...T[]]): T {
    return from[this.below(from.length)] ?? from[0];
  }

  /** One of these, each as often as its weight says. */
  weighted<T>(from: readonly (readonly [weight: number, value: T])[]): T {
    let left = this.next() * from.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, value] of from) {
      left -= weight;
      if (left < 0) return value;
    }
    const last = from.at(-1);
    if (!last) throw new Error('expected something to choose from, got an empty list');
    return last[1];
  }

  /** Another source of numbers, which depends on this one's next. */
  fork(): Random {
    return new Random(Math.floor(this.next() * 4_294_967_296));
  }
}
