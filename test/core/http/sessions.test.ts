/** Sessions of legacy clients over HTTP: opened, named, bounded, ended; and what never becomes one (2025-11-25 transports, "Session Management"). */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';
import { wireChecker } from '../../harness/wire.ts';
import { type Flooding, flood } from './flood.ts';
import { crowd, LEGACY, messagesOf, noticed, PING, pings, refusal, serving } from './session.ts';
import { type Answer, ask, type Headers, initialize, type Message, openSession, textIn } from './support.ts';

const test = suite('http sessions');

const NOTE = { jsonrpc: '2.0', method: 'notifications/initialized' };
const RESPONSE = { jsonrpc: '2.0', id: 7, result: {} };

/** All that a client can tell one refusal from another by. */
async function face(answer: Promise<Answer>): Promise<string> {
  const { status, headers, text } = await answer;
  const { date: _, ...rest } = headers;
  return JSON.stringify([status, rest, await text()]);
}

test('initialize is answered as JSON, with the id of a session', () =>
  serving(async ({ url, sessions }) => {
    const answer = await ask(url, { body: initialize('2025-11-25', 'first') });
    assert.is(answer.status, 200);
    assert.match(answer.headers['content-type'] ?? '', /^application\/json/);
    assert.match(String(answer.headers['mcp-session-id']), /^[!-~]+$/);
    const { id, result } = await answer.json();
    assert.is(id, 'first');
    assert.is(result?.protocolVersion, '2025-11-25');
    assert.is(sessions(), 1);
  }));

test('a session id is visible ASCII of at least 128 random bits', () =>
  serving(async ({ url }) => {
    const ids: string[] = [];
    await crowd(times(400, { quick: 150 }), 16, async () => {
      const answer = await ask(url, { body: initialize('2025-11-25') });
      await answer.text();
      ids.push(String(answer.headers['mcp-session-id']));
    });
    assert.is(new Set(ids).size, ids.length);
    for (const id of ids) assert.match(id, /^[!-~]+$/);
    // What each place of the id takes on: places that never change, such as a prefix, give no bits.
    const places = Array.from({ length: Math.min(...ids.map(({ length }) => length)) }, (_, place) =>
      Math.log2(new Set(ids.map((id) => id[place])).size),
    );
    const bits = places.reduce((sum, each) => sum + each, 0);
    assert.ok(bits >= 128, `${bits} bits in "${ids[0]}"`);
  }));

test('initialize is answered as a stream where the client takes nothing else, with the id in its head', () =>
  serving(async ({ url, sessions }) => {
    const answer = await ask(url, { body: initialize('2025-11-25'), headers: { accept: 'text/event-stream' } });
    assert.match(answer.headers['content-type'] ?? '', /^text\/event-stream/);
    assert.match(String(answer.headers['mcp-session-id']), /^[!-~]{22,}$/);
    assert.is((await answer.events.message()).result?.protocolVersion, '2025-11-25');
    assert.is(sessions(), 1);
  }));

for (const revision of LEGACY) {
  test(`a session of ${revision} serves what its schema says`, () =>
    serving(async ({ url }) => {
      const session = await openSession(url, revision);
      const check = wireChecker(revision);
      const talk = async (message: object): Promise<Message> => {
        check('in', JSON.stringify(message));
        const answer = await session.post(message);
        assert.is(answer.status, 200);
        const sse = answer.headers['content-type']?.startsWith('text/event-stream');
        const texts = sse
          ? (await answer.events.rest()).flatMap(({ data }) => (data ? [data] : []))
          : [await answer.text()];
        for (const text of texts) check('out', text);
        return JSON.parse(texts.at(-1) ?? '');
      };
      const call = (id: number, name: string, args: object, _meta: object = {}) =>
        talk({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args, _meta } });
      assert.is(textIn(await call(1, 'whoami', {})), `anonymous ${revision}`);
      assert.is(textIn(await call(2, 'count', { to: 3 }, { progressToken: 2 })), 'counted to 3');
      assert.is(textIn(await call(3, 'say', { lines: 2 })), 'said 2');
      assert.ok((await talk({ jsonrpc: '2.0', id: 4, method: 'tools/list' })).result?.tools);
      assert.equal((await talk({ jsonrpc: '2.0', id: 5, method: 'ping' })).result, {});
      assert.is((await talk({ jsonrpc: '2.0', id: 6, method: 'tools/none' })).error?.code, -32601);
      assert.is((await call(7, 'none', {})).error?.code, -32602);
    }));
}

test('an unknown revision is answered with the latest legacy one', () =>
  serving(async ({ url }) => {
    const { json } = await ask(url, { body: initialize('2099-01-01') });
    assert.is((await json()).result?.protocolVersion, '2025-11-25');
  }));

test('an initialize that is refused opens no session', () =>
  serving(async ({ url, sessions }) => {
    const bodies = [
      { jsonrpc: '2.0', id: 1, method: 'initialize' },
      { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1, capabilities: {} } },
      { jsonrpc: '2.0', method: 'initialize', params: {} },
      [initialize('2025-03-26')],
      [initialize('2025-03-26'), PING],
    ];
    for (const body of bodies) {
      const answer = await ask(url, { body });
      assert.is(answer.status, 400, JSON.stringify(body));
      assert.is(answer.headers['mcp-session-id'], undefined);
      assert.ok((await refusal(answer)).code < 0);
    }
    assert.is(sessions(), 0);
  }));

test('a client cannot choose the id of its session', () =>
  serving(async ({ url, sessions }) => {
    const answer = await ask(url, { body: initialize('2025-11-25'), headers: { 'mcp-session-id': 'x'.repeat(22) } });
    assert.is(answer.status, 404);
    await answer.text();
    assert.is(sessions(), 0);
  }));

test('a message outside of any session is rejected with 400, and the error describes how to open one', () =>
  serving(async ({ url, sessions }) => {
    for (const body of [NOTE, RESPONSE, { jsonrpc: '2.0', id: 2, method: 'tools/list' }, [PING]]) {
      const { status, message } = await refusal(ask(url, { body }));
      assert.is(status, 400, JSON.stringify(body));
      assert.match(message, /Mcp-Session-Id|"initialize"|batch/i);
    }
    for (const method of ['GET', 'DELETE']) {
      const headers = { 'mcp-protocol-version': '2025-11-25', 'last-event-id': 'abcdefghijkl_3' };
      const { status, message } = await refusal(ask(url, { method, headers }));
      assert.is(status, 400, method);
      assert.match(message, /Mcp-Session-Id/i);
    }
    assert.is((await refusal(ask(url, { method: 'DELETE' }))).status, 400);
    assert.is(sessions(), 0);
  }));

test('a ping outside of any session is refused, too', () =>
  serving(async ({ url }) => {
    const { status, text } = await ask(url, { body: PING });
    assert.is(status, 400, await text());
  }));

test('a session that is unknown, deleted or expired is refused with one and the same 404', () =>
  serving(
    async ({ url, clock, sessions }) => {
      const [expired, deleted] = [await openSession(url), await openSession(url)];
      await clock.advance(50_000);
      assert.is((await deleted.delete()).status, 204);
      await clock.advance(10_000);
      assert.is(sessions(), 0);
      const others = [
        'x'.repeat(22),
        'x',
        `${deleted.id}x`,
        deleted.id.slice(1),
        deleted.id.toLowerCase(),
        '..%2f',
        'a b',
        '__proto__',
        'constructor',
      ];
      const asked: readonly [method: string, body: unknown, headers: Headers][] = [
        ['POST', PING, {}],
        ['POST', NOTE, {}],
        ['POST', RESPONSE, {}],
        ['POST', initialize('2025-11-25'), {}],
        ['POST', [PING], {}],
        ['GET', undefined, {}],
        ['GET', undefined, { 'last-event-id': 'abcdefghijkl_1' }],
        ['DELETE', undefined, {}],
      ];
      for (const [method, body, more] of asked) {
        const faces = new Set<string>();
        for (const id of [expired.id, deleted.id, ...others])
          faces.add(await face(ask(url, { method, body, headers: { ...more, 'mcp-session-id': id } })));
        assert.is(faces.size, 1, [...faces].join('\n'));
        assert.match([...faces].join(), /^\[404,/);
      }
    },
    { sessionIdleMs: 60_000 },
  ));

test('two session ids in one request are no session', () =>
  serving(async ({ url }) => {
    const [one, two] = [await openSession(url), await openSession(url)];
    const answer = await ask(url, { body: PING, headers: { 'mcp-session-id': [one.id, two.id] } });
    assert.ok([400, 404].includes(answer.status), String(answer.status));
    await answer.text();
  }));

test('DELETE ends a session, its streams and what runs in it, and no other', () =>
  serving(async ({ url, held, sessions }) => {
    const [session, other] = [await openSession(url), await openSession(url)];
    const { events } = await session.get();
    const answering = session.call(1, 'held', { key: 'a' }, { progressToken: 1 });
    const { ctx } = await held('a');
    ctx.progress(1);
    const { events: answer } = await answering;
    const deleted = await session.delete();
    assert.is(deleted.status, 204);
    assert.is(await deleted.text(), '');
    assert.ok(ctx.signal.aborted);
    await events.rest();
    await answer.rest();
    assert.is(await pings(session), 404);
    for (const gone of [await session.get(), await session.delete()]) {
      assert.is(gone.status, 404);
      await gone.text();
    }
    assert.is(await pings(other), 200);
    assert.is(sessions(), 1);
  }));

test('DELETE ends the response of a request that was not answered yet', () =>
  serving(async ({ url, held }) => {
    const session = await openSession(url);
    const silent = session.call(1, 'held', { key: 'a' });
    const { ctx } = await held('a');
    await (await session.delete()).text();
    assert.ok(ctx.signal.aborted);
    const { text } = await silent;
    assert.not.match(await text(), /"result"/);
  }));

for (const [what, progress] of [
  ['a request that was not answered', 0],
  ['a stream that was not finished', 1],
] as const)
  test(`${what} when its session ended no longer counts against maxExchanges`, () =>
    serving(
      async ({ url, held }) => {
        for (let turn = 0; turn < 5; turn += 1) {
          const session = await openSession(url);
          const leaving = new AbortController();
          const answering = session.call(1, 'held', { key: 'a' }, { progressToken: 1 }, leaving.signal);
          const { ctx } = await held('a');
          if (progress > 0) {
            ctx.progress(progress);
            await answering;
          }
          await (await session.delete()).text();
          // The client goes as well, whatever the server has made of it.
          leaving.abort();
          await answering.catch(() => {});
        }
        await noticed(await openSession(url));
      },
      { maxExchanges: 4 },
    ));

test('streams of a session that their client has dropped no longer count against maxExchanges', () =>
  serving(
    async ({ url }) => {
      const session = await openSession(url);
      for (let turn = 0; turn < 10; turn += 1) {
        (await session.get()).cut();
        await noticed(session);
      }
    },
    { maxExchanges: 4 },
  ));

test('an unused session expires, not before sessionIdleMs and soon after, and each request postpones that', () =>
  serving(
    async ({ url, clock, sessions }) => {
      const session = await openSession(url);
      for (let turn = 0; turn < 3; turn += 1) {
        await clock.advance(59_000);
        assert.is(await pings(session), 200);
      }
      await clock.advance(59_000);
      assert.is(sessions(), 1);
      await clock.advance(16_000);
      assert.is(sessions(), 0);
      assert.is(await pings(session), 404);
    },
    { sessionIdleMs: 60_000 },
  ));

test('a session does not expire while a request runs or a client listens, and does afterwards', () =>
  serving(
    async ({ url, clock, held, sessions }) => {
      const session = await openSession(url);
      const answering = session.call(1, 'held', { key: 'a' });
      const { finish } = await held('a');
      await clock.advance(200_000);
      assert.is(sessions(), 1);
      finish('still here');
      assert.is(textIn((await messagesOf(await answering)).at(-1) ?? { jsonrpc: '' }), 'still here');
      const listening = await session.get();
      await clock.advance(200_000);
      assert.is(sessions(), 1);
      listening.cut();
      await noticed(session);
      await clock.advance(75_000);
      assert.is(sessions(), 0);
    },
    { sessionIdleMs: 60_000, server: { limits: { timeoutMs: 600_000 } } },
  ));

test('beyond maxSessions an initialize is refused with 429, and one session ended makes room', () =>
  serving(
    async ({ url, sessions }) => {
      const [first] = [await openSession(url), await openSession(url)];
      const answer = await ask(url, { body: initialize('2025-11-25') });
      assert.match(String(answer.headers['retry-after']), /^\d+$/);
      assert.is(answer.headers['mcp-session-id'], undefined);
      const { status, code, message } = await refusal(answer);
      assert.is(status, 429);
      assert.is(code, -31001);
      assert.match(message, /maxSessions/);
      assert.is(sessions(), 2);
      await first?.delete();
      await openSession(url);
      assert.is(sessions(), 2);
    },
    { server: { limits: { maxSessions: 2 } } },
  ));

test('maxSessionsPerPrincipal bounds each principal by itself', () =>
  serving(
    async ({ url }) => {
      const [alice, bob] = [{ authorization: 'alice' }, { authorization: 'bob' }];
      const first = await openSession(url, '2025-11-25', alice);
      await openSession(url, '2025-11-25', alice);
      const { status, message } = await refusal(ask(url, { body: initialize('2025-11-25'), headers: alice }));
      assert.is(status, 429);
      assert.match(message, /maxSessionsPerPrincipal/);
      await openSession(url, '2025-11-25', bob);
      await first.delete();
      await openSession(url, '2025-11-25', alice);
    },
    { authenticate: ({ header }) => header('authorization'), server: { limits: { maxSessionsPerPrincipal: 2 } } },
  ));

test('maxSessionsPerPrincipal does not bound anonymous clients', () =>
  serving(
    async ({ url, sessions }) => {
      for (let count = 0; count < 3; count += 1) await openSession(url);
      assert.is(sessions(), 3);
    },
    { server: { limits: { maxSessionsPerPrincipal: 1 } } },
  ));

test('a second initialize in a session is rejected, and the session continues', () =>
  serving(async ({ url, sessions }) => {
    const session = await openSession(url);
    const answer = await session.post(initialize('2025-06-18', 2));
    assert.ok([200, 400].includes(answer.status), String(answer.status));
    assert.ok([undefined, session.id].includes(answer.headers['mcp-session-id']?.toString()));
    assert.is((await refusal(answer)).code, -32600);
    assert.is(sessions(), 1);
    assert.is(textIn(await (await session.call(3, 'whoami')).json()), 'anonymous 2025-11-25');
  }));

test('a message that cannot be read gets 400, and the session continues', () =>
  serving(async ({ url }) => {
    const session = await openSession(url);
    for (const [body, code] of [
      ['{"jsonrpc":"2.0","id":1', -32700],
      ['', -32700],
      [new Uint8Array([0x22, 0xff, 0x22]), -32700],
      [{ jsonrpc: '1.0', id: 1, method: 'ping' }, -32600],
      [{ jsonrpc: '2.0', id: 1 }, -32600],
      [{ jsonrpc: '2.0', id: {}, method: 'ping' }, -32600],
      ['"text"', -32600],
    ] as const)
      assert.equal(await refusal(session.post(body)).then(({ status, code }) => [status, code]), [400, code]);
    assert.is(await pings(session), 200);
  }));

test('notifications and responses are accepted with 202 and no body', () =>
  serving(async ({ url }) => {
    const session = await openSession(url);
    const others = [
      { jsonrpc: '2.0', method: 'notifications/nobody/knows' },
      { ...RESPONSE, id: 'nobody asked' },
    ];
    for (const body of [NOTE, RESPONSE, ...others]) {
      const answer = await session.post(body);
      assert.is(answer.status, 202, JSON.stringify(body));
      assert.is(await answer.text(), '');
    }
  }));

test('a batch of 2025-03-26 is answered as one array of JSON', () =>
  serving(async ({ url }) => {
    const session = await openSession(url, '2025-03-26');
    const call = { name: 'echo', arguments: { text: 'hi' } };
    const answer = await session.post([
      { jsonrpc: '2.0', id: 'a', method: 'tools/call', params: call },
      NOTE,
      { jsonrpc: '2.0', id: 2, method: 'tools/none' },
      { jsonrpc: '1.0', id: 3, method: 'ping' },
      PING,
    ]);
    assert.is(answer.status, 200);
    assert.match(answer.headers['content-type'] ?? '', /^application\/json/);
    const batch: unknown = JSON.parse(await answer.text());
    if (!Array.isArray(batch)) return assert.unreachable('expected an array');
    const messages: readonly Message[] = batch;
    assert.is(messages.length, 4);
    const of = (id: unknown) => messages.find((message) => message.id === id);
    assert.is(textIn(of('a') ?? { jsonrpc: '' }), 'hi');
    assert.is(of(2)?.error?.code, -32601);
    assert.equal(of(1)?.result, {});
    assert.is(messages.filter(({ error }) => error?.code === -32600).length, 1);
  }));

test('a batch of 2025-03-26 comes as events where a handler speaks first, or where the client takes only those', () =>
  serving(async ({ url }) => {
    const session = await openSession(url, '2025-03-26');
    const count = { name: 'count', arguments: { to: 3 }, _meta: { progressToken: 'p' } };
    const batch = [{ jsonrpc: '2.0', id: 2, method: 'tools/call', params: count }, PING];
    const spoken = await session.post(batch);
    assert.match(spoken.headers['content-type'] ?? '', /^text\/event-stream/);
    const messages = await messagesOf(spoken);
    const answers = messages.filter(({ id }) => id !== undefined);
    assert.equal(
      messages.flatMap(({ params }) => (params ? [params.progress] : [])),
      [1, 2, 3],
    );
    assert.equal(answers.map(({ id }) => id).sort(), [1, 2]);
    const pinned = await session.post([PING], { accept: 'text/event-stream' });
    assert.match(pinned.headers['content-type'] ?? '', /^text\/event-stream/);
    assert.equal(await messagesOf(pinned), [{ jsonrpc: '2.0', id: 1, result: {} }]);
  }));

test('a request of a batch that is cancelled is left out of its answer', () =>
  serving(async ({ url, held }) => {
    const session = await openSession(url, '2025-03-26');
    const call = { name: 'held', arguments: { key: 'a' } };
    const answering = session.post([{ jsonrpc: '2.0', id: 'a', method: 'tools/call', params: call }, PING]);
    await held('a');
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'a' } };
    assert.is((await session.post(cancel)).status, 202);
    assert.equal(await messagesOf(await answering), [{ jsonrpc: '2.0', id: 1, result: {} }]);
  }));

test('a batch without requests is accepted with 202', () =>
  serving(async ({ url }) => {
    const session = await openSession(url, '2025-03-26');
    for (const body of [[NOTE, NOTE], [RESPONSE]]) {
      const answer = await session.post(body);
      assert.is(answer.status, 202);
      assert.is(await answer.text(), '');
    }
  }));

test('a batch that is empty, too long, or of a revision without batches gets 400', () =>
  serving(
    async ({ url }) => {
      const session = await openSession(url, '2025-03-26');
      assert.equal(await refusal(session.post([])).then(({ status, code }) => [status, code]), [400, -32600]);
      const long = await refusal(session.post(Array.from({ length: 4 }, (_, id) => ({ ...PING, id }))));
      assert.is(long.status, 400);
      assert.match(long.message, /maxBatch/);
      for (const revision of LEGACY.filter((each) => each !== '2025-03-26')) {
        const other = await openSession(url, revision);
        assert.equal(
          await refusal(other.post([PING])).then(({ status, code }) => [status, code]),
          [400, -32600],
          revision,
        );
        assert.is(await pings(other), 200);
      }
    },
    { server: { limits: { maxBatch: 3 } } },
  ));

test('MCP-Protocol-Version is none or a legacy revision that is known, or the request gets 400', () =>
  serving(async ({ url, sessions }) => {
    const session = await openSession(url, '2025-06-18');
    for (const revision of [undefined, ...LEGACY]) {
      const answer = await session.post(PING, { 'mcp-protocol-version': revision });
      assert.is(answer.status, 200, revision ?? 'none');
      await answer.text();
    }
    for (const revision of ['1999-01-01', '2025-06-19', 'latest', '']) {
      const headers = { 'mcp-protocol-version': revision };
      for (const [what, asking] of [
        ['a request', { body: PING, headers: { ...session.headers, ...headers } }],
        ['a notification', { body: NOTE, headers: { ...session.headers, ...headers } }],
        ['a GET', { method: 'GET', headers: { ...session.headers, ...headers } }],
      ] as const) {
        const { status, text } = await ask(url, asking);
        assert.is(status, 400, `${what} of "${revision}": ${await text()}`);
      }
    }
    // It is modern, and a modern request says so in its _meta too.
    assert.is((await refusal(session.post(PING, { 'mcp-protocol-version': '2026-07-28' }))).status, 400);
    assert.is(await pings(session), 200);
    assert.is(sessions(), 1);
  }));

test('an initialize with an unknown MCP-Protocol-Version gets 400, and opens nothing', () =>
  serving(async ({ url, sessions }) => {
    for (const revision of ['1999-01-01', 'latest']) {
      const headers = { 'mcp-protocol-version': revision };
      const { status, text } = await ask(url, { body: initialize('2025-06-18'), headers });
      assert.is(status, 400, await text());
    }
    assert.is(sessions(), 0);
    for (const revision of LEGACY) await openSession(url, revision, { 'mcp-protocol-version': revision });
  }));

test('a DELETE with an unknown MCP-Protocol-Version gets 400, and ends nothing', () =>
  serving(async ({ url, sessions }) => {
    const session = await openSession(url, '2025-06-18');
    const { status } = await session.delete({ 'mcp-protocol-version': '1999-01-01' });
    assert.is(status, 400);
    assert.is(sessions(), 1);
  }));

test('an answer follows the revision that was agreed, whatever the header says later', () =>
  serving(async ({ url }) => {
    const session = await openSession(url, '2025-06-18');
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami' } };
    const answer = await session.post(call, { 'mcp-protocol-version': '2025-03-26' });
    assert.is(textIn(await answer.json()), 'anonymous 2025-06-18');
  }));

const REFUSED = times(10_000, { quick: 1_000 });

test(`${REFUSED} requests that are refused leave no session and no timer behind`, () =>
  serving(async ({ url, clock, sessions }) => {
    // The actors of a new server become passive first.
    await clock.advance(60_000);
    const before = clock.timers;
    const json = { 'content-type': 'application/json', accept: '*/*' };
    const none = { ...json, 'mcp-session-id': 'x'.repeat(22) };
    const stream = { ...none, accept: 'text/event-stream' };
    const opening = JSON.stringify(initialize('2025-11-25'));
    const kinds: readonly Flooding[] = [
      { method: 'POST', headers: json, body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' },
      { method: 'POST', headers: json, body: JSON.stringify(NOTE) },
      { method: 'POST', headers: json, body: '{' },
      { method: 'POST', headers: json, body: opening.replace('clientInfo', 'clientinfo') },
      { method: 'POST', headers: none, body: opening },
      { method: 'POST', headers: { ...json, 'content-type': 'text/plain' }, body: opening },
      { method: 'POST', headers: { ...json, accept: 'text/html' }, body: opening },
      { method: 'GET', headers: stream },
      { method: 'GET', headers: { ...stream, 'last-event-id': 'abcdefghijkl_3' } },
      { method: 'DELETE', headers: none },
    ];
    const answers = await flood(url, Array.from({ length: REFUSED / kinds.length }, () => kinds).flat());
    const seen = new Set(answers.map(({ status }, index) => `${index % kinds.length}: ${status}`));
    assert.equal([...seen].sort(), [
      '0: 400',
      '1: 400',
      '2: 400',
      '3: 400',
      '4: 404',
      '5: 415',
      '6: 406',
      '7: 404',
      '8: 404',
      '9: 404',
    ]);
    assert.is(sessions(), 0);
    // Timers of the server itself come and go.
    await clock.advance(60_000);
    assert.is(clock.timers, before);
  }));
