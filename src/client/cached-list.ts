/** One list of a server, with all its pages: cached until its time to live is over or the server announces a change. */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../core/kernel/clock.ts';
import { isObject } from '../core/protocol/json.ts';

interface PageOptions {
  readonly timeoutMs?: number;
}

interface CachedListOptions<T> {
  readonly clock: Clock;
  readonly method: string;
  /** The member of the result that contains the elements. */
  readonly member: string;
  readonly maxPages: number;
  readonly maxElements: number;
  /** Requests one page. */
  readonly page: (cursor: string | undefined, options: PageOptions) => Promise<unknown>;
  /** Checks an element. Undefined: the element is left out. */
  readonly read: (element: unknown) => T | undefined;
  /** Reports what was repaired. */
  readonly note: (what: string) => void;
  /** True if the server announces changes of this list, so that it stays fresh without a time to live. */
  readonly announced: () => boolean;
  /** An error for a list that the client does not accept. */
  readonly malformed: (message: string) => Error;
}

export class CachedList<T> {
  readonly #options: CachedListOptions<T>;
  #elements: readonly T[] | undefined;
  #freshUntil = 0;
  #isPublic = false;
  #listing: Promise<readonly T[]> | undefined;
  /** Counts changes: a listing that began before a change is stale when it ends. */
  #changes = 0;

  constructor(options: CachedListOptions<T>) {
    this.#options = options;
  }

  /** Milliseconds for which the last listing stays fresh; infinite if the server announces changes. */
  get freshForMs(): number {
    return Math.max(0, this.#freshUntil - this.#options.clock.now());
  }

  /** True if shared caches may keep every page of the last listing (2026-07-28 "Caching"). */
  get isPublic(): boolean {
    return this.#isPublic;
  }

  /** The elements, while they are fresh. */
  get fresh(): readonly T[] | undefined {
    return this.#options.clock.now() < this.#freshUntil ? this.#elements : undefined;
  }

  /** The list has changed, or may have. */
  invalidate(): void {
    this.#changes += 1;
    this.#freshUntil = 0;
  }

  /** The fresh list; callers at the same time share one listing. */
  get({ fresh = false, ...options }: PageOptions & { readonly fresh?: boolean } = {}): Promise<readonly T[]> {
    const known = fresh ? undefined : this.fresh;
    if (known) return Promise.resolve(known);
    this.#listing ??= this.#list(options).finally(() => {
      this.#listing = undefined;
    });
    return this.#listing;
  }

  async #list(options: PageOptions): Promise<readonly T[]> {
    const { clock, method, member, maxPages, maxElements, page, read, note, announced, malformed } = this.#options;
    const changes = this.#changes;
    const elements: T[] = [];
    const cursors = new Set<string>();
    let freshUntil = Number.POSITIVE_INFINITY;
    let isPublic = true;
    let cursor: string | undefined;
    for (let pages = 1; ; pages += 1) {
      const result = await page(cursor, options);
      const listed = isObject(result) ? (result[member] ?? []) : undefined;
      if (!isObject(result) || !Array.isArray(listed))
        throw malformed(`${method}: expected a result with an array "${member}"`);
      if (!Array.isArray(result[member])) note(member);
      const { nextCursor } = result;
      // A server that ignores cursors sends the same page again and again.
      const isStuck = typeof nextCursor === 'string' && cursors.has(nextCursor);
      for (const element of listed) {
        const known = read(element);
        if (known !== undefined && !(isStuck && elements.some((each) => isDeepStrictEqual(each, known))))
          elements.push(known);
      }
      if (elements.length > maxElements)
        throw malformed(`${method}: more than ${maxElements} elements. The option is maxListed`);
      const ttl = typeof result.ttlMs === 'number' && result.ttlMs > 0 ? result.ttlMs : 0;
      freshUntil = Math.min(freshUntil, ttl > 0 ? clock.now() + ttl : announced() ? Number.POSITIVE_INFINITY : 0);
      isPublic &&= result.cacheScope === 'public';
      if (nextCursor === '' || nextCursor === null) note('nextCursor');
      if (typeof nextCursor !== 'string' || nextCursor === '') break;
      if (isStuck && elements.length === 0)
        throw malformed(`${method}: the cursor "${nextCursor.slice(0, 60)}" came twice`);
      if (isStuck) {
        note('a cursor that came twice, which ends the list');
        break;
      }
      if (pages >= maxPages) throw malformed(`${method}: more than ${maxPages} pages. The option is maxListPages`);
      cursors.add(nextCursor);
      cursor = nextCursor;
    }
    this.#elements = elements;
    this.#isPublic = isPublic;
    this.#freshUntil = changes === this.#changes ? freshUntil : 0;
    return elements;
  }
}
