/** Counts what clients hold against limits: for each principal, for anonymous clients together, and in total. */

/** The principal of a client that nobody authenticated. Anybody is this principal, so it has no limit of its own. */
export const ANONYMOUS = 'anonymous';

/** The part of each limit that anonymous clients together may take. One object for all quotas of a server. */
export interface AnonymousShare {
  /** 100 where no transport authenticates: then there is nobody else to leave room for. */
  percent: number;
}

export interface QuotaOptions {
  /** What is counted, in the plural, such as `sessions`. */
  readonly what: string;
  readonly max: number;
  /** The option that sets `max`, such as `limits.maxSessions`. */
  readonly option: string;
  /** Absent: a principal may have everything. */
  readonly perPrincipal?: { readonly max: number; readonly option: string } | undefined;
  /** Absent: anonymous clients may have everything. */
  readonly anonymous?: AnonymousShare | undefined;
}

/** Which limit does not allow more. */
export interface Excess {
  readonly limit: 'total' | 'principal' | 'anonymous';
  /** In words, with the option that sets the limit. */
  readonly message: string;
}

/** A part of a quota that somebody has taken. */
export interface Reservation {
  readonly amount: number;
  /** Changes how much it is. Growth needs room, unless it is `forced`. @returns why there is none; then nothing has changed */
  resize(amount: number, forced?: 'forced'): Excess | undefined;
  /** Gives it back, once. */
  release(): void;
}

export class Quota {
  readonly #options: QuotaOptions;
  /** By principal, but for `anonymous`. */
  readonly #ofPrincipal = new Map<string, number>();
  /** Of anonymous clients, by session, where they have one. */
  readonly #ofSession = new Map<string, number>();
  #anonymous = 0;
  #all = 0;

  constructor(options: QuotaOptions) {
    this.#options = options;
  }

  get all(): number {
    return this.#all;
  }

  /** What a principal has; of `anonymous`, what all anonymous clients have. */
  of(principal: string): number {
    return principal === ANONYMOUS ? this.#anonymous : (this.#ofPrincipal.get(principal) ?? 0);
  }

  /**
   * Why a client may not have so much more; undefined where it may.
   *
   * @param session its session, which has the limit of a principal where nobody authenticated its client
   */
  excess(principal: string, amount = 1, session?: string): Excess | undefined {
    const { max, option, perPrincipal, anonymous } = this.#options;
    if (this.#all + amount > max)
      return { limit: 'total', message: this.#full('this server has', this.#all, max, amount, option) };
    if (principal === ANONYMOUS) {
      const share = anonymous ? Math.floor((max * anonymous.percent) / 100) : max;
      if (this.#anonymous + amount > share) {
        const message = this.#full('anonymous clients have', this.#anonymous, share, amount, 'limits.anonymousPercent');
        return { limit: 'anonymous', message };
      }
    }
    const own = this.#own(principal, session);
    if (!perPrincipal || own === undefined || own + amount <= perPrincipal.max) return undefined;
    const who = principal === ANONYMOUS ? 'this session has' : 'this principal has';
    return { limit: 'principal', message: this.#full(who, own, perPrincipal.max, amount, perPrincipal.option) };
  }

  /** Counts so much more, whether or not there is room. */
  add(principal: string, amount = 1, session?: string): void {
    this.#all += amount;
    if (principal === ANONYMOUS) this.#anonymous += amount;
    const key = principal === ANONYMOUS ? session : principal;
    if (key === undefined) return;
    const own = principal === ANONYMOUS ? this.#ofSession : this.#ofPrincipal;
    const now = (own.get(key) ?? 0) + amount;
    if (now > 0) own.set(key, now);
    else own.delete(key);
  }

  remove(principal: string, amount = 1, session?: string): void {
    this.add(principal, -amount, session);
  }

  /** Takes so much, if there is room. */
  reserve(principal: string, amount = 1, session?: string): Reservation | Excess {
    return this.excess(principal, amount, session) ?? this.take(principal, amount, session);
  }

  /** Takes so much, whether or not there is room: it is there already. */
  take(principal: string, amount = 1, session?: string): Reservation {
    this.add(principal, amount, session);
    return new Taken(this, principal, amount, session);
  }

  #own(principal: string, session: string | undefined): number | undefined {
    if (principal !== ANONYMOUS) return this.#ofPrincipal.get(principal) ?? 0;
    return session === undefined ? undefined : (this.#ofSession.get(session) ?? 0);
  }

  #full(who: string, has: number, max: number, amount: number, option: string): string {
    const { what } = this.#options;
    const more = amount === 1 ? '' : `, and ${amount} more do not fit`;
    return `${who} ${has} ${what} of at most ${max}${more} (the server's option is ${option})`;
  }
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
