/**
 * The store of an in-flight table: requests by key. Not a `Map`, which under this traffic keeps removed entries in
 * memory (docs/adr/0006).
 */
import type { RequestId } from './protocol/jsonrpc.ts';

const BUCKETS = 32;

export class InFlightTable<R> {
  readonly #keyOf: (request: R) => RequestId;
  /** Created with the first request: most connections of a busy host are idle. */
  #buckets: R[][] | undefined;
  #size = 0;

  /** @param keyOf the key of a request, which does not change while the request is in the table */
  constructor(keyOf: (request: R) => RequestId) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#size;
  }

  get(key: RequestId): R | undefined {
    const bucket = this.#buckets?.[hash(key)];
    if (bucket) for (const request of bucket) if (this.#keyOf(request) === key) return request;
    return undefined;
  }

  /** The caller ensures that no request with this key is in the table. */
  add(request: R): void {
    this.#buckets ??= Array.from({ length: BUCKETS }, () => []);
    this.#buckets[hash(this.#keyOf(request))]?.push(request);
    this.#size += 1;
  }

  /** @returns false if this request was not in the table */
  delete(request: R): boolean {
    const bucket = this.#buckets?.[hash(this.#keyOf(request))];
    const at = bucket?.indexOf(request) ?? -1;
    if (!bucket || at === -1) return false;
    const last = bucket.pop();
    if (last && at < bucket.length) bucket[at] = last;
    this.#size -= 1;
    return true;
  }

  /** Releases the buckets if they are empty. */
  rest(): void {
    if (this.#size === 0) this.#buckets = undefined;
  }

  /** A snapshot of all requests. */
  all(): readonly R[] {
    return this.#buckets?.flat() ?? [];
  }
}

function hash(key: RequestId): number {
  if (typeof key === 'number') return key & (BUCKETS - 1);
  return (key.length + key.charCodeAt(0) + 7 * key.charCodeAt(key.length - 1)) & (BUCKETS - 1);
}
