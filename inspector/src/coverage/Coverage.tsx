/**
 * The coverage of each statechart in this run. Unvisited states and transitions are dimmed in its picture, and listed.
 */
import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Coverage as Covered, isAuthored } from '../../../src/inspector/model/index.ts';
import { Chart } from '../chart/Chart.tsx';
import { At } from '../parts/parts.tsx';
import { plural } from '../parts/time.ts';
import { charted } from '../shell/charted.ts';
import { readCoverage } from '../store/api.ts';
import { poll } from '../store/poll.ts';
import { addCoverage } from '../store/source.ts';
import { connection, known, version } from '../store/state.ts';
import './coverage.css';

const chosenChart = signal<string | undefined>(undefined);

/** Troupe's own statecharts are collapsed until a user expands them. */
const opened = signal(false);
/** Interval of the requests for the server's count, in milliseconds. */
const REFRESH_MS = 1_000;

const counts = poll(async () => {
  if (connection.value.state !== 'live') return;
  // The stream reports a lost connection.
  const frame = await readCoverage();
  if (frame && connection.value.state === 'live') addCoverage(frame);
}, REFRESH_MS);

export function Coverage() {
  const { authors, others } = useMemo(split, [version.value, known()]);
  useEffect(counts.begin, []);
  const wanted = chosenChart.value ?? charted()?.chart;
  const all = [...authors, ...others];
  const chosen = all.find(({ chart }) => chart === wanted) ?? all[0];
  const { counted } = known();
  if (!chosen) return <div class="none">No statechart is offered, and none has run.</div>;
  const isOpen = opened.value || authors.length === 0 || others.includes(chosen);
  return (
    <div class="covering">
      <div class="coverage-list">
        <p class="coverage-since">
          {counted ? (
            <>
              since the start, <At at={counted.since} precise={false} />
            </>
          ) : (
            'as far as recorded'
          )}
        </p>
        <div role="listbox" aria-label="statecharts">
          {authors.map((covered) => (
            <ChartRow key={covered.chart} covered={covered} chosen={covered === chosen} />
          ))}
        </div>
        {others.length === 0 ? null : (
          <>
            <button
              type="button"
              class="coverage-fold"
              aria-expanded={isOpen}
              onClick={() => {
                opened.value = !isOpen;
                if (isOpen && others.includes(chosen)) chosenChart.value = authors[0]?.chart;
              }}
            >
              {plural(others.length, 'statechart')} of Troupe
            </button>
            {isOpen ? (
              <div role="listbox" aria-label="statecharts of Troupe">
                {others.map((covered) => (
                  <ChartRow key={covered.chart} covered={covered} chosen={covered === chosen} />
                ))}
              </div>
            ) : null}
          </>
        )}
      </div>
      <div class="coverage-chart">
        <Chart id={chosen.chart} chart={chartOf(chosen)} active={[]} visits={chosen.visits} coverage={true} />
      </div>
      <Unvisited covered={chosen} />
    </div>
  );
}

/** The charts of authors, and those of Troupe. */
function split(): { readonly authors: readonly Covered[]; readonly others: readonly Covered[] } {
  const model = known();
  const authored = new Set([...model.actors.values()].flatMap(({ kind, chart }) => (isAuthored(kind) ? [chart] : [])));
  for (const { id } of model.counted?.charts ?? []) authored.add(id);
  const all = model.coverage();
  return {
    authors: all.filter(({ chart }) => authored.has(chart)),
    others: all.filter(({ chart }) => !authored.has(chart)),
  };
}

function chartOf({ chart }: Covered) {
  const found = known().charts.get(chart);
  if (!found) throw new Error(`chart ${chart} is missing`);
  return found.root;
}

function ChartRow({ covered, chosen }: { readonly covered: Covered; readonly chosen: boolean }) {
  const { name, states, edges, visitedStates, visitedEdges, chart } = covered;
  return (
    <button
      type="button"
      role="option"
      aria-selected={chosen}
      class="coverage-row"
      onClick={() => {
        chosenChart.value = chart;
      }}
    >
      <span class="coverage-name">{name}</span>
      <Part what="states" visited={visitedStates} of={states.length} />
      <Part what="transitions" visited={visitedEdges} of={edges.length} />
    </button>
  );
}

function Part({ what, visited, of }: { readonly what: string; readonly visited: number; readonly of: number }) {
  return (
    <span class="part">
      <span class="part-bar" aria-hidden="true">
        <span style={{ width: `${of === 0 ? 100 : (visited / of) * 100}%` }} />
      </span>
      <span class="part-words">
        {visited} of {of} {what}
      </span>
    </span>
  );
}

function Unvisited({ covered }: { readonly covered: Covered }) {
  const states = covered.states.filter(({ path }) => !covered.visits.states.has(path));
  const edges = covered.edges.filter(({ edge }) => !covered.visits.edges.has(edge.id));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled with the keys.
    // biome-ignore lint/a11y/useSemanticElements: a region of the page, not a section of its text.
    <div class="unvisited scroll" tabIndex={0} role="region" aria-label="not visited">
      {states.length + edges.length === 0 ? (
        <p>Every state and every transition was visited.</p>
      ) : (
        <>
          <h2>Not visited</h2>
          <ul>
            {states.map(({ path }) => (
              <li key={path} class="mono">
                {path}
              </li>
            ))}
            {edges.map(({ edge, from }) => (
              <li key={edge.id}>
                <span class="mono">{from.path === '' ? 'anywhere' : from.path}</span>
                <span class="beside">
                  {edge.label}
                  {edge.guard === undefined ? '' : ` [${edge.guard || 'if'}]`}
                  {edge.targets.length === 0 ? '' : ` → ${edge.targets.join(', ')}`}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
