/** The store of grants in a file: sealed entries that survive the process, and one refresher across processes. */

import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Clock, systemClock, type Timer } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { makeDirectory } from '../../core/kernel/files/make-directory.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { KeyRing } from '../../core/store/seal.ts';
import { checkDirectory, codeOf, isWindows } from '../../core/transports/socket-path.ts';
import type { Db, SqlRow } from '../../features/sqlite/sqlite-database.ts';
import { type TokenStore, Turns } from './token-store.ts';

export interface FileTokensOptions {
  readonly clock?: Clock;
  /** Milliseconds after which the lease of a process that does not renew it is free. Default 15,000. */
  readonly leaseMs?: number;
  /** Milliseconds that a process waits for the lease of another. A person may be signing in there. Default 330,000. */
  readonly waitMs?: number;
}

/** `waitMs` is more than the time that `oauth` gives a person to sign in. */
const TIMES = { leaseMs: 15_000, waitMs: 330_000 } as const;
const ROWS: option.Rows<FileTokensOptions> = { ...option.ofDefaults(TIMES), clock: option.clock };
/** A lease is renewed this many times before it would expire. */
const RENEWALS = 3;
/** Milliseconds between two looks at the lease of another process. */
const LOOK_MS = 25;
/** Milliseconds that one statement waits while another process writes. */
const LOCK_MS = 5_000;

/** The application id in the file's header: "TrTo". */
const APPLICATION = 0x5472546f;
const VERSION = 1;
const SCHEMA = `
CREATE TABLE entry(key BLOB PRIMARY KEY, sealed BLOB NOT NULL);
CREATE TABLE lease(key BLOB PRIMARY KEY, holder BLOB NOT NULL, renewals INTEGER NOT NULL, expires REAL NOT NULL);
PRAGMA application_id = ${APPLICATION};
PRAGMA user_version = ${VERSION};`;

/** A lease as another process holds it. */
interface Lease {
  readonly holder: string;
  readonly renewals: number;
  /** Milliseconds since 1970. */
  readonly expires: number;
}

/**
 * Keeps grants and registrations in an SQLite file, sealed with a key in the file `PATH.key` beside it (docs/security.md,
 * "Stored tokens"). Several processes may share it. Both files have mode 0600; the directory is created with 0700.
 *
 * @param path the file; it is created with the first entry
 * @throws {TypeError | RangeError} for an empty path, or a number that is not a whole number of at least 1. The methods
 *   throw an Error for a directory that other users may write to, a file that is no token file, and a missing or wrong key
 * @example const auth = oauth({ tokens: fileTokens('/home/ada/.local/state/desk/tokens.db') });
 */
export function fileTokens(path: string, options: FileTokensOptions = {}): TokenStore {
  if (typeof path !== 'string' || path === '') throw new TypeError('fileTokens: expected the path of a file, got none');
  option.check('fileTokens: ', options, ROWS);
  const { clock = systemClock, leaseMs, waitMs } = { ...TIMES, ...option.withoutUndefined(options) };
  return new FileTokens(resolve(path), clock, leaseMs, waitMs);
}

class FileTokens implements TokenStore {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #waitMs: number;
  /** The calls of this process for each key: one of them at a time competes for the lease. */
  readonly #turns = new Turns();

  constructor(path: string, clock: Clock, leaseMs: number, waitMs: number) {
    this.#path = path;
    this.#clock = clock;
    this.#leaseMs = leaseMs;
    this.#waitMs = waitMs;
  }

  async get(key: string): Promise<string | undefined> {
    if (!existsSync(this.#path)) return undefined;
    return this.#with((db, ring) => entryOf(db, ring, key, this.#path));
  }

  async replace(key: string, expected: string | undefined, value: string | undefined): Promise<boolean> {
    return this.#with((db, ring) =>
      writing(db, () => {
        if (entryOf(db, ring, key, this.#path) !== expected) return false;
        if (value === undefined) db.prepare('DELETE FROM entry WHERE key = ?').run(bytes(key));
        else
          db.prepare('INSERT OR REPLACE INTO entry VALUES(?, ?)').run(bytes(key), bytes(ring.seal(value, scope(key))));
        return true;
      }),
    );
  }

  exclusive<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#turns.run(key, () => this.#leased(key, work));
  }

  async #leased<T>(key: string, work: () => Promise<T>): Promise<T> {
    const holder = randomBytes(12).toString('base64url');
    // Timers do not keep the process alive, and the caller waits for them.
    const hold = this.#clock.hold();
    try {
      await this.#acquire(key, holder);
      let renewal: Timer | undefined;
      let working = true;
      const renew = (): void => {
        if (!working) return;
        renewal = this.#clock.after(Math.ceil(this.#leaseMs / RENEWALS), () => {
          // A failed renewal is repeated with the next one. If all fail, the lease expires, and `replace` compares.
          this.#renew(key, holder).then(renew, renew);
        });
      };
      renew();
      try {
        return await work();
      } finally {
        working = false;
        renewal?.cancel();
        await this.#with((db) => {
          db.prepare('DELETE FROM lease WHERE key = ? AND holder = ?').run(bytes(key), bytes(holder));
        });
      }
    } finally {
      hold.cancel();
    }
  }

  async #acquire(key: string, holder: string): Promise<void> {
    const start = this.#clock.now();
    let seen: { readonly lease: Lease; readonly since: number } | undefined;
    for (;;) {
      const dead = seen && this.#clock.now() - seen.since >= this.#leaseMs ? seen.lease : undefined;
      const other = await this.#take(key, holder, dead);
      if (!other) return;
      const now = this.#clock.now();
      if (!seen || seen.lease.holder !== other.holder || seen.lease.renewals !== other.renewals)
        seen = { lease: other, since: now };
      if (now - start >= this.#waitMs)
        throw new Error(
          `another process is signing in to, or refreshing the token of, ${key}, and did not finish within ${durationOf(this.#waitMs)}. Try again`,
        );
      await new Promise<void>((looks) => void this.#clock.after(LOOK_MS, looks));
    }
  }

  /**
   * Takes the lease if it is free.
   *
   * @param dead a lease that has not changed for its whole time: its holder is gone, even if the wall clock was set back
   * @returns the lease of another process; undefined if this one has it now
   */
  #take(key: string, holder: string, dead: Lease | undefined): Promise<Lease | undefined> {
    return this.#with((db) =>
      writing(db, () => {
        const now = this.#clock.date();
        const lease = leaseOf(db, key);
        const gone = dead !== undefined && lease?.holder === dead.holder && lease.renewals === dead.renewals;
        if (lease && lease.expires > now && !gone) return lease;
        db.prepare('INSERT OR REPLACE INTO lease VALUES(?, ?, 0, ?)').run(
          bytes(key),
          bytes(holder),
          now + this.#leaseMs,
        );
        return undefined;
      }),
    );
  }

  async #renew(key: string, holder: string): Promise<void> {
    await this.#with((db) => {
      db.prepare('UPDATE lease SET renewals = renewals + 1, expires = ? WHERE key = ? AND holder = ?').run(
        this.#clock.date() + this.#leaseMs,
        bytes(key),
        bytes(holder),
      );
    });
  }

  /** Opens the file for one piece of work: a client reads it seldom, and a person may remove it at any time. */
  async #with<T>(work: (db: Db, ring: KeyRing) => T): Promise<T> {
    const [{ Db }, { KeyRing }] = await Promise.all([
      import('../../features/sqlite/sqlite-database.ts'),
      import('../../core/store/seal.ts'),
    ]);
    createFiles(this.#path, () => KeyRing.randomSecret());
    const db = new Db(this.#path);
    try {
      db.pragma(`busy_timeout=${LOCK_MS}`);
      prepareTables(db, this.#path);
      return work(db, new KeyRing([readKey(this.#path)]));
    } finally {
      db.close();
    }
  }
}

/** Creates the directory, the key and the file, and checks that no other user may write or read them. @throws {Error} */
function createFiles(path: string, newSecret: () => string): void {
  const directory = dirname(path);
  makeDirectory(directory, 0o700);
  try {
    checkDirectory(directory);
  } catch (error) {
    throw new Error(
      `fileTokens: expected a directory that only you may write to, got ${directory}. Choose another one, or remove the permission (chmod go-w ${directory})`,
      { cause: error },
    );
  }
  if (!existsSync(path)) {
    createKey(`${path}.key`, newSecret);
    // Before SQLite creates it with the usual mode. Its journal gets the mode of the file.
    closeSync(openSync(path, 'a', 0o600));
  }
  if (isWindows) return;
  for (const file of [path, `${path}.key`]) {
    const found = lstatSync(file, { throwIfNoEntry: false });
    if (!found) continue;
    if (!found.isFile()) throw new Error(`fileTokens: ${file}: expected a file, got something else. Remove it`);
    const user = process.getuid?.();
    if (found.uid !== user)
      throw new Error(`fileTokens: ${file} belongs to the user ${found.uid}, and you are ${user}. Choose another path`);
    if ((found.mode & 0o077) !== 0) chmodSync(file, 0o600);
  }
}

/** Creates the key once, whole: of two processes at the same time, the second uses the key of the first. */
function createKey(file: string, newSecret: () => string): void {
  if (existsSync(file)) return;
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  writeFileSync(draft, `${newSecret()}\n`, { mode: 0o600, flag: 'wx', flush: true });
  try {
    linkSync(draft, file);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function readKey(path: string): string {
  if (!statSync(`${path}.key`, { throwIfNoEntry: false }))
    throw new Error(
      `fileTokens: the key ${path}.key is missing, so ${path} cannot be read. Remove it, and sign in again`,
    );
  return readFileSync(`${path}.key`, 'utf8').trim();
}

function prepareTables(db: Db, path: string): void {
  if (db.pragma('user_version') === VERSION && db.pragma('application_id') === APPLICATION) return;
  writing(db, () => {
    // Another process may have been faster.
    const [version = 0, application = 0] = [db.pragma('user_version'), db.pragma('application_id')];
    if (version === VERSION && application === APPLICATION) return;
    if (version !== 0 || application !== 0)
      throw new Error(
        `fileTokens: ${path} is no token file of this version (application ${application}, version ${version}). Choose another path`,
      );
    db.run(SCHEMA);
  });
}

/** Runs a transaction that holds the write lock from its start. */
function writing<T>(db: Db, work: () => T): T {
  db.run('BEGIN IMMEDIATE');
  try {
    const result = work();
    db.run('COMMIT');
    return result;
  } catch (error) {
    db.rollback();
    throw error;
  }
}

function entryOf(db: Db, ring: KeyRing, key: string, path: string): string | undefined {
  const [row] = db.prepare('SELECT CAST(sealed AS BLOB) FROM entry WHERE key = ?').all(bytes(key));
  const sealed = row && textIn(row, 0);
  if (sealed === undefined) return undefined;
  const opened = ring.open(sealed, scope(key));
  if (opened.ok && typeof opened.payload === 'string') return opened.payload;
  throw new Error(
    `fileTokens: an entry of ${path} cannot be opened with ${path}.key (${opened.ok ? 'misshapen' : opened.why}). Remove both files, and sign in again`,
  );
}

function leaseOf(db: Db, key: string): Lease | undefined {
  const [row] = db
    .prepare('SELECT CAST(holder AS BLOB), CAST(renewals AS REAL), CAST(expires AS REAL) FROM lease WHERE key = ?')
    .all(bytes(key));
  const holder = row && textIn(row, 0);
  if (!row || holder === undefined) return undefined;
  return { holder, renewals: Number(row[1]), expires: Number(row[2]) };
}

/** The entry opens only under its own key: a moved row does not become the token of another server. */
function scope(key: string): readonly string[] {
  return ['troupe tokens', key];
}

function bytes(text: string): Uint8Array {
  return Buffer.from(text, 'utf8');
}

function textIn(row: SqlRow, column: number): string | undefined {
  const value = row[column];
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : undefined;
}
