/** What one message of the wire is: a request, the answer to one, or a notification. */
import type { Plain } from '../frames.ts';
import { isList, isRecord, member, textOfValue } from './plain-values.ts';

/**
 * `isError`: a tool's failure, told as a result that its model can read. `asked`: the answer to a modern client's request is a
 * question. `cancelled`: the client no longer wanted it, or has left.
 */
export type ExchangeStatus = 'open' | 'ok' | 'asked' | 'isError' | 'error' | 'cancelled';

export interface Notice {
  readonly seq: number;
  readonly at: number;
  readonly method: string;
  readonly direction: 'in' | 'out';
  readonly message: Plain;
}

/** One request with its answer and the notifications under it; or a notification that is about no request, or a text that is no message. */
export interface WireExchange {
  /** Unique: the place of its first record, and its number there where that is a batch. */
  readonly key: string;
  readonly seq: number;
  readonly at: number;
  readonly connection: string;
  readonly kind: 'request' | 'notification' | 'unreadable';
  /** `in`: the client asks; `out`: the server asks the client. */
  readonly direction: 'in' | 'out';
  readonly method: string;
  /** What is asked for: a tool's name, a resource's URI, a prompt's name, a question's message. */
  readonly target?: string;
  readonly id?: string;
  /** Of a modern request, which says itself who asks. */
  readonly client?: string;
  /** Undefined for an unreadable text, of which `textOfValue` has what came. */
  readonly message: Plain | undefined;
  readonly text?: string;
  readonly bytes: number;
  /** The exchange that this one is a part of: the call whose handler asks. */
  readonly about?: number;
  readonly notices: Notice[];
  /** The exchanges that are about it. */
  readonly asks: WireExchange[];
  status: ExchangeStatus;
  /** The place and the time of the answer, or of the end without one. */
  end: number | undefined;
  endAt: number | undefined;
  answer: Plain | undefined;
  answerBytes: number | undefined;
  /** The actor that served it: a handle, a task, an executor, or a registry. */
  servedBy: string | undefined;
}

/** One message of a wire record, of which there are several in a batch. */
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

/** How an answer says that it went. */
export function statusOf(answer: Plain): ExchangeStatus {
  if (member(answer, 'error') !== undefined) return 'error';
  const result = member(answer, 'result');
  if (member(result, 'isError') === true) return 'isError';
  return member(result, 'resultType') === 'input_required' ? 'asked' : 'ok';
}

/** What a request is for, in a word or a line. */
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

/** Who asks, where the request says so itself. */
export function clientOf(message: Plain): string | undefined {
  const info = member(message, 'params', '_meta', 'io.modelcontextprotocol/clientInfo');
  const name = textOfValue(member(info, 'title')) ?? textOfValue(member(info, 'name'));
  return name === undefined ? undefined : `${name} ${textOfValue(member(info, 'version')) ?? ''}`.trim();
}

/** The id that a cancellation names. */
export function cancels(message: Plain): string | undefined {
  return idOf(member(message, 'params', 'requestId'));
}

/** The token under which a request's progress is told. */
export function progressToken(message: Plain): string | undefined {
  return idOf(member(message, 'params', '_meta', 'progressToken') ?? member(message, 'params', 'progressToken'));
}

/** How an exchange stood at a place of the stream. */
export function statusAt(exchange: WireExchange, seq: number): ExchangeStatus {
  return exchange.end === undefined || exchange.end > seq ? 'open' : exchange.status;
}
