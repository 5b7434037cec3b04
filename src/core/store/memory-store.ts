/** The default store: it stores everything in this process, and nothing survives it. */
import { ofCells } from '../protocol/cell.ts';
import {
  type ActorRow,
  type DeadLetter,
  findsExpected,
  gone,
  inOrder,
  inOrderOfDates,
  isChange,
  type JournalEvent,
  type ListQuery,
  type ReplyWrite,
  type SnapshotSwap,
  Store,
  type StoreAnswer,
  type Stored,
  StoreError,
  type StoreHost,
  type StoreQuery,
  type StreamRow,
  type TimerRow,
  type TimersQuery,
  type Write,
  writesOf,
} from './store.ts';
import { disorderIn } from './writes.ts';

/** Maximum number of dead letters; the oldest are evicted. */
const MAX_DEAD_LETTERS = 1_000;
/** Maximum number of characters in all dead letters together; each may have 131,072. */
const MAX_DEAD_LETTERS_LENGTH = 8 * 1024 * 1024;

/** Maximum number of streams without events that an actor may have. */
const MAX_STREAMS = 1_000;

/** Events of one stream. It exists without events, too, so that deleted data differs from data that never existed. */
interface Journal {
  events: JournalEvent[];
  last: number;
  purged: number;
}

interface StoredActor {
  actor: ActorRow | undefined;
  snapshot: Stored['snapshot'];
  readonly timers: Map<string, TimerRow>;
  readonly streams: Map<string, Journal>;
  readonly replies: Map<string, { readonly data: string; readonly expires: number }>;
}

/** A store in memory. It stores snapshots and timers but no history, because no process can read it later. */
export function memoryStore(): Store {
  return new MemoryStore();
}

class MemoryStore extends Store {
  readonly name = 'memory';
  readonly durable = false;
  readonly #actors = new Map<string, StoredActor>();
  readonly #letters: DeadLetter[] = [];
  #lettersLength = 0;
  #closed = false;

  open(_host: StoreHost): Promise<void> {
    return Promise.resolve();
  }

  async ask(query: StoreQuery): Promise<StoreAnswer> {
    if (this.#closed && isChange(query)) throw closed();
    switch (query.type) {
      case 'commit':
        this.#commit(query.writes);
        return { type: 'commit', value: undefined };
      case 'claim':
        return { type: 'claim', value: this.#claim(query.reply) };
      case 'swap':
        return { type: 'swap', value: this.#swap(query.swap) };
      case 'load':
        return { type: 'load', value: this.#load(query.actor) };
      case 'list':
        return { type: 'list', value: { rows: this.#list(query.query), damaged: [] } };
      case 'events':
        return { type: 'events', value: this.#events(query.actor, query.stream, query.after, query.limit) };
      case 'streams':
        return { type: 'streams', value: this.#streams(query.actor) };
      case 'reply':
        return { type: 'reply', value: this.#actors.get(query.actor)?.replies.get(query.request)?.data };
      case 'timers':
        return { type: 'timers', value: this.#timers(query) };
      case 'letters':
        return { type: 'letters', value: this.#letters.slice(-query.limit) };
      case 'sweep':
        return { type: 'sweep', value: this.#sweep(query.now) };
    }
  }

  /** Applies all writes or none: finds invalid data before it stores anything. */
  #commit(writes: readonly Write[]): void {
    const wrong = disorderIn(writes, (actor, stream) => this.#actors.get(actor)?.streams.get(stream)?.last);
    if (wrong) throw wrong;
    for (const write of writes) this.#write(write);
  }

  #write(write: Write): void {
    switch (write.type) {
      case 'actor':
        this.#of(write.actor.id).actor = write.actor;
        return;
      case 'snapshot':
        this.#of(write.actor).snapshot = { version: write.version, data: write.data };
        return;
      case 'event': {
        // Nothing reads the history of an actor here; clients resume streams.
        if (write.stream === '') return;
        const { streams } = this.#of(write.actor);
        const { stream, seq, kind, data } = write;
        const journal = streams.get(stream) ?? { events: [], last: 0, purged: 0 };
        journal.events.push({ stream, seq, kind, data });
        journal.last = seq;
        streams.set(stream, journal);
        return;
      }
      case 'reply':
        if (write.data === '') this.#actors.get(write.actor)?.replies.delete(write.request);
        else this.#of(write.actor).replies.set(write.request, { data: write.data, expires: write.expires });
        return;
      case 'timer':
        this.#of(write.timer.actor).timers.set(write.timer.timer, write.timer);
        return;
      case 'timer off':
        this.#actors.get(write.actor)?.timers.delete(write.timer);
        return;
      case 'dead letter':
        this.#letters.push(write.letter);
        this.#lettersLength += lengthOf(write.letter);
        while (this.#letters.length > MAX_DEAD_LETTERS || this.#lettersLength > MAX_DEAD_LETTERS_LENGTH) {
          const oldest = this.#letters.shift();
          if (!oldest) break;
          this.#lettersLength -= lengthOf(oldest);
        }
        return;
      case 'trim': {
        const streams = this.#actors.get(write.actor)?.streams;
        const journal = streams?.get(write.stream);
        if (!streams || !journal) return;
        journal.events = journal.events.filter(({ seq }) => seq > write.upto);
        journal.purged = Math.max(journal.purged, Math.min(write.upto, journal.last));
        if (journal.events.length === 0 && streams.size > MAX_STREAMS) streams.delete(write.stream);
        return;
      }
      case 'forget':
        this.#actors.delete(write.actor);
    }
  }

  #of(id: string): StoredActor {
    const found = this.#actors.get(id);
    if (found) return found;
    const stored: StoredActor = {
      actor: undefined,
      snapshot: undefined,
      timers: new Map(),
      streams: new Map(),
      replies: new Map(),
    };
    this.#actors.set(id, stored);
    return stored;
  }

  #claim(reply: ReplyWrite): string | undefined {
    const { replies } = this.#of(reply.actor);
    const existing = replies.get(reply.request);
    if (!existing) replies.set(reply.request, reply);
    return existing?.data;
  }

  #swap(swap: SnapshotSwap): boolean {
    const finds = findsExpected(swap, this.#load(swap.actor.id));
    if (finds) this.#commit(writesOf(swap));
    return finds;
  }

  #load(id: string): Stored | undefined {
    const stored = this.#actors.get(id);
    if (!stored?.actor) return undefined;
    return { actor: stored.actor, snapshot: stored.snapshot, timers: [...stored.timers.values()] };
  }

  #list({ kind, name, principal, cells, after, limit }: ListQuery): readonly ActorRow[] {
    const rows: ActorRow[] = [];
    const isAsked = ofCells(cells);
    for (const { actor } of this.#actors.values()) {
      if (actor?.kind !== kind) continue;
      if (name !== undefined && actor.name !== name) continue;
      if (principal !== undefined && actor.principal !== principal) continue;
      if (!isAsked(actor.id) || (after && inOrder(actor, after) <= 0)) continue;
      rows.push(actor);
    }
    return rows.sort(inOrder).slice(0, limit);
  }

  #events(actor: string, stream: string, after: number, limit: number): readonly JournalEvent[] {
    const journal = this.#actors.get(actor)?.streams.get(stream);
    const purged = journal?.purged ?? (stream === '' ? 0 : Number.POSITIVE_INFINITY);
    if (after > 0 && after < purged) throw gone(actor, stream, after);
    return (journal?.events ?? []).filter(({ seq }) => seq > after).slice(0, limit);
  }

  #streams(actor: string): readonly StreamRow[] {
    const rows: StreamRow[] = [];
    for (const [stream, { events, last, purged }] of this.#actors.get(actor)?.streams ?? []) {
      const [first] = events;
      if (first) rows.push({ stream, first: first.seq, last, purged });
    }
    return rows;
  }

  #timers({ until, limit, after, cells, prefix = '' }: TimersQuery): readonly TimerRow[] {
    const due: TimerRow[] = [];
    const isAsked = ofCells(cells);
    for (const { timers } of this.#actors.values())
      for (const timer of timers.values()) {
        if (timer.due > until || (after && inOrderOfDates(timer, after) <= 0)) continue;
        if (timer.actor.startsWith(prefix) && isAsked(timer.actor)) due.push(timer);
      }
    return due.sort(inOrderOfDates).slice(0, limit);
  }

  #sweep(now: number): number {
    let gone = 0;
    for (const [id, { actor, snapshot, replies, timers, streams }] of this.#actors) {
      for (const [request, { expires }] of replies) if (expires <= now) replies.delete(request);
      // Replies may belong to no actor, such as those to keys of a principal.
      if (!actor && !snapshot && replies.size + timers.size + streams.size === 0) this.#actors.delete(id);
      if (actor?.expires === undefined || actor.expires > now) continue;
      this.#actors.delete(id);
      gone += 1;
    }
    return gone;
  }

  close(): Promise<void> {
    this.#closed = true;
    return Promise.resolve();
  }
}

function lengthOf({ mail, error }: DeadLetter): number {
  return mail.length + error.length;
}

function closed(): StoreError {
  return new StoreError('closed', 'the store is closed because its server has stopped');
}
