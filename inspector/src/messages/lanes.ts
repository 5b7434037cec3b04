/**
 * The positions of the lanes, and the lanes of each message. One lane for each actor, or for each kind. Pure functions.
 */
import type { MessageLane, MessageRow } from './props.ts';

export interface Lane {
  readonly id: string;
  readonly label: string;
  readonly kind: string;
  /** The number of its actors. */
  readonly actors: number;
  readonly gone: boolean;
  /** Its middle, from the left. */
  readonly x: number;
}

export interface Lanes {
  readonly all: readonly Lane[];
  /** The lane of each actor. */
  readonly of: ReadonlyMap<string, Lane>;
  readonly width: number;
  readonly each: number;
}

/** Minimum and maximum width of a lane. */
const LEAST = 104;
const MOST = 220;
/** Maximum number of lanes: further actors share the last one. */
const MOST_LANES = 60;

export function lanesOf(given: readonly MessageLane[], by: 'actor' | 'kind', room: number): Lanes {
  const groups = new Map<string, { readonly first: MessageLane; readonly members: MessageLane[] }>();
  for (const lane of given) {
    const wanted = by === 'kind' ? lane.kind : lane.id;
    const key = groups.size >= MOST_LANES && !groups.has(wanted) ? OTHERS : wanted;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { first: lane, members: [lane] });
    else group.members.push(lane);
  }
  const each = Math.min(MOST, Math.max(LEAST, Math.floor(room / Math.max(1, groups.size))));
  const of = new Map<string, Lane>();
  const all = [...groups].map(([id, { first, members }], index): Lane => {
    const lane: Lane = {
      id,
      label: id === OTHERS ? 'others' : by === 'kind' ? first.kind : first.label,
      kind: by === 'actor' && id !== OTHERS ? first.kind : members.length === 1 ? '' : `${members.length} actors`,
      actors: members.length,
      gone: members.every(({ gone = false }) => gone),
      x: index * each + each / 2,
    };
    for (const member of members) of.set(member.id, lane);
    return lane;
  });
  return { all, of, each, width: Math.max(room, all.length * each) };
}

const OTHERS = '\n';

/** The ends of an arrow. Undefined: unknown sender. */
export function endsOf(row: MessageRow, { of }: Lanes): { readonly from: number | undefined; readonly to: number } {
  const to = of.get(row.to)?.x ?? of.get('client')?.x ?? 0;
  return { from: row.from === undefined ? undefined : of.get(row.from)?.x, to };
}

/** The index of the first row at or after a sequence number. @param rows ascending */
export function rowFrom(rows: readonly MessageRow[], seq: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle]?.seq ?? 0) < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The rows in view, with some before and after them. */
export function windowOf(
  top: number,
  height: number,
  row: number,
  count: number,
): { readonly first: number; readonly last: number } {
  const spare = 8;
  return {
    first: Math.max(0, Math.min(count, Math.floor(top / row) - spare)),
    last: Math.max(0, Math.min(count, Math.ceil((top + height) / row) + spare)),
  };
}
