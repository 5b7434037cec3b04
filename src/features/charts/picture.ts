/** Draws a statechart as SVG: as the inspector's page draws it, with the current states marked. */
import type { ChartNode } from '../../core/kernel/charts/chart-node.ts';
import { drawingOf, SIGNS } from './drawing.ts';
import { drawInLanes } from './lane-picture.ts';
import { headPath, roundedPath } from './line-path.ts';
import type { PlacedChart, PlacedEdge, PlacedNode, Rect } from './placed.ts';
import {
  clipText,
  type EdgeGroup,
  headOf,
  isFrameless,
  isLabelled,
  LABEL_ROW,
  labelText,
  NAME_HEIGHT,
  type NodeRow,
  ROW_HEIGHT,
  rowsOf,
  SIDE,
  type TextStyle,
} from './sketch.ts';
import { xml } from './svg.ts';
import { FAMILY, isExact, SIZES, textWidth } from './text-width.ts';

/** The light theme of the page (inspector/src/theme.css). */
const BACK = '#fbfbfa';
const NODE = '#ffffff';
const COMPOUND = '#f5f5f2';
const BORDER = '#c2c3bc';
const LINE = '#8b8e94';
const NAME = '#1b1d21';
const QUIET = '#62666e';
const LABEL = '#4c5058';
const AROUND = '#b4c4f5';
const NOW = '#2f55d4';
const NOW_FILL = '#e6ecfd';
const NOW_INK = '#1f3c9e';
const NEXT = '#5877dd';

/** The height of the machine's name above a machine without a frame. */
const TITLE = 28;

/**
 * The picture has no scripts and no external references. The same arguments give the same bytes.
 *
 * @param title describes the picture for people who cannot see it
 * @param active the paths of the active states, without their parents
 * @param placed the layout of the chart; without one, the states are listed from top to bottom
 */
export function drawChart(
  chart: ChartNode,
  title: string,
  active: readonly string[],
  placed: PlacedChart | undefined,
): string {
  const current = new Set(active.flatMap(withAncestors));
  if (placed === undefined) return drawInLanes(chart, title, current);
  const leaves = new Set(active);
  const markOf: MarkOf = (path) => (leaves.has(path) ? 'active' : current.has(path) ? 'around' : 'other');
  return drawPlaced(chart, title, placed, COLOURS, markOf);
}

/**
 * The picture for a page that has a style of its own: without colours and without marks. Each shape has a class, and those of a
 * state, and of the transitions that leave it, have its path as `data-state`.
 */
export function drawChartForPage(chart: ChartNode, placed: PlacedChart): string {
  // Lines are for people who read a file. No text contains a line break (svg.ts).
  return drawPlaced(chart, undefined, placed, CLASSES, () => 'other').replaceAll('\n', '');
}

/** The mark of a state: it is active, one inside of it is, or neither. */
type Mark = 'active' | 'around' | 'other';
type MarkOf = (path: string) => Mark;

/** The shapes and texts that a pen paints. */
type Shape =
  | 'back'
  | 'box'
  | 'compound'
  | 'inner'
  | 'dot'
  | 'filledSign'
  | 'sign'
  | 'line'
  | 'head'
  | 'separator'
  | 'under'
  | 'underWithin';
type Ink = 'title' | 'name' | 'compoundName' | 'rootName' | 'row' | 'label';

/** Writes the attributes that paint. */
interface Pen {
  shape(shape: Shape, mark: Mark, path?: string): string;
  /** @param key names the text for a page that translates it: `states:cart`, or the `on` of a transition */
  ink(ink: Ink, mark: Mark, key: string): string;
}

/** The light theme of the inspector's page. */
const COLOURS: Pen = {
  shape(shape, mark) {
    const stroke = mark === 'active' ? NOW : mark === 'around' ? AROUND : BORDER;
    switch (shape) {
      case 'back':
      case 'under':
        return `fill="${BACK}"`;
      case 'underWithin':
        return `fill="${COMPOUND}"`;
      case 'box':
      case 'compound': {
        const fill = mark === 'active' ? NOW_FILL : shape === 'compound' ? COMPOUND : NODE;
        return `fill="${fill}" stroke="${stroke}" stroke-width="${mark === 'active' ? 2 : mark === 'around' ? 1.5 : 1}"`;
      }
      case 'inner':
        return `fill="none" stroke="${stroke}"`;
      case 'dot':
      case 'filledSign':
        return `fill="${LINE}"`;
      case 'sign':
        return `fill="none" stroke="${LINE}" stroke-width="1.3" stroke-linecap="round" stroke-linejoin="round"`;
      case 'line':
        return mark === 'other'
          ? `fill="none" stroke="${LINE}" stroke-width="1.3"`
          : `fill="none" stroke="${NEXT}" stroke-width="1.6"`;
      case 'head':
        return `fill="${mark === 'other' ? LINE : NEXT}"`;
      case 'separator':
        return `stroke="${BORDER}" stroke-dasharray="4 4"`;
    }
  },
  ink(ink, mark) {
    const now = ink === 'label' ? mark !== 'other' : mark === 'active' && ink !== 'row' && ink !== 'title';
    return `fill="${now ? NOW_INK : INKS[ink]}"`;
  },
};

const INKS: Readonly<Record<Ink, string>> = {
  title: QUIET,
  name: NAME,
  compoundName: LABEL,
  rootName: QUIET,
  row: LABEL,
  label: LABEL,
};

const CLASSES: Pen = {
  shape: (shape, _, path) => `class="${shape}"${path === undefined ? '' : ` data-state="${xml(path)}"`}`,
  ink: (ink, _, key) => `class="${ink}"${key === '' ? '' : ` data-text="${xml(key)}"`}`,
};

/** @param title undefined for a picture inside a page, which has the heading, the language of markup and the font of the page */
function drawPlaced(
  chart: ChartNode,
  title: string | undefined,
  placed: PlacedChart,
  pen: Pen,
  markOf: MarkOf,
): string {
  const { states, dots, edges, separators } = drawingOf(chart, placed);
  const draw = ({ node, box, region }: (typeof states)[number]): string =>
    drawState(node, box, region, markOf(node.path), pen);
  const top = isFrameless(chart) && title !== undefined ? TITLE : 0;
  const width = Math.ceil(Math.max(placed.width, top === 0 ? 0 : textWidth(clipText(chart.key), 'name') + 2 * SIDE));
  const height = Math.ceil(placed.height) + top;
  return [
    ...(title === undefined
      ? // In a page that is written from right to left, texts would begin at their right ends.
        [`<svg ${cropped(chart, placed)} direction="ltr">`]
      : [
          `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="${FAMILY}">`,
          `<title>${xml(title)}</title>`,
          `<rect width="${width}" height="${height}" ${pen.shape('back', 'other')}/>`,
        ]),
    ...(top === 0 ? [] : [drawText(SIDE, 22, clipText(chart.key), 'name', pen.ink('title', 'other', ''))]),
    `<g transform="translate(0 ${top})">`,
    ...states.filter(({ node }) => node.nodes.length > 0).map(draw),
    ...separators.map(
      ({ x, y, toX, toY }) => `<path d="M${x} ${y}L${toX} ${toY}" ${pen.shape('separator', 'other')}/>`,
    ),
    ...edges.map(({ group, edge }) => drawLine(group, edge, markOf(group.from), pen)),
    ...dots.map(
      ({ x, y, width: size }) =>
        `<circle cx="${x + size / 2}" cy="${y + size / 2}" r="${size / 2}" ${pen.shape('dot', 'other')}/>`,
    ),
    ...states.filter(({ node }) => node.nodes.length === 0).map(draw),
    ...edges.map(({ group, edge, within }) => drawLabel(group, edge, within, markOf(group.from), pen)),
    '</g>',
    '</svg>',
  ]
    .filter((part) => part !== '')
    .join('\n');
}

/** Pixels around a picture in a page, which has a margin of its own. */
const EDGE = 2;

/** The part of a picture that has content: beside a form, each pixel counts. */
function cropped(chart: ChartNode, { nodes, edges }: PlacedChart): string {
  const boxes: readonly Partial<Rect>[] = [
    ...nodes.filter(({ id }) => id !== chart.path || !isFrameless(chart)),
    ...edges.flatMap(({ points, label }) => [...points, ...(label ? [label] : [])]),
  ];
  const least = (of: (box: Partial<Rect>) => number): number => Math.floor(Math.min(...boxes.map(of))) - EDGE;
  const [x, y] = [least((box) => box.x ?? 0), least((box) => box.y ?? 0)];
  const width = -least((box) => -((box.x ?? 0) + (box.width ?? 0))) - x;
  const height = -least((box) => -((box.y ?? 0) + (box.height ?? 0))) - y;
  return `viewBox="${x} ${y} ${width} ${height}" width="${width}" height="${height}"`;
}

function withAncestors(path: string): readonly string[] {
  const keys = path.split('.');
  return keys.map((_, index) => keys.slice(0, index + 1).join('.'));
}

function drawState(
  node: ChartNode,
  { x, y, width, height }: PlacedNode,
  region: boolean,
  mark: Mark,
  pen: Pen,
): string {
  const { type, key, path } = node;
  const now = mark === 'active';
  if (type === 'history')
    return group(x, y, [
      `<circle cx="${width / 2}" cy="${height / 2}" r="${width / 2 - 1}" ${pen.shape('box', 'other')}/>`,
      drawText(width / 2, height / 2 + 4.5, 'H', 'name', pen.ink('name', 'other', ''), 'middle'),
    ]);
  if (node.path === '' && isFrameless(node)) return '';
  const nested = node.nodes.length > 0;
  const rows = rowsOf(node);
  // A box that is higher than its text, because many lines meet at it, has the text in its middle.
  const lower = nested ? 0 : Math.round((height - headOf(rows.length)) / 2);
  const middle = lower + NAME_HEIGHT / 2;
  const ink = pen.ink(node.path === '' ? 'rootName' : nested ? 'compoundName' : 'name', mark, `states:${path}`);
  return group(x, y, [
    // Separators replace the frame of a region.
    region
      ? ''
      : `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" ${pen.shape(nested ? 'compound' : 'box', mark, path)}/>`,
    type === 'final'
      ? `<rect x="4" y="4" width="${width - 8}" height="${height - 8}" rx="5" ${pen.shape('inner', mark, path)}/>`
      : '',
    now ? `<circle cx="${SIDE + 3}" cy="${middle}" r="4" fill="${NOW}"/>` : '',
    nested
      ? drawText(SIDE + (now ? 14 : 0), middle + 4.5, clipText(key), 'name', ink)
      : drawText(width / 2 + (now ? 7 : 0), middle + 4.5, clipText(key), 'name', ink, 'middle'),
    ...rows.map((row, index) => drawRow(row, lower + NAME_HEIGHT + index * ROW_HEIGHT, pen)),
  ]);
}

function drawRow({ kind, text, edge }: NodeRow, y: number, pen: Pen): string {
  const paint = pen.shape(kind === 'invoke' ? 'filledSign' : 'sign', 'other');
  return group(SIDE - 6, y, [
    `<path d="${SIGNS[kind]}" transform="translate(6 ${ROW_HEIGHT / 2 - 5})" ${paint}/>`,
    drawText(22, LABEL_ROW / 2 + 4, text, 'row', pen.ink('row', 'other', edge?.on ?? '')),
  ]);
}

/** @param mark that of the state which the line leaves */
function drawLine({ edges, from }: EdgeGroup, { points }: PlacedEdge, mark: Mark, pen: Pen): string {
  if (points.length < 2) return '';
  // A line without a transition leads from an initial dot.
  const [shown, path] = edges.length > 0 ? [mark, from] : (['other', undefined] as const);
  return `<path d="${roundedPath(points, true)}" ${pen.shape('line', shown, path)}/><path d="${headPath(points)}" ${pen.shape('head', shown, path)}/>`;
}

function drawLabel({ edges }: EdgeGroup, { label }: PlacedEdge, within: boolean, mark: Mark, pen: Pen): string {
  if (label === undefined) return '';
  const { x, y, width, height } = label;
  return group(x, y, [
    `<rect width="${width}" height="${height}" rx="5" ${pen.shape(within ? 'underWithin' : 'under', 'other')}/>`,
    ...edges
      .filter(isLabelled)
      .map((edge, index) =>
        drawText(
          width / 2,
          1 + index * LABEL_ROW + LABEL_ROW / 2 + 4,
          clipText(labelText(edge)),
          'label',
          pen.ink('label', mark, edge.on),
          'middle',
        ),
      ),
  ]);
}

function group(x: number, y: number, parts: readonly string[]): string {
  return [`<g transform="translate(${x} ${y})">`, ...parts.filter((part) => part !== ''), '</g>'].join('\n');
}

/** A reader without these fonts draws the text in the same width, so it overlaps nothing. */
function drawText(x: number, y: number, text: string, style: TextStyle, paint: string, anchor = 'start'): string {
  const length = isExact(text)
    ? ` textLength="${textWidth(text, style).toFixed(1)}" lengthAdjust="spacingAndGlyphs"`
    : '';
  const weight = style === 'name' ? ' font-weight="bold"' : '';
  return `<text x="${x}" y="${y}" font-size="${SIZES[style]}" ${paint} text-anchor="${anchor}"${length}${weight}>${xml(text)}</text>`;
}
