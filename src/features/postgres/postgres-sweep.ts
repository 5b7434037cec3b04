/** Deletes what has expired, in pieces: each is one statement under an advisory lock, so that two nodes never delete the same rows. */

import { fromColumnText } from './column-text.ts';
import type { PostgresOptions } from './postgres-options.ts';
import type { AskReader } from './postgres-reads.ts';
import { lockKey } from './postgres-schema.ts';

/** Maximum number of rows that one statement finds. */
const PIECE = 1_000;

/** Milliseconds for which a process that ended itself is remembered, as in the poison registry. */
const CRASHES_MS = 86_400_000;

export class PostgresSweep {
  readonly #ask: AskReader;
  readonly #options: PostgresOptions;
  /** The lock of a statement, as a table `turn` with one row if this process has its turn. */
  readonly #turn: string;

  constructor(options: PostgresOptions, ask: AskReader) {
    this.#ask = ask;
    this.#options = options;
    this.#turn = `turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${lockKey(options.schema, 'sweep')}) AS mine)`;
  }

  /** @returns the actors that were deleted */
  async run(now: number): Promise<readonly string[]> {
    const { schema, maxActorReplies, maxReplies, maxDeadLetters, maxActorStreams } = this.#options;
    const gone: string[] = [];
    for (;;) {
      const piece = await this.#actors(now);
      gone.push(...piece);
      if (piece.length < PIECE) break;
    }
    await this.#all('replies', `SELECT ctid FROM ${schema}.reply WHERE expires <= $1 LIMIT ${PIECE}`, 'reply', now);
    await this.#all(
      'crowds of replies',
      `SELECT r.ctid FROM (SELECT actor FROM ${schema}.reply GROUP BY actor HAVING count(*) > $1 LIMIT ${PIECE}) a,
  LATERAL (SELECT ctid FROM ${schema}.reply WHERE actor = a.actor ORDER BY expires DESC OFFSET $1 LIMIT ${PIECE}) r LIMIT ${PIECE}`,
      'reply',
      maxActorReplies,
    );
    await this.#all(
      'surplus of replies',
      `SELECT ctid FROM ${schema}.reply ORDER BY expires LIMIT least(${PIECE}, greatest(0, (SELECT count(*) FROM ${schema}.reply) - $1))`,
      'reply',
      maxReplies,
    );
    await this.#all(
      'surplus of dead letters',
      `SELECT ctid FROM ${schema}.dead_letter ORDER BY n DESC OFFSET $1 LIMIT ${PIECE}`,
      'dead_letter',
      maxDeadLetters,
    );
    await this.#all(
      'crowds of streams',
      `SELECT s.ctid FROM (SELECT actor FROM ${schema}.stream GROUP BY actor HAVING count(*) > $1 LIMIT ${PIECE}) a,
  LATERAL (SELECT ctid FROM ${schema}.stream t WHERE t.actor = a.actor AND t.stream <> ''
    AND NOT EXISTS (SELECT FROM ${schema}.event e WHERE e.actor = t.actor AND e.stream = t.stream)
    ORDER BY ctid DESC OFFSET $1 LIMIT ${PIECE}) s LIMIT ${PIECE}`,
      'stream',
      maxActorStreams,
    );
    await this.#all(
      'crashes',
      `SELECT ctid FROM ${schema}.crash WHERE at <= $1 LIMIT ${PIECE}`,
      'crash',
      now - CRASHES_MS,
    );
    return gone;
  }

  async #actors(now: number): Promise<readonly string[]> {
    const { schema } = this.#options;
    const tables = ['event', 'stream', 'reply', 'timer'];
    const text = `WITH ${this.#turn},
expired AS MATERIALIZED (SELECT id FROM ${schema}.actor WHERE expires <= $1 AND (SELECT mine FROM turn) ORDER BY expires LIMIT ${PIECE} FOR UPDATE SKIP LOCKED)
${tables.map((table) => `, of_${table} AS (DELETE FROM ${schema}.${table} r USING expired WHERE r.actor = expired.id)`).join('\n')}
DELETE FROM ${schema}.actor a USING expired WHERE a.id = expired.id RETURNING a.id`;
    const rows = await this.#ask({ name: 'sweep actors', text }, [now]);
    return rows.map(([id]) => fromColumnText(String(id)));
  }

  /** Deletes the rows that a query finds, until it finds less than a piece. */
  async #all(what: string, found: string, table: string, value: number): Promise<void> {
    const text = `WITH ${this.#turn},
dead AS (DELETE FROM ${this.#options.schema}.${table} WHERE (SELECT mine FROM turn) AND ctid = ANY(ARRAY(${found})) RETURNING 1)
SELECT count(*)::int FROM dead`;
    for (;;) {
      const [row] = await this.#ask({ name: `sweep ${what}`, text }, [value]);
      if (Number(row?.[0]) < PIECE) return;
    }
  }
}
