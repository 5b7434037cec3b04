/** Opens the file of a store: whose it is, how it is written, and the tables in it. */
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { KnownKeys } from '../known-keys.ts';
import { StoreError } from '../store.ts';
import { CommitMark, type Marked } from './commit-mark.ts';
import { type CheckedFile, checkFile } from './sqlite-check.ts';
import { columns, Db, number, type SqlRow, storeFaultOf } from './sqlite-database.ts';
import type { ThreadStart } from './sqlite-protocol.ts';

/** In the head of the file: "Trou". */
const APPLICATION = 0x54726f75;
const VERSION = 1;
const PAGE = 4096;
/** No SQLite database has fewer bytes. */
const LEAST_BYTES = 512;
/** Pages in the log before they are written back to the file: with 4,000, the acknowledgement that waits for it waits three times as long. */
const LOG_PAGES = 1_000;

// A snapshot is in the row of its actor: a damaged index cannot hide the one and show the other.
// Rows of one stream are far apart in `event`, which only grows at its end: a quarter of the time of a table by stream and seq.
const SCHEMA = `
CREATE TABLE opened(times INTEGER NOT NULL);
INSERT INTO opened VALUES(0);
CREATE TABLE actor(id BLOB PRIMARY KEY, kind BLOB, name BLOB, principal BLOB, status BLOB, created REAL, expires REAL,
  crc INTEGER, version BLOB, snapshot_crc INTEGER, snapshot BLOB);
CREATE INDEX actor_kind ON actor(kind, created, id);
CREATE INDEX actor_principal ON actor(principal, kind, created, id);
CREATE INDEX actor_expires ON actor(expires, id) WHERE expires IS NOT NULL;
CREATE TABLE stream(n INTEGER PRIMARY KEY, actor BLOB NOT NULL, stream BLOB NOT NULL, purged INTEGER NOT NULL,
  base INTEGER NOT NULL, last INTEGER NOT NULL, head INTEGER NOT NULL, events INTEGER NOT NULL, bytes INTEGER NOT NULL,
  covered INTEGER NOT NULL, crc INTEGER NOT NULL);
CREATE UNIQUE INDEX stream_name ON stream(actor, stream);
CREATE TABLE event(g INTEGER PRIMARY KEY, stream INTEGER NOT NULL, seq INTEGER NOT NULL, kind BLOB NOT NULL,
  data BLOB NOT NULL, prev INTEGER NOT NULL, crc INTEGER NOT NULL);
CREATE UNIQUE INDEX event_seq ON event(stream, seq);
CREATE TABLE reply(actor BLOB NOT NULL, request BLOB NOT NULL, data BLOB NOT NULL, expires REAL NOT NULL, crc INTEGER NOT NULL);
CREATE UNIQUE INDEX reply_request ON reply(actor, request);
CREATE INDEX reply_expires ON reply(expires);
CREATE TABLE timer(actor BLOB NOT NULL, timer BLOB NOT NULL, due REAL NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL,
  PRIMARY KEY(actor, timer)) WITHOUT ROWID;
CREATE INDEX timer_due ON timer(due);
CREATE TABLE dead_letter(g INTEGER PRIMARY KEY, actor BLOB NOT NULL, mail BLOB NOT NULL, error BLOB NOT NULL,
  attempts INTEGER NOT NULL, at REAL NOT NULL, incident BLOB NOT NULL, crc INTEGER NOT NULL);
PRAGMA application_id = ${APPLICATION};
PRAGMA user_version = ${VERSION};`;

/** Run in each transaction: the number of all of them, which {@link CommitMark} has, too. */
export const COUNT_COMMIT = 'UPDATE opened SET times = times + 1';

export interface OpenedDatabase extends CheckedFile {
  readonly db: Db;
  readonly mark: CommitMark;
  /** What the operator should know, such as whom this process follows. */
  readonly notes: readonly string[];
  /** Lets the file go. */
  release(): void;
}

/** Opens the file, and makes it where there is none. @throws {StoreError} `locked`, `foreign`, `corrupt`; otherwise what SQLite throws */
export function openFile({ path, options, readOnly }: ThreadStart): OpenedDatabase {
  const file = resolve(path);
  const lock = `${file}.lock`;
  const mark = new CommitMark(`${file}-mark`);
  mustNotBeCut(file, path, mark);
  if (!existsSync(file)) create(file);
  const db = new Db(file);
  try {
    db.pragma(`busy_timeout=${options.lockMs}`);
    db.pragma('cell_size_check=ON');
    const isNew = ours(db, path, mark);
    if (readOnly) {
      db.pragma('query_only=ON');
      const checked = checkFile(db, path, false);
      return { db, mark, ...checked, notes: [], release: () => {} };
    }
    chmodSync(file, 0o600);
    if (isNew) db.pragma('auto_vacuum=INCREMENTAL');
    db.pragma('journal_mode=WAL');
    // Where the power may fail: a commit is on the disk when it returns.
    db.pragma('synchronous=FULL');
    db.pragma(`wal_autocheckpoint=${LOG_PAGES}`);
    db.pragma(`journal_size_limit=${4 * LOG_PAGES * PAGE}`);
    db.pragma('trusted_schema=OFF');
    db.pragma(`max_page_count=${Math.floor(options.maxBytes / PAGE)}`);
    const owned = own(db, { path, lock, isNew, mark });
    const release = (): void => {
      mark.close();
      rmSync(lock, { force: true });
    };
    return { db, mark, ...owned, release };
  } catch (error) {
    mark.close();
    db.close();
    throw error;
  }
}

function create(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // Its log and index get the same mode. Never opened when it is there: to close it would drop SQLite's locks on it.
  closeSync(openSync(file, 'ax', 0o600));
}

/**
 * SQLite takes a file that was cut to nothing for a new one. The mark and the log beside it tell that it is not.
 *
 * @throws {StoreError} `corrupt`, `foreign`
 */
function mustNotBeCut(file: string, path: string, mark: CommitMark): void {
  // Before the size: who makes a file now writes the mark last.
  const marked = mark.read();
  const size = sizeOf(file);
  const log = sizeOf(`${file}-wal`) ?? 0;
  if (size !== undefined && size >= LEAST_BYTES) return;
  if (marked === 'absent' && log === 0) {
    if (size === undefined || size === 0) return;
    throw new StoreError(
      'foreign',
      `${path}: expected a store of this package, got a file of ${size} bytes. Name another file, or remove this one to create a new store`,
    );
  }
  const what = size === undefined ? 'the file is missing' : `it has ${size} bytes`;
  const known = marked === 'absent' ? `its log ${path}-wal` : mark.path;
  throw new StoreError(
    'corrupt',
    `${path} is damaged: ${what}, and ${known} shows that it was a store. Restore a backup. To create a new store instead, remove ${path}, ${path}-wal and ${mark.path}`,
  );
}

function sizeOf(file: string): number | undefined {
  return existsSync(file) ? statSync(file).size : undefined;
}

/** Whether it is an empty file, and no store that we can read. @throws {StoreError} `foreign`, `corrupt` */
function ours(db: Db, path: string, mark: CommitMark): boolean {
  const application = db.pragma('application_id');
  const version = db.pragma('user_version') ?? 0;
  const isEmpty = db.pragma('schema_version') === 0;
  if (isEmpty && mark.read() !== 'absent')
    throw new StoreError(
      'corrupt',
      `${path} is damaged: it has no tables, and ${mark.path} shows that it was a store. Restore a backup`,
    );
  if (!isEmpty && application !== APPLICATION)
    throw new StoreError(
      'foreign',
      `${path}: expected a store of this package, got another program's SQLite database. Name another file`,
    );
  if (version > VERSION)
    throw new StoreError(
      'foreign',
      `${path}: expected a store of version ${VERSION} at most, got ${version}, written by a later version of this package. Upgrade, or name another file`,
    );
  return isEmpty;
}

/** @throws {StoreError} `corrupt` where a table or an index of the store is not as it was made */
function mustHaveTables(db: Db, path: string): void {
  const scheme = `SELECT ${columns('b:type', 'b:name', 'b:tbl_name', 'b:sql')} FROM sqlite_schema`;
  const made = new Db(':memory:');
  made.run(SCHEMA);
  const inWords = (row: SqlRow): string =>
    row.map((cell) => (cell instanceof Uint8Array ? cell.toString() : '')).join(' ');
  const found = new Set(db.prepare(scheme).all().map(inWords));
  const lost = made
    .prepare(scheme)
    .all()
    .map(inWords)
    .find((words) => !found.has(words));
  made.close();
  if (lost !== undefined)
    throw new StoreError('corrupt', `${path} is damaged: it has no ${lost.split(' (')[0]}. Restore a backup`);
}

interface Owned extends CheckedFile {
  readonly notes: readonly string[];
}

/**
 * Makes this process the only one that writes. SQLite's own lock decides, which ends with its process, however that ends: a
 * connection alone on its file can have it exclusively, for a moment, and then lets readers in again. The lock file says who it is.
 * Nothing is written before the file was checked.
 */
function own(
  db: Db,
  { path, lock, isNew, mark }: { path: string; lock: string; isNew: boolean; mark: CommitMark },
): Owned {
  const before = existsSync(lock) ? readFileSync(lock, 'utf8').trim() : '';
  let checked: CheckedFile = { keys: new KnownKeys(), damage: [] };
  const notes: string[] = [];
  let commits = 0;
  try {
    db.pragma('locking_mode=EXCLUSIVE');
    db.run('BEGIN IMMEDIATE');
    if (isNew) db.run(SCHEMA);
    commits = commitsIn(db, path);
    if (!isNew) {
      const marked = mark.read();
      mustHaveAll(commits, marked, path, mark);
      if (marked === 'unreadable')
        notes.push(
          `${mark.path} is unreadable, so lost transactions in ${path} cannot be detected. The store writes a new mark`,
        );
      mustHaveTables(db, path);
      checked = checkFile(db, path, true);
    }
    // What cannot be written is found now. And frames that were never acknowledged, of a commit that failed, are overwritten.
    db.run(COUNT_COMMIT);
    db.run('COMMIT');
  } catch (error) {
    db.rollback();
    if (storeFaultOf(error) !== 'locked') throw error;
    const by = before ? ` (${before})` : '';
    throw new StoreError(
      'locked',
      `${path}: another process has the store open${by}. Stop that process, or name another file`,
    );
  }
  mark.begin(commits + 1);
  db.pragma('locking_mode=NORMAL');
  // The lock on the file is given back with the next look at it.
  commitsIn(db, path);
  const me = identity();
  rmSync(lock, { force: true });
  writeFileSync(lock, `${me}\n`, { mode: 0o600, flag: 'wx' });
  if (before !== '' && before !== me) notes.push(`${path} was not closed by its last process: ${before}`);
  return { ...checked, notes };
}

/** How many transactions the file has. @throws {StoreError} `corrupt` */
function commitsIn(db: Db, path: string): number {
  const [row] = db.prepare(`SELECT ${columns('n:times')} FROM opened`).all();
  return number(row?.[0], `the transaction count of ${path}`);
}

/** @throws {StoreError} `corrupt` where the file has fewer transactions than were acknowledged */
function mustHaveAll(commits: number, marked: Marked, path: string, mark: CommitMark): void {
  if (typeof marked !== 'number' || marked <= commits) return;
  throw new StoreError(
    'corrupt',
    `${path} has lost ${marked - commits} acknowledged transactions: ${mark.path} counts ${marked}, the file has ${commits}; its log ${path}-wal is damaged or was removed, or the file is an older copy. Restore a backup, or, to continue with the existing data, remove ${mark.path}`,
  );
}

/** Who this process is: its number, the run of the machine, and when in it the process began. */
function identity(): string {
  const told = [`pid ${process.pid}`];
  try {
    told.push(`boot ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`);
    // The 22nd field; what comes before may hold spaces, in brackets.
    const stat = readFileSync('/proc/self/stat', 'utf8');
    told.push(`started ${stat.slice(stat.lastIndexOf(')')).split(' ')[20] ?? 'unknown'}`);
  } catch {
    // Only Linux tells: elsewhere the number must do. It decides nothing.
  }
  return told.join(', ');
}
