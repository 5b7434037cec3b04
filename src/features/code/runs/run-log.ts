/** The log of a run for those who look at it: the entries of its journal, its calls, and its lines. Kept in short for a viewer that comes later. */

import { nameOfQuestion } from '../../../core/kernel/inspection/display-names.ts';
import type { Inspection } from '../../../core/kernel/inspection/inspection.ts';
import type { JournalRecord, Watching } from '../../../core/kernel/inspection/records.ts';
import { fromText } from '../../../core/store/serialize.ts';
import type { RunEvent } from './run-journal.ts';

/** Entries that are kept for a later viewer, besides the first: the newest. */
const MAX_KEPT = 60;
/** Characters of the data of one that is kept. */
const MAX_DATA = 200;
/** Characters of JSON that are read for a viewer: more would block the server. */
const MAX_READ = 65_536;

type Entry = Omit<JournalRecord, 'type' | 'actor' | 'index'>;

export class RunLog implements Watching {
  readonly #inspection: Inspection;
  readonly #actor: string;
  readonly #first: JournalRecord;
  #kept: JournalRecord[] = [];
  #index = 1;
  #isWatched = false;

  constructor(inspection: Inspection, actor: string, begun: Extract<RunEvent, { type: 'begun' }>) {
    this.#inspection = inspection;
    this.#actor = actor;
    const { code, tool, engine, startedAt: date } = begun;
    this.#first = { type: 'journal', actor, index: 1, what: 'begun', date, data: { code, tool, engine } };
  }

  /** @param json the data of the entry, as JSON */
  add(entry: Entry, json?: string): void {
    this.#index += 1;
    const named = { type: 'journal', actor: this.#actor, index: this.#index, ...entry } as const;
    if (this.#isWatched) this.#inspection.record(json === undefined ? { ...named } : { ...named, data: read(json) });
    const isShort = json !== undefined && json.length <= MAX_DATA;
    this.#kept.push(json === undefined ? named : { ...named, data: isShort ? json : `${json.length} characters` });
    if (this.#kept.length > 2 * MAX_KEPT) this.#kept = this.#kept.slice(-MAX_KEPT);
  }

  /** @param date in milliseconds since 1970; absent for an event of an earlier process */
  event(event: RunEvent, date?: number): void {
    const at = date === undefined ? {} : { date };
    switch (event.type) {
      case 'begun':
        return;
      case 'ended':
        return this.add({ what: 'ended', ...at, data: { how: event.how, isError: event.isError } });
      case 'delivered': {
        const { number: call, name } = event;
        const entry = { what: 'delivered', call, name, ...at } as const;
        if ('error' in event) return this.add({ ...entry, data: { error: event.error } });
        return event.value === '' ? this.add(entry) : this.add(entry, `{"value":${event.value}}`);
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
    for (const entry of this.running()) this.#inspection.record({ ...entry });
    return this;
  }

  running(): readonly JournalRecord[] {
    return [this.#first, ...this.#kept.slice(-MAX_KEPT).map(parsed)];
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

/** Parsed, so that secrets are found by the names of their members. */
function read(json: string): unknown {
  return json.length > MAX_READ ? `${json.length} characters` : fromText(json, 'an entry of a run');
}

function parsed(entry: JournalRecord): JournalRecord {
  const { data } = entry;
  return typeof data === 'string' && /^[[{]/.test(data) ? { ...entry, data: read(data) } : { ...entry };
}
