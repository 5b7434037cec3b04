/** Opens the file of a store: whose it is, how it is written, and the tables in it. */
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Db, faultOf } from './sqlite-database.ts';
import type { ThreadStart } from './sqlite-mail.ts';
import { StoreError } from './store.ts';

/** In the head of the file: "Trou". */
const APPLICATION = 0x54726f75;
const VERSION = 1;
const PAGE = 4096;
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

export interface Opened {
  readonly db: Db;
  /** What the operator should know, such as whom this process follows. */
  readonly notes: readonly string[];
  /** Lets the file go. */
  release(): void;
}

/** Opens the file, and makes it where there is none. @throws {StoreError} `locked`, `foreign`; otherwise what SQLite throws */
export function openFile({ path, options, readOnly }: ThreadStart): Opened {
  const file = resolve(path);
  const lock = `${file}.lock`;
  if (!existsSync(file)) create(file);
  const db = new Db(file);
  try {
    db.pragma(`busy_timeout=${options.lockMs}`);
    const isNew = ours(db, path);
    if (readOnly) {
      db.pragma('query_only=ON');
      return { db, notes: [], release: () => {} };
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
    const notes = own(db, { path, lock, isNew });
    return { db, notes, release: () => rmSync(lock, { force: true }) };
  } catch (error) {
    db.close();
    throw error;
  }
}

function create(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // Its log and index get the same mode. Never opened when it is there: to close it would drop SQLite's locks on it.
  closeSync(openSync(file, 'ax', 0o600));
}

/** Whether it is a store that we can read, or an empty file. @throws {StoreError} `foreign` */
function ours(db: Db, path: string): boolean {
  const application = db.pragma('application_id');
  const version = db.pragma('user_version') ?? 0;
  const isEmpty = db.pragma('schema_version') === 0;
  if (!isEmpty && application !== APPLICATION)
    throw new StoreError(
      'foreign',
      `${path}: expected a store of this package, got another program's SQLite database; name another file`,
    );
  if (version > VERSION)
    throw new StoreError(
      'foreign',
      `${path}: expected a store of version ${VERSION} at most, got ${version}, which a later version of this package wrote; use that, or name another file`,
    );
  return isEmpty;
}

/**
 * Makes this process the only one that writes. SQLite's own lock decides, which ends with its process, however that ends: a
 * connection alone on its file can have it exclusively, for a moment, and then lets readers in again. The lock file says who it is.
 */
function own(db: Db, { path, lock, isNew }: { path: string; lock: string; isNew: boolean }): string[] {
  const before = existsSync(lock) ? readFileSync(lock, 'utf8').trim() : '';
  try {
    db.pragma('locking_mode=EXCLUSIVE');
    db.run('BEGIN IMMEDIATE');
    if (isNew) db.run(SCHEMA);
    // What cannot be written is found now. And frames that were never acknowledged, of a commit that failed, are overwritten.
    db.run('UPDATE opened SET times = times + 1');
    db.run('COMMIT');
  } catch (error) {
    db.rollback();
    if (faultOf(error) !== 'locked') throw error;
    const by = before ? ` (${before})` : '';
    throw new StoreError(
      'locked',
      `${path}: expected to be the only process that has it open, got another${by}; end that, or name another file`,
    );
  }
  db.pragma('locking_mode=NORMAL');
  // The lock on the file is given back with the next look at it.
  db.prepare('SELECT CAST(times AS REAL) FROM opened').all();
  const me = identity();
  rmSync(lock, { force: true });
  writeFileSync(lock, `${me}\n`, { mode: 0o600, flag: 'wx' });
  return before === '' || before === me ? [] : [`${path} was left by a process that did not close it: ${before}`];
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
