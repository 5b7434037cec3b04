/** The picture of a chart: positions come from its layout and never change, classes come from the current state. */
import { useMemo } from 'preact/hooks';
import { drawingOf } from '../../../src/features/charts/drawing.ts';
import type { PlacedChart } from '../../../src/features/charts/placed.ts';
import { isFrameless } from '../../../src/features/charts/sketch.ts';
import { EdgeLabel, EdgeLine } from './EdgeLine.tsx';
import { marksOf } from './marks.ts';
import type { ChartProps } from './props.ts';
import { classOf, StateBox } from './StateBox.tsx';

export function Picture({ placed, props }: { readonly placed: PlacedChart; readonly props: ChartProps }) {
  const { chart } = props;
  const drawing = useMemo(() => drawingOf(chart, placed), [chart, placed]);
  const marks = marksOf(props);
  const nested = drawing.states.filter(({ node }) => node.nodes.length > 0);
  const simple = drawing.states.filter(({ node }) => node.nodes.length === 0);
  return (
    <g class={classOf(['picture', props.coverage === true && 'covered', isFrameless(chart) && 'plain'])}>
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
