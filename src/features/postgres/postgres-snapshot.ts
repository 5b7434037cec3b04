/**
 * The store in a PostgreSQL database as it is when it is opened, also while nodes write to it: one transaction that only
 * reads, and takes no lock.
 */
import { isChange, Store, type StoreAnswer, StoreError, type StoreQuery } from '../../core/store/store.ts';
import type { PostgresAddress } from './postgres-address.ts';
import { PostgresConnection } from './postgres-connection.ts';
import { postgresError } from './postgres-faults.ts';
import { resolvePostgresOptions } from './postgres-options.ts';
import { PostgresReads } from './postgres-reads.ts';
import { checkSchema } from './postgres-schema.ts';

export class PostgresSnapshot extends Store {
  readonly name: string;
  readonly durable = true;
  readonly #connection: PostgresConnection;
  readonly #reads: PostgresReads;

  private constructor(connection: PostgresConnection, schema: string, label: string) {
    super();
    this.name = `postgres(${label})`;
    this.#connection = connection;
    const failed = (error: unknown): never => {
      throw postgresError(error, `${label}: a query failed`);
    };
    this.#reads = new PostgresReads(schema, (...asked) => connection.query(...asked).catch(failed), 1);
  }

  /**
   * @throws {StoreError} `foreign` without a store, and for one of another format; `failed`
   */
  static async open(address: PostgresAddress): Promise<PostgresSnapshot> {
    const { schema, connectMs, answerMs } = resolvePostgresOptions({});
    let connection: PostgresConnection | undefined;
    try {
      // Without prepared statements it works behind a transaction pooler.
      const options = { connectMs, answerMs, prepares: false, application: 'troupe audit' };
      connection = await PostgresConnection.open(address, options);
      await connection.run('BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
      await checkSchema(connection, schema, address.label);
      return new PostgresSnapshot(connection, schema, address.label);
    } catch (error) {
      connection?.abandon('it is of no use');
      throw postgresError(error, `${address.label}: no connection`);
    }
  }

  /** {@link PostgresSnapshot.open} has opened it. */
  open(): Promise<void> {
    return Promise.resolve();
  }

  ask(query: StoreQuery): Promise<StoreAnswer> {
    if (!isChange(query)) return this.#reads.ask(query);
    return Promise.reject(new StoreError('failed', `${this.name} is open for reading only`));
  }

  async close(): Promise<void> {
    await this.#connection.run('COMMIT').catch(() => {});
    await this.#connection.close();
  }
}
