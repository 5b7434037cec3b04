/** Counts what clients hold against limits: for each principal, for anonymous clients together, and in total. */

import { ANONYMOUS, LOCAL } from '../protocol/principals.ts';

/** True if the limit per principal applies to each session of this principal instead. */
function limitsSessions(principal: string): boolean {
  return principal === ANONYMOUS || principal === LOCAL;
}

/** The percentage of each limit that all anonymous clients together may use. One object for all quotas of a server. */
export interface AnonymousShare {
  /** 100 if no transport authenticates: there are then no other clients to reserve room for. */
  percent: number;
}

interface QuotaOptions {
  /** The counted things in the plural, such as `sessions`. */
  readonly what: string;
  readonly max: number;
  /** The option that sets `max`, such as `limits.maxSessions`. */
  readonly option: string;
  /** Absent: one principal may use everything. */
  readonly perPrincipal?: { readonly max: number; readonly option: string } | undefined;
  /** Absent: anonymous clients may use everything. */
  readonly anonymous?: AnonymousShare | undefined;
}

/** The limit that an addition would exceed. */
export interface Excess {
  readonly limit: 'total' | 'principal' | 'anonymous';
  /** The option that sets the limit, such as `limits.maxSessions`. */
  readonly option: string;
  /** A message that names it. */
  readonly message: string;
}

/** A reserved part of a quota. */
export interface Reservation {
  readonly amount: number;
  /**
   * Changes the amount. Growth needs room, unless it is `forced`. @returns the exceeded limit; the amount is then
   * unchanged
   */
  resize(amount: number, forced?: 'forced'): Excess | undefined;
  /** Releases the amount. Further calls have no effect. */
  release(): void;
}

export class Quota {
  readonly #options: QuotaOptions;
  /** Amounts by principal, except `anonymous`. */
  readonly #ofPrincipal = new Map<string, number>();
  /** Amounts of anonymous and local clients by session, if they have one. */
  readonly #ofSession = new Map<string, number>();
  #anonymous = 0;
  #all = 0;

  constructor(options: QuotaOptions) {
    this.#options = options;
  }

  get all(): number {
    return this.#all;
  }

  /** The amount of a principal; for `anonymous`, of all anonymous clients together. */
  of(principal: string): number {
    return principal === ANONYMOUS ? this.#anonymous : (this.#ofPrincipal.get(principal) ?? 0);
  }

  /**
   * Checks an addition. @returns the exceeded limit; undefined if there is room
   * @param session the client's session, to which the limit per principal applies if the client is anonymous or local
   */
  excess(principal: string, amount = 1, session?: string): Excess | undefined {
    const { max, option, perPrincipal, anonymous } = this.#options;
    if (this.#all + amount > max)
      return { limit: 'total', option, message: this.#full('this server has', this.#all, max, amount, option) };
    if (principal === ANONYMOUS) {
      const share = anonymous ? Math.floor((max * anonymous.percent) / 100) : max;
      if (this.#anonymous + amount > share) {
        const shared = 'limits.anonymousPercent';
        const message = this.#full('anonymous clients have', this.#anonymous, share, amount, shared);
        return { limit: 'anonymous', option: shared, message };
      }
      // The limit of a principal applies to the sessions of this one.
      if (session === undefined) return undefined;
    }
    if (!perPrincipal) return undefined;
    const bySession = limitsSessions(principal);
    if (bySession && session === undefined) return undefined;
    const own = (bySession ? this.#ofSession.get(session ?? '') : this.#ofPrincipal.get(principal)) ?? 0;
    if (own + amount <= perPrincipal.max) return undefined;
    const who = bySession ? 'this session has' : 'this principal has';
    const { option: ownOption } = perPrincipal;
    return {
      limit: 'principal',
      option: ownOption,
      message: this.#full(who, own, perPrincipal.max, amount, ownOption),
    };
  }

  /** Adds the amount, even if it exceeds a limit. */
  add(principal: string, amount = 1, session?: string): void {
    this.#all += amount;
    if (principal === ANONYMOUS) this.#anonymous += amount;
    if (principal !== ANONYMOUS) addTo(this.#ofPrincipal, principal, amount);
    if (session !== undefined && limitsSessions(principal)) addTo(this.#ofSession, session, amount);
  }

  remove(principal: string, amount = 1, session?: string): void {
    this.add(principal, -amount, session);
  }

  /** Reserves the amount if there is room. */
  reserve(principal: string, amount = 1, session?: string): Reservation | Excess {
    return this.excess(principal, amount, session) ?? this.take(principal, amount, session);
  }

  /** Reserves the amount, even if it exceeds a limit: it is in use already. */
  take(principal: string, amount = 1, session?: string): Reservation {
    this.add(principal, amount, session);
    return new Taken(this, principal, amount, session);
  }

  #full(who: string, has: number, max: number, amount: number, option: string): string {
    const { what } = this.#options;
    const more = amount === 1 ? '' : `, and ${amount} more do not fit`;
    return `${who} ${has} ${what} of at most ${max}${more} (the server's option is ${option})`;
  }
}

function addTo(amounts: Map<string, number>, key: string, amount: number): void {
  const now = (amounts.get(key) ?? 0) + amount;
  if (now > 0) amounts.set(key, now);
  else amounts.delete(key);
}

class Taken implements Reservation {
  readonly #quota: Quota;
  readonly #principal: string;
  readonly #session: string | undefined;
  amount: number;

  constructor(quota: Quota, principal: string, amount: number, session: string | undefined) {
    this.#quota = quota;
    this.#principal = principal;
    this.#session = session;
    this.amount = amount;
  }

  resize(amount: number, forced?: 'forced'): Excess | undefined {
    const more = amount - this.amount;
    const excess = more > 0 && !forced ? this.#quota.excess(this.#principal, more, this.#session) : undefined;
    if (excess) return excess;
    this.#quota.add(this.#principal, more, this.#session);
    this.amount = amount;
    return undefined;
  }

  release(): void {
    this.#quota.remove(this.#principal, this.amount, this.#session);
    this.amount = 0;
  }
}

export function isExcess(taken: Reservation | Excess): taken is Excess {
  return 'limit' in taken;
}
