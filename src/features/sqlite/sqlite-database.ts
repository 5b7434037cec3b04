/**
 * The SQLite driver, reduced to what the store needs: statements with checked values, transactions, and the meaning of
 * errors.
 */
import { pathToFileURL } from 'node:url';
import Database from 'libsql';
import { messageOf } from '../../core/protocol/json.ts';
import { StoreError, type StoreFault } from '../../core/store/store.ts';

export type Value = number | Uint8Array | null;

export interface Statement {
  /** @returns the number of changed rows */
  run(...values: readonly Value[]): number;
  all(...values: readonly Value[]): readonly SqlRow[];
}

/** A row as read. The columns of every query are cast: see {@link columns}. */
export type SqlRow = readonly unknown[];

/**
 * The columns of a query, cast to their types: `b:` bytes, `n:` a number.
 *
 * The driver aborts the process on text that is not UTF-8, and one bit of a record's header turns bytes into text. So
 * the store writes no text and reads nothing without a cast. It reads numbers as REAL, because a damaged one may exceed
 * the driver's range.
 */
export function columns(...names: readonly `${'b' | 'n'}:${string}`[]): string {
  return names.map((name) => `CAST(${name.slice(2)} AS ${name.startsWith('b:') ? 'BLOB' : 'REAL'})`).join(', ');
}

export class Db {
  readonly #open: Database.Database;
  /** The name of the file in SQL. A statement that names no schema finds the tables of either. */
  readonly schema: 'main' | 'store';
  #closed = false;

  constructor(path: string, schema: 'main' | 'store' = 'main') {
    this.#open = new Database(path);
    this.schema = schema;
  }

  /**
   * A connection that never writes: SQLite neither replays the log into the file nor deletes the log when the connection closes.
   * The file is attached to an empty database, because only `DETACH` releases the file while the driver holds statements.
   */
  static readOnly(file: string, lockMs: number): Db {
    const db = new Db(':memory:', 'store');
    try {
      db.pragma(`busy_timeout=${lockMs}`);
      db.pragma('cell_size_check=ON');
      const uri = `${pathToFileURL(file).href}?mode=ro`.replaceAll("'", "''");
      db.run(`ATTACH '${uri}' AS store`);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  }

  /** Ends a connection of {@link readOnly}. */
  detach(): void {
    try {
      this.rollback();
      this.run('DETACH store');
    } catch {
      // The file stays attached until the thread ends, and the error of the check is the one to report.
    }
    this.close();
  }

  get #db(): Database.Database {
    this.#mustBeOpen();
    return this.#open;
  }

  /** The driver aborts the process when it is used after close, so check first. */
  #mustBeOpen(): void {
    if (this.#closed) throw new StoreError('closed', 'this connection is closed');
  }

  /** Runs SQL without values and without rows. */
  run(sql: string): void {
    this.#db.exec(sql);
  }

  /** Runs a pragma. @returns the number in its result, if any */
  pragma(text: string): number | undefined {
    const statement = this.#db.prepare<unknown[]>(`PRAGMA ${text}`);
    if (!statement.reader) {
      // The driver would step it once and leave it open, and no transaction could end.
      this.run(`PRAGMA ${text}`);
      return undefined;
    }
    const row: unknown = statement.raw().all([])[0];
    const value: unknown = Array.isArray(row) ? row[0] : undefined;
    return typeof value === 'number' ? value : undefined;
  }

  prepare(sql: string): Statement {
    const statement = this.#db.prepare<unknown[]>(sql);
    const rows = /^SELECT|\bRETURNING\b/.test(sql) ? this.#db.prepare<unknown[]>(sql).raw() : undefined;
    return {
      // Always pass one list: the driver treats a single object as named values and aborts the process.
      run: (...values) => {
        this.#mustBeOpen();
        return statement.run(values).changes;
      },
      all: (...values) => {
        this.#mustBeOpen();
        return (rows?.all(values) ?? []).filter((row): row is unknown[] => Array.isArray(row));
      },
    };
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction;
  }

  /** After some errors SQLite has already rolled back; a second rollback would hide the original error. */
  rollback(): void {
    if (this.inTransaction) this.run('ROLLBACK');
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#open.close();
  }
}

/** The errors of SQLite by number (sqlite.org/rescode.html). */
const FULL = 13;
const NO_SHARED_MEMORY = 4874;
/** A row exists whose key is unknown: an index or a table has changed. */
const CONSTRAINT = 19;
const FAULTS: Readonly<Record<number, StoreFault>> = {
  5: 'locked',
  6: 'locked',
  11: 'corrupt',
  [FULL]: 'full',
  [CONSTRAINT]: 'corrupt',
  26: 'foreign',
};

/** The fault for an error: errors of the disk and all unforeseen errors are `failed`. */
export function storeFaultOf(error: unknown): StoreFault {
  if (error instanceof StoreError) return error.fault;
  const code = rawCode(error);
  if (code === undefined) return 'failed';
  return code === NO_SHARED_MEMORY ? 'full' : (FAULTS[code & 0xff] ?? 'failed');
}

/** Returns whether the connection must be abandoned. Rejections by the store itself do not mean that the disk failed. */
export function isDisk(error: unknown): boolean {
  return !(error instanceof StoreError) && storeFaultOf(error) === 'failed';
}

function rawCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('rawCode' in error)) return undefined;
  return typeof error.rawCode === 'number' ? error.rawCode : undefined;
}

/** The store's message for an error, with a fix. */
export function explainFault(error: unknown, path: string): string {
  if (error instanceof StoreError) return error.message;
  const said = `${messageOf(error)}${rawCode(error) === undefined ? '' : ` (SQLite ${rawCode(error)})`}`;
  switch (storeFaultOf(error)) {
    case 'full':
      return `${path} cannot grow: ${said}. Free disk space, or raise maxBytes. Writes then succeed again without a restart`;
    case 'locked':
      return `${path} is being written by another program: ${said}. Stop that program, or wait for it`;
    case 'corrupt':
      return `${path} is damaged: ${said}. Restore a backup`;
    case 'foreign':
      return `${path}: expected a store of this package, got a file that is not an SQLite database. Name another file`;
    default:
      return `${path} cannot be used: ${said}. Check its disk`;
  }
}

export const sqlText = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
export const bytesColumn = (text: string): Uint8Array => Buffer.from(text);

/** A cell that contains bytes. @throws {StoreError} `corrupt` */
export function bytes(cell: unknown, what: string): Uint8Array {
  if (cell instanceof Uint8Array) return cell;
  throw damaged(what);
}

export const string = (cell: unknown, what: string): string => sqlText(bytes(cell, what));

/** A cell that contains a number. @throws {StoreError} `corrupt` */
export function number(cell: unknown, what: string): number {
  if (typeof cell === 'number') return cell;
  throw damaged(what);
}

/** A row that exists, because its key is known, but is not found. @returns the error to throw */
export function missingRow(what: string): StoreError {
  return new StoreError(
    'corrupt',
    `${what}: the row exists, but the damaged file no longer finds it. It is neither served nor written. Restore a backup`,
  );
}

export function damaged(what: string): StoreError {
  return new StoreError(
    'corrupt',
    `${what}: the stored data differs from what was written and is not served. Restore a backup`,
  );
}
