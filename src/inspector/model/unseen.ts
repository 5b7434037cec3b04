/** Requests that arrived before the observation. They have no record, but the table of their connection lists them. */
import type { Plain } from '../frames.ts';
import type { ActorLine } from './actor-line.ts';
import type { Model } from './model.ts';
import { isList, member, textOfValue } from './plain-values.ts';
import type { WireExchange } from './wire-exchange.ts';

/** A request as its table lists it. */
export interface Unseen {
  /** In the form of exchanges: 1 and "1" are two requests. */
  readonly id: string;
  /** Distinguishes requests with equal ids: clients without a session share a connection. */
  readonly key: string;
  /** @example 'tools/call greet' */
  readonly name: string;
  readonly method: string | undefined;
  /** The client that the request names. */
  readonly client?: string;
  /** Its deadline. */
  readonly until?: number;
}

/** The requests of a table without a record: as many as its count says, without the known ones. */
export function unseenOf(model: Model, table: ActorLine, seq: number): readonly Unseen[] {
  const open = [...openIn(model, table, seq)];
  const missing = sizeOf(table, seq) - open.length;
  if (missing <= 0) return [];
  const actors = [...model.actors.values()].filter((line) => line.kind === 'request' && line.aliveAt(seq));
  return heldIn(table, seq).filter((held) => {
    const { id, name } = held;
    const isActor = (line: ActorLine): boolean =>
      line.label === name && [id, undefined].includes(line.view(seq) && idOf(line.view(seq)?.facts.id));
    // Each exchange matches one request of the table: other clients may use the same id.
    const known = open.findIndex((exchange) => isSame(held, exchange));
    if (known !== -1) open.splice(known, 1);
    return known === -1 && !actors.some(isActor);
  });
}

/** The requests of a table in its last view. */
export function heldIn(table: ActorLine, seq: number): readonly Unseen[] {
  const requests = table.view(seq)?.facts['in flight'];
  if (!isList(requests)) return [];
  return requests.map((request) => {
    const words = [member(request, 'operation', 'method'), member(request, 'operation', 'name')].map(textOfValue);
    const until = member(request, 'deadline');
    const id = idOf(member(request, 'id'));
    const client = textOfValue(member(request, 'client'));
    return {
      id,
      key: textOfValue(member(request, 'exchange')) ?? id,
      method: words[0],
      ...(client === undefined ? {} : { client }),
      name: words.filter((word) => word !== undefined).join(' '),
      ...(typeof until === 'number' ? { until } : {}),
    };
  });
}

/** True if an exchange on the wire may be a request of the table. */
export function isSame({ id, method, client }: Unseen, exchange: WireExchange): boolean {
  const sameClient = client === undefined || exchange.client === undefined || client === exchange.client;
  return id === exchange.id && (method === undefined || method === exchange.method) && sameClient;
}

/** The address of the table that holds the requests of a connection. */
export function tableOf(connection: string): string {
  return `requests/${connection}`;
}

/** True if a table holds more requests than are known. Its view is needed then. */
export function holdsUnseen(model: Model, table: ActorLine, seq: number): boolean {
  const size = sizeOf(table, seq);
  return size > 0 && size > openIn(model, table, seq).length;
}

function openIn(model: Model, { connection }: ActorLine, seq: number) {
  return model.exchanges
    .open(seq)
    .filter((exchange) => exchange.direction === 'in' && exchange.connection === connection);
}

/** The count in the state of a table of requests, such as `admitting (2)`. */
export function sizeOf(table: ActorLine, seq: number): number {
  return Number(/\((\d+)\)$/.exec(table.standing(seq)?.state ?? '')?.[1] ?? 0);
}

function idOf(id: Plain | undefined): string {
  return typeof id === 'string' ? `"${id}"` : String(id);
}
