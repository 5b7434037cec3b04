/** The session that writes: it checks the database, creates the tables, and holds the lock that keeps other processes out. */
import { randomUUID } from 'node:crypto';
import { systemClock } from '../../core/kernel/clock.ts';
import { StoreError, type StoreHost } from '../../core/store/store.ts';
import type { PostgresConnection, SqlValue } from './postgres-connection.ts';
import type { PostgresOptions } from './postgres-options.ts';
import { ensureSchema, lockKey } from './postgres-schema.ts';

/** PostgreSQL 14, by `server_version_num`. */
const OLDEST = 140_000;
/** Milliseconds by which the clocks may differ without a warning. */
const CLOCKS_MS = 1_000;
const LOCK_RETRY_MS = 100;
/** The holder while several nodes share the store. */
const NODES = 'nodes';

/**
 * Every statement of this session finds its rows by a primary key. Tables that have just grown have no statistics yet, and
 * without them PostgreSQL would read whole tables.
 */
const SETTINGS = `SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
SET plan_cache_mode = force_generic_plan`;

export class StoreSession {
  readonly #label: string;
  readonly #options: PostgresOptions;
  readonly #host: StoreHost;
  /** Identifies this process as the last one that had the store to itself. */
  readonly #self = randomUUID();
  #prepared = false;
  /** The process id and the start of the session of the last connection, as the database has them. */
  #session: readonly SqlValue[] | undefined;

  constructor(label: string, options: PostgresOptions, host: StoreHost) {
    this.#label = label;
    this.#options = options;
    this.#host = host;
  }

  /** @throws {StoreError} `locked`, `foreign`; `failed` if a later attempt may succeed */
  async prepare(connection: PostgresConnection): Promise<void> {
    await this.#check(connection);
    await connection.run(`${SETTINGS}; SET statement_timeout = ${this.#options.answerMs}`);
    if (!this.#prepared) await ensureSchema(connection, this.#options.schema, this.#label);
    await this.#endFormer(connection);
    await this.#lock(connection);
    await this.#hold(connection);
    this.#prepared = true;
  }

  async #check(connection: PostgresConnection): Promise<void> {
    const asked = this.#host.clock.date();
    const began = systemClock.now();
    const [row = []] = await connection.query({
      name: 'check',
      text: `SELECT current_setting('server_version_num')::int, current_setting('transaction_read_only'), current_setting('fsync'),
  current_setting('synchronous_commit'), (extract(epoch FROM clock_timestamp()) * 1000)::float8`,
    });
    const [version, readOnly, fsync, synchronous, date] = row;
    if (Number(version) < OLDEST)
      throw new StoreError('foreign', `${this.#label}: expected PostgreSQL 14 or later, got ${String(version)}`);
    // After a failover the old address may lead to a standby for a while.
    if (readOnly === 'on')
      throw new StoreError(
        'failed',
        `${this.#label} is read-only, as a standby is. Name the primary, or turn default_transaction_read_only off`,
      );
    if (this.#prepared) return;
    if (fsync === 'off')
      this.#warn('fsync is off: after a crash of its machine, acknowledged data is lost or damaged. Turn it on');
    if (synchronous === 'off')
      this.#warn(
        'synchronous_commit is off: after a crash of the database, acknowledged data is lost. Turn it on for this role or database',
      );
    const off = Math.round(asked + (systemClock.now() - began) / 2 - Number(date));
    if (Math.abs(off) > CLOCKS_MS)
      this.#warn(
        `the clock of this machine is ${Math.abs(off)} ms ${off > 0 ? 'ahead of' : 'behind'} the database's. Synchronize both`,
      );
  }

  /**
   * Ends the session of the connection before, whose end the database may not have noticed: it would keep the lock, as
   * long as it waits for a client that is gone, or for a standby that is away.
   */
  async #endFormer(connection: PostgresConnection): Promise<void> {
    if (this.#session)
      await connection.query(
        {
          name: 'end former session',
          text: 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2::timestamptz',
        },
        this.#session,
      );
    const [row = []] = await connection.query({
      name: 'session',
      text: 'SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()',
    });
    this.#session = [Number(row[0]), String(row[1])];
  }

  /** The lock ends with the session. Nodes share it, so that a process without `cluster` is kept out. */
  async #lock(connection: PostgresConnection): Promise<void> {
    const key = lockKey(this.#options.schema, 'store');
    const shared = this.#host.shared ? '_shared' : '';
    const end = systemClock.now() + this.#options.lockMs;
    for (;;) {
      const [row] = await connection.query({ name: 'lock', text: `SELECT pg_try_advisory_lock${shared}(${key})` });
      if (row?.[0] === true) return;
      if (systemClock.now() >= end) break;
      await new Promise<void>((resolve) => systemClock.after(LOCK_RETRY_MS, resolve));
    }
    const [holder] = await connection.query({
      name: 'lock holder',
      text: `SELECT a.application_name, a.client_addr::text FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND (l.classid::bigint << 32 | l.objid::bigint) = ${key} AND l.pid <> pg_backend_pid()`,
    });
    const [application = 'unknown', address] = holder ?? [];
    throw new StoreError(
      'locked',
      `${this.#label}, schema ${this.#options.schema}: another process has the store open (${String(application)}, ${String(address ?? 'local')}). Stop it, or share the store: give each process --cluster or createServer({ cluster })`,
    );
  }

  /**
   * A process that lost its session has the store to itself only if no other process had it since: what it has in memory
   * would be old.
   */
  async #hold(connection: PostgresConnection): Promise<void> {
    const table = `${this.#options.schema}.store`;
    const self = this.#host.shared ? NODES : this.#self;
    if (this.#prepared) {
      const [row] = await connection.query({ name: 'holder', text: `SELECT holder FROM ${table}` });
      if (row?.[0] === self) return;
      throw new StoreError(
        'locked',
        `${this.#label}: another process has used the store since the connection was lost. Restart this process`,
      );
    }
    await connection.query({ name: 'hold', text: `UPDATE ${table} SET holder = $1 WHERE holder IS DISTINCT FROM $1` }, [
      self,
    ]);
  }

  #warn(what: string): void {
    this.#host.log('warning', `${this.#label}: ${what}`);
  }
}
