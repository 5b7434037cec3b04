/** Who may use what: a session, its streams and its replays answer only the principal that opened it, and nobody reads another's answer (S-03, R-23). */
import * as assert from 'uvu/assert';
import type { HttpOptions } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';
import { call as modernCall } from './modern.ts';
import { change, changed, crowd, messagesOf, noticed, PING, pings, refusal, serving, watch } from './session.ts';
import { type Answer, ask, type Headers, initialize, type Message, openSession, textIn } from './support.ts';

const test = suite('http principals');

type Authenticate = NonNullable<HttpOptions['authenticate']>;

const TOKENS: ReadonlyMap<string, string> = new Map([
  ['Bearer a1', 'alice'],
  ['Bearer a2', 'alice'],
  ['Bearer b1', 'bob'],
]);
const authenticate: Authenticate = ({ header }) => TOKENS.get(header('authorization') ?? '');
const as = (token: string): Headers => ({ authorization: `Bearer ${token}` });
const [ALICE, BOB] = [as('a1'), as('b1')];

/** All that a client can tell one refusal from another by. */
async function face({ status, headers, text }: Answer): Promise<string> {
  const { date: _, ...rest } = headers;
  return JSON.stringify([status, rest, await text()]);
}

test('an unauthenticated client gets 401 for every method, and opens nothing', () =>
  serving(
    async ({ url, sessions }) => {
      const session = await openSession(url, '2025-11-25', ALICE);
      for (const headers of [{}, as('wrong'), { authorization: '' }]) {
        const own = { ...session.headers, authorization: undefined, ...headers };
        for (const answer of [
          await ask(url, { body: initialize('2025-11-25'), headers }),
          await ask(url, { body: PING, headers: own }),
          await ask(url, { method: 'GET', headers: own }),
          await ask(url, { method: 'GET', headers: { ...own, 'last-event-id': 'x_1' } }),
          await ask(url, { method: 'GET', headers }),
          await ask(url, { method: 'DELETE', headers: own }),
          await modernCall(url, 'whoami', {}, { headers }),
        ]) {
          const { status, headers: got, json } = answer;
          assert.is(status, 401);
          assert.match(got['content-type'] ?? '', /^application\/json/);
          const message = await json();
          assert.type(message.error?.message, 'string');
          assert.not('id' in message);
        }
      }
      assert.is(await pings(session), 200);
      assert.is(sessions(), 1);
    },
    { authenticate },
  ));

test('authenticate sees the request, and handlers see whom it found', () => {
  const seen: unknown[] = [];
  return serving(
    async ({ url }) => {
      const session = await openSession(url, '2025-11-25', ALICE);
      seen.length = 0;
      assert.is(textIn(await (await session.call(1, 'whoami')).json()), 'alice 2025-11-25');
      assert.equal(seen, [['POST', '/mcp', 'Bearer a1', session.id, undefined, '127.0.0.1']]);
      const modern = await modernCall(url, 'whoami', {}, { headers: BOB });
      assert.is(textIn(await modern.json()), 'bob 2026-07-28');
    },
    {
      authenticate: async (request) => {
        const { method, url, header, remoteAddress } = request;
        const [token, id, none] = [header('Authorization'), header('mcp-session-id'), header('x-none')];
        seen.push([method, url, token, id, none, remoteAddress?.replace('::ffff:', '')]);
        return authenticate(request);
      },
    },
  );
});

test('an authenticate that throws refuses, says nothing of why to the client, and tells the operator', () =>
  serving(
    async ({ url, told, sessions }) => {
      for (const token of ['throws', 'rejects', 'odd']) {
        const answer = await ask(url, { body: initialize('2025-11-25'), headers: as(token) });
        assert.ok([401, 500].includes(answer.status), `${token}: ${answer.status}`);
        assert.not.match(await answer.text(), /secret/);
      }
      assert.ok(told.some((line) => line.includes('the secret path')));
      assert.is(sessions(), 0);
    },
    {
      authenticate: ({ header }) => {
        const token = header('authorization') ?? '';
        if (token.includes('throws')) throw new Error('the secret path');
        if (token.includes('rejects')) return Promise.reject(new Error('the secret path'));
        return 7 as never;
      },
    },
  ));

for (const [what, method, body] of [
  ['a request', 'POST', PING],
  ['a GET', 'GET', undefined],
] as const)
  test(`${what} whose client leaves while authenticate looks it up leaves nothing open`, () => {
    const waiting: (() => void)[] = [];
    return serving(
      async (stage) => {
        const session = await openSession(stage.url, '2025-11-25', ALICE);
        await watch(session, 'notes://a');
        for (let turn = 0; turn < 5; turn += 1) {
          const leaving = new AbortController();
          const headers = { ...session.headers, 'x-slow': 'yes' };
          const answering = ask(stage.url, { method, body, headers, signal: leaving.signal });
          while (waiting.length === 0) await pings(session);
          leaving.abort();
          await answering.catch(() => {});
          await noticed(session);
          for (const go of waiting.splice(0)) go();
          await noticed(session);
        }
        const own = await session.get();
        assert.is(own.status, 200);
        await change(stage, 'notes://a');
        assert.is(await changed(own), 'notes://a');
        own.cut();
      },
      {
        maxExchanges: 4,
        authenticate: async (request) => {
          if (request.header('x-slow')) await new Promise<void>((go) => waiting.push(go));
          return authenticate(request);
        },
      },
    );
  });

test("S-03, GHSA-jpw9-pfvf-9f58, CVE-2026-33946: another principal's session, stream or replay is the same 404 as none at all, and is not touched", () =>
  serving(
    async (stage) => {
      const { url, held } = stage;
      const session = await openSession(url, '2025-11-25', ALICE);
      await watch(session, 'notes://a');
      const own = await session.get();
      await change(stage, 'notes://a');
      await changed(own);
      const ownLast = own.events.seen.at(-1)?.id;
      const answering = session.call('a', 'held', { key: 'a' }, { progressToken: 'a' });
      const { ctx, finish } = await held('a');
      ctx.progress(1);
      const { events } = await answering;
      await events.message();
      const last = events.seen.at(-1)?.id;
      const requests: readonly [method: string, body: unknown, headers: Headers][] = [
        ['POST', PING, {}],
        ['POST', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami' } }, {}],
        ['POST', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'a' } }, {}],
        ['POST', { jsonrpc: '2.0', id: 1, result: {} }, {}],
        ['POST', initialize('2025-11-25'), {}],
        ['POST', '{', {}],
        ['GET', undefined, {}],
        ['GET', undefined, { 'last-event-id': last }],
        ['GET', undefined, { 'last-event-id': ownLast }],
        ['DELETE', undefined, {}],
      ];
      for (const [method, body, headers] of requests) {
        const faces = new Set<string>();
        for (const id of [session.id, 'x'.repeat(session.id.length)])
          faces.add(
            await face(await ask(url, { method, body, headers: { ...BOB, ...headers, 'mcp-session-id': id } })),
          );
        assert.is(faces.size, 1, [...faces].join('\n'));
        assert.match([...faces].join(), /^\[404,/);
      }
      assert.not(ctx.signal.aborted);
      ctx.progress(2);
      finish('still mine');
      assert.is((await events.message()).params?.progress, 2);
      assert.is(textIn(await events.message()), 'still mine');
      await change(stage, 'notes://a');
      assert.is(await changed(own), 'notes://a');
      own.cut();
    },
    { authenticate },
  ));

test('a principal reads its own session with another token, and its replay', () =>
  serving(
    async ({ url }) => {
      const session = await openSession(url, '2025-11-25', ALICE);
      const { events } = await session.call(1, 'count', { to: 3 }, { progressToken: 1 });
      const [first] = await events.rest();
      const again = await session.get({ ...as('a2'), 'last-event-id': first?.id });
      assert.is((await messagesOf(again)).length, 4);
      assert.is((await session.delete(as('a2'))).status, 204);
    },
    { authenticate },
  ));

test('a replay id of one session is 404 in another, of the same principal too', () =>
  serving(
    async ({ url }) => {
      const one = await openSession(url, '2025-11-25', ALICE);
      const two = await openSession(url, '2025-11-25', ALICE);
      const { events } = await one.call(1, 'count', { to: 3 }, { progressToken: 1 });
      const [first] = await events.rest();
      assert.is((await refusal(two.get({ 'last-event-id': first?.id }))).status, 404);
    },
    { authenticate },
  ));

test('a session cancels and watches only for itself, although ids of another session are equal', () =>
  serving(
    async (stage) => {
      const { url, held } = stage;
      const [one, two] = [await openSession(url, '2025-11-25', ALICE), await openSession(url, '2025-11-25', ALICE)];
      const [first, second] = [one.call(1, 'held', { key: 'one' }), two.call(1, 'held', { key: 'two' })];
      const [mine, other] = [await held('one'), await held('two')];
      const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
      assert.is((await one.post(cancel)).status, 202);
      assert.ok(mine.ctx.signal.aborted);
      assert.not(other.ctx.signal.aborted);
      other.finish('not cancelled');
      assert.is(textIn(await (await second).json()), 'not cancelled');
      assert.not.match(await (await first).text(), /not cancelled/);
      await watch(one, 'notes://a');
      const [watching, unconcerned] = [await one.get(), await two.get()];
      await change(stage, 'notes://a');
      assert.is(await changed(watching), 'notes://a');
      stage.server.tool('news', {}, () => 'x');
      await stage.clock.advance(10);
      assert.is((await unconcerned.events.message()).method, 'notifications/tools/list_changed');
      watching.cut();
      unconcerned.cut();
    },
    { authenticate },
  ));

/** One client of the crowd: calls a tool with an id, and gives back every message of the answer. */
type Caller = (id: number, args: object, token: string) => Promise<readonly Message[]>;

const CLIENTS = times(100, { quick: 12 });

test(`R-23, CVE-2026-25536: of ${CLIENTS} clients that use the same ids at once, each reads its own answers only`, () =>
  serving(
    async ({ url }) => {
      const revisions = ['2025-03-26', '2025-06-18', '2025-11-25', undefined];
      const clients = await Promise.all(
        Array.from({ length: CLIENTS }, async (_, index): Promise<Caller> => {
          const headers: Headers = index % 3 === 0 ? ALICE : BOB;
          const revision = revisions[index % revisions.length];
          if (revision === undefined)
            return async (id, args, progressToken) =>
              messagesOf(await modernCall(url, 'slowly', args, { id, headers, meta: { progressToken } }));
          const session = await openSession(url, revision, headers);
          return async (id, args, progressToken) =>
            messagesOf(await session.call(id, 'slowly', args, { progressToken }));
        }),
      );
      // Connections first: Node accepts one in each turn of its loop, and turns of a busy server are long.
      await crowd(
        2 * CLIENTS,
        2 * CLIENTS,
        async () => void (await (await ask(url, { body: PING, headers: ALICE })).text()),
      );
      let answers = 0;
      await Promise.all(
        clients.map(async (call, client) => {
          await crowd(10, 2, async (id) => {
            const nonce = `client ${client} call ${id}`;
            // Every client uses the same ids and the same progress tokens.
            const turns = (client * 7 + id * 3) % 11;
            const messages = await call(id, { nonce, turns }, `token ${id}`);
            assert.equal(
              messages.slice(0, -1).map(({ params }) => params?.message),
              turns % 2 === 0 ? [] : [nonce],
            );
            const last = messages.at(-1);
            assert.is(last?.id, id);
            assert.is(textIn(last ?? { jsonrpc: '' }), nonce);
            answers += 1;
          });
        }),
      );
      assert.is(answers, 10 * CLIENTS);
    },
    { authenticate, server: { limits: { maxSessionsPerPrincipal: 1_000 } }, maxExchangesPerPrincipal: 4_000 },
    (server) => {
      const input = {
        type: 'object',
        properties: { nonce: { type: 'string' }, turns: { type: 'integer' } },
        required: ['nonce', 'turns'],
      } as const;
      server.tool('slowly', { input }, async ({ nonce, turns }, { progress }) => {
        for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        if (turns % 2 === 1) progress(1, 1, nonce);
        return nonce;
      });
    },
  ));
