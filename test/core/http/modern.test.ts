/** The modern revision over HTTP: the status of each answer, one JSON body or an event stream, and what older revisions had. */
import * as assert from 'uvu/assert';
import { META } from '../../../src/core/protocol/meta.ts';
import { LATEST_MODERN } from '../../../src/core/protocol/revisions.ts';
import { ErrorCode, ProtocolError, SUPPORTED_REVISIONS } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { checkWire } from '../../harness/wire.ts';
import { answered, call, type Modern, modern, refused, SELF, send } from './modern.ts';
import { ask, openSession, type Stage, serveHttp, textIn } from './support.ts';

const test = suite('modern HTTP');

let stage: Stage;
let url: string;
test.before(async () => {
  stage = await serveHttp({}, (server) => {
    server.tool('fail', {}, () => {
      throw new Error('it failed');
    });
    server.tool('needs_sampling', {}, () => {
      throw new ProtocolError(ErrorCode.MissingRequiredClientCapability, 'needs sampling', {
        requiredCapabilities: { sampling: {} },
      });
    });
    server.prompt('hello', {}, () => 'hello');
  });
  url = stage.url;
});
test.after(() => stage.close());

const { UnsupportedProtocolVersion, MethodNotFound, InvalidParams, InvalidRequest, ParseError } = ErrorCode;
const named = (revision: string): Modern => ({
  meta: { [META.protocolVersion]: revision },
  headers: { 'mcp-protocol-version': revision },
});

const REFUSED: readonly (readonly [what: string, method: string, Modern, status: number, code: number])[] = [
  ['an unknown method', 'tools/paint', {}, 404, MethodNotFound],
  ...['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'].map(
    (method) => [`${method}, which the revision removed`, method, {}, 404, MethodNotFound] as const,
  ),
  ['a revision that nobody has heard of', 'tools/list', named('v999.0.0'), 400, UnsupportedProtocolVersion],
  ['a legacy revision', 'tools/list', named('2025-11-25'), 400, UnsupportedProtocolVersion],
  ['no revision in _meta', 'tools/list', { meta: { [META.protocolVersion]: undefined } }, 400, InvalidParams],
  ['no capabilities in _meta', 'tools/list', { meta: { [META.clientCapabilities]: undefined } }, 400, InvalidParams],
  ['params that do not fit', 'resources/read', { params: { uri: 7 } }, 400, InvalidParams],
];

for (const [what, method, options, status, code] of REFUSED) {
  test(`refuses ${what} with ${status}, and says whose request it was`, async () => {
    const message = await refused(await send(url, method, { ...options, id: 'mine' }), status, code, 'mine');
    checkWire({ revision: LATEST_MODERN, direction: 'out', text: JSON.stringify(message), method });
  });
}

test('tells a client of another revision which ones it may speak', async () => {
  const { error } = await refused(await send(url, 'server/discover', named('v9')), 400, UnsupportedProtocolVersion, 1);
  assert.equal(error?.data, { supported: SUPPORTED_REVISIONS, requested: 'v9' });
});

test('refuses a request without _meta that a header calls modern, with 400', async () => {
  const { headers } = modern('tools/list');
  const body = { jsonrpc: '2.0', id: 5, method: 'tools/list', params: {} };
  await refused(await ask(url, { headers: headers ?? {}, body }), 400, InvalidParams, 5);
  const bare = { jsonrpc: '2.0', id: 6, method: 'tools/list' };
  await refused(await ask(url, { headers: headers ?? {}, body: bare }), 400, InvalidParams, 6);
});

const UNREADABLE: readonly (readonly [what: string, body: unknown, code: number])[] = [
  ['a body that is no JSON', '{"jsonrpc":', ParseError],
  ['an empty body', '', ParseError],
  ['a body that is no UTF-8', Buffer.from([0x22, 0xc3, 0x28, 0x22]), ParseError],
  ['a body that is no message', '{"hello":"world"}', InvalidRequest],
  ['a string', '"tools/list"', InvalidRequest],
  ['a batch', [modern('tools/list').body, modern('tools/list', { id: 2 }).body], InvalidRequest],
  ['a batch of nothing', [], InvalidRequest],
  ['a response', { jsonrpc: '2.0', id: 1, result: {} }, InvalidRequest],
  ['an id that is null', modern('tools/list', { id: null }).body, InvalidRequest],
];

for (const [what, body, code] of UNREADABLE) {
  test(`refuses ${what} with 400, and an error without an id where there is none to tell`, async () => {
    const answer = await ask(url, { headers: modern('tools/list').headers ?? {}, body });
    const text = await answer.text();
    assert.is(answer.status, 400, text);
    const messages = [JSON.parse(text)].flat();
    for (const { error, id } of messages) {
      assert.is(error?.code, code, text);
      assert.ok(id === undefined || id === 1 || id === 2, text);
    }
  });
}

const SERVED: readonly (readonly [what: string, method: string, params: Record<string, unknown>, code?: number])[] = [
  ['a list', 'tools/list', {}],
  ['a read', 'resources/read', { uri: 'notes://a' }],
  ['a prompt', 'prompts/get', { name: 'hello' }],
  ['a tool that fails', 'tools/call', { name: 'fail' }],
  ['arguments that do not fit', 'tools/call', { name: 'echo', arguments: { text: 7 } }],
  ['an unknown tool', 'tools/call', { name: 'nobody' }, InvalidParams],
  ['an unknown resource', 'resources/read', { uri: 'notes://z' }, InvalidParams],
];

for (const [what, method, params, code] of SERVED) {
  test(`answers ${what} with 200 and one JSON body`, async () => {
    const answer = await send(url, method, { params, id: 'one' });
    assert.is(answer.status, 200);
    assert.match(answer.headers['content-type'] ?? '', /^application\/json\b/);
    const text = await answer.text();
    checkWire({ revision: LATEST_MODERN, direction: 'out', text, method });
    const message = JSON.parse(text);
    assert.is(message.id, 'one');
    if (code === undefined) assert.is(message.result?.resultType, 'complete');
    else assert.is(message.error?.code, code);
  });
}

test('answers a tool that its client cannot serve with 400, and says what it lacks', async () => {
  const answer = await call(url, 'needs_sampling');
  const { error } = await refused(answer, 400, ErrorCode.MissingRequiredClientCapability, 1);
  assert.equal(error?.data, { requiredCapabilities: { sampling: {} } });
});

test('tells what it is and offers, also to a client that does not name itself', async () => {
  const result = await answered(await send(url, 'server/discover', { meta: { [META.clientInfo]: undefined } }));
  assert.equal(result.supportedVersions, SUPPORTED_REVISIONS);
  assert.ok(result.capabilities);
  assert.equal(result._meta, { 'io.modelcontextprotocol/serverInfo': { name: 'http', version: '1.0.0' } });
});

test('becomes an event stream once the handler has something to say, and ends it with the result', async () => {
  const answer = await call(url, 'count', { to: 3 }, { meta: { progressToken: 'p' } });
  assert.is(answer.status, 200);
  assert.match(answer.headers['content-type'] ?? '', /^text\/event-stream\b/);
  assert.is(answer.headers['x-accel-buffering'], 'no');
  assert.match(answer.headers['cache-control'] ?? '', 'no-cache');
  const events = await answer.events.rest();
  for (const { id, retry, event } of events)
    assert.equal([id, retry, event ?? 'message'], [undefined, undefined, 'message']);
  const messages = events.map(({ data = '' }) => JSON.parse(data));
  for (const message of messages)
    checkWire({ revision: LATEST_MODERN, direction: 'out', text: JSON.stringify(message), method: 'tools/call' });
  const progress = messages.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params);
  assert.equal(progress.at(-1), { progressToken: 'p', progress: 3, total: 3 });
  assert.equal(messages.slice(0, -1).length, progress.length);
  assert.is(textIn(messages.at(-1)), 'counted to 3');
});

test('sends log messages to a request that asks for them, and to no other', async () => {
  const answer = await call(url, 'say', { lines: 2 }, { meta: { [META.logLevel]: 'info' } });
  const messages = (await answer.events.rest()).map(({ data = '' }) => JSON.parse(data));
  assert.equal(
    messages.map(({ method, params }) => [method, params?.data]),
    [
      ['notifications/message', 'line 1'],
      ['notifications/message', 'line 2'],
      [undefined, undefined],
    ],
  );
  const silent = await answered(await call(url, 'say', { lines: 2 }));
  assert.equal(silent.content, [{ type: 'text', text: 'said 2' }]);
});

test('ignores a session and an event that older revisions would have meant', async () => {
  const session = await openSession(url);
  for (const id of ['nonsense', session.id]) {
    const headers = { 'mcp-session-id': id, 'last-event-id': `${id}_3` };
    const answer = await call(url, 'whoami', {}, { headers });
    assert.is(answer.headers['mcp-session-id'], undefined);
    assert.equal((await answered(answer)).content, [{ type: 'text', text: `anonymous ${LATEST_MODERN}` }]);
  }
  await (await session.delete()).text();
});

test('takes a notification with 202 and says nothing, and none of them cancels a request', async () => {
  const held = call(url, 'held', { key: 'notified' }, { id: 9 });
  const { ctx, finish } = await stage.held('notified');
  for (const method of ['notifications/cancelled', 'notifications/made_up']) {
    const params = { requestId: 9, _meta: SELF };
    const answer = await ask(url, {
      headers: { 'mcp-protocol-version': LATEST_MODERN, 'mcp-method': method },
      body: { jsonrpc: '2.0', method, params },
    });
    assert.equal([answer.status, await answer.text()], [202, '']);
  }
  assert.not(ctx.signal.aborted);
  finish('all the same');
  assert.is(textIn(await (await held).json()), 'all the same');
});

test('has no GET and no DELETE: 405, and says what there is', async () => {
  for (const method of ['GET', 'DELETE']) {
    const answer = await ask(url, { method, headers: { 'mcp-protocol-version': LATEST_MODERN } });
    assert.match(answer.headers.allow ?? '', /\bPOST\b/);
    await refused(answer, 405, undefined);
  }
});
