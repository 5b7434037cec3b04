/** Remembered approvals: rows that approve further calls of a tool, until they are used up, expire, or are revoked. */
import { randomId } from '../../core/kernel/random-id.ts';
import { isObject } from '../../core/protocol/json.ts';
import type { Core } from '../../core/server/feature.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import { type ActorRow, type Store, StoreError } from '../../core/store/store.ts';
import { ApprovalError } from './approval-error.ts';
import type { ApprovalGrant } from './approval-interface.ts';
import { isDuring, type StoredApproval } from './approval-record.ts';

/** Attempts to count a use while others use the same grant. */
const ATTEMPTS = 16;
/** Grants of one scope that are looked at. */
const MAX_OF_SCOPE = 20;
/** Milliseconds for which a revoked or used grant stays, so that a use at the same time finds its version. */
const ENDED_MS = 60_000;
const PAGE = 1_000;

interface StoredGrant extends ApprovalGrant {
  readonly revoked: boolean;
}

export class ApprovalGrants {
  readonly #store: Store;
  readonly #date: () => number;

  /** @param date milliseconds since 1970, which do not go back */
  constructor({ store }: Core, date: () => number) {
    this.#store = store;
    this.#date = date;
  }

  /** Stores what the people who have approved remember. @throws {ApprovalError} `store` */
  async create({ remembers, tool, principal, policies, given }: StoredApproval): Promise<void> {
    if (!remembers) return;
    const created = this.#date();
    const grant: StoredGrant = {
      ...{ id: randomId(), tool, principal, policies, text: remembers.text, created },
      ...{ by: [...new Set(given.map((each) => each.principal))], until: created + remembers.forMs },
      ...{ uses: 0, max: remembers.max, revoked: false },
    };
    await this.#swap(grant, remembers.scope, undefined);
  }

  /**
   * Uses a grant once, if there is one.
   *
   * @param scope the digest of what it approves
   * @returns its id
   * @throws {ApprovalError} `store`
   */
  async use(scope: string, principal: string): Promise<string | undefined> {
    const rows = await this.#ask(this.#store.list({ kind: 'grant', name: scope, principal, limit: MAX_OF_SCOPE }));
    for (const { id } of rows)
      if (await this.#change(id, (grant) => (this.#isGood(grant) ? { ...grant, uses: grant.uses + 1 } : undefined)))
        return id.slice(PREFIX.length);
    return undefined;
  }

  /** @returns false if there is no grant with this id @throws {ApprovalError} `store`, `conflict` */
  async revoke(id: string): Promise<boolean> {
    const stored = await this.#ask(this.#store.load(PREFIX + id));
    if (!stored?.snapshot) return false;
    await this.#change(PREFIX + id, (grant) => (grant.revoked ? undefined : { ...grant, revoked: true }));
    return true;
  }

  async list(principal: string | undefined, limit: number): Promise<readonly ApprovalGrant[]> {
    const found: ApprovalGrant[] = [];
    let after: ActorRow | undefined;
    for (;;) {
      const page = await this.#ask(this.#store.list({ kind: 'grant', principal, after, limit: PAGE }));
      for (const { id } of page) {
        const grant = readGrant((await this.#ask(this.#store.load(id)))?.snapshot?.data);
        if (!grant || !this.#isGood(grant)) continue;
        const { revoked: _, ...shown } = grant;
        found.push(shown);
        if (found.length >= limit) return found;
      }
      after = page.at(-1);
      if (page.length < PAGE) return found;
    }
  }

  #isGood(grant: StoredGrant): boolean {
    return !grant.revoked && grant.uses < grant.max && isDuring(grant, this.#date());
  }

  /** @returns whether it was changed */
  async #change(actor: string, change: (grant: StoredGrant) => StoredGrant | undefined): Promise<boolean> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const stored = await this.#ask(this.#store.load(actor));
      const grant = readGrant(stored?.snapshot?.data);
      const next = grant && change(grant);
      if (!next) return false;
      if (await this.#swap(next, stored?.actor.name ?? '', stored?.snapshot?.version)) return true;
    }
    throw new ApprovalError('conflict', 'others have changed this grant before each attempt. Retry');
  }

  #swap(grant: StoredGrant, scope: string, expected: string | undefined): Promise<boolean> {
    const { id, principal, created, until, tool } = grant;
    const expires = this.#isGood(grant) ? until : this.#date() + ENDED_MS;
    const actor: ActorRow = { id: PREFIX + id, kind: 'grant', name: scope, principal, status: tool, created, expires };
    return this.#ask(this.#store.swap({ actor, snapshot: { version: randomId(), data: toText(grant) }, expected }));
  }

  async #ask<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (cause) {
      if (!(cause instanceof StoreError)) throw cause;
      throw new ApprovalError('store', 'the store failed, and the grant approves nothing now', { cause });
    }
  }
}

const PREFIX = 'grant/';

/** @returns undefined for data that is damaged: such a grant approves nothing */
function readGrant(text: string | undefined): StoredGrant | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = fromText(text, 'a grant');
    return isGrant(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isGrant(value: unknown): value is StoredGrant {
  return (
    isObject(value) &&
    typeof value.id === 'string' &&
    typeof value.uses === 'number' &&
    typeof value.max === 'number' &&
    typeof value.created === 'number' &&
    typeof value.until === 'number' &&
    typeof value.revoked === 'boolean'
  );
}
