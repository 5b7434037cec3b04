/** What an actor, or a request, waits for: for whom, until when, and why. Of what the server has told, or of what can be seen. */
import type { ChartEdge, TraceRecord, Wait } from '../frames.ts';
import type { ActorLine, PendingTimer } from './actor-line.ts';
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { displayName } from './tree.ts';
import { heldIn, isSame, tableOf, unseenOf } from './unseen.ts';
import { statusAt, type WireExchange } from './wire-exchange.ts';

/** What is waited for. `after`: a delay that leads on by itself, along this transition. */
export interface Waited extends Wait {
  /** What waits, where that is not the actor itself: a call of a session. */
  readonly who?: string;
  readonly after?: ChartEdge;
  /** It can be seen, and nobody has told until when. */
  readonly untold?: boolean;
}

/** How a question begins that was put to nobody yet. */
const NOBODY_YET = 'the client of the next call';

/** @returns undefined where it cannot be known: the server has told nothing of it, and nothing shows it */
export function waitsOf(model: Model, address: string, seq: number): readonly Waited[] | undefined {
  const line = model.actor(address);
  if (!line?.aliveAt(seq)) return [];
  const look = line.look(seq);
  const delays = line.running(seq).map((timer) => delayOf(model, line, timer));
  // A look holds for as long as nothing has happened to the actor since.
  if (look && look.seq >= (line.standing(seq)?.seq ?? 0)) {
    const named = look.waits.filter(({ what }) => !line.running(seq).some((timer) => isOf(what, timer)));
    const own = [...named.map((wait) => delayTold(model, line, wait) ?? asked(model, wait, seq)), ...delays];
    return own.length === 0 && line.kind === 'session' ? callsOf(model, line, seq) : own;
  }
  const questions = model.exchanges
    .open(seq)
    .filter(({ direction, about }) => direction === 'out' && about !== undefined && about === line.origin);
  const waits = [...questions.map((question) => questionOf(model, question)), ...delays];
  return waits.length > 0 ? waits : undefined;
}

/** A session never waits itself: its open calls do. */
function callsOf(model: Model, { connection }: ActorLine, seq: number): readonly Waited[] {
  const open = model.exchanges.open(seq).filter((call) => call.direction === 'in' && call.connection === connection);
  const table = connection === undefined ? undefined : model.actor(tableOf(connection));
  const unseen = table === undefined ? [] : unseenOf(model, table, seq);
  return [
    ...open.flatMap((call) => exchangeWaits(model, call, seq).map((wait) => ({ ...wait, who: callName(call) }))),
    ...unseen.map(({ name, until }) => ({ who: name, what: 'its result', ...(until === undefined ? {} : { until }) })),
  ];
}

/** When its time is up, as the table says that holds it. */
function deadlineOf(model: Model, exchange: WireExchange, seq: number): number | undefined {
  const table = model.actor(tableOf(exchange.connection));
  return table && heldIn(table, seq).find((held) => isSame(held, exchange))?.until;
}

function callName({ method, target }: WireExchange): string {
  return target === undefined ? method : `${method} ${target}`;
}

/** What a request of the wire waits for: its questions, or else the actor that serves it. */
export function exchangeWaits(model: Model, exchange: WireExchange, seq: number): readonly Waited[] {
  if (statusAt(exchange, seq) !== 'open') return [];
  if (exchange.direction === 'out') return [questionOf(model, exchange)];
  const serves = [...model.actors.values()].find(
    (line) => line.kind === 'request' && line.origin === exchange.seq && line.aliveAt(seq),
  );
  const inner = serves ? waitsOf(model, serves.address, seq) : undefined;
  if (inner && inner.length > 0) return inner;
  const questions = exchange.asks.filter((ask) => ask.seq <= seq && statusAt(ask, seq) === 'open');
  if (questions.length > 0) return questions.map((question) => questionOf(model, question));
  const server = model.actor(exchange.servedBy ?? '');
  const until = deadlineOf(model, exchange, seq);
  return [
    {
      what: 'its result',
      because: exchange.seq,
      ...(server ? { whom: displayName(server) } : {}),
      ...(until === undefined ? { untold: true } : { until }),
    },
  ];
}

/** Of a question that is open on the wire, that is why it waits; where a handle asks it, also whom, and until when. */
function asked(model: Model, wait: Wait, seq: number): Waited {
  const question = model.exchanges
    .open(seq)
    .find(({ direction, target }) => direction === 'out' && isNamed(wait.what, target));
  if (!question) return wait;
  if (wait.whom?.startsWith(NOBODY_YET) === true) return { ...wait, ...questionOf(model, question) };
  return { because: question.seq, ...wait };
}

function questionOf(model: Model, exchange: WireExchange): Waited {
  const door = model.doorOf(exchange.connection);
  const ask = [...model.actors.values()].find(
    (line) => line.kind === 'ask' && isNamed(line.label, exchange.target) && line.aliveAt(LIVE) && line.look(LIVE),
  );
  const told = ask?.look(LIVE)?.waits[0];
  return {
    ...told,
    what: exchange.target ?? exchange.method,
    whom: `the user of ${displayName(model.actor(door) ?? { address: door, label: undefined })}`,
    because: exchange.seq,
    ...(told === undefined ? { untold: true } : {}),
  };
}

function delayOf(model: Model, { address }: ActorLine, { event, due, delay }: PendingTimer): Waited {
  const edges = [...(model.chartOf(address)?.edges.values() ?? [])];
  const after = edges.find(({ edge }) => edge.on === event)?.edge;
  return { what: after?.label ?? event, until: due, lasts: delay, ...(after ? { after } : {}) };
}

/** A delay that began before anybody watched: only a look knows of it. */
function delayTold(model: Model, { address }: ActorLine, wait: Wait): Waited | undefined {
  const edges = [...(model.chartOf(address)?.edges.values() ?? [])];
  const after = edges.find(({ edge }) => edge.on.startsWith('xstate.after.') && wait.what === `#${edge.on}`)?.edge;
  return after && { ...wait, what: after.label, after };
}

/** A long question is named by its beginning. */
function isNamed(name: string | undefined, question: string | undefined): boolean {
  if (name === undefined || question === undefined) return false;
  return name === question || (name.endsWith('…') && question.startsWith(name.slice(0, -1)));
}

/** Whether what a look names is this delay. */
function isOf(what: string, { event, id }: PendingTimer): boolean {
  return what === event || what === id || what === `#${event}`;
}

/** An event for people: as the chart of its actor has it, or by what XState calls its own. */
export function eventName(model: Model, actor: string, event: string): string {
  if (!event.startsWith('xstate.')) return event;
  if (event === 'xstate.init') return 'its beginning';
  for (const { edge } of model.chartOf(actor)?.edges.values() ?? []) if (edge.on === event) return edge.label;
  return event
    .replace(
      /^xstate\.(done|error)\.(actor|state)\.(.*)$/,
      (_, how, __, what) => `${what} ${how === 'done' ? 'done' : 'failed'}`,
    )
    .replace(/^xstate\.after\.(\w+)\..*$/, 'after $1');
}

/** A record in a line, for chains of causes. */
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
      return row ? `${row.end === record.seq ? 'the answer to' : 'about'} ${row.method}` : 'a message';
    }
    case 'created':
      return `${name(record.actor)} began`;
    case 'mail':
      return `${record.name} to ${name(record.actor)}`;
    case 'state':
      return `${name(record.actor)} is ${record.state}`;
    case 'step': {
      const event = eventName(model, record.actor, record.event);
      return record.handled
        ? `${name(record.actor)} took ${event}, and is ${record.active.join(' & ') || record.status}`
        : `${name(record.actor)} could not take ${event}`;
    }
    case 'timer': {
      const delay = eventName(model, record.actor, record.event);
      return `the delay “${delay}” of ${name(record.actor)} ${record.due === undefined ? 'ended' : 'began'}`;
    }
    case 'emit':
      return `${name(record.actor)} emitted ${record.event}`;
    case 'crashed':
      return `${name(record.actor)} crashed of ${record.mail}: ${record.error}`;
    case 'gone':
      return `${name(record.actor)} ended: ${record.why}`;
    case 'control':
      return `a viewer told it to ${record.action}`;
  }
}
