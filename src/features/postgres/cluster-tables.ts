/**
 * The statements about nodes and cells. The database decides which node owns a cell and which node is dead, by its own
 * clock.
 */
import type { PostgresConnection, PreparedStatement, ResultRow, SqlValue } from './postgres-connection.ts';
import { lockKey } from './postgres-schema.ts';

/** Milliseconds without a beat after which a node may be fenced. */
export const LEASE_MS = 2_000;
/** Milliseconds from one beat to the next. */
export const BEAT_MS = 500;
/** Milliseconds for which the event loop of a node may be blocked before the node may be fenced. */
const STALL_MS = 10_000;
/** Milliseconds for the former connection of this node to end. */
const HOLD_WAIT_MS = 2_000;
/** Milliseconds to wait for a lock: of commits under way, and of other nodes that claim. */
const LOCK_WAIT_MS = 500;
/** Milliseconds for which a client is silent within a transaction before that counts as abandoned. */
const ABANDONED_MS = 1_000;
/** Rows of fenced nodes without cells remain for this time, for an operator who looks for them. */
const REMEMBERED = '1 day';

/** A node that is not fenced. */
export interface LiveNode {
  readonly node: string;
  readonly address: string;
  readonly version: string;
  readonly leaving: boolean;
  /** Milliseconds until its lease ends and it may be fenced, unless it beats before; at most 0 once that has happened. */
  readonly leaseMs: number;
}

/** The nodes and the owners of all cells at one time. */
export interface ClusterRead {
  /** Milliseconds since 1970, by the database. */
  readonly date: number;
  /** The oldest first. */
  readonly nodes: readonly LiveNode[];
  /** For each owner, or the empty string for none: its cells with their epochs, such as `3:17,9:2`. */
  readonly cells: readonly (readonly [owner: string, cells: string])[];
}

/** A cell that this node took or gave up, with its new epoch. */
export interface ChangedCell {
  readonly cell: number;
  readonly epoch: number;
  readonly owner: string | undefined;
}

/** The statements of one node in a cluster. */
export class ClusterTables {
  readonly #node: string;
  readonly #lock: string;
  readonly #statements: ReturnType<typeof statementsOf>;

  constructor(schema: string, node: string) {
    this.#node = node;
    this.#lock = lockKey(schema, `node ${node}`);
    this.#statements = statementsOf(schema);
  }

  /** Prepares a connection for the other statements. */
  async prepare(connection: PostgresConnection): Promise<void> {
    await connection.run(`SET lock_timeout = ${LOCK_WAIT_MS}`);
  }

  /**
   * Takes the lock that lives as long as this connection: while it is held, the process runs or its lease decides. Ends
   * the former connection of this node, whose end the database may not have noticed.
   */
  async hold(connection: PostgresConnection): Promise<void> {
    await connection.query(this.#statements.endFormer, [this.#lock]);
    await connection.run(`SET lock_timeout = ${HOLD_WAIT_MS}`);
    await connection.query(this.#statements.hold, [this.#lock]);
  }

  /** Adds the node, unless an earlier attempt did. It must hold its lock: a node without it counts as dead. */
  async join(connection: PostgresConnection, address: string, version: string): Promise<void> {
    await connection.query(this.#statements.join, [this.#node, address, version, this.#lock]);
    await connection.query(this.#statements.forgetNodes);
  }

  /** Writes the beat. @param blockedMs for how long the event loop has not responded */
  async beat(connection: PostgresConnection, blockedMs: number): Promise<void> {
    await connection.query(this.#statements.beat, [this.#node, blockedMs]);
  }

  /** Undefined if this node is fenced, or was removed. */
  async read(connection: PostgresConnection): Promise<ClusterRead | undefined> {
    const [nodes, cells] = await Promise.all([
      connection.query(this.#statements.nodes),
      connection.query(this.#statements.cells),
    ]);
    if (!nodes.some(([id]) => id === this.#node)) return undefined;
    return {
      date: Number(nodes[0]?.[5]),
      nodes: nodes.map(nodeRow),
      cells: cells.map(([owner, list]) => [String(owner), String(list)]),
    };
  }

  /** Takes cells. @returns those that this node has won; undefined if it is fenced */
  async claim(
    connection: PostgresConnection,
    cells: readonly number[],
    observed: string | undefined,
  ): Promise<readonly ChangedCell[] | undefined> {
    return this.#change(connection, this.#statements.claim, cells, observed);
  }

  /** Gives up cells of this node. @returns those that were its own; undefined if it is fenced */
  async release(
    connection: PostgresConnection,
    cells: readonly number[],
    to: string | undefined,
  ): Promise<readonly ChangedCell[] | undefined> {
    return this.#change(connection, this.#statements.release, cells, to);
  }

  /** Fences a node if it is dead. @returns true if it is fenced now, or has left */
  async fence(connection: PostgresConnection, node: string): Promise<boolean> {
    const [row] = await connection.query(this.#statements.fence, [node, this.#node]);
    return row?.[0] === true;
  }

  /** Shows to the other nodes that this one lets go of its cells. */
  async retire(connection: PostgresConnection): Promise<void> {
    await connection.query(this.#statements.retire, [this.#node]);
  }

  /**
   * Ends the sessions of nodes that were paused or cut off within a transaction. It holds the row of its node, so that the
   * node cannot be fenced.
   */
  async endAbandoned(connection: PostgresConnection): Promise<void> {
    await connection.query(this.#statements.endAbandoned);
  }

  /** Removes the node; its cells become free. */
  async leave(connection: PostgresConnection): Promise<void> {
    // First the node can own nothing more, then its cells become free: a cell that a peer hands over meanwhile, too.
    await connection.query(this.#statements.resign, [this.#node]);
    await connection.query(this.#statements.free, [this.#node]);
  }

  async #change(
    connection: PostgresConnection,
    statement: PreparedStatement,
    cells: readonly number[],
    other: string | undefined,
  ): Promise<readonly ChangedCell[] | undefined> {
    const values: readonly SqlValue[] = [this.#node, `{${cells.join()}}`, other ?? null];
    const rows = await connection.query(statement, values);
    if (rows.length === 0) return undefined;
    return rows.flatMap(([cell, epoch, owner]) =>
      cell === null
        ? []
        : [{ cell: Number(cell), epoch: Number(epoch), owner: owner === null ? undefined : String(owner) }],
    );
  }
}

function nodeRow([node, address, version, leaving, leaseMs]: ResultRow): LiveNode {
  return {
    node: String(node),
    address: String(address),
    version: String(version),
    leaving: leaving === true,
    leaseMs: Number(leaseMs),
  };
}

function statementsOf(schema: string) {
  const prepared = (name: string, text: string): PreparedStatement => ({ name: `cluster ${name}`, text });
  const lease = `least(b.at + interval '${LEASE_MS} ms', b.loop_at + interval '${STALL_MS} ms')`;
  // The row of this node, locked as each commit locks it: a peer that fences this node waits for the statement.
  const self = `self AS MATERIALIZED (SELECT id FROM ${schema}.node WHERE id = $1 AND NOT fenced FOR SHARE)`;
  return {
    endFormer: prepared(
      'end former',
      `SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid() AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND objsubid = 1 AND (classid::bigint << 32) | objid::bigint = $1::bigint`,
    ),
    hold: prepared('hold', 'SELECT pg_advisory_lock($1::bigint)'),
    join: prepared(
      'join',
      `WITH beat AS (INSERT INTO ${schema}.beat(node, at, loop_at) VALUES($1, clock_timestamp(), clock_timestamp()) ON CONFLICT DO NOTHING)
INSERT INTO ${schema}.node(id, address, version, lock) VALUES($1, $2, $3, $4::bigint) ON CONFLICT DO NOTHING`,
    ),
    // A fenced node owns no cell again, so nothing refers to its row any more.
    forgetNodes: prepared(
      'forget nodes',
      `WITH gone AS (DELETE FROM ${schema}.node n WHERE fenced AND joined < clock_timestamp() - interval '${REMEMBERED}'
  AND NOT EXISTS (SELECT FROM ${schema}.cell WHERE node = n.id) RETURNING id)
DELETE FROM ${schema}.beat USING gone WHERE node = gone.id`,
    ),
    beat: prepared(
      'beat',
      `UPDATE ${schema}.beat SET at = clock_timestamp(), loop_at = clock_timestamp() - $2::float8 * interval '1 ms' WHERE node = $1`,
    ),
    nodes: prepared(
      'nodes',
      `SELECT n.id, n.address, n.version, n.leaving, extract(epoch FROM ${lease} - clock_timestamp())::float8 * 1000, extract(epoch FROM clock_timestamp())::float8 * 1000
FROM ${schema}.node n JOIN ${schema}.beat b ON b.node = n.id WHERE NOT n.fenced ORDER BY n.joined, n.id`,
    ),
    cells: prepared(
      'cells',
      `SELECT coalesce(node, ''), string_agg(n || ':' || epoch, ',' ORDER BY n) FROM ${schema}.cell GROUP BY 1 ORDER BY 1`,
    ),
    /*
     * Only a free cell, or one whose owner is fenced, changes hands. The row of the fenced owner must be visible: an
     * owner that is newer than this statement's snapshot is not, and alive. Rows are locked in their order, so that two
     * claims never wait for each other in a circle. One row without a cell says that this node is not fenced.
     */
    claim: prepared(
      'claim',
      `WITH ${self}, won AS MATERIALIZED (
  SELECT c.n FROM ${schema}.cell c WHERE c.n = ANY($2::smallint[]) AND ($3::text IS NULL OR c.node = $3::text) AND EXISTS (SELECT FROM self)
    AND (c.node IS NULL OR EXISTS (SELECT FROM ${schema}.node o WHERE o.id = c.node AND o.fenced)) ORDER BY c.n FOR UPDATE OF c),
taken AS (UPDATE ${schema}.cell c SET node = $1, epoch = epoch + 1 FROM won WHERE c.n = won.n RETURNING c.n, c.epoch, c.node)
SELECT n, epoch, node FROM taken UNION ALL SELECT NULL, NULL, NULL FROM self`,
    ),
    // An heir that has died meanwhile gets nothing: its cells would have an owner whose row may be deleted.
    release: prepared(
      'release',
      `WITH ${self}, heir AS MATERIALIZED (SELECT id FROM ${schema}.node WHERE id = $3::text AND NOT fenced FOR SHARE),
own AS MATERIALIZED (
  SELECT c.n FROM ${schema}.cell c WHERE c.n = ANY($2::smallint[]) AND c.node = $1 AND EXISTS (SELECT FROM self) ORDER BY c.n FOR UPDATE OF c),
given AS (UPDATE ${schema}.cell c SET node = (SELECT id FROM heir), epoch = epoch + 1 FROM own WHERE c.n = own.n RETURNING c.n, c.epoch, c.node)
SELECT n, epoch, node FROM given UNION ALL SELECT NULL, NULL, NULL FROM self`,
    ),
    /*
     * The update waits for the commits under way, so that the next owner reads all of them. A shared lock succeeds for
     * several askers at once. The asker's own beat shows that the database did not stand still meanwhile.
     */
    fence: prepared(
      'fence',
      `WITH dead AS MATERIALIZED (
  SELECT n.id FROM ${schema}.node n WHERE n.id = $1 AND NOT n.fenced
    AND EXISTS (SELECT FROM ${schema}.beat WHERE node = $2 AND at > clock_timestamp() - interval '${LEASE_MS - BEAT_MS} ms')
    AND (SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid())) < clock_timestamp() - interval '${LEASE_MS} ms'
    AND (pg_try_advisory_xact_lock_shared(n.lock) OR EXISTS (SELECT FROM ${schema}.beat b WHERE b.node = n.id AND ${lease} < clock_timestamp()))),
fenced AS (UPDATE ${schema}.node n SET fenced = true FROM dead WHERE n.id = dead.id RETURNING n.id)
SELECT EXISTS (SELECT FROM fenced) OR NOT EXISTS (SELECT FROM ${schema}.node WHERE id = $1 AND NOT fenced)`,
    ),
    endAbandoned: prepared(
      'end abandoned',
      `SELECT count(pg_terminate_backend(a.pid)) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.relation = '${schema}.node'::regclass AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.mode = 'RowShareLock' AND a.wait_event_type = 'Client'
  AND a.state_change < clock_timestamp() - interval '${ABANDONED_MS} ms'`,
    ),
    retire: prepared('retire', `UPDATE ${schema}.node SET leaving = true WHERE id = $1`),
    resign: prepared('resign', `UPDATE ${schema}.node SET fenced = true WHERE id = $1`),
    free: prepared(
      'free',
      `WITH free AS (UPDATE ${schema}.cell SET node = NULL, epoch = epoch + 1 WHERE node = $1),
quiet AS (DELETE FROM ${schema}.beat WHERE node = $1)
DELETE FROM ${schema}.node WHERE id = $1`,
    ),
  };
}
