/** One state: its box, name and rows, with its current marks. */

import { SIGNS } from '../../../src/features/charts/drawing.ts';
import type { Rect } from '../../../src/features/charts/placed.ts';
import {
  clipText,
  headOf,
  isFrameless,
  LABEL_ROW,
  NAME_HEIGHT,
  type NodeRow,
  ROW_HEIGHT,
  rowsOf,
  SIDE,
} from '../../../src/features/charts/sketch.ts';
import type { ChartNode } from '../../../src/inspector/frames.ts';
import { Drain } from './Drain.tsx';
import type { Marks } from './marks.ts';
import type { ChartProps } from './props.ts';

export interface StateBoxProps {
  readonly node: ChartNode;
  readonly box: Rect;
  readonly marks: Marks;
  readonly props: ChartProps;
  /** A region of a parallel state: separators replace its frame. */
  readonly region: boolean;
}

export function StateBox({ node, box, marks, props, region }: StateBoxProps) {
  const { path, type, key } = node;
  const { visits, coverage = false, selected, whatIf, status = 'active' } = props;
  const active = marks.active.has(path);
  const count = visits?.states.get(path) ?? 0;
  const names = [
    'state',
    type,
    node.nodes.length > 0 && 'nested',
    path === '' && 'machine',
    region && 'region',
    active && 'active',
    active && status !== 'active' && status,
    marks.around.has(path) && 'around',
    coverage &&
      (count > 0 || (path === '' && visits !== undefined && visits.states.size > 0) ? 'visited' : 'unvisited'),
    selected?.kind === 'state' && selected.path === path && 'selected',
    whatIf !== undefined && marks.lookStates.has(path) && 'look',
  ];
  const waiting = marks.waiting.get(path);
  const { x, y, width, height } = box;
  if (type === 'history')
    return (
      <g class={classOf(names)} data-path={path} transform={`translate(${x} ${y})`}>
        <circle class="box" cx={width / 2} cy={height / 2} r={width / 2 - 1} />
        <text class="name" x={width / 2} y={height / 2 + 4.5} text-anchor="middle">
          H
        </text>
        <title>{`${key}: where it was last`}</title>
      </g>
    );
  const nested = node.nodes.length > 0;
  if (path === '' && isFrameless(node)) return null;
  const rows = rowsOf(node);
  // A box that is higher than its text, because many lines meet at it, has the text in its middle.
  const lower = nested ? 0 : Math.round((height - headOf(rows.length)) / 2);
  const middle = lower + NAME_HEIGHT / 2;
  return (
    <g class={classOf(names)} data-path={path} transform={`translate(${x} ${y})`}>
      <rect class="box" x={0.5} y={0.5} width={width - 1} height={height - 1} rx={8} />
      {type === 'final' && <rect class="inner" x={4} y={4} width={width - 8} height={height - 8} rx={5} />}
      {active && <circle class="lamp" cx={SIDE + 3} cy={middle} r={4} />}
      <text
        class="name"
        x={nested ? SIDE + (active ? 14 : 0) : width / 2 + (active ? 7 : 0)}
        y={middle + 4.5}
        text-anchor={nested ? 'start' : 'middle'}
      >
        {clipText(key)}
      </text>
      {rows.map((row, index) => (
        <Row
          key={index}
          row={row}
          y={lower + NAME_HEIGHT + index * ROW_HEIGHT}
          width={width}
          marks={marks}
          props={props}
        />
      ))}
      {waiting !== undefined && (
        <Drain delay={waiting} props={props} x={8} y={height - 6} width={width - 16} height={3} />
      )}
      {count > 0 && <Count count={count} x={width - 4} y={0} />}
      <title>{node.description ?? (path === '' ? key : path)}</title>
    </g>
  );
}

function Row({
  row,
  y,
  width,
  marks,
  props,
}: {
  readonly row: NodeRow;
  readonly y: number;
  readonly width: number;
  readonly marks: Marks;
  readonly props: ChartProps;
}) {
  const { edge, kind, text } = row;
  const delay = edge === undefined ? undefined : marks.delays.get(edge.id);
  const count = edge === undefined ? 0 : (props.visits?.edges.get(edge.id) ?? 0);
  const names = ['row', kind, ...(edge === undefined ? [] : edgeNames(edge.id, marks, props))];
  return (
    <g class={classOf(names)} data-edge={edge?.id} transform={`translate(${SIDE - 6} ${y})`}>
      <rect class="back" width={width - 2 * SIDE + 12} height={ROW_HEIGHT} rx={4} />
      {edge !== undefined && marks.taken.has(edge.id) && (
        <rect key={marks.takenAt} class="glow" width={width - 2 * SIDE + 12} height={ROW_HEIGHT} rx={4} />
      )}
      <path class="row-sign" d={SIGNS[kind]} transform={`translate(6 ${ROW_HEIGHT / 2 - 5})`} />
      <text x={22} y={LABEL_ROW / 2 + 4}>
        {text}
      </text>
      {delay !== undefined && (
        <Drain delay={delay} props={props} x={22} y={ROW_HEIGHT - 2} width={width - 2 * SIDE - 16} height={2} />
      )}
      {count > 0 && <Count count={count} x={width - SIDE + 14} y={ROW_HEIGHT / 2} />}
    </g>
  );
}

/** The classes of an edge, wherever it is drawn. */
export function edgeNames(id: string, marks: Marks, props: ChartProps): readonly (string | false)[] {
  const { coverage = false, visits, selected } = props;
  const allowed = marks.allowed.get(id);
  return [
    marks.taken.has(id) && 'taken',
    allowed !== undefined && `allowed-${allowed}`,
    coverage && ((visits?.edges.get(id) ?? 0) > 0 ? 'visited' : 'unvisited'),
    selected?.kind === 'edge' && selected.id === id && 'selected',
    marks.lookEdges.has(id) && 'look',
  ];
}

export function Count({ count, x, y }: { readonly count: number; readonly x: number; readonly y: number }) {
  const text = count > 999 ? '999+' : String(count);
  const width = text.length * 7 + 8;
  return (
    <g class="count" transform={`translate(${x - width} ${y - 8})`}>
      <rect width={width} height={16} rx={8} />
      <text x={width / 2} y={12} text-anchor="middle">
        {text}
      </text>
    </g>
  );
}

export function classOf(names: readonly (string | false | undefined)[]): string {
  return names.filter((name) => typeof name === 'string').join(' ');
}
