/** Actors, snapshots, replies, timers and dead letters in the file; each row has a checksum of all its data. */
import { ofCells } from '../../core/protocol/cell.ts';
import { type ChecksumPart, rowSum } from '../../core/store/checksum.ts';
import type { KnownKeys } from '../../core/store/known-keys.ts';
import type {
  ActorRow,
  DeadLetter,
  ListedRows,
  ListQuery,
  Stored,
  StoreError,
  TimerRow,
  TimersQuery,
} from '../../core/store/store.ts';
import { isStoredKind } from '../../core/store/stored-kind.ts';
import {
  bytes,
  bytesColumn,
  columns,
  type Db,
  damaged,
  missingRow,
  number,
  type SqlRow,
  type Statement,
  sqlText,
  string,
  type Value,
} from './sqlite-database.ts';

/** Whole rows. */
export const ACTOR_ROW = columns(
  'b:id',
  'b:kind',
  'b:name',
  'b:principal',
  'b:status',
  'n:created',
  'n:expires',
  'n:crc',
);
export const TIMER_ROW = columns('b:actor', 'b:timer', 'n:due', 'b:data', 'n:crc');
export const REPLY_ROW = columns('b:actor', 'b:request', 'b:data', 'n:expires', 'n:crc');

/** A reply that may be deleted: its place in a sweep, and its key. */
interface Expired {
  readonly row: number;
  readonly expires: number;
  readonly key: readonly [actor: Uint8Array, request: Uint8Array] | undefined;
}

/**
 * Rows that are found by their actor and a name. The key of each is in memory, so that a row that a damaged index does not
 * find counts as missing, and not as new.
 */
class NamedRows {
  readonly #keys: KnownKeys;
  readonly #one: 'reply' | 'timer';
  readonly #all: 'replies' | 'timers';
  readonly #sql: Readonly<Record<'insert' | 'update' | 'remove' | 'forget', Statement>>;

  constructor(
    keys: KnownKeys,
    one: 'reply' | 'timer',
    all: 'replies' | 'timers',
    sql: Readonly<Record<'insert' | 'update' | 'remove' | 'forget', Statement>>,
  ) {
    this.#keys = keys;
    this.#one = one;
    this.#all = all;
    this.#sql = sql;
  }

  has(actor: string, name: string): boolean {
    return this.#keys.has(this.#one, bytesColumn(actor), bytesColumn(name));
  }

  /** @throws {StoreError} `corrupt` if the row exists, but is not found */
  put(actor: string, name: string, ...values: readonly Value[]): void {
    const key = [bytesColumn(actor), bytesColumn(name)] as const;
    if (this.#keys.has(this.#one, ...key)) {
      if (this.#sql.update.run(...key, ...values) === 0) throw missingRow(`the ${this.#one} ${name} of ${actor}`);
      return;
    }
    this.#sql.insert.run(...key, ...values);
    this.#keys.add(this.#one, ...key);
    this.#keys.add(this.#all, key[0]);
  }

  /** @returns false if the row exists, but is not found */
  remove(actor: string, name: string): boolean {
    const key = [bytesColumn(actor), bytesColumn(name)] as const;
    if (!this.#keys.has(this.#one, ...key)) return true;
    if (this.#sql.remove.run(...key) === 0) return false;
    this.forgetKey(...key);
    return true;
  }

  /** The row with this key was deleted. */
  forgetKey(actor: Uint8Array, name: Uint8Array): void {
    this.#keys.remove(this.#one, actor, name);
    this.#keys.remove(this.#all, actor);
  }

  /** Deletes all rows of an actor. @throws {StoreError} `corrupt` if one of them is not found */
  forget(actor: string): void {
    const id = bytesColumn(actor);
    const count = this.#keys.count(this.#all, id);
    if (count === 0) return;
    const gone = this.#sql.forget.all(id);
    if (gone.length !== count) throw missingRow(`${count} ${this.#all} of ${actor}, only ${gone.length} found`);
    for (const [of, name] of gone) {
      mustBe([[of]], [id], `the ${this.#all} of ${actor}`);
      this.forgetKey(id, bytes(name, actor));
    }
  }
}

export class StateRows {
  readonly #sql: ReturnType<typeof statements>;
  readonly #keys: KnownKeys;
  /** The row and the snapshot of each actor, which the transaction writes at its end in one statement. */
  readonly #actors = new Map<string, ActorRow>();
  readonly #snapshots = new Map<string, { readonly version: string; readonly data: string }>();
  readonly #replies: NamedRows;
  readonly #timers: NamedRows;
  readonly #report: (what: string) => void;

  /** @param report receives rows that a list omits because they are damaged */
  constructor(db: Db, keys: KnownKeys, report: (what: string) => void) {
    this.#sql = statements(db);
    this.#keys = keys;
    this.#replies = new NamedRows(keys, 'reply', 'replies', this.#sql.reply);
    this.#timers = new NamedRows(keys, 'timer', 'timers', this.#sql.timer);
    this.#report = report;
  }

  /** Of several rows of an actor in one transaction, only the last is written. */
  actor(row: ActorRow): void {
    this.#actors.set(row.id, row);
  }

  /** Only the last snapshot of a transaction is written, too. */
  snapshot(actor: string, version: string, data: string): void {
    this.#snapshots.set(actor, { version, data });
  }

  /** Returns whether a reply has a row, found or not. */
  hasReply(actor: string, request: string): boolean {
    return this.#replies.has(actor, request);
  }

  /** An empty reply deletes the row. */
  reply(actor: string, request: string, data: string, expires: number): void {
    const body = bytesColumn(data);
    if (data !== '')
      return this.#replies.put(actor, request, body, expires, rowSum(['reply', actor, request, expires], body));
    // The row is no longer needed: if it is not found, that is no reason to reject the writes with it.
    if (!this.#replies.remove(actor, request)) this.#report(missingReply(actor, request).message);
  }

  /** Writes a row that fails its check: the data of this reply is damaged, and no lookup may miss the reply. */
  damagedReply(actor: string, request: string, expires: number): void {
    const body = bytesColumn('damaged');
    this.#replies.put(actor, request, body, expires, rowSum(['reply', actor, request, expires], body) + 1);
  }

  timer({ actor, timer, due, data }: TimerRow): void {
    const body = bytesColumn(data);
    this.#timers.put(actor, timer, due, body, rowSum(['timer', actor, timer, due], body));
  }

  timerOff(actor: string, timer: string): void {
    if (!this.#timers.remove(actor, timer)) throw missingRow(`the timer ${timer} of ${actor}`);
  }

  letter({ actor, mail, error, attempts, at, incident }: DeadLetter): void {
    const crc = rowSum(['dead letter', actor, mail, error, attempts, at, incident]);
    this.#sql.letter.run(...[actor, mail, error].map(bytesColumn), ...[attempts, at, bytesColumn(incident), crc]);
  }

  /** @throws {StoreError} `corrupt` if a known row is not found; the whole transaction then fails */
  forget(actor: string): void {
    this.#actors.delete(actor);
    this.#snapshots.delete(actor);
    const id = bytesColumn(actor);
    if (this.#keys.has('actor', id)) {
      mustBe(this.#sql.forget.all(id), [id], `the actor ${actor}`);
      this.#keys.remove('actor', id);
    }
    this.#replies.forget(actor);
    this.#timers.forget(actor);
  }

  /** Writes the deferred rows. */
  settle(): void {
    for (const [id, row] of this.#actors) {
      const snapshot = this.#snapshots.get(id);
      if (!snapshot) this.#put(id, this.#sql.actor, rowValues(row));
      else this.#put(id, this.#sql.whole, [...rowValues(row), ...snapshotValues(id, snapshot)]);
    }
    for (const [id, snapshot] of this.#snapshots)
      if (!this.#actors.has(id)) this.#put(id, this.#sql.snapshot, snapshotValues(id, snapshot));
    this.reset();
  }

  reset(): void {
    this.#actors.clear();
    this.#snapshots.clear();
  }

  #put(
    actor: string,
    { insert, update }: { readonly insert: Statement; readonly update: Statement },
    values: readonly Value[],
  ): void {
    const key = bytesColumn(actor);
    if (this.#keys.has('actor', key)) {
      if (update.run(key, ...values) === 0) throw missingRow(`the actor ${actor}`);
      return;
    }
    insert.run(key, ...values);
    this.#keys.add('actor', key);
  }

  /** @throws {StoreError} `corrupt` if a single bit is damaged, or the row exists but is not found */
  load(id: string): Stored | undefined {
    const key = bytesColumn(id);
    const [row] = this.#sql.load.all(key);
    if (!row && this.#keys.has('actor', key)) throw missingRow(`the actor ${id}`);
    // A snapshot alone is not an actor.
    if (!row || (row[1] === null && row[7] === null)) return undefined;
    const actor = readActorRow(row);
    if (actor.id !== id) throw damaged(`the actor ${id}`);
    const timers = this.#sql.timersOf.all(key).map(readTimer);
    if (timers.length !== this.#keys.count('timers', key)) throw missingRow(`a timer of ${id}`);
    return { actor, snapshot: readSnapshot(id, row.slice(8)), timers };
  }

  list({ kind, name, principal, cells, after, limit }: ListQuery): ListedRows {
    const rows: ActorRow[] = [];
    const isAsked = ofCells(cells);
    const unsound: string[] = [];
    let from: readonly [number, Uint8Array] = [after?.created ?? Number.MIN_SAFE_INTEGER, bytesColumn(after?.id ?? '')];
    for (;;) {
      const page =
        principal === undefined
          ? this.#sql.ofKind.all(bytesColumn(kind), ...from, limit)
          : this.#sql.ofPrincipal.all(bytesColumn(principal), bytesColumn(kind), ...from, limit);
      for (const row of page) {
        const actor = this.#sound(row, readActorRow);
        if (!actor && row[0] instanceof Uint8Array) unsound.push(sqlText(row[0]));
        if (!actor || rows.length >= limit || !isAsked(actor.id)) continue;
        if (name === undefined || actor.name === name) rows.push(actor);
      }
      const last = page.at(-1);
      if (rows.length >= limit || page.length < limit || !last) return { rows, damaged: unsound };
      from = [number(last[5], 'an actor'), bytes(last[0], 'an actor')];
    }
  }

  /** @throws {StoreError} `corrupt` if a single bit is damaged, or the row exists but is not found */
  replyTo(actor: string, request: string): string | undefined {
    const key = [bytesColumn(actor), bytesColumn(request)] as const;
    const [row] = this.#sql.replyTo.all(...key);
    const what = `the reply to ${request} of ${actor}`;
    if (!row && this.#keys.has('reply', ...key)) throw missingReply(actor, request);
    if (!row) return undefined;
    const data = bytes(row[0], what);
    checked(row[2], ['reply', actor, request, number(row[1], what)], what, data);
    return sqlText(data);
  }

  /** One process owns the file with all cells, so a query for some of them may read all timers that are due. */
  timers({ until, limit, after, cells, prefix }: TimersQuery): readonly TimerRow[] {
    const due: TimerRow[] = [];
    const isAsked = ofCells(cells);
    let from = [
      after?.due ?? Number.MIN_SAFE_INTEGER,
      bytesColumn(after?.actor ?? ''),
      bytesColumn(after?.timer ?? ''),
    ];
    for (;;) {
      const page =
        prefix === undefined
          ? this.#sql.due.all(until, ...from, limit)
          : this.#sql.dueOf.all(bytesColumn(prefix), bytesColumn(`${prefix}\u{10FFFF}`), until, ...from, limit);
      for (const row of page) {
        const timer = this.#sound(row, readTimer);
        if (timer && due.length < limit && isAsked(timer.actor)) due.push(timer);
      }
      const last = page.at(-1);
      if (due.length >= limit || page.length < limit || !last) return due;
      from = [number(last[2], 'a timer'), bytes(last[0], 'a timer'), bytes(last[1], 'a timer')];
    }
  }

  letters(limit: number): readonly DeadLetter[] {
    return this.#all([...this.#sql.letters.all(limit)].reverse(), readLetter);
  }

  /**
   * Actors that have expired by then, after this one, up to the limit. The row itself decides, in case a damaged index
   * lists it too early.
   */
  expired(until: number, after: readonly [number, string], limit: number): readonly ActorRow[] {
    return this.#all(this.#sql.expired.all(until, after[0], bytesColumn(after[1]), limit), (row) => {
      const actor = readActorRow(row);
      if (actor.expires === undefined || actor.expires > until) throw damaged(`the actor ${actor.id}`);
      return actor;
    });
  }

  /**
   * Deletes replies that have expired by then, after this one. @returns the last reply that was checked; undefined when
   * there are no more
   */
  sweepReplies(until: number, after: readonly [number, number], limit: number): readonly [number, number] | undefined {
    const rows = this.#sql.expiredReplies.all(until, ...after, limit).map((row) => this.#expired(row));
    this.#drop(rows.filter(({ expires }) => expires <= until));
    const last = rows.at(-1);
    return last && rows.length === limit ? [last.expires, last.row] : undefined;
  }

  /** Number of replies. */
  replies(): number {
    return number(this.#sql.replies.all()[0]?.[0], 'the number of replies');
  }

  /** Deletes the replies that expire first. */
  sweepFirst(count: number): void {
    this.#drop(this.#sql.firstReplies.all(count).map((row) => this.#expired(row)));
  }

  sweepCrowds(maxActorReplies: number, maxLetters: number): void {
    for (const [actor] of this.#sql.crowded.all(maxActorReplies)) {
      const key = bytes(actor, 'a reply');
      this.#drop(this.#sql.crowd.all(key, maxActorReplies).map((row) => this.#expired(row)));
    }
    this.#sql.dropLetters.run(maxLetters);
  }

  /** Deletes a row that an index finds only if it matches its checksum. */
  #drop(rows: readonly Expired[]): void {
    for (const { row, key } of rows) {
      if (key && this.#sql.dropReply.run(row) > 0) this.#replies.forgetKey(...key);
    }
  }

  #expired([row, ...reply]: SqlRow): Expired {
    const place = { row: number(row, 'a reply'), expires: number(reply[3], 'a reply') };
    return { ...place, key: this.#sound(reply, readReply) };
  }

  /** One damaged row must not hide all the others from the server. */
  #all<T>(rows: readonly SqlRow[], read: (row: SqlRow) => T): readonly T[] {
    return rows.map((row) => this.#sound(row, read)).filter((row) => row !== undefined);
  }

  #sound<T>(row: SqlRow, read: (row: SqlRow) => T): T | undefined {
    try {
      return read(row);
    } catch (error) {
      this.#report(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }
}

function rowValues({ id, kind, name, principal, status, created, expires }: ActorRow): readonly Value[] {
  const crc = rowSum(['actor', id, kind, name, principal, status, created, expires]);
  return [...[kind, name, principal, status].map(bytesColumn), created, expires ?? null, crc];
}

function snapshotValues(actor: string, { version, data }: NonNullable<Stored['snapshot']>): readonly Value[] {
  const body = bytesColumn(data);
  return [bytesColumn(version), body, rowSum(['snapshot', actor, version], body)];
}

function missingReply(actor: string, request: string): StoreError {
  return missingRow(`the reply to ${request} of ${actor}`);
}

/** Verifies, by keys, that a statement changed exactly the intended row. @throws {StoreError} `corrupt` */
function mustBe(rows: readonly SqlRow[], key: readonly Uint8Array[], what: string): void {
  const [row] = rows;
  if (!row) throw missingRow(what);
  for (const [index, part] of key.entries())
    if (Buffer.compare(bytes(row[index], what), part) !== 0) throw damaged(what);
}

function statements(db: Db) {
  const listed = 'AND (created, id) > (?, ?) ORDER BY created, id LIMIT ?';
  const reply = `${columns('n:rowid')}, ${REPLY_ROW}`;
  // An index finds the row, and the row itself must have the key, so a damaged index changes no other row.
  const actor = 'rowid = (SELECT rowid FROM actor WHERE id = ?1) AND +id = ?1';
  const named = 'rowid = (SELECT rowid FROM reply WHERE actor = ?1 AND request = ?2) AND +actor = ?1 AND +request = ?2';
  return {
    actor: {
      insert: db.prepare(
        'INSERT INTO actor(id, kind, name, principal, status, created, expires, crc) VALUES(?, ?, ?, ?, ?, ?, ?, ?)',
      ),
      update: db.prepare(
        `UPDATE actor SET kind = ?2, name = ?3, principal = ?4, status = ?5, created = ?6, expires = ?7, crc = ?8 WHERE ${actor}`,
      ),
    },
    whole: {
      insert: db.prepare(
        'INSERT INTO actor(id, kind, name, principal, status, created, expires, crc, version, snapshot, snapshot_crc) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      ),
      update: db.prepare(
        `UPDATE actor SET kind = ?2, name = ?3, principal = ?4, status = ?5, created = ?6, expires = ?7, crc = ?8, version = ?9, snapshot = ?10, snapshot_crc = ?11 WHERE ${actor}`,
      ),
    },
    snapshot: {
      insert: db.prepare('INSERT INTO actor(id, version, snapshot, snapshot_crc) VALUES(?, ?, ?, ?)'),
      update: db.prepare(`UPDATE actor SET version = ?2, snapshot = ?3, snapshot_crc = ?4 WHERE ${actor}`),
    },
    forget: db.prepare(`DELETE FROM actor WHERE id = ? RETURNING ${columns('b:id')}`),
    reply: {
      insert: db.prepare('INSERT INTO reply(actor, request, data, expires, crc) VALUES(?, ?, ?, ?, ?)'),
      update: db.prepare(`UPDATE reply SET data = ?3, expires = ?4, crc = ?5 WHERE ${named}`),
      remove: db.prepare(`DELETE FROM reply WHERE ${named}`),
      forget: db.prepare(`DELETE FROM reply WHERE actor = ? RETURNING ${columns('b:actor', 'b:request')}`),
    },
    timer: {
      insert: db.prepare('INSERT INTO timer(actor, timer, due, data, crc) VALUES(?, ?, ?, ?, ?)'),
      update: db.prepare('UPDATE timer SET due = ?3, data = ?4, crc = ?5 WHERE actor = ?1 AND timer = ?2'),
      remove: db.prepare('DELETE FROM timer WHERE actor = ? AND timer = ?'),
      forget: db.prepare(`DELETE FROM timer WHERE actor = ? RETURNING ${columns('b:actor', 'b:timer')}`),
    },
    letter: db.prepare(
      'INSERT INTO dead_letter(actor, mail, error, attempts, at, incident, crc) VALUES(?, ?, ?, ?, ?, ?, ?)',
    ),
    load: db.prepare(
      `SELECT ${ACTOR_ROW}, ${columns('b:version', 'b:snapshot', 'n:snapshot_crc')} FROM actor WHERE id = ?`,
    ),
    timersOf: db.prepare(`SELECT ${TIMER_ROW} FROM timer WHERE actor = ?`),
    ofKind: db.prepare(`SELECT ${ACTOR_ROW} FROM actor WHERE kind = ? ${listed}`),
    ofPrincipal: db.prepare(`SELECT ${ACTOR_ROW} FROM actor WHERE principal = ? AND kind = ? ${listed}`),
    replyTo: db.prepare(`SELECT ${columns('b:data', 'n:expires', 'n:crc')} FROM reply WHERE actor = ? AND request = ?`),
    due: db.prepare(
      `SELECT ${TIMER_ROW} FROM timer WHERE due <= ? AND (due, actor, timer) > (?, ?, ?) ORDER BY due, actor, timer LIMIT ?`,
    ),
    // The ids choose the rows: the index of dates has all other actors, too.
    dueOf: db.prepare(
      `SELECT ${TIMER_ROW} FROM timer WHERE actor >= ? AND actor <= ? AND +due <= ? AND (+due, actor, timer) > (?, ?, ?) ORDER BY +due, actor, timer LIMIT ?`,
    ),
    letters: db.prepare(
      `SELECT ${columns('b:actor', 'b:mail', 'b:error', 'n:attempts', 'n:at', 'b:incident', 'n:crc')} FROM dead_letter ORDER BY g DESC LIMIT ?`,
    ),
    expired: db.prepare(
      `SELECT ${ACTOR_ROW} FROM actor WHERE expires <= ? AND (expires, id) > (?, ?) ORDER BY expires, id LIMIT ?`,
    ),
    expiredReplies: db.prepare(
      `SELECT ${reply} FROM reply WHERE expires <= ? AND (expires, rowid) > (?, ?) ORDER BY expires, rowid LIMIT ?`,
    ),
    replies: db.prepare(`SELECT ${columns('n:count(*)')} FROM reply`),
    firstReplies: db.prepare(`SELECT ${reply} FROM reply ORDER BY expires LIMIT ?`),
    crowded: db.prepare(`SELECT ${columns('b:actor')} FROM reply GROUP BY actor HAVING count(*) > ?`),
    crowd: db.prepare(`SELECT ${reply} FROM reply WHERE actor = ? ORDER BY expires DESC LIMIT -1 OFFSET ?`),
    dropReply: db.prepare('DELETE FROM reply WHERE rowid = ?'),
    dropLetters: db.prepare('DELETE FROM dead_letter WHERE g <= (SELECT max(g) FROM dead_letter) - ?'),
  };
}

function checked(crc: unknown, parts: readonly ChecksumPart[], what: string, data?: Uint8Array): void {
  if (rowSum(parts, data) !== crc) throw damaged(what);
}

export function readActorRow(row: SqlRow): ActorRow {
  const id = string(row[0], 'an actor');
  const [kind, name, principal, status] = [1, 2, 3, 4].map((index) => string(row[index], id));
  const created = number(row[5], id);
  const expires = row[6] === null ? undefined : number(row[6], id);
  checked(row[7], ['actor', id, kind, name, principal, status, created, expires], `the actor ${id}`);
  if (kind === undefined || !isStoredKind(kind)) throw damaged(`the actor ${id}`);
  return { id, kind, name: name ?? '', principal: principal ?? '', status: status ?? '', created, expires };
}

function readSnapshot(actor: string, row: SqlRow): Stored['snapshot'] {
  if (row.every((cell) => cell === null)) return undefined;
  const what = `the snapshot of ${actor}`;
  const version = string(row[0], what);
  const data = bytes(row[1], what);
  checked(row[2], ['snapshot', actor, version], what, data);
  return { version, data: sqlText(data) };
}

/** @returns its key. @throws {StoreError} `corrupt` */
export function readReply(row: SqlRow): readonly [actor: Uint8Array, request: Uint8Array] {
  const key = [bytes(row[0], 'a reply'), bytes(row[1], 'a reply')] as const;
  const [actor, request] = [sqlText(key[0]), sqlText(key[1])];
  const what = `the reply to ${request} of ${actor}`;
  checked(row[4], ['reply', actor, request, number(row[3], what)], what, bytes(row[2], what));
  return key;
}

export function readTimer(row: SqlRow): TimerRow {
  const actor = string(row[0], 'a timer');
  const what = `a timer of ${actor}`;
  const timer = string(row[1], what);
  const due = number(row[2], what);
  const data = bytes(row[3], what);
  checked(row[4], ['timer', actor, timer, due], what, data);
  return { actor, timer, due, data: sqlText(data) };
}

function readLetter(row: SqlRow): DeadLetter {
  const what = 'a dead letter';
  const [actor, mail, error, incident] = [0, 1, 2, 5].map((index) => string(row[index], what));
  const [attempts, at] = [number(row[3], what), number(row[4], what)];
  checked(row[6], ['dead letter', actor, mail, error, attempts, at, incident], what);
  return { actor: actor ?? '', mail: mail ?? '', error: error ?? '', attempts, at, incident: incident ?? '' };
}
