/** The rows of streams and events in the file: writes, reads and checks them. */
import { eventSum, rowSum } from '../../core/store/checksum.ts';
import type { JournalEvent } from '../../core/store/store.ts';
import { bytes, columns, type Db, damaged, number, type SqlRow, sqlText, string } from './sqlite-database.ts';

export interface StreamRecord {
  readonly n: number;
  readonly actor: string;
  readonly stream: string;
  /** The last deleted event, and the checksum to which the first remaining event is chained. */
  purged: number;
  base: number;
  last: number;
  /** The checksum of the last event. */
  head: number;
  events: number;
  bytes: number;
  /** The last event that a snapshot covers. */
  covered: number;
  /** True if the row in the file is older. */
  changed: boolean;
}

const STREAM = columns(
  'n:n',
  'b:stream',
  'n:purged',
  'n:base',
  'n:last',
  'n:head',
  'n:events',
  'n:bytes',
  'n:covered',
  'n:crc',
);
const EVENT = columns('n:seq', 'b:kind', 'b:data', 'n:prev', 'n:crc');
/** A whole row of its table, for a full scan. */
export const STREAM_ROW = `${columns('b:actor')}, ${STREAM}`;
export const EVENT_ROW = `${columns('n:stream')}, ${EVENT}`;

export function journalStatements(db: Db) {
  return {
    insert: db.prepare('INSERT INTO event(stream, seq, kind, data, prev, crc) VALUES(?, ?, ?, ?, ?, ?)'),
    after: db.prepare(`SELECT ${EVENT} FROM event WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?`),
    upto: db.prepare(
      `SELECT ${columns('n:seq', 'n:crc')} FROM event WHERE stream = ? AND seq <= ? ORDER BY seq DESC LIMIT 1`,
    ),
    nth: db.prepare(`SELECT ${columns('n:seq')} FROM event WHERE stream = ? ORDER BY seq LIMIT 1 OFFSET ?`),
    at: db.prepare(`SELECT ${EVENT_ROW} FROM event WHERE stream = ? AND seq = ?`),
    weight: db.prepare(
      `SELECT ${columns('n:count(*)', 'n:sum(length(data))')} FROM event WHERE stream = ? AND seq <= ?`,
    ),
    cut: db.prepare('DELETE FROM event WHERE stream = ? AND seq <= ?'),
    clear: db.prepare('DELETE FROM event WHERE stream = ?'),
    oldest: db.prepare(
      `SELECT ${columns('b:s.stream', 'n:e.seq', 'n:length(e.data)')} FROM stream s JOIN event e ON e.stream = s.n
       WHERE s.actor = ? AND (length(s.stream) > 0 OR e.seq <= s.covered) ORDER BY e.g`,
    ),
    stream: db.prepare(`SELECT ${STREAM} FROM stream WHERE actor = ? AND stream = ?`),
    streams: db.prepare(`SELECT ${STREAM} FROM stream WHERE actor = ? ORDER BY n`),
    bytes: db.prepare(`SELECT ${columns('n:sum(bytes)')} FROM stream WHERE actor = ?`),
    make: db.prepare(
      `INSERT INTO stream(actor, stream, purged, base, last, head, events, bytes, covered, crc) VALUES(?, ?, 0, 0, 0, 0, 0, 0, 0, 0) RETURNING ${columns('n:n')}`,
    ),
    update: db.prepare(
      'UPDATE stream SET purged = ?, base = ?, last = ?, head = ?, events = ?, bytes = ?, covered = ?, crc = ? WHERE n = ?',
    ),
    forget: db.prepare('DELETE FROM stream WHERE n = ?'),
    crowded: db.prepare(
      `SELECT ${columns('b:actor')} FROM stream WHERE events = 0 AND length(stream) > 0 GROUP BY actor HAVING count(*) > ?`,
    ),
  };
}

/** A position in a stream, for errors. */
export const named = ({ actor, stream }: StreamRecord, seq: number): string =>
  `${actor}, stream "${stream}", at event ${seq}`;

/** @throws {StoreError} `corrupt` for a damaged event, or one that does not follow its predecessor */
export function readEvent(of: StreamRecord, row: SqlRow, previous: number, last: number): JournalEvent {
  const what = `${of.actor}, stream "${of.stream}", after event ${last}`;
  const [seq, prev, crc] = [number(row[0], what), number(row[3], what), number(row[4], what)];
  const kind = string(row[1], what);
  const data = bytes(row[2], what);
  if (prev !== previous || eventSum(prev, of.n, seq, kind, data) !== crc) throw damaged(what);
  return { stream: of.stream, seq, kind, data: sqlText(data) };
}

export function sumOf({ n, actor, stream, purged, base, last, head, events, bytes, covered }: StreamRecord): number {
  return rowSum(['stream', n, actor, stream, purged, base, last, head, events, bytes, covered]);
}

/** @throws {StoreError} `corrupt` */
export function readStream(actor: string, row: SqlRow): StreamRecord {
  const what = `the streams of ${actor}`;
  const at = (index: number): number => number(row[index], what);
  const numbers = {
    n: at(0),
    purged: at(2),
    base: at(3),
    last: at(4),
    head: at(5),
    events: at(6),
    bytes: at(7),
    covered: at(8),
  };
  const stream: StreamRecord = { ...numbers, actor, stream: string(row[1], what), changed: false };
  if (sumOf(stream) !== at(9)) throw damaged(what);
  return stream;
}

/** A {@link STREAM_ROW}. @throws {StoreError} `corrupt` */
export function readStreamRow([actor, ...row]: SqlRow): StreamRecord {
  return readStream(string(actor, 'a stream'), row);
}

/** One {@link EVENT_ROW}, without its predecessor. @throws {StoreError} `corrupt` */
export function readEventRow([of, ...row]: SqlRow): void {
  const what = 'an event';
  const [stream, seq, prev, crc] = [of, row[0], row[3], row[4]].map((cell) => number(cell, what));
  const kind = string(row[1], what);
  if (eventSum(prev ?? 0, stream ?? 0, seq ?? 0, kind, bytes(row[2], what)) !== crc) throw damaged(what);
}
