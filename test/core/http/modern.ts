/** Modern (2026-07-28) requests as a conforming client sends them, and what may be said wrongly about them. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { LATEST_MODERN } from '../../../src/core/protocol/revisions.ts';
import { type Answer, type Asking, ask, type Headers, type Message } from './support.ts';

export interface Modern {
  /** Default: 1. */
  readonly id?: string | number | null;
  readonly params?: Readonly<Record<string, unknown>>;
  /** More members of `_meta`, or others; one that is `undefined` is left out. */
  readonly meta?: Readonly<Record<string, unknown>>;
  /** More headers, or others; one that is `undefined` is left out. */
  readonly headers?: Headers;
  readonly agent?: Asking['agent'];
}

/** The members of `_meta` by which a request is modern. */
export const SELF: JsonObject = {
  [META.protocolVersion]: LATEST_MODERN,
  [META.clientInfo]: { name: 'test', version: '1.0.0' },
  [META.clientCapabilities]: {},
};

/** One request, ready to be sent: its body, and the headers that repeat parts of it. */
export function modern(method: string, { id = 1, params = {}, meta = {}, headers = {}, agent }: Modern = {}): Asking {
  const named = params.name ?? params.uri;
  return {
    headers: {
      'mcp-protocol-version': LATEST_MODERN,
      'mcp-method': method,
      ...(typeof named === 'string' ? { 'mcp-name': encoded(named) } : {}),
      ...headers,
    },
    body: { jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...SELF, ...meta } } },
    ...(agent === undefined ? {} : { agent }),
  };
}

/** Sends one request. */
export function send(url: string, method: string, options: Modern = {}): Promise<Answer> {
  return ask(url, modern(method, options));
}

/** Calls a tool. */
export function call(url: string, name: string, args: object = {}, options: Modern = {}): Promise<Answer> {
  return send(url, 'tools/call', { ...options, params: { name, arguments: args, ...options.params } });
}

/** A value for a header: as it is, or in the Base64 sentinel (2026-07-28 streamable-http "Value Encoding"). */
export function encoded(value: string): string {
  const plain = /^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value);
  return plain ? value : sentinel(value);
}

export function sentinel(value: string | Uint8Array): string {
  return `=?base64?${Buffer.from(value).toString('base64')}?=`;
}

/**
 * Holds a refusal to its form: this status, and one JSON-RPC error with this code. @returns the whole message
 *
 * @param id that it carries; `undefined` for a message that has no such member
 */
export async function refused(
  answer: Answer,
  status: number,
  code: number | undefined,
  id?: string | number,
): Promise<Message> {
  const body = await answer.text();
  assert.is(answer.status, status, body);
  assert.match(answer.headers['content-type'] ?? '', /^application\/json\b/, body);
  const message: Message = JSON.parse(body);
  assert.is(message.jsonrpc, '2.0');
  if (code !== undefined) assert.is(message.error?.code, code, body);
  assert.type(message.error?.message, 'string');
  assert.is('id' in message, id !== undefined, body);
  if (id !== undefined) assert.is(message.id, id);
  return message;
}

/** Holds a result to its form: 200, JSON, this id. @returns the result */
export async function answered(answer: Answer, id: string | number = 1): Promise<Readonly<Record<string, unknown>>> {
  const body = await answer.text();
  assert.is(answer.status, 200, body);
  assert.match(answer.headers['content-type'] ?? '', /^application\/json\b/);
  const message: Message = JSON.parse(body);
  assert.is(message.id, id, body);
  if (!message.result) throw new Error(`expected a result, got ${body}`);
  return message.result;
}
