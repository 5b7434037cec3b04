/**
 * The contents of one registry: elements in a stable order, versions, and pages that stay the same object until
 * something changes. Pure data.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ListView } from '../messages/authorization-rule.ts';
import type { Element, ElementOffer, Registered } from '../messages/registry-messages.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';

interface Placed<D> {
  readonly ordinal: number;
  readonly element: Element<D>;
}

/** One page of definitions, and the cursor of the next page. */
export interface Slice<D> {
  readonly items: readonly D[];
  readonly nextCursor: string | undefined;
}

/**
 * Read access to a registry: the first of three contracts (read, registration, execution) that can be replaced
 * independently.
 */
export interface ReadableCatalogue<D> {
  /** Increases with each change. */
  readonly version: number;
  /** The element of this key, if it is enabled. */
  get(key: string): Element<D> | undefined;
  /** Every element in order, including disabled ones. */
  all(): readonly Element<D>[];
}

interface ListHints {
  readonly ttlMs: number;
  readonly scope?: 'private';
}

const NOW: ListHints = { ttlMs: 0 };
const PRIVATE_NOW: ListHints = { ttlMs: 0, scope: 'private' };

/** The ordinals of elements of ranked sources, which come after all others: a range for each rank. */
const RANKED = 2 ** 40;
const PER_RANK = 2 ** 20;

export class Catalogue<D> implements ReadableCatalogue<D> {
  readonly #noun: string;
  /** Sorted by ordinal. A replaced element keeps its ordinal and its place. */
  readonly #placed = new Map<string, Placed<D>>();
  #nextOrdinal = 0;
  /** More than each ordinal of a ranked source so far. */
  #nextRanked = RANKED;
  #version = 0;
  #listVersion = 0;
  /** The keys that were disabled when their source dropped them: a source cannot enable what an operator has disabled. */
  readonly #disabled = new Map<string, Set<string>>();
  /** True if clients that show views list more than others, as of a version. */
  #more = { version: 0, forViews: false };
  /** As of a version. */
  #hints: { readonly version: number; readonly hints: ListHints | undefined } = { version: 0, hints: undefined };

  /** @param noun the element's kind in messages, such as `tool` */
  constructor(noun: string) {
    this.#noun = noun;
  }

  get version(): number {
    return this.#version;
  }

  /** Increases with each change that a list can show. Elements may be in no list. */
  get listVersion(): number {
    return this.#listVersion;
  }

  /**
   * The caching hints of lists that contain elements of other servers: their lists may change at any time, and those of which one
   * is private are (2026-07-28 "Caching"). Undefined if there are none.
   */
  get listHints(): ListHints | undefined {
    if (this.#hints.version !== this.#version) {
      const scopes = this.all().flatMap(({ enabled, ofUpstream }) => (enabled && ofUpstream) || []);
      const hints = scopes.includes('private') ? PRIVATE_NOW : scopes.length > 0 ? NOW : undefined;
      this.#hints = { version: this.#version, hints };
    }
    return this.#hints.hints;
  }

  /** True if clients that show views list more than others. */
  get hasMoreForViews(): boolean {
    if (this.#more.version !== this.#version) {
      const forViews = this.all().some(({ enabled, listed }) => enabled && listed === 'views');
      this.#more = { version: this.#version, forViews };
    }
    return this.#more.forViews;
  }

  get(key: string): Element<D> | undefined {
    const element = this.#placed.get(key)?.element;
    return element?.enabled ? element : undefined;
  }

  all(): readonly Element<D>[] {
    return [...this.#placed.values()].map(({ element }) => element);
  }

  register(offer: ElementOffer<D>): Registered {
    const taken = this.#placed.get(offer.key)?.element;
    if (taken && !yields(taken, offer))
      return this.#refuse(
        `${this.#noun} "${offer.key}" is already registered (by ${taken.source}): choose another name, or update or remove the registered one`,
      );
    this.#placed.delete(offer.key);
    this.#place(this.#nextOrdinal++, offer);
    this.#sort();
    return this.#changed(taken ? [taken.ref] : []);
  }

  update(offer: ElementOffer<D>): Registered {
    const placed = this.#placed.get(offer.key);
    if (!placed) return this.#unknown(offer.key);
    this.#placed.set(offer.key, { ordinal: placed.ordinal, element: { ...offer, enabled: placed.element.enabled } });
    return this.#changed([placed.element.ref]);
  }

  setEnabled(key: string, enabled: boolean): Registered {
    const placed = this.#placed.get(key);
    if (!placed) return enabled && this.#enableDropped(key) ? { ok: true, gone: [] } : this.#unknown(key);
    if (placed.element.enabled === enabled) return { ok: true, gone: [] };
    this.#placed.set(key, { ...placed, element: { ...placed.element, enabled } });
    return this.#changed([]);
  }

  remove(key: string): Registered {
    const placed = this.#placed.get(key);
    if (!placed) return this.#unknown(key);
    this.#placed.delete(key);
    return this.#changed([placed.element.ref]);
  }

  clear(): Registered {
    const gone = this.all().map(({ ref }) => ref);
    this.#placed.clear();
    this.#disabled.clear();
    return gone.length === 0 ? { ok: true, gone } : this.#changed(gone);
  }

  /**
   * Replaces all elements of one source, or none. Elements that remain keep their place, and a
   * disabled one stays disabled, also if its source drops it and offers it again. If no
   * client can see a difference, the version stays the same and only the implementations are replaced.
   */
  replaceSource(source: string, offers: readonly ElementOffer<D>[]): Registered {
    const keys = new Set<string>();
    const yielded: number[] = [];
    for (const offer of offers) {
      const { key } = offer;
      const taken = this.#placed.get(key)?.element;
      if (keys.has(key)) return this.#refuse(`${source} defines ${this.#noun} "${key}" twice: rename one of them`);
      if (taken && taken.source !== source && !yields(taken, offer))
        return this.#refuse(
          `${this.#noun} "${key}" of ${source} is already registered (by ${taken.source}): rename one of them`,
        );
      keys.add(key);
      if (taken && taken.source !== source) yielded.push(taken.ref);
    }
    const before = this.all().filter((element) => element.source === source);
    const looked = this.#visible(source);
    const ruled = this.#rules(source);
    for (const { key, enabled } of before) if (!keys.has(key)) this.#drop(key, source, enabled);
    for (const [index, offer] of offers.entries()) {
      let placed = this.#placed.get(offer.key);
      if (placed && placed.element.source !== source) {
        this.#placed.delete(offer.key);
        placed = undefined;
      }
      const enabled = placed ? placed.element.enabled : !this.#forgetDropped(offer.key, source);
      if (offer.rank === undefined) this.#place(placed?.ordinal ?? this.#nextOrdinal++, offer, enabled);
      else this.#place(RANKED + offer.rank * PER_RANK + index, offer, enabled);
    }
    this.#sort(offers.some(({ rank }) => rank !== undefined));
    const gone = [...before.map(({ ref }) => ref), ...yielded];
    const looks = this.#visible(source);
    const rules = this.#rules(source);
    if (isDeepStrictEqual(looked, looks) && isDeepStrictEqual(ruled, rules)) return { ok: true, gone };
    return this.#changed(gone, !isDeepStrictEqual(looked.filter(isListed), looks.filter(isListed)));
  }

  /** Counts as a change even if nothing visible changed. */
  announce(): Registered {
    return this.#changed([]);
  }

  /**
   * One page of the enabled definitions that `wanted` accepts.
   * The cursor names the last element of the previous page, so it stays valid while elements are added and removed.
   * @param view the part that the caller sees; its cursors are valid for callers of the same view only
   * @param forViews true for a client that shows views
   * @param show the definition as clients see it
   * @throws {ProtocolError} -32602 if the cursor is unknown
   */
  slice<E extends D>(
    cursor: string | undefined,
    size: number,
    wanted: (definition: D) => definition is E,
    view?: ListView,
    forViews = false,
    show?: (definition: E, element: Element<D>) => E,
  ): Slice<E> {
    const after = cursor === undefined ? -1 : this.#readCursor(cursor, view);
    const items: E[] = [];
    let last = after;
    for (const { ordinal, element } of this.#placed.values()) {
      if (ordinal <= after || !element.enabled || !wanted(element.definition)) continue;
      if (view?.hides.has(element.key)) continue;
      if (element.listed !== undefined && !(forViews && element.listed === 'views')) continue;
      if (items.length === size) return { items, nextCursor: `o${last.toString(36)}${suffixOf(view)}` };
      items.push(show ? show(element.definition, element) : element.definition);
      last = ordinal;
    }
    return { items, nextCursor: undefined };
  }

  /** The elements of one source as clients see them. */
  #visible(source: string) {
    return [...this.#placed.values()]
      .filter(({ element }) => element.source === source)
      .map(({ ordinal, element: { definition, enabled, listed, ofUpstream, owned } }) => {
        return { ordinal, definition, enabled, listed, ofUpstream, owned };
      });
  }

  /** The rules of the elements of one source: views of lists are remembered as of a version. */
  #rules(source: string) {
    return this.all().flatMap(({ source: from, key, access }) => (from === source && access ? [[key, access]] : []));
  }

  /** The elements of a ranked source have their places among those of others, whichever are registered first. */
  #sort(ranked = false): void {
    if (!ranked && this.#nextRanked === RANKED) return;
    const sorted = [...this.#placed].sort(([, one], [, other]) => one.ordinal - other.ordinal);
    this.#placed.clear();
    for (const [key, placed] of sorted) this.#placed.set(key, placed);
    this.#nextRanked = Math.max(this.#nextRanked, (sorted.at(-1)?.[1].ordinal ?? 0) + 1);
  }

  #drop(key: string, source: string, enabled: boolean): void {
    this.#placed.delete(key);
    if (enabled) return;
    const dropped = this.#disabled.get(source);
    if (dropped) dropped.add(key);
    else this.#disabled.set(source, new Set([key]));
  }

  /** @returns true if the element was disabled when the source dropped it */
  #forgetDropped(key: string, source: string): boolean {
    const dropped = this.#disabled.get(source);
    if (!dropped?.delete(key)) return false;
    if (dropped.size === 0) this.#disabled.delete(source);
    return true;
  }

  /** @returns true if a source had dropped it */
  #enableDropped(key: string): boolean {
    return [...this.#disabled.keys()].filter((source) => this.#forgetDropped(key, source)).length > 0;
  }

  #place(ordinal: number, offer: ElementOffer<D>, enabled = true): void {
    this.#placed.set(offer.key, { ordinal, element: { ...offer, enabled } });
  }

  #changed(gone: readonly number[], inLists = true): Registered {
    this.#version += 1;
    if (inLists) this.#listVersion += 1;
    return { ok: true, gone };
  }

  #unknown(key: string): Registered {
    return this.#refuse(`no ${this.#noun} "${key}" is registered`);
  }

  #refuse(why: string): Registered {
    return { ok: false, why };
  }

  #readCursor(cursor: string, view: ListView | undefined): number {
    const [, digits, suffix] = /^o([0-9a-z]{1,10})(\..{1,64})?$/.exec(cursor) ?? [];
    const ordinal = digits === undefined ? Number.NaN : Number.parseInt(digits, 36);
    const isKnown = ordinal < RANKED ? ordinal < this.#nextOrdinal : ordinal < this.#nextRanked;
    if (isKnown && (suffix ?? '') === suffixOf(view)) return ordinal;
    throw new ProtocolError(ErrorCode.InvalidParams, 'params.cursor: unknown cursor. Start again without one.');
  }
}

/** True for an element whose change all callers see in a list. */
function isListed({ listed, owned }: Pick<Element<unknown>, 'listed' | 'owned'>): boolean {
  return !owned && (listed === undefined || listed === 'views');
}

/** An element of another server yields its name to the program: an upstream must not be able to fail a registration. */
function yields(taken: ElementOffer<unknown>, offer: ElementOffer<unknown>): boolean {
  return taken.ofUpstream !== undefined && offer.ofUpstream === undefined;
}

function suffixOf(view: ListView | undefined): string {
  return view ? `.${view.id}` : '';
}
