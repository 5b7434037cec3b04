/** Counts the states and transitions of authors' statecharts that a server visits, and prints them as a table. */
import type { AnyStateMachine } from 'xstate';
import { fingerprint, readChart } from '../../core/kernel/charts/chart.ts';
import type { ChartNode } from '../../core/kernel/charts/chart-node.ts';
import { conditionOf } from '../../core/kernel/charts/chart-node.ts';
import { pathsIn } from '../../core/kernel/charts/paths.ts';
import type { ActorKind, InspectionListener, InspectionRecord } from '../../core/kernel/inspection/records.ts';
import { around, Counter, type Coverage, coverageOf, KnownChart } from '../model/chart-coverage.ts';

/** The kinds of actors with statecharts of authors. */
const AUTHORS: ReadonlySet<ActorKind> = new Set(['handle', 'machine', 'invoked']);

/** The part of a `Server` that coverage needs. */
export interface Covered {
  inspect(listener: InspectionListener): () => void;
  readonly machines: { definitions(): readonly Named[] };
  readonly tools: { definitions(): readonly Named[] };
}

/** A machine, a tool with a machine, or another tool. */
interface Named {
  readonly name: string;
  readonly machine?: AnyStateMachine;
}

interface Counted {
  readonly chart: KnownChart;
  readonly counter: Counter;
}

interface Actor {
  counted: Counted | undefined;
  active: readonly string[];
}

/**
 * Counts visits until it is stopped. Machines without an instance are included, with nothing visited.
 *
 * @example
 * const coverage = watchCoverage(server);
 * // … the test
 * assert.equal(coverage.unvisited('order'), []);
 */
export function watchCoverage(server: Covered): CoverageWatch {
  return new CoverageWatch(server);
}

export class CoverageWatch {
  readonly #server: Covered;
  readonly #stop: () => void;
  readonly #charts = new Map<string, Counted>();
  readonly #known = new WeakMap<AnyStateMachine, Counted>();
  readonly #actors = new Map<string, Actor>();

  constructor(server: Covered) {
    this.#server = server;
    this.#stop = server.inspect((record) => this.#record(record));
  }

  /** Stops counting. */
  stop(): void {
    this.#stop();
  }

  /** The visits until now: first the machines that the server offers, by name, then the machines that they invoked. */
  coverage(): readonly Coverage[] {
    const { machines, tools } = this.#server;
    const offered = new Map<string, string>();
    for (const { name, machine } of [...machines.definitions(), ...tools.definitions()])
      if (machine) offered.set(this.#countedOf(machine).chart.id, name);
    // A chart of the same name that is no longer offered is an earlier version. It is of no use to its author.
    const names = new Set([...this.#charts.values()].filter(({ chart }) => offered.has(chart.id)).map(nameOf));
    const others = [...this.#charts.values()].filter(
      (counted) => !offered.has(counted.chart.id) && !names.has(nameOf(counted)) && counted.counter.states.size > 0,
    );
    const named = [...offered].flatMap(([id, name]) => {
      const counted = this.#charts.get(id);
      return counted ? [{ ...coverageOf(counted.chart, counted.counter), name }] : [];
    });
    return [...named, ...others.map(({ chart, counter }) => coverageOf(chart, counter))];
  }

  /** The visits until now, each with its statechart. */
  charts(): readonly { readonly coverage: Coverage; readonly root: ChartNode }[] {
    return this.coverage().flatMap((coverage) => {
      const counted = this.#charts.get(coverage.chart);
      return counted ? [{ coverage, root: counted.chart.root }] : [];
    });
  }

  /** The unvisited states and transitions of a machine. @throws {Error} for an unknown machine */
  unvisited(name: string): readonly string[] {
    const all = this.coverage();
    const found = all.find((coverage) => coverage.name === name);
    if (found) return [...unvisitedStates(found), ...unvisitedEdges(found)];
    throw new Error(
      `coverage: expected the name of a machine, one of ${all.map((each) => each.name).join(', ') || 'none'}; got ${name}`,
    );
  }

  /** A table of all machines, followed by the names of everything unvisited. */
  toString(): string {
    return coverageText(this.coverage());
  }

  #record(record: InspectionRecord): void {
    switch (record.type) {
      case 'created':
        if (!AUTHORS.has(record.kind)) return;
        this.#actors.set(record.actor, {
          counted: record.machine && this.#countedOf(record.machine),
          active: this.#actors.get(record.actor)?.active ?? [],
        });
        return;
      case 'step': {
        const actor = this.#actors.get(record.actor);
        if (!actor) return;
        // An instance that hibernated is created before the version of its machine is known.
        actor.counted = this.#countedOf(record.snapshot.machine);
        this.#step(actor, pathsIn(record.snapshot.value), record.edges);
        return;
      }
      case 'state': {
        const actor = this.#actors.get(record.actor);
        const active = actor?.counted?.chart.activeOf(record.state) ?? [];
        // Another state without a step: the actor started or was restored.
        if (actor && active.length > 0 && active.join() !== actor.active.join()) this.#step(actor, active, []);
        return;
      }
      case 'gone':
        this.#actors.delete(record.actor);
    }
  }

  #step(actor: Actor, active: readonly string[], edges: readonly string[]): void {
    const { chart, counter } = actor.counted ?? {};
    if (!chart || !counter) return;
    if (actor.active.length === 0) {
      // The step names the state before it.
      const from = chart.edges.get(edges[0] ?? '')?.from.path;
      const first = edges.length === 0 ? active : from === undefined || from === '' ? [] : [from];
      counter.step([], { active: first, edges: begunWith(chart, first) }, chart);
      actor.active = first;
    }
    if (edges.length > 0 || active.join() !== actor.active.join()) counter.step(actor.active, { active, edges }, chart);
    actor.active = active;
  }

  #countedOf(machine: AnyStateMachine): Counted {
    const known = this.#known.get(machine);
    if (known) return known;
    const root = readChart(machine);
    const id = fingerprint(root);
    const counted = this.#charts.get(id) ?? { chart: new KnownChart(id, root), counter: new Counter() };
    this.#charts.set(id, counted);
    this.#known.set(machine, counted);
    return counted;
  }
}

/** Maximum number of transitions before the first event. */
const MOST_AT_FIRST = 32;

/**
 * The eventless transitions by which a chart came from its start to the first recorded state: no record contains them.
 * Only transitions that must have been taken: the first of a state if it has no guard, or the only one that leads
 * there.
 */
function begunWith(chart: KnownChart, active: readonly string[]): readonly string[] {
  const taken: string[] = [];
  const seen = new Set(active.flatMap(around));
  const waiting = [...chart.beginningsIn('')];
  for (let path = waiting.shift(); path !== undefined && taken.length < MOST_AT_FIRST; path = waiting.shift()) {
    const always = chart.nodes.get(path)?.edges.filter(({ on }) => on === '') ?? [];
    const leading = always.filter(({ targets }) => targets.some((target) => seen.has(target)));
    const edge = always[0]?.guard === undefined ? always[0] : leading.length === 1 ? leading[0] : undefined;
    if (!edge || seen.has(path) || taken.includes(edge.id)) continue;
    taken.push(edge.id);
    for (const target of edge.targets) waiting.push(target, ...chart.beginningsIn(target));
  }
  return taken;
}

function nameOf({ chart }: Counted): string {
  return chart.root.key;
}

/** A table of the visits, followed by the names of everything unvisited. */
function coverageText(all: readonly Coverage[]): string {
  if (all.length === 0) return 'no machine is offered, and none has run';
  const columns = [
    ['machine', ...all.map(({ name }) => name)],
    ['states', ...shares(all.map(({ visitedStates, states }) => [visitedStates, states.length]))],
    ['transitions', ...shares(all.map(({ visitedEdges, edges }) => [visitedEdges, edges.length]))],
  ].map(padded);
  const lines = Array.from({ length: all.length + 1 }, (_, row) =>
    columns
      .map((column) => column[row] ?? '')
      .join('  ')
      .trimEnd(),
  );
  return [...lines, ...all.flatMap(missed)].join('\n');
}

function missed(coverage: Coverage): readonly string[] {
  const states = unvisitedStates(coverage);
  const edges = unvisitedEdges(coverage);
  if (states.length + edges.length === 0) return [];
  return [
    '',
    `${coverage.name}: not visited`,
    ...(states.length === 0 ? [] : [`  states       ${states.join(', ')}`]),
    ...edges.map((edge, index) => `  ${index === 0 ? 'transitions' : '           '}  ${edge}`),
  ];
}

function unvisitedStates({ states, visits }: Coverage): readonly string[] {
  return states.filter(({ path }) => !visits.states.has(path)).map(({ path }) => path);
}

/** @example 'cart: checkout [filled] → confirming' */
function unvisitedEdges({ edges, visits }: Coverage): readonly string[] {
  return edges
    .filter(({ edge }) => !visits.edges.has(edge.id))
    .map(({ edge, from }) => {
      const condition = conditionOf(from, edge);
      const to = edge.targets.length === 0 ? '' : ` → ${edge.targets.join(', ')}`;
      const where = from.path === '' ? 'any state' : from.path;
      return `${where}: ${edge.label}${condition === undefined ? '' : ` [${condition}]`}${to}`;
    });
}

/** Rounds down: 100 % means everything. */
function shares(counts: readonly (readonly [number, number])[]): readonly string[] {
  const visited = padded(counts.map(([visited, of]) => `${visited}/${of}`));
  const percents = counts.map(([visited, of]) => String(of === 0 ? 100 : Math.floor((visited / of) * 100)));
  const width = Math.max(...percents.map(({ length }) => length));
  return visited.map((cell, row) => `${cell}  ${(percents[row] ?? '').padStart(width)} %`);
}

function padded(cells: readonly string[]): readonly string[] {
  const width = Math.max(...cells.map(({ length }) => length));
  return cells.map((cell) => cell.padEnd(width));
}
