/** A store in a PostgreSQL database. This file is part of every server; the rest, and the package `pg`, load when it opens. */
import type { Nodes } from '../../core/store/membership.ts';
import {
  type Notes,
  Store,
  type StoreAnswer,
  StoreError,
  type StoreHost,
  type StoreQuery,
} from '../../core/store/store.ts';
import { PostgresAddress } from './postgres-address.ts';
import { type PostgresOptions, resolvePostgresOptions } from './postgres-options.ts';
import type { OpenedPostgres } from './postgres-store.ts';

/**
 * A store in a PostgreSQL database, version 14 or later. Needs the package `pg`. One process has it open at a time, unless
 * its servers have the option `cluster`.
 *
 * @param url of the database, as `pg` reads it: with TLS by `?sslmode=verify-full`. Its password never appears in a log
 * or an error
 * @throws {TypeError | RangeError} for another text, and for an unknown or invalid option
 * @example createServer({ name: 'shop', version: '1.0.0', store: postgres('postgres://shop@db.example.com/shop') });
 */
export function postgres(url: string, options: Partial<PostgresOptions> = {}): Store {
  const resolved = resolvePostgresOptions(options);
  const reads = new PostgresAddress(url);
  const session = resolved.session === undefined ? reads : new PostgresAddress(resolved.session, 'session');
  return new PostgresStore(reads, session, resolved);
}

class PostgresStore extends Store {
  readonly name: string;
  readonly durable = true;
  override readonly nodes: Nodes = {
    join: (self, hear) => this.#opened?.join(self, hear) ?? this.#closed(),
  };
  override readonly notes: Notes;
  readonly #reads: PostgresAddress;
  readonly #session: PostgresAddress;
  readonly #options: PostgresOptions;
  #opening: Promise<OpenedPostgres> | undefined;
  #opened: OpenedPostgres | undefined;

  constructor(reads: PostgresAddress, session: PostgresAddress, options: PostgresOptions) {
    super();
    this.name = `postgres(${reads.label})`;
    this.#reads = reads;
    this.#session = session;
    this.#options = options;
    const opened = (): OpenedPostgres | undefined => this.#opened;
    this.notes = {
      last: undefined,
      write: (what) => opened()?.notes.write(what),
      clear: () => opened()?.notes.clear(),
      get shared() {
        return opened()?.notes.shared;
      },
      ended: () => opened()?.notes.ended() ?? this.#closed(),
      forget: (mark) => opened()?.notes.forget(mark) ?? this.#closed(),
    };
  }

  async open(host: StoreHost): Promise<void> {
    this.#opening ??= this.#open(host);
    this.#opened = await this.#opening;
  }

  async #open(host: StoreHost): Promise<OpenedPostgres> {
    const { OpenedPostgres } = await import('./postgres-store.ts');
    const opened = new OpenedPostgres({ reads: this.#reads, session: this.#session }, this.#options, host);
    await opened.open();
    return opened;
  }

  ask(query: StoreQuery): Promise<StoreAnswer> {
    return this.#opened?.ask(query) ?? this.#closed();
  }

  override impairment(): 'not open' | undefined {
    return this.#opened ? this.#opened.impairment() : 'not open';
  }

  override caughtUp(): Promise<void> | undefined {
    return this.#opened?.caughtUp();
  }

  async close(): Promise<void> {
    const opened = await this.#opening?.catch(() => undefined);
    await opened?.close();
  }

  #closed(): Promise<never> {
    return Promise.reject(new StoreError('closed', `${this.name} is not open. Call open() first`));
  }
}
