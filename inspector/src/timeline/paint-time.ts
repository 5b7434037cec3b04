/** Draws the time itself: the axis, the folds, the brush and the cursor. */
import type { Scene } from './paint.ts';
import { lengthOf, roundStep, xIn, xOf } from './scale.ts';

/** Minimum distance of two axis marks in pixels. */
const TICK = 84;

export function drawFolds(
  context: CanvasRenderingContext2D,
  { scale, theme, width, height, left, axis, form }: Scene,
): void {
  const { starts, ends, fold } = scale;
  for (let index = 0; index + 1 < starts.length; index += 1) {
    const end = ends[index] ?? 0;
    const from = left + xIn(scale, index, end);
    if (from > width) break;
    if (from + fold < left) continue;
    const x = Math.max(left, from);
    const wide = from + fold - x;
    // Spans that last through idle time show through.
    context.globalAlpha = 0.82;
    context.fillStyle = theme.idle;
    context.fillRect(x, axis, wide, height - axis);
    context.globalAlpha = 1;
    if (fold < 8) continue;
    zigzag(context, theme.ink3, from + fold / 2 - 3, axis, height, left);
    zigzag(context, theme.ink3, from + fold / 2 + 3, axis, height, left);
    if (form === 'full' && fold >= 20) {
      context.save();
      context.translate(from + fold / 2, axis + 34);
      context.rotate(-Math.PI / 2);
      const text = `${lengthOf((starts[index + 1] ?? end) - end)} idle`;
      context.textAlign = 'center';
      const half = context.measureText(text).width / 2 + 4;
      context.fillStyle = theme.idle;
      context.fillRect(-half, -7, 2 * half, 14);
      context.fillStyle = theme.ink3;
      context.fillText(text, 0, 0);
      context.restore();
    }
  }
}

function zigzag(
  context: CanvasRenderingContext2D,
  colour: string,
  x: number,
  top: number,
  bottom: number,
  left: number,
): void {
  if (x < left) return;
  context.strokeStyle = colour;
  context.globalAlpha = 0.45;
  context.lineWidth = 1;
  context.beginPath();
  for (let y = top, side = 0; y <= bottom + 6; y += 6, side = 2 - side) {
    if (y === top) context.moveTo(x + side, y);
    else context.lineTo(x + side, y);
  }
  context.stroke();
  context.globalAlpha = 1;
}

export function drawAxis(context: CanvasRenderingContext2D, scene: Scene): void {
  const { theme, width, left, axis } = scene;
  const { starts, ends, k } = scene.scale;
  const knob = knobOf(context, scene);
  const begin = starts[0] ?? 0;
  const step = roundStep(TICK / k);
  context.textAlign = 'left';
  context.fillStyle = theme.rule;
  context.fillRect(0, axis - 1, width, 1);
  context.fillStyle = theme.ink3;
  let last = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < starts.length; index += 1) {
    const end = ends[index] ?? 0;
    for (let at = begin + Math.ceil(((starts[index] ?? 0) - begin) / step) * step; at <= end; at += step) {
      const x = left + xIn(scene.scale, index, at);
      if (x > width) break;
      if (x < left || x - last < TICK * 0.8) continue;
      last = x;
      context.fillRect(Math.round(x), axis - 5, 1, 4);
      const text = at === begin ? '0' : `+${lengthOf(at - begin, step)}`;
      const from = Math.round(x) + 4;
      // The knob of the cursor would hide a part of the text.
      const hidden =
        knob !== undefined && from < knob.from + knob.wide && from + context.measureText(text).width > knob.from;
      if (!hidden) context.fillText(text, from, axis / 2);
    }
  }
  context.fillStyle = theme.rule;
  context.fillRect(left - 1, 0, 1, 100_000);
}

/** The knob of the cursor, which shows its time or "live". Undefined: the cursor is out of view. */
function knobOf(context: CanvasRenderingContext2D, { scale, width, left, cursor, until, live, clock }: Scene) {
  const x = Math.round(left + xOf(scale, cursor ?? until));
  if (x < left || x > width + 1) return undefined;
  const text = cursor === undefined && live ? 'live' : clock(cursor ?? until);
  const wide = context.measureText(text).width + 12;
  return { x, text, wide, from: Math.min(Math.max(left, x - wide / 2), width - wide) };
}

export function drawCursor(context: CanvasRenderingContext2D, scene: Scene): void {
  const { scale, theme, width, height, left, brush, cursor, live, axis } = scene;
  if (brush !== undefined) {
    const from = Math.max(left, left + xOf(scale, brush.from));
    const to = Math.min(width, left + xOf(scale, brush.to));
    context.fillStyle = theme.cursor;
    context.globalAlpha = 0.12;
    context.fillRect(from, 0, Math.max(1, to - from), height);
    context.globalAlpha = 1;
    context.fillRect(from, 0, 1.5, height);
    context.fillRect(to - 1.5, 0, 1.5, height);
  }
  const knob = knobOf(context, scene);
  if (knob === undefined) return;
  const { x, text, wide, from: at } = knob;
  context.fillStyle = cursor === undefined && live ? theme.good : theme.cursor;
  context.fillRect(Math.min(x, width - 2) - 0.75, 0, 1.5, height);
  const tall = Math.min(16, axis - 2);
  context.beginPath();
  context.roundRect(at, 1, wide, tall, 4);
  context.fill();
  context.fillStyle = theme.back;
  context.fillText(text, at + 6, 1 + tall / 2 + 0.5);
}
