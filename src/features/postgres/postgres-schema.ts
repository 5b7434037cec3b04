/** The tables of a store in PostgreSQL, and their version. */
import { createHash } from 'node:crypto';
import { CELLS } from '../../core/protocol/cell.ts';
import { StoreError } from '../../core/store/store.ts';
import type { PostgresConnection } from './postgres-connection.ts';

/** Another format is `foreign`. */
const FORMAT = 1;

/** The key of an advisory lock, unique in the database for each schema and purpose. */
export function lockKey(schema: string, purpose: 'schema' | 'store' | 'sweep' | `node ${string}`): string {
  return createHash('sha256').update(`troupe ${schema} ${purpose}`).digest().readBigInt64BE(0).toString();
}

/** Creates the tables if there are none. @throws {StoreError} `foreign` for tables of others, or of another format */
export async function ensureSchema(connection: PostgresConnection, schema: string, label: string): Promise<void> {
  if ((await versionOf(connection, schema)) === undefined) await create(connection, schema, label);
  await checkSchema(connection, schema, label);
}

/** @throws {StoreError} `foreign` if there are no tables of a store, or those of another format */
export async function checkSchema(connection: PostgresConnection, schema: string, label: string): Promise<void> {
  const version = await versionOf(connection, schema);
  if (version === FORMAT) return;
  if (version === undefined) throw new StoreError('foreign', `${label}: schema ${schema}: there is no store`);
  throw new StoreError(
    'foreign',
    `${label}: schema ${schema}: expected format ${FORMAT} of the store, got format ${version}, which another version of this package wrote. Use that version, or choose another schema`,
  );
}

async function versionOf(connection: PostgresConnection, schema: string): Promise<number | undefined> {
  const found = await connection.query({
    name: 'has store',
    text: `SELECT to_regclass('${schema}.store') IS NOT NULL`,
  });
  if (found[0]?.[0] !== true) return undefined;
  const [row] = await connection.query({ name: 'version', text: `SELECT version FROM ${schema}.store` });
  return Number(row?.[0]);
}

async function create(connection: PostgresConnection, schema: string, label: string): Promise<void> {
  await connection.run('BEGIN');
  try {
    await connection.run(`SELECT pg_advisory_xact_lock(${lockKey(schema, 'schema')})`);
    const found = await connection.query({
      name: 'schema',
      text: `SELECT count(n.oid)::int, count(c.oid)::int, count(c.oid) FILTER (WHERE c.relname = 'store')::int
FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind = 'r' WHERE n.nspname = '${schema}'`,
    });
    const [schemas, tables, stores] = found[0] ?? [];
    if (stores === 0) {
      if (tables !== 0)
        throw new StoreError('foreign', `${label}: schema ${schema} contains tables, and none is a store's`);
      // A role without the right to create schemas may have an empty one.
      if (schemas === 0) await connection.run(`CREATE SCHEMA ${schema}`);
      await connection.run(tablesOf(schema));
    }
    await connection.run('COMMIT');
  } catch (error) {
    await connection.run('ROLLBACK').catch(() => {});
    throw error;
  }
}

/**
 * Ids are compared by bytes, as in every store. Rows of actors and replies are updated often: with free space in their
 * page an update touches no index. Each event has the number of the event before it, so that a gap is detected.
 */
function tablesOf(schema: string): string {
  const vacuum = 'autovacuum_vacuum_scale_factor = 0.02';
  const often = `fillfactor = 70, ${vacuum}`;
  return `
CREATE TABLE ${schema}.store(version int NOT NULL, holder text);
INSERT INTO ${schema}.store(version) VALUES(${FORMAT});

CREATE TABLE ${schema}.actor(id text COLLATE "C" PRIMARY KEY, cell smallint, kind text, name text, principal text COLLATE "C",
  status text, created double precision, expires double precision, version text, snapshot text, covered bigint NOT NULL DEFAULT 0)
  WITH (${often});
CREATE INDEX actor_kind ON ${schema}.actor(kind, created, id);
CREATE INDEX actor_cell ON ${schema}.actor(cell, kind) WHERE cell IS NOT NULL;
CREATE INDEX actor_principal ON ${schema}.actor(principal, kind, created, id);
CREATE INDEX actor_expires ON ${schema}.actor(expires) WHERE expires IS NOT NULL;

CREATE TABLE ${schema}.event(actor text COLLATE "C", stream text COLLATE "C", seq bigint, previous bigint NOT NULL, kind text NOT NULL,
  data text NOT NULL, PRIMARY KEY(actor, stream, seq)) WITH (${vacuum});
-- Only streams of which events were deleted.
CREATE TABLE ${schema}.stream(actor text COLLATE "C", stream text COLLATE "C", purged bigint NOT NULL, PRIMARY KEY(actor, stream))
  WITH (${often});

-- A reply replaces the marker of its call, and is two to three times as long.
CREATE TABLE ${schema}.reply(actor text COLLATE "C", request text COLLATE "C", data text NOT NULL, expires double precision NOT NULL,
  PRIMARY KEY(actor, request)) WITH (fillfactor = 30, ${vacuum});
CREATE INDEX reply_expires ON ${schema}.reply(expires);

CREATE TABLE ${schema}.timer(actor text COLLATE "C", timer text COLLATE "C", cell smallint, due double precision NOT NULL, data text NOT NULL,
  PRIMARY KEY(actor, timer)) WITH (${often});
CREATE INDEX timer_due ON ${schema}.timer(due, actor, timer);

CREATE TABLE ${schema}.dead_letter(n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, actor text NOT NULL, mail text NOT NULL,
  error text NOT NULL, attempts int NOT NULL, at double precision NOT NULL, incident text NOT NULL);

-- Events during which a process has ended itself.
CREATE TABLE ${schema}.crash(mark text NOT NULL, at double precision NOT NULL);

CREATE TABLE ${schema}.node(id text PRIMARY KEY, address text NOT NULL, version text NOT NULL, lock bigint NOT NULL,
  fenced boolean NOT NULL DEFAULT false, joined timestamptz NOT NULL DEFAULT clock_timestamp(), leaving boolean NOT NULL DEFAULT false)
  WITH (fillfactor = 50);
-- Apart from the node, because a commit locks the row of its node.
CREATE TABLE ${schema}.beat(node text PRIMARY KEY, at timestamptz NOT NULL, loop_at timestamptz NOT NULL) WITH (fillfactor = 50);
CREATE TABLE ${schema}.cell(n smallint PRIMARY KEY, node text, epoch bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
INSERT INTO ${schema}.cell(n) SELECT generate_series(0, ${CELLS - 1});
`;
}
