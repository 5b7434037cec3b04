/** The list of everything that waits: who, for what, for whom, until when and why; the earliest deadline first. */
import type { ActorKind, Wait } from '../frames.ts';
import type { ActorLine } from './actor-line.ts';
import { isUpstream } from './belonging.ts';
import { hasFinished } from './finished.ts';
import { hibernatingOf, hibernatingSessionsOf, timerOf } from './hibernating.ts';
import { isAuthored } from './message-rows.ts';
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { type Progress, progressOf } from './progress.ts';
import { actorTree, doorName, handleName, INTERNAL, type TreeNode } from './tree.ts';
import { exchangeWaits, type Waited, waitsOf } from './waiting-for.ts';
import type { WireExchange } from './wire-exchange.ts';

/** One wait. A question that a call, a handle and an input request wait for is one row. */
export interface WaitingRow {
  readonly key: string;
  /** The kind of the waiting actor; `exchange` for a request without an actor. */
  readonly kind: ActorKind | 'exchange';
  /** Its display name, such as `order 9f2a1c` or `tools/call refund`. */
  readonly who: string;
  /** The client whose request it is. */
  readonly client?: string;
  /** Its state, unless the wait says as much. */
  readonly state?: string;
  readonly actor?: string;
  readonly exchange?: WireExchange;
  /** A request from before the observation: its table of requests, and its key there. */
  readonly unseen?: { readonly table: string; readonly key: string };
  /** For timers: `what` is the timer. */
  readonly wait: Waited;
  /** The start of the wait on the server's clock, if known. */
  readonly since?: number;
  readonly progress?: Progress;
  /** The record that explains the wait: the request that led to it, or the step into the current state. */
  readonly because?: number;
  /** True: nothing is open. It waits for its next event or request, or its lifetime ends. */
  readonly idle: boolean;
  /** True if it has left memory. */
  readonly asleep?: boolean;
}

/** The waits of a node of the tree, for every viewer: the page and `troupe top`. */
export function nodeWaits(model: Model, { actor = '', exchange, unseen }: TreeNode, seq: number): readonly Waited[] {
  if (unseen) return [{ what: RESULT, ...(unseen.until === undefined ? {} : { until: unseen.until }) }];
  if (exchange) return exchangeWaits(model, exchange, seq);
  return waitsOf(model, actor, seq) ?? [];
}

/** Sorts waits by deadline, the earliest first. */
export function inTurn<W extends Pick<Wait, 'until'>>(waits: readonly W[]): readonly W[] {
  return [...waits].sort((a, b) => untilOf(a) - untilOf(b));
}

const RESULT = 'its result';

/**
 * Everything that waits at a record: first open waits, then handles and sessions between two events.
 *
 * @param nodes the tree at that record, if the caller has it
 */
export function waitingList(
  model: Model,
  seq: number,
  nodes: readonly TreeNode[] = actorTree(model, seq),
): readonly WaitingRow[] {
  const rows = new Map<string, WaitingRow>();
  const add = (row: WaitingRow): void => {
    const same = rows.get(row.key);
    rows.set(row.key, same ? joined(same, row) : row);
  };
  const walk = (node: TreeNode, client: string | undefined, above: TreeNode | undefined): void => {
    if (node.id === INTERNAL) return;
    const within = node.kind === 'session' ? node.label : client;
    for (const row of rowsOf(model, node, within, seq))
      add(node.kind === 'ask' && above ? asked(row, node, above) : row);
    for (const child of node.children) walk(child, within, node);
  };
  for (const node of nodes) walk(node, undefined, undefined);
  if (seq === LIVE || seq >= model.newest) for (const row of hibernatingRows(model)) if (!rows.has(row.key)) add(row);
  return [...rows.values()].sort(
    (a, b) =>
      Number(a.idle) - Number(b.idle) ||
      untilOf(a.wait) - untilOf(b.wait) ||
      (a.since ?? Number.MAX_VALUE) - (b.since ?? Number.MAX_VALUE) ||
      (a.who < b.who ? -1 : 1),
  );
}

/** Kinds of actors that are never in the list: their waits are those of others. */
const UNLISTED: ReadonlySet<TreeNode['kind']> = new Set([
  'group',
  'requests',
  'emitter',
  'registry',
  'executor',
  'subscriptions',
  'mount',
  'state',
]);

/** The final states of a task (`machines/task.ts`): its actor stays until its lifetime ends. */
const ENDED_TASK: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);

function rowsOf(model: Model, node: TreeNode, client: string | undefined, seq: number): readonly WaitingRow[] {
  const { kind, asleep, gone, children } = node;
  if (kind === 'group' || UNLISTED.has(kind) || (asleep && node.actor === undefined) || (gone !== undefined && !asleep))
    return [];
  // Nothing reaches an instance in a final state.
  if (kind === 'handle' && hasFinished(model, node.actor ?? '', seq)) return [];
  // The call that the server relays has a row.
  if (isUpstream(model.actor(node.actor ?? node.exchange?.connection ?? ''))) return [];
  if (asleep) return [idleRow(model, node, client, seq)];
  // A session itself never waits while a call is open: the call has a row.
  const busy = children.some((child) => child.gone === undefined && !UNLISTED.has(child.kind));
  const all = kind === 'session' && busy ? [] : nodeWaits(model, node, seq);
  // The calls of a script have the rows of their questions and results.
  const waits = kind === 'run' && busy ? all.filter((wait) => !isOfCall(wait)) : all;
  const line = model.actor(node.actor ?? '');
  const exchange = exchangeOf(model, node, line);
  if (waits.length > 0)
    return waits.map((wait, index) => {
      const nth = waits.slice(0, index).filter(({ what }) => what === wait.what).length;
      return waitRow(model, node, { client, exchange, wait, nth }, seq);
    });
  // A task or a statechart that runs for a call has no wait of its own: its call waits for the result.
  if (kind === 'task') return ENDED_TASK.has(node.state ?? '') ? [] : [taskRow(model, node, exchange, client, seq)];
  if (kind === 'handle' || (kind === 'session' && !busy)) return [idleRow(model, node, client, seq)];
  return [];
}

function isOfCall({ what, whom }: Waited): boolean {
  return whom !== undefined || what.startsWith('the result of ');
}

/** An input request is the wait of the request, the handle or the task that asks. */
function asked(row: WaitingRow, ask: TreeNode, { id, kind, label, gone, children }: TreeNode): WaitingRow {
  if (kind === 'group' || UNLISTED.has(kind) || gone !== undefined) return row;
  const same = children.filter(
    (child) => child.kind === 'ask' && child.label === ask.label && child.gone === undefined,
  );
  const key = row.key.startsWith(QUESTION) ? row.key : keyOf(id, row.wait.what, same.indexOf(ask));
  return { ...row, kind, who: label, key };
}

/** The beginning of the key of an input request on the wire. */
const QUESTION = 'question ';

/** @param nth its number among the waits of the same name */
function keyOf(node: string, what: string, nth: number): string {
  return `${node} ${what} ${nth}`;
}

interface WaitOfNode {
  readonly client: string | undefined;
  readonly exchange: WireExchange | undefined;
  readonly wait: Waited;
  readonly nth: number;
}

function waitRow(model: Model, node: TreeNode, { client, exchange, wait, nth }: WaitOfNode, seq: number): WaitingRow {
  const { because, after } = wait;
  const question = because === undefined ? undefined : model.exchanges.at(because)[0];
  // A question is one row, although its call, its handle and its input request all wait for it.
  const key = question?.direction === 'out' ? `${QUESTION}${question.key}` : keyOf(node.id, wait.what, nth);
  const line = model.actor(node.actor ?? '');
  const since = question?.at ?? (after ? line?.standing(seq)?.at : exchange?.at);
  const progress = exchange && progressOf(exchange, seq);
  return {
    ...named(model, node, exchange, client),
    key,
    wait: lasting(wait, since),
    ...(since === undefined ? {} : { since }),
    ...(progress && after === undefined ? { progress } : {}),
    ...becauseOf(model, line, because ?? exchange?.seq, seq),
    idle: false,
  };
}

/** A task that works has progress, but no deadline besides the end of its lifetime. */
function taskRow(
  model: Model,
  node: TreeNode,
  exchange: WireExchange | undefined,
  client: string | undefined,
  seq: number,
): WaitingRow {
  const line = model.actor(node.actor ?? '');
  const progress = exchange && progressOf(exchange, seq);
  return {
    ...named(model, node, exchange, client),
    key: node.id,
    wait: { what: RESULT, ...(exchange ? { because: exchange.seq } : {}) },
    ...(exchange ? { since: exchange.at } : {}),
    ...(progress ? { progress } : {}),
    ...becauseOf(model, line, exchange?.seq, seq),
    idle: false,
  };
}

/** A handle between two events, or a session between two requests: its lifetime drains. */
function idleRow(model: Model, node: TreeNode, client: string | undefined, seq: number): WaitingRow {
  const line = model.actor(node.actor ?? '');
  const life = line && lifetimeOf(model, line, seq);
  const since = line?.standing(seq)?.at;
  return {
    ...named(model, node, undefined, client),
    key: node.actor ?? node.id,
    wait: {
      what: `its next ${node.kind === 'session' ? 'request' : 'event'}`,
      ...life,
      ...timerOf(model, node.actor, seq),
    },
    ...(since === undefined ? {} : { since }),
    ...becauseOf(model, line, undefined, seq),
    idle: true,
    ...(node.asleep ? { asleep: true } : {}),
  };
}

/** Handles and sessions that hibernated before the observation: the server lists the latest of them. */
function hibernatingRows(model: Model): readonly WaitingRow[] {
  const row = (address: string, kind: 'handle' | 'session', who: string, next: string): WaitingRow => ({
    key: address,
    kind,
    who,
    state: 'hibernating',
    actor: address,
    wait: { what: `its next ${next}`, ...timerOf(model, address) },
    idle: true,
    asleep: true,
  });
  return [
    ...hibernatingOf(model).some.map((address) => row(address, 'handle', handleName(address), 'event')),
    ...hibernatingSessionsOf(model).some.map((address) =>
      row(address, 'session', address.replace('/', ' '), 'request'),
    ),
  ];
}

function named(
  model: Model,
  { kind, label, state, actor, asleep, unseen }: TreeNode,
  exchange: WireExchange | undefined,
  within: string | undefined,
): Pick<WaitingRow, 'kind' | 'who' | 'client' | 'state' | 'actor' | 'exchange' | 'unseen'> {
  const client = exchange ? (exchange.client ?? within ?? doorName(model, exchange.connection)) : within;
  const stands = asleep ? `${state ?? ''}`.trim() || 'hibernating' : state;
  return {
    kind: kind === 'group' ? 'machine' : kind,
    who: label,
    ...(client === undefined || client === label ? {} : { client }),
    ...(stands === undefined || !isAuthored(kind === 'group' || kind === 'exchange' ? 'server' : kind)
      ? {}
      : { state: stands }),
    ...(actor === undefined ? {} : unseen ? { unseen: { table: actor, key: unseen.key } } : { actor }),
    ...(exchange ? { exchange } : {}),
  };
}

/** The request that a node is, or that its actor serves. */
function exchangeOf(model: Model, node: TreeNode, line: ActorLine | undefined): WireExchange | undefined {
  if (node.exchange) return node.exchange;
  if (line === undefined || (line.kind !== 'request' && line.kind !== 'task' && line.kind !== 'machine'))
    return undefined;
  // The last one of a request that its client repeated with answers.
  return model.exchanges.at([...line.serves].at(-1) ?? line.origin ?? -1)[0];
}

/** The first cause of a wait; for a statechart without one, the step into its current state. */
function becauseOf(
  model: Model,
  line: ActorLine | undefined,
  because: number | undefined,
  seq: number,
): { readonly because?: number } {
  const from = because ?? line?.standing(seq)?.seq;
  return from === undefined ? {} : { because: model.causes.because(from).at(-1)?.seq ?? from };
}

/** A bar needs the whole duration: the time between the start and the deadline. */
function lasting(wait: Waited, since: number | undefined): Waited {
  if (wait.lasts !== undefined || wait.until === undefined || since === undefined) return wait;
  return { ...wait, lasts: Math.max(0, wait.until - since) };
}

/** The end of a handle's lifetime, from its last view. */
function lifetimeOf(model: Model, line: ActorLine, seq: number): Pick<Waited, 'until' | 'lasts'> | undefined {
  const { expires, used } = line.view(seq)?.facts ?? {};
  const epoch = model.hello?.epoch;
  if (typeof expires !== 'number' || epoch === undefined) return undefined;
  return { until: expires - epoch, ...(typeof used === 'number' ? { lasts: expires - used } : {}) };
}

/** The rank of the actor that a shared row names: a handle before its call, a call before its input request. */
const RANKS: readonly WaitingRow['kind'][] = [
  'ask',
  'session',
  'exchange',
  'request',
  'invoked',
  'machine',
  'task',
  'handle',
];

/** Joins two views of one wait: the name of the more specific actor, and every known fact. */
function joined(a: WaitingRow, b: WaitingRow): WaitingRow {
  const [less, more] = RANKS.indexOf(a.kind) >= RANKS.indexOf(b.kind) ? [b, a] : [a, b];
  return { ...less, ...more, wait: { ...less.wait, ...more.wait } };
}

function untilOf({ until }: Pick<Wait, 'until'>): number {
  return until ?? Number.MAX_VALUE;
}
