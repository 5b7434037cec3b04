/**
 * Detects poison events: marks the event that an instance is processing, counts the deaths of the process during it, and stores
 * the counts ({@link PoisonRegistry} decides).
 */
import { errorFields, type RuntimeLog } from '../../core/kernel/operator-log.ts';
import {
  deathsOf,
  hasCrashed,
  isPoison,
  type PoisonRecord,
  PoisonRegistry,
  REMEMBERED_MS,
} from '../../core/kernel/poison-registry.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { isObject, messageOf } from '../../core/protocol/json.ts';
import { running } from '../../core/requests/running.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { ActorRow, Store, Write } from '../../core/store/store.ts';
import type { QueuedCall } from './bounded-mailbox.ts';

/** The activity of an instance without a call: its timers, the results of its invocations, its start. */
export const OWN_ACTIVITY = 'by itself';

const NAME = 'suspects';
/** Each record has an actor of its own, so that nodes that write at once do not overwrite each other's. */
const PREFIX = 'server/suspects/';
const VERSION = '2';
/** Records that are read at a time. */
const READS = 1_000;
/** Length in characters up to which an event is stored literally; a longer one is stored as a digest. */
const LONGEST = 2_000;

/** A quarantined event: the incident of its dead letter, its instance, and a description for operators. */
interface Quarantine {
  readonly incident: string;
  readonly id: string;
  readonly what: string;
  /** The instance caused it without a call, so the whole instance is quarantined. */
  readonly own: boolean;
}

type EventRecord = PoisonRecord<Quarantine | undefined>;

/** The earlier deaths of the process during an event that an instance is about to process. */
interface PoisonHistory {
  readonly deaths: number;
  /** The event must not be processed again. */
  readonly poison: boolean;
  /** The incident under which the event was quarantined earlier. */
  readonly incident: string | undefined;
}

/** An event or activity that is rejected until an operator releases it. */
export interface QuarantinedEvent extends Quarantine {
  readonly digest: string;
  readonly deaths: number;
  readonly at: number;
}

export interface PoisonEventsDeps {
  readonly store: Store;
  readonly log: RuntimeLog;
  /** Milliseconds since 1970, unaffected by changes of the wall clock. */
  date(): number;
  /** The end of the previous process, as reported by the supervisor that started both. */
  previous?(): { readonly pid: number; readonly crashed: boolean } | undefined;
}

export class PoisonEvents {
  readonly #deps: PoisonEventsDeps;
  readonly #records: PoisonRegistry<Quarantine | undefined>;
  /** The marks of events during which other processes have ended themselves, by their keys. */
  readonly #marks = new Map<string, string>();
  /** A mark is written, and the marked work runs. */
  #marked = false;

  constructor(deps: PoisonEventsDeps) {
    this.#deps = deps;
    this.#records = new PoisonRegistry(() => deps.date());
  }

  /** Counts the event that the previous process was processing when it died. Runs before anything else does. */
  async restore(): Promise<void> {
    const { store, date, log, previous } = this.#deps;
    const { notes } = store;
    if (!notes) return;
    await this.#load(store);
    await this.readEnded();
    const { last } = notes;
    if (last === undefined) return;
    const crashed = hasCrashed(notes.by, previous?.());
    const key = sha256(last);
    const record = this.#records.died(key, { crashed, at: Math.round(date()), factsOf: () => undefined });
    log(
      'error',
      `the previous process died while it processed ${inWords(last)} (${deathsOf(record)} times so far${crashed ? '' : '; it may have been killed from outside'})`,
      { event: 'crash' },
    );
    await this.#write(key);
    notes.clear();
  }

  /** Counts the events during which other processes of the store have ended themselves. Runs before actors are taken up. */
  async readEnded(): Promise<void> {
    const { store, log } = this.#deps;
    for (const { mark, times, at } of (await store.notes?.ended?.()) ?? []) {
      const key = sha256(mark);
      const before = this.#records.find(key);
      if (before && before.crashes >= times) continue;
      log('error', `a process died while it processed ${inWords(mark)} (${times} times so far)`, { event: 'crash' });
      this.#marks.set(key, mark);
      this.#records.restore(key, { crashes: times, unexplained: 0, at, facts: before?.facts });
    }
  }

  /** Returns the history of this activity of an instance; undefined if it has none. */
  of(id: string, what: string): PoisonHistory | undefined {
    if (this.#records.size === 0) return undefined;
    const found = this.#records.find(sha256(toText([id, what])));
    return found && { deaths: deathsOf(found), poison: isPoison(found), incident: found.facts?.incident };
  }

  /** The same for a queued call. */
  ofCall(id: string, call: QueuedCall): PoisonHistory | undefined {
    return this.#records.size === 0 || call.type !== 'event' ? undefined : this.of(id, whatOf(call));
  }

  /** Clears the unexplained deaths during an event that the process has survived. */
  survived(id: string, call: QueuedCall): void {
    if (this.#records.size === 0 || call.type !== 'event') return;
    const key = sha256(toText([id, whatOf(call)]));
    if (this.#records.survived(key)) this.#writeSoon(key);
  }

  /**
   * Records that a poison event became a dead letter.
   *
   * @param call undefined for an activity of the instance itself
   */
  quarantine(id: string, call: QueuedCall | undefined, incident: string): void {
    const mark = toText([id, call ? whatOf(call) : OWN_ACTIVITY]);
    const key = sha256(mark);
    const found = this.#records.find(key);
    if (!found || !isPoison(found)) return;
    this.#records.describe(key, { incident, id, what: inWords(mark), own: call === undefined });
    this.#writeSoon(key);
  }

  /** Lists everything that is quarantined until an operator releases it. */
  quarantined(): readonly QuarantinedEvent[] {
    return [...this.#records.records()].flatMap(([digest, record]) => quarantinedEvent(digest, record) ?? []);
  }

  /**
   * Forgets the deaths during a quarantined event.
   *
   * @returns the event; undefined for an unknown incident
   */
  release(incident: string): QuarantinedEvent | undefined {
    const found = this.#records.release((_, { facts }) => facts?.incident === incident);
    if (!found) return undefined;
    this.#writeSoon(found[0]);
    this.#forget(found[0]);
    return quarantinedEvent(...found);
  }

  /** Marks the start of a call; the mark replaces the previous one. */
  markCall(id: string, call: QueuedCall): void {
    const { notes } = this.#deps.store;
    if (!notes || call.type !== 'event') return;
    this.#marked = true;
    notes.write(toText([id, whatOf(call)]));
  }

  /** Clears the mark: nothing is running. */
  clearMark(): void {
    if (!this.#marked) return;
    this.#marked = false;
    this.#deps.store.notes?.clear();
  }

  /** Runs an activity of the instance under a mark of its own. Within a call it belongs to that call. The watchdog uses the mark to name a stall. */
  runMarked<T>(id: string, run: () => T): T {
    const { notes } = this.#deps.store;
    if (!notes || this.#marked) return run();
    this.#marked = true;
    notes.write(toText([id, OWN_ACTIVITY]));
    try {
      // Until its call is answered, the activity belongs to that call.
      return running.getStore()?.request ? run() : running.run({ label: shortly(id), request: undefined }, run);
    } finally {
      this.clearMark();
    }
  }

  /** Writes the record of a work, or deletes it. */
  async #write(key: string): Promise<void> {
    const id = PREFIX + key;
    const record = this.#records.find(key);
    await this.#deps.store.commit(record ? writesOf(id, record) : [{ type: 'forget', actor: id }]);
  }

  /** Other processes must not count the ends of processes again that an operator has released. */
  #forget(key: string): void {
    const mark = this.#marks.get(key);
    if (mark === undefined) return;
    this.#marks.delete(key);
    this.#deps.store.notes
      ?.forget?.(mark)
      .catch((error: unknown) =>
        this.#deps.log('warning', `cannot forget a crash: ${messageOf(error)}`, errorFields('store', error)),
      );
  }

  #writeSoon(key: string): void {
    this.#write(key).catch((error: unknown) =>
      this.#deps.log('warning', `cannot persist ${PREFIX}${key}: ${messageOf(error)}`, errorFields('store', error)),
    );
  }

  async #load(store: Store): Promise<void> {
    try {
      for (let after: ActorRow | undefined; ; ) {
        const rows = await store.list({ kind: 'server', name: NAME, after, limit: READS });
        await Promise.all(rows.map(({ id }) => this.#loadOne(store, id)));
        after = rows.at(-1);
        if (rows.length < READS) return;
      }
    } catch (error) {
      this.#unread(PREFIX, error);
    }
  }

  async #loadOne(store: Store, id: string): Promise<void> {
    try {
      const { snapshot } = (await store.load(id)) ?? {};
      const record = snapshot?.version === VERSION ? fromText(snapshot.data, id) : undefined;
      if (isRecord(record)) this.#records.restore(id.slice(PREFIX.length), record);
    } catch (error) {
      this.#unread(id, error);
    }
  }

  /** Counting starts again from zero. */
  #unread(id: string, error: unknown): void {
    this.#deps.log('warning', `${id} cannot be read: ${messageOf(error)}`, errorFields('store', error));
  }
}

function writesOf(id: string, record: EventRecord): readonly Write[] {
  const created = Math.round(record.at);
  const row = { id, kind: 'server', name: NAME, principal: '', status: 'live', created } as const;
  return [
    { type: 'actor', actor: { ...row, expires: created + REMEMBERED_MS } },
    { type: 'snapshot', actor: id, version: VERSION, data: toText(record) },
  ];
}

function quarantinedEvent(digest: string, record: EventRecord): QuarantinedEvent | undefined {
  const { facts, at } = record;
  return facts && { ...facts, digest, deaths: deathsOf(record), at };
}

/** Describes a mark for the log without the full id, which may be the only protection of the handle, and without the data of the event. */
function inWords(mark: string): string {
  try {
    const read = fromText(mark, 'a mark');
    const [id = '', what = '']: readonly unknown[] = Array.isArray(read) ? read : [];
    const event = what === OWN_ACTIVITY ? undefined : fromText(String(what), 'an event');
    const type = isObject(event) ? `event "${String(event.type)}" of ` : '';
    return type + shortly(String(id));
  } catch {
    return 'an event';
  }
}

/** Shortens the id as `handleAddress` does. */
function shortly(id: string): string {
  return id.slice(0, id.lastIndexOf('/') + 7);
}

function isRecord(value: unknown): value is EventRecord {
  return isObject(value) && ['crashes', 'unexplained', 'at'].every((count) => typeof value[count] === 'number');
}

/** Identifies a client's event: equal data gives equal text. */
function whatOf(call: QueuedCall): string {
  if (call.type !== 'event') return call.type;
  let text: string;
  try {
    text = toText(call.event);
  } catch {
    // A value that JSON cannot represent does not come from a client.
    text = call.event.type;
  }
  return text.length <= LONGEST ? text : sha256(text);
}
