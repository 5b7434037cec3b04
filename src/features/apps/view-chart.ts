/** The chart of a view: for a customer, who knows neither guards nor actions, and reads names in one of several languages. */
import type { ChartEdge, ChartNode } from '../../core/kernel/charts/chart-node.ts';
import { nameIn, own, type ViewTexts } from './view-texts.ts';

interface ShownEvents {
  /** The title of each event that people may send. */
  readonly titles: ReadonlyMap<string, string | undefined>;
  /** The languages of the page. The first is drawn. */
  readonly texts: readonly [ViewTexts, ...ViewTexts[]];
}

/** A chart as a view draws it, and the same with the longest name of each part, for whose width it is laid out. */
interface ViewChart {
  readonly drawn: ChartNode;
  readonly widest: ChartNode;
}

const AFTER = 'xstate.after.';
/** The beginning of the labels of delays (src/core/kernel/charts/chart.ts). */
const AFTER_LABEL = 'after ';

/**
 * Returns the states with their names for people, and the transitions with those of events that people send, and of delays.
 * Other transitions have no text, and those of failures are left out unless they have a label.
 */
export function chartForView(chart: ChartNode, { titles, texts }: ShownEvents): ViewChart {
  type Name = (nameOf: (texts: ViewTexts) => string) => string;
  const shown = (node: ChartNode, name: Name): ChartNode => {
    const { entry: _, exit: __, key, path, edges, nodes, ...rest } = node;
    const known = new Set<string>();
    return {
      ...rest,
      path,
      key: path === '' ? key : name((language) => nameIn(language, 'states', path)),
      invokes: [],
      edges: edges.flatMap((edge) => {
        const line = lineOf(edge, name);
        const id = `${line?.on}\n${line?.label}\n${line?.targets}`;
        // Transitions that differ in their guards are one line.
        if (!line || known.has(id)) return [];
        known.add(id);
        return [line];
      }),
      nodes: nodes.map((inner) => shown(inner, name)),
    };
  };
  const lineOf = ({ id, on, label, targets }: ChartEdge, name: Name): ChartEdge | undefined => {
    const line = (kind: string, text: string): ChartEdge => ({ id, on: kind, label: text, targets });
    if (on.startsWith(AFTER)) {
      const delay = label.slice(AFTER_LABEL.length);
      return line(
        `delays:${delay}`,
        name((language) => nameIn(language, 'delays', delay)),
      );
    }
    if (titles.has(on) || texts.some(({ labels }) => own(labels?.events, on) !== undefined))
      return line(
        `events:${on}`,
        name((language) => nameIn(language, 'events', on, titles.get(on))),
      );
    return targets.length === 0 || on.startsWith('xstate.error.') ? undefined : line('', '');
  };
  const [first, ...others] = texts;
  const drawn = shown(chart, (nameOf) => nameOf(first));
  if (others.length === 0) return { drawn, widest: drawn };
  const longest: Name = (nameOf) =>
    texts.map(nameOf).reduce((widest, next) => (next.length > widest.length ? next : widest));
  return { drawn, widest: shown(chart, longest) };
}
