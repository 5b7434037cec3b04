/** Actors, snapshots, replies, timers and dead letters in the file; each row has a checksum of all that is in it. */
import { type Part, rowSum } from './checksum.ts';
import { bytes, bytesOf, columns, type Db, damaged, number, type Row, string, textOf } from './sqlite-database.ts';
import type { ActorRow, DeadLetter, ListQuery, Stored, StoredKind, TimerRow } from './store.ts';

const ACTOR = columns('b:id', 'b:kind', 'b:name', 'b:principal', 'b:status', 'n:created', 'n:expires', 'n:crc');
const TIMER = columns('b:actor', 'b:timer', 'n:due', 'b:data', 'n:crc');
const KINDS: Readonly<Record<StoredKind, true>> = {
  handle: true,
  session: true,
  task: true,
  question: true,
  server: true,
};

/** Replies that are remembered to have been written. */
const MAX_MARKED = 10_000;

export class SqliteRows {
  readonly #sql: ReturnType<typeof statements>;
  readonly #snapshots = new Map<string, { readonly version: string; readonly data: string }>();
  readonly #report: (what: string) => void;
  /** When replies that were written a while ago expire. What is missing here costs time only. */
  readonly #marked = new Map<string, number>();

  /** @param report hears of rows that a list leaves out, because they are not as they were written */
  constructor(db: Db, report: (what: string) => void) {
    this.#sql = statements(db);
    this.#report = report;
  }

  actor({ id, kind, name, principal, status, created, expires }: ActorRow): void {
    const crc = rowSum(['actor', id, kind, name, principal, status, created, expires]);
    const texts = [id, kind, name, principal, status].map(bytesOf);
    this.#sql.actor.run(...texts, created, expires ?? null, crc);
  }

  /** Of several in one transaction, only the last is written. */
  snapshot(actor: string, version: string, data: string): void {
    this.#snapshots.set(actor, { version, data });
  }

  /** One without data is let go of. */
  reply(actor: string, request: string, data: string, expires: number): void {
    const key = `${actor} ${request}`;
    if (data === '') {
      this.#marked.delete(key);
      this.#sql.replyOff.run(bytesOf(actor), bytesOf(request));
      return;
    }
    const body = bytesOf(data);
    const crc = rowSum(['reply', actor, request, expires], body);
    // A call is written twice: as begun, and with its result. Where it expires as before, its indexes need not be touched.
    const again = this.#marked.get(key) === expires;
    if (again && this.#sql.replyAgain.run(body, crc, bytesOf(actor), bytesOf(request), expires) === 1) {
      this.#marked.delete(key);
      return;
    }
    this.#sql.reply.run(bytesOf(actor), bytesOf(request), body, expires, crc);
    if (this.#marked.size >= MAX_MARKED) this.#marked.clear();
    this.#marked.set(key, expires);
  }

  timer({ actor, timer, due, data }: TimerRow): void {
    const body = bytesOf(data);
    this.#sql.timer.run(bytesOf(actor), bytesOf(timer), due, body, rowSum(['timer', actor, timer, due], body));
  }

  timerOff(actor: string, timer: string): void {
    this.#sql.timerOff.run(bytesOf(actor), bytesOf(timer));
  }

  letter({ actor, mail, error, attempts, at, incident }: DeadLetter): void {
    const crc = rowSum(['dead letter', actor, mail, error, attempts, at, incident]);
    this.#sql.letter.run(bytesOf(actor), bytesOf(mail), bytesOf(error), attempts, at, bytesOf(incident), crc);
  }

  forget(actor: string): void {
    this.#snapshots.delete(actor);
    for (const statement of this.#sql.forget) statement.run(bytesOf(actor));
  }

  /** Writes what was held back. */
  settle(): void {
    for (const [actor, { version, data }] of this.#snapshots) {
      const body = bytesOf(data);
      this.#sql.snapshot.run(bytesOf(actor), bytesOf(version), body, rowSum(['snapshot', actor, version], body));
    }
    this.#snapshots.clear();
  }

  reset(): void {
    this.#snapshots.clear();
  }

  /** @throws {StoreError} `corrupt` if one bit of it is not as it was written */
  load(id: string): Stored | undefined {
    const [row] = this.#sql.load.all(bytesOf(id));
    if (!row) return undefined;
    const actor = readActor(row);
    if (actor.id !== id) throw damaged(`the actor ${id}`);
    const timers = this.#sql.timersOf.all(bytesOf(id)).map(readTimer);
    return { actor, snapshot: readSnapshot(id, row.slice(8)), timers };
  }

  list({ kind, name, principal, after, limit }: ListQuery): readonly ActorRow[] {
    const rows: ActorRow[] = [];
    let from: readonly [number, Uint8Array] = [after?.created ?? Number.MIN_SAFE_INTEGER, bytesOf(after?.id ?? '')];
    for (;;) {
      const page =
        principal === undefined
          ? this.#sql.ofKind.all(bytesOf(kind), ...from, limit)
          : this.#sql.ofPrincipal.all(bytesOf(principal), bytesOf(kind), ...from, limit);
      for (const row of page) {
        const actor = this.#sound(row, readActor);
        if (actor && (name === undefined || actor.name === name) && rows.length < limit) rows.push(actor);
      }
      const last = page.at(-1);
      if (rows.length >= limit || page.length < limit || !last) return rows;
      from = [number(last[5], 'an actor'), bytes(last[0], 'an actor')];
    }
  }

  /** @throws {StoreError} `corrupt` */
  replyTo(actor: string, request: string): string | undefined {
    const [row] = this.#sql.replyTo.all(bytesOf(actor), bytesOf(request));
    if (!row) return undefined;
    const what = `the reply to ${request} of ${actor}`;
    const data = bytes(row[0], what);
    checked(row[2], ['reply', actor, request, number(row[1], what)], what, data);
    return textOf(data);
  }

  timers(until: number, limit: number): readonly TimerRow[] {
    return this.#all(this.#sql.due.all(until, limit), readTimer);
  }

  letters(limit: number): readonly DeadLetter[] {
    return this.#all([...this.#sql.letters.all(limit)].reverse(), readLetter);
  }

  /** Actors that expired until then: so many, after that one. */
  expired(until: number, after: readonly [number, string], limit: number): readonly ActorRow[] {
    return this.#all(this.#sql.expired.all(until, after[0], bytesOf(after[1]), limit), readActor);
  }

  /** @returns how many were let go: less than `limit` when there are no more */
  sweepReplies(until: number, limit: number): number {
    return this.#sql.dropReplies.run(until, limit);
  }

  /** How many there are. */
  replies(): number {
    return number(this.#sql.replies.all()[0]?.[0], 'the number of replies');
  }

  /** Lets go of those that expire first. */
  sweepFirst(count: number): void {
    this.#sql.dropFirst.run(count);
  }

  sweepCrowds(maxActorReplies: number, maxLetters: number): void {
    for (const [actor] of this.#sql.crowded.all(maxActorReplies)) {
      const key = bytes(actor, 'a reply');
      this.#sql.dropCrowd.run(key, key, maxActorReplies);
    }
    this.#sql.dropLetters.run(maxLetters);
  }

  /** One damaged row must not keep a server from all the others. */
  #all<T>(rows: readonly Row[], read: (row: Row) => T): readonly T[] {
    return rows.map((row) => this.#sound(row, read)).filter((row) => row !== undefined);
  }

  #sound<T>(row: Row, read: (row: Row) => T): T | undefined {
    try {
      return read(row);
    } catch (error) {
      this.#report(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }
}

function statements(db: Db) {
  const listed = 'AND (created, id) > (?, ?) ORDER BY created, id LIMIT ?';
  return {
    actor: db.prepare(
      `INSERT INTO actor(id, kind, name, principal, status, created, expires, crc) VALUES(?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT(id) DO UPDATE SET kind = excluded.kind, name = excluded.name, principal = excluded.principal,
       status = excluded.status, created = excluded.created, expires = excluded.expires, crc = excluded.crc`,
    ),
    snapshot: db.prepare(
      `INSERT INTO actor(id, version, snapshot, snapshot_crc) VALUES(?, ?, ?, ?)
       ON CONFLICT(id) DO UPDATE SET version = excluded.version, snapshot = excluded.snapshot, snapshot_crc = excluded.snapshot_crc`,
    ),
    reply: db.prepare(
      'INSERT INTO reply VALUES(?, ?, ?, ?, ?) ON CONFLICT(actor, request) DO UPDATE SET data = excluded.data, expires = excluded.expires, crc = excluded.crc',
    ),
    replyAgain: db.prepare('UPDATE reply SET data = ?, crc = ? WHERE actor = ? AND request = ? AND expires = ?'),
    replyOff: db.prepare('DELETE FROM reply WHERE actor = ? AND request = ?'),
    timer: db.prepare('INSERT OR REPLACE INTO timer VALUES(?, ?, ?, ?, ?)'),
    timerOff: db.prepare('DELETE FROM timer WHERE actor = ? AND timer = ?'),
    letter: db.prepare(
      'INSERT INTO dead_letter(actor, mail, error, attempts, at, incident, crc) VALUES(?, ?, ?, ?, ?, ?, ?)',
    ),
    forget: ['actor WHERE id', 'reply WHERE actor', 'timer WHERE actor'].map((which) =>
      db.prepare(`DELETE FROM ${which} = ?`),
    ),
    load: db.prepare(
      `SELECT ${ACTOR}, ${columns('b:version', 'b:snapshot', 'n:snapshot_crc')} FROM actor WHERE id = ? AND kind IS NOT NULL`,
    ),
    timersOf: db.prepare(`SELECT ${TIMER} FROM timer WHERE actor = ?`),
    ofKind: db.prepare(`SELECT ${ACTOR} FROM actor WHERE kind = ? ${listed}`),
    ofPrincipal: db.prepare(`SELECT ${ACTOR} FROM actor WHERE principal = ? AND kind = ? ${listed}`),
    replyTo: db.prepare(`SELECT ${columns('b:data', 'n:expires', 'n:crc')} FROM reply WHERE actor = ? AND request = ?`),
    due: db.prepare(`SELECT ${TIMER} FROM timer WHERE due <= ? ORDER BY due LIMIT ?`),
    letters: db.prepare(
      `SELECT ${columns('b:actor', 'b:mail', 'b:error', 'n:attempts', 'n:at', 'b:incident', 'n:crc')} FROM dead_letter ORDER BY g DESC LIMIT ?`,
    ),
    expired: db.prepare(
      `SELECT ${ACTOR} FROM actor WHERE expires <= ? AND (expires, id) > (?, ?) ORDER BY expires, id LIMIT ?`,
    ),
    dropReplies: db.prepare(
      'DELETE FROM reply WHERE rowid IN (SELECT rowid FROM reply WHERE expires <= ? ORDER BY expires LIMIT ?)',
    ),
    replies: db.prepare(`SELECT ${columns('n:count(*)')} FROM reply`),
    dropFirst: db.prepare('DELETE FROM reply WHERE rowid IN (SELECT rowid FROM reply ORDER BY expires LIMIT ?)'),
    crowded: db.prepare(`SELECT ${columns('b:actor')} FROM reply GROUP BY actor HAVING count(*) > ?`),
    dropCrowd: db.prepare(
      'DELETE FROM reply WHERE actor = ? AND rowid NOT IN (SELECT rowid FROM reply WHERE actor = ? ORDER BY expires DESC LIMIT ?)',
    ),
    dropLetters: db.prepare('DELETE FROM dead_letter WHERE g <= (SELECT max(g) FROM dead_letter) - ?'),
  };
}

function checked(crc: unknown, parts: readonly Part[], what: string, data?: Uint8Array): void {
  if (rowSum(parts, data) !== crc) throw damaged(what);
}

function isKind(text: string): text is StoredKind {
  return Object.hasOwn(KINDS, text);
}

function readActor(row: Row): ActorRow {
  const id = string(row[0], 'an actor');
  const [kind, name, principal, status] = [1, 2, 3, 4].map((index) => string(row[index], id));
  const created = number(row[5], id);
  const expires = row[6] === null ? undefined : number(row[6], id);
  checked(row[7], ['actor', id, kind, name, principal, status, created, expires], `the actor ${id}`);
  if (kind === undefined || !isKind(kind)) throw damaged(`the actor ${id}`);
  return { id, kind, name: name ?? '', principal: principal ?? '', status: status ?? '', created, expires };
}

function readSnapshot(actor: string, row: Row): Stored['snapshot'] {
  if (row.every((cell) => cell === null)) return undefined;
  const what = `the snapshot of ${actor}`;
  const version = string(row[0], what);
  const data = bytes(row[1], what);
  checked(row[2], ['snapshot', actor, version], what, data);
  return { version, data: textOf(data) };
}

function readTimer(row: Row): TimerRow {
  const actor = string(row[0], 'a timer');
  const what = `a timer of ${actor}`;
  const timer = string(row[1], what);
  const due = number(row[2], what);
  const data = bytes(row[3], what);
  checked(row[4], ['timer', actor, timer, due], what, data);
  return { actor, timer, due, data: textOf(data) };
}

function readLetter(row: Row): DeadLetter {
  const what = 'a dead letter';
  const [actor, mail, error, incident] = [0, 1, 2, 5].map((index) => string(row[index], what));
  const [attempts, at] = [number(row[3], what), number(row[4], what)];
  checked(row[6], ['dead letter', actor, mail, error, attempts, at, incident], what);
  return { actor: actor ?? '', mail: mail ?? '', error: error ?? '', attempts, at, incident: incident ?? '' };
}
