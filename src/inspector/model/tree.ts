/**
 * The tree of actors for people: the server, its clients with their open requests, handles, tasks, and internal actors.
 */
import type { ActorKind, Wait } from '../frames.ts';
import type { ActorLine } from './actor-line.ts';
import { isUpstream } from './belonging.ts';
import { isUnused } from './clients.ts';
import { hibernates, hibernatingOf, hibernatingSessionsOf } from './hibernating.ts';
import { isMachinery } from './message-rows.ts';
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { textOfValue } from './plain-values.ts';
import { type Unseen, unseenOf } from './unseen.ts';
import { statusAt, type WireExchange } from './wire-exchange.ts';

export interface TreeNode {
  /** Unique: an actor's address, an exchange's key, or a group's name. */
  readonly id: string;
  readonly kind: ActorKind | 'group' | 'exchange';
  readonly label: string;
  readonly state?: string;
  readonly actor?: string;
  readonly exchange?: WireExchange;
  /** A request without a record; `actor` is its table of requests. */
  readonly unseen?: Unseen;
  /** The reason of its end. */
  readonly gone?: string;
  /** The actor has left memory. Its next message or timer restores it. */
  readonly asleep?: boolean;
  /** The last failure. A later transition ends an unhandled event or a dropped message. */
  readonly trouble?: 'crashed' | 'unhandled' | 'dropped';
  /** True if its current view lists something for which it waits. */
  readonly waits?: boolean;
  /** The earliest of its deadlines. */
  readonly due?: number;
  readonly children: readonly TreeNode[];
  /** The number of ended actors that are not shown. */
  readonly more?: number;
  /** Collapsed until a user expands it. */
  readonly closed?: boolean;
}

/** The group of the actors that are part of every server. It is collapsed until a user expands it. */
export const INTERNAL = 'group internal';

/** Maximum number of ended actors in one group: the latest ones. */
const TOMBSTONES = 6;

/** The tree at a record of the stream. */
export function actorTree(model: Model, seq: number): readonly TreeNode[] {
  return new Tree(model, seq).roots();
}

/** The name of a connection's client. Modern clients have no session, and any number of them may share a connection. */
export function doorName(model: Model, connection: string): string {
  const line = model.actor(model.doorOf(connection));
  if (line?.kind === 'session' || line?.kind === 'client') return displayName(line);
  const last = textOfValue(line?.view(LIVE)?.facts.client);
  const clients = new Set([...model.exchanges.clientsOn(connection), ...(last === undefined ? [] : [last])]);
  // All HTTP clients without a session share one connection.
  return clients.size === 0 || clients.size > MOST_NAMES ? NO_SESSION : [...clients].join(', ');
}

const NO_SESSION = 'without a session';
/** Maximum number of clients in the name of a shared connection. */
const MOST_NAMES = 2;

/** The display name of an actor. */
export function displayName(line: Pick<ActorLine, 'label' | 'address'>): string {
  return line.label ?? line.address;
}

class Tree {
  readonly #model: Model;
  readonly #seq: number;
  readonly #children = new Map<string, ActorLine[]>();
  readonly #loose: ActorLine[] = [];
  readonly #open = new Map<string, WireExchange[]>();
  readonly #unseen = new Map<string, TreeNode[]>();
  /** Internal actors of connections, such as emitters and tables of requests. */
  readonly #machinery: ActorLine[] = [];
  /** The requests that have an actor of their own. */
  readonly #served = new Set<number>();

  constructor(model: Model, seq: number) {
    this.#model = model;
    this.#seq = seq;
    for (const line of model.actors.values()) {
      const born = line.lives.first;
      if (!born || (seq !== LIVE && born.seq > seq)) continue;
      if (line.aliveAt(seq)) for (const origin of line.serves) this.#served.add(origin);
      if (line.kind === 'requests' && line.connection !== undefined && line.aliveAt(seq))
        for (const unseen of unseenOf(model, line, seq))
          push(this.#unseen, model.doorOf(line.connection), unseenNode(line.address, unseen));
      const parent = this.#parentOf(line);
      if (parent === undefined) this.#loose.push(line);
      else if (isMachinery(line.kind)) {
        if (line.aliveAt(seq)) this.#machinery.push(line);
      } else push(this.#children, parent, line);
    }
    for (const exchange of model.exchanges.open(seq)) {
      // A server asks its clients, and calls the servers behind its mounts.
      if (
        (exchange.direction === 'in') !== isUpstream(model.actor(exchange.connection)) &&
        !this.#served.has(exchange.seq)
      )
        push(this.#open, model.doorOf(exchange.connection), exchange);
    }
  }

  roots(): readonly TreeNode[] {
    const of = (...kinds: readonly ActorKind[]): ActorLine[] => this.#loose.filter(({ kind }) => kinds.includes(kind));
    // A connection that has no client yet is no client.
    const unused = of('requests').filter((line) => isUnused(this.#model, line));
    const clients = [...of('session'), ...of('requests', 'emitter'), ...of('request', 'ask')].filter(
      (line) => !unused.includes(line),
    );
    return [
      ...of('server', 'client').map((line) => this.#node(line)),
      ...this.#group('clients', clients),
      ...this.#group('upstreams', of('mount')),
      ...this.#byName('handles', of('handle')),
      ...this.#group('tasks', of('task')),
      ...this.#group('approvals', of('approval')),
      ...this.#group('schedules', of('schedule')),
      ...this.#group('runs of scripts', of('run')),
      ...this.#group('webhooks', of('webhook')),
      ...this.#group('state', of('state'), true),
      ...this.#byName('machines', of('machine', 'invoked')),
      ...this.#hibernating(),
      ...this.#group(
        'internal',
        [...of('registry', 'executor', 'subscriptions', 'audit'), ...unused, ...this.#machinery],
        true,
      ),
    ];
  }

  /** Handles and sessions that left memory before the observation. Those that are known are at their places. */
  #hibernating(): readonly TreeNode[] {
    const handles = hibernatingOf(this.#model, this.#seq);
    const sessions = hibernatingSessionsOf(this.#model, this.#seq);
    const known = handles.some.filter((address) => this.#model.actors.has(address)).length;
    const children = [
      ...handles.some
        .filter((address) => !this.#model.actors.has(address))
        .map((address) => asleepNode(address, 'handle', handleName(address))),
      ...sessions.some.map((address) => asleepNode(address, 'session', address.replace('/', ' '))),
    ];
    if (children.length === 0) return [];
    const more = handles.count - known + sessions.count - children.length;
    return [
      {
        id: 'group hibernating',
        kind: 'group',
        label: 'hibernating',
        children,
        ...(more > 0 ? { more } : {}),
        closed: true,
      },
    ];
  }

  /** The actors of a connection belong to the actor that represents it. */
  #parentOf(line: ActorLine): string | undefined {
    const { parent, connection, address } = line;
    const above = parent === address ? undefined : this.#model.actor(parent ?? '');
    // Actors that internal actors of a connection created belong to the client.
    if (above && !(isMachinery(above.kind) && above.connection !== undefined)) return above.address;
    if (above?.connection !== undefined) return this.#doorOf(above.connection, address);
    if (connection === undefined || line.kind === 'task' || line.kind === 'handle') return undefined;
    return this.#doorOf(connection, address);
  }

  #doorOf(connection: string, address: string): string | undefined {
    const door = this.#model.doorOf(connection);
    return door === address || !this.#model.actors.has(door) ? undefined : door;
  }

  #node(line: ActorLine): TreeNode {
    const seq = this.#seq;
    const alive = line.aliveAt(seq);
    const state = line.standing(seq)?.state;
    // A table of requests has no deadline itself: its requests, which are shown beside it, do.
    const due = alive && line.kind !== 'requests' ? dueOf(line, seq) : undefined;
    const trouble = this.#trouble(line);
    const within = this.#children.get(line.address) ?? [];
    const { shown, more } = this.#living(within);
    const gone = alive ? undefined : (line.lives.before(seq)?.why ?? 'gone');
    return {
      id: line.address,
      kind: line.kind,
      label: this.#labelOf(line),
      actor: line.address,
      ...(state === undefined ? {} : { state }),
      ...(gone === undefined ? {} : { gone }),
      ...(hibernates(gone) ? { asleep: true } : {}),
      ...(trouble === undefined ? {} : { trouble }),
      ...(due === undefined ? {} : { due }),
      ...(alive && line.kind !== 'requests' && viewedWaits(line, seq).length > 0 ? { waits: true } : {}),
      ...(more === 0 ? {} : { more }),
      children: [
        ...(this.#open.get(line.address) ?? []).map((exchange) => this.#exchange(exchange)),
        ...(this.#unseen.get(line.address) ?? []),
        ...shown.map((child) => this.#node(child)),
      ],
      ...(gone === undefined ? {} : { closed: true }),
    };
  }

  #labelOf(line: ActorLine): string {
    if (!isMachinery(line.kind) || line.connection === undefined) return displayName(line);
    if (this.#model.doorOf(line.connection) === line.address) return doorName(this.#model, line.connection);
    const kind = line.kind === 'requests' ? 'in-flight requests' : line.kind;
    return `${kind} · ${doorName(this.#model, line.connection)}`;
  }

  #exchange(exchange: WireExchange): TreeNode {
    return {
      id: `exchange ${exchange.key}`,
      kind: 'exchange',
      label: exchange.target === undefined ? exchange.method : `${exchange.method} ${exchange.target}`,
      state: statusAt(exchange, this.#seq),
      exchange,
      children: [],
    };
  }

  #group(name: string, lines: readonly ActorLine[], closed = false): readonly TreeNode[] {
    const { shown, more } = this.#living(lines);
    if (shown.length === 0) return [];
    return [
      {
        id: `group ${name}`,
        kind: 'group',
        label: name,
        children: shown.map((line) => this.#node(line)),
        ...(more === 0 ? {} : { more }),
        ...(closed ? { closed } : {}),
      },
    ];
  }

  /** One group for each statechart. */
  #byName(name: string, lines: readonly ActorLine[]): readonly TreeNode[] {
    const groups = new Map<string, ActorLine[]>();
    for (const line of lines) push(groups, this.#machineOf(line), line);
    return [...groups].flatMap(([key, group]) => this.#group(key === '' ? name : `${name} · ${key}`, group));
  }

  /** Equal machines share a chart: the address of a handle has its machine's name. */
  #machineOf({ address, chart }: ActorLine): string {
    const [, name] = /^handle\/([^/]+)\/[^/]+$/.exec(address) ?? [];
    return name ?? this.#model.charts.get(chart ?? '')?.root.key ?? '';
  }

  /** The live actors, and the latest ended ones. */
  #living(lines: readonly ActorLine[]): { readonly shown: readonly ActorLine[]; readonly more: number } {
    const gone = lines.filter((line) => !line.aliveAt(this.#seq));
    const shown = new Set(
      gone
        .sort((a, b) => (b.lives.before(this.#seq)?.end ?? 0) - (a.lives.before(this.#seq)?.end ?? 0))
        .slice(0, TOMBSTONES),
    );
    const living = lines.filter((line) => line.aliveAt(this.#seq));
    return { shown: [...living, ...shown], more: gone.length - shown.size };
  }

  #trouble(line: ActorLine): TreeNode['trouble'] {
    const last = line.troubles.before(this.#seq);
    if (!last) return undefined;
    if (last.type === 'crashed') return 'crashed';
    if ((line.taken(this.#seq)?.seq ?? 0) > last.seq) return undefined;
    return last.type === 'step' ? 'unhandled' : 'dropped';
  }
}

/** The name of a handle of which only the address is known. @example handleName('handle/order/9f2a') // 'order 9f2a' */
export function handleName(address: string): string {
  const [, name = address, id = ''] = /^handle\/([^/]+)\/(.+)$/.exec(address) ?? [];
  return `${name} ${id.slice(0, 8)}`.trim();
}

function asleepNode(address: string, kind: 'handle' | 'session', label: string): TreeNode {
  return { id: address, kind, label, state: 'hibernating', gone: 'hibernation', asleep: true, children: [] };
}

function unseenNode(table: string, unseen: Unseen): TreeNode {
  const { key, name, until } = unseen;
  return {
    id: `unseen ${table} ${key}`,
    kind: 'request',
    label: name,
    state: 'open',
    actor: table,
    unseen,
    ...(until === undefined ? {} : { due: until }),
    children: [],
  };
}

/** The earliest deadline of an actor's waits. */
function dueOf(line: ActorLine, seq: number): number | undefined {
  const dues = [
    ...line.running(seq),
    ...viewedWaits(line, seq).flatMap(({ until }) => (until === undefined ? [] : [{ due: until }])),
  ];
  return dues.length === 0 ? undefined : Math.min(...dues.map(({ due }) => due));
}

/** The waits in the view of an actor. A view is valid until the next change of its actor. */
function viewedWaits(line: ActorLine, seq: number): readonly Wait[] {
  const view = line.view(seq);
  return view && view.seq >= (line.standing(seq)?.seq ?? 0) ? view.waits : [];
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const there = map.get(key);
  if (there) there.push(value);
  else map.set(key, [value]);
}

/** Every node, each before its children. */
export function flatten(nodes: readonly TreeNode[]): readonly TreeNode[] {
  return nodes.flatMap((node) => [node, ...flatten(node.children)]);
}
