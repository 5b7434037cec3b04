/** The log of a run for those who look at it: the entries of its journal, its calls, and its lines. Kept in short for a viewer that comes later. */

import { nameOfQuestion } from '../../../core/kernel/inspection/display-names.ts';
import type { Inspection } from '../../../core/kernel/inspection/inspection.ts';
import type { JournalRecord, Watching } from '../../../core/kernel/inspection/records.ts';
import { isObject, shortened } from '../../../core/protocol/json.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import type { Delivery } from '../sandbox/script.ts';
import type { RunEvent } from './run-journal.ts';

/** Entries that are kept for a later viewer, besides the first: the newest. */
const MAX_KEPT = 40;
/** Entries that are dropped together. */
const DROPPED = 10;
/** Characters of the data of one that is kept. */
const MAX_DATA = 200;
/** Characters of JSON that are read for a viewer: more would block the server. */
const MAX_READ = 65_536;

type Entry = Omit<JournalRecord, 'type' | 'actor' | 'index'>;

export class RunLog implements Watching {
  readonly #inspection: Inspection;
  readonly #actor: string;
  readonly #first: JournalRecord;
  readonly #deliveries: readonly Delivery[];
  /** JSON: as objects they would take five times the memory, and a run may wait for days. */
  #kept: string[] = [];
  #index = 1;
  #isWatched = false;

  /** @param deliveries those of the run, which has their values: the log keeps none of them */
  constructor(
    inspection: Inspection,
    actor: string,
    begun: Extract<RunEvent, { type: 'begun' }>,
    deliveries: readonly Delivery[],
  ) {
    this.#inspection = inspection;
    this.#actor = actor;
    this.#deliveries = deliveries;
    const { code, tool, engine, startedAt: date } = begun;
    this.#first = { type: 'journal', actor, index: 1, what: 'begun', date, data: { code, tool, engine } };
  }

  /** False also while everybody who listens only counts: the next viewer gets what is kept. */
  get #isSeen(): boolean {
    return this.#isWatched && this.#inspection.observed;
  }

  /** @param json the data of the entry, as JSON */
  add(entry: Entry, json?: string): void {
    this.#index += 1;
    const named = { type: 'journal', actor: this.#actor, index: this.#index, ...entry } as const;
    if (this.#isSeen) this.#inspection.record(json === undefined ? { ...named } : { ...named, data: read(json) });
    const text = toText({ index: this.#index, ...entry, ...keptData(entry, json) });
    // A copy in one piece: V8 keeps a text that was put together as its pieces, which take three times the memory.
    this.#kept.push(Buffer.from(text).toString());
    if (this.#kept.length > MAX_KEPT + DROPPED) this.#kept = this.#kept.slice(-MAX_KEPT);
  }

  /** @param date in milliseconds since 1970; absent for an event of an earlier process */
  event(event: RunEvent, date?: number): void {
    const at = date === undefined ? {} : { date };
    switch (event.type) {
      case 'begun':
        return;
      case 'ended':
        return this.add({ what: 'ended', ...at, data: { how: event.how, isError: event.isError, text: event.text } });
      case 'delivered': {
        const { number: call, name } = event;
        return this.add({ what: 'delivered', call, name, ...at, ...(this.#isSeen ? dataOfDelivery(event) : {}) });
      }
      default: {
        const { number: call, type: what } = event;
        const name = 'name' in event ? { name: event.name } : {};
        return this.add({ what, call, ...name, ...at, data: dataOf(event) });
      }
    }
  }

  watch(): this {
    this.#isWatched = true;
    if (this.#isSeen) for (const entry of this.running()) this.#inspection.record({ ...entry });
    return this;
  }

  running(): readonly JournalRecord[] {
    const { type, actor } = this.#first;
    const delivered = new Map(this.#deliveries.map((delivery) => [delivery.number, delivery]));
    const kept = this.#kept.map((text): JournalRecord => {
      const entry = entryIn(text);
      const delivery = entry.what === 'delivered' ? delivered.get(entry.call ?? 0) : undefined;
      return { type, actor, ...entry, ...(delivery ? dataOfDelivery(delivery) : {}) };
    });
    return [{ ...this.#first }, ...kept];
  }

  end(): void {
    this.#isWatched = false;
  }
}

function dataOf(event: Exclude<RunEvent, { type: 'begun' | 'ended' | 'delivered' }>): object | undefined {
  switch (event.type) {
    case 'started':
      return event.approval === undefined ? undefined : { approval: event.approval };
    case 'asked':
      return { questions: Object.values(event.requests).map(nameOfQuestion) };
    case 'answered':
      return { answers: Object.values(event.responses) };
    case 'held':
      return { approval: event.approval, text: event.text };
    case 'following':
      return { task: event.task };
    case 'sleeping':
      return { due: event.due };
  }
}

function dataOfDelivery(delivery: Delivery): Pick<Entry, 'data'> {
  if ('error' in delivery) return { data: { error: delivery.error } };
  return delivery.value === '' ? {} : { data: read(`{"value":${delivery.value}}`) };
}

/** The data of an entry as it is kept. */
function keptData(entry: Entry, json: string | undefined): Pick<Entry, 'data'> {
  if (entry.what === 'delivered') return { data: undefined };
  const text = json ?? (entry.data === undefined ? undefined : toText(entry.data));
  if (text === undefined) return {};
  return { data: text.length <= MAX_DATA ? read(text) : inShort(entry, text.length) };
}

/** Parsed, so that secrets are found by the names of their members. */
function read(json: string): unknown {
  if (json.length > MAX_READ) return charactersOf(json.length);
  try {
    return fromText(json, 'an entry of a run');
  } catch {
    // A log never harms its run.
    return charactersOf(json.length);
  }
}

/** Data without what is too long to be kept. */
function inShort({ what, data }: Entry, length: number): unknown {
  if (!isObject(data)) return charactersOf(length);
  const { whole, approval } = data;
  if (what === 'logged') return { whole, lines: [`… ${charactersOf(length)} of the log were not kept …`] };
  if (what === 'held') return { approval };
  return charactersOf(length);
}

function charactersOf(length: number): string {
  return `${length} characters`;
}

/** The text that {@link RunLog.add} has kept. */
function entryIn(text: string): Omit<JournalRecord, 'type' | 'actor'> {
  const value: unknown = fromText(text, 'an entry of a run');
  if (isEntry(value)) return value;
  throw new TypeError(`an entry of a run: expected its index and its kind, got ${shortened(text, 100)}`);
}

function isEntry(value: unknown): value is Omit<JournalRecord, 'type' | 'actor'> {
  return isObject(value) && typeof value.index === 'number' && typeof value.what === 'string';
}
