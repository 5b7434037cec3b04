/** Pointer input of the timeline: a drag moves the cursor, Shift and a drag mark a range, the wheel zooms and pans. */
import { recordAt, type Scene } from './paint.ts';
import type { TimelineProps } from './props.ts';
import { rowAt } from './rows.ts';
import { timeAt } from './scale.ts';

/** The record under the pointer, and the position of its tip. */
export interface Pointed {
  readonly x: number;
  readonly y: number;
  readonly at: number;
  readonly label: string;
  readonly text: string;
}

export interface Pointing {
  readonly scene: () => Scene;
  readonly moved: { hovered: string | undefined; brushing: { from: number; to: number } | undefined };
  readonly props: () => TimelineProps;
  readonly zoom: (by: number, x: number) => void;
  readonly pan: (x: number, y: number) => void;
  readonly fit: () => void;
  readonly changed: () => void;
  readonly tip: (tip: Pointed | undefined) => void;
}

/** A movement of fewer pixels is a click. */
const CLICK = 4;

/** Adds the listeners to a canvas. @returns a function that removes them */
export function point(canvas: HTMLCanvasElement, pointing: Pointing): () => void {
  const { scene, moved, props, zoom, pan, fit, changed, tip } = pointing;
  let down: { readonly x: number; readonly y: number; readonly shift: boolean; dragged: boolean } | undefined;
  const here = (event: MouseEvent): { readonly x: number; readonly y: number } => {
    const { left, top } = canvas.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const timeOf = (x: number): number => {
    const { scale, left, until } = scene();
    return Math.min(until, timeAt(scale, Math.max(0, x - left)));
  };

  const start = (event: PointerEvent): void => {
    const { x, y } = here(event);
    if (event.button !== 0) return;
    down = { x, y, shift: event.shiftKey, dragged: false };
    canvas.setPointerCapture(event.pointerId);
    tip(undefined);
  };
  const move = (event: PointerEvent): void => {
    const { x, y } = here(event);
    if (down === undefined) return hover(x, y);
    if (!down.dragged && Math.abs(x - down.x) < CLICK) return;
    down.dragged = true;
    if (down.shift) {
      const [one, other] = [timeOf(down.x), timeOf(x)];
      moved.brushing = { from: Math.min(one, other), to: Math.max(one, other) };
      changed();
    } else if (down.x >= scene().left) props().onCursor(timeOf(x));
  };
  const end = (event: PointerEvent): void => {
    if (down === undefined) return;
    const { x, y, shift, dragged } = down;
    down = undefined;
    if (canvas.hasPointerCapture(event.pointerId)) canvas.releasePointerCapture(event.pointerId);
    if (shift && dragged) {
      const { brushing } = moved;
      moved.brushing = undefined;
      if (brushing !== undefined && brushing.to > brushing.from) props().onBrush(brushing);
    } else if (!dragged && event.type === 'pointerup') click(x, y);
  };
  const click = (x: number, y: number): void => {
    const { places, scroll, left, axis, scale } = scene();
    const place = y < axis ? undefined : rowAt(places, y + scroll);
    if (x >= left) props().onCursor(timeOf(x));
    if (place === undefined) return;
    const record = x < left ? undefined : recordAt(scale, place, x - left, y + scroll);
    if (record === undefined) props().onSelect(place.row.id);
    else props().onSelect(place.row.id, record.seq);
  };
  const hover = (x: number, y: number): void => {
    const { places, scroll, left, axis, scale, width } = scene();
    const place = y < axis ? undefined : rowAt(places, y + scroll);
    if (moved.hovered !== place?.row.id) {
      moved.hovered = place?.row.id;
      changed();
    }
    const record = place === undefined || x < left ? undefined : recordAt(scale, place, x - left, y + scroll);
    if (place === undefined || record === undefined) return tip(undefined);
    tip({ x: Math.min(x + 12, width - 220), y: y + 14, at: timeOf(x), label: place.row.label, text: record.text });
  };
  const leave = (): void => {
    moved.hovered = undefined;
    tip(undefined);
    changed();
  };
  const wheel = (event: WheelEvent): void => {
    const { form, left, places, height } = scene();
    const last = places.at(-1);
    const overflows = form === 'full' && last !== undefined && last.y + last.height > height;
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX || event.deltaY, 0);
    else if (overflows && !event.ctrlKey) pan(0, event.deltaY);
    else zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), here(event).x - left);
  };

  canvas.addEventListener('pointerdown', start);
  canvas.addEventListener('pointermove', move);
  canvas.addEventListener('pointerup', end);
  canvas.addEventListener('pointercancel', end);
  canvas.addEventListener('pointerleave', leave);
  canvas.addEventListener('dblclick', fit);
  canvas.addEventListener('wheel', wheel, { passive: false });
  return () => {
    canvas.removeEventListener('pointerdown', start);
    canvas.removeEventListener('pointermove', move);
    canvas.removeEventListener('pointerup', end);
    canvas.removeEventListener('pointercancel', end);
    canvas.removeEventListener('pointerleave', leave);
    canvas.removeEventListener('dblclick', fit);
    canvas.removeEventListener('wheel', wheel);
  };
}
