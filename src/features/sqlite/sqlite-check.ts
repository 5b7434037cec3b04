/**
 * Checks a store's file before anything is written to it, reads the keys of all its rows, and rebuilds a damaged index.
 */
import { END, KnownKeys, type RowKind, SEPARATOR } from '../../core/store/known-keys.ts';
import { StoreError } from '../../core/store/store.ts';
import { EVENT_ROW, readEventRow, readStreamRow, STREAM_ROW } from './journal-rows.ts';
import { readPacks, type StoredPacks } from './reply-packs.ts';
import { columns, type Db, number, type SqlRow, sqlText } from './sqlite-database.ts';
import { ACTOR_ROW, REPLY_ROW, readActorRow, readReply, readTimer, TIMER_ROW } from './state-rows.ts';

/** The result of the check of a usable file. */
export interface CheckedFile {
  readonly keys: KnownKeys;
  readonly packs: StoredPacks;
  /** The damage, for the operator. */
  readonly damage: readonly string[];
}

/** Number of keys that one query reads. */
const PAGE = 5_000;
/** Maximum number of messages of SQLite's own check. */
const MAX_MESSAGES = 100;
/** Less than every rowid. */
const LEAST = Number.MIN_SAFE_INTEGER;

interface Table {
  readonly name: 'actor' | 'stream' | 'event' | 'reply' | 'timer';
  /**
   * The columns that identify a row, and an index that contains them; undefined if its rows are found by other means.
   */
  readonly key?: { readonly kind: RowKind; readonly columns: readonly string[]; readonly index: string };
  /** The column that orders a scan; undefined if the table has no rowid. */
  readonly rowid: string | undefined;
  readonly row: string;
  /** @throws {StoreError} for a damaged row */
  read(row: SqlRow): unknown;
}

const TABLES: readonly Table[] = [
  {
    name: 'actor',
    key: { kind: 'actor', columns: ['id'], index: 'sqlite_autoindex_actor_1' },
    rowid: 'rowid',
    row: ACTOR_ROW,
    // A snapshot may exist before its actor.
    read: (row) => (row[1] === null && row[7] === null ? undefined : readActorRow(row)),
  },
  {
    name: 'stream',
    key: { kind: 'stream', columns: ['actor', 'stream'], index: 'stream_name' },
    rowid: 'n',
    row: STREAM_ROW,
    read: readStreamRow,
  },
  { name: 'event', rowid: 'g', row: EVENT_ROW, read: readEventRow },
  {
    name: 'reply',
    key: { kind: 'reply', columns: ['actor', 'request'], index: 'reply_request' },
    rowid: 'rowid',
    row: REPLY_ROW,
    read: readReply,
  },
  {
    name: 'timer',
    key: { kind: 'timer', columns: ['actor', 'timer'], index: 'timer_due' },
    rowid: undefined,
    row: TIMER_ROW,
    read: readTimer,
  },
];

/** Matches messages of SQLite's check about single rows and their index entries; all others concern pages. */
const OF_ROWS =
  /^(?:row \S+ (?:missing from|values differ from) index|rowid not at end-of-record for row \S+ of index|wrong # of entries in index|non-unique entry in index|row not in PRIMARY KEY order for|(?:NULL|TEXT|NUMERIC|non-\w+) value in) ?(\w*)/;

/**
 * @param repair whether an index may be rebuilt
 * @throws {StoreError} `corrupt` if the pages of the file are damaged, because SQLite could overwrite intact data; or if
 * a pack of replies is missing or unreadable
 */
export function checkFile(db: Db, path: string, repair: boolean): CheckedFile {
  const messages = wrongIn(db, path);
  const damage: string[] = [];
  const doubtful = new Set<Table>();
  for (const table of TABLES) {
    const [first] = messages.filter((message) => isAbout(message, table));
    if (first === undefined) continue;
    if (repair && isSound(db, table)) {
      db.run(`REINDEX ${table.name}`);
      damage.push(
        `${path}: an index of ${table.name} was damaged (${first}). It was rebuilt from the rows, which are all intact`,
      );
    } else doubtful.add(table);
  }
  const left = damage.length > 0 ? wrongIn(db, path) : messages;
  for (const message of left)
    damage.push(`${path} is damaged: ${message}. Data on damaged pages is not served. Restore a backup`);
  const packs = readPacks(db, path);
  return { keys: keysOf(db, doubtful), packs, damage: [...damage, ...packs.damage] };
}

/** Problems with rows and their index entries. @throws {StoreError} `corrupt` for any other problem */
function wrongIn(db: Db, path: string): readonly string[] {
  const messages = integrity(db);
  const structural = messages.filter((message) => !OF_ROWS.test(message));
  if (structural.length > 0) throw unusable(path, structural);
  return messages;
}

function unusable(path: string, messages: readonly string[]): StoreError {
  const some = messages.slice(0, 3).join('; ');
  return new StoreError(
    'corrupt',
    `${path} is damaged: ${some}. The store does not open, because writing could destroy intact data. Restore a backup`,
  );
}

/** SQLite's own check: all pages, and each row in each index. */
function integrity(db: Db): string[] {
  const rows = db
    .prepare(`SELECT ${columns('b:integrity_check')} FROM pragma_integrity_check(${MAX_MESSAGES}, '${db.schema}')`)
    .all()
    .flatMap(([text]) => (text instanceof Uint8Array ? sqlText(text).split('\n') : []));
  return rows.filter((line) => line !== 'ok');
}

function isAbout(message: string, { name, key }: Table): boolean {
  const [, of = ''] = OF_ROWS.exec(message) ?? [];
  return of === name || of.startsWith(`${name}_`) || of === key?.index;
}

/** Returns whether each row matches its checksum, so that its indexes can be rebuilt from it. */
function isSound(db: Db, { name, rowid, row, read }: Table): boolean {
  const place = rowid === undefined ? '' : `${columns(`n:${rowid}`)}, `;
  const from =
    rowid === undefined
      ? `${name} LIMIT ${PAGE} OFFSET ?`
      : `${name} NOT INDEXED WHERE ${rowid} > ? ORDER BY ${rowid} LIMIT ${PAGE}`;
  const statement = db.prepare(`SELECT ${place}${row} FROM ${from}`);
  let after = rowid === undefined ? 0 : LEAST;
  for (;;) {
    const rows = statement.all(after);
    try {
      for (const each of rows) read(rowid === undefined ? each : each.slice(1));
    } catch {
      return false;
    }
    const last = rows.at(-1);
    if (rows.length < PAGE || !last) return true;
    after = rowid === undefined ? after + PAGE : number(last[0], name);
  }
}

/**
 * The keys of all rows. If a table contradicts its index, the keys of both: a lookup must find every key that either
 * contains.
 */
function keysOf(db: Db, doubtful: ReadonlySet<Table>): KnownKeys {
  const keys = new KnownKeys();
  for (const table of TABLES) {
    const { key, name, rowid } = table;
    if (!key) continue;
    if (rowid === undefined) addKeys(db, keys, table, `${name} LIMIT ${PAGE} OFFSET ?`, 0);
    else addKeys(db, keys, table, `${name} NOT INDEXED WHERE ${rowid} > ? ORDER BY ${rowid} LIMIT ${PAGE}`, LEAST);
    // Scan from one end to the other: keys out of order would mislead a search.
    if (doubtful.has(table)) addKeys(db, keys, table, `${name} INDEXED BY ${key.index} LIMIT ${PAGE} OFFSET ?`, 0);
  }
  return keys;
}

function addKeys(db: Db, keys: KnownKeys, { key, rowid }: Table, from: string, first: number): void {
  if (!key) return;
  const byRowid = first === LEAST ? rowid : undefined;
  const end = `x'${END.toString(16)}'`;
  const found = columns(`b:group_concat(key, ${end}) || ${end}`, 'n:count(*)', 'n:max(place)');
  const parts = key.columns.join(` || x'${SEPARATOR.toString(16)}' || `);
  const statement = db.prepare(`SELECT ${found} FROM (SELECT ${parts} AS key, ${byRowid ?? 0} AS place FROM ${from})`);
  for (let after = first; ; ) {
    const [row = []] = statement.all(after);
    if (row[0] instanceof Uint8Array) keys.addAll(key.kind, row[0]);
    if (row[1] !== PAGE) return;
    after = byRowid === undefined ? after + PAGE : number(row[2], key.index);
  }
}
