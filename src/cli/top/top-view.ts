/** Renders the screen of `troupe top` as lines of text: clients and actors, what each waits for and until when, and request durations. Pure. */

import { visibleLine } from '../../core/protocol/visible-text.ts';
import type { Wait } from '../../inspector/frames.ts';
import {
  type ActorLine,
  actorTree,
  clusterNodesOf,
  flatten,
  type Hibernating,
  hibernatingOf,
  hibernatingSessionsOf,
  INTERNAL,
  inTurn,
  KNOWS_HIBERNATING,
  LIVE,
  type Model,
  missing,
  type NodeLine,
  nodeWaits,
  percentile,
  type Since,
  sizeOf,
  type TreeNode,
  timings,
  type Unseen,
  unseenOf,
  type WireExchange,
} from '../../inspector/model/index.ts';
import { type UpstreamLine, upstreamsOf } from '../../inspector/model/upstreams.ts';
import type { TrafficView } from '../../inspector/traffic/traffic-messages.ts';
import { clipLine, countdown, lasting, padTo, plural } from './format.ts';
import { type Line, line, type Tone } from './line.ts';
import { trafficLines } from './traffic-lines.ts';

/** `tree` shows requests below their sessions; the other orders show one flat list. */
export const SORTS = ['tree', 'deadline', 'age', 'name'] as const;

export type Sort = (typeof SORTS)[number];

interface ViewOptions {
  /** The server's time, in milliseconds. */
  readonly now: number;
  readonly columns: number;
  /** The number of lines on the screen. */
  readonly rows: number;
  readonly sort: Sort;
  /** The number of rows scrolled off the top. */
  readonly offset: number;
  /** The status of the connection, such as `live`. */
  readonly status: string;
  /** The help on keys; empty without a keyboard. */
  readonly keys: string;
  /** Undefined before it was read, and for a server without it. */
  readonly traffic?: TrafficView | undefined;
}

/** One row of the list: a client or an actor. */
interface Row {
  readonly name: string;
  readonly state: string;
  /** The time of its creation on the server's clock, in milliseconds; undefined if unknown. */
  readonly since: Since | undefined;
  readonly waits: readonly Wait[];
  readonly tone: Tone;
}

/** The window for the request rate, in milliseconds. */
const RATE_MS = 10_000;
/** Time in milliseconds for which a client on a shared connection counts as present after its last request. */
const PRESENT_MS = 60_000;
/** The maximum number of client names shown for one connection. */
const MOST_NAMES = 3;
/** The maximum number of nodes shown. */
const MOST_NODES = 8;
/** The maximum number of upstreams shown. */
const MOST_UPSTREAMS = 12;
/** The maximum number of methods shown. */
const MOST_METHODS = 6;
/** The maximum share of the screen for the methods. */
const METHODS_SHARE = 0.35;

export function topView(model: Model, options: ViewOptions): readonly Line[] {
  const traffic = options.traffic ? trafficLines(options.traffic, options.now + (model.hello?.epoch ?? 0)) : [];
  const top = [...header(model, options), ...nodeLines(model), ...upstreamLines(model), ...traffic, line('')];
  const methods = methodLines(model, options);
  const room = Math.max(3, options.rows - top.length - methods.length - 1);
  return [...top, ...listLines(rowsOf(model, options), options, room), ...methods].map(({ text, tone }) => ({
    text: clipLine(text, options.columns),
    tone,
  }));
}

/** The shown actors, plus the actor that reports hibernating handles: the caller requests their details. */
export function actorsShown(model: Model): readonly string[] {
  const actors = flatten(shown(model)).flatMap(({ actor, gone }) =>
    actor === undefined || gone !== undefined ? [] : [actor],
  );
  // The deadlines of requests are in the tables of their connections.
  const tables = [...model.actors.values()].filter(({ kind }) => kind === 'requests');
  const open = tables.filter((line) => line.aliveAt(LIVE)).map(({ address }) => address);
  return [...new Set([KNOWS_HIBERNATING, ...actors, ...open])];
}

function header(model: Model, { now, columns, status, keys, sort }: ViewOptions): readonly Line[] {
  const { hello } = model;
  if (!hello) return [line(`troupe top: ${status}`, 'title')];
  const { server, pid, node } = hello;
  const where = node === undefined ? `pid ${pid}` : `node ${node} · pid ${pid}`;
  const name = visibleLine(`◆ ${server.title ?? server.name} ${server.version} · ${where} · ${status}`);
  const help = keys === '' ? '' : `sorted by ${sort} · ${keys}`;
  return [
    line(name.length + help.length + 2 <= columns ? `${padTo(name, columns - help.length)}${help}` : name, 'title'),
    line(counts(model, now)),
    ...troubles(model).map((text) => line(text, 'bad')),
  ];
}

/** The nodes that share the store; none for a server that shares it with no other. */
function nodeLines(model: Model): readonly Line[] {
  const known = clusterNodesOf(model);
  if (!known) return [];
  const { nodes, state, free } = known;
  const row = ({ node, address, version, cells, leaving }: NodeLine, index: number): Line => {
    const words = [index === 0 ? `this node, ${state}` : leaving ? 'leaving' : 'serving', plural(cells, 'cell')];
    const text = [`node ${node}`, ...words, address, version].join(' · ');
    return line(visibleLine(`${index === 0 ? '●' : '○'} ${text}`), leaving ? 'faint' : 'plain');
  };
  const most = nodes.slice(0, MOST_NODES);
  return [
    ...most.map(row),
    ...(nodes.length > most.length ? [line(`… and ${plural(nodes.length - most.length, 'node')}`, 'faint')] : []),
    ...(free > 0 ? [line(`${plural(free, 'cell')} without a node`, 'bad')] : []),
  ];
}

/** The servers behind the mounts; none for a server without mounts. */
function upstreamLines(model: Model): readonly Line[] {
  const lines = upstreamsOf(model);
  const row = ({ name, state, connections, open, count, failed, p50, p99 }: UpstreamLine): Line => {
    const times = count === 0 ? [] : [`p50 ${lasting(p50)}  p99 ${lasting(p99)}`];
    const calls = [plural(count, 'call'), ...(failed === 0 ? [] : [`${failed} failed`]), `${open} open`];
    const text = [`upstream ${name}`, state, plural(connections, 'connection'), ...calls, ...times].join(' · ');
    return line(visibleLine(text), state.startsWith('offering') ? 'plain' : 'bad');
  };
  const most = lines.slice(0, MOST_UPSTREAMS);
  const more = lines.length - most.length;
  return [...most.map(row), ...(more > 0 ? [line(`… and ${plural(more, 'upstream')}`, 'faint')] : [])];
}

function counts(model: Model, now: number): string {
  const alive = [...model.actors.values()].filter((actor) => actor.aliveAt(LIVE));
  const count = (kind: string): number => alive.filter((actor) => actor.kind === kind).length;
  const requests = alive.filter(({ kind }) => kind === 'requests').reduce((sum, table) => sum + sizeOf(table, LIVE), 0);
  const ended = model.exchanges.all.until(LIVE).filter(isEnded);
  const times = ended.map(({ at, endAt }) => (endAt ?? at) - at).sort((a, b) => a - b);
  const { count: hibernating } = hibernatingOf(model);
  const { count: sleeping } = hibernatingSessionsOf(model);
  const others = sessionlessConnections(model).reduce((sum, node) => sum + clientsAt(model, node, now).count, 0);
  return [
    withHibernating(count('session'), sleeping, 'session'),
    ...(others === 0 ? [] : [`${plural(others, 'client')} without a session`]),
    plural(requests, 'request'),
    plural(count('ask'), 'question'),
    withHibernating(count('handle'), hibernating, 'handle'),
    plural(count('task'), 'task'),
    ...scripts(alive),
    `${rate(model, now).toFixed(1)} requests/s`,
    ...(times.length === 0 ? [] : [`p50 ${lasting(percentile(times, 0.5))}  p99 ${lasting(percentile(times, 0.99))}`]),
  ].join('  ');
}

/** The runs of scripts, and how many of them wait for a person, a task or a time. */
function scripts(alive: readonly ActorLine[]): readonly string[] {
  const runs = alive.filter(({ kind }) => kind === 'run');
  const waiting = runs.filter((run) => run.standing(LIVE)?.state.startsWith('waiting')).length;
  if (runs.length === 0) return [];
  return [`${plural(runs.length, 'script')}${waiting === 0 ? '' : ` (${waiting.toLocaleString('en')} waiting)`}`];
}

/** @example withHibernating(1, 3, 'handle') // '4 handles (3 hibernating)' */
function withHibernating(live: number, hibernating: number, name: string): string {
  const all = plural(live + hibernating, name);
  return hibernating === 0 ? all : `${all} (${hibernating.toLocaleString('en')} hibernating)`;
}

/** Computes the request rate. Requests that the inspector has left out count as well. */
function rate(model: Model, now: number): number {
  const { all } = model.exchanges;
  const begun = all.slice(all.countUntil(now - RATE_MS), all.length).filter(({ kind }) => kind === 'request').length;
  const left = model.gaps.filter(({ at }) => at > now - RATE_MS).reduce((sum, { exchanges }) => sum + exchanges, 0);
  const since = Math.max(1_000, Math.min(RATE_MS, now - (model.hello?.now ?? 0)));
  return ((begun + left) * 1_000) / since;
}

function troubles(model: Model): readonly string[] {
  const gaps = model.gaps.filter(({ why }) => why !== 'forgotten');
  const unhandled = model.troubles.length;
  const texts = [
    ...(unhandled === 0 ? [] : [plural(unhandled, 'unhandled event')]),
    ...(gaps.length === 0 ? [] : [`${missing(gaps)} not shown (sampled)`]),
    ...(model.bye === undefined ? [] : [`the server closed: ${visibleLine(model.bye)}`]),
  ];
  return texts.length === 0 ? [] : [texts.join(' · ')];
}

function shown(model: Model): readonly TreeNode[] {
  return actorTree(model, LIVE).filter(({ id, kind }) => kind !== 'server' && id !== INTERNAL);
}

/** The known clients of a connection without a session. */
interface Clients {
  /** True for HTTP, where all clients share one connection. */
  readonly shared: boolean;
  /** The names from their requests, the most recent first. */
  readonly names: readonly string[];
  readonly count: number;
}

/** The connections without a session. */
function sessionlessConnections(model: Model): readonly TreeNode[] {
  const clients = actorTree(model, LIVE).find(({ id }) => id === 'group clients');
  return (clients?.children ?? []).filter(({ kind, gone }) => kind === 'requests' && gone === undefined);
}

function clientsAt(model: Model, { actor = '' }: TreeNode, now: number): Clients {
  const table = model.actor(actor);
  const shared = table?.view(LIVE)?.facts.shared === true;
  const names = new Set<string>();
  const { all } = model.exchanges;
  for (const exchange of [...all.until(LIVE)].reverse()) {
    if (exchange.connection !== table?.connection || exchange.client === undefined) continue;
    // A client of a shared connection counts as disconnected some time after its last request.
    if (shared && exchange.endAt !== undefined && exchange.endAt < now - PRESENT_MS) continue;
    names.add(exchange.client);
    if (!shared) break;
  }
  const last = table?.view(LIVE)?.facts.client;
  if (!shared && names.size === 0 && typeof last === 'string') names.add(last);
  const unseen = table === undefined || (!shared && names.size > 0) ? [] : unseenOf(model, table, LIVE);
  for (const { client } of unseen) if (client !== undefined) names.add(client);
  // Requests may come from clients that do not name themselves.
  const someone = table !== undefined && sizeOf(table, LIVE) > 0 ? 1 : 0;
  return { shared, names: [...names], count: shared ? Math.max(names.size, someone) : 1 };
}

/** The row of a connection without a session. */
function connectionRow(model: Model, node: TreeNode, depth: number, now: number): Row {
  const { names } = clientsAt(model, node, now);
  const [name = 'a client', ...more] = [...names.slice(0, MOST_NAMES), ...(names.length > MOST_NAMES ? ['…'] : [])];
  return {
    name: visibleLine(`${'  '.repeat(depth)}${[name, ...more].join(', ')}`),
    state: node.state?.startsWith('admitting') === false ? visibleLine(node.state) : 'no session',
    since: bornAt(model, node.actor),
    waits: [],
    tone: 'plain',
  };
}

/** Rows for hibernating handles or sessions, which only the server's summary lists. The latest come first. */
function hibernatingRows({ count, some }: Hibernating, depth: number, title?: string): readonly Row[] {
  const row = (name: string): Row => ({
    name: visibleLine(`${'  '.repeat(depth)}${name}`),
    state: 'hibernating',
    since: undefined,
    waits: [],
    tone: 'faint',
  });
  return [
    ...(title !== undefined && some.length > 0 ? [heading(title)] : []),
    ...some.map((address) => row(address.replace('/', ' '))),
    ...(count > some.length && some.length > 0 ? [row(`… and ${count - some.length} more`)] : []),
  ];
}

function bornAt(model: Model, address = ''): Since | undefined {
  const line = model.actor(address);
  return line && model.since(line, 'life');
}

function rowsOf(model: Model, { sort, now }: ViewOptions): readonly Row[] {
  const walk = (node: TreeNode, depth: number, within: TreeNode['kind'] = 'group'): readonly Row[] => {
    if (node.gone !== undefined) return [];
    if (node.unseen) return [unseenRow(model, node, node.unseen, sort === 'tree' ? depth : 0, within === 'requests')];
    if (node.kind === 'requests') {
      const { shared, names } = clientsAt(model, node, now);
      const below = node.children.flatMap((child) => walk(child, depth + 1, node.kind));
      // The shared HTTP connection exists as long as its port: without clients, it is hidden.
      if (shared && names.length === 0 && below.length === 0) return [];
      return [connectionRow(model, node, sort === 'tree' ? depth : 0, now), ...below];
    }
    // Hidden: the actor that sent the input request shows the same wait.
    if (node.kind === 'ask' && within !== 'group') return [];
    const below = node.children.flatMap((child) => walk(child, depth + 1, node.kind));
    if (node.kind === 'group') return below.length === 0 ? [] : sort === 'tree' ? [group(node), ...below] : below;
    return [rowOf(model, node, sort === 'tree' ? depth : 0), ...below];
  };
  const [depth, handles, sessions] =
    sort === 'tree' ? ([1, 'hibernating handles', 'hibernating sessions'] as const) : ([0] as const);
  const rows = [
    ...shown(model).flatMap((node) => walk(node, 0)),
    ...hibernatingRows(hibernatingOf(model), depth, handles),
    ...hibernatingRows(hibernatingSessionsOf(model), depth, sessions),
  ];
  const due = ({ waits }: Row): number =>
    Math.min(...waits.map(({ until = Number.MAX_VALUE }) => until), Number.MAX_VALUE);
  if (sort === 'deadline') return [...rows].sort((a, b) => due(a) - due(b));
  if (sort === 'age')
    return [...rows].sort((a, b) => (a.since?.at ?? Number.MAX_VALUE) - (b.since?.at ?? Number.MAX_VALUE));
  return sort === 'name' ? [...rows].sort((a, b) => (a.name < b.name ? -1 : 1)) : rows;
}

/** A row for a request that began before the inspector recorded. */
function unseenRow(model: Model, node: TreeNode, { name, client }: Unseen, depth: number, sessionless: boolean): Row {
  // The row above names the client of a session.
  const named = client === undefined || !sessionless ? name : `${name} (${client})`;
  const waits = nodeWaits(model, node, LIVE);
  return { name: visibleLine(`${'  '.repeat(depth)}${named}`), state: 'open', since: undefined, waits, tone: 'plain' };
}

function group({ label }: TreeNode): Row {
  return heading(label);
}

function heading(label: string): Row {
  return { name: visibleLine(label), state: '', since: undefined, waits: [], tone: 'faint' };
}

function rowOf(model: Model, node: TreeNode, depth: number): Row {
  const { actor = '', exchange, state = '', label, kind, trouble } = node;
  const since = exchange ? { at: exchange.at, earlier: false } : bornAt(model, actor);
  const plain = kind === 'exchange' || kind === 'session' || label.startsWith(kind) ? label : `${kind} ${label}`;
  // Other actors take the client of the request that created them.
  const { client } = exchange ?? model.exchanges.at(model.actor(actor)?.origin ?? 0)[0] ?? {};
  const named = client === undefined ? plain : `${plain} (${client})`;
  return {
    name: visibleLine(`${'  '.repeat(depth)}${named}`),
    state: visibleLine(trouble === undefined ? state : `${state}, ${trouble}`),
    since,
    waits: nodeWaits(model, node, LIVE),
    tone: trouble === undefined ? 'plain' : 'bad',
  };
}

function listLines(rows: readonly Row[], { now, columns, offset }: ViewOptions, room: number): readonly Line[] {
  const name = Math.min(Math.max(24, Math.floor(columns * 0.38)), 60);
  const state = Math.min(Math.max(14, Math.floor(columns * 0.18)), 28);
  const head = line(
    `${padTo('actor', name)} ${padTo('state', state)} ${'age '.padStart(8)} ${'left'.padStart(7)}  waits for`,
    'head',
  );
  if (rows.length === 0) return [head, line('no clients and no waiting actors', 'faint')];
  const from = Math.min(offset, Math.max(0, rows.length - room));
  const fits = rows.length - from <= room - 1 ? room : room - 2;
  const lines = rows.slice(from, from + Math.max(1, fits)).map((row) => {
    // `+` marks an actor that is older than the recording.
    const age = row.since ? `${countdown(now - row.since.at)}${row.since.earlier ? '+' : ' '}` : '';
    const left = leftText(row.waits, now);
    const text = `${padTo(row.name, name)} ${padTo(row.state, state)} ${age.padStart(8)} ${left.padStart(7)}  ${waitText(row.waits)}`;
    return line(text.trimEnd(), row.tone);
  });
  const more = rows.length - from - lines.length;
  return [head, ...lines, ...(more > 0 ? [line(`… and ${more} more`, 'faint')] : [])];
}

/** @example Refund 20 €? · the user of claude */
function waitText(waits: readonly Wait[]): string {
  const [first, ...more] = inTurn(waits);
  if (!first) return '';
  const parts = [
    first.what,
    ...(first.whom === undefined ? [] : [first.whom]),
    ...(more.length === 0 ? [] : [`and ${more.length} more`]),
  ];
  return visibleLine(parts.join(' · '));
}

/** The time until the earliest deadline. */
function leftText(waits: readonly Wait[], now: number): string {
  const until = inTurn(waits)[0]?.until;
  return until === undefined ? '' : until > now ? countdown(until - now) : 'due';
}

function methodLines(model: Model, { columns, rows }: ViewOptions): readonly Line[] {
  const all = timings(model.exchanges.all.until(LIVE));
  const most = Math.min(MOST_METHODS, Math.floor(rows * METHODS_SHARE) - 2);
  if (all.length === 0 || most < 1) return [];
  const name = Math.min(Math.max(24, Math.floor(columns * 0.38)), 60);
  const row = (method: string, ...cells: readonly string[]): string =>
    `${padTo(method, name)}${cells.map((cell) => cell.padStart(9)).join('')}`;
  return [
    line(''),
    line(row('method', 'count', 'failed', 'p50', 'p99', 'slowest'), 'head'),
    ...all.slice(0, most).map(({ method, count, failed, p50, p99, slowest }) => {
      const times = [p50, p99, slowest].map(lasting);
      return line(row(visibleLine(method), String(count), String(failed), ...times), failed > 0 ? 'bad' : 'plain');
    }),
    ...(all.length > most ? [line(`… and ${all.length - most} more`, 'faint')] : []),
  ];
}

function isEnded({ kind, endAt }: WireExchange): boolean {
  return kind === 'request' && endAt !== undefined;
}
