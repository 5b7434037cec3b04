/** Wire messages: a request, its response, or a notification. */
import type { Failed, Hopped, Plain, RecordHeader } from '../frames.ts';
import { isList, isRecord, member, textOfValue } from './plain-values.ts';

/**
 * `isError`: a tool failed, with a result that its model can read. `asked`: the response to a modern client contains
 * input requests, or the call waits for an approval. `cancelled`: the client cancelled the request or disconnected.
 */
export type ExchangeStatus = 'open' | 'ok' | 'asked' | 'isError' | 'error' | 'cancelled';

export interface Notice {
  readonly seq: number;
  readonly at: number;
  readonly method: string;
  readonly direction: 'in' | 'out';
  readonly message: Plain;
}

/** An error that a handler threw. */
export type HandlerFailure = Pick<Failed, 'element' | 'error' | 'incident'> & { readonly seq: number };

/**
 * One request with its response and its notifications; or a notification without a request; or a text that is no
 * message.
 */
export interface WireExchange {
  /** Unique: the sequence number of its first record, with an index in a batch. */
  readonly key: string;
  readonly seq: number;
  readonly at: number;
  readonly connection: string;
  readonly kind: 'request' | 'notification' | 'unreadable';
  /** `in`: from the client; `out`: from the server. */
  readonly direction: 'in' | 'out';
  readonly method: string;
  /** The object of the request: a tool's name, a resource's URI, a prompt's name, the message of an input request. */
  readonly target?: string;
  readonly id?: string;
  /** The client, which a modern request names. */
  readonly client?: string;
  /** Undefined for an unreadable text; `text` has it. */
  readonly message: Plain | undefined;
  readonly text?: string;
  readonly bytes: number;
  /** The exchange to which this one belongs: the call whose handler asks. */
  readonly about?: number;
  readonly notices: Notice[];
  /** The exchanges that belong to it. */
  readonly asks: WireExchange[];
  status: ExchangeStatus;
  /** The sequence number and the time of its response, or of its end without one. */
  end: number | undefined;
  endAt: number | undefined;
  answer: Plain | undefined;
  answerBytes: number | undefined;
  /** The errors that its handler threw. */
  readonly failures: HandlerFailure[];
  /** The actor that served it: a handle, a task, an executor, or a registry. */
  servedBy: string | undefined;
  /** At a gateway: the exchange on the other side, which caused this one. */
  origin?: WireExchange;
  /** At a gateway: the exchanges on the other side that this one has caused. */
  relayed?: WireExchange[];
  /** The other node, if its request crosses nodes. */
  hop?: RecordHeader & Hopped;
}

/** @example 'node n2, exchange 17' */
export function hopName({ node, number }: Hopped): string {
  return `node ${node}, exchange ${number}`;
}

/** One message of a wire record; a batch has several. */
export type Message =
  | { readonly kind: 'request'; readonly id: string; readonly method: string; readonly message: Plain }
  | { readonly kind: 'answer'; readonly id: string; readonly message: Plain }
  | { readonly kind: 'notification'; readonly method: string; readonly message: Plain }
  | { readonly kind: 'unreadable'; readonly message: Plain };

/** The messages of a wire record, in their order. */
export function wireMessages(message: Plain): readonly Message[] {
  return isList(message) ? message.map(messageOf) : [messageOf(message)];
}

function messageOf(message: Plain): Message {
  const method = textOfValue(member(message, 'method'));
  const id = idOf(member(message, 'id'));
  if (method !== undefined)
    return id === undefined ? { kind: 'notification', method, message } : { kind: 'request', id, method, message };
  if (isRecord(message) && ('result' in message || 'error' in message))
    return { kind: 'answer', id: id ?? 'null', message };
  return { kind: 'unreadable', message };
}

/** `1` and `"1"` are two requests. */
function idOf(id: Plain | undefined): string | undefined {
  return typeof id === 'string' ? `"${id}"` : typeof id === 'number' ? String(id) : undefined;
}

/** The status that a response reports. */
export function statusOf(answer: Plain): ExchangeStatus {
  if (member(answer, 'error') !== undefined) return 'error';
  const result = member(answer, 'result');
  if (member(result, 'isError') === true)
    return member(result, '_meta', 'io.troupe/approval', 'waits') === undefined ? 'isError' : 'asked';
  return member(result, 'resultType') === 'input_required' ? 'asked' : 'ok';
}

/** The object of a request, in a word or a line. */
export function targetOf(message: Plain): string | undefined {
  const params = member(message, 'params');
  const named = ['name', 'uri', 'message', 'taskId', 'level'].map((name) => textOfValue(member(params, name)));
  return (
    named.find((name) => name !== undefined) ??
    textOfValue(member(params, 'ref', 'name')) ??
    textOfValue(member(params, 'ref', 'uri')) ??
    textOfValue(member(params, 'clientInfo', 'name'))
  );
}

/** The client, if the request names it. */
export function clientOf(message: Plain): string | undefined {
  const info = member(message, 'params', '_meta', 'io.modelcontextprotocol/clientInfo');
  const name = textOfValue(member(info, 'title')) ?? textOfValue(member(info, 'name'));
  return name === undefined ? undefined : `${name} ${textOfValue(member(info, 'version')) ?? ''}`.trim();
}

/** The id that a cancellation names. */
export function cancels(message: Plain): string | undefined {
  return idOf(member(message, 'params', 'requestId'));
}

/** The token of a request's progress notifications. */
export function progressToken(message: Plain): string | undefined {
  return idOf(member(message, 'params', '_meta', 'progressToken') ?? member(message, 'params', 'progressToken'));
}

/** The status of an exchange at a record. */
export function statusAt(exchange: WireExchange, seq: number): ExchangeStatus {
  return exchange.end === undefined || exchange.end > seq ? 'open' : exchange.status;
}
