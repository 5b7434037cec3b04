/** Draws a statechart as SVG: as the inspector's page draws it, with the current states marked. */
import type { ChartNode } from './chart-node.ts';
import { drawingOf, SIGNS } from './drawing.ts';
import { drawInLanes } from './lane-picture.ts';
import { headPath, roundedPath } from './line-path.ts';
import type { PlacedChart, PlacedEdge, PlacedNode } from './placed.ts';
import {
  clipText,
  type EdgeGroup,
  headOf,
  isFrameless,
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
  const { states, dots, edges, separators } = drawingOf(chart, placed);
  const draw = ({ node, box, region }: (typeof states)[number]): string =>
    drawState(node, box, region, leaves.has(node.path) ? 'active' : current.has(node.path) ? 'around' : 'other');
  const top = isFrameless(chart) ? TITLE : 0;
  const width = Math.ceil(Math.max(placed.width, top === 0 ? 0 : textWidth(clipText(chart.key), 'name') + 2 * SIDE));
  const height = Math.ceil(placed.height) + top;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="${FAMILY}">`,
    `<title>${xml(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="${BACK}"/>`,
    ...(top === 0 ? [] : [drawText(SIDE, 22, clipText(chart.key), 'name', QUIET)]),
    `<g transform="translate(0 ${top})">`,
    ...states.filter(({ node }) => node.nodes.length > 0).map(draw),
    ...separators.map(
      ({ x, y, toX, toY }) => `<path d="M${x} ${y}L${toX} ${toY}" stroke="${BORDER}" stroke-dasharray="4 4"/>`,
    ),
    ...edges.map(({ group, edge }) => drawLine(group, edge, current.has(group.from))),
    ...dots.map(
      ({ x, y, width: size }) => `<circle cx="${x + size / 2}" cy="${y + size / 2}" r="${size / 2}" fill="${LINE}"/>`,
    ),
    ...states.filter(({ node }) => node.nodes.length === 0).map(draw),
    ...edges.map(({ group, edge, within }) => drawLabel(group, edge, within, current.has(group.from))),
    '</g>',
    '</svg>',
  ]
    .filter((part) => part !== '')
    .join('\n');
}

function withAncestors(path: string): readonly string[] {
  const keys = path.split('.');
  return keys.map((_, index) => keys.slice(0, index + 1).join('.'));
}

type Mark = 'active' | 'around' | 'other';

function drawState(node: ChartNode, { x, y, width, height }: PlacedNode, region: boolean, mark: Mark): string {
  const { type, key } = node;
  const now = mark === 'active';
  if (type === 'history')
    return group(x, y, [
      `<circle cx="${width / 2}" cy="${height / 2}" r="${width / 2 - 1}" fill="${NODE}" stroke="${BORDER}"/>`,
      drawText(width / 2, height / 2 + 4.5, 'H', 'name', NAME, 'middle'),
    ]);
  if (node.path === '' && isFrameless(node)) return '';
  const nested = node.nodes.length > 0;
  const rows = rowsOf(node);
  // A box that is higher than its text, because many lines meet at it, has the text in its middle.
  const lower = nested ? 0 : Math.round((height - headOf(rows.length)) / 2);
  const middle = lower + NAME_HEIGHT / 2;
  const fill = now ? NOW_FILL : nested ? COMPOUND : NODE;
  const stroke = now ? NOW : mark === 'around' ? AROUND : BORDER;
  const ink = now ? NOW_INK : node.path === '' ? QUIET : nested ? LABEL : NAME;
  return group(x, y, [
    // Separators replace the frame of a region.
    region
      ? ''
      : `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="${fill}" stroke="${stroke}" stroke-width="${now ? 2 : mark === 'around' ? 1.5 : 1}"/>`,
    type === 'final'
      ? `<rect x="4" y="4" width="${width - 8}" height="${height - 8}" rx="5" fill="none" stroke="${stroke}"/>`
      : '',
    now ? `<circle cx="${SIDE + 3}" cy="${middle}" r="4" fill="${NOW}"/>` : '',
    nested
      ? drawText(SIDE + (now ? 14 : 0), middle + 4.5, clipText(key), 'name', ink)
      : drawText(width / 2 + (now ? 7 : 0), middle + 4.5, clipText(key), 'name', ink, 'middle'),
    ...rows.map((row, index) => drawRow(row, lower + NAME_HEIGHT + index * ROW_HEIGHT)),
  ]);
}

function drawRow({ kind, text }: NodeRow, y: number): string {
  const paint =
    kind === 'invoke'
      ? `fill="${LINE}"`
      : `fill="none" stroke="${LINE}" stroke-width="1.3" stroke-linecap="round" stroke-linejoin="round"`;
  return group(SIDE - 6, y, [
    `<path d="${SIGNS[kind]}" transform="translate(6 ${ROW_HEIGHT / 2 - 5})" ${paint}/>`,
    drawText(22, LABEL_ROW / 2 + 4, text, 'row', LABEL),
  ]);
}

/** @param next true for a line that leaves a current state */
function drawLine({ edges }: EdgeGroup, { points }: PlacedEdge, next: boolean): string {
  if (points.length < 2) return '';
  const colour = next && edges.length > 0 ? NEXT : LINE;
  return `<path d="${roundedPath(points, true)}" fill="none" stroke="${colour}" stroke-width="${colour === NEXT ? 1.6 : 1.3}"/><path d="${headPath(points)}" fill="${colour}"/>`;
}

function drawLabel({ edges }: EdgeGroup, { label }: PlacedEdge, within: boolean, next: boolean): string {
  if (label === undefined) return '';
  const { x, y, width, height } = label;
  return group(x, y, [
    `<rect width="${width}" height="${height}" rx="5" fill="${within ? COMPOUND : BACK}"/>`,
    ...edges.map((edge, index) =>
      drawText(
        width / 2,
        1 + index * LABEL_ROW + LABEL_ROW / 2 + 4,
        clipText(labelText(edge)),
        'label',
        next ? NOW_INK : LABEL,
        'middle',
      ),
    ),
  ]);
}

function group(x: number, y: number, parts: readonly string[]): string {
  return [`<g transform="translate(${x} ${y})">`, ...parts.filter((part) => part !== ''), '</g>'].join('\n');
}

/** A reader without these fonts draws the text in the same width, so it overlaps nothing. */
function drawText(x: number, y: number, text: string, style: TextStyle, colour: string, anchor = 'start'): string {
  const length = isExact(text)
    ? ` textLength="${textWidth(text, style).toFixed(1)}" lengthAdjust="spacingAndGlyphs"`
    : '';
  const weight = style === 'name' ? ' font-weight="bold"' : '';
  return `<text x="${x}" y="${y}" font-size="${SIZES[style]}" fill="${colour}" text-anchor="${anchor}"${length}${weight}>${xml(text)}</text>`;
}
