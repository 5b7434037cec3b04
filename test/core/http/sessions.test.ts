/** Sessions of legacy clients over HTTP: opened, named, bounded, ended; and what never becomes one (2025-11-25 transports, "Session Management"). */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';
import { type Flooding, flood } from './flood.ts';
import { crowd, messagesOf, noticed, PING, pings, refusal, serving } from './session.ts';
import { type Answer, ask, type Headers, initialize, openSession, textIn } from './support.ts';

const test = suite('http sessions');

const NOTE = { jsonrpc: '2.0', method: 'notifications/initialized' };
const RESPONSE = { jsonrpc: '2.0', id: 7, result: {} };

/** All that a client can tell one refusal from another by. */
async function face(answer: Promise<Answer>): Promise<string> {
  const { status, headers, text } = await answer;
  const { date: _, ...rest } = headers;
  return JSON.stringify([status, rest, await text()]);
}

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
