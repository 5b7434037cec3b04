/** The typed methods of the test client, in both eras, beside its raw methods on one wire. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import type { ChannelMail } from '../../src/client/channels/channel.ts';
import { createServer, type Server } from '../../src/index.ts';
import { SharedWireChannel } from '../../src/testing/shared-wire.ts';
import {
  connect,
  ErrorResponse,
  SimulatedClock,
  TestClient,
  type TestClientOptions,
  type Wire,
} from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';
import { rejection } from '../harness/results.ts';
import { wireChecker } from '../harness/wire.ts';

const test = suite('TestClient, typed');

const MESSAGES = [{ role: 'user', content: { type: 'text', text: 'add' } }] as const;

function served(clock?: SimulatedClock): Server {
  const server = createServer({
    name: 's',
    version: '1',
    log: () => {},
    limits: { pageSize: 2 },
    ...(clock ? { clock } : {}),
  });
  server.tool('echo', { input: z.object({ n: z.number() }) }, ({ n }) => String(n));
  server.tool('order', {}, async (_args, ctx) => {
    const answer = await ctx.elicit({
      message: 'Which size?',
      schema: z.object({ size: z.string(), gift: z.boolean().default(true) }),
    });
    return answer.status === 'accepted' ? `${answer.content.size} ${answer.content.gift}` : answer.status;
  });
  server.tool('brew', {}, async (_args, ctx) => {
    const { content } = await ctx.sample({
      messages: [{ role: 'user', content: { type: 'text', text: 'Tea?' } }],
      maxTokens: 9,
    });
    const roots = await ctx.roots();
    return `${JSON.stringify(content)} ${roots.map(({ uri }) => uri).join()}`;
  });
  server.tool('wait', {}, () => new Promise(() => {}));
  server.resource(
    'note://{id}',
    { name: 'notes', complete: { id: () => ['1', '2'] } },
    ({ variables }) => `note ${String(variables.id)}`,
  );
  server.prompt(
    'review',
    {
      arguments: [{ name: 'language' }],
      complete: { language: (typed) => ['perl', 'php'].filter((each) => each.startsWith(typed)) },
    },
    ({ language }) => `Review ${language}`,
  );
  return server;
}

const ERAS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const;

/** Opens a client of one revision; all that crosses the wire is checked against the official schemas. */
async function using(
  revision: (typeof ERAS)[number],
  body: (client: TestClient, server: Server) => Promise<void>,
  options: TestClientOptions = {},
): Promise<void> {
  const server = served();
  const check = wireChecker(revision);
  const client = await connect(server, { onMessage: ({ direction, text }) => check(direction, text), ...options });
  if (revision !== '2026-07-28') await client.initialize(revision);
  await body(client, server);
  await client.close();
  await server.close();
}

for (const revision of ERAS) {
  test(`lists, reads, gets and completes in ${revision}`, () =>
    using(revision, async (client) => {
      assert.equal(
        (await client.tools()).map(({ name }) => name),
        ['echo', 'order', 'brew', 'wait'],
      );
      const [content] = (await client.read('note://7')).contents;
      assert.is(content && 'text' in content && content.text, 'note 7');
      const { messages } = await client.prompt('review', { language: 'php' });
      assert.equal(messages[0]?.content, { type: 'text', text: 'Review php' });
      assert.equal((await client.complete({ prompt: 'review' }, { name: 'language', value: 'ph' })).values, ['php']);
      assert.equal((await client.complete({ resource: 'note://{id}' }, { name: 'id', value: '' })).values, ['1', '2']);
      // The session of the test is that of the typed methods: it was opened once.
      const methods = client.messages.map(({ parsed }) => Object(parsed).method);
      assert.is(methods.filter((method) => method === 'initialize').length, revision === '2026-07-28' ? 0 : 1);
      assert.equal(client.rest(), []);
    }));

  test(`answers sampling and roots in ${revision}, also for a raw request of a session`, () =>
    using(
      revision,
      async (client) => {
        const expected = '{"type":"text","text":"oolong"} file:///tea';
        assert.equal((await client.call('brew')).content, [{ type: 'text', text: expected }]);
        if (revision === '2026-07-28') return;
        const raw = await client.send('tools/call', { name: 'brew' });
        assert.equal(raw.content, [{ type: 'text', text: expected }]);
        assert.equal(client.rest(), []);
      },
      {
        sample: () => ({ role: 'assistant', model: 'tea-1', content: { type: 'text', text: 'oolong' } }),
        roots: () => [{ uri: 'file:///tea' }],
      },
    ));
}

for (const revision of ['2025-06-18', '2025-11-25', '2026-07-28'] as const)
  test(`answers forms in ${revision}, and fills in the schema's defaults`, () =>
    using(
      revision,
      async (client) => {
        assert.equal((await client.call('order')).content, [{ type: 'text', text: 'small true' }]);
      },
      { elicit: ({ message }) => (message === 'Which size?' ? { size: 'small' } : 'cancel') },
    ));

for (const revision of ['2025-11-25', '2026-07-28'] as const)
  test(`declares in ${revision} that its model understands tools`, async () => {
    const server = createServer({ name: 'agent', version: '1', log: () => {} });
    server.tool('think', {}, async (_args, ctx) => {
      const tools = [{ name: 'add', inputSchema: { type: 'object' } }] as const;
      return (await ctx.sample({ messages: MESSAGES, maxTokens: 9, tools })).stopReason ?? '';
    });
    const client = await connect(server, {
      sample: () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: '' }, stopReason: 'toolUse' }),
      sampling: { tools: true },
    });
    if (revision !== '2026-07-28') await client.initialize(revision);
    assert.equal((await client.call('think')).content, [{ type: 'text', text: 'toolUse' }]);
    await client.close();
    await server.close();
  });

test('raw and typed requests share one session, and their ids never meet', () =>
  using('2025-11-25', async (client) => {
    const [typed, raw] = await Promise.all([
      client.tools(),
      client.send('tools/call', { name: 'echo', arguments: { n: 1 } }),
    ]);
    assert.is(typed.length, 4);
    assert.equal(raw.content, [{ type: 'text', text: '1' }]);
    const ids = client.messages.flatMap(({ direction, parsed }) =>
      direction === 'in' ? (Object(parsed).id ?? []) : [],
    );
    assert.is(new Set(ids).size, ids.length);
  }));

test('a request that no function answers is left to the test', async () => {
  const server = served();
  const client = await connect(server);
  await client.initialize('2025-11-25', { elicitation: {} });
  await client.tools();
  const call = client.send('tools/call', { name: 'order' });
  const { id, method } = Object(await client.next());
  assert.is(method, 'elicitation/create');
  client.raw(JSON.stringify({ jsonrpc: '2.0', id, result: { action: 'accept', content: { size: 'large' } } }));
  assert.equal((await call).content, [{ type: 'text', text: 'large true' }]);
  await client.close();
  await server.close();
});

test('an error response is that of every client, with the code, message and data of a raw request', () =>
  using('2026-07-28', async (client) => {
    const raw = await rejection(client.modern('prompts/get', { name: 'none' }));
    const typed = await rejection(client.prompt('none'));
    assert.ok(raw instanceof ErrorResponse && typed instanceof ErrorResponse);
    assert.equal([typed.code, typed.text, typed.data], [raw.code, raw.message, raw.data]);
    assert.match(typed.stack ?? '', /typed\.test\.[jt]s/);
  }));

test('a typed call times out on the simulated clock, and its error shows what was received', async () => {
  const clock = new SimulatedClock();
  const server = served(clock);
  const client = await connect(server, { clock });
  await client.initialize();
  const failed = rejection(client.call('wait', {}, { timeoutMs: 1_000 }));
  await client.tools();
  await clock.advance(1_000);
  const { message } = await failed;
  assert.match(message, 'no response to tools/call within 1 s (timeoutMs); received:');
  assert.match(message, '"name":"echo"');
  await client.close();
  const closing = server.close();
  await clock.advance(10_000);
  await closing;
});

/** A server that the test speaks for, and that answers nothing. */
class Silent implements Wire {
  readonly closed: Promise<string>;
  say: (text: string) => void = () => {};
  end: (reason: string) => void = () => {};
  constructor() {
    this.closed = new Promise((resolve) => {
      this.end = resolve;
    });
  }
  send(): void {}
  onText(listener: (text: string) => void): void {
    this.say = listener;
  }
  close(): void {
    this.end('done');
  }
}

test('a typed method that gets no answer fails at the deadline of the test', async () => {
  const client = new TestClient(new Silent(), { deadlineMs: 20 });
  const { message } = await rejection(client.tools());
  assert.is(message, 'waited 20 ms for the end of tools(); received nothing');
  await client.close();
});

test('a typed method fails at once when the connection closes, and so do later ones', async () => {
  const wire = new Silent();
  const client = new TestClient(wire);
  const waiting = rejection(client.tools());
  wire.end('went away');
  assert.match((await waiting).message, 'the connection is closed (went away)');
  assert.match((await rejection(client.read('note://1'))).message, 'the connection is closed (went away)');
});

test('a wire that has ended before the typed client opens its channel ends the client at once', () => {
  const channel = new SharedWireChannel({ raw: () => {} }, undefined);
  channel.end('went away');
  const mail: ChannelMail[] = [];
  channel.open({ address: 'client', send: (each) => mail.push(each) });
  const failure = { reason: 'closed', message: 'went away', carriedOut: 'unknown' };
  assert.equal(mail, [{ type: 'opened' }, { type: 'gone', failure, final: true }]);
});
