/** The picture of a chart: positions come from its layout and never change, classes come from the current state. */
import { useMemo } from 'preact/hooks';
import type { ChartNode } from '../../../src/inspector/frames.ts';
import { EdgeLabel, EdgeLine } from './EdgeLine.tsx';
import { isDot, type Placed, type PlacedEdge, type PlacedNode } from './layout/placed.ts';
import { type EdgeGroup, groupsOf, isPlain, walk } from './layout/sketch.ts';
import { marksOf } from './marks.ts';
import { contains, middleOf } from './path.ts';
import type { ChartProps } from './props.ts';
import { classOf, StateBox } from './StateBox.tsx';
import { type Line, separatorsOf } from './separators.ts';

/** The positions of everything drawn, constant for a chart and its layout. */
interface Drawing {
  readonly states: readonly { readonly node: ChartNode; readonly box: PlacedNode; readonly region: boolean }[];
  readonly dots: readonly PlacedNode[];
  readonly edges: readonly { readonly group: EdgeGroup; readonly edge: PlacedEdge; readonly within: boolean }[];
  readonly separators: readonly Line[];
}

export function Picture({ placed, props }: { readonly placed: Placed; readonly props: ChartProps }) {
  const { chart } = props;
  const drawing = useMemo(() => drawingOf(chart, placed), [chart, placed]);
  const marks = marksOf(props);
  const nested = drawing.states.filter(({ node }) => node.nodes.length > 0);
  const simple = drawing.states.filter(({ node }) => node.nodes.length === 0);
  return (
    <g class={classOf(['picture', props.coverage === true && 'covered', isPlain(chart) && 'plain'])}>
      {nested.map((state) => (
        <StateBox key={state.node.path} {...state} marks={marks} props={props} />
      ))}
      {drawing.separators.map(({ x, y, toX, toY }) => (
        <path key={`${x} ${y}`} class="separator" d={`M${x} ${y}L${toX} ${toY}`} />
      ))}
      {drawing.edges.map((each) => (
        <EdgeLine key={each.group.id} {...each} marks={marks} props={props} />
      ))}
      {drawing.dots.map(({ id, x, y, width }) => (
        <circle key={id} class="dot" cx={x + width / 2} cy={y + width / 2} r={width / 2} />
      ))}
      {simple.map((state) => (
        <StateBox key={state.node.path} {...state} marks={marks} props={props} />
      ))}
      {drawing.edges.map((each) => (
        <EdgeLabel key={each.group.id} {...each} marks={marks} props={props} />
      ))}
    </g>
  );
}

function drawingOf(chart: ChartNode, placed: Placed): Drawing {
  const boxes = new Map(placed.nodes.map((node) => [node.id, node]));
  const lines = new Map(placed.edges.map((edge) => [edge.id, edge]));
  const states: Drawing['states'][number][] = [];
  const separators: Line[] = [];
  const regions = new Set<string>();
  walk(chart, (node) => {
    const box = boxes.get(node.path);
    if (box === undefined) return;
    if (node.type === 'parallel') {
      const inner = node.nodes.flatMap(({ path }) => boxes.get(path) ?? []);
      const between = separatorsOf(inner);
      if (between !== undefined) {
        separators.push(...between);
        for (const { path } of node.nodes) regions.add(path);
      }
    }
    states.push({ node, box, region: regions.has(node.path) });
  });
  const plain = isPlain(chart);
  const frames = states.filter(({ node }) => node.nodes.length > 0 && !(plain && node === chart)).map(({ box }) => box);
  return {
    states,
    dots: placed.nodes.filter(({ id }) => isDot(id)),
    edges: groupsOf(chart).flatMap((group) => {
      const edge = lines.get(group.id);
      if (edge === undefined) return [];
      const { label } = edge;
      return [{ group, edge, within: label !== undefined && frames.some((frame) => contains(frame, middleOf(label))) }];
    }),
    separators,
  };
}
