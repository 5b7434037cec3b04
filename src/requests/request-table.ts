/** The in-flight table's store: requests by their key. No `Map`, because one with this traffic keeps its dead in memory (docs/adr/0006). */
import type { ActiveRequest } from '../messages/active-request.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';

const BUCKETS = 32;

export class RequestTable {
  /** Made when the first request comes: most connections of a busy host are idle. */
  #buckets: ActiveRequest[][] | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: RequestId): ActiveRequest | undefined {
    const bucket = this.#buckets?.[hash(key)];
    if (bucket) for (const request of bucket) if (request.key === key) return request;
    return undefined;
  }

  /** The caller has made sure that no request of this key is there. */
  add(request: ActiveRequest): void {
    this.#buckets ??= Array.from({ length: BUCKETS }, () => []);
    this.#buckets[hash(request.key)]?.push(request);
    this.#size += 1;
  }

  /** @returns false when this very request was not there */
  delete(request: ActiveRequest): boolean {
    const bucket = this.#buckets?.[hash(request.key)];
    const at = bucket?.indexOf(request) ?? -1;
    if (!bucket || at === -1) return false;
    const last = bucket.pop();
    if (last && at < bucket.length) bucket[at] = last;
    this.#size -= 1;
    return true;
  }

  /** Gives its buckets back, if nothing is in them. */
  rest(): void {
    if (this.#size === 0) this.#buckets = undefined;
  }

  /** All requests, as they are now. */
  all(): readonly ActiveRequest[] {
    return this.#buckets?.flat() ?? [];
  }
}

function hash(key: RequestId): number {
  if (typeof key === 'number') return key & (BUCKETS - 1);
  return (key.length + key.charCodeAt(0) + 7 * key.charCodeAt(key.length - 1)) & (BUCKETS - 1);
}
