/** Writes a statechart as a table in Markdown: a row for each transition, with its author's descriptions. */
import { nodesOf } from './chart.ts';
import type { ChartEdge, ChartNode } from './chart-node.ts';
import { conditionOf } from './chart-node.ts';

interface Row {
  readonly state: string;
  readonly tags: string;
  readonly on: string;
  readonly guard: string;
  readonly to: string;
}

/** Columns that appear only if the chart has values for them. */
const OPTIONAL = ['tags', 'guard'] as const;

/** @example toTable(readChart(machine)) // | state | on | to | … */
export function toTable(chart: ChartNode): string {
  // Transitions of the whole machine come last, because they apply to all states above.
  const [whole, ...states] = nodesOf(chart);
  const rows = [...states.flatMap(rowsOf), ...(whole && whole.edges.length > 0 ? rowsOf(whole) : [])];
  const left: readonly string[] = OPTIONAL.filter((name) => rows.every((row) => row[name] === ''));
  const names = (['state', 'tags', 'on', 'guard', 'to'] as const).filter((name) => !left.includes(name));
  const lines = [names, names.map(() => '---'), ...rows.map((row) => names.map((name) => row[name]))];
  return lines.map((cells) => `|${cells.map((cell) => (cell === '' ? ' |' : ` ${cell} |`)).join('')}\n`).join('');
}

/** The first row of a state contains its description. */
function rowsOf(node: ChartNode): readonly Row[] {
  const { edges, tags = [] } = node;
  const first = { state: nameOf(node), tags: tags.map(text).join(', ') };
  if (edges.length === 0) return [{ ...first, on: '', guard: '', to: '' }];
  return edges.map((edge, index) => ({
    ...(index === 0 ? first : { state: '', tags: '' }),
    on: `${eventOf(edge)}${noted(edge.description)}`,
    guard: text(conditionOf(node, edge) ?? ''),
    to: edge.targets.map(text).join(', '),
  }));
}

function nameOf({ path, type, description, invokes }: ChartNode): string {
  if (path === '') return 'any of these';
  const kind = type === 'atomic' || type === 'compound' ? '' : ` (${type})`;
  return `${quoted(path)}${kind}${noted(description)}${noted(invokes.map((name) => `does ${name}`).join(', '))}`;
}

/** Names by the author appear as code. */
function eventOf({ on, label }: ChartEdge): string {
  return on === label ? quoted(on) : text(label);
}

function noted(description: string | undefined): string {
  return description === undefined || description === '' ? '' : ` (${text(description)})`;
}

function quoted(name: string): string {
  return `\`${name.replace(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('`', "'")}\``;
}

/** In one line, inside its cell, without HTML. */
function text(words: string): string {
  return words.replace(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
