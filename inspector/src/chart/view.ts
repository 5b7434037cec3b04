/**
 * The position and zoom of the picture in its pane: pure functions, and one hook that moves the picture without
 * rendering it again.
 */
import { useCallback, useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Point, Rect } from './layout/placed.ts';

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

export interface Moving {
  readonly zoom: (by: number) => void;
  readonly pan: (by: Point) => void;
  readonly fit: () => void;
}

/**
 * Wheel and pinch zoom at the pointer, a drag pans. Until the reader has moved the picture, a new pane size fits it
 * again.
 */
export function useView(pane: Held<HTMLElement>, picture: Held<SVGGElement>, size: Size | undefined): Moving {
  const state = useRef<{ view: View; moved: boolean }>({ view: { x: 0, y: 0, k: 1 }, moved: false });
  const set = useCallback((view: View, moved: boolean) => {
    state.current = { view, moved };
    const { x, y, k } = view;
    picture.current?.setAttribute('transform', `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${k.toFixed(4)})`);
  }, []);
  const refit = useCallback(() => {
    const box = pane.current;
    if (box !== null && size !== undefined) set(fit(size, { width: box.clientWidth, height: box.clientHeight }), false);
  }, [size]);

  // Runs before the picture is painted, so that it is never seen elsewhere.
  useLayoutEffect(refit, [refit]);
  useEffect(() => {
    const box = pane.current;
    if (box === null) return;
    const watch = new ResizeObserver(() => {
      if (!state.current.moved) refit();
    });
    watch.observe(box);
    return () => watch.disconnect();
  }, [refit]);
  useEffect(() => {
    const box = pane.current;
    return box === null
      ? undefined
      : listen(
          box,
          () => state.current.view,
          (view) => set(view, true),
        );
  }, []);

  const centre = (): Point => ({ x: (pane.current?.clientWidth ?? 0) / 2, y: (pane.current?.clientHeight ?? 0) / 2 });
  return {
    zoom: (by) => set(zoomAt(state.current.view, by, centre()), true),
    pan: (by) => set(pan(state.current.view, by), true),
    fit: refit,
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
