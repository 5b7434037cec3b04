/** Questions over HTTP: on the stream of their call, on the session's where that call can have none, and never to somebody else. */
import * as assert from 'uvu/assert';
import { META } from '../../../src/core/protocol/meta.ts';
import type { Server } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { modern } from './modern.ts';
import { serving } from './session.ts';
import { ask, type Message, openSession, textIn } from './support.ts';

const test = suite('questions over HTTP');

const SCHEMA = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const;
const CAPABLE = { elicitation: {} };

const define = (server: Server): void => {
  server.tool('greet', {}, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'Who?', schema: SCHEMA });
    return answer.status === 'accepted' ? `Hello, ${answer.content.name}!` : answer.status;
  });
};

const CALL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'greet', arguments: {} } };
const answerTo = ({ id }: Message, name: string): object => ({
  jsonrpc: '2.0',
  id,
  result: { action: 'accept', content: { name } },
});

test('a question is on the stream of its call, and its answer gets 202, however the server pins responses', async () => {
  for (const response of ['auto', 'json', 'sse'] as const)
    await serving(
      async ({ url }) => {
        const session = await openSession(url, '2025-11-25', {}, CAPABLE);
        const called = await session.post(CALL);
        assert.match(String(called.headers['content-type']), 'text/event-stream');
        const question = await called.events.message();
        assert.is(question.method, 'elicitation/create');
        const accepted = await session.post(answerTo(question, 'Ada'));
        assert.is(accepted.status, 202);
        assert.is(textIn(await called.events.message()), 'Hello, Ada!');
      },
      { response },
      define,
    );
});

test('a client that accepts no stream for its call is asked on the stream of its session', () =>
  serving(
    async ({ url }) => {
      const session = await openSession(url, '2025-11-25', {}, CAPABLE);
      const listening = await session.get();
      const called = session.post(CALL, { accept: 'application/json' });
      const question = await listening.events.message();
      assert.is(question.method, 'elicitation/create');
      await session.post(answerTo(question, 'Ada'));
      const { status, json } = await called;
      assert.is(status, 200);
      assert.is(textIn(await json()), 'Hello, Ada!');
    },
    {},
    define,
  ));

test('an answer from another session is ignored', () =>
  serving(
    async ({ url }) => {
      const session = await openSession(url, '2025-11-25', {}, CAPABLE);
      const other = await openSession(url, '2025-11-25', {}, CAPABLE);
      const called = await session.post(CALL);
      const question = await called.events.message();
      assert.is((await other.post(answerTo(question, 'Mallory'))).status, 202);
      await session.post(answerTo(question, 'Ada'));
      assert.is(textIn(await called.events.message()), 'Hello, Ada!');
    },
    {},
    define,
  ));

test('a modern client is asked in one JSON body, and comes back on any connection; its state is good for its principal', () =>
  serving(
    async ({ url }) => {
      const call = (who: string, more: object = {}) =>
        ask(
          url,
          modern('tools/call', {
            params: { name: 'greet', arguments: {}, ...more },
            meta: { [META.clientCapabilities]: CAPABLE },
            headers: { authorization: who },
          }),
        );
      const asked = await call('ada');
      assert.match(String(asked.headers['content-type']), 'application/json');
      const { result } = await asked.json();
      assert.is(result?.resultType, 'input_required');
      const back = {
        requestState: result?.requestState,
        inputResponses: { elicit: { action: 'accept', content: { name: 'Ada' } } },
      };
      const refused = await call('bob', back);
      assert.is((await refused.json()).error?.code, -32602);
      assert.is(textIn(await (await call('ada', back)).json()), 'Hello, Ada!');
    },
    { authenticate: (request) => request.header('authorization') },
    define,
  ));
