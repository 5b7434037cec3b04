/** A store in a file: SQLite in its own thread, so that a slow disk delays only acknowledgements. */
import { CrashMarker } from '../../core/store/crash-marker.ts';
import { Store, type StoreAnswer, StoreError, type StoreHost, type StoreQuery } from '../../core/store/store.ts';
import { resolveSqliteOptions, type SqliteOptions } from './sqlite-options.ts';
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

class SqliteStore extends Store {
  readonly name: string;
  readonly durable = true;
  readonly #path: string;
  readonly #options: SqliteOptions;
  readonly #snapshot: boolean;
  override readonly notes: CrashMarker;
  #thread: StoreThread | undefined;

  constructor(path: string, options: SqliteOptions, snapshot = false) {
    super();
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

  ask(query: StoreQuery): Promise<StoreAnswer> {
    if (this.#thread) return this.#thread.ask(query);
    return Promise.reject(new StoreError('closed', `${this.#path} is not open. Call open() first`));
  }

  override impairment(): 'not open' | 'read-only' | undefined {
    return this.#thread ? this.#thread.impairment() : 'not open';
  }

  override caughtUp(): Promise<void> | undefined {
    return this.#thread?.caughtUp();
  }

  async close(): Promise<void> {
    if (!this.#snapshot) this.notes.close();
    await this.#thread?.close();
  }
}
