/** The legacy sessions of a durable store: which are awake, which sleep, and how one that sleeps is found by its secret id. */
import { createHash } from 'node:crypto';
import type { Clock, Timer } from '../clock.ts';
import type { Limits } from '../limits.ts';
import type { SessionState } from '../messages/session-messages.ts';
import type { OperatorLog } from '../operator-log.ts';
import { messageOf } from '../protocol/json.ts';
import type { Quotas } from '../server-quotas.ts';
import { type ActorRow, type Store, StoreError } from '../store/store.ts';
import { type Opening, readSession, SessionRecord } from './session-record.ts';

/** A store that calls those who have something in it, once it is open. */
export interface RestoringStore {
  readonly store: Store;
  restoring(restore: () => Promise<void>): void;
}

export interface SessionRepositoryOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly limits: Pick<Limits, 'sessionSleepMs' | 'maxRepliesPerSession'>;
  /** Those that sleep count as well. */
  readonly quotas: Pick<Quotas, 'sessions' | 'retained'>;
  readonly log: OperatorLog;
  incident(where: string, error: unknown): string;
}

/** A session as it was kept, on its way to being awake. */
export interface FoundSession extends Opening {
  readonly state: SessionState;
  readonly kept: SessionRecord;
  /** It was kept by a process that is gone: what has changed since, nobody has told it. */
  readonly survived: boolean;
}

/** Rows that are read at once when the server starts. */
const PAGE = 1_000;
/** About how many bytes a session takes in memory that sleeps: its row. */
const ASLEEP_BYTES = 600;
/** Milliseconds between two looks at which of those that sleep have ended. */
const PRUNE_MS = 60_000;

/** The sessions that the store of a server keeps; undefined where nothing of it outlives the process. */
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
  /** By the secret id. */
  readonly #awake = new Map<string, SessionRecord>();
  /** By the id in the store. */
  readonly #asleep = new Map<string, ActorRow>();
  /** Those of {@link #asleep} that an earlier process has kept. */
  readonly #survivors = new Set<string>();
  #pruning: Timer | undefined;

  constructor(options: SessionRepositoryOptions) {
    this.#options = options;
  }

  /** Takes up what earlier processes have kept: only rows, one for each session. */
  async restore(): Promise<void> {
    const { store, clock } = this.#options;
    const now = clock.date();
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

  /** Keeps a session from now on. */
  open(id: string, principal: string, opening: Opening, state: SessionState): SessionRecord {
    const kept = this.#keep(id, actorOf(id), principal, this.#options.clock.date(), true);
    kept.changed(opening, state);
    return kept;
  }

  /** What is kept of a session that is awake. */
  awake(id: string): SessionRecord | undefined {
    return this.#awake.get(id);
  }

  /**
   * The session of this principal that sleeps. Whose it is else, nobody can tell from the answer, nor from how long it takes.
   *
   * @returns `damaged` where the store has something of it that is not as it was written
   * @throws {StoreError} when the store cannot say
   */
  async find(id: string, principal: string): Promise<FoundSession | 'damaged' | undefined> {
    const { store, clock, log } = this.#options;
    const actor = actorOf(id);
    const row = this.#asleep.get(actor);
    if (!row && store.isDamaged?.(actor)) return 'damaged';
    if (row?.principal !== principal) return undefined;
    const survived = this.#survivors.has(actor);
    this.#wakes(row);
    if (ended(row, clock.date())) return undefined;
    try {
      // With its streams: what cannot be read of it is known before it is awake.
      const [stored] = await Promise.all([store.load(actor), store.streams(actor)]);
      if (stored?.actor.status !== 'open') return undefined;
      const found = readSession(stored);
      const kept = this.#keep(id, actor, principal, row.created, false);
      return { ...found, kept, survived };
    } catch (error) {
      const fault = error instanceof StoreError ? error.fault : 'corrupt';
      if (fault !== 'foreign') {
        // It exists, whatever is wrong with it: it is asked for again.
        this.#sleeps(row);
        if (survived) this.#survivors.add(actor);
      }
      if (fault !== 'corrupt' && fault !== 'foreign') throw error;
      log('error', `a session cannot be taken up again: ${messageOf(error)}`);
      return fault === 'corrupt' ? 'damaged' : undefined;
    }
  }

  /** Resolves when what the sessions have said is durable, as far as it can be. No more is kept. */
  async close(): Promise<void> {
    this.#pruning?.cancel();
    await Promise.all([...this.#awake.values()].map(({ journal }) => journal.settled()));
    for (const { journal } of this.#awake.values()) journal.close();
    this.#awake.clear();
  }

  #keep(id: string, actor: string, principal: string, created: number, fresh: boolean): SessionRecord {
    const { store, clock, incident, limits } = this.#options;
    const kept = new SessionRecord({
      store,
      clock,
      incident,
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

  /** From time to time: those that have ended while they slept are no more. The store forgets them by itself. */
  #pruneLater(): void {
    const { clock } = this.#options;
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

/** The id in the store. The secret one, by which whoever knows it is the client, is nowhere on the disk. */
function actorOf(id: string): string {
  return `session/${createHash('sha256').update(id).digest('base64url')}`;
}
