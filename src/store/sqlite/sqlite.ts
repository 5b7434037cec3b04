/** A store in a file: SQLite in its own thread, so that a slow disk delays only acknowledgements. */
import { CrashMarker } from '../crash-marker.ts';
import type {
  ActorRow,
  DeadLetter,
  JournalEvent,
  ListQuery,
  ReplyWrite,
  Store,
  Stored,
  StoreHost,
  StreamRow,
  TimerRow,
  Write,
} from '../store.ts';
import { StoreError } from '../store.ts';
import { lengthOfWrites } from '../write-length.ts';
import { resolveSqliteOptions, type SqliteOptions } from './sqlite-options.ts';
import type { StoreQuery, StoreResult } from './sqlite-protocol.ts';
import { StoreThread } from './sqlite-thread.ts';

/**
 * A store in a file, which outlives the process. One process has it open at a time.
 *
 * @param path of the file, which is created with its directories if it does not exist
 * @throws {TypeError | RangeError} for an unknown or invalid option
 * @example createServer({ name: 'shop', version: '1.0.0', store: sqlite('troupe.db') });
 */
export function sqlite(path: string, options: Partial<SqliteOptions> = {}): Store {
  return new SqliteStore(path, resolveSqliteOptions(path, options));
}

/** The store in a file as it is when it is opened, also while a server writes to the file. It rejects every write. */
export function sqliteSnapshot(path: string): Store {
  return new SqliteStore(path, resolveSqliteOptions(path, {}), true);
}

/** Maximum number of damaged rows whose ids are remembered. */
const MAX_DAMAGED = 10_000;

class SqliteStore implements Store {
  readonly name: string;
  readonly durable = true;
  readonly #path: string;
  readonly #options: SqliteOptions;
  readonly #snapshot: boolean;
  readonly notes: CrashMarker;
  #thread: StoreThread | undefined;
  /** Actors whose row a list found but could not read. */
  readonly #damaged = new Set<string>();

  constructor(path: string, options: SqliteOptions, snapshot = false) {
    this.name = `sqlite(${path})`;
    this.#path = path;
    this.#options = options;
    this.#snapshot = snapshot;
    this.notes = new CrashMarker(`${path}-notes`);
  }

  async open(host: StoreHost): Promise<void> {
    this.#thread ??= new StoreThread(this.#path, this.#options, host, this.#snapshot);
    await this.#thread.opened;
    if (!this.#snapshot) this.notes.open();
  }

  commit(writes: readonly Write[]): Promise<void> {
    return this.#ask({ type: 'commit', writes, length: lengthOfWrites(writes) }).then(nothing);
  }

  impairment(): 'not open' | 'read-only' | undefined {
    return this.#thread ? this.#thread.impairment() : 'not open';
  }

  caughtUp(): Promise<void> | undefined {
    return this.#thread?.caughtUp();
  }

  async first(actor: ActorRow, snapshot: NonNullable<Stored['snapshot']>): Promise<Stored> {
    const found = await this.#ask({ type: 'first', actor, snapshot, length: 128 + snapshot.data.length });
    return found.type === 'stored' && found.stored ? found.stored : unexpected(found);
  }

  async load(actor: string): Promise<Stored | undefined> {
    const found = await this.#ask({ type: 'load', actor });
    return found.type === 'stored' ? found.stored : unexpected(found);
  }

  async list(query: ListQuery): Promise<readonly ActorRow[]> {
    const found = await this.#ask({ type: 'list', query });
    if (found.type !== 'actors') return unexpected(found);
    for (const id of found.damaged) if (this.#damaged.size < MAX_DAMAGED) this.#damaged.add(id);
    return found.rows;
  }

  isDamaged(actor: string): boolean {
    // Beyond that number the ids are unknown, so any actor may be damaged.
    return this.#damaged.size >= MAX_DAMAGED || this.#damaged.has(actor);
  }

  async events(actor: string, stream: string, after: number, limit: number): Promise<readonly JournalEvent[]> {
    const found = await this.#ask({ type: 'events', actor, stream, after, limit });
    return found.type === 'events' ? found.events : unexpected(found);
  }

  async streams(actor: string): Promise<readonly StreamRow[]> {
    const found = await this.#ask({ type: 'streams', actor });
    return found.type === 'streams' ? found.rows : unexpected(found);
  }

  async reply(actor: string, request: string): Promise<string | undefined> {
    const found = await this.#ask({ type: 'reply', actor, request });
    return found.type === 'reply' ? found.data : unexpected(found);
  }

  claim(reply: ReplyWrite): Promise<string | undefined> {
    return this.#ask({ type: 'claim', reply, length: lengthOfWrites([reply]) }).then(claimed);
  }

  async timers(until: number, limit: number, cells?: readonly number[]): Promise<readonly TimerRow[]> {
    const found = await this.#ask({ type: 'timers', until, limit, cells });
    return found.type === 'timers' ? found.rows : unexpected(found);
  }

  async deadLetters(limit: number): Promise<readonly DeadLetter[]> {
    const found = await this.#ask({ type: 'dead letters', limit });
    return found.type === 'dead letters' ? found.letters : unexpected(found);
  }

  async sweep(now: number): Promise<number> {
    const found = await this.#ask({ type: 'sweep', now });
    return found.type === 'swept' ? found.gone : unexpected(found);
  }

  async close(): Promise<void> {
    if (!this.#snapshot) this.notes.close();
    await this.#thread?.close();
  }

  #ask(question: StoreQuery): Promise<StoreResult> {
    if (this.#thread) return this.#thread.ask(question, 'length' in question ? question.length : 0);
    return Promise.reject(new StoreError('closed', `${this.#path} is not open. Call open() first`));
  }
}

function nothing(): void {}

/** Returns the existing reply; undefined if the claim was written. */
function claimed(found: StoreResult): string | undefined {
  if (found.type === 'done') return undefined;
  return found.type === 'reply' ? found.data : unexpected(found);
}

function unexpected(found: StoreResult): never {
  throw new StoreError('failed', `the store's thread sent an unexpected response: ${found.type}`);
}
