/**
 * The newest replies: in memory, and in the file as one pack for each transaction, until they move to rows of their own.
 */
import { StoreError } from '../../core/store/store.ts';
import { type PackedReply, packColumns, type ReadPack, readPack } from './reply-pack.ts';
import { columns, type Db, damaged } from './sqlite-database.ts';
import type { StateRows } from './state-rows.ts';

/**
 * Maximum number of bytes in packs. A server whose sessions are busy deletes most replies before their pack is the
 * oldest, so that few of them ever need a row.
 */
const MAX_BYTES = 8 * 1024 ** 2;
/**
 * Packs beyond the limit leave until they take so much less, so that not every transaction changes the pages at both
 * ends of the table and the list of free pages.
 */
const SLACK_BYTES = MAX_BYTES / 16;
/** Longer replies get a row at once. In characters. */
const MAX_LENGTH = 16 * 1024;

/** The packs of a file, oldest first. */
export interface StoredPacks {
  readonly packs: readonly ReadPack[];
  /** The damage, for the operator. */
  readonly damage: readonly string[];
}

export const NO_PACKS: StoredPacks = { packs: [], damage: [] };

/** A reply in memory. Without data, its data on the disk is damaged. */
interface Held extends PackedReply {
  /** True while it is the newest state of its request. */
  current: boolean;
}

interface Pack {
  readonly n: number;
  readonly bytes: number;
  /** Its replies without the deleted ones. */
  readonly replies: readonly Held[];
}

/** A change of the open transaction, and what it replaced. */
interface Change {
  readonly actor: string;
  readonly request: string;
  readonly before: Held | undefined;
  readonly after: Held | undefined;
  /** True if the pack of this transaction contains it; false if the reply moves to a row. */
  readonly packed: boolean;
}

/**
 * Reads the packs of a file.
 *
 * @throws {StoreError} `corrupt` if a pack is missing, or if the names of its replies are unreadable: no lookup could be
 * trusted
 */
export function readPacks(db: Db, path: string): StoredPacks {
  const rows = db.prepare(`SELECT ${columns('n:n', 'b:keys', 'b:data', 'b:copy')} FROM pack ORDER BY n`).all();
  const packs: ReadPack[] = [];
  const damage: string[] = [];
  for (const row of rows) {
    const pack = readPack(row);
    const last = packs.at(-1);
    if (!pack || (last && pack.n !== last.n + 1))
      throw new StoreError(
        'corrupt',
        `${path} is damaged: ${pack ? `a pack of replies before number ${pack.n} is missing` : `the names in pack ${String(row[0])} of replies are unreadable`}. The store does not open, because it could report a stored reply as unknown. Restore a backup`,
      );
    packs.push(pack);
    if (!pack.sound)
      damage.push(
        `${path}: pack ${pack.n} of replies differs from what was written. Its damaged replies are not served. Restore a backup`,
      );
  }
  return { packs, damage };
}

/** All replies of a store: those in packs, and those in rows. */
export class ReplyPacks {
  readonly #sql: ReturnType<typeof statements>;
  readonly #rows: StateRows;
  /** By actor, then by request. */
  readonly #replies = new Map<string, Map<string, Held>>();
  /** The actor of the last lookup, and its replies. */
  #actor = '';
  #ofActor: Map<string, Held> | undefined;
  /** Oldest first. Only the oldest pack is deleted: an older state of a reply never outlives a newer one. */
  #packs: Pack[] = [];
  #bytes = 0;
  /** The number of the next pack. */
  #next = 1;
  #changes: Change[] = [];
  /** The packs that the open transaction has deleted. */
  #gone: Pack[] = [];
  /** True if the open transaction has written its pack. */
  #written = false;

  constructor(db: Db, rows: StateRows, stored: StoredPacks) {
    this.#sql = statements(db);
    this.#rows = rows;
    for (const { n, bytes, replies } of stored.packs) {
      const held: Held[] = [];
      for (const { actor, request, data, expires } of replies) {
        const before = this.#held(actor, request);
        const after = data === '' ? undefined : { actor, request, data, expires, current: false };
        if (after) held.push(after);
        this.#put(actor, request, before, after);
      }
      this.#add({ n, bytes, replies: held });
      this.#next = n + 1;
    }
  }

  /** Number of changes in the open transaction: a position for {@link undo}. */
  get position(): number {
    return this.#changes.length;
  }

  get isEmpty(): boolean {
    return this.#packs.length === 0;
  }

  /** The number of the newest pack. */
  get newest(): number {
    return this.#next - 1;
  }

  /**
   * Stores a reply; an empty one is deleted. A reply is in a pack or in a row, never in both: one that has a row keeps
   * it.
   *
   * @throws {StoreError} `corrupt` if its row exists but is not found
   */
  reply(actor: string, request: string, data: string, expires: number): void {
    const held = this.#held(actor, request);
    const packed =
      data !== '' && data.length <= MAX_LENGTH && (held !== undefined || !this.#rows.hasReply(actor, request));
    if (packed) return this.#change(actor, request, held, { actor, request, data, expires, current: false }, true);
    if (held) this.#change(actor, request, held, undefined, true);
    if (!held || data !== '') this.#rows.reply(actor, request, data, expires);
  }

  /** @throws {StoreError} `corrupt` if the reply is damaged, or exists but is not found */
  replyTo(actor: string, request: string): string | undefined {
    const held = this.#held(actor, request);
    if (!held) return this.#rows.replyTo(actor, request);
    if (held.data === undefined) throw damaged(`the reply to ${request} of ${actor}`);
    return held.data;
  }

  /** Deletes all replies of an actor that are in packs. */
  forget(actor: string): void {
    for (const [request, held] of [...(this.#of(actor) ?? [])]) this.#change(actor, request, held, undefined, true);
  }

  /** Writes the pack of this transaction, and moves the replies of the oldest packs beyond the limit to rows. */
  write(): void {
    const packed: PackedReply[] = [];
    const replies: Held[] = [];
    for (const change of this.#changes) {
      if (!change.packed) continue;
      const { actor, request, after } = change;
      packed.push(after ?? { actor, request, expires: 0, data: '' });
      if (after) replies.push(after);
    }
    if (packed.length === 0) return;
    const { keys, data } = packColumns(packed);
    this.#sql.insert.run(this.#next, keys, data, keys);
    this.#written = true;
    this.#add({ n: this.#next, bytes: 2 * keys.length + data.length, replies });
    if (this.#bytes <= MAX_BYTES) return;
    while (this.#bytes > MAX_BYTES - SLACK_BYTES) this.#moveOldest(Number.NEGATIVE_INFINITY);
    this.#drop();
  }

  /**
   * Moves replies to rows, pack by pack, the oldest first.
   *
   * @param upto the number of the last pack to move
   * @param now replies that have expired by then are deleted
   * @param limit number of replies after which it stops
   * @returns whether there are more such packs
   */
  move(upto: number, now: number, limit = Number.POSITIVE_INFINITY): boolean {
    for (let moved = 0; moved < limit && this.#isDue(upto); ) moved += this.#moveOldest(now);
    this.#drop();
    return this.#isDue(upto);
  }

  /** The transaction is durable. */
  keep(): void {
    if (this.#written) this.#next += 1;
    this.#settled();
  }

  /** The changes of the transaction since a position were rolled back. */
  undo(position: number): void {
    for (const { actor, request, before, after } of this.#changes.splice(position).reverse())
      this.#put(actor, request, after, before);
  }

  /** The transaction was rolled back. */
  reset(): void {
    this.undo(0);
    this.#packs.unshift(...this.#gone);
    for (const { bytes } of this.#gone) this.#bytes += bytes;
    // Its own pack is the newest.
    if (this.#written) this.#bytes -= this.#packs.pop()?.bytes ?? 0;
    this.#settled();
  }

  #settled(): void {
    this.#changes = [];
    this.#gone = [];
    this.#written = false;
  }

  #isDue(upto: number): boolean {
    const [oldest] = this.#packs;
    return oldest !== undefined && oldest.n <= upto;
  }

  /** @returns the number of replies that were in the pack; some of them may have newer states */
  #moveOldest(now: number): number {
    const pack = this.#packs.shift();
    if (!pack) return 0;
    this.#bytes -= pack.bytes;
    this.#gone.push(pack);
    for (const held of pack.replies) {
      if (!held.current) continue;
      const { actor, request } = held;
      this.#change(actor, request, held, undefined, false);
      if (held.expires <= now) continue;
      if (held.data === undefined) this.#rows.damagedReply(actor, request, held.expires);
      else this.#rows.reply(actor, request, held.data, held.expires);
    }
    return pack.replies.length;
  }

  /** Deletes the rows of the packs that have moved. */
  #drop(): void {
    const last = this.#gone.at(-1);
    if (last) this.#sql.drop.run(last.n);
  }

  #held(actor: string, request: string): Held | undefined {
    return this.#of(actor)?.get(request);
  }

  #change(actor: string, request: string, before: Held | undefined, after: Held | undefined, packed: boolean): void {
    this.#changes.push({ actor, request, before, after, packed });
    this.#put(actor, request, before, after);
  }

  #put(actor: string, request: string, before: Held | undefined, after: Held | undefined): void {
    if (before) before.current = false;
    if (after) after.current = true;
    const of = this.#of(actor);
    if (!after) {
      if (of?.delete(request) && of.size === 0) this.#forgetActor(actor);
    } else if (of) of.set(request, after);
    else this.#replies.set(actor, new Map([[request, after]]));
  }

  /** Most replies follow one of the same actor. */
  #of(actor: string): Map<string, Held> | undefined {
    if (actor !== this.#actor || !this.#ofActor) {
      this.#actor = actor;
      this.#ofActor = this.#replies.get(actor);
    }
    return this.#ofActor;
  }

  #forgetActor(actor: string): void {
    this.#replies.delete(actor);
    this.#ofActor = undefined;
  }

  #add(pack: Pack): void {
    this.#packs.push(pack);
    this.#bytes += pack.bytes;
  }
}

function statements(db: Db) {
  return {
    insert: db.prepare('INSERT INTO pack(n, keys, data, copy) VALUES(?, ?, ?, ?)'),
    drop: db.prepare('DELETE FROM pack WHERE n <= ?'),
  };
}
