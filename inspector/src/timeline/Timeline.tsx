/**
 * The timeline: states per actor over time, wire spans, marks and folded idle time, on a canvas that draws only visible
 * parts.
 */
import './timeline.css';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { paint, type Scene } from './paint.ts';
import { type Pointed, point } from './pointing.ts';
import type { TimelineProps } from './props.ts';
import { AXIS, GUTTER, placeRows, type RowPlace, STRIP_AXIS, STRIP_GUTTER } from './rows.ts';
import { fitted, lengthOf, type Scale, type Stretches, stretchesOf, timeAt, widthOf, xOf, zoomed } from './scale.ts';
import { onTheme, readTheme, type Theme } from './theme.ts';

export type { StateSpan, TimelineMark, TimelineProps, TimelineRow, WireSpan } from './props.ts';

const ZOOM = 1.5;
/** Maximum number of pixels per millisecond. */
const CLOSEST = 200;

/**
 * State that the pointer and the keys change. It is separate from the props, so that a move redraws only the canvas.
 */
interface Moved {
  /** Absent: everything is in view. */
  k: number | undefined;
  offset: number;
  /** Live, the end stays in view until the reader scrolls away from it. */
  follows: boolean;
  /** The last cursor that was in view. */
  cursor: number | undefined;
  scroll: number;
  hovered: string | undefined;
  /** The range that is being marked. */
  brushing: { from: number; to: number } | undefined;
}

/** The last props, for drawing. */
interface Latest {
  props: TimelineProps;
  stretches: Stretches;
  places: readonly RowPlace[];
}

export function Timeline(props: TimelineProps) {
  const { form, rows, moments, version, until, live = true, cursor, brush, onBrush, onLive, onStep } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [height, setHeight] = useState(0);
  const [tip, setTip] = useState<Pointed>();
  const stretches = useMemo(() => stretchesOf(moments, until), [moments, version, until]);
  const places = useMemo(() => placeRows(rows, form, height), [rows, version, form, height]);
  const latest = useRef<Latest>({ props, stretches, places });
  latest.current = { props, stretches, places };
  const view = useRef<View>(undefined);

  useEffect(() => {
    const box = canvas.current;
    if (box === null) return;
    const made = new View(box, latest, { height: setHeight, tip: setTip });
    view.current = made;
    return () => made.end();
  }, []);
  useEffect(() => view.current?.ask());

  const clock = clockOf(props);
  const said = cursor === undefined && live ? `live, ${clock(until)}` : clock(cursor ?? until);
  const keys = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const acts: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => onStep(-1),
      ArrowRight: () => onStep(1),
      l: onLive,
      L: onLive,
      End: onLive,
      Home: () => props.onCursor(moments[0] ?? until),
      '+': () => view.current?.zoom(ZOOM),
      '=': () => view.current?.zoom(ZOOM),
      '-': () => view.current?.zoom(1 / ZOOM),
      '0': () => view.current?.fit(),
      Escape: () => onBrush(undefined),
    };
    const act = acts[event.key];
    if (act === undefined) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class={`timeline ${form}`}>
      <div
        class="timeline-slider"
        role="slider"
        tabIndex={0}
        aria-label="time: arrows step, L follows, plus, minus and zero zoom, Shift and a drag mark a part"
        aria-valuemin={Math.round(moments[0] ?? 0)}
        aria-valuemax={Math.round(until)}
        aria-valuenow={Math.round(cursor ?? until)}
        aria-valuetext={said}
        onKeyDown={keys}
      >
        <canvas ref={canvas} />
      </div>
      {brush !== undefined && (
        <button type="button" class="timeline-brush" onClick={() => onBrush(undefined)}>
          {`only ${lengthOf(brush.to - brush.from)}  ✕`}
        </button>
      )}
      {form === 'full' && rows.length === 0 && <p class="timeline-none">No calls, handles or sessions.</p>}
      {tip !== undefined && (
        <p class="timeline-tip" style={{ left: `${tip.x}px`, top: `${tip.y}px` }}>
          <strong>{tip.label}</strong> {tip.text} <span>{clock(tip.at)}</span>
        </p>
      )}
    </div>
  );
}

/** Formats a time: with the page's function, or since the first record. */
export function clockOf({ clock, moments }: Pick<TimelineProps, 'clock' | 'moments'>): (at: number) => string {
  return clock ?? ((at) => `+${((at - (moments[0] ?? at)) / 1_000).toFixed(3)} s`);
}

/** Callbacks from the canvas to the component. */
interface CanvasEvents {
  readonly height: (height: number) => void;
  readonly tip: (tip: Pointed | undefined) => void;
}

/** The canvas, its size, and its input. It draws at most once a frame, and only after a change. */
class View {
  readonly #canvas: HTMLCanvasElement;
  readonly #latest: { readonly current: Latest };
  readonly #events: CanvasEvents;
  readonly #stops: (() => void)[] = [];
  readonly #moved: Moved = {
    k: undefined,
    offset: 0,
    follows: true,
    cursor: undefined,
    scroll: 0,
    hovered: undefined,
    brushing: undefined,
  };
  #theme: Theme;
  #asked = 0;
  #width = 0;
  #height = 0;

  constructor(canvas: HTMLCanvasElement, latest: { readonly current: Latest }, events: CanvasEvents) {
    this.#canvas = canvas;
    this.#latest = latest;
    this.#events = events;
    this.#theme = readTheme(canvas);
    this.#stops.push(
      onTheme(() => {
        this.#theme = readTheme(canvas);
        this.ask();
      }),
    );
    const watch = new ResizeObserver(() => this.#measure());
    watch.observe(canvas);
    this.#stops.push(() => watch.disconnect());
    this.#stops.push(
      point(canvas, {
        scene: () => this.scene(),
        moved: this.#moved,
        props: () => latest.current.props,
        zoom: (by, x) => this.zoom(by, x),
        pan: (x, y) => this.pan(x, y),
        fit: () => this.fit(),
        changed: () => this.ask(),
        tip: events.tip,
      }),
    );
    this.#measure();
  }

  end(): void {
    cancelAnimationFrame(this.#asked);
    for (const stop of this.#stops) stop();
  }

  /** Schedules a drawing for the next frame. */
  ask(): void {
    if (this.#asked !== 0) return;
    this.#asked = requestAnimationFrame(() => {
      this.#asked = 0;
      const context = this.#canvas.getContext('2d');
      if (context === null || this.#width === 0) return;
      const ratio = devicePixelRatio || 1;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      paint(context, this.scene());
    });
  }

  zoom(by: number, x = (this.#width - this.#left()) / 2): void {
    const scale = this.#scale();
    const at = timeAt(scale, x);
    const whole = fitted(this.#latest.current.stretches, this.#width - this.#left());
    const k = Math.min(CLOSEST, scale.k * by);
    if (k <= whole.k) return this.fit();
    const next = zoomed(this.#latest.current.stretches, k, at, x);
    Object.assign(this.#moved, { k, offset: next.offset, follows: this.#isAtEnd(next) });
    this.ask();
  }

  pan(x: number, y: number): void {
    const scale = this.#scale();
    const room = Math.max(0, widthOf(scale) - (this.#width - this.#left()));
    this.#moved.offset = Math.min(room, Math.max(0, scale.offset + x));
    this.#moved.follows = this.#isAtEnd({ ...scale, offset: this.#moved.offset });
    const { places } = this.#latest.current;
    const last = places.at(-1);
    const below = last === undefined ? 0 : last.y + last.height - this.#height;
    this.#moved.scroll = Math.max(0, Math.min(below, this.#moved.scroll + y));
    this.ask();
  }

  fit(): void {
    Object.assign(this.#moved, { k: undefined, offset: 0, follows: true });
    this.ask();
  }

  scene(): Scene {
    const { props, places } = this.#latest.current;
    const { form, until, live = true, cursor, brush, selected } = props;
    return {
      form,
      places,
      scale: this.#scale(),
      theme: this.#theme,
      width: this.#width,
      height: this.#height,
      left: this.#left(),
      axis: form === 'full' ? AXIS : STRIP_AXIS,
      until,
      live,
      scroll: form === 'full' ? this.#moved.scroll : 0,
      cursor,
      brush: this.#moved.brushing ?? brush,
      selected,
      hovered: this.#moved.hovered,
      clock: clockOf(props),
    };
  }

  #left(): number {
    return this.#latest.current.props.form === 'full' ? GUTTER : STRIP_GUTTER;
  }

  #scale(): Scale {
    const { stretches } = this.#latest.current;
    const { k, offset } = this.#moved;
    const whole = fitted(stretches, this.#width - this.#left());
    if (k === undefined || k <= whole.k) return whole;
    return this.#inView({ ...zoomed(stretches, k, 0, 0), offset });
  }

  /** Follows the end while live, and scrolls to a cursor that has moved. */
  #inView(scale: Scale): Scale {
    const { cursor } = this.#latest.current.props;
    const room = this.#width - this.#left();
    const moved = this.#moved;
    const was = moved.cursor;
    moved.cursor = cursor;
    if (cursor === undefined) {
      if (was !== undefined) moved.follows = true;
      if (moved.follows) moved.offset = Math.max(0, widthOf(scale) - room);
    } else if (cursor !== was) {
      const x = xOf(scale, cursor);
      if (x < 0 || x > room) moved.offset = Math.max(0, scale.offset + x - room / 2);
    }
    return moved.offset === scale.offset ? scale : { ...scale, offset: moved.offset };
  }

  #isAtEnd(scale: Scale): boolean {
    return widthOf(scale) - scale.offset <= this.#width - this.#left() + 4;
  }

  #measure(): void {
    const { clientWidth, clientHeight } = this.#canvas;
    const ratio = devicePixelRatio || 1;
    this.#width = clientWidth;
    this.#height = clientHeight;
    this.#canvas.width = Math.round(clientWidth * ratio);
    this.#canvas.height = Math.round(clientHeight * ratio);
    this.#events.height(clientHeight);
    this.ask();
  }
}
