/** Draws the timeline: only visible rows and spans, at most one for each pixel, without an allocation per frame. */
import { bare } from '../parts/time.ts';
import { drawAxis, drawCursor, drawFolds } from './paint-time.ts';
import type { StateSpan, TimelineMark, TimelineRow } from './props.ts';
import type { RowPlace } from './rows.ts';
import { firstFrom, type Scale, stretchAt, timeAt, xIn, xOf } from './scale.ts';
import type { Theme } from './theme.ts';
import { toneOf } from './tones.ts';

export interface Scene {
  readonly form: 'strip' | 'full';
  readonly places: readonly RowPlace[];
  readonly scale: Scale;
  readonly theme: Theme;
  readonly width: number;
  readonly height: number;
  /** The left edge of the time range. */
  readonly left: number;
  readonly axis: number;
  readonly until: number;
  readonly live: boolean;
  readonly scroll: number;
  readonly cursor: number | undefined;
  readonly brush: { readonly from: number; readonly to: number } | undefined;
  readonly selected: string | undefined;
  readonly hovered: string | undefined;
  readonly clock: (at: number) => string;
}

const TAU = Math.PI * 2;
/** Minimum height of a row with a name. */
const LABELLED = 12;

export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const { theme, width, height, left, axis, places, scroll } = scene;
  context.clearRect(0, 0, width, height);
  context.font = `11px ${theme.sans}`;
  context.textBaseline = 'middle';
  context.save();
  context.beginPath();
  context.rect(0, axis, width, height - axis);
  context.clip();
  context.translate(0, -scroll);
  for (const place of places) {
    if (place.y + place.height < scroll + axis || place.y > scroll + height) continue;
    drawBack(context, scene, place);
  }
  context.save();
  context.beginPath();
  context.rect(left, scroll, width - left, height);
  context.clip();
  context.translate(left, 0);
  for (const place of places) {
    if (place.y + place.height < scroll + axis || place.y > scroll + height) continue;
    drawStates(context, scene, place);
    drawWire(context, scene, place);
    drawMarks(context, scene, place);
  }
  context.restore();
  context.restore();
  drawFolds(context, scene);
  drawAxis(context, scene);
  drawCursor(context, scene);
}

function drawBack(context: CanvasRenderingContext2D, scene: Scene, { row, y, height }: RowPlace): void {
  const { theme, width, form, left, selected, hovered } = scene;
  if (row.id === selected || row.id === hovered) {
    context.fillStyle = row.id === selected ? theme.accentSoft : theme.hover;
    context.fillRect(0, y, width, height);
  }
  if (height < LABELLED) return;
  const full = form === 'full';
  const middle = y + height / 2 + (full ? 0 : 0.5);
  const x = 12 + (full ? (row.depth ?? 0) * 12 : 0);
  const end = left - 8;
  context.fillStyle = row.until === undefined ? theme.ink : theme.ink3;
  const label = shortened(context, bare(row.label), end - x);
  context.fillText(label, x, middle);
  if (!full) return;
  // A kind without room is omitted: a part of a word says nothing.
  const beside = x + widthOf(context, label) + 8;
  context.fillStyle = theme.ink3;
  if (beside + widthOf(context, row.kind) <= end) context.fillText(row.kind, beside, middle);
  context.fillStyle = theme.rule;
  context.fillRect(0, y + height - 0.5, width, 0.5);
}

/** A text with an ellipsis if it is wider than its room. */
function shortened(context: CanvasRenderingContext2D, text: string, room: number): string {
  const wide = widthOf(context, text);
  if (wide <= room) return text;
  return `${text.slice(0, Math.max(1, Math.floor((text.length * (room - 8)) / wide)))}…`;
}

function drawStates(context: CanvasRenderingContext2D, scene: Scene, { row, y, height }: RowPlace): void {
  const { scale, theme, width, left, form } = scene;
  const { states } = row;
  const ended = row.until ?? scene.until;
  const seen = width - left;
  const first = Math.max(0, firstFrom(states, timeAt(scale, 0)) - 1);
  let stretch = stretchAt(scale.starts, states[first]?.at ?? 0);
  let drawn = -1;
  const inset = form === 'full' ? 3 : 0.5;
  for (let index = first; index < states.length; index += 1) {
    const span = states[index];
    if (span === undefined) break;
    stretch = forward(scale, stretch, span.at);
    const from = xIn(scale, stretch, span.at);
    if (from > seen) break;
    const end = Math.min(ended, states[index + 1]?.at ?? ended);
    const to = xOf(scale, end);
    // Of spans narrower than a pixel, draw one for each pixel.
    if (to <= drawn) continue;
    drawn = Math.max(from + 1, to);
    drawSpan(context, theme, span, Math.max(from, -4), Math.min(to, seen + 4), y + inset, height - 2 * inset, form);
    if (form === 'full' && to - from > 24)
      nameSpan(context, scene, span.state, stretch, from, to, y + height / 2 + 0.5);
  }
}

function drawSpan(
  context: CanvasRenderingContext2D,
  theme: Theme,
  { state }: StateSpan,
  from: number,
  to: number,
  y: number,
  height: number,
  form: 'strip' | 'full',
): void {
  const wide = Math.max(1, to - from - 1);
  context.fillStyle = theme.spans[toneOf(state)] ?? theme.idle;
  if (wide < 5 || form === 'strip') context.fillRect(from, y, wide, height);
  else {
    context.beginPath();
    context.roundRect(from, y, wide, height, 3);
    context.fill();
  }
}

/** The name stays in view while its span is, and outside of folds. */
function nameSpan(
  context: CanvasRenderingContext2D,
  { scale, theme }: Scene,
  state: string,
  stretch: number,
  from: number,
  to: number,
  y: number,
): void {
  const text = widthOf(context, state) + 12;
  for (let index = stretch; index < scale.starts.length; index += 1) {
    const left = Math.max(from, 0, index === stretch ? 0 : xIn(scale, index, scale.starts[index] ?? 0));
    const right = Math.min(to, xIn(scale, index, scale.ends[index] ?? 0));
    if (left > to) return;
    if (right - left < text) continue;
    context.fillStyle = theme.spanInk;
    context.fillText(state, left + 6, y);
    return;
  }
}

function drawWire(context: CanvasRenderingContext2D, scene: Scene, { row, y, height, lanes, count }: RowPlace): void {
  const { wire } = row;
  if (wire === undefined) return;
  const { scale, theme, width, left, until, form } = scene;
  const seen = width - left;
  const inset = form === 'full' ? 4 : 1;
  const each = (height - 2 * inset) / count;
  let stretch = 0;
  for (let index = 0; index < wire.length; index += 1) {
    const span = wire[index];
    if (span === undefined) break;
    stretch = forward(scale, stretch, span.at);
    const from = xIn(scale, stretch, span.at);
    if (from > seen) break;
    const to = Math.max(from + 2, xOf(scale, span.end ?? until));
    if (to < 0) continue;
    const top = y + inset + (lanes[index] ?? 0) * each;
    context.fillStyle = span.outcome === 'error' ? theme.bad : span.outcome === 'open' ? theme.wait : theme.good;
    context.fillRect(
      Math.max(-2, from),
      top + (each > 4 ? 1 : 0),
      Math.min(to, seen + 2) - Math.max(-2, from),
      Math.max(1, each - 2),
    );
  }
}

function drawMarks(
  context: CanvasRenderingContext2D,
  { scale, theme, width, left }: Scene,
  { row, y, height }: RowPlace,
): void {
  const { marks } = row;
  const middle = y + height / 2;
  for (let index = firstFrom(marks, timeAt(scale, -8)); index < marks.length; index += 1) {
    const mark = marks[index];
    if (mark === undefined) break;
    const x = xOf(scale, mark.at);
    if (x > width - left + 8) break;
    drawMark(context, theme, mark, x, middle, Math.min(5, height / 2));
  }
}

/** A mark differs in shape as well as in colour: a cross, a triangle, a ring, a bar. */
function drawMark(
  context: CanvasRenderingContext2D,
  theme: Theme,
  { kind }: TimelineMark,
  x: number,
  y: number,
  r: number,
): void {
  context.lineWidth = 1.8;
  context.beginPath();
  context.strokeStyle = kind === 'crashed' ? theme.bad : theme.hot;
  context.fillStyle = theme.hot;
  if (kind === 'crashed') {
    context.moveTo(x - r, y - r);
    context.lineTo(x + r, y + r);
    context.moveTo(x + r, y - r);
    context.lineTo(x - r, y + r);
    context.stroke();
  } else if (kind === 'unhandled') {
    context.moveTo(x, y - r);
    context.lineTo(x + r, y + r);
    context.lineTo(x - r, y + r);
    context.fill();
  } else if (kind === 'dropped') {
    context.arc(x, y, r - 0.5, 0, TAU);
    context.stroke();
  } else {
    context.moveTo(x, y - r);
    context.lineTo(x, y + r);
    context.stroke();
  }
}

/** Times only grow along a row: the next stretch is this one, or one soon after it. */
function forward({ starts }: Scale, from: number, at: number): number {
  let index = from;
  for (let next = starts[index + 1]; next !== undefined && next <= at; next = starts[index + 1]) index += 1;
  return index;
}

const widths = new Map<string, number>();
let measuredIn = '';

function widthOf(context: CanvasRenderingContext2D, text: string): number {
  if (measuredIn !== context.font || widths.size > 4_000) {
    widths.clear();
    measuredIn = context.font;
  }
  let width = widths.get(text);
  if (width === undefined) {
    width = context.measureText(text).width;
    widths.set(text, width);
  }
  return width;
}

/** The record at a position of a row: a mark, an exchange, or a state. */
export function recordAt(
  scale: Scale,
  place: RowPlace,
  x: number,
  y: number,
): { readonly seq: number; readonly text: string } | undefined {
  const { row, lanes, count } = place;
  const mark = row.marks.find(({ at }) => Math.abs(xOf(scale, at) - x) <= 6);
  if (mark !== undefined) return { seq: mark.seq, text: mark.text };
  const at = timeAt(scale, x);
  const lane = Math.floor(((y - place.y) / place.height) * count);
  const { wire = [] } = row;
  for (let index = firstFrom(wire, at + 1) - 1; index >= 0; index -= 1) {
    const span = wire[index];
    if (
      span !== undefined &&
      (count === 1 || lanes[index] === lane) &&
      xOf(scale, span.end ?? Number.MAX_VALUE) + 3 >= x
    )
      return { seq: span.seq, text: `${span.label}: ${span.outcome}` };
  }
  return stateAt(row, at);
}

function stateAt(
  { states, until }: TimelineRow,
  at: number,
): { readonly seq: number; readonly text: string } | undefined {
  const span = states[Math.max(0, firstFrom(states, at + 0.001) - 1)];
  return span === undefined || span.at > at || (until !== undefined && at > until)
    ? undefined
    : { seq: span.seq, text: span.state };
}
