/** Draws a statechart without a layout as SVG: states inside states from top to bottom, with a lane for each arrow. */

import type { ChartNode } from '../../core/kernel/charts/chart-node.ts';
import { arrange, type Box, type ChartRow, type Edge, ROW } from './lanes.ts';
import { xml } from './svg.ts';

const INK = '#1f2328';
const FAINT = '#8c959f';
const NOW = '#1a7f37';
const NOW_FILL = '#dafbe1';

/**
 * Its size is at most a few hundred kilobytes: of a larger chart it shows the beginning and says so.
 *
 * @param title describes the picture for people who cannot see it
 * @param current the paths of the active states and of their ancestors
 */
export function drawInLanes(chart: ChartNode, title: string, current: ReadonlySet<string>): string {
  const { boxes, edges, width, height, left } = arrange(chart);
  const isNow = (path: string): boolean => current.has(path);
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">`,
    `<title>${xml(title)}</title>`,
    `<defs>${head('then', FAINT)}${head('now', NOW)}</defs>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...boxes.map((box) => drawBox(box, isNow(box.state.path) && box.state.path !== '')),
    ...edges.map((edge) => drawEdge(edge, isNow(edge.from))),
    ...(left > 0 ? [drawText(12, height - 8, `… and ${left} more states and transitions`, FAINT)] : []),
    '</svg>',
  ];
  return parts.join('\n');
}

function head(id: string, colour: string): string {
  return `<marker id="${id}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="${colour}"/></marker>`;
}

function drawBox({ state, x, y, width, height, name, rows }: Box, now: boolean): string {
  const fill = now ? NOW_FILL : 'none';
  const dash = state.type === 'parallel' ? ' stroke-dasharray="6 3"' : '';
  const around = `x="${x}" y="${y}" width="${width}" height="${height}"`;
  return [
    `<rect ${around} rx="8" fill="${fill}" stroke="${now ? NOW : INK}" stroke-width="${now ? 2.5 : 1}"${dash}/>`,
    // A final state has a double border.
    ...(state.type === 'final'
      ? [
          `<rect x="${x + 4}" y="${y + 4}" width="${width - 8}" height="${height - 8}" rx="5" fill="none" stroke="${INK}"/>`,
        ]
      : []),
    ...(state.initial && state.path !== ''
      ? [`<circle cx="${x + 13}" cy="${y + ROW / 2 + 3}" r="4" fill="${INK}"/>`]
      : []),
    drawText(x + 24, y + ROW - 3, name, now ? NOW : INK, true),
    ...rows.map((row) => drawRow(row, x, now)),
  ].join('\n');
}

function drawRow({ text, y, does }: ChartRow, x: number, now: boolean): string {
  return drawText(x + 24, y + ROW - 6, text, does ? FAINT : now ? NOW : INK);
}

function drawEdge({ x, y, lane, toX, toY }: Edge, now: boolean): string {
  const path = `M${x} ${y}H${lane}V${toY}H${toX}`;
  return `<path d="${path}" fill="none" stroke="${now ? NOW : FAINT}" stroke-width="${now ? 1.5 : 1}" marker-end="url(#${now ? 'now' : 'then'})"/>`;
}

function drawText(x: number, y: number, text: string, colour: string, bold = false): string {
  return `<text x="${x}" y="${y}" fill="${colour}"${bold ? ' font-weight="bold"' : ''}>${xml(text)}</text>`;
}
