/** The queries of the store, on connections that only read. */
import { fromText } from '../../core/store/serialize.ts';
import {
  type ActorRow,
  type DeadLetter,
  gone,
  type JournalEvent,
  type ListQuery,
  type StoreAnswer,
  type Stored,
  StoreError,
  type StoreRead,
  type StreamRow,
  type TimerRow,
  type TimersQuery,
} from '../../core/store/store.ts';
import { isStoredKind } from '../../core/store/stored-kind.ts';
import { ArrayParameter } from './array-parameter.ts';
import { fromColumnText, toColumnText } from './column-text.ts';
import { GatheredReads } from './gathered-reads.ts';
import type { PreparedStatement, ResultRow, SqlValue } from './postgres-connection.ts';

/** Asks any connection that reads. */
export type AskReader = (statement: PreparedStatement, values: readonly SqlValue[]) => Promise<readonly ResultRow[]>;

const ACTOR = 'id, kind, name, principal, status, created, expires';

export class PostgresReads {
  readonly #ask: AskReader;
  readonly #schema: string;
  readonly #loads: GatheredReads<ResultRow, Stored>;

  /** @param readers number of queries that the database works on at once */
  constructor(schema: string, ask: AskReader, readers: number) {
    this.#schema = schema;
    this.#ask = ask;
    this.#loads = new GatheredReads(readers, (ids) => this.#rowsOf(ids), storedIn);
  }

  async ask(query: StoreRead): Promise<StoreAnswer> {
    switch (query.type) {
      case 'load':
        return { type: 'load', value: await this.load(query.actor) };
      case 'list':
        return { type: 'list', value: { rows: await this.#list(query.query), damaged: [] } };
      case 'events':
        return { type: 'events', value: await this.#events(query.actor, query.stream, query.after, query.limit) };
      case 'streams':
        return { type: 'streams', value: await this.#streams(query.actor) };
      case 'reply':
        return { type: 'reply', value: await this.reply(query.actor, query.request) };
      case 'timers':
        return { type: 'timers', value: await this.#timers(query) };
      case 'letters':
        return { type: 'letters', value: await this.#deadLetters(query.limit) };
    }
  }

  load(id: string): Promise<Stored | undefined> {
    return this.#loads.load(id);
  }

  /** The rows of these actors; those that do not exist have none. */
  async #rowsOf(ids: readonly string[]): Promise<ReadonlyMap<string, ResultRow>> {
    const array = new ArrayParameter('text');
    for (const id of ids) array.add(id);
    const text = `SELECT ${ACTOR}, version, snapshot, (SELECT json_agg(json_build_array(timer, due, data))::text FROM ${this.#schema}.timer WHERE actor = id)
FROM ${this.#schema}.actor WHERE id = ANY($1::text[]) AND kind IS NOT NULL`;
    const rows = await this.#ask({ name: 'load', text }, [array.toBuffer()]);
    return new Map(rows.map((row) => [fromColumnText(textIn(row[0])), row]));
  }

  async #list({ kind, name, principal, cells, after, limit }: ListQuery): Promise<readonly ActorRow[]> {
    const values: SqlValue[] = [kind];
    const where = ['kind = $1'];
    const add = (condition: (place: string) => string, value: SqlValue): void => {
      values.push(value);
      where.push(condition(`$${values.length}`));
    };
    if (name !== undefined) add((place) => `name = ${place}`, toColumnText(name));
    if (principal !== undefined) add((place) => `principal = ${place}`, toColumnText(principal));
    if (cells) add((place) => `cell = ANY(${place}::smallint[])`, cellArray(cells));
    if (after) {
      values.push(after.created, toColumnText(after.id));
      where.push(`(created, id) > ($${values.length - 1}::float8, $${values.length}::text)`);
    }
    values.push(limit);
    const text = `SELECT ${ACTOR} FROM ${this.#schema}.actor WHERE ${where.join(' AND ')} ORDER BY created, id LIMIT $${values.length}`;
    const asked = [name, principal, cells, after].map((part) => (part === undefined ? '-' : '+')).join('');
    return (await this.#ask({ name: `list ${asked}`, text }, values)).map(actorRow);
  }

  /** @throws {StoreError} `corrupt` for a gap, `purged` */
  async #events(actor: string, stream: string, after: number, limit: number): Promise<readonly JournalEvent[]> {
    const of = 'actor = $1 AND stream = $2';
    const text = `SELECT (SELECT purged::float8 FROM ${this.#schema}.stream WHERE ${of}), EXISTS (SELECT FROM ${this.#schema}.event WHERE ${of}),
  e.seq::float8, e.previous::float8, e.kind, e.data
FROM (SELECT) one LEFT JOIN LATERAL (SELECT * FROM ${this.#schema}.event WHERE ${of} AND seq > $3 ORDER BY seq LIMIT $4) e ON true ORDER BY e.seq`;
    const rows = await this.#ask({ name: 'events', text }, [toColumnText(actor), toColumnText(stream), after, limit]);
    const [purged, exists] = rows[0] ?? [];
    const unknown = purged === null && exists !== true && stream !== '';
    if (after > 0 && (unknown || after < Number(purged))) throw gone(actor, stream, after);
    const events: JournalEvent[] = [];
    let last = after;
    for (const [, , seq, previous, kind, data] of rows) {
      if (typeof seq !== 'number') continue;
      // After 0 begins with the first event that is left, wherever that is.
      const follows = events.length > 0 ? previous === last : after === 0 || Number(previous) <= after;
      if (!follows)
        throw new StoreError(
          'corrupt',
          `${actor}, stream "${stream}": an event between ${last} and ${seq} is missing. Restore a backup`,
        );
      events.push({ stream, seq, kind: fromColumnText(textIn(kind)), data: fromColumnText(textIn(data)) });
      last = seq;
    }
    return events;
  }

  async #streams(actor: string): Promise<readonly StreamRow[]> {
    const text = `SELECT e.stream, min(e.seq)::float8, max(e.seq)::float8,
  coalesce((SELECT purged FROM ${this.#schema}.stream s WHERE s.actor = $1 AND s.stream = e.stream), 0)::float8
FROM ${this.#schema}.event e WHERE e.actor = $1 GROUP BY e.stream`;
    const rows = await this.#ask({ name: 'streams', text }, [toColumnText(actor)]);
    return rows.map(([stream, first, last, purged]) => ({
      stream: fromColumnText(textIn(stream)),
      first: Number(first),
      last: Number(last),
      purged: Number(purged),
    }));
  }

  async reply(actor: string, request: string): Promise<string | undefined> {
    const text = `SELECT data FROM ${this.#schema}.reply WHERE actor = $1 AND request = $2`;
    const [row] = await this.#ask({ name: 'reply', text }, [toColumnText(actor), toColumnText(request)]);
    return row && fromColumnText(textIn(row[0]));
  }

  async #timers({ until, limit, after, cells, prefix }: TimersQuery): Promise<readonly TimerRow[]> {
    const values: SqlValue[] = [until, limit];
    const place = (value: SqlValue): string => `$${values.push(value)}`;
    const chosen = [
      after &&
        `(due, actor, timer) > (${place(after.due)}::float8, ${place(toColumnText(after.actor))}::text, ${place(toColumnText(after.timer))}::text)`,
      cells && `cell = ANY(${place(cellArray(cells))}::smallint[])`,
      prefix !== undefined &&
        `actor >= ${place(toColumnText(prefix))} AND actor <= ${place(toColumnText(`${prefix}\u{10FFFF}`))}`,
    ].filter((condition) => typeof condition === 'string');
    const text = `SELECT actor, timer, due, data FROM ${this.#schema}.timer WHERE ${['due <= $1', ...chosen].join(' AND ')} ORDER BY due, actor, timer LIMIT $2`;
    const name = `timers${after ? ' after' : ''}${cells ? ' of cells' : ''}${prefix === undefined ? '' : ' of actors'}`;
    const rows = await this.#ask({ name, text }, values);
    return rows.map(([actor, timer, due, data]) => ({
      actor: fromColumnText(textIn(actor)),
      timer: fromColumnText(textIn(timer)),
      due: Number(due),
      data: fromColumnText(textIn(data)),
    }));
  }

  async #deadLetters(limit: number): Promise<readonly DeadLetter[]> {
    const text = `SELECT actor, mail, error, attempts, at, incident FROM ${this.#schema}.dead_letter ORDER BY n DESC LIMIT $1`;
    const rows = await this.#ask({ name: 'dead letters', text }, [limit]);
    return rows
      .map(([actor, mail, error, attempts, at, incident]) => ({
        actor: fromColumnText(textIn(actor)),
        mail: fromColumnText(textIn(mail)),
        error: fromColumnText(textIn(error)),
        attempts: Number(attempts),
        at: Number(at),
        incident: fromColumnText(textIn(incident)),
      }))
      .reverse();
  }
}

function cellArray(cells: readonly number[]): Buffer {
  const array = new ArrayParameter('smallint');
  for (const cell of cells) array.add(cell);
  return array.toBuffer();
}

function textIn(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new StoreError('corrupt', `the database: expected a text, got ${value === null ? 'NULL' : typeof value}`);
}

function actorRow([id, kind, name, principal, status, created, expires]: ResultRow): ActorRow {
  const known = textIn(kind);
  if (!isStoredKind(known)) throw new StoreError('corrupt', `the actor ${textIn(id)}: unknown kind ${known}`);
  return {
    id: fromColumnText(textIn(id)),
    kind: known,
    name: fromColumnText(textIn(name)),
    principal: fromColumnText(textIn(principal)),
    status: fromColumnText(textIn(status)),
    created: Number(created),
    expires: expires === null ? undefined : Number(expires),
  };
}

function storedIn(row: ResultRow): Stored {
  const actor = actorRow(row);
  const [version, data, timers] = row.slice(7);
  return {
    actor,
    snapshot: typeof version === 'string' ? { version: fromColumnText(version), data: textIn(data) } : undefined,
    timers: timers === null ? [] : timersIn(actor.id, textIn(timers)),
  };
}

function timersIn(actor: string, json: string): readonly TimerRow[] {
  const rows = fromText(json, `the timers of ${actor}`);
  if (!Array.isArray(rows)) throw new StoreError('corrupt', `the timers of ${actor}: expected a list`);
  return rows.map((row) => {
    const [timer, due, data] = Array.isArray(row) ? row : [];
    return { actor, timer: fromColumnText(textIn(timer)), due: Number(due), data: fromColumnText(textIn(data)) };
  });
}
