/** The statechart of one actor: laid out once, then only restyled. */
import './chart.css';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { betterIn, type Pane, type PlacedChart, type Rect } from '../../../src/features/charts/placed.ts';
import { isFrameless, walk } from '../../../src/features/charts/sketch.ts';
import { ChartList } from './ChartList.tsx';
import { draftOf, type Pictures, picturesOf, readyPictures } from './layout/start.ts';
import { marksOf } from './marks.ts';
import { measure } from './measure.ts';
import { Picture } from './Picture.tsx';
import type { ChartProps, ChartSelection } from './props.ts';
import { type Moving, useView } from './view.ts';

export type { ChartProps, ChartSelection, RunningDelay, Visits } from './props.ts';

const STEP = 1.25;
const PAN = 60;

export function Chart(props: ChartProps) {
  const { id, chart, selected, onSelect } = props;
  const pane = useRef<HTMLDivElement>(null);
  const group = useRef<SVGGElement>(null);
  const room = usePane(pane);
  const pictures = usePictures(props, room);
  const placed = useMemo(
    () => (pictures === undefined || room === undefined ? undefined : betterIn(room, pictures)),
    [pictures, room],
  );
  const moving = useView(pane, group, id, placed, placed && room && activePart(placed, props.active, room));
  const marks = marksOf(props);

  const keys = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const act = KEYS[event.key];
    if (act === undefined || (event.key.startsWith('Arrow') && !event.shiftKey)) {
      if (event.key === 'Escape') onSelect?.(undefined);
      if (event.key === 'n' || event.key === 'p') onSelect?.(beside(props, event.key === 'n' ? 1 : -1));
      else return;
    } else act(moving);
    event.preventDefault();
    event.stopPropagation();
  };
  const choose = (event: MouseEvent): void => {
    const at = event.target instanceof Element ? event.target.closest('[data-edge], [data-path]') : null;
    const edge = at?.getAttribute('data-edge');
    const path = at?.getAttribute('data-path');
    let next: ChartSelection | undefined;
    if (edge != null) next = { kind: 'edge', id: edge };
    else if (path != null && path !== '') next = { kind: 'state', path };
    const same = next?.kind === 'edge' ? selected?.kind === 'edge' && selected.id === next.id : false;
    onSelect?.(same ? undefined : next);
  };
  return (
    <section class="chart" aria-label={`statechart of ${chart.key}`}>
      <div
        class="chart-pane"
        ref={pane}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the picture is moved and walked with keys.
        tabIndex={0}
        role="application"
        aria-label={`picture of ${chart.key}: plus and minus zoom, zero fits, C centres the active states, Shift and the arrows move it, n and p walk through its states`}
        data-engine={placed?.engine}
        data-chart={id}
        onKeyDown={keys}
        onClick={choose}
      >
        <svg width="100%" height="100%" aria-hidden="true">
          <g ref={group}>{placed !== undefined && <Picture placed={placed} props={props} />}</g>
        </svg>
        {isFrameless(chart) && <p class="chart-title">{chart.key}</p>}
        {placed === undefined && <p class="chart-wait">laying out…</p>}
      </div>
      <div class="chart-tools" role="toolbar" aria-label="size of the chart">
        <button type="button" title="larger (+)" aria-label="larger" onClick={() => moving.zoom(STEP)}>
          <Sign d="M3 8H13M8 3V13" />
        </button>
        <button type="button" title="smaller (-)" aria-label="smaller" onClick={() => moving.zoom(1 / STEP)}>
          <Sign d="M3 8H13" />
        </button>
        <button
          type="button"
          title="centre the active states (C)"
          aria-label="centre the active states"
          onClick={moving.centre}
        >
          <Sign d="M8 1.5V5M8 11V14.5M1.5 8H5M11 8H14.5M6 8a2 2 0 1 0 4 0a2 2 0 1 0 -4 0" />
        </button>
        <button type="button" title="fit (0)" aria-label="fit" onClick={moving.fit}>
          <Sign d="M3 6V3H6M10 3H13V6M13 10V13H10M6 13H3V10" />
        </button>
      </div>
      <ChartList chart={chart} marks={marks} />
    </section>
  );
}

function Sign({ d }: { readonly d: string }) {
  return (
    <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
      <path d={d} />
    </svg>
  );
}

const KEYS: Readonly<Record<string, (moving: Moving) => void>> = {
  '+': ({ zoom }) => zoom(STEP),
  '=': ({ zoom }) => zoom(STEP),
  '-': ({ zoom }) => zoom(1 / STEP),
  '0': ({ fit }) => fit(),
  c: ({ centre }) => centre(),
  ArrowLeft: ({ pan }) => pan({ x: PAN, y: 0 }),
  ArrowRight: ({ pan }) => pan({ x: -PAN, y: 0 }),
  ArrowUp: ({ pan }) => pan({ x: 0, y: PAN }),
  ArrowDown: ({ pan }) => pan({ x: 0, y: -PAN }),
};

/** The box around the active states; around the first of them if they do not fit into the pane together. */
function activePart({ nodes }: PlacedChart, active: readonly string[], { width, height }: Pane): Rect | undefined {
  const boxes = nodes.filter(({ id }) => active.includes(id));
  const [first] = boxes;
  if (first === undefined) return undefined;
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  const around = {
    x,
    y,
    width: Math.max(...boxes.map((box) => box.x + box.width)) - x,
    height: Math.max(...boxes.map((box) => box.y + box.height)) - y,
  };
  return around.width <= width && around.height <= height ? around : first;
}

/** The state before or after the selected one, in the order of the chart. */
function beside({ chart, selected }: ChartProps, by: 1 | -1): ChartSelection | undefined {
  const paths: string[] = [];
  walk(chart, ({ path }) => {
    if (path !== '') paths.push(path);
  });
  const at = selected?.kind === 'state' ? paths.indexOf(selected.path) : by === 1 ? -1 : 0;
  const path = paths.at((at + by) % paths.length);
  return path === undefined ? undefined : { kind: 'state', path };
}

function usePictures({ id, chart }: ChartProps, pane: Pane | undefined): Pictures | undefined {
  const [ready, setReady] = useState<{ readonly id: string; readonly pictures: Pictures }>();
  const isMeasured = pane !== undefined;
  useEffect(() => {
    if (pane === undefined) return;
    let wanted = true;
    let isFinal = readyPictures(id) !== undefined;
    if (!isFinal)
      void draftOf(chart, measure, pane).then((pictures) => {
        if (wanted && !isFinal && pictures !== undefined) setReady({ id, pictures });
      });
    void picturesOf(id, chart, measure, pane).then((pictures) => {
      isFinal = true;
      if (wanted) setReady({ id, pictures });
    });
    return () => {
      wanted = false;
    };
  }, [id, isMeasured]);
  return readyPictures(id) ?? (ready?.id === id ? ready.pictures : undefined);
}

/**
 * The size of the pane. Small changes are ignored: the direction is chosen for a new chart, and again when the shape of
 * the pane changes much.
 */
function usePane(pane: { readonly current: HTMLElement | null }): Pane | undefined {
  const [size, setSize] = useState<Pane>();
  useLayoutEffect(() => {
    const box = pane.current;
    if (box === null) return;
    const look = (): void => {
      const { clientWidth: width, clientHeight: height } = box;
      if (width === 0 || height === 0) return;
      setSize((before) =>
        before !== undefined && Math.abs(before.width - width) < 40 && Math.abs(before.height - height) < 40
          ? before
          : { width, height },
      );
    };
    look();
    const watch = new ResizeObserver(look);
    watch.observe(box);
    return () => watch.disconnect();
  }, []);
  return size;
}
