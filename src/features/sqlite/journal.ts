/** Events in the file: each stream is a chain of checksums, from its last deleted event to its newest one. */
import { eventSum } from '../../core/store/checksum.ts';
import type { KnownKeys } from '../../core/store/known-keys.ts';
import { gone, type JournalEvent, notNewer, OUT_STREAMS, type StreamRow } from '../../core/store/store.ts';
import {
  journalStatements,
  named,
  readEvent,
  readEventRow,
  readStream,
  type StreamRecord,
  sumOf,
} from './journal-rows.ts';
import { bytesColumn, type Db, damaged, missingRow, number, string } from './sqlite-database.ts';
import type { SqliteOptions } from './sqlite-options.ts';

/** Approximate cost of a row beside its data. */
const ROW_BYTES = 48;
/** Maximum number of streams cached in memory; all are dropped when there are more. */
const MAX_KNOWN = 20_000;
/** Share of a limit that is freed at once, so that not every event deletes another. */
const SLACK = 8;

export class SqliteJournal {
  readonly #options: SqliteOptions;
  readonly #sql: ReturnType<typeof journalStatements>;
  readonly #keys: KnownKeys;
  readonly #known = new Map<string, Map<string, StreamRecord>>();
  readonly #bytes = new Map<string, number>();
  readonly #changed = new Set<StreamRecord>();
  #count = 0;

  constructor(db: Db, keys: KnownKeys, options: SqliteOptions) {
    this.#keys = keys;
    this.#options = options;
    this.#sql = journalStatements(db);
  }

  /** @throws {StoreError} `failed` for an event that is not newer than the last; `corrupt` */
  append(actor: string, { stream, seq, kind, data }: JournalEvent): void {
    const to = this.#find(actor, stream) ?? this.#make(actor, stream);
    if (seq <= to.last) throw notNewer({ actor, stream, seq }, to.last);
    const body = bytesColumn(data);
    const crc = eventSum(to.head, to.n, seq, kind, body);
    this.#sql.insert.run(to.n, seq, bytesColumn(kind), body, to.head, crc);
    to.last = seq;
    to.head = crc;
    to.events += 1;
    this.#grow(to, body.length + ROW_BYTES);
    this.#change(to);
    const { maxStreamEvents, maxActorBytes } = this.#options;
    if (to.events > maxStreamEvents && !stream.startsWith(OUT_STREAMS))
      this.#shorten(to, to.events - maxStreamEvents + Math.floor(maxStreamEvents / SLACK));
    if (this.#bytesOf(actor) > maxActorBytes) this.#lighten(actor);
  }

  trim(actor: string, stream: string, upto: number): void {
    const of = this.#find(actor, stream);
    if (of) this.#cut(of, upto);
  }

  /** A snapshot was written: the events before it are no longer needed to rebuild the actor. */
  covered(actor: string): void {
    const of = this.#find(actor, '');
    if (!of || of.covered === of.last) return;
    of.covered = of.last;
    this.#change(of);
  }

  forget(actor: string): void {
    this.settle();
    const key = bytesColumn(actor);
    const count = this.#keys.count('streams', key);
    if (count > 0) {
      const streams = this.#sql.streams.all(key).map((row) => readStream(actor, row));
      if (streams.length !== count) throw missingRow(`${count} streams of ${actor}, only ${streams.length} found`);
      for (const stream of streams) this.#remove(stream);
    }
    this.#count -= this.#known.get(actor)?.size ?? 0;
    this.#known.delete(actor);
    this.#bytes.delete(actor);
  }

  /** @throws {StoreError} `corrupt`, `purged` */
  events(actor: string, stream: string, after: number, limit: number): readonly JournalEvent[] {
    const of = this.#find(actor, stream);
    if (!of) {
      if (after > 0 && stream !== '') throw gone(actor, stream, after);
      return [];
    }
    if (after > 0 && after < of.purged) throw gone(actor, stream, after);
    const [before] = after > of.purged ? this.#sql.upto.all(of.n, after) : [];
    let previous = before ? number(before[1], named(of, after)) : of.base;
    let last = before ? number(before[0], named(of, after)) : of.purged;
    const events: JournalEvent[] = [];
    for (const row of this.#sql.after.all(of.n, after, limit)) {
      const event = readEvent(of, row, previous, last);
      events.push(event);
      last = event.seq;
      previous = number(row[4], named(of, last));
    }
    // The end is known, so a missing last event is detected, too.
    if (events.length < limit && after < of.last && (last !== of.last || previous !== of.head))
      throw damaged(named(of, last));
    return events;
  }

  /** @throws {StoreError} `corrupt` */
  streams(actor: string): readonly StreamRow[] {
    const rows: StreamRow[] = [];
    const found = this.#sql.streams.all(bytesColumn(actor));
    if (found.length !== this.#keys.count('streams', bytesColumn(actor))) throw missingRow(`a stream of ${actor}`);
    for (const row of found) {
      const of = readStream(actor, row);
      const { n, stream, purged, base, last, events } = of;
      if (events === 0) continue;
      const [first] = this.#sql.after.all(n, purged, 1);
      if (!first) throw missingRow(named(of, purged));
      rows.push({ stream, first: readEvent(of, first, base, purged).seq, last, purged });
    }
    return rows;
  }

  /** Deletes the records of streams without events beyond the limit. */
  sweep(): void {
    this.settle();
    const { maxActorStreams } = this.#options;
    for (const row of this.#sql.crowded.all(maxActorStreams)) {
      const actor = string(row[0], 'a stream');
      const streams = this.#sql.streams.all(bytesColumn(actor)).map((each) => readStream(actor, each));
      const empty = streams.filter(({ stream, events }) => events === 0 && stream !== '');
      for (const stream of empty.slice(0, -maxActorStreams)) this.#remove(stream);
      this.#known.delete(actor);
    }
  }

  #remove({ n, actor, stream }: StreamRecord): void {
    const key = [bytesColumn(actor), bytesColumn(stream)] as const;
    this.#sql.clear.run(n);
    if (this.#sql.forget.run(n) === 0) throw missingRow(`stream "${stream}" of ${actor}`);
    this.#keys.remove('stream', ...key);
    this.#keys.remove('streams', key[0]);
  }

  /** Writes the changed streams: once for each in a transaction. */
  settle(): void {
    for (const of of this.#changed) {
      const { purged, base, last, head, events, bytes, covered, n } = of;
      if (this.#sql.update.run(purged, base, last, head, events, bytes, covered, sumOf(of), n) === 0)
        throw missingRow(named(of, last));
      of.changed = false;
    }
    this.#changed.clear();
    if (this.#count > MAX_KNOWN) this.reset();
  }

  /** The cache may differ from the file: read it again. */
  reset(): void {
    this.#known.clear();
    this.#bytes.clear();
    this.#changed.clear();
    this.#count = 0;
  }

  #find(actor: string, stream: string): StreamRecord | undefined {
    const known = this.#known.get(actor)?.get(stream);
    if (known) return known;
    const key = [bytesColumn(actor), bytesColumn(stream)] as const;
    const [row] = this.#sql.stream.all(...key);
    if (!row && this.#keys.has('stream', ...key)) throw missingRow(`stream "${stream}" of ${actor}`);
    if (!row) return undefined;
    const found = readStream(actor, row);
    // A damaged index may lead to another row that is intact in itself.
    if (found.stream !== stream) throw damaged(`stream "${stream}" of ${actor}`);
    return this.#know(found);
  }

  #make(actor: string, stream: string): StreamRecord {
    const blank = {
      actor,
      stream,
      purged: 0,
      base: 0,
      last: 0,
      head: 0,
      events: 0,
      bytes: 0,
      covered: 0,
      changed: false,
    };
    const key = [bytesColumn(actor), bytesColumn(stream)] as const;
    const [row] = this.#sql.make.all(...key);
    this.#keys.add('stream', ...key);
    this.#keys.add('streams', key[0]);
    return this.#know({ ...blank, n: number(row?.[0], `stream "${stream}" of ${actor}`) });
  }

  #know(stream: StreamRecord): StreamRecord {
    const of = this.#known.get(stream.actor) ?? new Map<string, StreamRecord>();
    this.#known.set(stream.actor, of.set(stream.stream, stream));
    this.#count += 1;
    return stream;
  }

  #change(stream: StreamRecord): void {
    if (stream.changed) return;
    stream.changed = true;
    this.#changed.add(stream);
  }

  #bytesOf(actor: string): number {
    const known = this.#bytes.get(actor);
    if (known !== undefined) return known;
    this.settle();
    const sum = number(this.#sql.bytes.all(bytesColumn(actor))[0]?.[0] ?? 0, actor);
    this.#bytes.set(actor, sum);
    return sum;
  }

  #grow(of: StreamRecord, by: number): void {
    const all = this.#bytesOf(of.actor);
    of.bytes += by;
    this.#bytes.set(of.actor, all + by);
  }

  /** Deletes the oldest events of a stream: this number, or as many as are allowed. */
  #shorten(of: StreamRecord, count: number): void {
    const [row] = this.#sql.nth.all(of.n, Math.min(count, of.events) - 1);
    const upto = this.#sound(of, number(row?.[0], named(of, of.purged)));
    const most = of.stream === '' ? Math.min(upto, of.covered) : upto;
    if (most > of.purged) this.#cut(of, most);
  }

  /** Deletes the oldest events of an actor, in all its streams, until it is below its limit with some slack. */
  #lighten(actor: string): void {
    this.settle();
    const most = this.#options.maxActorBytes;
    let over = this.#bytesOf(actor) - (most - Math.floor(most / SLACK));
    const upto = new Map<string, number>();
    for (const row of this.#sql.oldest.all(bytesColumn(actor))) {
      if (over <= 0) break;
      if (string(row[0], actor).startsWith(OUT_STREAMS)) continue;
      upto.set(string(row[0], actor), number(row[1], actor));
      over -= number(row[2], actor) + ROW_BYTES;
    }
    for (const [stream, seq] of upto) {
      const of = this.#find(actor, stream);
      if (of) this.#cut(of, this.#sound(of, seq));
    }
  }

  /**
   * The number of the event up to which others are deleted, read from its row and not only from an index. @throws
   * {StoreError} `corrupt`
   */
  #sound(of: StreamRecord, seq: number): number {
    const [row] = this.#sql.at.all(of.n, seq);
    if (!row) throw missingRow(named(of, seq));
    readEventRow(row);
    return seq;
  }

  #cut(of: StreamRecord, upto: number): void {
    const [row] = this.#sql.weight.all(of.n, upto);
    const [count, size] = [number(row?.[0], named(of, upto)), number(row?.[1] ?? 0, named(of, upto))];
    const to = Math.min(upto, of.last);
    if (to <= of.purged) return;
    this.#sql.cut.run(of.n, upto);
    of.purged = to;
    const [next] = this.#sql.after.all(of.n, upto, 1);
    of.base = next ? number(next[3], named(of, upto)) : of.head;
    of.events = Math.max(0, of.events - count);
    this.#grow(of, -(size + count * ROW_BYTES));
    this.#change(of);
  }
}
