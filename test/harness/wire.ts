/** Checks what the tests see on the wire: every message from the server fits the official schema of its revision, and answers what was asked. */
import { isObject } from '../../src/core/protocol/json.ts';
import { isRequestId, type RequestId } from '../../src/core/protocol/jsonrpc.ts';
import { META } from '../../src/core/protocol/meta.ts';
import {
  isLegacyRevision,
  isModernRevision,
  LATEST_MODERN,
  LEGACY_REVISIONS,
  type Revision,
} from '../../src/core/protocol/revisions.ts';
import { type ModernWireType, packageFaults } from './wire-packages.ts';
import { officialSchema } from './wire-schemas.ts';
import { skillResultFaults } from './wire-skills.ts';
import { taskNoteFaults, taskResultFaults } from './wire-tasks.ts';

/** As the server sees it: `in` comes from the client, `out` from the server. */
export type Direction = 'in' | 'out';

export interface WireMessage {
  readonly revision: Revision;
  readonly direction: Direction;
  readonly text: string;
  /** Of the request that a result answers. Without it a result is checked as a result of no known kind. */
  readonly method?: string;
}

const [FIRST] = LEGACY_REVISIONS;

/** For each method, the type of its request and of its result. */
const TYPES: Readonly<Record<string, readonly [request: string, result: ModernWireType]>> = {
  initialize: ['InitializeRequest', 'InitializeResult'],
  ping: ['PingRequest', 'EmptyResult'],
  'server/discover': ['DiscoverRequest', 'DiscoverResult'],
  'tools/list': ['ListToolsRequest', 'ListToolsResult'],
  'tools/call': ['CallToolRequest', 'CallToolResult'],
  'resources/list': ['ListResourcesRequest', 'ListResourcesResult'],
  'resources/templates/list': ['ListResourceTemplatesRequest', 'ListResourceTemplatesResult'],
  'resources/read': ['ReadResourceRequest', 'ReadResourceResult'],
  'resources/subscribe': ['SubscribeRequest', 'EmptyResult'],
  'resources/unsubscribe': ['UnsubscribeRequest', 'EmptyResult'],
  'prompts/list': ['ListPromptsRequest', 'ListPromptsResult'],
  'prompts/get': ['GetPromptRequest', 'GetPromptResult'],
  'completion/complete': ['CompleteRequest', 'CompleteResult'],
  'logging/setLevel': ['SetLevelRequest', 'EmptyResult'],
  'subscriptions/listen': ['SubscriptionsListenRequest', 'SubscriptionsListenResult'],
};

/** Errors whose whole response has a type of its own (2026-07-28 schema). */
const ERRORS: Readonly<Record<string, string>> = {
  '-32020': 'HeaderMismatchError',
  '-32021': 'MissingRequiredClientCapabilityError',
  '-32022': 'UnsupportedProtocolVersionError',
};

/**
 * Checks one message (or batch) by itself. A message of the client is only checked to be JSON-RPC: tests send broken ones on purpose.
 *
 * @throws {Error} that lists every fault
 */
export function checkWire({ revision, direction, text, method }: WireMessage): void {
  const value: unknown = JSON.parse(text);
  const faults =
    direction === 'in'
      ? typed('JSONRPCMessage', value, revision)
      : Array.isArray(value)
        ? [...batched(value, revision), ...value.flatMap((each) => outFaults(each, revision, method))]
        : outFaults(value, revision, method);
  complain(faults, text);
}

/** One request that waits for its answer. */
interface Asked {
  readonly method: string;
  readonly revision: Revision;
  readonly message: unknown;
  readonly progressToken: unknown;
  /** It is a subscription, and was acknowledged. */
  acknowledged: boolean;
  /** Its answer may be on its way still, or never come. */
  cancelled: boolean;
}

/**
 * Checks a whole conversation, message by message, in order: it follows which revision each message belongs to, which method a
 * result answers, that an answer was asked for, and that progress belongs to a request that is not answered. A request that
 * got a result must itself have fitted the schema.
 *
 * @param revision of the session until `initialize` says otherwise
 * @throws {Error} from the returned function, for a message with faults; it lists them
 * @example
 * const check = wireChecker('2025-06-18');
 * check('in', line);
 */
export function wireChecker(revision: Revision): (direction: Direction, text: string) => void {
  let session = revision;
  let opened = false;
  /** Of the last request whose revision is certain: errors for what cannot be read are written in it. */
  let heard: Revision | undefined;
  const asked = new Map<RequestId, Asked[]>();

  const incoming = (message: unknown): void => {
    if (!isObject(message) || 'result' in message || 'error' in message) return;
    const params = isObject(message.params) ? message.params : {};
    if (message.method === 'notifications/cancelled' && isRequestId(params.requestId))
      for (const request of asked.get(params.requestId) ?? []) request.cancelled = true;
    if (!isRequestId(message.id)) return;
    const meta = isObject(params._meta) ? params._meta : {};
    const modern = meta[META.protocolVersion] !== undefined;
    const spoken = modern ? LATEST_MODERN : session;
    if (modern || opened) heard = spoken;
    const request = {
      method: String(message.method),
      revision: spoken,
      message,
      progressToken: meta[META.progressToken],
      acknowledged: false,
      cancelled: false,
    };
    asked.set(message.id, [...(asked.get(message.id) ?? []), request]);
  };

  /** Takes the request that this answers. An id that is in use is refused at once, so an error answers the newest of its requests. */
  const answered = (id: RequestId, error: boolean): Asked | undefined => {
    const all = asked.get(id) ?? [];
    const waiting = all.filter(({ cancelled }) => !cancelled);
    const one = (error ? waiting.at(-1) : waiting[0]) ?? all[0];
    const left = all.filter((request) => request !== one);
    if (left.length === 0) asked.delete(id);
    else asked.set(id, left);
    return one;
  };

  const outgoing = (message: unknown): readonly string[] => {
    if (!isObject(message)) return ['expected an object'];
    if (typeof message.method === 'string') return notified(message);
    const { id } = message;
    // Where nothing was heard yet no revision holds, only JSON-RPC: it has null for an id that could not be read.
    if (!isRequestId(id)) return outFaults(message, heard ?? (id === null ? FIRST : revision), undefined);
    const request = answered(id, 'error' in message);
    if (!request) return [`answers request ${JSON.stringify(id)}, which nobody sent or which is answered already`];
    const { result } = message;
    if (request.method === 'initialize' && isObject(result) && isLegacyRevision(result.protocolVersion)) {
      session = result.protocolVersion;
      heard = session;
      opened = true;
    }
    const spoken = request.method === 'initialize' ? session : request.revision;
    return [
      ...outFaults(message, spoken, request.method),
      ...(result === undefined ? [] : requestFaults(request.method, request.message, spoken)),
    ];
  };

  const notified = (message: Readonly<Record<string, unknown>>): readonly string[] => {
    const params = isObject(message.params) ? message.params : {};
    const subscription = isObject(params._meta) ? params._meta[META.subscriptionId] : undefined;
    if (subscription !== undefined)
      return [...subscribed(message, subscription), ...outFaults(message, LATEST_MODERN, undefined)];
    if (message.method !== 'notifications/progress')
      return outFaults(message, opened ? session : (heard ?? revision), undefined);
    const about = [...asked.values()].flat().find(({ progressToken }) => progressToken === params.progressToken);
    if (!about) return [`progress for token ${JSON.stringify(params.progressToken)}, which no unanswered request has`];
    return outFaults(message, about.revision, undefined);
  };

  /** The faults of what names a subscription: it must be open, acknowledged first and once, and have asked for this. */
  const subscribed = ({ method }: Readonly<Record<string, unknown>>, id: unknown): readonly string[] => {
    const all = isRequestId(id) ? (asked.get(id) ?? []) : [];
    const opened = all.findLast((request) => request.method === 'subscriptions/listen');
    if (!opened) return [`tells subscription ${JSON.stringify(id)}, which is not open`];
    const first = !opened.acknowledged;
    opened.acknowledged = true;
    if (method === 'notifications/subscriptions/acknowledged') return first ? [] : ['acknowledged again'];
    return [
      ...(first ? ['told of something before it was acknowledged'] : []),
      ...(wants(opened.message, String(method)) ? [] : [`${String(method)}, which it has not asked for`]),
    ];
  };

  return (direction, text) => {
    if (direction === 'in') {
      const value = readable(text);
      for (const message of Array.isArray(value) ? value : [value]) incoming(message);
      return;
    }
    const value: unknown = JSON.parse(text);
    if (!Array.isArray(value)) return complain(outgoing(value), text);
    complain([...batched(value, session), ...value.flatMap(outgoing)], text);
  };
}

/** The member of the filter that asks for each notification (2026-07-28 subscriptions, "Notification Filter"). */
const FILTERS: Readonly<Record<string, string>> = {
  'notifications/tools/list_changed': 'toolsListChanged',
  'notifications/prompts/list_changed': 'promptsListChanged',
  'notifications/resources/list_changed': 'resourcesListChanged',
  'notifications/resources/updated': 'resourceSubscriptions',
  'notifications/tasks': 'taskIds',
};

/** Whether a `subscriptions/listen` has asked for notifications of this method. */
function wants(request: unknown, method: string): boolean {
  const params = isObject(request) && isObject(request.params) ? request.params : {};
  const filter = isObject(params.notifications) ? params.notifications : {};
  return Boolean(filter[FILTERS[method] ?? '']);
}

/** What a text of the client says; `undefined` for one that is no JSON, which tests send too. */
function readable(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function batched(batch: readonly unknown[], revision: Revision): readonly string[] {
  if (revision !== '2025-03-26') return [`a batch, which ${revision} does not have`];
  return batch.length === 0 ? ['an empty batch'] : [];
}

function outFaults(message: unknown, revision: Revision, method: string | undefined): readonly string[] {
  if (!isObject(message)) return ['expected an object'];
  if (typeof message.method === 'string') {
    if ('id' in message)
      return isModernRevision(revision)
        ? ['a request from the server, which this revision does not have']
        : [...typed('JSONRPCMessage', message, revision), ...official('ServerRequest', message, revision)];
    const ofTask = taskNoteFaults(message);
    return [
      ...typed('JSONRPCMessage', message, revision),
      ...(ofTask ?? typed('ServerNotification', message, revision)),
    ];
  }
  if ('error' in message) return errorFaults(message, revision);
  if (asks(message.result))
    return [
      ...typed('JSONRPCMessage', message, revision),
      ...official('InputRequiredResult', message.result, revision),
    ];
  const ofTask = method === undefined ? undefined : taskResultFaults(method, message.result, revision);
  if (ofTask) return [...typed('JSONRPCMessage', message, revision), ...ofTask];
  const ofSkill = method === undefined ? undefined : skillResultFaults(method, message.result, revision);
  if (ofSkill) return [...typed('JSONRPCMessage', message, revision), ...ofSkill];
  const type = method === undefined ? undefined : TYPES[method]?.[1];
  if (method !== undefined && type === undefined) return [`a result for ${method}, of which wire.ts knows no type`];
  return [...typed('JSONRPCMessage', message, revision), ...(type ? typed(type, message.result, revision) : [])];
}

/** Whether a result asks its client something (2026-07-28 MRTR). */
function asks(result: unknown): boolean {
  return isObject(result) && result.resultType === 'input_required';
}

function errorFaults(message: Readonly<Record<string, unknown>>, revision: Revision): readonly string[] {
  const { error } = message;
  const code = isObject(error) ? error.code : undefined;
  // Until 2025-06-18 the schemas (and the packages) ask for an id in every error, though JSON-RPC 2.0 section 5 has null where
  // the request's could not be read, and MCP has its errors follow JSON-RPC. Only that null is let through; 2025-11-25 left it out.
  const unread = message.id === null && isLegacyRevision(revision) && revision !== '2025-11-25';
  const shown = unread ? { ...message, id: 0 } : message;
  const faults = [...typed('JSONRPCMessage', shown, revision)];
  if (!isModernRevision(revision)) return faults;
  const type = ERRORS[String(code)];
  if (type) faults.push(...official(type, shown, revision));
  // 2026-07-28 basic/index "Error Codes": these ranges are not for servers to give codes from.
  else if (typeof code === 'number' && code >= -32099 && code <= -32000)
    faults.push(`error code ${code}, which ${revision} reserves or retired`);
  return faults;
}

/** The faults of a request that was answered with a result: it must have been one. */
export function requestFaults(method: string, message: unknown, revision: Revision): readonly string[] {
  const type = TYPES[method]?.[0];
  return type === undefined ? [] : official(type, message, revision).map((fault) => `asked: ${fault}`);
}

export function typed(type: ModernWireType, value: unknown, revision: Revision): readonly string[] {
  return [
    ...official(type, value, revision),
    ...packageFaults(type, value, isLegacyRevision(revision) ? 'legacy' : 'modern'),
  ];
}

export function official(type: string, value: unknown, revision: Revision): readonly string[] {
  return officialSchema(revision)?.faults(type, value) ?? [];
}

export function complain(faults: readonly string[], text: string): void {
  if (faults.length === 0) return;
  throw new Error(
    `the wire: ${faults.slice(0, 20).join('\n  ')}\n  in: ${text.length > 1_000 ? `${text.slice(0, 1_000)}…` : text}`,
  );
}
