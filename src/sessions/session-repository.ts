/** The legacy sessions in a durable store: active and dormant ones. Finds a dormant session by its secret id. */
import { createHash } from 'node:crypto';
import type { ActorSystem } from '../actor/actor-system.ts';
import type { Timer } from '../clock.ts';
import type { Limits } from '../limits.ts';
import type { SessionState } from '../messages/session-messages.ts';
import { messageOf } from '../protocol/json.ts';
import type { Quotas } from '../server-quotas.ts';
import { type ActorRow, type Store, StoreError } from '../store/store.ts';
import { type Opening, readSession, SessionRecord } from './session-record.ts';

/** A store that calls its users after it has opened, if it contains data. */
export interface RestoringStore {
  readonly store: Store;
  restoring(restore: () => Promise<void>): void;
}

export interface SessionRepositoryOptions {
  readonly store: Store;
  readonly system: ActorSystem;
  readonly limits: Pick<Limits, 'sessionSleepMs' | 'maxRepliesPerSession'>;
  /** Dormant sessions count, too. */
  readonly quotas: Pick<Quotas, 'sessions' | 'retained'>;
}

/** A stored session that is being restored. */
export interface FoundSession extends Opening {
  readonly state: SessionState;
  readonly kept: SessionRecord;
  /** True if an earlier process stored the session: it has not been notified of changes since then. */
  readonly survived: boolean;
}

/** Rows in one read when the server starts. */
const PAGE = 1_000;
/** Approximate memory of a dormant session in bytes: its row. */
const ASLEEP_BYTES = 600;
/** Milliseconds between two removals of expired dormant sessions. */
const PRUNE_MS = 60_000;

/** The durable sessions of a server; undefined if its store does not outlive the process. */
export function openSessionRepository(
  keeping: RestoringStore,
  options: Omit<SessionRepositoryOptions, 'store'>,
): SessionRepository | undefined {
  const { store } = keeping;
  if (!store.durable) return undefined;
  const kept = new SessionRepository({ ...options, store });
  keeping.restoring(() => kept.restore());
  return kept;
}

export class SessionRepository {
  readonly #options: SessionRepositoryOptions;
  /** Active sessions by secret id. */
  readonly #awake = new Map<string, SessionRecord>();
  /** Dormant sessions by their key in the store. */
  readonly #asleep = new Map<string, ActorRow>();
  /** The members of {@link #asleep} that an earlier process stored. */
  readonly #survivors = new Set<string>();
  #pruning: Timer | undefined;

  constructor(options: SessionRepositoryOptions) {
    this.#options = options;
  }

  /** Reads the rows of earlier processes: one for each session, without its data. */
  async restore(): Promise<void> {
    const { store, system } = this.#options;
    const now = system.clock.date();
    let after: ActorRow | undefined;
    for (;;) {
      const rows = await store.list({ kind: 'session', after, limit: PAGE });
      for (const row of rows) {
        if (row.status !== 'open' || ended(row, now)) continue;
        this.#sleeps(row);
        this.#survivors.add(row.id);
      }
      after = rows.at(-1);
      if (rows.length < PAGE) break;
    }
    this.#pruneLater();
  }

  /** Makes a session durable from now on. */
  open(id: string, principal: string, opening: Opening, state: SessionState): SessionRecord {
    const kept = this.#keep(id, actorOf(id), principal, this.#options.system.clock.date(), true);
    kept.changed(opening, state);
    return kept;
  }

  /** The record of an active session. */
  awake(id: string): SessionRecord | undefined {
    return this.#awake.get(id);
  }

  /**
   * Loads a dormant session of this principal. Unknown ids and other principals' sessions are indistinguishable, also
   * by response time.
   * @returns `damaged` if the store has invalid data of the session
   * @throws {StoreError} if the store cannot be read
   */
  async find(id: string, principal: string): Promise<FoundSession | 'damaged' | undefined> {
    const { store, system } = this.#options;
    const actor = actorOf(id);
    const row = this.#asleep.get(actor);
    if (!row && store.isDamaged?.(actor)) return 'damaged';
    if (row?.principal !== principal) return undefined;
    const survived = this.#survivors.has(actor);
    this.#wakes(row);
    if (ended(row, system.clock.date())) return undefined;
    try {
      // Together with its streams, so that unreadable data is found before the session is activated.
      const [stored] = await Promise.all([store.load(actor), store.streams(actor)]);
      if (stored?.actor.status !== 'open') return undefined;
      const found = readSession(stored);
      const kept = this.#keep(id, actor, principal, row.created, false);
      return { ...found, kept, survived };
    } catch (error) {
      const fault = error instanceof StoreError ? error.fault : 'corrupt';
      if (fault !== 'foreign') {
        // The session exists whatever the error: it can be requested again.
        this.#sleeps(row);
        if (survived) this.#survivors.add(actor);
      }
      if (fault !== 'corrupt' && fault !== 'foreign') throw error;
      system.log('error', `cannot restore a session: ${messageOf(error)}`);
      return fault === 'corrupt' ? 'damaged' : undefined;
    }
  }

  /** Resolves when the sessions' writes are durable, as far as possible. Stores nothing afterwards. */
  async close(): Promise<void> {
    this.#pruning?.cancel();
    await Promise.all([...this.#awake.values()].map(({ journal }) => journal.settled()));
    for (const { journal } of this.#awake.values()) journal.close();
    this.#awake.clear();
  }

  #keep(id: string, actor: string, principal: string, created: number, fresh: boolean): SessionRecord {
    const { store, system, limits } = this.#options;
    const kept = new SessionRecord({
      store,
      system,
      actor,
      principal,
      created,
      sleepsAfterMs: limits.sessionSleepMs,
      maxReplies: limits.maxRepliesPerSession,
      fresh,
      slept: (row) => {
        this.#awake.delete(id);
        this.#sleeps(row);
      },
      ended: () => this.#awake.delete(id),
    });
    this.#awake.set(id, kept);
    return kept;
  }

  #sleeps(row: ActorRow): void {
    const { sessions, retained } = this.#options.quotas;
    this.#asleep.set(row.id, row);
    sessions.add(row.principal);
    retained.add(row.principal, ASLEEP_BYTES);
  }

  #wakes({ id, principal }: ActorRow): void {
    if (!this.#asleep.delete(id)) return;
    this.#survivors.delete(id);
    const { sessions, retained } = this.#options.quotas;
    sessions.remove(principal);
    retained.remove(principal, ASLEEP_BYTES);
  }

  /** Periodically removes dormant sessions that have expired. The store removes expired data independently. */
  #pruneLater(): void {
    const { clock } = this.#options.system;
    this.#pruning = clock.after(PRUNE_MS, () => {
      const now = clock.date();
      for (const row of this.#asleep.values()) if (ended(row, now)) this.#wakes(row);
      this.#pruneLater();
    });
  }
}

function ended({ expires }: ActorRow, now: number): boolean {
  return expires !== undefined && expires <= now;
}

/** Key in the store. The secret id, which grants access to the session, is never written to disk. */
function actorOf(id: string): string {
  return `session/${createHash('sha256').update(id).digest('base64url')}`;
}
