/** The rows of a timeline: one for each actor with its states, and one for each connection with its exchanges. */
import type { ActorLine } from './actor-line.ts';
import { isMachinery } from './message-rows.ts';
import { missing } from './missing.ts';
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { displayName, doorName } from './tree.ts';
import type { WireExchange } from './wire-exchange.ts';

export interface TimelineRow {
  /** An actor's address, or `wire` and the connection. */
  readonly id: string;
  readonly label: string;
  /** The kind, shown before the label. */
  readonly kind: string;
  readonly depth?: number;
  /** Each state lasts until the next one begins; the last until {@link TimelineRow.until}. */
  readonly states: readonly StateSpan[];
  /** Exchanges. Overlapping ones are stacked. */
  readonly wire?: readonly WireSpan[];
  readonly marks: readonly TimelineMark[];
  /** The end of the actor. Absent: it is alive. */
  readonly until?: number;
}

export interface StateSpan {
  readonly at: number;
  readonly seq: number;
  readonly state: string;
}

export interface WireSpan {
  readonly seq: number;
  readonly at: number;
  /** Absent: the request is open. */
  readonly end?: number;
  readonly label: string;
  readonly outcome: 'ok' | 'error' | 'open';
}

export interface TimelineMark {
  readonly at: number;
  readonly seq: number;
  readonly kind: 'crashed' | 'unhandled' | 'dropped' | 'gap';
  readonly text: string;
}

/** Maximum numbers of rows, and of the latest ended actors among them. */
const MOST = 400;
const MOST_GONE = 60;

/**
 * Each connection's wire with the actors that serve it, then handles, tasks and machines.
 *
 * @param also the selected actor, which is shown whatever its kind
 */
export function timelineRows(model: Model, also?: string): readonly TimelineRow[] {
  const wanted = [...model.actors.values()].filter(
    ({ kind, address, lives }) => lives.length > 0 && (address === also || (!isMachinery(kind) && kind !== 'server')),
  );
  const gone = wanted.filter((line) => !line.aliveAt(LIVE)).slice(0, -MOST_GONE);
  const hidden = new Set(gone);
  const shown = wanted.filter((line) => !hidden.has(line) || line.address === also);
  const wires = wiresOf(model);
  const rows: TimelineRow[] = [];
  const gaps = model.gaps.map(
    (gap): TimelineMark => ({
      at: gap.at,
      seq: gap.from,
      kind: 'gap',
      text: `not shown: ${missing([gap])} (${gap.why})`,
    }),
  );
  for (const [connection, spans] of wires) {
    const label = doorName(model, connection);
    rows.push({ id: `wire ${connection}`, label, kind: 'wire', states: [], wire: spans, marks: gaps });
    for (const mine of shown) if (mine.connection === connection) rows.push(rowOf(mine, 1));
  }
  for (const line of shown) {
    if (line.connection !== undefined && wires.has(line.connection)) continue;
    rows.push(rowOf(line, 0));
  }
  return rows.slice(0, MOST);
}

function wiresOf(model: Model): ReadonlyMap<string, readonly WireSpan[]> {
  const wires = new Map<string, WireSpan[]>();
  for (const exchange of model.exchanges.all.until(LIVE)) {
    if (exchange.kind === 'notification') continue;
    const spans = wires.get(exchange.connection);
    if (spans) spans.push(spanOf(exchange));
    else wires.set(exchange.connection, [spanOf(exchange)]);
  }
  return wires;
}

const HOP_WAY = { to: '→', from: '←' } as const;

function spanOf({ seq, at, endAt, method, target, status, hop }: WireExchange): WireSpan {
  return {
    seq,
    at,
    label: `${target === undefined ? method : `${method} ${target}`}${hop ? ` ${HOP_WAY[hop.way]} ${hop.node}` : ''}`,
    outcome: status === 'open' ? 'open' : status === 'ok' || status === 'asked' ? 'ok' : 'error',
    ...(endAt === undefined ? {} : { end: endAt }),
  };
}

function rowOf(line: ActorLine, depth: number): TimelineRow {
  const until = line.aliveAt(LIVE) ? undefined : line.lives.last?.endAt;
  return {
    id: line.address,
    label: displayName(line),
    kind: line.kind,
    depth,
    states: line.standings.until(LIVE),
    marks: line.troubles.until(LIVE).map(({ at, seq, type }) => ({
      at,
      seq,
      kind: type === 'crashed' ? 'crashed' : type === 'step' ? 'unhandled' : 'dropped',
      text: type,
    })),
    ...(until === undefined ? {} : { until }),
  };
}
