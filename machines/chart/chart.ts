/**
 * A statechart without context, guards and actions. It is plain data, and each of its steps is a look-up. XState makes its
 * machine from the same data when something draws or inspects the chart. Pure.
 */
import { type AnyMachineSnapshot, type AnyStateMachine, createMachine } from 'xstate';

/** A transition: its target as XState reads it (a sibling, `.child` or `#id.path`), with a description for its picture. */
export type ChartTarget = string | { readonly target: string; readonly description?: string };

/** A state, in the part of XState's notation that needs no context. */
export interface ChartNodeConfig<Event extends string, Tag extends string> {
  readonly id?: string;
  readonly type?: 'final';
  readonly description?: string;
  readonly tags?: readonly Tag[];
  readonly initial?: string;
  readonly on?: { readonly [Type in Event]?: ChartTarget };
  readonly states?: Readonly<Record<string, ChartNodeConfig<Event, Tag>>>;
}

/** A whole chart. */
export interface ChartConfig<Event extends string, Tag extends string> extends ChartNodeConfig<Event, Tag> {
  readonly id: string;
  readonly initial: string;
  readonly states: Readonly<Record<string, ChartNodeConfig<Event, Tag>>>;
}

/** The active states, as XState writes them: a name, or an object for each state around it. */
type StateValue = string | { readonly [state: string]: StateValue };

/** Of the events `E`. Its states have the tags `T` and the paths `P`. */
export class Chart<E extends { readonly type: string }, T extends string = never, P extends string = string> {
  readonly config: ChartConfig<E['type'], T>;
  readonly initial: ChartState<E, T, P>;
  readonly #root: Node<E['type'], T>;
  readonly #states = new Map<Node<E['type'], T>, ChartState<E, T, P>>();
  #machine: AnyStateMachine | undefined;

  constructor(config: ChartConfig<E['type'], T>) {
    this.config = config;
    this.#root = new Node(config.id, config, undefined);
    this.initial = this.#enter(this.#root);
  }

  get id(): string {
    return this.config.id;
  }

  /** The machine of XState for this chart, which XState draws and inspects. */
  get machine(): AnyStateMachine {
    this.#machine ??= createMachine(this.config);
    return this.#machine;
  }

  /**
   * The state at a path, for stored data.
   * @param path such as `ready.idle`; a state that has states of its own leads to its initial one
   * @throws {Error} for a path that the chart does not have
   * @example taskMachine.at('input_required')
   */
  at(path: P): ChartState<E, T, P> {
    return this.#enter(this.#root.inner(path));
  }

  /** The state after an event; undefined if `node` and the states around it do not accept it. */
  after(node: Node<E['type'], T>, type: E['type']): ChartState<E, T, P> | undefined {
    for (let source: Node<E['type'], T> | undefined = node; source; source = source.parent) {
      const transition = source.config.on?.[type];
      if (transition !== undefined)
        return this.#enter(this.#target(source, typeof transition === 'string' ? transition : transition.target));
    }
    return undefined;
  }

  #target(source: Node<E['type'], T>, target: string): Node<E['type'], T> {
    if (target.startsWith('.')) return source.inner(target.slice(1));
    if (!target.startsWith('#')) return (source.parent ?? source).inner(target);
    const [id = '', ...names] = target.slice(1).split('.');
    const found = this.#root.find(id);
    if (!found) throw new Error(`chart ${this.id}: expected a state with the id "${id}", got none`);
    return names.length === 0 ? found : found.inner(names.join('.'));
  }

  /** The one object for the state that is active after its node is entered. */
  #enter(node: Node<E['type'], T>): ChartState<E, T, P> {
    let leaf = node;
    while (leaf.config.initial !== undefined) leaf = leaf.inner(leaf.config.initial);
    const known = this.#states.get(leaf) ?? new ChartState(this, leaf);
    this.#states.set(leaf, known);
    return known;
  }
}

/** A state of a chart: it exists once, and never changes. */
export class ChartState<E extends { readonly type: string }, T extends string, P extends string = string> {
  /** Such as `ready.idle`. */
  readonly path: P;
  /** `done`: the chart has ended and accepts no event. */
  readonly status: 'active' | 'done';
  /** Its tags, and those of the states around it. */
  readonly tags: ReadonlySet<T>;
  /** The steps that were computed, by type of event. Undefined: the state does not accept it. */
  readonly steps: Map<E['type'], ChartState<E, T, P> | undefined> = new Map();
  readonly #chart: Chart<E, T, P>;
  readonly #node: Node<E['type'], T>;
  #snapshot: AnyMachineSnapshot | undefined;

  constructor(chart: Chart<E, T, P>, node: Node<E['type'], T>) {
    this.#chart = chart;
    this.#node = node;
    const around = node.around();
    // The paths of a chart are those of its states.
    this.path = around.map(({ key }) => key).join('.') as P;
    this.status = node.config.type === 'final' && around.length === 1 ? 'done' : 'active';
    this.tags = new Set(around.flatMap(({ config }) => config.tags ?? []));
  }

  hasTag(tag: T): boolean {
    return this.tags.has(tag);
  }

  /** The state after an event, which is computed once; undefined if this state does not accept the event. */
  step(type: E['type']): ChartState<E, T, P> | undefined {
    if (this.steps.has(type)) return this.steps.get(type);
    const next = this.status === 'active' ? this.#chart.after(this.#node, type) : undefined;
    this.steps.set(type, next);
    return next;
  }

  /** The same state for XState, with its machine. */
  charted(): { readonly machine: AnyStateMachine; readonly snapshot: AnyMachineSnapshot } {
    const { machine } = this.#chart;
    const outer = this.#node.around().slice(0, -1);
    const value = outer.reduceRight((inner: StateValue, { key }) => ({ [key]: inner }), this.#node.key);
    this.#snapshot ??= machine.resolveState({ value, context: {} });
    return { machine, snapshot: this.#snapshot };
  }
}

/** A state in the tree of its chart. */
class Node<E extends string, T extends string> {
  readonly key: string;
  readonly config: ChartNodeConfig<E, T>;
  readonly parent: Node<E, T> | undefined;
  readonly #inner: ReadonlyMap<string, Node<E, T>>;

  constructor(key: string, config: ChartNodeConfig<E, T>, parent: Node<E, T> | undefined) {
    this.key = key;
    this.config = config;
    this.parent = parent;
    this.#inner = new Map(
      Object.entries(config.states ?? {}).map(([name, state]) => [name, new Node(name, state, this)]),
    );
  }

  /** @param path the names of states inside, separated by dots @throws {Error} if there is none */
  inner(path: string): Node<E, T> {
    let node: Node<E, T> = this;
    for (const name of path.split('.')) {
      const next = node.#inner.get(name);
      if (!next)
        throw new Error(`chart: expected one of ${[...node.#inner.keys()].join(', ')} in ${node.key}, got ${name}`);
      node = next;
    }
    return node;
  }

  find(id: string): Node<E, T> | undefined {
    if (this.config.id === id) return this;
    for (const node of this.#inner.values()) {
      const found = node.find(id);
      if (found) return found;
    }
    return undefined;
  }

  /** This state and those around it, the outermost first, without the root. */
  around(): readonly Node<E, T>[] {
    return this.parent ? [...this.parent.around(), this] : [];
  }
}
