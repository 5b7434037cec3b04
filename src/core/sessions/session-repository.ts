/** The legacy sessions in a durable store: active and dormant ones. Finds a dormant session by its secret id. */
import { type SessionEvent, sessionMachine } from '../../../machines/session.ts';
import type { ActorSystem } from '../kernel/actor-system.ts';
import { eachInSlices, type Timer } from '../kernel/clock.ts';
import type { Limits } from '../kernel/limits.ts';
import { errorFields } from '../kernel/operator-log.ts';
import type { Quotas } from '../kernel/server-quotas.ts';
import { sha256 } from '../kernel/sha256.ts';
import { step } from '../kernel/step.ts';
import type { CellHolder } from '../messages/cell-holder.ts';
import type { SessionState } from '../messages/session-messages.ts';
import { cellIn, isActorOfCells, isOfCells, sessionActor } from '../protocol/cell.ts';
import { messageOf } from '../protocol/json.ts';
import { type ActorRow, type Store, StoreError } from '../store/store.ts';
import { type Opening, readSession, SessionRecord } from './session-record.ts';

/** A store that its users take up data from, once it has opened. */
interface SharedStore {
  readonly store: Store;
  taking(holder: CellHolder): void;
}

interface SessionRepositoryOptions {
  readonly store: Store;
  readonly system: ActorSystem;
  readonly limits: Pick<Limits, 'sessionSleepMs' | 'maxRepliesPerSession'>;
  /** Dormant sessions count, too. */
  readonly quotas: Pick<Quotas, 'sessions' | 'retained'>;
  /** Called when a session has expired that no process had in memory. */
  expired?(row: ActorRow): void;
}

/** A stored session that is being restored. */
interface FoundSession extends Opening {
  readonly state: SessionState;
  readonly kept: SessionRecord;
  /** True if an earlier process stored the session: it has not been notified of changes since then. */
  readonly survived: boolean;
  /** @throws {StoreError} `busy` if another node has taken over the session meanwhile */
  assertOwned(): void;
  /** Called once the session is in memory and counted as such. */
  opened(): void;
  /** Called if its streams cannot be read now: it hibernates again. */
  unread(): void;
}

/** A session that is not in memory. */
interface DormantSession {
  readonly row: ActorRow;
  /** True if an earlier process stored it. */
  readonly survived: boolean;
  snapshot: typeof HIBERNATING;
}

/** Snapshots are immutable, so all sessions share it. */
const HIBERNATING = sessionMachine.at('hibernating');

/** The sessions that are not in memory. Their next request restores them. */
interface HibernatingSessions {
  readonly count: number;
  /** The addresses of those that hibernated last, the latest first. */
  readonly some: readonly string[];
}

/** Maximum number of listed sessions. */
const MOST_LISTED = 50;
/** Length of the listed part of a key: it tells sessions apart, and grants nothing. */
const LISTED_KEY = 'session/AB.'.length + 8;
/** Rows in one read when the server starts. */
const PAGE = 1_000;
/** Approximate memory of a dormant session in bytes: its row. */
const ASLEEP_BYTES = 600;
/** Milliseconds between two removals of expired dormant sessions. */
const PRUNE_MS = 60_000;

/** The durable sessions of a server; undefined if its store does not outlive the process. */
export function openSessionRepository(
  shared: SharedStore,
  options: Omit<SessionRepositoryOptions, 'store'>,
): SessionRepository | undefined {
  const { store } = shared;
  if (!store.durable) return undefined;
  const repository = new SessionRepository({ ...options, store });
  shared.taking(repository);
  return repository;
}

export class SessionRepository implements CellHolder {
  readonly #options: SessionRepositoryOptions;
  /** Active sessions by secret id. */
  readonly #awake = new Map<string, SessionRecord>();
  /** Sessions that hibernate or wake, by their key in the store. */
  readonly #dormant = new Map<string, DormantSession>();
  /** The keys of the latest dormant sessions, for the inspector: the latest last, at most {@link MOST_LISTED}. */
  readonly #latest = new Set<string>();
  /** The last writes of sessions that hibernate. */
  readonly #settling = new Set<Promise<void>>();
  #pruning: Timer | undefined;

  constructor(options: SessionRepositoryOptions) {
    this.#options = options;
  }

  /** Reads the rows that other processes have stored: one for each session, without its data. */
  async take(cells: readonly number[] | undefined): Promise<void> {
    const { store, system } = this.#options;
    const now = system.clock.date();
    let after: ActorRow | undefined;
    for (;;) {
      const rows = await store.list({ kind: 'session', cells, after, limit: PAGE });
      for (const row of rows) {
        if (row.status !== 'open') continue;
        if (ended(row, now)) this.#options.expired?.(row);
        else this.#hibernates(row, true);
      }
      after = rows.at(-1);
      if (rows.length < PAGE) break;
    }
    if (!this.#pruning) this.#pruneLater();
  }

  /** Lets go of sessions. The transport has ended those in memory. */
  async drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    for (const [id, session] of this.#awake) {
      if (!isOfCells(cells, id)) continue;
      session.close();
      this.#awake.delete(id);
    }
    const { clock } = this.#options.system;
    const leave = (dormant: DormantSession): void => {
      if (isActorOfCells(cells, dormant.row.id)) this.#remove(dormant);
    };
    if (!flush) return [...this.#dormant.values()].forEach(leave);
    await Promise.all(this.#settling);
    await eachInSlices(clock, this.#dormant.values(), leave);
  }

  /** Makes a session durable from now on. */
  open(id: string, principal: string, opening: Opening, state: SessionState): SessionRecord {
    const kept = this.#keep(id, actorOf(id), principal, this.#options.system.clock.date(), true);
    kept.changed(opening, state);
    return kept;
  }

  /** The number of dormant sessions, and the latest of them, for the inspector. */
  hibernating(): HibernatingSessions {
    return { count: this.#dormant.size, some: [...this.#latest].reverse().map((key) => key.slice(0, LISTED_KEY)) };
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
    const dormant = this.#dormant.get(actor);
    if (!dormant && store.isDamaged(actor)) return 'damaged';
    if (dormant?.row.principal !== principal) return undefined;
    // Another request restores it.
    if (dormant.snapshot.path !== 'hibernating') return undefined;
    const { row, survived } = dormant;
    const assertOwned = (): void => {
      if (this.#dormant.get(actor) !== dormant)
        throw new StoreError('busy', 'another node takes over this session. Retry');
    };
    take(dormant, 'wake');
    if (ended(row, system.clock.date())) return this.#end(dormant);
    try {
      // Together with its streams, so that unreadable data is found before the session is activated.
      const [stored] = await Promise.all([store.load(actor), store.streams(actor)]);
      if (stored?.actor.status !== 'open') return this.#end(dormant);
      assertOwned();
      const found = readSession(stored);
      const kept = this.#keep(id, actor, principal, row.created, false);
      const unread = (): void => {
        kept.close();
        if (this.#awake.get(id) === kept) this.#awake.delete(id);
        take(dormant, 'unread');
      };
      const opened = (): void => this.#leaves(dormant, 'restored');
      return { ...found, kept, survived, unread, assertOwned, opened };
    } catch (error) {
      const fault = error instanceof StoreError ? error.fault : 'corrupt';
      // The session exists whatever the error: it can be requested again.
      if (fault === 'foreign') this.#end(dormant);
      else take(dormant, 'unread');
      if (fault !== 'corrupt' && fault !== 'foreign') throw error;
      system.log('error', `cannot restore a session: ${messageOf(error)}`, errorFields('store', error));
      return fault === 'corrupt' ? 'damaged' : undefined;
    }
  }

  /** Ends the dormant sessions of a principal. Resolves when the writes of those that ended before are durable. */
  async forget(principal: string): Promise<void> {
    for (const dormant of [...this.#dormant.values()]) if (dormant.row.principal === principal) this.#end(dormant);
    await Promise.all(this.#settling);
  }

  /** Resolves when the sessions' writes are durable, as far as possible. Stores nothing afterwards. */
  async close(): Promise<void> {
    this.#pruning?.cancel();
    await Promise.all([...this.#awake.values()].map((session) => session.settled()));
    for (const session of this.#awake.values()) session.close();
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
        const settled = kept.settled().then(() => void this.#settling.delete(settled));
        this.#settling.add(settled);
        this.#awake.delete(id);
        this.#hibernates(row, false);
      },
      ended: () => this.#awake.delete(id),
    });
    this.#awake.set(id, kept);
    return kept;
  }

  #hibernates(row: ActorRow, survived: boolean): void {
    const { sessions, retained } = this.#options.quotas;
    this.#dormant.set(row.id, { row, survived, snapshot: HIBERNATING });
    this.#latest.add(row.id);
    if (this.#latest.size > MOST_LISTED) for (const oldest of this.#latest) if (this.#latest.delete(oldest)) break;
    sessions.add(row.principal);
    retained.add(row.principal, ASLEEP_BYTES);
  }

  #end(dormant: DormantSession): undefined {
    this.#options.expired?.(dormant.row);
    this.#leaves(dormant, 'close');
  }

  /** A session is in memory again, or has ended. */
  #leaves(dormant: DormantSession, event: 'restored' | 'close'): void {
    take(dormant, event);
    this.#remove(dormant);
  }

  #remove({ row: { id, principal } }: DormantSession): void {
    this.#latest.delete(id);
    if (!this.#dormant.delete(id)) return;
    const { sessions, retained } = this.#options.quotas;
    sessions.remove(principal);
    retained.remove(principal, ASLEEP_BYTES);
  }

  /** Periodically removes dormant sessions that have expired. The store removes expired data independently. */
  #pruneLater(): void {
    const { clock } = this.#options.system;
    this.#pruning = clock.after(PRUNE_MS, () => {
      const now = clock.date();
      for (const dormant of this.#dormant.values())
        if (dormant.snapshot.path === 'hibernating' && ended(dormant.row, now)) this.#end(dormant);
      this.#pruneLater();
    });
  }
}

function take(dormant: DormantSession, type: SessionEvent['type']): void {
  dormant.snapshot = step(dormant.snapshot, { type }) ?? dormant.snapshot;
}

function ended({ expires }: ActorRow, now: number): boolean {
  return expires !== undefined && expires <= now;
}

/** Key in the store. The secret id, which grants access to the session, is never written to disk. */
function actorOf(id: string): string {
  return sessionActor(cellIn(id), sha256(id));
}
