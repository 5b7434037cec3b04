/** Places for POSTs: so many at once for each key, such as a host, and the others wait in the order in which they came. */

interface Place {
  taken: number;
  readonly waiting: (() => void)[];
}

export class DeliverySlots {
  readonly #max: number;
  readonly #places = new Map<string, Place>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a place, now or when one is free. */
  take(key: string): Promise<void> | undefined {
    const place = this.#places.get(key) ?? { taken: 0, waiting: [] };
    this.#places.set(key, place);
    if (place.taken < this.#max) {
      place.taken += 1;
      return undefined;
    }
    return new Promise((resolve) => void place.waiting.push(resolve));
  }

  /** Gives a place back. */
  free(key: string): void {
    const place = this.#places.get(key);
    if (!place) return;
    const next = place.waiting.shift();
    if (next) return next();
    place.taken -= 1;
    if (place.taken === 0) this.#places.delete(key);
  }
}
