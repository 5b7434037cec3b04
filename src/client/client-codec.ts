/** The codec of a client: the only place where its messages become text, and the server's texts become messages. */
import { messageEnvelopeOf, parseText } from '../core/codec/inbound/parse.ts';
import { isJsonObject, isObject, type JsonObject, type JsonValue } from '../core/protocol/json.ts';
import { copyNumbers, withoutHalves, writeJson } from '../core/protocol/json-text.ts';
import { type Incoming, isRequestId, type RequestId, readIncoming } from '../core/protocol/jsonrpc.ts';
import { META } from '../core/protocol/meta.ts';
import type { Revision } from '../core/protocol/revisions.ts';
import type { ClientCapabilities, Implementation } from '../core/protocol/types.ts';
import type { OutgoingRequest } from './outgoing-requests.ts';

/** Deepest nesting of a message from a server. Schemas nest deeply, answers rarely. */
const MAX_DEPTH = 256;

/**
 * Names of methods whose params name what they are about: `Mcp-Name` (2026-07-28 streamable-http, "Standard Request Headers"; ext-tasks,
 * "Routing Headers"; of events, as the changelog of @ai-sdk/mcp 2.0.105 names it for the final text of SEP-3415).
 */
export const NAMED: Readonly<Record<string, 'name' | 'uri' | 'taskId'>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'events/poll': 'name',
  'events/stream': 'name',
  'events/subscribe': 'name',
  'events/unsubscribe': 'name',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/**
 * Reads one text, which may be a batch (2025-03-26). Never throws; what is unreadable is `invalid`.
 *
 * @param about the request on whose stream the text arrived: an error without an id is its response (2026-07-28
 *   streamable-http, "Sending Messages": such an error may have no id)
 * @param repaired called for a text that was unreadable only for half of a surrogate pair, which is replaced
 */
export function readMessages(text: string, about?: RequestId, repaired?: () => void): readonly Incoming[] {
  let parsed = parseText(text, { maxDepth: MAX_DEPTH });
  if (!parsed.ok) {
    const whole = withoutHalves(text);
    const again = whole === text ? parsed : parseText(whole, { maxDepth: MAX_DEPTH });
    if (again.ok) {
      parsed = again;
      repaired?.();
    }
  }
  if (!parsed.ok) {
    const incoming = parsed.value === undefined ? undefined : readMessage(parsed.value);
    const id = incoming && 'id' in incoming ? incoming.id : undefined;
    return [{ kind: 'invalid', id, answer: false, why: parsed.error.message }];
  }
  if (Array.isArray(parsed.value)) return parsed.value.map(readMessage);
  const incoming = readMessage(parsed.value);
  const { value } = parsed;
  if (incoming.kind === 'invalid' && about !== undefined && isObject(value) && isObject(value.error))
    return [{ kind: 'response', id: about, error: value.error }];
  return [incoming];
}

/** The message of a JSON-RPC error, whether the error has an id or not; undefined for other texts. */
export function errorMessageIn(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined;
  const parsed = parseText(text, { maxDepth: MAX_DEPTH });
  if (!parsed.ok || !isObject(parsed.value) || !isObject(parsed.value.error)) return undefined;
  const { message } = parsed.value.error;
  return typeof message === 'string' ? message : undefined;
}

/** The id that a response answers, read from its envelope; undefined for other messages. */
export function answeredBy(envelope: string): RequestId | undefined {
  const read = messageEnvelopeOf(envelope);
  if (!isObject(read) || read.method !== undefined) return undefined;
  return isRequestId(read.id) ? ownId(read.id) : undefined;
}

function readMessage(value: unknown): Incoming {
  const incoming = readIncoming(value);
  if (incoming.kind !== 'response' || typeof incoming.id !== 'string') return incoming;
  return { ...incoming, id: ownId(incoming.id) };
}

/**
 * The id or the progress token of a request of this client, as a server sends it back. They are numbers, and some servers write
 * them as text.
 */
export function ownId(id: RequestId): RequestId {
  return typeof id === 'string' && /^(?:0|[1-9]\d{0,14})$/.test(id) ? Number(id) : id;
}

/** Writes the messages of one client. */
export class ClientCodec {
  /** The self-description of modern requests as text, without the client's capabilities. */
  readonly #introduced: string;
  /** The same with the capabilities of the connection, without its closing brace. */
  readonly #described: string;

  constructor(info: Implementation, capabilities: ClientCapabilities, revision: Revision) {
    const introduced = writeJson({ [META.protocolVersion]: revision, [META.clientInfo]: info });
    this.#introduced = `${introduced.slice(0, -1)},"${META.clientCapabilities}":`;
    this.#described = `${this.#introduced}${writeJson(capabilities)}`;
  }

  /**
   * A request. Modern requests describe their client in `_meta`; every request with a deadline or a listener has a
   * progress token, its id.
   */
  request(request: OutgoingRequest, modern: boolean): string {
    const { id, method, params, meta, logLevel, capabilities } = request;
    const level = modern ? logLevel : undefined;
    const token = request.timeoutMs === undefined ? undefined : id;
    // Nearly every call has its token alone, whose text needs no object.
    const members =
      meta === undefined && level === undefined
        ? token === undefined
          ? ''
          : `"${META.progressToken}":${token}`
        : writeJson(
            copyNumbers(meta ?? {}, {
              ...meta,
              ...(token === undefined ? {} : { [META.progressToken]: token }),
              ...(level === undefined ? {} : { [META.logLevel]: level }),
            }),
          ).slice(1, -1);
    const described = capabilities === undefined ? this.#described : `${this.#introduced}${writeJson(capabilities)}`;
    const metaText = modern
      ? `${described}${members === '' ? '' : `,${members}`}}`
      : members === ''
        ? undefined
        : `{${members}}`;
    const head = `{"jsonrpc":"2.0","id":${id},"method":"${method}"`;
    if (metaText === undefined) return params === undefined ? `${head}}` : `${head},"params":${writeJson(params)}}`;
    const given = params === undefined ? '{}' : writeJson(params);
    return given === '{}'
      ? `${head},"params":{"_meta":${metaText}}}`
      : `${head},"params":${given.slice(0, -1)},"_meta":${metaText}}}`;
  }

  notification(method: string, params?: JsonObject): string {
    return writeJson({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) });
  }

  result(id: RequestId, result: JsonObject): string {
    return writeJson({ jsonrpc: '2.0', id, result });
  }

  error(id: RequestId, code: number, message: string, data?: JsonValue): string {
    return writeJson({ jsonrpc: '2.0', id, error: { code, message, data } });
  }
}

/** The error member of a response, read leniently: servers leave out what the specification demands. */
export function readError(error: unknown): {
  readonly code: number;
  readonly message: string;
  readonly data: JsonValue | undefined;
} {
  const { code, message, data } = isObject(error) ? error : { message: error };
  return {
    code: typeof code === 'number' ? code : typeof code === 'string' && /^-?\d{1,9}$/.test(code) ? Number(code) : 0,
    message: typeof message === 'string' && message !== '' ? message : 'the server gave no reason',
    data: isJsonValue(data) ? data : undefined,
  };
}

/** Narrows a part of a parsed message, which is JSON by its origin. */
export function isJsonValue(value: unknown): value is JsonValue {
  return value !== undefined && typeof value !== 'function' && typeof value !== 'symbol' && typeof value !== 'bigint';
}

/** The params of a message as JSON. */
export function jsonParams(params: Readonly<Record<string, unknown>> | undefined): JsonObject {
  return isJsonObject(params) ? params : {};
}
