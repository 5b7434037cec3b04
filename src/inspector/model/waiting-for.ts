/**
 * The waits of an actor or a request: the addressee, the deadline and the cause, from the server's views or from
 * records.
 */
import type { ChartEdge, TraceRecord, Wait } from '../frames.ts';
import { type ActorLine, isTimer, type PendingTimer } from './actor-line.ts';
import { isUpstream } from './belonging.ts';
import { isMachinery } from './message-rows.ts';
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { displayName } from './tree.ts';
import { heldIn, isSame, tableOf, unseenOf } from './unseen.ts';
import { hopName, statusAt, type WireExchange } from './wire-exchange.ts';

/** A wait. `after`: the transition that a timer takes. */
export interface Waited extends Wait {
  /** The waiting call, if the actor is a session. */
  readonly who?: string;
  readonly after?: ChartEdge;
  /** Derived from records only: no view confirms it, and its deadline is unknown. */
  readonly unconfirmed?: boolean;
}

const RESULT = 'its result';

/** The beginning of the addressee of an input request that was not sent yet. */
const NEXT_CALLER = 'the client of the next call';

/** @returns undefined if unknown: neither a view nor a record shows it */
export function waitsOf(model: Model, address: string, seq: number): readonly Waited[] | undefined {
  const line = model.actor(address);
  if (!line?.aliveAt(seq)) return [];
  const view = line.view(seq);
  if (isUpstream(line)) return callsBeyond(model, line, seq);
  const delays = line.running(seq).map((timer) => delayOf(model, line, timer));
  // A view is valid until the next change of its actor.
  if (view && view.seq >= (line.standing(seq)?.seq ?? 0)) {
    const named = view.waits.filter(({ what }) => !line.running(seq).some((timer) => isTimer(what, timer)));
    const own = [...named.map((wait) => viewedDelay(model, line, wait) ?? asked(model, wait, seq)), ...delays];
    if (own.length > 0) return own;
    return line.kind === 'session' ? callsOf(model, line, seq) : (servedBy(model, line, seq) ?? own);
  }
  const questions = model.exchanges
    .open(seq)
    .filter(({ direction, about }) => direction === 'out' && about !== undefined && about === line.origin);
  const waits = [...questions.map((question) => questionOf(model, question)), ...delays];
  return waits.length > 0 ? waits : servedBy(model, line, seq);
}

/** The actor of a request that asks nothing now: its request waits for its result. */
function servedBy(model: Model, { serves }: ActorLine, seq: number): readonly Waited[] | undefined {
  for (const origin of serves)
    for (const exchange of model.exchanges.at(origin))
      if (statusAt(exchange, seq) === 'open') return [resultOf(model, exchange, seq)];
  return undefined;
}

/** A session itself never waits: its open calls do. */
function callsOf(model: Model, { connection }: ActorLine, seq: number): readonly Waited[] {
  const open = model.exchanges.open(seq).filter((call) => call.direction === 'in' && call.connection === connection);
  const table = connection === undefined ? undefined : model.actor(tableOf(connection));
  const unseen = table === undefined ? [] : unseenOf(model, table, seq);
  return [
    ...open.flatMap((call) => exchangeWaits(model, call, seq).map((wait) => ({ ...wait, who: callName(call) }))),
    ...unseen.map(({ name, until }) => ({ who: name, what: 'its result', ...(until === undefined ? {} : { until }) })),
  ];
}

/** A connection to a server behind a mount waits for the responses to its calls. */
function callsBeyond(model: Model, line: ActorLine, seq: number): readonly Waited[] {
  return model.exchanges
    .open(seq)
    .filter((call) => call.direction === 'out' && call.connection === line.connection && call.origin)
    .flatMap((call) => beyond(model, call, line, seq).map((wait) => ({ ...wait, who: wait.who ?? callName(call) })));
}

/** The deadline of a request, from its table. */
function deadlineOf(model: Model, exchange: WireExchange, seq: number): number | undefined {
  const table = model.actor(tableOf(exchange.connection));
  return table && heldIn(table, seq).find((held) => isSame(held, exchange))?.until;
}

function callName({ method, target }: WireExchange): string {
  return target === undefined ? method : `${method} ${target}`;
}

/** The waits of a request: its open input requests, or otherwise the actor that serves it. */
export function exchangeWaits(model: Model, exchange: WireExchange, seq: number): readonly Waited[] {
  if (statusAt(exchange, seq) !== 'open') return [];
  const upstream = model.actor(exchange.connection);
  if (exchange.direction === 'out' && upstream && isUpstream(upstream)) return beyond(model, exchange, upstream, seq);
  if (exchange.direction === 'out') return [questionOf(model, exchange)];
  const serves = [...model.actors.values()].find((line) => line.serves.has(exchange.seq) && line.aliveAt(seq));
  const inner = serves ? waitsOf(model, serves.address, seq) : undefined;
  if (inner && inner.length > 0) return inner;
  const questions = exchange.asks.filter((ask) => ask.seq <= seq && statusAt(ask, seq) === 'open');
  if (questions.length > 0) return questions.map((question) => questionOf(model, question));
  return [resultOf(model, exchange, seq)];
}

/** A call to the server behind a mount waits for the people whom that server asks meanwhile, otherwise for its result. */
function beyond(model: Model, exchange: WireExchange, upstream: ActorLine, seq: number): readonly Waited[] {
  const name = nameOfMount(model, upstream);
  const { origin } = exchange;
  const call = origin && [...model.actors.values()].find((line) => line.serves.has(origin.seq) && line.aliveAt(seq));
  const asked = (call ? (waitsOf(model, call.address, seq) ?? []) : [])
    .concat((origin?.asks ?? []).filter((ask) => statusAt(ask, seq) === 'open').map((ask) => questionOf(model, ask)))
    .filter(({ what, after }) => what !== RESULT && !after);
  if (asked.length > 0) return asked.slice(0, 1).map((wait) => ({ ...wait, who: name }));
  return [{ what: RESULT, whom: name, because: exchange.seq, unconfirmed: true }];
}

function nameOfMount(model: Model, { parent, address, label }: ActorLine): string {
  return displayName(model.actor(parent ?? '') ?? { address, label });
}

/** The addressee is never an executor: every server has them, and a viewer that connects during the call does not know which one. */
function resultOf(model: Model, exchange: WireExchange, seq: number): Waited {
  const server = model.actor(exchange.servedBy ?? '');
  const hop = exchange.relayed?.find((call) => statusAt(call, seq) === 'open');
  const upstream = hop && model.actor(hop.connection);
  const until = deadlineOf(model, exchange, seq);
  return {
    what: RESULT,
    because: exchange.seq,
    ...(exchange.hop?.way === 'to'
      ? { whom: hopName(exchange.hop) }
      : upstream
        ? { whom: nameOfMount(model, upstream) }
        : server && !isMachinery(server.kind)
          ? { whom: displayName(server) }
          : {}),
    ...(until === undefined ? { unconfirmed: true } : { until }),
  };
}

/**
 * An input request that is open on the wire is the cause of the wait. If a handle asks, it also has the addressee and
 * the deadline.
 */
function asked(model: Model, wait: Wait, seq: number): Waited {
  const question = model.exchanges
    .open(seq)
    .find(({ direction, target }) => direction === 'out' && isNamed(wait.what, target));
  if (!question) return wait;
  if (wait.whom?.startsWith(NEXT_CALLER) === true) return { ...wait, ...questionOf(model, question) };
  return { because: question.seq, ...wait };
}

function questionOf(model: Model, exchange: WireExchange): Waited {
  const door = model.doorOf(exchange.connection);
  const ask = [...model.actors.values()].find(
    (line) => line.kind === 'ask' && isNamed(line.label, exchange.target) && line.aliveAt(LIVE) && line.view(LIVE),
  );
  const wait = ask?.view(LIVE)?.waits[0];
  return {
    ...wait,
    what: exchange.target ?? exchange.method,
    whom: `the user of ${displayName(model.actor(door) ?? { address: door, label: undefined })}`,
    because: exchange.seq,
    ...(wait === undefined ? { unconfirmed: true } : {}),
  };
}

function delayOf(model: Model, { address }: ActorLine, { event, due, delay }: PendingTimer): Waited {
  const edges = [...(model.chartOf(address)?.edges.values() ?? [])];
  const after = edges.find(({ edge }) => edge.on === event)?.edge;
  return { what: after?.label ?? event, until: due, lasts: delay, ...(after ? { after } : {}) };
}

/** A timer that started before the observation: only a view has it. */
function viewedDelay(model: Model, { address }: ActorLine, wait: Wait): Waited | undefined {
  const edges = [...(model.chartOf(address)?.edges.values() ?? [])];
  const after = edges.find(({ edge }) => edge.on.startsWith('xstate.after.') && wait.what === `#${edge.on}`)?.edge;
  return after && { ...wait, what: after.label, after };
}

/** A long message is named by its beginning. */
function isNamed(name: string | undefined, question: string | undefined): boolean {
  if (name === undefined || question === undefined) return false;
  return name === question || (name.endsWith('…') && question.startsWith(name.slice(0, -1)));
}

/** The display name of an event: its label in the actor's chart, or a readable form of XState's own name. */
export function eventName(model: Model, actor: string, event: string): string {
  if (!event.startsWith('xstate.')) return event;
  if (event === 'xstate.init') return 'start';
  for (const { edge } of model.chartOf(actor)?.edges.values() ?? []) if (edge.on === event) return edge.label;
  return event
    .replace(
      /^xstate\.(done|error)\.(actor|state)\.(.*)$/,
      (_, how, __, what) => `${what} ${how === 'done' ? 'done' : 'failed'}`,
    )
    .replace(/^xstate\.after\.(\w+)\..*$/, 'after $1');
}

/** A record as one line, for chains of causes. */
export function lineOf(model: Model, record: TraceRecord): string {
  const name = (address: string): string => {
    const line = model.actor(address);
    return line ? displayName(line) : address;
  };
  switch (record.type) {
    case 'wire': {
      const [exchange] = model.exchanges.at(record.seq);
      if (exchange) return callName(exchange);
      const row = model.exchanges.of(record);
      return row ? `${row.end === record.seq ? 'response to' : 'part of'} ${row.method}` : 'a message';
    }
    case 'created':
      return `${name(record.actor)} started`;
    case 'mail':
      return `${record.name} to ${name(record.actor)}`;
    case 'state':
      return `${name(record.actor)} is ${record.state}`;
    case 'step': {
      const event = eventName(model, record.actor, record.event);
      return record.handled
        ? `${name(record.actor)} handled ${event} → ${record.active.join(' & ') || record.status}`
        : `${name(record.actor)} did not handle ${event}`;
    }
    case 'timer': {
      const delay = eventName(model, record.actor, record.event);
      return `timer “${delay}” of ${name(record.actor)} ${record.due === undefined ? 'ended' : 'started'}`;
    }
    case 'emit':
      return `${name(record.actor)} emitted ${record.event}`;
    case 'crashed':
      return `${name(record.actor)} crashed on ${record.mail}: ${record.error}`;
    case 'failed':
      return `${record.element} failed: ${record.error.split('\n', 1)[0] ?? ''}`;
    case 'gone':
      return `${name(record.actor)} ended: ${record.why}`;
    case 'hop':
      return `${record.way === 'to' ? (record.end ?? 'forwarded to') : 'arrived from'} ${hopName(record)}`;
    case 'journal': {
      const of = record.call === undefined ? '' : ` call ${record.call}`;
      return `${name(record.actor)}: ${record.what}${of}${record.name === undefined ? '' : ` ${record.name}`}`;
    }
    case 'control':
      return `the inspector: ${record.action}`;
  }
}
