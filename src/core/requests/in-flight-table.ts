/**
 * The store of an in-flight table: requests by key. Not a `Map`, which under this traffic keeps removed entries in
 * memory (docs/adr/0006).
 */
import type { RequestId } from '../protocol/jsonrpc.ts';

const BUCKETS = 32;
/** Maximum number of requests that are searched one after the other: most connections of a busy host have one or none. */
const FEW = 8;

export class InFlightTable<R> {
  readonly #keyOf: (request: R) => RequestId;
  /** All requests, unless there are buckets. */
  readonly #few: R[] = [];
  #buckets: readonly R[][] | undefined;
  /** Only the table sets it. */
  size = 0;

  /** @param keyOf the key of a request, which does not change while the request is in the table */
  constructor(keyOf: (request: R) => RequestId) {
    this.#keyOf = keyOf;
  }

  get(key: RequestId): R | undefined {
    for (const request of this.#bucketOf(key)) if (this.#keyOf(request) === key) return request;
    return undefined;
  }

  /** The caller ensures that no request with this key is in the table. */
  add(request: R): void {
    if (this.size === FEW && !this.#buckets) {
      this.#buckets = Array.from({ length: BUCKETS }, () => []);
      for (const earlier of this.#few.splice(0)) this.#bucketOf(this.#keyOf(earlier)).push(earlier);
    }
    this.#bucketOf(this.#keyOf(request)).push(request);
    this.size += 1;
  }

  /** @returns false if this request was not in the table */
  delete(request: R): boolean {
    const bucket = this.#bucketOf(this.#keyOf(request));
    const at = bucket.indexOf(request);
    if (at === -1) return false;
    const last = bucket.pop();
    if (last && at < bucket.length) bucket[at] = last;
    this.size -= 1;
    return true;
  }

  /** Releases the buckets if they are empty: its owner has not used it for a while. */
  shrink(): void {
    if (this.size === 0) this.#buckets = undefined;
  }

  /** A snapshot of all requests. */
  all(): readonly R[] {
    return (this.#buckets ?? [this.#few]).flat();
  }

  #bucketOf(key: RequestId): R[] {
    return this.#buckets?.[hash(key)] ?? this.#few;
  }
}

function hash(key: RequestId): number {
  if (typeof key === 'number') return key & (BUCKETS - 1);
  return (key.length + key.charCodeAt(0) + 7 * key.charCodeAt(key.length - 1)) & (BUCKETS - 1);
}
