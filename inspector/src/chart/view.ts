/**
 * The position and zoom of the picture in its pane: pure functions, and one hook that moves the picture without
 * rendering it again.
 */
import { useCallback, useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Point, Rect } from '../../../src/features/charts/placed.ts';

/** A point of the picture is shown at `x + k * its x`. */
export interface View extends Point {
  readonly k: number;
}

interface Held<Part> {
  readonly current: Part | null;
}

type Size = Pick<Rect, 'width' | 'height'>;

const SMALLEST = 0.1;
const LARGEST = 3;
const MARGIN = 20;

/** The whole picture in the middle of the pane, enlarged by at most a fifth. */
export function fit(picture: Size, pane: Size): View {
  const room = { width: Math.max(1, pane.width - 2 * MARGIN), height: Math.max(1, pane.height - 2 * MARGIN) };
  const k = Math.min(1.2, room.width / picture.width, room.height / picture.height);
  return { k, x: (pane.width - picture.width * k) / 2, y: (pane.height - picture.height * k) / 2 };
}

/** The scale at which the smallest text of a chart (11.5 px in chart.css) has 11 px. */
const READABLE = 11 / 11.5;

/**
 * The view of a chart that a reader has not moved: the whole picture if its text is readable then; otherwise as small as
 * is readable, with the given part in the middle.
 */
export function readable(picture: Size, pane: Size, part: Rect | undefined): View {
  const whole = fit(picture, pane);
  if (whole.k >= READABLE) return whole;
  const k = READABLE;
  const { x, y, width, height } = part ?? { x: 0, y: 0, width: 0, height: 0 };
  const along = (size: number, room: number, middle: number): number =>
    size * k + 2 * MARGIN <= room
      ? (room - size * k) / 2
      : Math.min(MARGIN, Math.max(room - size * k - MARGIN, room / 2 - middle * k));
  return {
    k,
    x: along(picture.width, pane.width, x + width / 2),
    y: along(picture.height, pane.height, y + height / 2),
  };
}

/** True if a part of the picture is completely visible. */
export function shows({ k, x, y }: View, pane: Size, part: Rect): boolean {
  const left = x + part.x * k;
  const top = y + part.y * k;
  return left >= 0 && top >= 0 && left + part.width * k <= pane.width && top + part.height * k <= pane.height;
}

/** Zooms by a factor; one point of the pane stays in place. */
export function zoomAt(view: View, by: number, { x, y }: Point): View {
  // A fitted picture below the minimum is not enlarged by a step to a smaller size.
  const k = Math.min(LARGEST, Math.max(Math.min(SMALLEST, view.k), view.k * by));
  const ratio = k / view.k;
  return { k, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio };
}

export function pan(view: View, { x, y }: Point): View {
  return { ...view, x: view.x + x, y: view.y + y };
}

/** The view of another picture of the same chart: at the same scale, with the same share of the picture in the middle of the pane. */
export function carried({ k, x, y }: View, from: Size, to: Size, pane: Size): View {
  const middle = { x: pane.width / 2, y: pane.height / 2 };
  return {
    k,
    x: middle.x - ((middle.x - x) * to.width) / from.width,
    y: middle.y - ((middle.y - y) * to.height) / from.height,
  };
}

export interface Moving {
  readonly zoom: (by: number) => void;
  readonly pan: (by: Point) => void;
  /** Shows the whole picture, however small. */
  readonly fit: () => void;
  /** Shows the active states at a readable size. */
  readonly centre: () => void;
}

/**
 * `auto`: follows the active states. `whole`: fits every pane. `free`: the reader has moved the picture. A mode lasts until the reader
 * chooses another one, or the chart is another one.
 */
type Mode = 'auto' | 'whole' | 'free';

/**
 * Wheel and pinch zoom at the pointer, a drag pans. Until the reader has moved the picture, it follows the size of the
 * pane and the active states.
 *
 * @param id the chart's: the final layout of a chart replaces its draft, and a pane of another shape has another picture of it
 * @param part the active states
 */
export function useView(
  pane: Held<HTMLElement>,
  picture: Held<SVGGElement>,
  id: string,
  size: Size | undefined,
  part: Rect | undefined,
): Moving {
  const state = useRef<{ view: View; mode: Mode }>({ view: { x: 0, y: 0, k: 1 }, mode: 'auto' });
  const set = useCallback((view: View, mode: Mode) => {
    state.current = { view, mode };
    const { x, y, k } = view;
    picture.current?.setAttribute('transform', `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${k.toFixed(4)})`);
  }, []);
  const shown = useRef<{ readonly id: string; readonly size: Size } | undefined>(undefined);
  const active = useRef(part);
  active.current = part;
  const place = useCallback(
    (mode: Mode) => {
      const box = pane.current;
      if (box === null || size === undefined || mode === 'free') return;
      const room = { width: box.clientWidth, height: box.clientHeight };
      set(mode === 'whole' ? fit(size, room) : readable(size, room, active.current), mode);
    },
    [size],
  );

  // Runs before the picture is painted, so that it is never seen elsewhere.
  useLayoutEffect(() => {
    const box = pane.current;
    if (box === null || size === undefined) return;
    const before = shown.current;
    shown.current = { id, size };
    const { view, mode } = state.current;
    if (before?.id !== id) place('auto');
    else if (mode === 'free')
      set(carried(view, before.size, size, { width: box.clientWidth, height: box.clientHeight }), mode);
    else place(mode);
  }, [place]);
  useLayoutEffect(() => {
    const box = pane.current;
    const { view, mode } = state.current;
    if (box === null || part === undefined || mode !== 'auto') return;
    if (!shows(view, { width: box.clientWidth, height: box.clientHeight }, part)) place('auto');
  }, [place, part?.x, part?.y, part?.width, part?.height]);
  useEffect(() => {
    const box = pane.current;
    if (box === null) return;
    const watch = new ResizeObserver(() => place(state.current.mode));
    watch.observe(box);
    return () => watch.disconnect();
  }, [place]);
  useEffect(() => {
    const box = pane.current;
    return box === null
      ? undefined
      : listen(
          box,
          () => state.current.view,
          (view) => set(view, 'free'),
        );
  }, []);

  const centre = (): Point => ({ x: (pane.current?.clientWidth ?? 0) / 2, y: (pane.current?.clientHeight ?? 0) / 2 });
  return {
    zoom: (by) => set(zoomAt(state.current.view, by, centre()), 'free'),
    pan: (by) => set(pan(state.current.view, by), 'free'),
    fit: () => place('whole'),
    centre: () => place('auto'),
  };
}

/** Handles the pointers and the wheel of a pane. @returns a function that removes the listeners */
function listen(pane: HTMLElement, view: () => View, set: (view: View) => void): () => void {
  const down = new Map<number, Point>();
  let moved = false;
  const here = (event: MouseEvent): Point => {
    const { left, top } = pane.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    // A touchpad pinch arrives as a wheel event with Control; a plain wheel zooms, too, and with Shift it pans.
    if (event.shiftKey) set(pan(view(), { x: -event.deltaX - event.deltaY, y: 0 }));
    else set(zoomAt(view(), Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), here(event)));
  };
  const start = (event: PointerEvent): void => {
    if (event.button > 1 || (event.target instanceof Element && event.target.closest('button, .chart-list') !== null))
      return;
    down.set(event.pointerId, here(event));
    moved = false;
  };
  const move = (event: PointerEvent): void => {
    const before = down.get(event.pointerId);
    if (before === undefined) return;
    const now = here(event);
    const by = { x: now.x - before.x, y: now.y - before.y };
    if (!moved && Math.hypot(by.x, by.y) < 4) return;
    if (!moved) pane.setPointerCapture(event.pointerId);
    moved = true;
    const [other] = [...down].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    if (other === undefined) set(pan(view(), by));
    else {
      const ratio =
        Math.hypot(now.x - other.x, now.y - other.y) / (Math.hypot(before.x - other.x, before.y - other.y) || 1);
      set(zoomAt(view(), ratio, { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 }));
    }
    down.set(event.pointerId, now);
  };
  const end = (event: PointerEvent): void => {
    down.delete(event.pointerId);
  };
  // A drag that ends over a state does not select it.
  const click = (event: MouseEvent): void => {
    if (!moved) return;
    event.stopPropagation();
    moved = false;
  };
  pane.addEventListener('wheel', wheel, { passive: false });
  pane.addEventListener('pointerdown', start);
  pane.addEventListener('pointermove', move);
  pane.addEventListener('pointerup', end);
  pane.addEventListener('pointercancel', end);
  pane.addEventListener('click', click, { capture: true });
  return () => {
    pane.removeEventListener('wheel', wheel);
    pane.removeEventListener('pointerdown', start);
    pane.removeEventListener('pointermove', move);
    pane.removeEventListener('pointerup', end);
    pane.removeEventListener('pointercancel', end);
    pane.removeEventListener('click', click, { capture: true });
  };
}
