/**
 * The timeline of the primary. A promotion begins a higher one, so a former primary that still runs is recognized, and
 * connections that hang at it are ended.
 */
import { StoreError } from '../../core/store/store.ts';
import type { PostgresConnection } from './postgres-connection.ts';

export interface Timeline {
  /** The identifier of the database's files: a copy by `pg_basebackup` has the same, a new installation has another. */
  readonly system: string;
  readonly number: number;
}

const RECOVERY = { name: 'recovery', text: 'SELECT pg_is_in_recovery()' };
/** The name of a file of the log begins with its timeline, as eight hexadecimal digits. */
const TIMELINE = {
  name: 'timeline',
  text: 'SELECT system_identifier::text, left(pg_walfile_name(pg_current_wal_lsn()), 8) FROM pg_control_system()',
};

export class PrimaryTimeline {
  #newest: Timeline | undefined;
  readonly #connections = new Map<PostgresConnection, Timeline>();

  /** The newest timeline that a connection has reached. */
  get newest(): Timeline | undefined {
    return this.#newest;
  }

  /**
   * Checks a new connection before its use.
   *
   * @throws {StoreError} `failed` if it leads to a standby, or to a primary that a promotion has replaced
   */
  async admit(connection: PostgresConnection, label: string): Promise<void> {
    // Not every service that speaks PostgreSQL's protocol tells its timeline. A standby does not, either.
    const [[recovery], timeline] = await Promise.all([
      connection.query(RECOVERY),
      timelineOf(connection).catch(() => undefined),
    ]);
    if (recovery?.[0] === true)
      throw new StoreError('failed', `${label} is a standby, and is accepted once it is promoted`);
    if (!timeline) return;
    if (this.#replaces(this.#newest, timeline))
      throw new StoreError(
        'failed',
        `${label} is a former primary, on timeline ${timeline.number}: a standby was promoted, on timeline ${this.#newest?.number}. Stop the former primary`,
      );
    this.learn(timeline);
    this.#connections.set(connection, timeline);
    void connection.ended.then(() => this.#connections.delete(connection));
  }

  /** A connection has reached this timeline. Connections to a primary that it replaces end. */
  learn(timeline: Timeline): void {
    if (this.#replaces(this.#newest, timeline)) return;
    this.#newest = timeline;
    for (const [connection, earlier] of this.#connections)
      if (this.#replaces(timeline, earlier)) connection.abandon('a standby was promoted');
  }

  #replaces(later: Timeline | undefined, earlier: Timeline): boolean {
    return later?.system === earlier.system && later.number > earlier.number;
  }
}

async function timelineOf(connection: PostgresConnection): Promise<Timeline | undefined> {
  const [row] = await connection.query(TIMELINE);
  const [system, digits] = row ?? [];
  const number = Number.parseInt(String(digits), 16);
  return typeof system === 'string' && number > 0 ? { system, number } : undefined;
}
