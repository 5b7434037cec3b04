/**
 * The views of owners: what the connection of an owner to a legacy upstream lists beyond the catalogue of its mount, such as the
 * tools that a login adds, and what it lacks.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ConnectedClient } from '../../client/connected-client.ts';
import { type CallOwner, callOwnerOf } from '../../core/execution/request-context.ts';
import { jsonLength } from '../../core/execution/size.ts';
import type { ElementAccess } from '../../core/messages/authorization-rule.ts';
import type { ListKind } from '../../core/messages/change-notices.ts';
import type { ClaimedKind } from './name-claims.ts';
import type { UpstreamCatalogue } from './upstream-catalogue.ts';

/** Decides which callers an element of a mount exists for. */
export interface ElementView {
  /** The element is in no catalogue but those of owners. */
  readonly owned: boolean;
  readonly hiddenFrom: NonNullable<ElementAccess['hiddenFrom']>;
}

/** The catalogue of a mount with what owners have beyond it. */
export interface ViewedCatalogue {
  readonly whole: UpstreamCatalogue;
  /** The elements that do not exist for all callers, by their names and URIs upstream. */
  readonly views: Readonly<Record<ClaimedKind, ReadonlyMap<string, ElementView>>>;
}

type Elements = ReadonlyMap<string, object>;

interface OwnerView {
  readonly owner: CallOwner;
  readonly catalogue: UpstreamCatalogue;
  /** Characters of the catalogue as JSON. */
  readonly length: number;
}

const LISTS = [
  ['tool', 'tools'],
  ['prompt', 'prompts'],
  ['resource', 'resources'],
  ['resource', 'templates'],
] as const;
const NONE: Elements = new Map();

export class OwnerViews {
  readonly #views = new Map<ConnectedClient, OwnerView>();
  #length = 0;
  #version = 0;

  /** Increases with each change. */
  get version(): number {
    return this.#version;
  }

  /** The connections whose owners have views of their own. */
  get clients(): Iterable<ConnectedClient> {
    return this.#views.keys();
  }

  /**
   * Takes the catalogue that the connection of an owner lists.
   *
   * @param maxLength most characters of the catalogues of all owners as JSON
   * @throws {Error} if there is no room; the owner then sees the catalogue of the mount
   */
  set(client: ConnectedClient, owner: CallOwner, catalogue: UpstreamCatalogue, maxLength: number): void {
    this.delete(client);
    const length = jsonLength(catalogue, maxLength);
    if (this.#length + length > maxLength)
      throw new Error(
        `the lists of its owners have more than ${maxLength} characters, so that ${owner.principal} sees those of the mount. The option is maxListBytes`,
      );
    this.#views.set(client, { owner, catalogue, length });
    this.#length += length;
  }

  /** The connection has ended. @returns false if its owner had no view */
  delete(client: ConnectedClient): boolean {
    this.#version += 1;
    this.#length -= this.#views.get(client)?.length ?? 0;
    return this.#views.delete(client);
  }

  clear(): void {
    for (const client of [...this.#views.keys()]) this.delete(client);
  }

  /** The lists that an owner sees in another way than before, if its connection lists this. */
  changes(client: ConnectedClient, shared: UpstreamCatalogue, now: UpstreamCatalogue): readonly ListKind[] {
    const before = this.#views.get(client)?.catalogue ?? shared;
    const differing = LISTS.filter(([, list]) => !isDeepStrictEqual(before[list], now[list]));
    return [...new Set(differing.map(([, list]) => (list === 'templates' ? 'resources' : list)))];
  }

  /**
   * Adds what owners have beyond a catalogue. Of two owners that have different elements of one name, the first one has it. An
   * element that the catalogue has, too, is as in the catalogue.
   */
  over(shared: UpstreamCatalogue): ViewedCatalogue {
    const views = {
      ...{ tool: new Map<string, ElementView>(), prompt: new Map<string, ElementView>(), resource: new Map() },
      // Events are read on no connection of an owner.
      event: new Map(),
    };
    if (this.#views.size === 0) return { whole: shared, views };
    const whole = { ...shared };
    for (const [kind, list] of LISTS) {
      const known = named(shared[list]);
      // An owner may have several connections, for clients with different capabilities.
      const owners = new Map<string, Map<string, object>>();
      for (const { owner, catalogue } of this.#views.values())
        owners.set(owner.key, new Map([...named(catalogue[list]), ...(owners.get(owner.key) ?? NONE)]));
      const added = new Map<string, object>();
      for (const own of owners.values())
        for (const [name, element] of own) if (!known.has(name) && !added.has(name)) added.set(name, element);
      for (const [name, element] of added) {
        const has = keysOf(owners, (own) => isDeepStrictEqual(own.get(name), element));
        views[kind].set(name, { owned: true, hiddenFrom: (request) => !has.has(callOwnerOf(request).key) });
      }
      for (const name of known.keys()) {
        const lacks = keysOf(owners, (own) => !own.has(name));
        if (lacks.size > 0)
          views[kind].set(name, { owned: false, hiddenFrom: (request) => lacks.has(callOwnerOf(request).key) });
      }
      Object.assign(whole, { [list]: [...shared[list], ...added.values()] });
    }
    return { whole, views };
  }
}

function keysOf(owners: ReadonlyMap<string, Elements>, which: (own: Elements) => boolean): ReadonlySet<string> {
  return new Set([...owners].flatMap(([key, own]) => (which(own) ? [key] : [])));
}

/** The elements of a list by their names, URIs or templates. */
function named(list: readonly object[]): Map<string, object> {
  return new Map(list.map((element) => [keyOf(element), element]));
}

function keyOf(element: { readonly name?: string; readonly uri?: string; readonly uriTemplate?: string }): string {
  return String(element.uriTemplate ?? element.uri ?? element.name);
}
