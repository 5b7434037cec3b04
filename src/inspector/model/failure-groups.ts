/** The list of failures, grouped: failed requests, crashes, unhandled events and dropped messages; the newest first. */
import type { ActorKind, TraceRecord } from '../frames.ts';
import type { Model } from './model.ts';
import { isList, member, textOfValue } from './plain-values.ts';
import { displayName } from './tree.ts';
import { eventName } from './waiting-for.ts';
import { hopName, type WireExchange } from './wire-exchange.ts';

/** Failures with equal names and equal errors. */
export interface FailureGroup {
  readonly key: string;
  readonly kind: 'error' | 'isError' | 'crashed' | 'unhandled' | 'dropped';
  /** The failed tool, request or actor. */
  readonly what: string;
  readonly error: string;
  readonly count: number;
  /** On the server's clock. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** The newest failure. */
  readonly newest: {
    readonly seq: number;
    readonly exchange?: WireExchange;
    readonly actor?: string;
    readonly actorKind?: ActorKind;
  };
}

interface Failure {
  readonly kind: FailureGroup['kind'];
  readonly what: string;
  readonly error: string;
  readonly at: number;
  readonly newest: FailureGroup['newest'];
}

/** Longest part of an error that tells two groups apart. */
const MAX_ERROR = 400;
/** The first frame of a stack. The lines before it are the error. */
const FRAMES = /\n\s+(?:at |…)/;
/** An incident has an id of its own each time (`src/core/protocol/errors.ts`). */
const INCIDENT = /\(incident [^;)]+/g;

/** The failures up to a record. */
export function failuresOf(model: Model, seq: number): readonly FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  const add = ({ kind, what, error, at, newest }: Failure): void => {
    const key = `${kind} ${what} ${error.replace(INCIDENT, '(incident')}`;
    const same = groups.get(key);
    const later = same === undefined || newest.seq >= same.newest.seq;
    groups.set(key, {
      key,
      kind,
      what,
      error: later ? error : same.error,
      count: (same?.count ?? 0) + 1,
      firstAt: Math.min(at, same?.firstAt ?? at),
      lastAt: Math.max(at, same?.lastAt ?? at),
      newest: later ? newest : same.newest,
    });
  };
  for (const exchange of model.exchanges.failed) {
    const { end = 0, endAt = exchange.at } = exchange;
    // The call that the server relayed has failed, too.
    if (end > seq || (exchange.origin && exchange.origin.status !== 'ok')) continue;
    add({
      kind: exchange.status === 'isError' ? 'isError' : 'error',
      what: exchange.target === undefined ? exchange.method : `${exchange.method} ${exchange.target}`,
      error: errorOf(exchange),
      at: endAt,
      newest: { seq: end, exchange },
    });
  }
  for (const record of model.troubles) if (record.seq <= seq) add(troubleOf(model, record));
  return [...groups.values()].sort((a, b) => b.newest.seq - a.newest.seq);
}

/** The error that the handler threw, the text of an error response, or of a result that reports an error. */
export function errorOf({ answer, text, kind, failures, hop }: WireExchange): string {
  const thrown = failures.at(-1)?.error.split(FRAMES)[0];
  if (thrown !== undefined) return thrown.replace(/^(Tool)?Error: /, '').slice(0, MAX_ERROR);
  if (kind === 'unreadable') return `not a message: ${text ?? ''}`.slice(0, MAX_ERROR);
  const message = textOfValue(member(answer, 'error', 'message'));
  if (message !== undefined) return message.slice(0, MAX_ERROR);
  if (hop?.end !== undefined && answer === undefined) return `${hop.end} at ${hopName(hop)}`;
  const content = member(answer, 'result', 'content');
  const texts = (isList(content) ? content : []).flatMap((part) => textOfValue(member(part, 'text')) ?? []);
  return texts.join('\n').slice(0, MAX_ERROR) || 'no text';
}

function troubleOf(model: Model, record: TraceRecord): Failure {
  const { seq, at } = record;
  const line = 'actor' in record ? model.actor(record.actor) : undefined;
  const what = line ? nameOf(line.kind, displayName(line)) : 'the server';
  const newest = { seq, ...(line ? { actor: line.address, actorKind: line.kind } : {}) };
  switch (record.type) {
    case 'crashed':
      return { kind: 'crashed', what, error: record.error, at, newest };
    case 'step': {
      const state = line?.standings.before(seq - 1)?.state;
      const where = state === undefined ? '' : ` in ${state}`;
      return {
        kind: 'unhandled',
        what,
        error: `did not handle ${eventName(model, record.actor, record.event)}${where}`,
        at,
        newest,
      };
    }
    default:
      return {
        kind: 'dropped',
        what,
        error: `received ${'name' in record ? record.name : 'a message'} after its end`,
        at,
        newest,
      };
  }
}

/** @example 'handle order 9f2a1c' becomes 'order 9f2a1c' */
function nameOf(kind: ActorKind, name: string): string {
  return kind === 'handle' || name.startsWith(kind) ? name : `${kind} ${name}`;
}
