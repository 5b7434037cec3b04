/** A store in a PostgreSQL database. This file is part of every server; the rest, and the package `pg`, load when it opens. */
import type { Nodes } from '../membership.ts';
import type {
  ActorRow,
  DeadLetter,
  JournalEvent,
  ListQuery,
  Notes,
  ReplyWrite,
  Store,
  Stored,
  StoreHost,
  StreamRow,
  TimerRow,
  Write,
} from '../store.ts';
import { StoreError } from '../store.ts';
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

class PostgresStore implements Store {
  readonly name: string;
  readonly durable = true;
  readonly nodes: Nodes = {
    join: (self, hear) => this.#opened?.join(self, hear) ?? this.#closed(),
  };
  readonly notes: Notes;
  readonly #reads: PostgresAddress;
  readonly #session: PostgresAddress;
  readonly #options: PostgresOptions;
  #opening: Promise<OpenedPostgres> | undefined;
  #opened: OpenedPostgres | undefined;

  constructor(reads: PostgresAddress, session: PostgresAddress, options: PostgresOptions) {
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
    this.#opening ??= import('./postgres-store.ts').then(({ OpenedPostgres }) =>
      OpenedPostgres.open({ reads: this.#reads, session: this.#session }, this.#options, host),
    );
    this.#opened = await this.#opening;
  }

  commit(writes: readonly Write[]): Promise<void> {
    return this.#opened?.commit(writes) ?? this.#closed();
  }

  impairment(): 'not open' | undefined {
    return this.#opened ? this.#opened.impairment : 'not open';
  }

  caughtUp(): Promise<void> | undefined {
    return this.#opened?.caughtUp();
  }

  claim(reply: ReplyWrite): Promise<string | undefined> {
    return this.#opened?.claim(reply) ?? this.#closed();
  }

  first(actor: ActorRow, snapshot: NonNullable<Stored['snapshot']>): Promise<Stored> {
    return this.#opened?.first(actor, snapshot) ?? this.#closed();
  }

  load(actor: string): Promise<Stored | undefined> {
    return this.#opened?.load(actor) ?? this.#closed();
  }

  list(query: ListQuery): Promise<readonly ActorRow[]> {
    return this.#opened?.list(query) ?? this.#closed();
  }

  events(actor: string, stream: string, after: number, limit: number): Promise<readonly JournalEvent[]> {
    return this.#opened?.events(actor, stream, after, limit) ?? this.#closed();
  }

  streams(actor: string): Promise<readonly StreamRow[]> {
    return this.#opened?.streams(actor) ?? this.#closed();
  }

  reply(actor: string, request: string): Promise<string | undefined> {
    return this.#opened?.reply(actor, request) ?? this.#closed();
  }

  timers(until: number, limit: number, cells?: readonly number[]): Promise<readonly TimerRow[]> {
    return this.#opened?.timers(until, limit, cells) ?? this.#closed();
  }

  deadLetters(limit: number): Promise<readonly DeadLetter[]> {
    return this.#opened?.deadLetters(limit) ?? this.#closed();
  }

  sweep(now: number): Promise<number> {
    return this.#opened?.sweep(now) ?? this.#closed();
  }

  async close(): Promise<void> {
    const opened = await this.#opening?.catch(() => undefined);
    await opened?.close();
  }

  #closed(): Promise<never> {
    return Promise.reject(new StoreError('closed', `${this.name} is not open. Call open() first`));
  }
}
