/** Writes a statechart as a table in Markdown: a row for each transition, with what its author says of it. */
import { nodesOf } from './chart.ts';
import type { ChartEdge, ChartNode } from './chart-node.ts';
import { conditionOf } from './condition.ts';

interface Row {
  readonly state: string;
  readonly tags: string;
  readonly on: string;
  readonly guard: string;
  readonly to: string;
}

/** Columns that only some charts have something for. */
const OPTIONAL = ['tags', 'guard'] as const;

/** @example toTable(readChart(machine)) // | state | on | to | … */
export function toTable(chart: ChartNode): string {
  // Those of the whole machine come last: they are for all that was shown before.
  const [whole, ...states] = nodesOf(chart);
  const rows = [...states.flatMap(rowsOf), ...(whole && whole.edges.length > 0 ? rowsOf(whole) : [])];
  const left: readonly string[] = OPTIONAL.filter((name) => rows.every((row) => row[name] === ''));
  const names = (['state', 'tags', 'on', 'guard', 'to'] as const).filter((name) => !left.includes(name));
  const lines = [names, names.map(() => '---'), ...rows.map((row) => names.map((name) => row[name]))];
  return lines.map((cells) => `|${cells.map((cell) => (cell === '' ? ' |' : ` ${cell} |`)).join('')}\n`).join('');
}

/** What a state is called is said in its first row. */
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

/** What an author has named is shown as code. */
function eventOf({ on, label }: ChartEdge): string {
  return on === label ? quoted(on) : text(label);
}

function noted(description: string | undefined): string {
  return description === undefined || description === '' ? '' : ` (${text(description)})`;
}

function quoted(name: string): string {
  return `\`${name.replace(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('`', "'")}\``;
}

/** In one line, within its cell, and no HTML. */
function text(words: string): string {
  return words.replace(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
