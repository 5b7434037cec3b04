/** The in-flight table's store: requests by id. No `Map`, because one with this traffic keeps its dead in memory (docs/adr/0006). */
import type { InFlight } from '../messages/in-flight.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';

const BUCKETS = 32;

export class InFlightTable {
  /** Made when the first request comes: most connections of a busy host are idle. */
  #buckets: InFlight[][] | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: RequestId): InFlight | undefined {
    const bucket = this.#buckets?.[hash(id)];
    if (bucket) for (const request of bucket) if (request.id === id) return request;
    return undefined;
  }

  /** The caller has made sure that no request of this id is there. */
  add(request: InFlight): void {
    this.#buckets ??= Array.from({ length: BUCKETS }, () => []);
    this.#buckets[hash(request.id)]?.push(request);
    this.#size += 1;
  }

  /** @returns false when this very request was not there */
  delete(request: InFlight): boolean {
    const bucket = this.#buckets?.[hash(request.id)];
    const at = bucket?.indexOf(request) ?? -1;
    if (!bucket || at === -1) return false;
    const last = bucket.pop();
    if (last && at < bucket.length) bucket[at] = last;
    this.#size -= 1;
    return true;
  }

  /** All requests, as they are now. */
  all(): readonly InFlight[] {
    return this.#buckets?.flat() ?? [];
  }
}

function hash(id: RequestId): number {
  if (typeof id === 'number') return id & (BUCKETS - 1);
  return (id.length + id.charCodeAt(0) + 7 * id.charCodeAt(id.length - 1)) & (BUCKETS - 1);
}
