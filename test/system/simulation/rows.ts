/** What a store holds, as plain rows in memory: the port's writes applied one after the other. */
import { ofCells } from '../../../src/core/protocol/cell.ts';
import type {
  ActorRow,
  DeadLetter,
  JournalEvent,
  ListQuery,
  Stored,
  StreamRow,
  TimerRow,
  TimersQuery,
  Write,
} from '../../../src/core/store/store.ts';
import { gone, inOrderOfDates, notNewer, type StoreError } from '../../../src/core/store/store.ts';

interface Journal {
  events: JournalEvent[];
  last: number;
  purged: number;
}

interface Kept {
  actor: ActorRow | undefined;
  /** Its place among actors that were made in the same millisecond: their ids are random, and must decide nothing. */
  readonly ordinal: number;
  snapshot: Stored['snapshot'];
  readonly timers: Map<string, TimerRow>;
  readonly streams: Map<string, Journal>;
  readonly replies: Map<string, { readonly data: string; readonly expires: number }>;
}

export class Rows {
  readonly #kept = new Map<string, Kept>();
  readonly #letters: DeadLetter[] = [];
  #made = 0;

  /** Why these writes cannot be kept, whole: an event of them does not come after the last of its stream. */
  refusal(writes: readonly Write[]): StoreError | undefined {
    const lasts = new Map<string, number>();
    const forgotten = new Set<string>();
    for (const write of writes) {
      if (write.type === 'forget') forgotten.add(write.actor);
      if (write.type !== 'event') continue;
      const { actor, stream, seq } = write;
      const key = `${actor} ${stream}`;
      const kept = forgotten.has(actor) ? 0 : (this.#kept.get(actor)?.streams.get(stream)?.last ?? 0);
      const last = lasts.get(key) ?? kept;
      if (seq <= last) return notNewer(write, last);
      lasts.set(key, seq);
    }
    return undefined;
  }

  apply(writes: readonly Write[]): void {
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
        const { streams } = this.#of(write.actor);
        const { stream, seq, kind, data } = write;
        const journal = streams.get(stream) ?? { events: [], last: 0, purged: 0 };
        journal.events.push({ stream, seq, kind, data });
        journal.last = seq;
        streams.set(stream, journal);
        return;
      }
      case 'reply':
        if (write.data === '') this.#of(write.actor).replies.delete(write.request);
        else this.#of(write.actor).replies.set(write.request, { data: write.data, expires: write.expires });
        return;
      case 'timer':
        this.#of(write.timer.actor).timers.set(write.timer.timer, write.timer);
        return;
      case 'timer off':
        this.#kept.get(write.actor)?.timers.delete(write.timer);
        return;
      case 'dead letter':
        this.#letters.push(write.letter);
        return;
      case 'trim': {
        const journal = this.#kept.get(write.actor)?.streams.get(write.stream);
        if (!journal) return;
        journal.events = journal.events.filter(({ seq }) => seq > write.upto);
        journal.purged = Math.max(journal.purged, Math.min(write.upto, journal.last));
        return;
      }
      case 'forget':
        this.#kept.delete(write.actor);
    }
  }

  #of(id: string): Kept {
    const found = this.#kept.get(id);
    if (found) return found;
    this.#made += 1;
    const kept: Kept = {
      actor: undefined,
      ordinal: this.#made,
      snapshot: undefined,
      timers: new Map(),
      streams: new Map(),
      replies: new Map(),
    };
    this.#kept.set(id, kept);
    return kept;
  }

  load(id: string): Stored | undefined {
    const kept = this.#kept.get(id);
    return kept?.actor && { actor: kept.actor, snapshot: kept.snapshot, timers: [...kept.timers.values()] };
  }

  list({ kind, name, principal, cells, after, limit }: ListQuery): readonly ActorRow[] {
    const isAsked = ofCells(cells);
    const rows: { readonly actor: ActorRow; readonly ordinal: number }[] = [];
    for (const { actor, ordinal } of this.#kept.values()) {
      if (actor?.kind !== kind) continue;
      if (name !== undefined && actor.name !== name) continue;
      if (principal !== undefined && actor.principal !== principal) continue;
      if (!isAsked(actor.id)) continue;
      rows.push({ actor, ordinal });
    }
    rows.sort((a, b) => a.actor.created - b.actor.created || a.ordinal - b.ordinal);
    const from = after ? rows.findIndex(({ actor }) => actor.id === after.id) + 1 : 0;
    // Where the last of the page before is gone, what was made since goes on.
    const rest = after && from === 0 ? rows.filter(({ actor }) => actor.created >= after.created) : rows.slice(from);
    return rest.slice(0, limit).map(({ actor }) => actor);
  }

  /** @throws {StoreError} `purged` */
  events(actor: string, stream: string, after: number, limit: number): readonly JournalEvent[] {
    const journal = this.#kept.get(actor)?.streams.get(stream);
    const purged = journal?.purged ?? (stream === '' ? 0 : Number.POSITIVE_INFINITY);
    if (after > 0 && after < purged) throw gone(actor, stream, after);
    return (journal?.events ?? []).filter(({ seq }) => seq > after).slice(0, limit);
  }

  streams(actor: string): readonly StreamRow[] {
    const rows: StreamRow[] = [];
    for (const [stream, { events, last, purged }] of this.#kept.get(actor)?.streams ?? []) {
      const [first] = events;
      if (first) rows.push({ stream, first: first.seq, last, purged });
    }
    return rows;
  }

  reply(actor: string, request: string): string | undefined {
    return this.#kept.get(actor)?.replies.get(request)?.data;
  }

  timers({ until, limit, after, cells, prefix = '' }: TimersQuery): readonly TimerRow[] {
    const due: TimerRow[] = [];
    const isAsked = ofCells(cells);
    for (const { timers } of this.#kept.values())
      for (const timer of timers.values())
        if (timer.due <= until && isAsked(timer.actor) && timer.actor.startsWith(prefix)) due.push(timer);
    // Random ids decide nothing here: a page holds all timers of a simulation.
    const later = due.filter((timer) => !after || inOrderOfDates(timer, after) > 0);
    return later.sort((a, b) => a.due - b.due).slice(0, limit);
  }

  deadLetters(limit: number): readonly DeadLetter[] {
    return this.#letters.slice(-limit);
  }

  /** @returns the actors and replies that have expired, as writes that forget them */
  expired(now: number): readonly Write[] {
    const forget: Write[] = [];
    for (const [actor, kept] of this.#kept) {
      if (kept.actor?.expires !== undefined && kept.actor.expires <= now) forget.push({ type: 'forget', actor });
    }
    return forget;
  }
}
