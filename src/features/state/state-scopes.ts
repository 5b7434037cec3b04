/** The scopes of state in use by this process: finds or creates the actor of each, counts all scopes, and ends those of sessions. */
import type { Actor } from '../../core/kernel/actor.ts';
import type { Timer } from '../../core/kernel/clock.ts';
import type { Reservation } from '../../core/kernel/quota.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import type { Core } from '../../core/server/feature.ts';
import { RecentNames } from '../../core/sessions/recent-names.ts';
import type { ActorRow } from '../../core/store/store.ts';
import { StateError } from './state-error.ts';
import type { ScopeMail, ScopeOwner, StateOperation } from './state-messages.ts';
import { type ScopeTable, spawnScope } from './state-scope.actor.ts';

/** Maximum number of ended sessions whose late calls are recognized. */
const MAX_ENDED = 10_000;
/** Rows in one read when scopes are counted. */
const PAGE = 1_000;
/** Milliseconds until scopes are counted again: the store deletes those whose time has passed. */
const COUNT_MS = 60_000;
/** Maximum number of scopes in memory while an inspector shows them. */
const MAX_SHOWN = 1_000;

const OF_SESSIONS = 'state/session/';

/** The number of stored scopes, of anonymous callers and of others. */
interface Counted {
  anonymous: number;
  others: number;
}

/** The scope of a principal. */
export function principalScope(principal: string): ScopeOwner {
  return { id: `state/principal/${sha256(principal)}`, kind: 'principal', principal, session: undefined };
}

/** The scope of a session. Its id is secret, so the store has its hash. */
export function sessionScope(session: string, principal: string): ScopeOwner {
  return { id: `${OF_SESSIONS}${sha256(session)}`, kind: 'session', principal, session };
}

/** The scope of a session that only the store has: its actor there ends with the same hash. */
function storedSessionScope(actor: string, principal: string): ScopeOwner {
  const hash = actor.slice(actor.lastIndexOf('.') + 1);
  return { id: OF_SESSIONS + hash, kind: 'session', principal, session: hash };
}

export class StateScopes implements ScopeTable {
  readonly #core: Core;
  /** The oldest first. */
  readonly #scopes = new Map<string, Actor<ScopeMail>>();
  readonly #ended = new RecentNames(MAX_ENDED);
  /** The memory of each scope, if the store is this process's memory. */
  readonly #held = new Map<string, { readonly memory: Reservation; expires: number }>();
  #sweep: Timer | undefined;
  #counted: Counted | undefined;
  #countedAt = 0;
  #counting: Promise<void> | undefined;
  #unlisten: readonly (() => void)[] = [];

  constructor(core: Core) {
    this.#core = core;
    const { store, log } = core;
    if (!store.durable)
      log(
        'info',
        'ctx.state is in the memory of this process and ends with it: name a store to keep it (the option store, or troupe run --data DIR)',
        { event: 'store' },
      );
  }

  /** Number of scopes with an actor. */
  get size(): number {
    return this.#scopes.size;
  }

  /** Deletes the state of a session when it ends, from now on. */
  followSessions(): void {
    if (this.#unlisten.length > 0) return;
    const { bus } = this.#core;
    this.#unlisten = [
      bus.on('session.ended', ({ session, client }) => this.#end(sessionScope(session, client.principal))),
      bus.on('session.expired', ({ actor, principal }) => this.#end(storedSessionScope(actor, principal))),
    ];
  }

  /** Deletes the state of no further session. */
  unfollowSessions(): void {
    for (const off of this.#unlisten) off();
  }

  /** Runs an operation on a scope. */
  operate(owner: ScopeOwner, operation: StateOperation): void {
    if (owner.session !== undefined && this.#ended.has(owner.id))
      return operation.reject(new StateError('ended', 'the session has ended, and its state with it'));
    if (owner.session !== undefined) this.followSessions();
    this.#scopeOf(owner).mailbox.send({ type: 'operate', operation });
  }

  async counts({ principal }: ScopeOwner): Promise<string | undefined> {
    const { quotas, system } = this.#core;
    if (!this.#counted || system.clock.now() - this.#countedAt >= COUNT_MS) {
      this.#counting ??= this.#count().finally(() => {
        this.#counting = undefined;
      });
      await this.#counting;
    }
    const excess = quotas.scopes.excess(principal);
    if (!excess) return undefined;
    system.metrics.refused(excess.option);
    return `${excess.message}. Scopes leave after limits.stateIdleMs without use`;
  }

  fits(owner: ScopeOwner, bytes: number): string | undefined {
    if (this.#core.store.durable) return undefined;
    const { principal, id, session } = owner;
    const held = this.#held.get(id);
    const more = bytes - (held?.memory.amount ?? 0);
    const excess = more > 0 ? this.#core.quotas.retained.excess(principal, more, session) : undefined;
    if (excess) this.#core.system.metrics.refused(excess.option);
    return excess?.message;
  }

  stored(owner: ScopeOwner, bytes: number, expires: number, created: boolean): void {
    const { principal, id, session } = owner;
    if (created) this.#add(principal, 1);
    if (this.#core.store.durable) return;
    const held = this.#held.get(id);
    if (held) {
      held.memory.resize(bytes, 'forced');
      held.expires = expires;
      return;
    }
    this.#held.set(id, { memory: this.#core.quotas.retained.take(principal, bytes, session), expires });
    this.#sweepLater();
  }

  rests({ id }: ScopeOwner): void {
    this.#scopes.get(id)?.stop('idle');
    this.#scopes.delete(id);
  }

  /** The store closes, and rejects what is still on its way. */
  stop(): void {
    this.unfollowSessions();
    this.#sweep?.cancel();
    for (const { memory } of this.#held.values()) memory.release();
    this.#held.clear();
    this.#forgetCount();
  }

  #scopeOf(owner: ScopeOwner): Actor<ScopeMail> {
    const found = this.#scopes.get(owner.id);
    if (found) return found;
    const { system, store, limits } = this.#core;
    if (this.#scopes.size >= MAX_SHOWN) for (const scope of this.#scopes.values()) scope.mailbox.send({ type: 'rest' });
    const scope = spawnScope({ system, store, owner, limits, scopes: this });
    this.#scopes.set(owner.id, scope);
    return scope;
  }

  /** A late call of the session finds it ended. */
  #end(owner: ScopeOwner): void {
    this.#ended.add(owner.id);
    const over = (): void => {};
    this.#core.store.load(owner.id).then((stored) => {
      if (!stored?.snapshot) return;
      const operation: StateOperation = {
        bytes: 0,
        clears: true,
        run: (document) => document.clear(),
        resolve: over,
        reject: (error) => this.#core.system.incident(owner.id, error),
      };
      this.#scopeOf(owner).mailbox.send({ type: 'operate', operation });
    }, over);
  }

  async #count(): Promise<void> {
    const { store, system } = this.#core;
    const counted: Counted = { anonymous: 0, others: 0 };
    let after: ActorRow | undefined;
    for (;;) {
      const rows = await store.list({ kind: 'state', after, limit: PAGE });
      for (const { principal } of rows)
        if (principal === ANONYMOUS) counted.anonymous += 1;
        else counted.others += 1;
      after = rows.at(-1);
      if (rows.length < PAGE) break;
    }
    this.#forgetCount();
    this.#countedAt = system.clock.now();
    this.#counted = { anonymous: 0, others: 0 };
    this.#add(ANONYMOUS, counted.anonymous);
    this.#add('', counted.others);
  }

  #add(principal: string, amount: number): void {
    if (!this.#counted) return;
    const isAnonymous = principal === ANONYMOUS;
    if (isAnonymous) this.#counted.anonymous += amount;
    else this.#counted.others += amount;
    this.#core.quotas.scopes.add(isAnonymous ? ANONYMOUS : '', amount);
  }

  #forgetCount(): void {
    if (!this.#counted) return;
    const { anonymous, others } = this.#counted;
    this.#add(ANONYMOUS, -anonymous);
    this.#add('', -others);
    this.#counted = undefined;
  }

  /** Returns the memory of scopes whose time has passed. */
  #sweepLater(): void {
    const { clock } = this.#core.system;
    this.#sweep ??= clock.after(COUNT_MS, () => {
      this.#sweep = undefined;
      const now = clock.date();
      for (const [id, { memory, expires }] of this.#held) {
        if (expires > now) continue;
        memory.release();
        this.#held.delete(id);
      }
      if (this.#held.size > 0) this.#sweepLater();
    });
  }
}
