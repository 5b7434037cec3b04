/** One legacy session in a durable store: writes and reads its row, its snapshot and the events of its streams. */

import type { ActorSystem } from '../kernel/actor-system.ts';
import { type GatedWrites, OutputGate } from '../kernel/output-gate.ts';
import type { SessionState } from '../messages/session-messages.ts';
import type { SessionStorage, StoredEvent, StoredEventKind } from '../messages/session-storage.ts';
import { DIALECTS, type Dialect } from '../protocol/dialects/index.ts';
import { isObject, type JsonValue } from '../protocol/json.ts';
import { type Initialize, readInitialize } from '../protocol/operations.ts';
import { isLegacyRevision } from '../protocol/revisions.ts';
import { isLogLevel } from '../protocol/types.ts';
import { fromText, toText } from '../store/serialize.ts';
import { type ActorRow, type Store, type Stored, StoreError, type Write } from '../store/store.ts';
import { RecentNames } from './recent-names.ts';

/** Version of the snapshot. Other versions are not read. */
const VERSION = '1';
/** Milliseconds for which an ended session stays in the store for inspection. */
const AUDIT_MS = 15 * 60_000;

/** The data with which a session was opened; it never changes. */
export interface Opening {
  readonly dialect: Dialect;
  readonly opening: Initialize;
}

interface SessionRecordOptions {
  readonly store: Store;
  readonly system: ActorSystem;
  /** Key in the store. It does not reveal the secret id. */
  readonly actor: string;
  readonly principal: string;
  readonly created: number;
  readonly sleepsAfterMs: number;
  /** True for a session that was just opened: the store has no calls of it that are unknown here. */
  readonly fresh: boolean;
  /** Maximum number of calls that are remembered here; the store removes older ones, too. */
  readonly maxReplies: number;
  /** Called when the session leaves memory. This row can restore it. */
  slept(row: ActorRow): void;
  ended(): void;
}

/** The writes of one session between two commits: its latest row and snapshot, and everything else in order. */
class SessionWrites implements GatedWrites<readonly Write[]> {
  readonly #store: Store;
  readonly #actor: string;
  #batch: Write[] = [];
  /** The latest snapshot and row that are not yet in a batch. Each replaces its predecessor. */
  readonly #latest = new Map<'snapshot' | 'actor', Write>();
  /** True after a disk error: the batch may or may not be durable. */
  #unknown = false;

  /** @param actor owns these events and snapshots */
  constructor(store: Store, actor: string) {
    this.#store = store;
    this.#actor = actor;
  }

  put(write: Write): void {
    if (isState(write)) this.#latest.set(write.type, write);
    else this.#batch.push(write);
  }

  take(): readonly Write[] {
    const batch = [...this.#latest.values(), ...this.#batch];
    this.#latest.clear();
    this.#batch = [];
    return batch;
  }

  commit(batch: readonly Write[]): Promise<void> {
    if (!this.#unknown) return this.#store.commit(batch);
    return this.#unkept(batch).then((left) => this.#store.commit(left));
  }

  durable(): void {
    this.#unknown = false;
  }

  /** Puts the batch in front of the next one. */
  rejected(batch: readonly Write[], error: unknown): 'retry' | 'close' {
    const fault = error instanceof StoreError ? error.fault : 'failed';
    if (fault === 'closed') return 'close';
    this.#unknown ||= fault === 'failed';
    for (const write of batch) if (isState(write) && !this.#latest.has(write.type)) this.#latest.set(write.type, write);
    this.#batch = [...batch.filter((write) => !isState(write)), ...this.#batch];
    return 'retry';
  }

  /** The part of a batch that is not durable, if the outcome of its commit is unknown. */
  async #unkept(batch: readonly Write[]): Promise<readonly Write[]> {
    const rows = await this.#store.streams(this.#actor);
    const last = new Map(rows.map((row) => [row.stream, row.last]));
    return batch.filter((write) => write.type !== 'event' || write.seq > (last.get(write.stream) ?? 0));
  }
}

export class SessionRecord implements SessionStorage {
  readonly actor: string;
  readonly #writes: SessionWrites;
  readonly #output: OutputGate<readonly Write[]>;
  /** The number of writes up to the last change of the session's state (its snapshot or its row). */
  #stated = 0;
  /** True once its last row was written. */
  #sealed = false;
  readonly #options: SessionRecordOptions;
  /** Expiry through disuse as the store has it, in milliseconds since 1970. */
  #expires = 0;
  #idleMs = 0;
  #usedAt = 0;
  /** True if it watches resources. It then stays in memory, because it must receive their changes. */
  #watching = false;
  /** Its calls, oldest first; undefined if an earlier activation may have made some. */
  readonly #calls: RecentNames | undefined;

  constructor(options: SessionRecordOptions) {
    this.#options = options;
    this.actor = options.actor;
    this.#writes = new SessionWrites(options.store, options.actor);
    this.#output = new OutputGate(this.#writes, options.system);
    if (options.fresh) this.#calls = new RecentNames(options.maxReplies);
  }

  /** True if the store rejected the last batch: optional writes should be skipped. */
  get failing(): boolean {
    return this.#output.failing;
  }

  /** Adds a write to the batch of this turn. */
  add(write: Write): void {
    if (this.#sealed || this.#output.closed) return;
    this.#writes.put(write);
    this.#output.add();
    if (isState(write)) this.#stated = this.#output.added;
  }

  /** Resolves when all writes are durable, or cannot be for now. */
  settled(): Promise<void> {
    return new Promise((resolve) => this.#output.after(resolve, () => resolve()));
  }

  /** Stores nothing more, and rejects the output that waits. */
  close(): void {
    this.#output.close('the store is closed');
  }

  /** True if the store may have a reply for this call. Records the call. */
  mayRepeat(call: string): boolean {
    if (!this.#calls || this.#calls.has(call)) return true;
    this.#calls.add(call);
    return false;
  }

  /** Stores the session's new state. */
  changed({ dialect, opening }: Opening, state: SessionState): void {
    this.#watching = state.watches.length > 0;
    const { protocolVersion, clientInfo, capabilities } = opening;
    const data = toText({
      revision: dialect.revision,
      opening: { protocolVersion, clientInfo, capabilities },
      ...state,
    });
    this.add({ type: 'snapshot', actor: this.actor, version: VERSION, data });
  }

  event(stream: string, seq: number, kind: StoredEventKind, data: string): void {
    this.add({ type: 'event', actor: this.actor, stream, seq, kind, data });
  }

  trim(stream: string, upto: number): void {
    this.add({ type: 'trim', actor: this.actor, stream, upto });
  }

  gate(run: () => void, failed?: (why: string) => void): void {
    this.#output.after(run, failed);
  }

  readGate(run: () => void, failed: (why: string) => void): void {
    this.#output.afterAddition(this.#stated, run, failed);
  }

  async streams(): Promise<readonly string[]> {
    const rows = await this.#options.store.streams(this.actor);
    return rows.map(({ stream }) => stream).filter((stream) => stream !== '');
  }

  events(stream: string, limit: number): Promise<readonly StoredEvent[]> {
    return this.#options.store.events(this.actor, stream, 0, limit);
  }

  used(idleMs: number): void {
    this.#usedAt = this.#options.system.clock.date();
    this.#idleMs = idleMs;
    // Not on each use: an expiry that is wrong by up to a quarter of the idle time is worth no write.
    if (this.#usedAt + idleMs - this.#expires > idleMs / 4) this.#keepRow();
  }

  get sleepsAfterMs(): number | undefined {
    return this.#output.still && !this.#watching ? this.#options.sleepsAfterMs : undefined;
  }

  sleep(): void {
    const row = this.#keepRow();
    this.#sealed = true;
    // If the session was restored in the meantime, it writes its own row: this one is not retried.
    const close = (): void => this.close();
    this.#output.after(close, close);
    this.#options.slept(row);
  }

  end(): void {
    this.#row('ended', this.#options.system.clock.date() + AUDIT_MS);
    this.#sealed = true;
    this.#options.ended();
  }

  #keepRow(): ActorRow {
    this.#expires = this.#usedAt + this.#idleMs;
    return this.#row('open', this.#expires);
  }

  #row(status: string, expires: number): ActorRow {
    const { principal, created } = this.#options;
    const row: ActorRow = { id: this.actor, kind: 'session', name: '', principal, status, created, expires };
    this.add({ type: 'actor', actor: row });
    return row;
  }
}

/** Narrows a write to one of the session's state: its row or its snapshot. */
function isState(write: Write): write is Extract<Write, { type: 'snapshot' | 'actor' }> {
  return write.type === 'snapshot' || write.type === 'actor';
}

/** @throws {StoreError} if the data is not a session, or has an unknown version */
export function readSession({ actor, snapshot }: Stored): Opening & { readonly state: SessionState } {
  if (snapshot?.version !== VERSION)
    throw new StoreError(
      'foreign',
      `${actor.id}: expected a session of version ${VERSION}, got ${snapshot ? `version ${snapshot.version}` : 'none'}; its client must open another`,
    );
  const read: JsonValue = fromText(snapshot.data, actor.id);
  const { revision, opening, logLevel, initialized, watches } = isObject(read) ? read : NONE;
  if (
    !isLegacyRevision(revision) ||
    !isObject(opening) ||
    !isLogLevel(logLevel) ||
    typeof initialized !== 'boolean' ||
    !Array.isArray(watches)
  )
    throw new StoreError('corrupt', `${actor.id}: expected a stored session, got something else`);
  return {
    dialect: DIALECTS[revision],
    opening: readInitialize(opening),
    state: { logLevel, initialized, watches: watches.filter((uri): uri is string => typeof uri === 'string') },
  };
}

const NONE: Readonly<Record<string, never>> = Object.freeze({});
