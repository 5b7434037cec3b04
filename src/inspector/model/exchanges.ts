/** Pairs the messages of the wire: a request with its response and its notifications. */
import type { ActorKind, Hopped, Plain, RecordHeader, Wired } from '../frames.ts';
import { LIVE, OrderedLog } from './ordered-log.ts';
import { PROGRESS } from './progress.ts';
import {
  cancels,
  clientOf,
  type HandlerFailure,
  type Message,
  progressToken,
  statusOf,
  targetOf,
  type WireExchange,
  wireMessages,
} from './wire-exchange.ts';

type WireRecord = RecordHeader & Wired;

/** The kinds of actors that serve an exchange, the most specific first. */
const SERVERS: readonly ActorKind[] = ['handle', 'machine', 'task', 'executor', 'registry'];

/** The status of a request that ended without a response from its owner. */
const HOP_STATUS: Partial<Record<NonNullable<Hopped['end']>, WireExchange['status']>> = {
  answered: 'ok',
  left: 'cancelled',
};

/** Requests of a connection for itself, which a call may have led to. */
const OF_CONNECTION: ReadonlySet<string> = new Set(['initialize', 'server/discover', 'logging/setLevel', 'ping']);

/** Maximum number of stored names of the clients on one connection. */
const MOST_CLIENTS = 8;
const NO_CLIENTS: ReadonlySet<string> = new Set();

export class Exchanges {
  readonly all = new OrderedLog<WireExchange>();
  /** Ended with an error, in the order of their ends. */
  failed: WireExchange[] = [];
  /** By the sequence number of the request's record. A batch has several exchanges. */
  readonly #bySeq = new Map<number, WireExchange[]>();
  /** Open requests by connection, direction and id. Clients that share a connection may use equal ids. */
  readonly #open = new Map<string, WireExchange[]>();
  readonly #byToken = new Map<string, WireExchange>();
  readonly #clients = new Map<string, Set<string>>();
  /** The rank in {@link SERVERS} of the actor that serves each exchange. */
  readonly #ranks = new WeakMap<WireExchange, number>();

  wire(record: WireRecord): void {
    if (record.message === undefined) {
      this.#add({
        ...base(record, 0),
        kind: 'unreadable',
        method: 'not JSON',
        message: undefined,
        text: record.text ?? '',
        status: 'error',
        end: record.seq,
        endAt: record.at,
      });
      return;
    }
    for (const [index, message] of wireMessages(record.message).entries()) this.#message(record, message, index);
  }

  /** The exchanges whose request is in a record. */
  at(seq: number): readonly WireExchange[] {
    return this.#bySeq.get(seq) ?? [];
  }

  find(key: string): WireExchange | undefined {
    return this.at(Number.parseInt(key, 10)).find((exchange) => exchange.key === key);
  }

  /** The exchange to which a wire record belongs, as its request, its response, or a notification. */
  of(record: WireRecord): WireExchange | undefined {
    return this.at(record.seq)[0] ?? this.at(record.about ?? 0)[0] ?? this.#answered(record);
  }

  /** An actor has processed a message that an exchange caused. */
  served(seq: number, actor: string, kind: ActorKind): void {
    const rank = SERVERS.indexOf(kind);
    if (rank < 0) return;
    for (const exchange of this.at(seq)) {
      const before = this.#ranks.get(exchange) ?? SERVERS.length;
      if (rank >= before) continue;
      this.#ranks.set(exchange, rank);
      exchange.servedBy = actor;
    }
  }

  /** The handler of an exchange threw an error. @param seq the record of the request */
  handlerFailed(seq: number, failure: HandlerFailure): void {
    for (const exchange of this.at(seq)) exchange.failures.push(failure);
  }

  /** A request was sent because of one on another connection. @param cause the record of that request */
  relayed(seq: number, cause: number): void {
    const [origin] = this.at(cause);
    if (!origin) return;
    for (const exchange of this.at(seq)) {
      if (exchange.kind !== 'request' || OF_CONNECTION.has(exchange.method)) continue;
      exchange.origin = origin;
      origin.relayed ??= [];
      origin.relayed.push(exchange);
    }
  }

  /** A request crosses nodes. One that ends without a response has none. @param seq the record of the request */
  hop(seq: number, record: RecordHeader & Hopped): void {
    for (const exchange of this.at(seq)) {
      exchange.hop = record;
      if (record.end === undefined || exchange.end !== undefined) continue;
      this.#close(exchange);
      end(exchange, HOP_STATUS[record.end] ?? 'error', record.seq, record.at);
      if (exchange.status === 'error') this.failed.push(exchange);
    }
  }

  /** A connection has ended: its open requests get no response. */
  closed(connection: string, seq: number, at: number): void {
    this.#clients.delete(connection);
    for (const [key, exchanges] of this.#open) {
      if (exchanges[0]?.connection !== connection) continue;
      this.#open.delete(key);
      for (const exchange of exchanges) end(exchange, 'cancelled', seq, at);
    }
  }

  /** The clients that requests on a connection named, at most {@link MOST_CLIENTS}. */
  clientsOn(connection: string): ReadonlySet<string> {
    return this.#clients.get(connection) ?? NO_CLIENTS;
  }

  /** The requests that are open at a record. */
  open(seq: number): readonly WireExchange[] {
    if (seq === LIVE) return [...this.#open.values()].flat();
    return this.all.until(seq).filter(({ kind, end }) => kind === 'request' && (end === undefined || end > seq));
  }

  /** Discards exchanges that ended before a record, and requests that are open but older than the stored records. */
  forget(seq: number): void {
    for (const exchange of this.all.until(seq - 1)) {
      this.#bySeq.delete(exchange.seq);
      this.#close(exchange);
    }
    for (const [token, exchange] of this.#byToken) if (exchange.seq < seq) this.#byToken.delete(token);
    this.all.forget(seq);
    this.failed = this.failed.filter((exchange) => exchange.seq >= seq);
  }

  clear(): void {
    this.all.clear();
    this.failed = [];
    this.#bySeq.clear();
    this.#open.clear();
    this.#byToken.clear();
    this.#clients.clear();
  }

  #message(record: WireRecord, message: Message, index: number): void {
    switch (message.kind) {
      case 'request':
        return this.#request(record, message, index);
      case 'answer':
        return this.#answer(record, message);
      case 'notification':
        return this.#notification(record, message.method, message.message, index);
      case 'unreadable':
        this.#add({
          ...base(record, index),
          kind: 'unreadable',
          method: 'not a message',
          message: message.message,
          status: 'error',
          end: record.seq,
          endAt: record.at,
        });
    }
  }

  #request(record: WireRecord, { id, method, message }: Extract<Message, { kind: 'request' }>, index: number): void {
    const target = targetOf(message);
    // The requests of a server name no client.
    const client = record.direction === 'in' ? clientOf(message) : undefined;
    const exchange: WireExchange = {
      ...base(record, index),
      kind: 'request',
      method,
      id,
      message,
      status: 'open',
      ...(target === undefined ? {} : { target }),
      ...(client === undefined ? {} : { client }),
    };
    this.#add(exchange);
    if (client !== undefined) this.#named(record.connection, client);
    const key = openKey(record.connection, record.direction, id);
    const same = this.#open.get(key);
    if (same) same.push(exchange);
    else this.#open.set(key, [exchange]);
    const token = progressToken(message);
    if (token !== undefined) this.#byToken.set(`${record.connection} ${record.direction} ${token}`, exchange);
    if (record.about !== undefined && record.about !== record.seq) this.at(record.about)[0]?.asks.push(exchange);
  }

  #named(connection: string, client: string): void {
    const clients = this.#clients.get(connection);
    if (!clients) this.#clients.set(connection, new Set([client]));
    else if (clients.size < MOST_CLIENTS) clients.add(client);
  }

  #answer(record: WireRecord, { id, message }: Extract<Message, { kind: 'answer' }>): void {
    // The server records the request of each response: ids of different clients may be equal on a shared connection.
    const exchange =
      this.at(record.about ?? 0).find((other) => other.id === id && other.direction !== record.direction) ??
      this.#open.get(openKey(record.connection, record.direction === 'in' ? 'out' : 'in', id))?.at(-1);
    if (!exchange) {
      // The request is unknown: it was sent before the observation, or does not exist.
      this.#add({
        ...base(record, 0),
        kind: 'notification',
        method: 'response to an unknown request',
        message,
        status: statusOf(message),
        end: record.seq,
        endAt: record.at,
      });
      return;
    }
    this.#close(exchange);
    exchange.answer = message;
    exchange.answerBytes = record.bytes;
    // The response to a cancelled request: the client ignores it.
    if (exchange.end !== undefined) return;
    end(exchange, statusOf(message), record.seq, record.at);
    if (exchange.status === 'error' || exchange.status === 'isError') this.failed.push(exchange);
  }

  #notification(record: WireRecord, method: string, message: Plain, index: number): void {
    const exchange = this.#owner(record, method, message);
    if (exchange) {
      exchange.notices.push({ seq: record.seq, at: record.at, method, direction: record.direction, message });
      if (method === 'notifications/cancelled' && exchange.end === undefined) {
        this.#close(exchange);
        end(exchange, 'cancelled', record.seq, record.at);
      }
      return;
    }
    const target = targetOf(message);
    const alone: WireExchange = {
      ...base(record, index),
      kind: 'notification',
      method,
      message,
      status: 'ok',
      end: record.seq,
      endAt: record.at,
      ...(target === undefined ? {} : { target }),
    };
    this.#add(alone);
    // The progress of a request from before the observation: the next notifications belong to the first one.
    const token = method === PROGRESS ? progressToken(message) : undefined;
    if (token !== undefined) this.#byToken.set(`${record.connection} ${askerOf(record)} ${token}`, alone);
  }

  /** The exchange to which a notification belongs. */
  #owner(record: WireRecord, method: string, message: Plain): WireExchange | undefined {
    if (method === 'notifications/cancelled') {
      const id = cancels(message);
      const open =
        id === undefined ? undefined : this.#open.get(openKey(record.connection, record.direction, id))?.at(-1);
      if (open) return open;
    }
    const about = this.at(record.about ?? 0)[0];
    if (about) return about;
    if (method !== PROGRESS) return undefined;
    return this.#byToken.get(`${record.connection} ${askerOf(record)} ${progressToken(message) ?? ''}`);
  }

  /** The exchange that a record ended, by the sequence number of its end. */
  #answered(record: WireRecord): WireExchange | undefined {
    for (let index = this.all.count(record.seq) - 1; index >= 0; index -= 1) {
      const exchange = this.all.at(index);
      if (exchange?.end === record.seq || exchange?.notices.some(({ seq }) => seq === record.seq)) return exchange;
    }
    return undefined;
  }

  #add(exchange: WireExchange): void {
    this.all.add(exchange);
    if (exchange.kind === 'unreadable') this.failed.push(exchange);
    const same = this.#bySeq.get(exchange.seq);
    if (same) same.push(exchange);
    else this.#bySeq.set(exchange.seq, [exchange]);
  }

  #close(exchange: WireExchange): void {
    if (exchange.id === undefined) return;
    const key = openKey(exchange.connection, exchange.direction, exchange.id);
    const left = this.#open.get(key)?.filter((other) => other !== exchange) ?? [];
    if (left.length === 0) this.#open.delete(key);
    else this.#open.set(key, left);
    const token = exchange.message === undefined ? undefined : progressToken(exchange.message);
    if (token !== undefined) this.#byToken.delete(`${exchange.connection} ${exchange.direction} ${token}`);
  }
}

function base(record: WireRecord, index: number) {
  const { seq, at, connection, direction, bytes, about } = record;
  return {
    key: index === 0 ? `${seq}` : `${seq}.${index}`,
    seq,
    at,
    connection,
    direction,
    bytes,
    notices: [],
    asks: [],
    failures: [],
    end: undefined,
    endAt: undefined,
    answer: undefined,
    answerBytes: undefined,
    servedBy: undefined,
    ...(about === undefined || about === 0 || about === seq ? {} : { about }),
  };
}

/** The side that requested what a notification reports. */
function askerOf({ direction }: WireRecord): 'in' | 'out' {
  return direction === 'in' ? 'out' : 'in';
}

function openKey(connection: string, direction: 'in' | 'out', id: string): string {
  return `${connection} ${direction} ${id}`;
}

function end(exchange: WireExchange, status: WireExchange['status'], seq: number, at: number): void {
  exchange.status = status;
  exchange.end = seq;
  exchange.endAt = at;
}
