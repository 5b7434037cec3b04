/** The SQL of a layer: one statement whose parts are common table expressions over arrays. It locks the row of the node first. */
import { cellOfActor } from '../../core/protocol/cell.ts';
import { ArrayParameter, type ColumnType } from './array-parameter.ts';
import type { PreparedStatement, SqlValue } from './postgres-connection.ts';
import type { WriteLayer } from './write-layer.ts';

/** Rows for one part of the statement. */
class Rows {
  readonly columns: readonly ArrayParameter[];
  size = 0;

  constructor(types: readonly ColumnType[]) {
    this.columns = types.map((type) => new ArrayParameter(type));
  }

  add(...values: readonly (string | number | undefined)[]): void {
    this.size += 1;
    for (const [index, value] of values.entries()) this.columns[index]?.add(value);
  }
}

interface Part {
  readonly types: readonly ColumnType[];
  /**
   * The common table expressions. `rows` is the `unnest` of the arrays; `pass` is true unless the node is fenced.
   */
  sql(schema: string, rows: string, pass: string): readonly string[];
}

const PARTS = {
  actors: {
    types: ['text', 'smallint', 'text', 'text', 'text', 'text', 'float8', 'float8', 'text', 'text', 'bigint'],
    // A row without a kind replaces the snapshot only, and one without a version leaves the snapshot.
    sql: (schema, rows, pass) => [
      `actors AS (INSERT INTO ${schema}.actor AS a
  SELECT * FROM ${rows} WHERE ${pass} ON CONFLICT (id) DO UPDATE SET cell = excluded.cell, kind = coalesce(excluded.kind, a.kind),
  name = coalesce(excluded.name, a.name), principal = coalesce(excluded.principal, a.principal), status = coalesce(excluded.status, a.status),
  created = coalesce(excluded.created, a.created), expires = CASE WHEN excluded.kind IS NULL THEN a.expires ELSE excluded.expires END,
  version = coalesce(excluded.version, a.version), snapshot = coalesce(excluded.snapshot, a.snapshot), covered = greatest(excluded.covered, a.covered))`,
    ],
  },
  events: {
    types: ['text', 'text', 'bigint', 'bigint', 'text', 'text'],
    sql: (schema, rows, pass) => [`events AS (INSERT INTO ${schema}.event SELECT * FROM ${rows} WHERE ${pass})`],
  },
  replies: {
    types: ['text', 'text', 'text', 'float8'],
    sql: (schema, rows, pass) => [
      `replies AS (INSERT INTO ${schema}.reply SELECT * FROM ${rows} WHERE ${pass}
  ON CONFLICT (actor, request) DO UPDATE SET data = excluded.data, expires = excluded.expires)`,
    ],
  },
  repliesOff: {
    types: ['text', 'text'],
    sql: (schema, rows, pass) => [
      `replies_off AS (DELETE FROM ${schema}.reply r USING ${rows} AS t(a, b) WHERE r.actor = t.a AND r.request = t.b AND ${pass})`,
    ],
  },
  timers: {
    types: ['text', 'text', 'smallint', 'float8', 'text'],
    sql: (schema, rows, pass) => [
      `timers AS (INSERT INTO ${schema}.timer SELECT * FROM ${rows} WHERE ${pass}
  ON CONFLICT (actor, timer) DO UPDATE SET due = excluded.due, data = excluded.data)`,
    ],
  },
  timersOff: {
    types: ['text', 'text'],
    sql: (schema, rows, pass) => [
      `timers_off AS (DELETE FROM ${schema}.timer r USING ${rows} AS t(a, b) WHERE r.actor = t.a AND r.timer = t.b AND ${pass})`,
    ],
  },
  letters: {
    types: ['text', 'text', 'text', 'int', 'float8', 'text'],
    sql: (schema, rows, pass) => [
      `letters AS (INSERT INTO ${schema}.dead_letter(actor, mail, error, attempts, at, incident) SELECT * FROM ${rows} WHERE ${pass})`,
    ],
  },
  purged: {
    types: ['text', 'text', 'bigint'],
    sql: (schema, rows, pass) => [
      `purged AS (INSERT INTO ${schema}.stream AS s SELECT * FROM ${rows} WHERE ${pass}
  ON CONFLICT (actor, stream) DO UPDATE SET purged = greatest(s.purged, excluded.purged))`,
      `cut AS (DELETE FROM ${schema}.event e USING ${rows} AS t(a, b, c) WHERE e.actor = t.a AND e.stream = t.b AND e.seq <= t.c AND ${pass})`,
    ],
  },
  forgotten: {
    types: ['text'],
    sql: (schema, rows, pass) =>
      [
        ['actor', 'id'],
        ['event', 'actor'],
        ['stream', 'actor'],
        ['reply', 'actor'],
        ['timer', 'actor'],
      ].map(
        ([table = '', key = '']) =>
          `forget_${table} AS (DELETE FROM ${schema}.${table} r USING ${rows} AS t(a) WHERE r.${key} = t.a AND ${pass})`,
      ),
  },
  // Without a version that it replaces, the actor must not exist.
  swaps: {
    types: ['text', 'smallint', 'text', 'text', 'text', 'text', 'float8', 'float8', 'text', 'text', 'text'],
    sql: (schema, rows, pass) => [
      `swaps_new AS (INSERT INTO ${schema}.actor(id, cell, kind, name, principal, status, created, expires, version, snapshot)
  SELECT a, b, c, d, e, f, g, h, i, j FROM ${rows} AS t(a, b, c, d, e, f, g, h, i, j, k) WHERE k IS NULL AND ${pass}
  ON CONFLICT (id) DO NOTHING RETURNING id, version)`,
      `swaps_next AS (UPDATE ${schema}.actor r SET cell = t.b, kind = t.c, name = t.d, principal = t.e, status = t.f, created = t.g,
  expires = t.h, version = t.i, snapshot = t.j FROM ${rows} AS t(a, b, c, d, e, f, g, h, i, j, k)
  WHERE r.id = t.a AND r.version = t.k AND ${pass} RETURNING r.id, r.version)`,
    ],
  },
  claims: {
    types: ['text', 'text', 'text', 'float8'],
    sql: (schema, rows, pass) => [
      `claims AS (INSERT INTO ${schema}.reply SELECT * FROM ${rows} WHERE ${pass} ON CONFLICT (actor, request) DO NOTHING RETURNING actor, request)`,
    ],
  },
} as const satisfies Readonly<Record<string, Part>>;

type PartName = keyof typeof PARTS;
const NAMES = Object.keys(PARTS).filter((name): name is PartName => Object.hasOwn(PARTS, name));

/** Statements by the parts that they have: there are as many as kinds of batches. */
export class LayerStatements {
  readonly #schema: string;
  readonly #known = new Map<string, PreparedStatement>();

  constructor(schema: string) {
    this.#schema = schema;
  }

  /**
   * The statement of a layer and its parameters. Its first row has `true`, or `false` if the node is fenced and nothing
   * was written; each further row has the actor and the request of a claim that was won, or the actor and the version of a swap
   * that was stored.
   *
   * @param node whose row is locked; undefined for a process that has the store to itself
   */
  of(layer: WriteLayer, node: string | undefined): readonly [PreparedStatement, readonly SqlValue[]] {
    const rows = rowsOf(layer);
    const names = NAMES.filter((name) => rows[name].size > 0);
    const key = `${node === undefined ? '' : 'node '}${names.join(' ')}`;
    let statement = this.#known.get(key);
    if (!statement) {
      statement = { name: `write ${this.#known.size}`, text: this.#text(names, node !== undefined) };
      this.#known.set(key, statement);
    }
    const values: SqlValue[] = node === undefined ? [] : [node];
    for (const name of names) for (const column of rows[name].columns) values.push(column.toBuffer());
    return [statement, values];
  }

  #text(names: readonly PartName[], fenced: boolean): string {
    const pass = fenced ? 'EXISTS (SELECT FROM fence)' : 'true';
    const parts = fenced
      ? [`fence AS MATERIALIZED (SELECT FROM ${this.#schema}.node WHERE id = $1 AND NOT fenced FOR SHARE)`]
      : [];
    let place = fenced ? 1 : 0;
    for (const name of names) {
      const { types, sql } = PARTS[name];
      const arrays = types.map((type) => {
        place += 1;
        return `$${place}::${type}[]`;
      });
      parts.push(...sql(this.#schema, `unnest(${arrays.join(', ')})`, pass));
    }
    const won =
      (names.includes('claims') ? ' UNION ALL SELECT true, actor, request FROM claims' : '') +
      (names.includes('swaps')
        ? ' UNION ALL SELECT true, id, version FROM swaps_new UNION ALL SELECT true, id, version FROM swaps_next'
        : '');
    return `${parts.length > 0 ? `WITH ${parts.join(',\n')}\n` : ''}SELECT ${pass}, NULL::text, NULL::text${won}`;
  }
}

function rowsOf(layer: WriteLayer): Readonly<Record<PartName, Rows>> {
  const rows: Readonly<Record<PartName, Rows>> = {
    actors: new Rows(PARTS.actors.types),
    events: new Rows(PARTS.events.types),
    replies: new Rows(PARTS.replies.types),
    repliesOff: new Rows(PARTS.repliesOff.types),
    timers: new Rows(PARTS.timers.types),
    timersOff: new Rows(PARTS.timersOff.types),
    letters: new Rows(PARTS.letters.types),
    purged: new Rows(PARTS.purged.types),
    forgotten: new Rows(PARTS.forgotten.types),
    swaps: new Rows(PARTS.swaps.types),
    claims: new Rows(PARTS.claims.types),
  };
  for (const [
    id,
    { row, snapshot, swap, covered, events, replies, claims, timers, purged, forgotten },
  ] of layer.actors) {
    if (forgotten) rows.forgotten.add(id);
    if (row || snapshot)
      rows.actors.add(
        ...[id, cellOfActor(id), row?.kind, row?.name, row?.principal, row?.status, row?.created, row?.expires],
        ...[snapshot?.version, snapshot?.data, covered],
      );
    if (swap) {
      const { kind, name, principal, status, created, expires } = swap.actor;
      const { version, data } = swap.snapshot;
      rows.swaps.add(
        id,
        cellOfActor(id),
        kind,
        name,
        principal,
        status,
        created,
        expires,
        version,
        data,
        swap.expected,
      );
    }
    for (const { stream, seq, previous, kind, data } of events) rows.events.add(id, stream, seq, previous, kind, data);
    for (const [request, reply] of replies)
      if (reply) rows.replies.add(id, request, reply.data, reply.expires);
      else rows.repliesOff.add(id, request);
    for (const [request, reply] of claims) rows.claims.add(id, request, reply.data, reply.expires);
    for (const [name, timer] of timers)
      if (timer) rows.timers.add(id, name, cellOfActor(id), timer.due, timer.data);
      else rows.timersOff.add(id, name);
    for (const [stream, upto] of purged) rows.purged.add(id, stream, upto);
  }
  for (const { actor, mail, error, attempts, at, incident } of layer.letters)
    rows.letters.add(actor, mail, error, attempts, at, incident);
  return rows;
}
