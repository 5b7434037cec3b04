/** What a shim remembers of a conversation, and what it makes of it when the server is another. */
import * as assert from 'uvu/assert';
import { SessionReplay } from '../../src/cli/shim/session-replay.ts';
import { asideOf } from '../../src/transports/relay.ts';
import { suite } from '../harness/door.ts';

const test = suite('conversation');

const line = (message: object): string => JSON.stringify({ jsonrpc: '2.0', ...message });
const INITIALIZE = line({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25' } });
const INITIALIZED = line({ method: 'notifications/initialized' });
const AGREED = line({
  id: 0,
  result: { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true }, prompts: {} } },
});

function opened(): SessionReplay {
  const conversation = new SessionReplay();
  assert.is(conversation.connected(), undefined);
  conversation.sent(INITIALIZE);
  assert.is(conversation.received(AGREED), 'pass');
  conversation.sent(INITIALIZED);
  return conversation;
}

/** Ids and messages of the errors that the agent gets. */
function errors(lines: readonly string[]): unknown[][] {
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

test('R-35: what has no id that a server can read is not remembered: no response to it names one', () => {
  const conversation = opened();
  const ids = ['1.5', 'null', '{}', '[1]', 'true', '9007199254740992', '1e400'];
  const texts = ids.map((id) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
  const spaced = ids.map((id) => `{ "method": "ping", "id": ${id}, "jsonrpc": "2.0" }`);
  for (const text of [...texts, ...spaced, `[${texts.join()}]`]) {
    assert.is(conversation.sent(text), text);
    assert.equal(SessionReplay.refused([text], 'no server'), []);
  }
  assert.equal(conversation.lost('gone'), { toAgent: [], again: [] });
});

test('R-35: what a server rejects without an id is not sent again, and has no second response', () => {
  const conversation = opened();
  conversation.sent('[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]');
  conversation.sent('{"jsonrpc":"2.0","id":3,"method":"ping","params":{');
  conversation.sent(line({ id: 4, method: 'ping' }));
  // Lines count from the first of the connection: "initialize" and "notifications/initialized" came before.
  for (const number of [3, 4]) conversation.rejected(number, undefined);
  const rejection = line({ id: null, error: { code: -32600, message: 'no' } });
  assert.is(conversation.received(rejection), 'pass');
  assert.is(conversation.received(line({ error: { code: -32700, message: 'no' } })), 'pass');
  assert.equal(conversation.lost('gone'), { toAgent: [], again: [line({ id: 4, method: 'ping' })] });
});

test('R-35: what a server has rejected, but not answered when it dies, still has its response', () => {
  const conversation = opened();
  conversation.sent('{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{');
  conversation.rejected(3, undefined);
  assert.equal(errors(conversation.lost('gone').toAgent), [[3, -32603, 'gone']]);
});

test('a server that rejects everything without an id, also what every server answers, has answered nothing', () => {
  const conversation = opened();
  const reject = (number: number): void => {
    conversation.rejected(number, undefined);
    conversation.received(line({ error: { code: -32700, message: 'not valid JSON' } }));
  };
  const ping = line({ id: 1, method: 'ping' });
  conversation.sent(ping);
  reject(3);
  assert.ok(conversation.awaits);
  conversation.probe();
  reject(4);
  conversation.distrust();
  assert.equal(conversation.lost('gone').again, [ping]);

  // One that answers the probe is right about the request.
  const { id } = JSON.parse(conversation.probe());
  conversation.connected();
  conversation.received(AGREED);
  conversation.resumption();
  conversation.sent(ping);
  reject(3);
  const probe = JSON.parse(conversation.probe()).id;
  assert.is.not(probe, id);
  conversation.received(line({ id: probe, result: {} }));
  assert.not(conversation.awaits);
  conversation.distrust();
  assert.equal(conversation.lost('gone'), { toAgent: [], again: [] });
});

test('R-35: a line that was skipped has its response, too, where its id can be read', () => {
  const aside = (head: string): string => asideOf({ type: 'unreadable', reason: 'too long', bytes: 9_999_999, head });
  const known = aside('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"');
  const conversation = opened();
  for (const text of [known, aside('{"x":"')]) assert.is(conversation.sent(text), text);
  assert.equal(errors(SessionReplay.refused([known, aside('{"x":"')], 'no server')), [[1, -32603, 'no server']]);
  const batch = aside('[{"id":2,"method":"ping"},{"id":1.5,"method":"ping"},{"id":3}]');
  conversation.sent(batch);
  conversation.rejected(5, 3);
  conversation.received(line({ id: 3, error: { code: -32600, message: 'too long' } }));
  const { toAgent, again } = conversation.lost('gone');
  assert.equal(errors(toAgent), [[2, -32603, 'gone']]);
  assert.equal(again, [known]);
  conversation.connected();
  conversation.received(AGREED);
  conversation.resumption();
  conversation.sent(known);
  conversation.rejected(3, undefined);
  conversation.received(line({ id: null, error: { code: -32600, message: 'too long' } }));
  assert.equal(conversation.lost('gone'), { toAgent: [], again: [] });
});

test('R-35: the rejection of a duplicate leaves the first request open, whichever response comes first', () => {
  const refusal = line({ id: 1, error: { code: -32600, message: 'in flight' } });
  const result = line({ id: 1, result: {} });
  for (const duplicate of [call(1, 'look'), line({ id: 1, method: 'dance' }), line({ id: 1 })]) {
    const conversation = informed();
    conversation.sent(call(1, 'pay'));
    conversation.sent(duplicate);
    conversation.rejected(4, 1);
    assert.is(conversation.received(refusal), 'pass');
    assert.ok(conversation.isForNext(line({ method: 'notifications/cancelled', params: { requestId: 2 } })));
    assert.not(conversation.isForNext(line({ method: 'notifications/cancelled', params: { requestId: 1 } })));
    assert.equal(errors(conversation.lost('gone').toAgent), [[1, -32603, 'gone']]);

    conversation.connected();
    conversation.received(AGREED);
    conversation.resumption();
    conversation.sent(call(1, 'pay'));
    conversation.sent(duplicate);
    conversation.rejected(4, 1);
    conversation.received(result);
    conversation.received(refusal);
    assert.equal(conversation.lost('gone'), { toAgent: [], again: [] });
  }
});

test('R-35: an error under an id that the line was not remembered by ends no other request of that id', () => {
  const conversation = opened();
  conversation.sent(call(1, 'pay'));
  // The server reads the last of two equal keys.
  conversation.sent('{"jsonrpc":"2.0","id":2,"method":"ping","id":1}');
  conversation.rejected(4, 1);
  conversation.received(line({ id: 1, error: { code: -32600, message: 'the same key twice' } }));
  assert.equal(errors(conversation.lost('gone').toAgent), [[1, -32603, 'gone']]);
});

test('an id that is used again and again keeps no more than the other bound', () => {
  const conversation = opened();
  for (let count = 0; count < 20_000; count += 1) conversation.sent(call(1, 'pay'));
  assert.is(conversation.lost('gone').toAgent.length, 16_384);
});

test('R-35: "initialize" cannot be cancelled: the session goes on with the next server', () => {
  const conversation = new SessionReplay();
  conversation.connected();
  conversation.sent(INITIALIZE);
  conversation.sent(line({ method: 'notifications/cancelled', params: { requestId: 0 } }));
  conversation.received(AGREED);
  assert.is(conversation.connected(), INITIALIZE);
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
  const conversation = new SessionReplay();
  conversation.connected();
  conversation.sent(INITIALIZE);
  assert.equal(conversation.lost('gone'), { toAgent: [], again: [INITIALIZE] });
  assert.is(conversation.connected(), undefined);
  conversation.sent(INITIALIZE);
  assert.is(conversation.received(AGREED), 'pass');
});

test('a client of 2026-07-28 has no session to open again', () => {
  const conversation = new SessionReplay();
  conversation.sent(line({ id: 1, method: 'tools/list', params: { _meta: {} } }));
  conversation.received(line({ id: 1, result: {} }));
  conversation.lost('gone');
  assert.is(conversation.connected(), undefined);
});

test('a server that is full, or draining, has refused', () => {
  const conversation = new SessionReplay();
  conversation.connected();
  conversation.sent(INITIALIZE);
  const full = line({ id: null, error: { code: -31001, message: 'full' } });
  assert.is(conversation.received(full), 'refused');
  assert.is(conversation.refusal, 'full');
  conversation.unsent();
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
  for (const text of ['nonsense', '1', 'null', '[]', '[1]', '{"id":1.5}']) {
    assert.ok(conversation.sent(text));
    assert.is(conversation.received(text), 'pass');
  }
  assert.equal(conversation.lost('gone'), { toAgent: [], again: [] });
});

test('what a server answers is brought to one, also what it rejects without an id', () => {
  const unreadable = asideOf({ type: 'unreadable', reason: 'too long', bytes: 9, head: '' });
  const ping = line({ id: 1, method: 'ping' });
  for (const text of [
    ping,
    line({ id: 1.5, method: 'ping' }),
    '{"id":null}',
    'nonsense',
    '[]',
    '[1]',
    '{}',
    unreadable,
  ])
    assert.ok(SessionReplay.isAnswered(text), text);
  for (const text of [INITIALIZED, line({ id: 1, result: {} }), `[${INITIALIZED},${line({ id: 1, error: {} })}]`])
    assert.not(SessionReplay.isAnswered(text), text);
  assert.ok(SessionReplay.isAnswered(`[${INITIALIZED},${ping}]`));
});

test('requests that were never sent get an error, their notifications none', () => {
  const held = [line({ id: 1, method: 'ping' }), INITIALIZED, line({ id: 2, result: {} })];
  assert.equal(errors(SessionReplay.refused(held, 'no server')), [[1, -32603, 'no server']]);
});

const call = (id: number, name: string, meta?: object): string =>
  line({ id, method: 'tools/call', params: { name, ...(meta ? { _meta: meta } : {}) } });
const MODERN = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };

/** The server has said which tools may be called twice. */
function informed(): SessionReplay {
  const conversation = opened();
  conversation.learn(['look', 'set']);
  return conversation;
}

test('what does no harm when it is done twice goes to the next server, in its order; the rest is answered with an error', () => {
  const conversation = informed();
  const read = line({ id: 2, method: 'resources/read', params: { uri: 'a' } });
  for (const text of [call(1, 'look'), read, call(3, 'pay'), call(4, 'set'), call(5, 'plain')]) conversation.sent(text);
  conversation.sent(line({ id: 6, method: 'tasks/update', params: {} }));
  const { toAgent, again } = conversation.lost('gone');
  assert.equal(again, [call(1, 'look'), read, call(4, 'set')]);
  assert.equal(
    errors(toAgent).map(([id]) => id),
    [3, 5, 6],
  );
});

test('a tool that is no longer repeatable is not called twice, whatever a list of tools says', () => {
  const conversation = informed();
  conversation.learn(['set']);
  const annotations = { readOnlyHint: true };
  conversation.sent(line({ id: 'list', method: 'tools/list' }));
  conversation.received(line({ id: 'list', result: { tools: [{ name: 'look', annotations }] } }));
  conversation.sent(call(1, 'look'));
  assert.equal(conversation.lost('gone').again, []);
});

test('a server that keeps its answers is sent all that it can tell for a repeat', () => {
  const conversation = informed();
  const keyed = call(3, 'pay', { ...MODERN, 'io.troupe/idempotency-key': 'k' });
  for (const text of [call(1, 'pay'), call(2, 'pay', MODERN), keyed]) conversation.sent(text);
  conversation.sent(`[${call(4, 'pay')}]`);
  const { toAgent, again } = conversation.lost('gone', true);
  assert.equal(again, [call(1, 'pay'), keyed]);
  assert.equal(
    errors(toAgent).map(([id]) => id),
    [2, 4],
  );
});

test('with a second session on the connection, ids tell no repeat', () => {
  const conversation = informed();
  conversation.sent(INITIALIZE);
  conversation.received(AGREED);
  conversation.sent(call(1, 'pay'));
  assert.equal(conversation.lost('gone', true).again, []);
});

test('a server that drains gets what belongs to its requests; what it will not do is left to the next', () => {
  const conversation = informed();
  conversation.sent(call(1, 'look'));
  conversation.sent(call(2, 'pay'));
  const listen = line({ id: 3, method: 'subscriptions/listen', params: { _meta: MODERN } });
  conversation.sent(listen);
  assert.is(conversation.received(line({ id: 'ask-1', method: 'elicitation/create' })), 'pass');
  conversation.draining();
  assert.ok(conversation.isForNext(call(4, 'look')));
  assert.ok(conversation.isForNext(line({ method: 'notifications/roots/list_changed' })));
  assert.ok(conversation.isForNext(line({ method: 'notifications/cancelled', params: { requestId: 4 } })));
  assert.not(conversation.isForNext(line({ method: 'notifications/cancelled', params: { requestId: 1 } })));
  assert.not(conversation.isForNext(line({ id: 'ask-1', result: { action: 'decline' } })));
  const error = { code: -31003, message: 'draining' };
  assert.is(conversation.received(line({ id: 1, error })), 'swallow');
  assert.is(conversation.received(line({ id: 2, error })), 'pass');
  assert.is(conversation.received(line({ id: 3, result: {} })), 'swallow');
  assert.equal(conversation.lost('gone').again, [call(1, 'look'), listen]);
  conversation.connected();
  const acknowledged = line({
    method: 'notifications/subscriptions/acknowledged',
    params: { _meta: { 'io.modelcontextprotocol/subscriptionId': '3' } },
  });
  conversation.sent(listen);
  assert.is(conversation.received(acknowledged), 'swallow');
  assert.is(conversation.received(acknowledged), 'pass');
});

test('the questions of a later server have ids of their own, and their answers find back', () => {
  const conversation = opened();
  conversation.received(line({ id: 'ask-1', method: 'roots/list' }));
  conversation.lost('gone');
  conversation.connected();
  conversation.received(AGREED);
  assert.is(conversation.received(line({ id: 'ask-1', method: 'roots/list' })), 'reworded');
  assert.equal(JSON.parse(conversation.said), { jsonrpc: '2.0', id: '2:ask-1', method: 'roots/list' });
  assert.is(conversation.sent(line({ id: 'ask-1', result: {} })), undefined);
  assert.is(conversation.sent(line({ id: '2:ask-1', result: {} })), line({ id: 'ask-1', result: {} }));
  conversation.received(line({ id: 'ask-2', method: 'roots/list' }));
  const withdrawn = line({ method: 'notifications/cancelled', params: { requestId: 'ask-2', reason: 'late' } });
  assert.is(conversation.received(withdrawn), 'reworded');
  assert.equal(JSON.parse(conversation.said).params, { requestId: '2:ask-2', reason: 'late' });
  assert.equal(conversation.lost('gone').toAgent, []);
});
