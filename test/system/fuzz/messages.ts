/** One valid message of every method of every revision: what the fuzzer starts from. */
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { LATEST_MODERN, LEGACY_REVISIONS, type Revision } from '../../../src/core/protocol/revisions.ts';

export interface Message {
  readonly era: 'legacy' | 'modern' | 'none';
  readonly kind: 'request' | 'notification' | 'response';
  readonly method: string;
  readonly message: JsonObject;
  /** It gets a result when it is sent as it is, in a session or with its `_meta`. */
  readonly answered: boolean;
}

const CLIENT = { name: 'fuzzer', version: '1.0.0' };

/** The members of `_meta` by which a request is modern. */
export const SELF: JsonObject = {
  'io.modelcontextprotocol/protocolVersion': LATEST_MODERN,
  'io.modelcontextprotocol/clientInfo': CLIENT,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/logLevel': 'debug',
};

/** What `initialize` says for a revision. */
export function opening(revision: Revision): JsonObject {
  return { protocolVersion: revision, capabilities: { roots: { listChanged: true } }, clientInfo: CLIENT };
}

const tool = (name: string, args?: JsonObject): JsonObject =>
  args === undefined ? { name } : { name, arguments: args };

/** Requests that are served in both eras, with one or more params each. */
const BOTH: Readonly<Record<string, readonly JsonObject[]>> = {
  'tools/list': [{}],
  'tools/call': [
    tool('echo', { text: 'hello' }),
    tool('add', { a: 1, b: 2 }),
    tool('plain', { n: 3 }),
    tool('mirror', { any: [1, { b: null }], 'x-header': 'é' }),
    tool('fail'),
    { ...tool('question'), inputResponses: { elicit: { action: 'accept', content: { name: 'Ada' } } } },
    { ...tool('talk', {}), _meta: { progressToken: 'talk' } },
    { ...tool('wait', {}), _meta: { progressToken: 7 } },
  ],
  'resources/list': [{}],
  'resources/templates/list': [{}],
  'resources/read': [
    { uri: 'doc://readme' },
    { uri: 'doc://bytes' },
    { uri: 'note://5' },
    { uri: 'tree:///a/b.txt?page=2&size=3' },
  ],
  'prompts/list': [{}],
  'prompts/get': [
    { name: 'ask', arguments: { topic: 'tea' } },
    { name: 'strict', arguments: { count: '3' } },
  ],
  'completion/complete': [
    { ref: { type: 'ref/prompt', name: 'ask' }, argument: { name: 'topic', value: 't' } },
    {
      ref: { type: 'ref/resource', uri: 'note://{id}' },
      argument: { name: 'id', value: '' },
      context: { arguments: { other: 'x' } },
    },
  ],
};

const LEGACY: Readonly<Record<string, readonly JsonObject[]>> = {
  ping: [{}],
  'resources/subscribe': [{ uri: 'doc://readme' }],
  'resources/unsubscribe': [{ uri: 'doc://readme' }],
  'logging/setLevel': [{ level: 'debug' }],
};

const MODERN: Readonly<Record<string, readonly JsonObject[]>> = { 'server/discover': [{}] };

/** Requests that exist somewhere in the specification, and get an error here: not served, or not the client's to send. */
const REFUSED: Readonly<Record<string, JsonObject>> = {
  initialize: opening('2025-06-18'),
  'subscriptions/listen': { notifications: { toolsListChanged: true } },
  'skills/list': {},
  'skills/get': { uri: 'skill://a/SKILL.md' },
  'resources/directory/read': { uri: 'skill://a' },
  'tasks/get': { taskId: 't' },
  'tasks/update': { taskId: 't', inputResponses: {} },
  'tasks/cancel': { taskId: 't' },
  'tasks/list': {},
  'tasks/result': { taskId: 't' },
  'roots/list': {},
  'sampling/createMessage': { messages: [], maxTokens: 1 },
  'elicitation/create': { message: 'name?', requestedSchema: { type: 'object', properties: {} } },
};

const NOTIFICATIONS: Readonly<Record<string, JsonObject>> = {
  'notifications/initialized': {},
  'notifications/cancelled': { requestId: 1, reason: 'changed my mind' },
  'notifications/progress': { progressToken: 1, progress: 0.5, total: 1, message: 'half' },
  'notifications/roots/list_changed': {},
  'notifications/message': { level: 'info', data: 'from the wrong side' },
  'notifications/tools/list_changed': {},
  'notifications/prompts/list_changed': {},
  'notifications/resources/list_changed': {},
  'notifications/resources/updated': { uri: 'doc://readme' },
  'notifications/elicitation/complete': { elicitationId: 'e' },
  'notifications/tasks/status': { taskId: 't', status: 'working' },
  'notifications/tasks': { taskId: 't', status: 'working' },
  'notifications/subscriptions/acknowledged': {},
};

const request = (method: string, params: JsonObject): JsonObject => ({ jsonrpc: '2.0', id: 1, method, params });

function requests(era: 'legacy' | 'modern', table: Readonly<Record<string, readonly JsonObject[]>>): Message[] {
  return Object.entries(table).flatMap(([method, each]) =>
    each.map((params): Message => {
      const meta = params._meta;
      const own = typeof meta === 'object' && meta !== null ? meta : {};
      const sent = era === 'legacy' ? params : { ...params, _meta: { ...SELF, ...own } };
      return { era, kind: 'request', method, message: request(method, sent), answered: true };
    }),
  );
}

export const MESSAGES: readonly Message[] = [
  ...requests('legacy', { ...BOTH, ...LEGACY }),
  ...requests('modern', { ...BOTH, ...MODERN }),
  ...Object.entries(REFUSED).map(
    ([method, params]): Message => ({
      era: 'none',
      kind: 'request',
      method,
      message: request(method, params),
      answered: false,
    }),
  ),
  ...[...LEGACY_REVISIONS, LATEST_MODERN].map(
    (revision): Message => ({
      era: 'none',
      kind: 'request',
      method: 'initialize',
      message: request('initialize', opening(revision)),
      answered: false,
    }),
  ),
  ...Object.entries(NOTIFICATIONS).map(
    ([method, params]): Message => ({
      era: 'none',
      kind: 'notification',
      method,
      message: { jsonrpc: '2.0', method, params },
      answered: false,
    }),
  ),
  ...[{ result: {} }, { error: { code: -1, message: 'no' } }, { result: { roots: [] } }].map(
    (answer): Message => ({
      era: 'none',
      kind: 'response',
      method: '',
      message: { jsonrpc: '2.0', id: 1, ...answer },
      answered: false,
    }),
  ),
];
