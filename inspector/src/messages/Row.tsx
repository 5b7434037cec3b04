/** One message: its time, the arrow from its sender's lane to its receiver's, and its fate. */
import type { Lanes } from './lanes.ts';
import { endsOf } from './lanes.ts';
import type { MessageRow } from './props.ts';

export const ROW = 30;
/** Minimum idle time that is shown between two rows. */
const IDLE = 3_000;
const HEAD = 8;

export interface RowProps {
  readonly row: MessageRow;
  readonly index: number;
  readonly count: number;
  readonly before: MessageRow | undefined;
  readonly lanes: Lanes;
  readonly classes: string;
  readonly selected: boolean;
  readonly time: string;
  /** The visible range of the lanes, from the left. */
  readonly seen: Seen;
  /** The number of progress notifications of the call, and whether they are rows. */
  readonly reports: number;
  readonly open: boolean;
}

export interface Seen {
  readonly left: number;
  readonly right: number;
}

export function Row({ row, index, count, before, lanes, classes, selected, time, seen, reports, open }: RowProps) {
  const idle = before === undefined ? 0 : row.at - before.at;
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus, and says which of its rows is meant.
    <div
      id={`message-${row.seq}`}
      class={`message of-${row.kind} ${row.mark === undefined ? '' : `is-${row.mark}`} ${classes}`}
      role="option"
      aria-selected={selected}
      aria-setsize={count}
      aria-posinset={index + 1}
      data-seq={row.seq}
      style={{ top: `${index * ROW}px` }}
    >
      {/* The drawn text is cut, and may differ from the name of the row (axe: label-content-name-mismatch). */}
      <span class="unseen">
        {inWords(row, lanes, time)}
        {reports === 0 ? '' : `, ${reports} progress notifications, Enter ${open ? 'folds' : 'shows'} them`}
      </span>
      <span class="message-time" aria-hidden="true">
        {time}
      </span>
      <svg width={lanes.width} height={ROW} aria-hidden="true">
        <Arrow row={row} lanes={lanes} seen={seen} />
      </svg>
      {reports === 0 ? null : (
        <span class="message-fold" aria-hidden="true" title={`${reports} progress notifications (Enter)`}>
          {open ? '−' : '+'}
          {reports}
        </span>
      )}
      {idle > IDLE && <span class="message-idle" aria-hidden="true">{`${lengthOf(idle)} idle`}</span>}
    </div>
  );
}

function Arrow({ row, lanes, seen }: { readonly row: MessageRow; readonly lanes: Lanes; readonly seen: Seen }) {
  const { from, to } = endsOf(row, lanes);
  const y = ROW - 9;
  const { name, mark } = row;
  const stub = lanes.each * 0.36;
  // Labels are on the side with more space.
  const atEnd = to + lanes.each > lanes.width;
  const leftmost = Math.min(to, from ?? to);
  const rightmost = Math.max(to, from ?? to);
  if (leftmost > seen.right - 12 || rightmost < seen.left + 12)
    return <Away row={row} seen={seen} y={y} right={leftmost > seen.left} lanes={lanes} />;
  if (from === to)
    return (
      <>
        <path class="line" d={`M${to} ${y - 8}h14a4 4 0 0 1 4 4v1a4 4 0 0 1 -4 4h-7`} />
        <path class="head" d={headAt(to + 1, y + 1, -1)} />
        <Text
          x={atEnd ? to - 22 : to + 26}
          y={y - 1}
          anchor={atEnd ? 'end' : 'start'}
          row={row}
          room={lanes.each * 2}
          text={name}
        />
        {mark !== undefined && <Mark mark={mark} x={to - 10} y={y - 2} />}
      </>
    );
  const first = to < lanes.each;
  const start = from ?? to - stub;
  const way = start < to ? 1 : -1;
  // A dropped message does not arrive.
  const end = mark === 'dropped' ? to - way * 26 : to - way * 2;
  // The name is in the middle of the visible part of the arrow, or at the edge if too little is visible.
  const low = Math.max(seen.left, leftmost);
  const high = Math.min(seen.right, rightmost);
  const narrow = high - low < Math.min(rightmost - leftmost, 70);
  const atRight = narrow && rightmost > seen.right;
  const middle = atRight ? seen.right - 6 : narrow ? seen.left + 6 : (low + high) / 2;
  const anchor = atRight ? 'end' : narrow ? 'start' : 'middle';
  return (
    <>
      {from === undefined ? (
        <circle class="unknown" cx={start} cy={y} r={3} />
      ) : (
        <circle class="start" cx={start} cy={y} r={2.5} />
      )}
      <path class="line" d={`M${start + way * 3} ${y}H${end - way * (HEAD - 1)}`} />
      <path class="head" d={headAt(end, y, way)} />
      <Text
        x={from !== undefined ? middle : first ? to + (mark === undefined ? 8 : 22) : start - 6}
        y={from === undefined ? y + 4 : y - 6}
        anchor={from !== undefined ? anchor : first ? 'start' : 'end'}
        row={row}
        room={from === undefined ? lanes.each * 2 : narrow ? 120 : high - low - 16}
        text={name}
      />
      {mark !== undefined && <Mark mark={mark} x={mark === 'dropped' ? end + way * 9 : to + way * 11} y={y} />}
    </>
  );
}

/** The name of an arrow between lanes that are out of view, at the nearest edge. */
function Away({
  row,
  seen,
  y,
  right,
  lanes,
}: {
  readonly row: MessageRow;
  readonly seen: Seen;
  readonly y: number;
  readonly right: boolean;
  readonly lanes: Lanes;
}) {
  const label = lanes.of.get(row.to)?.label ?? row.to;
  return (
    <text class="away" x={right ? seen.right - 10 : seen.left + 10} y={y} text-anchor={right ? 'end' : 'start'}>
      {right ? `${row.name} to ${label} ▸` : `◂ ${row.name} to ${label}`}
    </text>
  );
}

interface TextProps {
  readonly x: number;
  readonly y: number;
  readonly anchor: 'start' | 'middle' | 'end';
  readonly row: MessageRow;
  readonly room: number;
  readonly text: string;
}

/** A text cut to the space between the lanes, estimated from the width of its font. */
function Text({ x, y, anchor, row, room, text }: TextProps) {
  const most = Math.max(6, Math.floor(room / 6.2));
  const shown = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  return (
    <text x={x} y={y} text-anchor={anchor}>
      {shown}
      {row.mark !== undefined && room > (shown.length + row.mark.length + 2) * 6.2 && (
        <tspan class="what">{` ${row.mark}`}</tspan>
      )}
    </text>
  );
}

/** A mark with a shape of its own: a triangle, a cross, a ring. */
function Mark({
  mark,
  x,
  y,
}: {
  readonly mark: NonNullable<MessageRow['mark']>;
  readonly x: number;
  readonly y: number;
}) {
  const shapes: Readonly<Record<NonNullable<MessageRow['mark']>, string>> = {
    unhandled: `M${x} ${y - 6}L${x + 6} ${y + 5}H${x - 6}Z`,
    dropped: `M${x - 4} ${y - 4}L${x + 4} ${y + 4}M${x + 4} ${y - 4}L${x - 4} ${y + 4}`,
    crashed: `M${x - 5} ${y - 5}L${x + 5} ${y + 5}M${x + 5} ${y - 5}L${x - 5} ${y + 5}`,
    queued: `M${x} ${y - 4.5}A4.5 4.5 0 1 1 ${x - 0.01} ${y - 4.5}M${x} ${y - 2}V${y}H${x + 2}`,
  };
  return <path class={`mark is-${mark}`} d={shapes[mark]} />;
}

function headAt(x: number, y: number, way: number): string {
  return `M${x} ${y}l${-way * HEAD} -4v8Z`;
}

function inWords({ from, to, name, mark, kind }: MessageRow, { of }: Lanes, time: string): string {
  const sender = from === undefined ? '' : `from ${of.get(from)?.label ?? from} `;
  return `${time}: ${kind} ${name} ${sender}to ${of.get(to)?.label ?? to}${mark === undefined ? '' : `, ${mark}`}`;
}

function lengthOf(ms: number): string {
  if (ms < 60_000) return `${Math.round(ms / 100) / 10} s`;
  return ms < 3_600_000 ? `${Math.round(ms / 6_000) / 10} min` : `${Math.round(ms / 360_000) / 10} h`;
}
