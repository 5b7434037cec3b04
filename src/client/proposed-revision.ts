/** Chooses the revision to propose in `initialize`, also after a server has refused one instead of naming its own. */
import { LATEST_LEGACY, LEGACY_REVISIONS, type LegacyRevision } from '../core/protocol/revisions.ts';

const DATE = /\b20\d\d-\d\d-\d\d\b/g;

export class ProposedRevision {
  readonly #refused = new Set<string>();
  #current: LegacyRevision;
  readonly #fixed: boolean;

  /** @param revision the only one to propose. Default: the newest first */
  constructor(revision: LegacyRevision | undefined) {
    this.#current = revision ?? LATEST_LEGACY;
    this.#fixed = revision !== undefined;
  }

  get current(): LegacyRevision {
    return this.#current;
  }

  /**
   * Reads a refusal of `initialize`. The specification wants a server to answer with a revision of its own; some respond with an
   * error that lists their revisions, or none.
   *
   * @param supported the member `supported` of the error's data
   * @returns true if the error is about the revision, and another one can be proposed
   */
  refused(message: string, supported: unknown): boolean {
    const listed: readonly unknown[] | undefined = Array.isArray(supported) ? supported : undefined;
    if (this.#fixed || (listed === undefined && !/protocol[ _-]?version/i.test(message))) return false;
    this.#refused.add(this.#current);
    const named = listed ?? message.match(DATE) ?? [];
    const left = LEGACY_REVISIONS.filter((revision) => !this.#refused.has(revision)).reverse();
    const namesNone = named.every((each) => typeof each !== 'string' || this.#refused.has(each));
    const next = left.find((revision) => named.includes(revision)) ?? (namesNone ? left[0] : undefined);
    if (next === undefined) return false;
    this.#current = next;
    return true;
  }
}
