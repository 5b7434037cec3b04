/** Asking the client of a session: a request of the server's on its stream, and a response. */
import * as assert from 'uvu/assert';
import * as z from 'zod';
import type { JsonObject, JsonValue } from '../../../src/core/protocol/json.ts';
import { type Revision, SUPPORTED_REVISIONS } from '../../../src/core/protocol/revisions.ts';
import type { Server } from '../../../src/index.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { connect, settled, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';
import { textOf } from '../../harness/results.ts';
import { wireChecker } from '../../harness/wire.ts';
import { ALL, accept, Modern, stage } from './support.ts';

const test = suite('asking a session');

const NAME = { message: 'Who?', schema: z.object({ name: z.string() }) };
const SIZES = {
  message: 'Which size?',
  schema: {
    type: 'object',
    properties: {
      size: {
        type: 'string',
        oneOf: [
          { const: 'S', title: 'Small' },
          { const: 'L', title: 'Large' },
        ],
      },
    },
    required: ['size'],
  },
} as const;

interface Asked {
  readonly id: JsonValue;
  readonly method: string;
  readonly params: JsonObject;
}

async function open(server: Server, revision = '2025-11-25', capabilities: JsonObject = ALL): Promise<TestClient> {
  const check = wireChecker('2025-11-25');
  const client = await connect(server, {
    onMessage: ({ direction, text }) => revision === '2025-11-25' && check(direction, text),
  });
  await client.initialize(revision, capabilities);
  return client;
}

/** The next request of the server's. */
async function asked(client: TestClient): Promise<Asked> {
  const message = await client.next(
    (each) => isObjectInTest(each) && each.method !== undefined && each.id !== undefined,
    'a question',
  );
  if (!isObjectInTest(message) || typeof message.method !== 'string') throw new Error('expected a request');
  return {
    id: message.id ?? null,
    method: message.method,
    params: isObjectInTest(message.params) ? message.params : {},
  };
}

function respond(client: TestClient, { id }: Asked, result: JsonObject): void {
  client.raw(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

test('the handler waits for the response, in every revision that can be asked', async () => {
  const { server } = stage();
  server.tool('greet', {}, async (_, ctx) => {
    const answer = await ctx.elicit(NAME);
    return answer.status === 'accepted' ? `Hello, ${answer.content.name}!` : answer.status;
  });
  for (const revision of ['2025-06-18', '2025-11-25']) {
    const client = await open(server, revision);
    const result = client.call('greet');
    const question = await asked(client);
    assert.is(question.method, 'elicitation/create');
    respond(client, question, accept({ name: 'Ada' }));
    assert.is(textOf(await result), 'Hello, Ada!');
    await client.close();
  }
  await server.close();
});

test('choices with titles are sent to a client of 2025-06-18 in the form of its revision', async () => {
  const { server } = stage();
  server.tool('size', {}, async (_, ctx) => (await ctx.elicit(SIZES)).status);
  const client = await open(server, '2025-06-18');
  const result = client.call('size');
  const question = await asked(client);
  assert.match(JSON.stringify(question.params), '"enumNames":["Small","Large"]');
  respond(client, question, { action: 'cancel' });
  await result;
  await server.close();
});

test('sampling and roots are asked as requests of their own, all at once', async () => {
  const { server } = stage();
  server.tool('all', {}, async (_, ctx) => {
    const { said, dirs } = await ctx.ask({
      said: { sample: { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 9 } },
      dirs: { roots: true },
    });
    return `${said.model} ${dirs.length}`;
  });
  const client = await open(server);
  const result = client.call('all');
  const questions = [await asked(client), await asked(client)];
  assert.equal(
    questions.map(({ method }) => method),
    ['sampling/createMessage', 'roots/list'],
  );
  assert.is.not(questions[0]?.id, questions[1]?.id);
  // In another order than they were asked.
  if (questions[1]) respond(client, questions[1], { roots: [{ uri: 'file:///a' }, { uri: 'file:///b' }] });
  if (questions[0])
    respond(client, questions[0], { role: 'assistant', content: { type: 'text', text: 'hi' }, model: 'm' });
  assert.is(textOf(await result), 'm 2');
  await server.close();
});

test('includeContext is sent to clients that support it, and the log says once that it was dropped', async () => {
  const { server, told } = stage();
  for (const includeContext of ['none', 'thisServer', 'allServers'] as const)
    server.tool(includeContext, {}, async (_, ctx) => {
      const messages = [{ role: 'user', content: { type: 'text', text: 'x' } }] as const;
      return (await ctx.sample({ messages, maxTokens: 1, includeContext })).model;
    });
  const sampled = { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' };
  const sent = async (revision: Revision, sampling: JsonObject, name: string): Promise<JsonObject> => {
    if (revision === '2026-07-28') {
      const modern = await Modern.of(server, { sampling });
      const { inputRequests, requestState } = await modern.ask(name);
      assert.is(textOf(await modern.retry(name, requestState, { sample: sampled })), 'm');
      return inputRequests.sample?.params ?? {};
    }
    const client = await inSession(server, revision, { sampling });
    const result = client.call(name);
    const question = await asked(client);
    respond(client, question, sampled);
    assert.is(textOf(await result), 'm');
    return question.params;
  };
  for (const revision of SUPPORTED_REVISIONS)
    for (const sampling of [{}, { context: {} }])
      for (const name of ['none', 'thisServer', 'allServers']) {
        const declared = 'context' in sampling || revision < '2025-11-25';
        const { includeContext, messages } = await sent(revision, sampling, name);
        assert.is(includeContext, name === 'none' || declared ? name : undefined, `${revision} ${name}`);
        assert.is(Array.isArray(messages) && messages.length, 1);
      }
  assert.is(told.length, 1, told.join());
  assert.match(told[0] ?? '', /^warning: .*thisServer.*: ctx\.sample: includeContext is not sent/);
  await server.close();
});

test('an answer that does not fit is asked for again, as another request', async () => {
  const { server } = stage();
  server.tool('size', {}, async (_, ctx) => {
    const answer = await ctx.elicit(SIZES);
    return answer.status === 'accepted' ? answer.content.size : answer.status;
  });
  const client = await open(server);
  const result = client.call('size');
  const first = await asked(client);
  respond(client, first, accept({ size: 'XL' }));
  const second = await asked(client);
  assert.is.not(second.id, first.id);
  assert.match(String(second.params.message), 'The last answer does not fit: size: expected');
  respond(client, second, accept({ size: 'S' }));
  assert.is(textOf(await result), 'S');
  await server.close();
});

test('a client that answers with an error has not answered', async () => {
  const { server } = stage();
  server.tool('sample', {}, async (_, ctx) =>
    JSON.stringify(
      await ctx.sample({ messages: [{ role: 'user', content: { type: 'text', text: 'x' } }], maxTokens: 1 }),
    ),
  );
  const client = await open(server);
  const result = client.call('sample');
  const { id } = await asked(client);
  client.raw(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -1, message: 'User rejected sampling request' } }));
  assert.is((await result).isError, true);
  assert.match(textOf(await result), 'User rejected sampling request (-1)');
  await server.close();
});

test('unexpected responses, or responses to questions of another session, are ignored', async () => {
  const { server, told } = stage();
  server.tool('greet', {}, async (_, ctx) => (await ctx.elicit(NAME)).status);
  const [one, other] = [await open(server), await open(server)];
  const result = one.call('greet');
  const question = await asked(one);
  respond(other, question, { action: 'decline' });
  for (const id of ['ask-9', 1, '', 'nobody']) one.raw(JSON.stringify({ jsonrpc: '2.0', id, result: {} }));
  respond(one, question, { action: 'cancel' });
  respond(one, question, { action: 'decline' });
  assert.is(textOf(await result), 'cancelled');
  assert.equal(told, []);
  await server.close();
});

test('a cancelled request takes its question back', async () => {
  const { server } = stage();
  let why: unknown;
  server.tool('greet', {}, async (_, ctx) => {
    try {
      await ctx.elicit(NAME);
    } catch (error) {
      why = error;
    }
  });
  const client = await open(server);
  client.send('tools/call', { name: 'greet' }).catch(() => {});
  const { id } = await asked(client);
  client.notify('notifications/cancelled', { requestId: 2, reason: 'enough' });
  const withdrawn = await client.notification('notifications/cancelled');
  assert.is(withdrawn.requestId, id);
  await settled();
  assert.match(String(why), 'enough');
  await server.close();
});

test('the user has limits.askMs, independent of the timeout of its request; a handler that continues without an answer has its full time again', async () => {
  const { server, clock } = stage({ limits: { askMs: 300_000, timeoutMs: 1_000 } });
  server.tool('greet', {}, async (_, ctx) => {
    const answer = await ctx.elicit(NAME).catch((error: unknown) => String(error));
    if (typeof answer === 'string') return answer;
    await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
    return 'too late';
  });
  const client = await open(server);
  const slow = client.call('greet').then(
    () => 'an answer',
    (error: Error) => error.message,
  );
  const question = await asked(client);
  await clock.advance(299_000);
  respond(client, question, accept({ name: 'Ada' }));
  await settled();
  await clock.advance(1_000);
  assert.match(await slow, 'timeout of 1 s');
  const never = client.call('greet');
  await asked(client);
  await clock.advance(300_000);
  assert.match(textOf(await never), 'nobody answered within 5 min');
  await client.notification('notifications/cancelled');
  await server.close();
});

test('a session that ends takes its questions with it', async () => {
  const { server, clock, told } = stage();
  let why: unknown;
  server.tool('greet', {}, async (_, ctx) => {
    await ctx.elicit(NAME).catch((error: unknown) => {
      why = error;
    });
    return 'done';
  });
  const client = await open(server);
  client.call('greet').catch(() => {});
  await asked(client);
  const over = Promise.all([client.close(), server.close()]);
  await clock.advance(3_000);
  await over;
  await settled();
  assert.ok(why instanceof Error);
  assert.equal(told, []);
});

test('a client that declares no capability is asked nothing, and the error names what is missing', async () => {
  const { server } = stage();
  server.tool('greet', {}, async (_, ctx) => (await ctx.elicit(NAME)).status);
  const client = await open(server, '2025-11-25', {});
  const result = await client.call('greet');
  assert.is(result.isError, true);
  assert.match(textOf(result), 'elicitation.form');
  await server.close();
});
