/**
 * The names that the mounts of one server claim, in the order of the mounts. Of two mounts that claim a name, the first one has it,
 * whichever is listed first: a name means the same after each restart.
 */

export type ClaimedKind = 'tool' | 'prompt' | 'resource' | 'event';

/** A mount with the names of its catalogue. */
export interface Claimant {
  readonly mount: string;
  readonly claims: Readonly<Record<ClaimedKind, ReadonlyMap<string, unknown>>>;
  /** The names of this mount that an unknown name of a tool or prompt may mean. */
  meantBy(kind: 'tool' | 'prompt', name: string): readonly string[];
  /**
   * Registers the elements whose names it has, and withdraws the others.
   *
   * @param settled false if another mount is about to give up names
   */
  register(settled?: boolean): void;
}

const KINDS = ['tool', 'prompt', 'resource', 'event'] as const;

export class NameClaims {
  /** The sources of elements whose catalogues have pages. */
  readonly pages = new Set<string>();
  /** In the order of the mounts. */
  #claimants: readonly Claimant[] = [];

  /** The place of a mount among all, by its name: a whole number. */
  readonly rankOf: (mount: string) => number;

  constructor(rankOf: NameClaims['rankOf']) {
    this.rankOf = rankOf;
  }

  add(claimant: Claimant): void {
    this.#claimants = this.#sorted([...this.#claimants, claimant]);
  }

  /** Registers the elements of all mounts again: their order has changed. */
  arranged(): void {
    this.#claimants = this.#sorted(this.#claimants);
    // First those that lose a name: a registry has each name once.
    for (const claimant of this.#claimants) claimant.register(false);
    for (const claimant of this.#claimants) claimant.register();
  }

  #sorted(claimants: readonly Claimant[]): readonly Claimant[] {
    return [...claimants].sort((one, other) => this.rankOf(one.mount) - this.rankOf(other.mount));
  }

  /** The other mount that has a name; undefined if this one does. */
  holder(kind: ClaimedKind, key: string, of: Claimant): string | undefined {
    for (const claimant of this.#claimants) {
      if (claimant === of) return undefined;
      if (claimant.claims[kind].has(key)) return claimant.mount;
    }
    return undefined;
  }

  /** The names that an unknown name of a tool or prompt may mean. */
  meantBy(kind: 'tool' | 'prompt', name: string): readonly string[] {
    return this.#claimants.flatMap((claimant) => claimant.meantBy(kind, name));
  }

  /** Registers the elements of a mount after its claims have changed, and those of later mounts that gain or lose a name. */
  changed(by: Claimant, before: Claimant['claims']): void {
    const later = this.#claimants.slice(this.#claimants.indexOf(by) + 1);
    const affected = later.filter(({ claims }) =>
      KINDS.some((kind) => differ(before[kind], by.claims[kind], claims[kind])),
    );
    // First those that lose a name: a registry has each name once.
    for (const claimant of affected) claimant.register(false);
    by.register();
    for (const claimant of affected) claimant.register();
  }

  remove(claimant: Claimant): void {
    this.#claimants = this.#claimants.filter((each) => each !== claimant);
  }
}

type Keys = ReadonlyMap<string, unknown>;

/** True if one of these keys is in exactly one of two claims. */
function differ(before: Keys, after: Keys, keys: Keys): boolean {
  for (const key of keys.keys()) if (before.has(key) !== after.has(key)) return true;
  return false;
}
