/** Writes a statechart as Mermaid's stateDiagram-v2, for places that render it: a README, a wiki, a pull request. */
import { nodesOf } from '../../core/kernel/charts/chart.ts';
import type { ChartEdge, ChartNode } from '../../core/kernel/charts/chart-node.ts';
import { conditionOf } from '../../core/kernel/charts/chart-node.ts';

/** Mermaid's keywords, and names that its objects already have: no state id may equal one of them. */
const TAKEN: ReadonlySet<string> = new Set([
  ...['accDescr', 'accTitle', 'as', 'class', 'classDef', 'click', 'default', 'direction', 'end', 'hide', 'left'],
  ...['linkStyle', 'note', 'of', 'right', 'root', 'scale', 'state', 'style', 'title'],
  ...Object.getOwnPropertyNames(Object.prototype),
]);

/** The lines of a state, in one line or a block. */
type Lines = readonly string[];

/**
 * A transition from a state to what is within it leads from a node `any state` in it: Mermaid has no arrow from a box to its
 * inside. One that stays where it is leads back to where it began.
 *
 * @example toMermaid(readChart(machine)) // stateDiagram-v2 …
 */
export function toMermaid(chart: ChartNode): string {
  return new Diagram(chart).text();
}

class Diagram {
  readonly #chart: ChartNode;
  readonly #nodes: ReadonlyMap<string, ChartNode>;
  readonly #ids = new Map<string, string>();
  /** Transitions between states that are not siblings. */
  readonly #across: string[] = [];

  constructor(chart: ChartNode) {
    this.#chart = chart;
    const nodes = nodesOf(chart);
    this.#nodes = new Map(nodes.map((node) => [node.path, node]));
    const used = new Set<string>();
    for (const { path, key } of nodes) {
      const plain = (path === '' ? `${key}_` : path).replace(/[^A-Za-z0-9]+/g, '_');
      const begun = /^[A-Za-z]/.test(plain) && !TAKEN.has(plain) ? plain : `s_${plain}`;
      // Mermaid reserves these names for the dots in a box.
      const wanted = /_(start|end)$/.test(begun) ? `${begun}_` : begun;
      let id = wanted;
      for (let count = 2; used.has(id) || used.has(`${id}_any`); count += 1) id = `${wanted}_${count}`;
      used.add(id).add(`${id}_any`);
      this.#ids.set(path, id);
    }
  }

  text(): string {
    const chart = this.#chart;
    // Only a box can have regions, and only a box can represent a machine without states.
    const inside =
      chart.type === 'compound' ? this.#inside(chart) : [...this.#state(chart), ...this.#leaving(chart, chart)];
    const lines = [`accTitle: The statechart ${escaped(chart.key)}`, ...inside, ...this.#across];
    return `stateDiagram-v2\n${indented(lines).join('\n')}\n`;
  }

  #state(node: ChartNode): Lines {
    const id = this.#id(node.path);
    const name = escaped(labelOf(node));
    const declared = name === id ? `state ${id}` : `state "${name}" as ${id}`;
    if (node.nodes.length > 0) return [`${declared} {`, ...indented(this.#inside(node)), '}'];
    const ends = node.type === 'final' ? [`${id} --> [*]`] : [];
    return name === id ? (ends.length > 0 ? ends : [id]) : [declared, ...ends];
  }

  /** The children of a state, and the transitions between them. */
  #inside(node: ChartNode): Lines {
    const any = node.edges.filter(
      (edge) => edge.targets.length === 0 || edge.targets.some((to) => isIn(to, node.path)),
    );
    const anyId = `${this.#id(node.path)}_any`;
    const anywhere = any.length === 0 ? [] : [`state "any state" as ${anyId}`];
    const leaving = any.flatMap((edge) =>
      edge.targets.length === 0
        ? [this.#arrow(node, edge, anyId, anyId)]
        : edge.targets.flatMap((to) =>
            isIn(to, node.path) ? [this.#arrow(node, edge, anyId, this.#id(this.#begins(to, node.path)))] : [],
          ),
    );
    const regions = node.nodes.map((child) => {
      const id = this.#id(child.path);
      const begins = child.initial && node.type === 'compound' ? [`[*] --> ${id}`] : [];
      const outgoing = this.#leaving(child, node);
      // An arrow already declares the states that it names.
      const state = this.#state(child).filter((line) => line !== id || begins.length + outgoing.length === 0);
      return [...begins, ...state, ...outgoing];
    });
    if (node.type !== 'parallel') return [...anywhere, ...regions.flat(), ...leaving];
    this.#across.push(...leaving);
    return regions.flatMap((region, index) => [...(index === 0 ? anywhere : ['--']), ...region]);
  }

  /** The transitions of a state, without those to its inside. */
  #leaving(node: ChartNode, parent: ChartNode): Lines {
    const lines: string[] = [];
    for (const edge of node.edges) {
      const stays = edge.targets.length === 0 && node.nodes.length === 0;
      for (const target of stays ? [node.path] : edge.targets) {
        if (node.nodes.length > 0 && isIn(target, node.path)) continue;
        // A transition to an enclosing state ends at that state's beginning.
        const to = isIn(node.path, target) ? this.#begins(target, target) : target;
        const line = this.#arrow(node, edge, this.#id(node.path), this.#id(to));
        const beside = parent.type === 'compound' && parent.nodes.some(({ path }) => path === to);
        (beside ? lines : this.#across).push(line);
      }
    }
    return lines;
  }

  #arrow(node: ChartNode, edge: ChartEdge, from: string, to: string): string {
    const condition = conditionOf(node, edge);
    return `${from} --> ${to} : ${escaped(`${edge.label}${condition === undefined ? '' : ` [${condition}]`}`)}`;
  }

  /** A state itself; for a state that encloses the arrow's source, its innermost initial state. */
  #begins(path: string, around: string): string {
    const node = this.#nodes.get(path);
    if (!node || !isIn(around, path)) return path;
    const first = node.nodes.find(({ initial }) => initial);
    return first ? this.#begins(first.path, first.path) : path;
  }

  #id(path: string): string {
    return this.#ids.get(path) ?? path;
  }
}

function labelOf({ key, type, invokes }: ChartNode): string {
  const notes = [...(type === 'history' ? ['history'] : []), ...invokes.map((invoked) => `does ${invoked}`)];
  return notes.length === 0 ? key : `${key} (${notes.join(', ')})`;
}

/** True if a state equals another or is inside it. */
function isIn(path: string, around: string): boolean {
  return path === around || around === '' || path.startsWith(`${around}.`);
}

function indented(lines: Lines): Lines {
  return lines.map((line) => `  ${line}`);
}

/** Replaces characters that Mermaid might interpret by their codes. */
function escaped(text: string): string {
  const plain = text.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Cn}]/gu, ' ');
  const special = /(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|[^\p{L}\p{N}_ ,.()[\]/'?!=+→-]/gu;
  return plain.replace(special, (mark) => `#${mark.codePointAt(0)};`) || ' ';
}
