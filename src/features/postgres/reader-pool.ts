/** The connections that read. A read that loses its connection is asked again. */
import { systemClock } from '../../core/kernel/clock.ts';
import { StoreError } from '../../core/store/store.ts';
import type { PostgresAddress } from './postgres-address.ts';
import type { PreparedStatement, ResultRow, SqlValue } from './postgres-connection.ts';
import { postgresError } from './postgres-faults.ts';
import type { PostgresOptions } from './postgres-options.ts';
import type { PrimaryTimeline } from './primary-timeline.ts';
import { ReconnectingConnection } from './reconnecting-connection.ts';

/** One connection, and the number of reads that it works on. */
interface Reader {
  readonly connection: ReconnectingConnection;
  load: number;
}

export class ReaderPool {
  readonly #options: PostgresOptions;
  readonly #readers: readonly Reader[];
  readonly #up = new Set<() => void>();
  #closed = false;

  constructor(address: PostgresAddress, options: PostgresOptions, primary: PrimaryTimeline, application: string) {
    this.#options = options;
    const { connectMs, answerMs, session, readers } = options;
    // Behind a pooler, another statement may reach another session.
    const given = { connectMs, answerMs, prepares: session === undefined, application };
    this.#readers = Array.from({ length: readers }, () => ({
      connection: new ReconnectingConnection(address, given, primary, this),
      load: 0,
    }));
  }

  async open(): Promise<void> {
    await Promise.all(this.#readers.map(({ connection }) => connection.open(this.#options.lockMs)));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.up();
    await Promise.all(this.#readers.map(({ connection }) => connection.close()));
  }

  prepare(): Promise<void> {
    return Promise.resolve();
  }

  up(): void {
    for (const resolve of [...this.#up]) resolve();
  }

  down(): void {}

  /** The writer's connection fails in the same way, and logs it. */
  gaveUp(): void {}

  /** True while at least one of its connections is there. */
  get isConnected(): boolean {
    return this.#readers.some(({ connection }) => connection.current);
  }

  /** @throws {StoreError} */
  async ask(statement: PreparedStatement, values: readonly SqlValue[]): Promise<readonly ResultRow[]> {
    let end: number | undefined;
    for (;;) {
      const reader = this.#leastLoaded();
      if (!reader) {
        end ??= systemClock.now() + this.#options.outageMs;
        await this.#connected(end);
        continue;
      }
      const connection = reader.connection.current;
      if (!connection) continue;
      reader.load += 1;
      try {
        return await connection.query(statement, values);
      } catch (error) {
        // Only a lost connection has a failure, and a read changes nothing.
        if (!connection.failure) throw postgresError(error, `the query "${statement.name}" failed`);
        end ??= systemClock.now() + this.#options.outageMs;
        if (systemClock.now() >= end) throw this.#away();
      } finally {
        reader.load -= 1;
      }
    }
  }

  #leastLoaded(): Reader | undefined {
    let least: Reader | undefined;
    for (const reader of this.#readers)
      if (reader.connection.current && reader.load < (least?.load ?? Number.POSITIVE_INFINITY)) least = reader;
    return least;
  }

  /** Resolves when a connection is there. @throws {StoreError} `busy` at its deadline, `closed` */
  async #connected(end: number): Promise<void> {
    if (this.#closed) throw new StoreError('closed', 'the store is closed: its server has stopped');
    const left = end - systemClock.now();
    if (left <= 0) throw this.#away();
    const hold = systemClock.hold();
    await new Promise<void>((resolve) => {
      const end = (): void => {
        // Also after the deadline: an outage may take hours.
        this.#up.delete(end);
        late.cancel();
        resolve();
      };
      const late = systemClock.after(left, end);
      this.#up.add(end);
    });
    hold.cancel();
  }

  #away(): StoreError {
    return new StoreError('busy', 'the database is not reachable. Retry when it is back');
  }
}
