/** The run of a script as it stood at a record: its text, its calls in the order of the journal, its logs, and the line at which it is. */
import type { Journaled, JournalKind, Plain, RecordHeader } from '../frames.ts';
import type { ActorLine } from './actor-line.ts';
import { isList, isRecord, member, textOfValue } from './plain-values.ts';

type Entry = RecordHeader & Journaled;

/** One call of a script. */
export interface LaneCall {
  readonly number: number;
  readonly name: string;
  readonly line?: number;
  /** Its list of arguments. Absent: unknown. */
  readonly args?: Plain;
  /** The last thing that happened to it. */
  readonly what: JournalKind;
  /** Undefined until the script learns its end. */
  readonly outcome?: 'returned' | 'threw';
  /** Its value, or its fault. */
  readonly data?: Plain;
  /** The reason of its last wait: the questions, the approval, the task, or the time. */
  readonly wait?: Plain;
  /** Milliseconds from the call to the delivery. */
  readonly took?: number;
  /** The records of its start and its delivery. */
  readonly from: number;
  readonly to?: number;
}

/** The run of a script. */
export interface ScriptLane {
  /** Undefined if its beginning is not known any more. */
  readonly code?: string;
  readonly engine?: string;
  readonly tool?: string;
  readonly calls: readonly LaneCall[];
  readonly logs: readonly string[];
  readonly entries: readonly Entry[];
  /** The line of the call that was made or delivered last. */
  readonly line?: number;
  /** The call that was made or delivered last. */
  readonly call?: number;
  /** Its end, in the words of its chart. */
  readonly how?: string;
  /** The text of its result, or of its error. */
  readonly result?: string;
  readonly isError?: boolean;
  /** The number of entries that are not known. */
  readonly missing: number;
}

/** The records between which a reader steps: the beginning of the script, and what it learned each time. */
export function stopsOf({ journal }: ActorLine): readonly number[] {
  return journal
    .until(Number.POSITIVE_INFINITY)
    .filter(({ what }) => what === 'begun' || what === 'delivered' || what === 'ended')
    .map(({ seq }) => seq);
}

/** @param seq the record up to which entries count */
export function scriptLane(line: ActorLine, seq: number): ScriptLane {
  const entries = line.journal.until(seq);
  const calls = new Map<number, LaneCall>();
  const dates = new Map<number, number>();
  let logs: readonly string[] = [];
  let last: Entry | undefined;
  for (const entry of entries) {
    if (entry.what === 'logged') logs = [...(member(entry.data, 'whole') === true ? [] : logs), ...linesOf(entry)];
    if (entry.call === undefined) continue;
    const before = calls.get(entry.call);
    if (entry.what === 'called' && entry.date !== undefined) dates.set(entry.call, entry.date);
    calls.set(entry.call, callAfter(entry.call, before, entry, dates.get(entry.call)));
    if (entry.what === 'called' ? !before : true) last = entry;
  }
  const [begun] = entries;
  const first = begun?.what === 'begun' ? begun.data : undefined;
  const ended = entries.at(-1)?.what === 'ended' ? entries.at(-1)?.data : undefined;
  const named = { code: member(first, 'code'), engine: member(first, 'engine'), tool: member(first, 'tool') };
  const at = last?.call === undefined ? undefined : calls.get(last.call);
  return {
    ...textsOf(named),
    ...textsOf({ how: member(ended, 'how'), result: member(ended, 'text') }),
    ...(member(ended, 'isError') === true ? { isError: true } : {}),
    calls: [...calls.values()],
    logs,
    entries,
    ...(at === undefined ? {} : { call: at.number }),
    ...(at?.line === undefined ? {} : { line: at.line }),
    missing: (entries.at(-1)?.index ?? 0) - entries.length,
  };
}

function callAfter(number: number, before: LaneCall | undefined, entry: Entry, made: number | undefined): LaneCall {
  const { what, name = before?.name ?? '', line = before?.line, data, seq, date } = entry;
  const known: LaneCall = { from: seq, what, ...before, number, name, ...(line === undefined ? {} : { line }) };
  switch (what) {
    case 'called':
      // A script that runs again makes calls whose ends are known already.
      return { ...known, ...(data === undefined ? {} : { args: data }) };
    case 'delivered': {
      const fault = member(data, 'error');
      const value = fault ?? member(data, 'value') ?? (isRecord(data) ? undefined : data);
      const took = made === undefined || date === undefined ? {} : { took: Math.max(0, date - made) };
      const outcome = fault === undefined ? 'returned' : 'threw';
      return { ...known, what, outcome, ...(value === undefined ? {} : { data: value }), ...took, to: seq };
    }
    default:
      return { ...known, what, ...(data === undefined ? {} : { wait: data }) };
  }
}

function linesOf({ data }: Entry): readonly string[] {
  const lines = member(data, 'lines');
  return isList(lines) ? lines.filter((each) => typeof each === 'string') : [];
}

function textsOf<K extends string>(given: Readonly<Record<K, Plain | undefined>>): { readonly [name in K]?: string } {
  const found: { [name in K]?: string } = {};
  for (const name in given) {
    const text = textOfValue(given[name]);
    if (text !== undefined) found[name] = text;
  }
  return found;
}
