/** The calls of clients in a line each: what was passed, and what came back. */
import type { Plain } from '../frames.ts';
import { jsonTextOf } from '../inspector-json.ts';
import type { Model } from './model.ts';
import { isList, isRecord, member, textOfValue } from './plain-values.ts';
import { statusAt, type WireExchange } from './wire-exchange.ts';

/** Longest line, in characters. */
const MOST = 160;
/** The methods that a reader looks for: the others prepare them. */
const CALLS: ReadonlySet<string> = new Set(['tools/call', 'resources/read', 'prompts/get']);

/** The last calls of clients before a record, the newest first. @param most their number */
export function lastCalls(model: Model, seq: number, most: number): readonly WireExchange[] {
  // A client that is inspected sends them itself.
  const direction = model.hello?.remote === true ? 'out' : 'in';
  const found: WireExchange[] = [];
  const all = model.exchanges.all.until(seq);
  for (let index = all.length - 1; index >= 0 && found.length < most; index -= 1) {
    const exchange = all[index];
    if (exchange && exchange.direction === direction && CALLS.has(exchange.method)) found.push(exchange);
  }
  return found;
}

/** The arguments of a call, such as `sku: tea, quantity: 2`; undefined for a request without arguments. */
export function argumentLine({ message }: WireExchange): string | undefined {
  const given = member(message, 'params', 'arguments');
  if (!isRecord(given)) return undefined;
  const line = Object.entries(given).map(([name, value]) => `${name}: ${lineOfValue(value)}`);
  return line.length === 0 ? undefined : cut(line.join(', '));
}

/** The arguments of a call of a script: mostly one object. */
export function givenLine(args: Plain): string {
  const list = isList(args) ? args : [args];
  return cut(list.map(lineOfValue).join(', '));
}

/** The result of a call: its first text, its structured content, or its error; undefined while it is open. */
export function resultLine(exchange: WireExchange, seq: number): string | undefined {
  if (statusAt(exchange, seq) === 'open') return undefined;
  const { answer } = exchange;
  const error = textOfValue(member(answer, 'error', 'message'));
  if (error !== undefined) return cut(error);
  const result = member(answer, 'result');
  for (const list of ['content', 'contents', 'messages']) {
    const blocks = member(result, list);
    const [first] = isList(blocks) ? blocks : [];
    const text = textOfValue(member(first, 'text')) ?? textOfValue(member(first, 'content', 'text'));
    if (text !== undefined) return cut(text);
  }
  const structured = member(result, 'structuredContent');
  return structured === undefined ? undefined : cut(lineOfValue(structured));
}

function lineOfValue(value: Plain): string {
  return typeof value === 'string' ? value : jsonTextOf(value);
}

/** A value of a script in one line. */
export function valueLine(value: Plain): string {
  return cut(textOfValue(member(value, 'message')) ?? lineOfValue(value));
}

function cut(text: string): string {
  const line = text
    .slice(0, 2 * MOST)
    .replace(/\s+/g, ' ')
    .trim();
  return line.length > MOST ? `${line.slice(0, MOST)}…` : line;
}
