/** What a shim remembers of a conversation, and what it makes of it when the server is another. */
import * as assert from 'uvu/assert';
import { Conversation } from '../../src/cli/conversation.ts';
import { suite } from '../harness/door.ts';

const test = suite('conversation');

const line = (message: object): string => JSON.stringify({ jsonrpc: '2.0', ...message });
const INITIALIZE = line({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25' } });
const INITIALIZED = line({ method: 'notifications/initialized' });
const AGREED = line({
  id: 0,
  result: { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true }, prompts: {} } },
});

function opened(): Conversation {
  const conversation = new Conversation();
  assert.is(conversation.connected(), undefined);
  conversation.sent(INITIALIZE);
  assert.is(conversation.received(AGREED), 'pass');
  conversation.sent(INITIALIZED);
  return conversation;
}

/** Ids and messages of the errors that the agent gets. */
function errors(lines: readonly string[]): unknown[] {
  return lines.map((text) => {
    const { id, error } = JSON.parse(text);
    return [id, error.code, error.message];
  });
}

test('each request in flight gets an error, and only those', () => {
  const conversation = opened();
  for (const id of [1, '1', 2, 3]) conversation.sent(line({ id, method: 'tools/call', params: {} }));
  conversation.sent(line({ method: 'notifications/cancelled', params: { requestId: 3 } }));
  assert.is(conversation.received(line({ id: 2, result: {} })), 'pass');
  assert.is(conversation.received(line({ method: 'notifications/progress', params: {} })), 'pass');
  const { toAgent, again } = conversation.lost('gone');
  assert.equal(errors(toAgent), [
    [1, -32603, 'gone'],
    ['1', -32603, 'gone'],
  ]);
  assert.equal(again, []);
  assert.equal(conversation.lost('gone').toAgent, []);
});

test('the requests of a batch count one by one', () => {
  const conversation = opened();
  conversation.sent(`[${line({ id: 1, method: 'ping' })},${line({ id: 2, method: 'ping' })}]`);
  conversation.received(`[${line({ id: 1, result: {} })}]`);
  assert.equal(errors(conversation.lost('gone').toAgent), [[2, -32603, 'gone']]);
});

test('a session is opened again with the words of the agent, and the answer is not for the agent', () => {
  const conversation = opened();
  conversation.lost('gone');
  assert.is(conversation.connected(), INITIALIZE);
  assert.is(conversation.received(AGREED), 'resumed');
  assert.equal(conversation.resumption(), [INITIALIZED]);
  assert.equal(conversation.changes(), [line({ method: 'notifications/tools/list_changed' })]);
});

test('the log level and the watched resources are set again, and the answers are not for the agent', () => {
  const conversation = opened();
  const level = line({ id: 1, method: 'logging/setLevel', params: { level: 'error' } });
  const refused = line({ id: 2, method: 'logging/setLevel', params: { level: 'loud' } });
  const [one, two] = ['a', 'b'].map((uri) => line({ id: uri, method: 'resources/subscribe', params: { uri } }));
  for (const text of [level, refused, one ?? '', two ?? '']) conversation.sent(text);
  conversation.sent(line({ id: 3, method: 'resources/unsubscribe', params: { uri: 'a' } }));
  for (const id of [1, 'a', 'b', 3]) conversation.received(line({ id, result: {} }));
  conversation.received(line({ id: 2, error: { code: -32602, message: 'no' } }));
  conversation.lost('gone');
  conversation.connected();
  conversation.received(AGREED);
  assert.equal(conversation.resumption(), [INITIALIZED, level, two]);
  assert.is(conversation.received(line({ id: 1, result: {} })), 'swallow');
  assert.is(conversation.received(line({ id: 'b', result: {} })), 'swallow');
  assert.match(conversation.changes().at(-1) ?? '', '"params":{"uri":"b"}');
});

test('an initialize that was not answered is sent again, and its answer is for the agent', () => {
  const conversation = new Conversation();
  conversation.connected();
  conversation.sent(INITIALIZE);
  assert.equal(conversation.lost('gone'), { toAgent: [], again: [INITIALIZE] });
  assert.is(conversation.connected(), undefined);
  conversation.sent(INITIALIZE);
  assert.is(conversation.received(AGREED), 'pass');
});

test('a client of 2026-07-28 has no session to open again', () => {
  const conversation = new Conversation();
  conversation.sent(line({ id: 1, method: 'tools/list', params: { _meta: {} } }));
  conversation.received(line({ id: 1, result: {} }));
  conversation.lost('gone');
  assert.is(conversation.connected(), undefined);
});

test('a server that is full, or draining, has refused', () => {
  const conversation = new Conversation();
  conversation.connected();
  conversation.sent(INITIALIZE);
  const full = line({ id: null, error: { code: -31001, message: 'full' } });
  assert.is(conversation.received(full), 'refused');
  assert.is(conversation.refusal, 'full');
  conversation.unsent([INITIALIZE]);
  assert.equal(conversation.lost('gone'), { toAgent: [], again: [] });

  conversation.connected();
  conversation.sent(INITIALIZE);
  assert.is(conversation.received(line({ id: 0, error: { code: -31003, message: 'draining' } })), 'refused');
  // Later on the same words are an answer like any other.
  const later = opened();
  later.sent(line({ id: 1, method: 'ping' }));
  assert.is(later.received(line({ id: 1, error: { code: -31001, message: 'busy' } })), 'pass');
  assert.is(later.received(full), 'pass');
});

test('a server of another revision cannot go on with the session', () => {
  const conversation = opened();
  conversation.lost('gone');
  conversation.connected();
  assert.throws(
    () => conversation.received(AGREED.replace('2025-11-25', '2025-06-18')),
    /speaks revision 2025-06-18 now, where the session was opened with 2025-11-25/,
  );
});

test('what the last server asked is cancelled, and an answer to it does not reach the next', () => {
  const conversation = opened();
  assert.is(conversation.received(line({ id: 7, method: 'roots/list' })), 'pass');
  assert.is(conversation.received(line({ id: 8, method: 'roots/list' })), 'pass');
  assert.ok(conversation.sent(line({ id: 8, result: {} })));
  assert.equal(conversation.lost('gone').toAgent, [
    line({ method: 'notifications/cancelled', params: { requestId: 7, reason: 'gone' } }),
  ]);
  assert.not(conversation.sent(line({ id: 7, result: {} })));
});

test('what is no message is left to the server', () => {
  const conversation = opened();
  for (const text of ['nonsense', '1', 'null', '[]', '[1]', '{"id":1}']) {
    assert.ok(conversation.sent(text));
    assert.is(conversation.received(text), 'pass');
  }
  assert.equal(conversation.lost('gone'), { toAgent: [], again: [] });
});

test('requests that were never sent get an error, their notifications none', () => {
  const held = [line({ id: 1, method: 'ping' }), INITIALIZED, line({ id: 2, result: {} })];
  assert.equal(errors(Conversation.refused(held, 'no server')), [[1, -32603, 'no server']]);
});
