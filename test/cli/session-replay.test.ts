/** The session state that a shim records, and how it resumes the session with another server. */
import * as assert from 'uvu/assert';
import { SessionReplay } from '../../src/cli/shim/session-replay.ts';
import { asideOf } from '../../src/core/transports/relay.ts';
import { suite } from '../harness/door.ts';

const test = suite('session replay');

const line = (message: object): string => JSON.stringify({ jsonrpc: '2.0', ...message });
const INITIALIZE = line({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25' } });
const INITIALIZED = line({ method: 'notifications/initialized' });
const AGREED = line({
  id: 0,
  result: { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true }, prompts: {} } },
});

function opened(): SessionReplay {
  const session = new SessionReplay();
  assert.is(session.connected(), undefined);
  session.sent(INITIALIZE);
  assert.is(session.received(AGREED), 'pass');
  session.sent(INITIALIZED);
  return session;
}

/** Ids and messages of the errors that the agent gets. */
function errors(lines: readonly string[]): unknown[][] {
  return lines.map((text) => {
    const { id, error } = JSON.parse(text);
    return [id, error.code, error.message];
  });
}

test('only requests in flight get an error', () => {
  const session = opened();
  for (const id of [1, '1', 2, 3]) session.sent(line({ id, method: 'tools/call', params: {} }));
  session.sent(line({ method: 'notifications/cancelled', params: { requestId: 3 } }));
  assert.is(session.received(line({ id: 2, result: {} })), 'pass');
  assert.is(session.received(line({ method: 'notifications/progress', params: {} })), 'pass');
  const { toAgent, again } = session.lost('gone');
  assert.equal(errors(toAgent), [
    [1, -32603, 'gone'],
    ['1', -32603, 'gone'],
  ]);
  assert.equal(again, []);
  assert.equal(session.lost('gone').toAgent, []);
});

test('R-35: a request without a valid id is not recorded, because no response carries its id', () => {
  const session = opened();
  const ids = ['1.5', 'null', '{}', '[1]', 'true', '9007199254740992', '1e400'];
  const texts = ids.map((id) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
  const spaced = ids.map((id) => `{ "method": "ping", "id": ${id}, "jsonrpc": "2.0" }`);
  for (const text of [...texts, ...spaced, `[${texts.join()}]`]) {
    assert.is(session.sent(text), text);
    assert.equal(SessionReplay.refused([text], 'no server'), []);
  }
  assert.equal(session.lost('gone'), { toAgent: [], again: [] });
});

test('R-35: a request that is rejected without an id is not resent and has no second response', () => {
  const session = opened();
  session.sent('[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]');
  session.sent('{"jsonrpc":"2.0","id":3,"method":"ping","params":{');
  session.sent(line({ id: 4, method: 'ping' }));
  // Lines count from the first of the connection: "initialize" and "notifications/initialized" came before.
  for (const number of [3, 4]) session.rejected(number, undefined);
  const rejection = line({ id: null, error: { code: -32600, message: 'no' } });
  assert.is(session.received(rejection), 'pass');
  assert.is(session.received(line({ error: { code: -32700, message: 'no' } })), 'pass');
  assert.equal(session.lost('gone'), { toAgent: [], again: [line({ id: 4, method: 'ping' })] });
});

test('R-35: a rejected request whose error was lost in a crash still gets a response', () => {
  const session = opened();
  session.sent('{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{');
  session.rejected(3, undefined);
  assert.equal(errors(session.lost('gone').toAgent), [[3, -32603, 'gone']]);
});

test('R-38: a server that answers a probe with an internal error does not count as one that responds', () => {
  const session = opened();
  const answered = (answer: object): boolean => {
    const { responses } = session;
    const { id } = JSON.parse(session.probe());
    assert.is(session.received(line({ id, ...answer })), 'drop');
    return session.responses > responses;
  };
  assert.is(answered({ error: { code: -32603, message: 'Internal error' } }), false);
  assert.is(answered({ result: {} }), true);
  // A server of a revision without `ping` works, too.
  assert.is(answered({ error: { code: -32601, message: 'unknown' } }), true);
});

test('rejections without an id do not count if the server also fails to answer a probe', () => {
  const session = opened();
  const reject = (number: number): void => {
    session.rejected(number, undefined);
    session.received(line({ error: { code: -32700, message: 'not valid JSON' } }));
  };
  const ping = line({ id: 1, method: 'ping' });
  session.sent(ping);
  reject(3);
  assert.ok(session.awaits);
  session.probe();
  reject(4);
  session.distrust();
  assert.equal(session.lost('gone').again, [ping]);

  // One that answers the probe is right about the request.
  const { id } = JSON.parse(session.probe());
  session.connected();
  session.received(AGREED);
  session.resumption();
  session.sent(ping);
  reject(3);
  const probe = JSON.parse(session.probe()).id;
  assert.is.not(probe, id);
  session.received(line({ id: probe, result: {} }));
  assert.not(session.awaits);
  session.distrust();
  assert.equal(session.lost('gone'), { toAgent: [], again: [] });
});

test('R-35: a skipped line with a readable id gets a response, too', () => {
  const aside = (head: string): string => asideOf({ type: 'unreadable', reason: 'too long', bytes: 9_999_999, head });
  const known = aside('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"');
  const session = opened();
  for (const text of [known, aside('{"x":"')]) assert.is(session.sent(text), text);
  assert.equal(errors(SessionReplay.refused([known, aside('{"x":"')], 'no server')), [[1, -32603, 'no server']]);
  const batch = aside('[{"id":2,"method":"ping"},{"id":1.5,"method":"ping"},{"id":3}]');
  session.sent(batch);
  session.rejected(5, 3);
  session.received(line({ id: 3, error: { code: -32600, message: 'too long' } }));
  const { toAgent, again } = session.lost('gone');
  assert.equal(errors(toAgent), [[2, -32603, 'gone']]);
  assert.equal(again, [known]);
  session.connected();
  session.received(AGREED);
  session.resumption();
  session.sent(known);
  session.rejected(3, undefined);
  session.received(line({ id: null, error: { code: -32600, message: 'too long' } }));
  assert.equal(session.lost('gone'), { toAgent: [], again: [] });
});

test('R-35: the rejection of a duplicate leaves the first request open, whichever response comes first', () => {
  const refusal = line({ id: 1, error: { code: -32600, message: 'in flight' } });
  const result = line({ id: 1, result: {} });
  for (const duplicate of [call(1, 'look'), line({ id: 1, method: 'dance' }), line({ id: 1 })]) {
    const session = informed();
    session.sent(call(1, 'pay'));
    session.sent(duplicate);
    session.rejected(4, 1);
    assert.is(session.received(refusal), 'pass');
    assert.ok(session.isForNext(line({ method: 'notifications/cancelled', params: { requestId: 2 } })));
    assert.not(session.isForNext(line({ method: 'notifications/cancelled', params: { requestId: 1 } })));
    assert.equal(errors(session.lost('gone').toAgent), [[1, -32603, 'gone']]);

    session.connected();
    session.received(AGREED);
    session.resumption();
    session.sent(call(1, 'pay'));
    session.sent(duplicate);
    session.rejected(4, 1);
    session.received(result);
    session.received(refusal);
    assert.equal(session.lost('gone'), { toAgent: [], again: [] });
  }
});

test('R-35: an error with an id that differs from the recorded one ends no other request with that id', () => {
  const session = opened();
  session.sent(call(1, 'pay'));
  // The server reads the last of two equal keys.
  session.sent('{"jsonrpc":"2.0","id":2,"method":"ping","id":1}');
  session.rejected(4, 1);
  session.received(line({ id: 1, error: { code: -32600, message: 'the same key twice' } }));
  assert.equal(errors(session.lost('gone').toAgent), [[1, -32603, 'gone']]);
});

test('repeated use of one id stays within the limit', () => {
  const session = opened();
  for (let count = 0; count < 20_000; count += 1) session.sent(call(1, 'pay'));
  assert.is(session.lost('gone').toAgent.length, 16_384);
});

test('R-35: "initialize" cannot be cancelled: the session continues with the next server', () => {
  const session = new SessionReplay();
  session.connected();
  session.sent(INITIALIZE);
  session.sent(line({ method: 'notifications/cancelled', params: { requestId: 0 } }));
  session.received(AGREED);
  assert.is(session.connected(), INITIALIZE);
});

test('the requests of a batch count one by one', () => {
  const session = opened();
  session.sent(`[${line({ id: 1, method: 'ping' })},${line({ id: 2, method: 'ping' })}]`);
  session.received(`[${line({ id: 1, result: {} })}]`);
  assert.equal(errors(session.lost('gone').toAgent), [[2, -32603, 'gone']]);
});

test('a session is resumed with the agent’s own initialize, and the response is dropped', () => {
  const session = opened();
  session.lost('gone');
  assert.is(session.connected(), INITIALIZE);
  assert.is(session.received(AGREED), 'resumed');
  assert.equal(session.resumption(), [INITIALIZED]);
  assert.equal(session.changes(), [line({ method: 'notifications/tools/list_changed' })]);
});

test('the log level and the watched resources are restored, and the responses are dropped', () => {
  const session = opened();
  const level = line({ id: 1, method: 'logging/setLevel', params: { level: 'error' } });
  const refused = line({ id: 2, method: 'logging/setLevel', params: { level: 'loud' } });
  const [one, two] = ['a', 'b'].map((uri) => line({ id: uri, method: 'resources/subscribe', params: { uri } }));
  for (const text of [level, refused, one ?? '', two ?? '']) session.sent(text);
  session.sent(line({ id: 3, method: 'resources/unsubscribe', params: { uri: 'a' } }));
  for (const id of [1, 'a', 'b', 3]) session.received(line({ id, result: {} }));
  session.received(line({ id: 2, error: { code: -32602, message: 'no' } }));
  session.lost('gone');
  session.connected();
  session.received(AGREED);
  assert.equal(session.resumption(), [INITIALIZED, level, two]);
  assert.is(session.received(line({ id: 1, result: {} })), 'drop');
  assert.is(session.received(line({ id: 'b', result: {} })), 'drop');
  assert.match(session.changes().at(-1) ?? '', '"params":{"uri":"b"}');
});

test('an unanswered initialize is resent, and its response goes to the agent', () => {
  const session = new SessionReplay();
  session.connected();
  session.sent(INITIALIZE);
  assert.equal(session.lost('gone'), { toAgent: [], again: [INITIALIZE] });
  assert.is(session.connected(), undefined);
  session.sent(INITIALIZE);
  assert.is(session.received(AGREED), 'pass');
});

test('a client of 2026-07-28 has no session to resume', () => {
  const session = new SessionReplay();
  session.sent(line({ id: 1, method: 'tools/list', params: { _meta: {} } }));
  session.received(line({ id: 1, result: {} }));
  session.lost('gone');
  assert.is(session.connected(), undefined);
});

test('a server that is full or draining rejects the session', () => {
  const session = new SessionReplay();
  session.connected();
  session.sent(INITIALIZE);
  const full = line({ id: null, error: { code: -31001, message: 'full' } });
  assert.is(session.received(full), 'refused');
  assert.is(session.refusal, 'full');
  session.unsent();
  assert.equal(session.lost('gone'), { toAgent: [], again: [] });

  session.connected();
  session.sent(INITIALIZE);
  assert.is(session.received(line({ id: 0, error: { code: -31003, message: 'draining' } })), 'refused');
  // Later on the same words are an answer like any other.
  const later = opened();
  later.sent(line({ id: 1, method: 'ping' }));
  assert.is(later.received(line({ id: 1, error: { code: -31001, message: 'busy' } })), 'pass');
  assert.is(later.received(full), 'pass');
});

test('a server with another revision cannot resume the session', () => {
  const session = opened();
  session.lost('gone');
  session.connected();
  assert.throws(
    () => session.received(AGREED.replace('2025-11-25', '2025-06-18')),
    /uses protocol revision 2025-06-18, but the session was opened with 2025-11-25/,
  );
});

test('requests of the last server are cancelled, and a late response does not reach the next server', () => {
  const session = opened();
  assert.is(session.received(line({ id: 7, method: 'roots/list' })), 'pass');
  assert.is(session.received(line({ id: 8, method: 'roots/list' })), 'pass');
  assert.ok(session.sent(line({ id: 8, result: {} })));
  assert.equal(session.lost('gone').toAgent, [
    line({ method: 'notifications/cancelled', params: { requestId: 7, reason: 'gone' } }),
  ]);
  assert.not(session.sent(line({ id: 7, result: {} })));
});

test('invalid messages go to the server unchanged', () => {
  const session = opened();
  for (const text of ['nonsense', '1', 'null', '[]', '[1]', '{"id":1.5}']) {
    assert.ok(session.sent(text));
    assert.is(session.received(text), 'pass');
  }
  assert.equal(session.lost('gone'), { toAgent: [], again: [] });
});

test('lines that a server answers count as pending, also those that it rejects without an id', () => {
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

test('unsent requests get an error, unsent notifications do not', () => {
  const held = [line({ id: 1, method: 'ping' }), INITIALIZED, line({ id: 2, result: {} })];
  assert.equal(errors(SessionReplay.refused(held, 'no server')), [[1, -32603, 'no server']]);
});

const call = (id: number, name: string, meta?: object): string =>
  line({ id, method: 'tools/call', params: { name, ...(meta ? { _meta: meta } : {}) } });
const MODERN = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };

/** The server has said which tools may be called twice. */
function informed(): SessionReplay {
  const session = opened();
  session.learn(['look', 'set']);
  return session;
}

test('repeatable requests go to the next server in order; the others get an error', () => {
  const session = informed();
  const read = line({ id: 2, method: 'resources/read', params: { uri: 'a' } });
  for (const text of [call(1, 'look'), read, call(3, 'pay'), call(4, 'set'), call(5, 'plain')]) session.sent(text);
  session.sent(line({ id: 6, method: 'tasks/update', params: {} }));
  const { toAgent, again } = session.lost('gone');
  assert.equal(again, [call(1, 'look'), read, call(4, 'set')]);
  assert.equal(
    errors(toAgent).map(([id]) => id),
    [3, 5, 6],
  );
});

test('a tool that is no longer repeatable is not called twice, whatever tools/list contains', () => {
  const session = informed();
  session.learn(['set']);
  const annotations = { readOnlyHint: true };
  session.sent(line({ id: 'list', method: 'tools/list' }));
  session.received(line({ id: 'list', result: { tools: [{ name: 'look', annotations }] } }));
  session.sent(call(1, 'look'));
  assert.equal(session.lost('gone').again, []);
});

test('with a durable store, all recognisable repeats are resent', () => {
  const session = informed();
  const keyed = call(3, 'pay', { ...MODERN, 'io.troupe/idempotency-key': 'k' });
  for (const text of [call(1, 'pay'), call(2, 'pay', MODERN), keyed]) session.sent(text);
  session.sent(`[${call(4, 'pay')}]`);
  const { toAgent, again } = session.lost('gone', true);
  assert.equal(again, [call(1, 'pay'), keyed]);
  assert.equal(
    errors(toAgent).map(([id]) => id),
    [2, 4],
  );
});

test('with a second session on the connection, ids do not identify repeats', () => {
  const session = informed();
  session.sent(INITIALIZE);
  session.received(AGREED);
  session.sent(call(1, 'pay'));
  assert.equal(session.lost('gone', true).again, []);
});

test('a draining server gets messages about its requests; requests that it rejects wait for the next server', () => {
  const session = informed();
  session.sent(call(1, 'look'));
  session.sent(call(2, 'pay'));
  const listen = line({ id: 3, method: 'subscriptions/listen', params: { _meta: MODERN } });
  session.sent(listen);
  assert.is(session.received(line({ id: 'ask-1', method: 'elicitation/create' })), 'pass');
  session.draining();
  assert.ok(session.isForNext(call(4, 'look')));
  assert.ok(session.isForNext(line({ method: 'notifications/roots/list_changed' })));
  assert.ok(session.isForNext(line({ method: 'notifications/cancelled', params: { requestId: 4 } })));
  assert.not(session.isForNext(line({ method: 'notifications/cancelled', params: { requestId: 1 } })));
  assert.not(session.isForNext(line({ id: 'ask-1', result: { action: 'decline' } })));
  const error = { code: -31003, message: 'draining' };
  assert.is(session.received(line({ id: 1, error })), 'drop');
  assert.is(session.received(line({ id: 2, error })), 'pass');
  assert.is(session.received(line({ id: 3, result: {} })), 'drop');
  assert.equal(session.lost('gone').again, [call(1, 'look'), listen]);
  session.connected();
  const acknowledged = line({
    method: 'notifications/subscriptions/acknowledged',
    params: { _meta: { 'io.modelcontextprotocol/subscriptionId': '3' } },
  });
  session.sent(listen);
  assert.is(session.received(acknowledged), 'drop');
  assert.is(session.received(acknowledged), 'pass');
});

test('requests of a later server get distinct ids, and responses return under the original ids', () => {
  const session = opened();
  session.received(line({ id: 'ask-1', method: 'roots/list' }));
  session.lost('gone');
  session.connected();
  session.received(AGREED);
  assert.is(session.received(line({ id: 'ask-1', method: 'roots/list' })), 'replaced');
  assert.equal(JSON.parse(session.replacement), { jsonrpc: '2.0', id: '2:ask-1', method: 'roots/list' });
  assert.is(session.sent(line({ id: 'ask-1', result: {} })), undefined);
  assert.is(session.sent(line({ id: '2:ask-1', result: {} })), line({ id: 'ask-1', result: {} }));
  session.received(line({ id: 'ask-2', method: 'roots/list' }));
  const withdrawn = line({ method: 'notifications/cancelled', params: { requestId: 'ask-2', reason: 'late' } });
  assert.is(session.received(withdrawn), 'replaced');
  assert.equal(JSON.parse(session.replacement).params, { requestId: '2:ask-2', reason: 'late' });
  assert.equal(session.lost('gone').toAgent, []);
});
