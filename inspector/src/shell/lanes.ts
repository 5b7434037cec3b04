/** The filtered rows and lanes of the messages. Each row is derived once. */
import {
  CLIENT,
  displayName,
  isUpstream,
  type MessageRow,
  type Model,
  PROGRESS,
  UPSTREAM,
  type WireExchange,
} from '../../../src/inspector/model/index.ts';
import type { MessageLane } from '../messages/Messages.tsx';
import { type Filter, fits } from '../store/filter.ts';

export interface Shown {
  readonly by: 'actor' | 'kind';
  readonly filter: Filter;
  readonly brush: { readonly from: number; readonly to: number } | undefined;
  /** The calls whose progress is shown, by the sequence number of their record. */
  readonly unfolded: ReadonlySet<number>;
}

/** Maximum number of lanes: those of the latest messages. */
const MOST = 40;

/** Derives rows incrementally. */
export class RowFeed {
  #rows: MessageRow[] = [];
  #of: readonly MessageRow[] = [];
  #taken = 0;
  #shown: Shown | undefined;
  #reports = new Map<number, number>();

  /** The numbers of progress notifications of each call, by the sequence number of its record. */
  get reports(): ReadonlyMap<number, number> {
    return this.#reports;
  }

  rows(model: Model, shown: Shown): readonly MessageRow[] {
    const same =
      this.#of === model.rows &&
      this.#shown?.by === shown.by &&
      this.#shown.filter === shown.filter &&
      this.#shown.brush === shown.brush &&
      this.#shown.unfolded === shown.unfolded;
    if (!same) {
      this.#rows = [];
      this.#of = model.rows;
      this.#taken = 0;
      this.#reports = new Map();
      this.#shown = shown;
    }
    for (; this.#taken < model.rows.length; this.#taken += 1) {
      const row = model.rows[this.#taken];
      if (!row) continue;
      const call = reportedBy(model, row);
      if (call && row.kind === 'wire') this.#reports.set(call.seq, (this.#reports.get(call.seq) ?? 0) + 1);
      if (call && !shown.unfolded.has(call.seq) && !asksForProgress(shown.filter)) continue;
      if (isShown(model, row, shown)) this.#rows.push(shown.by === 'actor' ? row : byKind(model, row));
    }
    return this.#rows;
  }
}

/** The call whose progress a row carries, on the wire or on its way there. */
function reportedBy(model: Model, { seq, name, kind }: MessageRow): WireExchange | undefined {
  if (name !== (kind === 'wire' ? PROGRESS : 'progress')) return undefined;
  const record = model.causes.find(seq);
  const call = record?.type === 'wire' ? model.exchanges.of(record) : model.exchanges.at(model.causes.root(seq))[0];
  return call?.kind === 'request' ? call : undefined;
}

function asksForProgress({ types, words }: Filter): boolean {
  return [...types, ...words].some((text) => text.includes('progress'));
}

function isShown(model: Model, row: MessageRow, { filter, brush }: Shown): boolean {
  if (brush && (row.at < brush.from || row.at > brush.to)) return false;
  return fits(filter, {
    types: [row.name, row.kind],
    status: row.mark ?? 'ok',
    actors: [row.from, row.to].flatMap((actor) => [actor, model.actor(actor ?? '')?.label]),
  });
}

function byKind(model: Model, row: MessageRow): MessageRow {
  const { from, to } = row;
  return { ...row, to: kindOf(model, to), ...(from === undefined ? {} : { from: kindOf(model, from) }) };
}

const kindOf = (model: Model, actor: string): string => {
  if (actor === CLIENT) return CLIENT;
  if (actor.startsWith(UPSTREAM)) return 'upstream';
  const line = model.actor(actor);
  return isUpstream(line) ? 'connection' : (line?.kind ?? 'unknown');
};

/** The order of the kinds, along the path of a message from the client. */
const WAY = [
  CLIENT,
  'session',
  'requests',
  'registry',
  'executor',
  'request',
  'ask',
  'task',
  'state',
  'handle',
  'machine',
  'invoked',
  'subscriptions',
  'emitter',
  'server',
  'mount',
  'connection',
  'upstream',
];

export function lanesOf(model: Model, rows: readonly MessageRow[], by: 'actor' | 'kind'): readonly MessageLane[] {
  const heard = new Set<string>();
  for (let index = rows.length - 1; index >= 0 && heard.size < MOST; index -= 1) {
    const row = rows[index];
    if (!row) continue;
    heard.add(row.to);
    if (row.from !== undefined) heard.add(row.from);
  }
  const rank = (id: string): number => WAY.indexOf(by === 'kind' ? id : kindOf(model, id));
  const age = (id: string): number => model.actor(id)?.lives.first?.seq ?? 0;
  return [...heard]
    .sort((a, b) => rank(a) - rank(b) || age(a) - age(b))
    .map((id) => {
      const line = by === 'actor' ? model.actor(id) : undefined;
      return {
        id,
        label: line ? displayName(line) : id,
        kind: by === 'kind' ? id : kindOf(model, id),
        ...(line && !line.aliveAt(Number.POSITIVE_INFINITY) ? { gone: true } : {}),
      };
    });
}
