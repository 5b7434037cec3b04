/** The driver, behind what the store needs of it: statements whose values are read with care, transactions, and what errors mean. */
import Database from 'libsql';
import { messageOf } from '../../protocol/json.ts';
import { StoreError, type StoreFault } from '../store.ts';

export type Value = number | Uint8Array | null;

export interface Statement {
  run(...values: readonly Value[]): number;
  all(...values: readonly Value[]): readonly SqlRow[];
}

/** A row as it was read. The columns of every query are cast: see {@link columns}. */
export type SqlRow = readonly unknown[];

/**
 * The columns of a query, cast to what they are: `b:` bytes, `n:` a number.
 *
 * The driver ends the process over text that is not UTF-8, and one bit of a record's head makes bytes a text. So nothing is
 * kept as text, and nothing is read without a cast. Numbers are read as REAL: a damaged one may be larger than the driver takes.
 */
export function columns(...names: readonly `${'b' | 'n'}:${string}`[]): string {
  return names.map((name) => `CAST(${name.slice(2)} AS ${name.startsWith('b:') ? 'BLOB' : 'REAL'})`).join(', ');
}

export class Db {
  readonly #open: Database.Database;
  #closed = false;

  constructor(path: string) {
    this.#open = new Database(path);
  }

  get #db(): Database.Database {
    this.#mustBeOpen();
    return this.#open;
  }

  /** The driver ends the process when it is asked after its end: so it is not asked. */
  #mustBeOpen(): void {
    if (this.#closed) throw new StoreError('closed', 'this connection is closed');
  }

  /** Runs SQL without values and without rows. */
  run(sql: string): void {
    this.#db.exec(sql);
  }

  /** A pragma, and the number that it answers with, if it does. */
  pragma(text: string): number | undefined {
    const statement = this.#db.prepare<unknown[]>(`PRAGMA ${text}`);
    if (!statement.reader) {
      // The driver would take one step of it, and leave it open: no transaction could end.
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
      // One list, always: the driver takes a single value that is an object for named ones, and ends the process.
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

  /** After some errors SQLite has rolled back itself; asking it again would hide what went wrong. */
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
/** A row is there that no key is known of: an index has changed, or a table. */
const CONSTRAINT = 19;
const FAULTS: Readonly<Record<number, StoreFault>> = {
  5: 'locked',
  6: 'locked',
  11: 'corrupt',
  [FULL]: 'full',
  [CONSTRAINT]: 'corrupt',
  26: 'foreign',
};

/** What an error means to whoever asked: those of the disk and all that nobody foresaw are `failed`. */
export function storeFaultOf(error: unknown): StoreFault {
  if (error instanceof StoreError) return error.fault;
  const code = rawCode(error);
  if (code === undefined) return 'failed';
  return code === NO_SHARED_MEMORY ? 'full' : (FAULTS[code & 0xff] ?? 'failed');
}

/** Whether the connection can be trusted no more. What the store itself has refused says nothing of the disk. */
export function isDisk(error: unknown): boolean {
  return !(error instanceof StoreError) && storeFaultOf(error) === 'failed';
}

function rawCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('rawCode' in error)) return undefined;
  return typeof error.rawCode === 'number' ? error.rawCode : undefined;
}

/** What the store says of an error, with what to do about it. */
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

/** A cell that is bytes. @throws {StoreError} `corrupt` */
export function bytes(cell: unknown, what: string): Uint8Array {
  if (cell instanceof Uint8Array) return cell;
  throw damaged(what);
}

export const string = (cell: unknown, what: string): string => sqlText(bytes(cell, what));

/** A cell that is a number. @throws {StoreError} `corrupt` */
export function number(cell: unknown, what: string): number {
  if (typeof cell === 'number') return cell;
  throw damaged(what);
}

/** A row that exists, because its key is known, and is not found. @returns what to throw */
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
