/** Requests that came before anybody watched: no record tells of them, but the table of their connection knows them. */
import type { Plain } from '../frames.ts';
import type { ActorLine } from './actor-line.ts';
import type { Model } from './model.ts';
import { isList, member, textOfValue } from './plain-values.ts';
import type { WireExchange } from './wire-exchange.ts';

/** A request, as its table has it. */
export interface Unseen {
  /** As exchanges have it: 1 and "1" are two requests. */
  readonly id: string;
  /** Tells requests with equal ids apart: clients without a session share a connection. */
  readonly key: string;
  /** @example 'tools/call greet' */
  readonly name: string;
  readonly method: string | undefined;
  /** The client, as the request names it. */
  readonly client?: string;
  /** When its time is up. */
  readonly until?: number;
}

/** The requests of a table that no record has told of: as many as it says to hold, without those that are known. */
export function unseenOf(model: Model, table: ActorLine, seq: number): readonly Unseen[] {
  const open = [...openIn(model, table, seq)];
  const missing = sizeOf(table, seq) - open.length;
  if (missing <= 0) return [];
  const actors = [...model.actors.values()].filter((line) => line.kind === 'request' && line.aliveAt(seq));
  return heldIn(table, seq).filter((held) => {
    const { id, name } = held;
    const isActor = (line: ActorLine): boolean =>
      line.label === name && [id, undefined].includes(line.look(seq) && idOf(line.look(seq)?.facts.id));
    // Each exchange stands for one request of the table: other clients may use the same id.
    const known = open.findIndex((exchange) => isSame(held, exchange));
    if (known !== -1) open.splice(known, 1);
    return known === -1 && !actors.some(isActor);
  });
}

/** The requests of a table, as it was looked at last. */
export function heldIn(table: ActorLine, seq: number): readonly Unseen[] {
  const told = table.look(seq)?.facts['in flight'];
  if (!isList(told)) return [];
  return told.map((request) => {
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

/** Whether an exchange on the wire may be a request of the table. */
export function isSame({ id, method, client }: Unseen, exchange: WireExchange): boolean {
  const sameClient = client === undefined || exchange.client === undefined || client === exchange.client;
  return id === exchange.id && (method === undefined || method === exchange.method) && sameClient;
}

/** The address of the table that holds the requests of a connection. */
export function tableOf(connection: string): string {
  return `requests/${connection}`;
}

/** Whether a table holds more than is known of: then it is worth a look. */
export function holdsUnseen(model: Model, table: ActorLine, seq: number): boolean {
  const size = sizeOf(table, seq);
  return size > 0 && size > openIn(model, table, seq).length;
}

function openIn(model: Model, { connection }: ActorLine, seq: number) {
  return model.exchanges
    .open(seq)
    .filter((exchange) => exchange.direction === 'in' && exchange.connection === connection);
}

/** What a table of requests says of itself: `admitting (2)`. */
export function sizeOf(table: ActorLine, seq: number): number {
  return Number(/\((\d+)\)$/.exec(table.standing(seq)?.state ?? '')?.[1] ?? 0);
}

function idOf(id: Plain | undefined): string {
  return typeof id === 'string' ? `"${id}"` : String(id);
}
