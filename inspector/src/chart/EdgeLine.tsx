/** One line between two states, with its label: a row for each transition that shares the line. */

import { headPath, roundedPath } from '../../../src/features/charts/line-path.ts';
import type { PlacedEdge } from '../../../src/features/charts/placed.ts';
import { clipText, type EdgeGroup, LABEL_ROW, labelText } from '../../../src/features/charts/sketch.ts';
import { Drain } from './Drain.tsx';
import { allowedOf, type Marks } from './marks.ts';
import type { ChartProps } from './props.ts';
import { Count, classOf, edgeNames } from './StateBox.tsx';

export interface EdgeProps {
  readonly group: EdgeGroup;
  readonly edge: PlacedEdge;
  readonly marks: Marks;
  readonly props: ChartProps;
}

/** The line is below the text of the boxes and above their backgrounds; labels are drawn after all lines. */
export function EdgeLine({ group: { id, edges }, edge: { points }, marks, props }: EdgeProps) {
  if (points.length < 2) return null;
  const allowed = allowedOf(edges, marks);
  const taken = edges.some((edge) => marks.taken.has(edge.id));
  const { selected } = props;
  const names = [
    'edge',
    edges.length === 0 && 'begins',
    allowed !== undefined && `allowed-${allowed}`,
    props.coverage === true &&
      edges.length > 0 &&
      (edges.some((edge) => visitsOf(edge.id, props) > 0) ? 'visited' : 'unvisited'),
    selected?.kind === 'edge' && edges.some((edge) => edge.id === selected.id) && 'selected',
    edges.some((edge) => marks.lookEdges.has(edge.id)) && 'look',
    taken && 'taken',
  ];
  const line = roundedPath(points, true);
  const [only] = edges;
  return (
    <g class={classOf(names)} data-line={id} data-edge={edges.length === 1 ? only?.id : undefined}>
      {edges.length > 0 && <path class="reach" d={line} />}
      <path class="line" d={line} />
      <path class="head" d={headPath(points)} />
      {taken && <path key={marks.takenAt} class="glow" d={line} />}
    </g>
  );
}

export function EdgeLabel({
  group: { edges },
  edge: { label },
  marks,
  props,
  within,
}: EdgeProps & { readonly within: boolean }) {
  if (label === undefined) return null;
  const { x, y, width, height } = label;
  return (
    <g class={within ? 'label within' : 'label'} transform={`translate(${x} ${y})`}>
      <rect class="back" width={width} height={height} rx={5} />
      {edges.map((edge, index) => {
        const delay = marks.delays.get(edge.id);
        const count = visitsOf(edge.id, props);
        const text = clipText(labelText(edge));
        const words = clipText(edge.label);
        return (
          <g
            key={edge.id}
            class={classOf(['row', 'on', ...edgeNames(edge.id, marks, props)])}
            data-edge={edge.id}
            transform={`translate(0 ${1 + index * LABEL_ROW})`}
          >
            <rect class="back" width={width} height={LABEL_ROW} rx={5} />
            {marks.taken.has(edge.id) && (
              <rect key={marks.takenAt} class="glow" width={width} height={LABEL_ROW} rx={5} />
            )}
            <text x={width / 2} y={LABEL_ROW / 2 + 4} text-anchor="middle">
              <tspan>{words}</tspan>
              {text.length > words.length && <tspan class="besides">{text.slice(words.length)}</tspan>}
            </text>
            {delay !== undefined && (
              <Drain delay={delay} props={props} x={5} y={LABEL_ROW - 2.5} width={width - 10} height={2} />
            )}
            {count > 0 && <Count count={count} x={width + 9} y={1} />}
            <title>{edge.description ?? `${labelText(edge)} → ${edge.targets.join(', ')}`}</title>
          </g>
        );
      })}
    </g>
  );
}

function visitsOf(id: string, { visits }: ChartProps): number {
  return visits?.edges.get(id) ?? 0;
}
