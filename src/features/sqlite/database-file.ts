/** Opens the file of a store: checks its owner, format and tables, and creates a new one. */
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { makeDirectory } from '../../core/kernel/files/make-directory.ts';
import { KnownKeys } from '../../core/store/known-keys.ts';
import { StoreError } from '../../core/store/store.ts';
import { CommitMark, type Marked } from './commit-mark.ts';
import { displacedText, FileIdentity, fileIdOf } from './file-identity.ts';
import { NO_PACKS } from './reply-packs.ts';
import { type CheckedFile, checkFile } from './sqlite-check.ts';
import { columns, Db, isDisk, number, type SqlRow, storeFaultOf } from './sqlite-database.ts';
import type { ThreadStart } from './sqlite-protocol.ts';

/** The application id in the file's header: "Trou". */
const APPLICATION = 0x54726f75;
const FORMAT = 1;
const PAGE = 4096;
/** The minimum size of an SQLite database. */
const LEAST_BYTES = 512;
/**
 * Number of pages in the log before they are written back to the file. With 4,000, the acknowledgement that waits for
 * this takes three times as long.
 */
const LOG_PAGES = 1_000;

// A snapshot is in the row of its actor, so that a damaged index cannot hide one and show the other.
// Each transaction rewrites the row of `opened`, so that every log contains the id of the store.
// Rows of one stream are far apart in `event`, which grows only at its end: a quarter of the time of a table by stream
// and seq.
// Rows of `pack` grow only at their end and are deleted from their start, and need no index.
const SCHEMA = `
CREATE TABLE opened(times INTEGER NOT NULL, id INTEGER NOT NULL);
INSERT INTO opened VALUES(0, abs(random() % 281474976710655));
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
CREATE INDEX timer_due ON timer(due, actor, timer);
CREATE TABLE dead_letter(g INTEGER PRIMARY KEY, actor BLOB NOT NULL, mail BLOB NOT NULL, error BLOB NOT NULL,
  attempts INTEGER NOT NULL, at REAL NOT NULL, incident BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE pack(n INTEGER PRIMARY KEY, keys BLOB NOT NULL, data BLOB NOT NULL, copy BLOB NOT NULL);
PRAGMA application_id = ${APPLICATION};
PRAGMA user_version = ${FORMAT};`;

/** Runs in each transaction: counts all transactions, as {@link CommitMark} does. */
export const COUNT_COMMIT = 'UPDATE opened SET times = times + 1';

export interface OpenedDatabase extends CheckedFile {
  readonly db: Db;
  readonly mark: CommitMark;
  readonly identity: FileIdentity;
  /** Messages for the operator, such as the previous process. */
  readonly notes: readonly string[];
  /** Closes the file. */
  release(): void;
}

/** A file of the store was removed or replaced while this process had it open. */
export class Displaced extends StoreError {
  constructor(message: string) {
    super('failed', message);
  }
}

/**
 * Opens the file, or creates it.
 *
 * @throws {Displaced} if the file is not the one that the previous thread had open
 * @throws {StoreError} `locked`, `foreign`, `corrupt`; otherwise SQLite's error
 */
export function openFile({ path, options, readOnly, snapshot, database }: ThreadStart): OpenedDatabase {
  const file = resolve(path);
  if (snapshot) return openSnapshot(file, path, options.lockMs);
  const there = database === undefined ? undefined : fileIdOf(file);
  if (database !== there) throw new Displaced(displacedText(path, '', there));
  const lock = `${file}.lock`;
  const mark = new CommitMark(`${file}-mark`);
  mustNotBeCut(file, path, mark);
  if (!existsSync(file)) create(file);
  mustBePrivate(file, path);
  const before = inspect({ file, path, lock, mark, lockMs: options.lockMs, readOnly });
  const db = new Db(file);
  try {
    db.pragma(`busy_timeout=${options.lockMs}`);
    db.pragma('cell_size_check=ON');
    const isNew = ours(db, path, mark);
    if (readOnly) {
      db.pragma('query_only=ON');
      const checked = before ?? checkFile(db, path, false);
      return { db, mark, identity: new FileIdentity(file, path), ...checked, notes: [], release: () => {} };
    }
    chmodSync(file, 0o600);
    if (isNew) db.pragma('auto_vacuum=INCREMENTAL');
    db.pragma('journal_mode=WAL');
    // Power may fail: a commit is on the disk when it returns.
    db.pragma('synchronous=FULL');
    db.pragma(`wal_autocheckpoint=${LOG_PAGES}`);
    db.pragma(`journal_size_limit=${4 * LOG_PAGES * PAGE}`);
    db.pragma('trusted_schema=OFF');
    db.pragma(`max_page_count=${Math.floor(options.maxBytes / PAGE)}`);
    const owned = own(db, { file, path, lock, isNew, mark, before });
    const release = (): void => {
      mark.close();
      rmSync(lock, { force: true });
    };
    return { db, mark, identity: new FileIdentity(file, path), ...owned, release };
  } catch (error) {
    mark.close();
    db.close();
    throw error;
  }
}

/**
 * Opens the file as it is now. One transaction contains all reads, so SQLite shows the same state to each of them, whatever another
 * process writes, and nothing is written.
 */
function openSnapshot(file: string, path: string, lockMs: number): OpenedDatabase {
  const mark = new CommitMark(`${file}-mark`);
  mustNotBeCut(file, path, mark);
  const db = Db.readOnly(file, lockMs);
  try {
    db.run('BEGIN');
    if (ours(db, path, mark)) throw new StoreError('foreign', `${path}: expected a store, got an empty file`);
    mustHaveTables(db, path);
    return {
      ...{ db, mark, identity: new FileIdentity(file, path), notes: [], release: () => {} },
      ...checkFile(db, path, false),
    };
  } catch (error) {
    db.detach();
    if (storeFaultOf(error) === 'locked') throw lockedBy(path, `${file}.lock`);
    throw error;
  }
}

/** The files of a store. */
const SUFFIXES = ['', '-wal', '-shm', '-journal', '-mark', '-notes', '.lock'];

/**
 * Rejects a directory in which every user may replace the file. In one with the sticky bit, such as /tmp, users remove their own
 * files only, and may have put one in the place of the store before. Groups may share a directory: volumes of containers belong to
 * one.
 *
 * @param user the user of this process
 * @throws {StoreError} `foreign`
 */
export function mustBePrivate(file: string, path: string, user = process.geteuid?.()): void {
  const directory = dirname(file);
  const { mode } = statSync(directory);
  if (process.platform === 'win32' || (mode & 0o002) === 0) return;
  if ((mode & 0o1000) !== 0) {
    for (const suffix of SUFFIXES) {
      const owner = lstatSync(`${file}${suffix}`, { throwIfNoEntry: false })?.uid;
      if (owner === undefined || owner === user) continue;
      throw new StoreError(
        'foreign',
        `${path}${suffix} belongs to the user ${owner}, in a directory in which every user may create files. Choose another directory, which only you may write to`,
      );
    }
    return;
  }
  throw new StoreError(
    'foreign',
    `${path}: every user may write to the directory ${directory} (mode ${(mode & 0o7777).toString(8)}), and could replace the store. Remove that permission (chmod o-w ${directory}), or choose another directory`,
  );
}

function create(file: string): void {
  makeDirectory(dirname(file), 0o700);
  // Log and index get the same mode. Never open an existing file here: closing it would drop SQLite's locks on it.
  closeSync(openSync(file, 'ax', 0o600));
}

/**
 * SQLite treats a file truncated to nothing as a new one. The mark and the log beside it show that it is not new.
 *
 * @throws {StoreError} `corrupt`, `foreign`
 */
function mustNotBeCut(file: string, path: string, mark: CommitMark): void {
  // Read the mark before the size, because a process that creates a file writes the mark last.
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

/** The contents of a store at its check without writes. */
interface Inspection extends CheckedFile {
  readonly commits: number;
  readonly stamp: string;
}

interface Inspected {
  readonly file: string;
  readonly path: string;
  readonly lock: string;
  readonly mark: CommitMark;
  readonly lockMs: number;
  readonly readOnly: boolean;
}

/**
 * Checks a store through a connection that cannot write, so that a rejected start changes no file: a connection that can write
 * replays the log into the file when it closes, and deletes the log.
 *
 * @returns undefined for a new file, and for a file whose creation was interrupted: SQLite must undo that first
 * @throws {StoreError} `locked`, `foreign`, `corrupt`; otherwise what SQLite throws
 */
function inspect({ file, path, lock, mark, lockMs, readOnly }: Inspected): Inspection | undefined {
  // Before the file is read: a process that has the store open writes the mark after each transaction.
  const marked = mark.read();
  if (sizeOf(file) === 0) return undefined;
  if (marked === 'absent' && (sizeOf(`${file}-journal`) ?? 0) > 0) return undefined;
  const stamp = stampOf(file);
  let db: Db | undefined;
  try {
    db = Db.readOnly(file, lockMs);
    db.run('BEGIN');
    if (ours(db, path, mark)) return undefined;
    const commits = commitsIn(db, path);
    if (!readOnly) mustHaveAll(db, commits, marked, path, mark);
    mustHaveTables(db, path);
    return { ...checkFile(db, path, false), commits, stamp };
  } catch (error) {
    if (storeFaultOf(error) === 'locked') throw lockedBy(path, lock);
    if (isDisk(error) && String(error).includes('text encoding')) throw notUtf8(path, marked);
    throw error;
  } finally {
    db?.detach();
  }
}

/** Changes when a program writes to the file or its log. An empty log is none: SQLite creates it for a reader. */
function stampOf(file: string): string {
  return [file, `${file}-wal`]
    .map((name) => {
      const { size, mtimeNs, ino } = statSync(name, { bigint: true, throwIfNoEntry: false }) ?? { size: 0n };
      return size === 0n ? '' : `${size} ${mtimeNs} ${ino}`;
    })
    .join(', ');
}

function notUtf8(path: string, marked: Marked): StoreError {
  return marked === 'absent'
    ? new StoreError(
        'foreign',
        `${path}: expected a store of this package, got another program's SQLite database; name another file`,
      )
    : new StoreError('corrupt', `${path} is damaged: its header names another text encoding. Restore a backup`);
}

function lockedBy(path: string, lock: string): StoreError {
  const owner = existsSync(lock) ? readFileSync(lock, 'utf8').trim() : '';
  const by = owner ? ` (${owner})` : '';
  return new StoreError(
    'locked',
    `${path}: another process has the store open${by}. Stop that process, or name another file`,
  );
}

/** Returns true for an empty file, false for a store of ours. @throws {StoreError} `foreign`, `corrupt` */
function ours(db: Db, path: string, mark: CommitMark): boolean {
  const application = db.pragma(`${db.schema}.application_id`);
  const version = db.pragma(`${db.schema}.user_version`) ?? 0;
  const isEmpty = db.pragma(`${db.schema}.schema_version`) === 0;
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
  if (!isEmpty && version !== FORMAT)
    throw new StoreError(
      'foreign',
      `${path}: expected a store of format ${FORMAT}, got format ${version}, which another version of this package wrote. Use that version, or name another file`,
    );
  return isEmpty;
}

/** @throws {StoreError} `corrupt` if a table or an index of the store differs from its definition */
function mustHaveTables(db: Db, path: string): void {
  const scheme = (schema: string): string =>
    `SELECT ${columns('b:type', 'b:name', 'b:tbl_name', 'b:sql')} FROM ${schema}.sqlite_schema`;
  const made = new Db(':memory:');
  made.run(SCHEMA);
  const inWords = (row: SqlRow): string =>
    row.map((cell) => (cell instanceof Uint8Array ? cell.toString() : '')).join(' ');
  const found = new Set(db.prepare(scheme(db.schema)).all().map(inWords));
  const lost = made
    .prepare(scheme('main'))
    .all()
    .map(inWords)
    .find((words) => !found.has(words));
  made.close();
  if (lost !== undefined)
    throw new StoreError('corrupt', `${path} is damaged: it has no ${lost.split(' (')[0]}. Restore a backup`);
}

interface Owning extends Pick<Inspected, 'file' | 'path' | 'lock' | 'mark'> {
  readonly isNew: boolean;
  readonly before: Inspection | undefined;
}

interface Owned extends CheckedFile {
  readonly notes: readonly string[];
}

/**
 * Makes this process the only writer. SQLite's own lock decides, which ends with its process in any case: a connection
 * that is alone on its file can lock it exclusively for a moment and then admit readers again. The lock file identifies
 * the process. Nothing is written before the file was checked.
 */
function own(db: Db, { file, path, lock, isNew, mark, before: inspection }: Owning): Owned {
  let before = '';
  let checked: CheckedFile = { keys: new KnownKeys(), packs: NO_PACKS, damage: [] };
  const notes: string[] = [];
  let commits = 0;
  try {
    db.pragma('locking_mode=EXCLUSIVE');
    db.run('BEGIN IMMEDIATE');
    // Only now: the last owner may have closed the file while this process waited for it.
    before = existsSync(lock) ? readFileSync(lock, 'utf8').trim() : '';
    if (isNew) db.run(SCHEMA);
    commits = commitsIn(db, path);
    if (!isNew) {
      const marked = mark.read();
      mustHaveAll(db, commits, marked, path, mark);
      if (marked === 'unreadable')
        notes.push(
          `${mark.path} is unreadable, so lost transactions in ${path} cannot be detected. The store writes a new mark`,
        );
      if (typeof marked === 'object' && !marked.whole)
        notes.push(
          `${mark.path} is damaged: a part of it is unreadable, so a lost transaction in ${path} may not be detected. The store writes a new mark`,
        );
      mustHaveTables(db, path);
      const same = inspection && inspection.commits === commits && inspection.stamp === stampOf(file);
      checked = same && inspection.damage.length === 0 ? inspection : checkFile(db, path, true);
    }
    // Detect an unwritable file now. This also overwrites unacknowledged frames of a failed commit.
    db.run(COUNT_COMMIT);
    db.run('COMMIT');
  } catch (error) {
    db.rollback();
    if (storeFaultOf(error) !== 'locked') throw error;
    throw lockedBy(path, lock);
  }
  mark.begin(commits + 1, storeIdOf(db, path));
  db.pragma('locking_mode=NORMAL');
  // The next read releases the exclusive lock on the file.
  commitsIn(db, path);
  const me = identity();
  rmSync(lock, { force: true });
  writeFileSync(lock, `${me}\n`, { mode: 0o600, flag: 'wx' });
  if (before !== '' && before !== me) notes.push(`${path} was not closed by its last process: ${before}`);
  return { ...checked, notes };
}

/** The id of the store, which its mark has, too. @throws {StoreError} `corrupt` */
function storeIdOf(db: Db, path: string): string {
  const [row] = db.prepare(`SELECT ${columns('n:id')} FROM opened`).all();
  return number(row?.[0], `the id of ${path}`).toString(16).padStart(12, '0');
}

/** The number of transactions in the file. @throws {StoreError} `corrupt` */
function commitsIn(db: Db, path: string): number {
  const [row] = db.prepare(`SELECT ${columns('n:times')} FROM opened`).all();
  return number(row?.[0], `the transaction count of ${path}`);
}

/** @throws {StoreError} `corrupt` if the file has fewer transactions than were acknowledged */
function mustHaveAll(db: Db, commits: number, marked: Marked, path: string, mark: CommitMark): void {
  if (typeof marked === 'string') return;
  const id = storeIdOf(db, path);
  if (marked.store !== undefined && marked.store !== id)
    throw new StoreError(
      'corrupt',
      `${path} is not the store of its mark: ${mark.path} belongs to store ${marked.store}, the file is store ${id}; another store's file or log is in its place. Restore a backup, or, to continue with the existing data, remove ${mark.path}`,
    );
  if (marked.commits <= commits) return;
  throw new StoreError(
    'corrupt',
    `${path} has lost ${marked.commits - commits} acknowledged transactions: ${mark.path} counts ${marked.commits}, the file has ${commits}; its log ${path}-wal is damaged or was removed, or the file is an older copy. Restore a backup, or, to continue with the existing data, remove ${mark.path}`,
  );
}

/** The identity of this process: its id, the boot of the machine, and the start of the process since then. */
function identity(): string {
  const parts = [`pid ${process.pid}`];
  try {
    parts.push(`boot ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`);
    // The 22nd field; the fields before it may contain spaces, in parentheses.
    const stat = readFileSync('/proc/self/stat', 'utf8');
    parts.push(`started ${stat.slice(stat.lastIndexOf(')')).split(' ')[20] ?? 'unknown'}`);
  } catch {
    // Only Linux provides this. Elsewhere the process id is enough, because the lock file is informational only.
  }
  return parts.join(', ');
}
