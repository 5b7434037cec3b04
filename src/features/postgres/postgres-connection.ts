/** One connection to PostgreSQL: statements in order, each with a deadline. Loads the driver `pg` when the first one opens. */

import { Socket } from 'node:net';
import type pg from 'pg';
import { systemClock, type Timer } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { StoreError } from '../../core/store/store.ts';
import type { PostgresAddress } from './postgres-address.ts';
import { endsConnection, postgresError } from './postgres-faults.ts';

export interface PreparedStatement {
  /** Unique among the statements of a connection, which prepares each once. */
  readonly name: string;
  readonly text: string;
}

/** A parameter. Bytes are in PostgreSQL's binary format: see `ArrayParameter`. */
export type SqlValue = string | number | boolean | null | Buffer;
export type ResultRow = readonly unknown[];

export interface ConnectionOptions {
  /** Milliseconds in which the database must accept the connection. */
  readonly connectMs: number;
  /** Milliseconds in which it must answer a statement; then the connection counts as lost. */
  readonly answerMs: number;
  /** False behind a transaction pooler, where the next statement may reach another session. */
  readonly prepares: boolean;
  /** For `pg_stat_activity`. */
  readonly application: string;
}

export class PostgresConnection {
  readonly #client: pg.Client;
  readonly #socket: Socket;
  readonly #label: string;
  readonly #options: ConnectionOptions;
  /** Number of statements without an answer. */
  #waiting = 0;
  /** The time since when the oldest of them is the database's next. */
  #since = 0;
  #lateness: Timer | undefined;
  #failure: StoreError | undefined;
  /** Resolves, with the reason, when the connection is lost or closed. */
  readonly ended: Promise<StoreError>;
  #end: (reason: StoreError) => void = () => {};

  private constructor(client: pg.Client, socket: Socket, address: PostgresAddress, options: ConnectionOptions) {
    this.#client = client;
    this.#socket = socket;
    this.#label = address.label;
    this.#options = options;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    client.on('error', (error) => this.#fail(error));
    client.on('end', () => this.#fail(new Error('the database closed the connection')));
  }

  /** @throws the driver's error, or `StoreError` `failed` where the package `pg` is missing */
  static async open(address: PostgresAddress, options: ConnectionOptions): Promise<PostgresConnection> {
    const { Client } = await driver();
    const socket = new Socket();
    const client = new Client({
      connectionString: address.url,
      connectionTimeoutMillis: options.connectMs,
      application_name: options.application,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      pipeline: true,
      stream: () => socket,
    });
    const connection = new PostgresConnection(client, socket, address, options);
    try {
      await client.connect();
    } catch (error) {
      socket.destroy();
      throw error;
    }
    socket.unref();
    return connection;
  }

  /** The reason why it is of no use any more. */
  get failure(): StoreError | undefined {
    return this.#failure;
  }

  /** Statements reach the database in the order of the calls, without waiting for each other. @throws the driver's error */
  query(statement: PreparedStatement, values: readonly SqlValue[] = []): Promise<readonly ResultRow[]> {
    return this.#submit({
      text: statement.text,
      values: [...values],
      rowMode: 'array',
      ...(this.#options.prepares && { name: statement.name }),
    }).then(({ rows }) => rows);
  }

  /** A statement without parameters that is used once. @returns its command tag, such as `COMMIT` */
  run(text: string): Promise<string> {
    return this.#submit({ text, rowMode: 'array' }).then(({ command }) => command);
  }

  /** Sends what was asked, says goodbye, and resolves when the connection has ended. */
  async close(): Promise<void> {
    if (this.#failure) return;
    await this.run('SELECT 1').catch(() => {});
    this.abandon('the connection is closed');
  }

  /** Ends the connection now: what waits for an answer fails, with an unknown outcome. */
  abandon(why: string): void {
    this.#fail(new Error(why));
  }

  async #submit(config: pg.QueryArrayConfig): Promise<pg.QueryArrayResult<unknown[]>> {
    if (this.#failure) throw this.#failure;
    if (this.#waiting === 0) {
      this.#since = systemClock.now();
      this.#socket.ref();
    }
    this.#waiting += 1;
    this.#watch();
    try {
      return await this.#client.query<unknown[]>(config);
    } catch (error) {
      if (!endsConnection(error)) throw error;
      this.#fail(error);
      throw this.#failure ?? error;
    } finally {
      this.#answered();
    }
  }

  #answered(): void {
    this.#waiting -= 1;
    this.#since = systemClock.now();
    if (this.#waiting > 0) return;
    this.#lateness?.cancel();
    this.#lateness = undefined;
    // An idle store does not keep the process alive.
    if (!this.#failure) this.#socket.unref();
  }

  #watch(): void {
    const { answerMs } = this.#options;
    this.#lateness ??= systemClock.after(answerMs, () => {
      this.#lateness = undefined;
      if (this.#waiting === 0) return;
      if (systemClock.now() - this.#since < answerMs / 2) return this.#watch();
      this.abandon(`no answer within ${durationOf(answerMs)} (answerMs)`);
    });
  }

  #fail(error: unknown): void {
    if (this.#failure) return;
    this.#failure = postgresError(error, `${this.#label}: the connection is lost`);
    this.#lateness?.cancel();
    this.#socket.destroy();
    this.#end(this.#failure);
  }
}

async function driver(): Promise<typeof pg> {
  try {
    return (await import('pg')).default;
  } catch (cause) {
    throw new StoreError('failed', 'postgres() needs the package pg, 8.23 or later: npm install pg', { cause });
  }
}
