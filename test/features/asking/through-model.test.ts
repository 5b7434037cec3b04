/** Asking through the model: where a client cannot be asked, its model is, by the result of the call, and answers with a tool. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../../src/core/protocol/json.ts';
import { connect, settled, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';
import { errorResponse, textOf } from '../../harness/results.ts';
import { ALL, accept, Modern, type Stage, stage } from './support.ts';

const test = suite('asking through the model');

const SIZE = z.object({ size: z.enum(['S', 'L']) });
const NONE: JsonObject = {};

/** A server whose tool "order" asks for a size, and "quote" has an output schema besides. */
function shop(
  options: Parameters<typeof stage>[0] = {},
): Stage & { readonly runs: { begun: number; ended: string[] } } {
  const runs = { begun: 0, ended: [] as string[] };
  const shown = stage({ askThroughModel: true, ...options });
  const { server } = shown;
  server.tool('order', { input: z.object({ item: z.string().default('coat') }) }, async ({ item }, ctx) => {
    runs.begun += 1;
    try {
      const answer = await ctx.elicit({ message: `Which size of ${item}?`, schema: SIZE });
      const said = answer.status === 'accepted' ? answer.content.size : answer.status;
      runs.ended.push(said);
      return `${item}: ${said}`;
    } catch (error) {
      runs.ended.push(error instanceof Error ? error.constructor.name : 'thrown');
      throw error;
    }
  });
  server.tool('quote', { output: z.object({ price: z.number() }) }, async (_, ctx) => {
    await ctx.elicit({ message: 'Which size?', schema: SIZE });
    return { price: 3 };
  });
  server.prompt('ask', {}, async (_, ctx) => {
    await ctx.elicit({ message: 'Which size?', schema: SIZE });
    return 'asked';
  });
  return { ...shown, runs };
}

async function session(server: Stage['server'], capabilities = NONE): Promise<TestClient> {
  const client = await inSession(server, '2025-11-25', capabilities);
  return client;
}

test('S-86 a server that asks through the model starts without an entry in its log, and after each registration', async () => {
  const { server, told } = stage({ askThroughModel: true });
  const client = await connect(server);
  server.tool('late', {}, () => 'done');
  await client.initialize('2025-11-25');
  const { tools } = await client.send('tools/list');
  assert.equal(Array.isArray(tools) && tools.map(({ name }: { name?: unknown }) => name).sort(), [
    'late',
    'troupe_answer',
  ]);
  assert.equal(told, []);
  await server.close();
});

/** The id that a result tells its model. */
function idIn(result: JsonObject): string {
  const [, id] = /\{"id":"([^"]+)"/.exec(textOf(result)) ?? [];
  return id ?? (assert.unreachable(`the result asks nothing: ${JSON.stringify(result)}`) as never);
}

const large = accept({ size: 'L' });

/** Both eras, as one thing: calls a tool, and answers. */
interface Caller {
  call(name: string, args?: JsonObject): Promise<JsonObject>;
  close(): Promise<void>;
}

const eras: Readonly<Record<string, (server: Stage['server']) => Promise<Caller>>> = {
  async 'a session'(server) {
    const client = await session(server);
    return {
      call: (name, args = {}) => client.send('tools/call', { name, arguments: args }),
      close: () => client.close(),
    };
  },
  async 'a modern client'(server) {
    const modern = await Modern.of(server, NONE);
    return {
      call: (name, args = {}) => modern.send({ name, arguments: args }),
      close: () => modern.client.close(),
    };
  },
};

const answer = (caller: Caller, id: string, answers: JsonObject): Promise<JsonObject> =>
  caller.call('troupe_answer', { id, answers });

for (const [era, open] of Object.entries(eras)) {
  test(`ends the call of ${era} with its questions, and continues with the answer`, async () => {
    const { server, runs } = shop();
    const caller = await open(server);
    const asked = await caller.call('order');
    assert.is(asked.isError, undefined);
    const text = textOf(asked);
    assert.match(text, 'Question "elicit": Which size of coat?');
    assert.match(text, '"size":{"type":"string","enum":["S","L"]}');
    assert.match(text, 'call the tool "troupe_answer"');
    const result = await answer(caller, idIn(asked), { elicit: large });
    assert.is(textOf(result), 'coat: L');
    assert.equal(runs, { begun: 1, ended: ['L'] });
    await caller.close();
  });

  test(`takes an answer of ${era} once`, async () => {
    const { server, runs } = shop();
    const caller = await open(server);
    const id = idIn(await caller.call('order'));
    await answer(caller, id, { elicit: { action: 'decline' } });
    const again = await answer(caller, id, { elicit: large });
    assert.is(again.isError, true);
    assert.match(textOf(again), 'No call waits for an answer with this id. It was already answered');
    assert.equal(runs.ended, ['declined']);
    await caller.close();
  });

  test(`asks ${era} again with what was wrong with the answer`, async () => {
    const { server } = shop();
    const caller = await open(server);
    const first = idIn(await caller.call('order'));
    const second = await answer(caller, first, { elicit: accept({ size: 'XXL' }) });
    assert.match(textOf(second), /Which size of coat\?(.|\n)*size(.|\n)*XXL/);
    const id = idIn(second);
    assert.is.not(id, first);
    assert.is(textOf(await answer(caller, id, { elicit: large })), 'coat: L');
    await caller.close();
  });

  test(`says to ${era} what is no answer at all, and waits on`, async () => {
    const { server } = shop();
    const caller = await open(server);
    const id = idIn(await caller.call('order'));
    const misfits: readonly [JsonValue, string][] = [
      [{}, 'answers: expected an object with "elicit", got'],
      ['L', 'answers: expected an object with "elicit", got string'],
      [{ size: large }, 'answers.size: unknown question; expected "elicit"'],
      [{ elicit: 'L' }, 'answers.elicit: expected an object whose "action" is'],
      [{ elicit: { action: 'yes' } }, 'answers.elicit: expected an object whose "action" is'],
      [{ elicit: { action: 'accept', content: 'L' } }, 'answers.elicit: content: expected an object'],
    ];
    for (const [answers, problem] of misfits) {
      const result = await caller.call('troupe_answer', { id, answers });
      assert.is(result.isError, true);
      assert.match(textOf(result), problem);
    }
    assert.is(textOf(await answer(caller, id, { elicit: large })), 'coat: L');
    await caller.close();
  });

  test(`expires for ${era}, and the handler gets an error`, async () => {
    const { server, runs, clock } = shop({ limits: { askMs: 5_000 } });
    const caller = await open(server);
    const id = idIn(await caller.call('order'));
    await clock.advance(5_000);
    assert.equal(runs.ended, ['Unanswered']);
    assert.match(textOf(await answer(caller, id, { elicit: large })), 'its 5 s have passed');
    await caller.close();
  });

  test(`asks ${era} several things at once, each by its name`, async () => {
    const { server } = stage({ askThroughModel: true });
    server.tool('all', {}, async (_, ctx) => {
      const { size, page, reply, where } = await ctx.ask({
        size: { elicit: { message: 'Which size?', schema: SIZE } },
        page: { elicitUrl: { message: 'Pay here', url: 'https://example.com/pay' } },
        reply: {
          sample: {
            systemPrompt: 'Be brief.',
            messages: [
              { role: 'user', content: { type: 'text', text: 'What is this?' } },
              { role: 'user', content: { type: 'image', data: 'AAAA', mimeType: 'image/png' } },
            ],
            maxTokens: 9,
          },
        },
        where: { roots: true },
      });
      return JSON.stringify([size, page.status, reply.content, where.map(({ uri }) => uri)]);
    });
    const caller = await open(server);
    const asked = await caller.call('all');
    const text = textOf(asked);
    for (const part of ['"size": Which size?', '"page": Pay here', 'https://example.com/pay', 'system: Be brief.'])
      assert.match(text, part);
    assert.match(text, 'user: What is this?\nuser: (image, see below)');
    assert.equal((asked.content as JsonValue[])[1], { type: 'image', data: 'AAAA', mimeType: 'image/png' });
    const bad = await answer(caller, idIn(asked), { reply: accept({ words: 'A cat.' }), where: accept({ uris: [1] }) });
    assert.match(textOf(bad), 'answers.reply: content: expected an object with "text"');
    assert.match(textOf(bad), 'answers.where: content: expected an object with "uris"');
    const some = await answer(caller, idIn(asked), {
      size: large,
      reply: accept({ text: 'A cat.' }),
      where: accept({ uris: ['file:///a'] }),
    });
    // What was not answered is asked again, alone.
    assert.match(textOf(some), 'Question "page"');
    assert.not.match(textOf(some), 'Question "size"');
    assert.equal(JSON.parse(textOf(await answer(caller, idIn(some), { page: { action: 'accept' } }))), [
      { status: 'accepted', content: { size: 'L' } },
      'accepted',
      { type: 'text', text: 'A cat.' },
      ['file:///a'],
    ]);
    await caller.close();
  });

  test(`asks ${era} one thing after another`, async () => {
    const { server } = stage({ askThroughModel: true });
    server.tool('twice', {}, async (_, ctx) => {
      const first = await ctx.elicit({ message: 'One?', schema: SIZE });
      const second = await ctx.elicit({ message: 'Two?', schema: SIZE });
      return `${first.status} ${second.status}`;
    });
    const caller = await open(server);
    const one = await caller.call('twice');
    const two = await answer(caller, idIn(one), { elicit: large });
    assert.match(textOf(two), 'Question "elicit-2": Two?');
    const done = await answer(caller, idIn(two), { 'elicit-2': { action: 'cancel' } });
    assert.is(textOf(done), 'accepted cancelled');
    await caller.close();
  });
}

test('asks the client what it can be asked first, and the model for the rest', async () => {
  const { server } = stage({ askThroughModel: true });
  server.tool('mixed', {}, async (_, ctx) => {
    const { size, where } = await ctx.ask({
      size: { elicit: { message: 'Which size?', schema: SIZE } },
      where: { roots: true },
    });
    return `${size.status} ${where.length}`;
  });
  const modern = await Modern.of(server, { roots: {} });
  const { inputRequests, requestState } = await modern.ask('mixed');
  assert.equal(Object.keys(inputRequests), ['where']);
  const asked = await modern.retry('mixed', requestState, { where: { roots: [] } });
  assert.match(textOf(asked), 'Question "size"');
  assert.not.match(textOf(asked), 'Question "where"');
  const done = { name: 'troupe_answer', arguments: { id: idIn(asked), answers: { size: large } } };
  assert.is(textOf(await modern.send(done)), 'accepted 0');
  // The state was already answered.
  const late = await errorResponse(modern.retry('mixed', requestState, { where: { roots: [] } }));
  assert.match(late.message, 'was already answered');
  await modern.client.close();

  const client = await session(server, { roots: {} });
  const call = client.send('tools/call', { name: 'mixed', arguments: {} });
  const question = (await client.next((message) => JSON.stringify(message).includes('roots/list'))) as JsonObject;
  await settled();
  assert.equal(client.rest(), []);
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: String(question.id), result: { roots: [] } }));
  const asks = await call;
  const answered = { name: 'troupe_answer', arguments: { id: idIn(asks), answers: { size: large } } };
  assert.is(textOf(await client.send('tools/call', answered)), 'accepted 0');
  await client.close();
});

test('asks a client that can be asked, and not its model', async () => {
  const { server } = shop();
  const modern = await Modern.of(server, ALL);
  const { inputRequests } = await modern.ask('order');
  assert.equal(Object.keys(inputRequests), ['elicit']);
  await modern.client.close();
});

test('gives the result of a tool with an output schema by the tool that answers', async () => {
  const { server } = shop();
  const client = await session(server);
  const asked = await client.send('tools/call', { name: 'quote', arguments: {} });
  assert.is(asked.isError, true);
  assert.is(asked.structuredContent, undefined);
  const params = { name: 'troupe_answer', arguments: { id: idIn(asked), answers: { elicit: large } } };
  assert.equal((await client.send('tools/call', params)).structuredContent, { price: 3 });
  await client.close();
});

test('an anonymous session answers for itself only', async () => {
  const { server } = shop();
  const [mine, other] = [await session(server), await session(server)];
  const modern = await Modern.of(server, NONE);
  const id = idIn(await mine.send('tools/call', { name: 'order', arguments: {} }));
  const params = { name: 'troupe_answer', arguments: { id, answers: { elicit: large } } };
  assert.match(textOf(await other.send('tools/call', params)), 'No call waits');
  assert.match(textOf(await modern.send(params)), 'No call waits');
  assert.is(textOf(await mine.send('tools/call', params)), 'coat: L');
  for (const client of [mine, other, modern.client]) await client.close();
});

test('an unknown id gets a result that says what to do', async () => {
  const { server } = shop();
  const client = await session(server);
  for (const id of ['unknown', 7, undefined]) {
    const args = { ...(id === undefined ? {} : { id }), answers: { elicit: large } };
    const result = await client.call('troupe_answer', args);
    assert.is(result.isError, true);
    assert.match(JSON.stringify(result), 'call the first tool again');
  }
  await client.close();
});

test('the oldest that wait give way', async () => {
  const { server, runs } = shop({ limits: { maxParked: 1 } });
  const client = await session(server);
  const call = () => client.send('tools/call', { name: 'order', arguments: {} });
  const [first, second] = [idIn(await call()), idIn(await call())];
  await settled();
  assert.equal(runs.ended, ['Unanswered']);
  assert.match(
    textOf(
      await client.send('tools/call', {
        name: 'troupe_answer',
        arguments: { id: first, answers: { elicit: large } },
      }),
    ),
    'No call waits',
  );
  assert.is(
    textOf(
      await client.send('tools/call', {
        name: 'troupe_answer',
        arguments: { id: second, answers: { elicit: large } },
      }),
    ),
    'coat: L',
  );
  await client.close();
});

test('without the option, or without its tool, the call says what is missing', async () => {
  const { server } = shop({ askThroughModel: false });
  const client = await session(server);
  const { tools } = await client.send('tools/list');
  assert.not.match(JSON.stringify(tools), 'troupe_answer');
  const result = await client.call('order');
  assert.is(result.isError, true);
  assert.match(JSON.stringify(result), 'does not declare the capability');
  await client.close();

  const other = shop();
  const caller = await session(other.server);
  assert.match(JSON.stringify(await caller.send('tools/list')), 'troupe_answer');
  assert.not.match(JSON.stringify(other.server.tools.definitions().map(({ name }) => name)), 'troupe_answer');
  other.server.tools.remove('troupe_answer');
  assert.match(JSON.stringify(await caller.call('order')), 'does not declare the capability');
  await caller.close();
});

test('a prompt keeps its error', async () => {
  const { server } = shop();
  const modern = await Modern.of(server, NONE);
  const { code } = await errorResponse(modern.send({ name: 'ask' }, 'prompts/get'));
  assert.is(code, -32021);
  await modern.client.close();
});

test('a question that a revision cannot show in a form is asked through the model', async () => {
  const { server } = stage({ askThroughModel: true });
  server.tool('colours', {}, async (_, ctx) => {
    const schema = z.object({ colours: z.array(z.enum(['red', 'blue'])) });
    const answer = await ctx.elicit({ message: 'Which colours?', schema });
    return answer.status === 'accepted' ? answer.content.colours.join() : answer.status;
  });
  const client = await inSession(server, '2025-06-18', { elicitation: {} });
  const asked = await client.send('tools/call', { name: 'colours', arguments: {} });
  const answers = { elicit: accept({ colours: ['red', 'blue'] }) };
  const result = await client.send('tools/call', { name: 'troupe_answer', arguments: { id: idIn(asked), answers } });
  assert.is(textOf(result), 'red,blue');
  await client.close();
});

test('a request that answers may be cancelled, and the handler with it', async () => {
  const { server } = stage({ askThroughModel: true });
  let aborted = false;
  server.tool('slow', {}, async (_, ctx) => {
    await ctx.elicit({ message: 'Which size?', schema: SIZE });
    await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()));
    aborted = true;
  });
  const client = await session(server);
  const id = idIn(await client.send('tools/call', { name: 'slow', arguments: {} }));
  const params = { name: 'troupe_answer', arguments: { id, answers: { elicit: large } } };
  client.raw(JSON.stringify({ jsonrpc: '2.0', id: 'a', method: 'tools/call', params }));
  await settled();
  client.notify('notifications/cancelled', { requestId: 'a' });
  await settled();
  assert.is(aborted, true);
  await client.close();
});

test('the name of its tool is taken', () => {
  const { server } = shop();
  assert.throws(() => server.tool('troupe_answer', {}, () => 'mine'), /already registered/);
});
