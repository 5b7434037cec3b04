/** The chart as text for readers who cannot see the picture: every state with its transitions. */

import { labelText } from '../../../src/features/charts/sketch.ts';
import type { ChartEdge, ChartNode } from '../../../src/inspector/frames.ts';
import type { Marks } from './marks.ts';

export function ChartList({ chart, marks }: { readonly chart: ChartNode; readonly marks: Marks }) {
  return (
    <ul class="chart-list" aria-label={`states of ${chart.key}`}>
      <Item node={chart} marks={marks} />
    </ul>
  );
}

function Item({ node, marks }: { readonly node: ChartNode; readonly marks: Marks }) {
  return (
    <li>
      {nameOf(node, marks)}
      {node.edges.length > 0 && (
        <ul>
          {node.edges.map((edge) => (
            <li key={edge.id}>{inWords(edge, marks)}</li>
          ))}
        </ul>
      )}
      {node.nodes.length > 0 && (
        <ul>
          {node.nodes.map((inner) => (
            <Item key={inner.path} node={inner} marks={marks} />
          ))}
        </ul>
      )}
    </li>
  );
}

function nameOf({ key, path, type, initial, invokes, nodes, description }: ChartNode, marks: Marks): string {
  const said = [
    marks.active.has(path) && 'active',
    marks.around.has(path) && 'active inside',
    initial && path !== '' && 'initial',
    type === 'final' && 'final',
    type === 'history' && 'history',
    type === 'parallel' && `${nodes.length} parallel regions`,
    invokes.length > 0 && `invokes ${invokes.join(', ')}`,
    description,
  ].filter((each) => typeof each === 'string');
  return said.length === 0 ? key : `${key} (${said.join('; ')})`;
}

function inWords(edge: ChartEdge, marks: Marks): string {
  const allowed = marks.allowed.get(edge.id);
  const said = [
    marks.taken.has(edge.id) && 'just taken',
    allowed === 'yes' && 'possible now',
    allowed === 'unknown' && 'possible now, depending on its guard',
    allowed === 'no' && 'prevented by its guard',
  ].filter((each) => typeof each === 'string');
  const to = edge.targets.length === 0 ? 'stays' : `to ${edge.targets.map((path) => path || 'the root').join(' and ')}`;
  return `${labelText(edge)}: ${to}${said.length === 0 ? '' : ` (${said.join(', ')})`}`;
}
