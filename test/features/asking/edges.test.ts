/** Asking at the edges: when nobody waits any more, when what is asked cannot be, and when a client brings more than it was asked for. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import type { Server } from '../../../src/index.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { settled, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';
import { textOf } from '../../harness/results.ts';
import { ALL, accept, Modern, type Stage, stage } from './support.ts';

const test = suite('asking, at the edges');

const NAME = {
  message: 'Who?',
  schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
} as const;
const ADA = accept({ name: 'Ada' });

/** Either era, as one thing: it calls the tool, and answers what it asks with "Ada". */
interface Caller {
  readonly client: TestClient;
  call(): Promise<JsonObject>;
}

const eras: Readonly<Record<string, (server: Server) => Promise<Caller>>> = {
  async 'a session'(server) {
    const client = await inSession(server, '2025-11-25', ALL);
    return { client, call: () => client.send('tools/call', { name: 'it' }) };
  },
  async 'a modern client'(server) {
    const modern = await Modern.of(server);
    return { client: modern.client, call: () => modern.send({ name: 'it' }) };
  },
};

/** The conversations that live. */
function conversations({ server }: Stage): ReadonlySet<string> {
  const live = new Set<string>();
  server.inspect((record) => {
    if (record.type === 'created' && record.actor.startsWith('request/')) live.add(record.actor);
    if (record.type === 'gone') live.delete(record.actor);
  });
  return live;
}

function idOf({ messages }: TestClient, at: number): number {
  const sent = messages[at]?.parsed;
  return isObjectInTest(sent) && typeof sent.id === 'number' ? sent.id : (assert.unreachable() as never);
}

for (const [era, open] of Object.entries(eras)) {
  test(`${era} is asked nothing for a request that it has cancelled: the question fails with the reason`, async () => {
    const staged = stage();
    const live = conversations(staged);
    let go = (): void => {};
    let why: unknown;
    staged.server.tool('it', {}, async (_, ctx) => {
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      await ctx.elicit(NAME).catch((error: unknown) => {
        why = error;
      });
    });
    const { client, call } = await open(staged.server);
    const before = client.messages.length;
    call().catch(() => {});
    client.notify('notifications/cancelled', { requestId: idOf(client, before), reason: 'enough' });
    go();
    await settled();
    assert.match(String(why), 'enough');
    assert.equal(client.rest(), []);
    assert.is(live.size, 0);
    await staged.server.close();
  });

  test(`${era} is asked nothing for a request that was answered, whether it was asked before or not`, async () => {
    for (const before of [false, true]) {
      const staged = stage();
      const live = conversations(staged);
      let go = (): void => {};
      let why: unknown;
      staged.server.tool('it', {}, async (_, ctx) => {
        const late = new Promise<void>((resolve) => {
          go = resolve;
        });
        void late
          .then(() => ctx.elicit(NAME))
          .catch((error: unknown) => {
            why = error;
          });
        if (before) await ctx.elicit(NAME).catch(() => {});
      });
      const { client, call } = await open(staged.server);
      const called = call();
      if (before) {
        await settled();
        const question = client.rest().find((message) => isObjectInTest(message) && message.method !== undefined);
        if (isObjectInTest(question))
          client.raw(JSON.stringify({ jsonrpc: '2.0', id: question.id ?? null, result: ADA }));
      }
      const { requestState } = await called;
      if (typeof requestState === 'string') await new Modern(client).retry('it', requestState, { elicit: ADA });
      go();
      await settled();
      assert.match(String(why), 'has ended');
      assert.equal(client.rest(), []);
      assert.is(live.size, 0);
      await staged.server.close();
    }
  });

  test(`a question to ${era} whose parts JSON cannot hold fails, and nothing else does`, async () => {
    for (const [odd, what] of [
      [10n, 'ctx.sample.metadata.list[1]: a BigInt has no JSON form'],
      [round(), 'ctx.sample.metadata.list[1].within.self: a cycle has no JSON form'],
      [new Map([['a', 1]]), 'ctx.sample.metadata.list[1]: a Map would be sent as {}'],
      [Promise.resolve(1), 'ctx.sample.metadata.list[1]: a Promise'],
      [thrower(), 'no such column'],
    ] as const) {
      const { server, told } = stage();
      server.tool('it', {}, async (_, ctx) => {
        const messages = [{ role: 'user', content: { type: 'text', text: 'Hi' } }];
        // As an author without a type checker asks.
        return Reflect.apply(ctx.sample, ctx, [{ messages, maxTokens: 1, metadata: { list: [1, odd] } }]);
      });
      const { client, call } = await open(server);
      const result = await call();
      assert.is(result.isError, true);
      assert.match(textOf(result), what);
      assert.equal(client.rest(), []);
      // The handler does not catch the error, so it is logged.
      assert.is(told.length, 1);
      assert.match(told[0] ?? '', what);
      await server.close();
    }
  });
}

/** An object with a getter that throws. */
function thrower(): object {
  return {
    get column() {
      throw new Error('no such column');
    },
  };
}

/** An object that is a part of itself. */
function round(): object {
  const within: Record<string, unknown> = {};
  within.self = within;
  return { within };
}

test('an ended call whose client does not return leaves nothing behind', async () => {
  const staged = stage({ limits: { askMs: 1_000 } });
  const live = conversations(staged);
  let finish = (): void => {};
  staged.server.tool('it', {}, async (_, ctx) => {
    const done = new Promise<string>((resolve) => {
      finish = () => resolve('done');
    });
    return Promise.race([done, ctx.elicit(NAME).then(({ status }) => status)]);
  });
  const client = await Modern.of(staged.server);
  await client.ask('it');
  finish();
  await settled();
  assert.is(live.size, 1);
  await staged.clock.advance(1_000);
  assert.is(live.size, 0);
  await staged.server.close();
});

test('a handler that keeps asking without answers delays no other client', async () => {
  const { server, clock } = stage({ limits: { askMs: 1_000 } });
  let tries = 0;
  server.tool('it', {}, async (_, ctx) => {
    for (; tries < 10_000; tries += 1) await ctx.elicit(NAME).catch(() => {});
  });
  const client = await Modern.of(server);
  await client.ask('it');
  await clock.advance(1_000);
  assert.ok(tries < 100, `it was told ${tries} times`);
  await server.close();
});

test('no two questions of a call have one key, whatever their names are', async () => {
  const { server } = stage();
  server.tool('it', {}, async (_, ctx) => {
    const all = await Promise.all([
      ctx.ask({ 'a-2': { elicit: NAME } }),
      ctx.ask({ a: { elicit: NAME } }),
      ctx.ask({ a: { roots: true } }),
    ]);
    return JSON.stringify(all);
  });
  const client = await Modern.of(server);
  const { inputRequests, requestState } = await client.ask('it');
  assert.equal(Object.keys(inputRequests), ['a-2', 'a', 'a-3']);
  const result = await client.retry('it', requestState, { 'a-2': ADA, a: { action: 'cancel' }, 'a-3': { roots: [] } });
  assert.is(
    textOf(result),
    '[{"a-2":{"status":"accepted","content":{"name":"Ada"}}},{"a":{"status":"cancelled"}},{"a":[]}]',
  );
  await server.close();
});

test('a completion asks nothing of a modern client, whose revision knows no such answer', async () => {
  const staged = stage();
  const live = conversations(staged);
  let why: unknown;
  staged.server.resource(
    'x://{b}',
    {
      complete: {
        b: async (_, __, ctx) => {
          await ctx.elicit(NAME).catch((error: unknown) => {
            why = error;
          });
          return ['fine'];
        },
      },
    },
    () => 'x',
  );
  const client = await Modern.of(staged.server);
  const completed = await client.send(
    { ref: { type: 'ref/resource', uri: 'x://{b}' }, argument: { name: 'b', value: '' } },
    'completion/complete',
  );
  assert.is(completed.resultType, 'complete');
  assert.match(String(why), 'completion/complete');
  assert.is(live.size, 0);
  await staged.server.close();
});

/** A tool that asks for an account, checks it in a step, and asks once more. */
function transfers(): Stage {
  const staged = stage();
  const account = { type: 'object', properties: { id: { type: 'string', minLength: 4 } }, required: ['id'] } as const;
  staged.server.tool('pay', {}, async (_, ctx) => {
    const { from } = await ctx.ask({ from: { elicit: { message: 'From?', schema: account } } });
    const id = from.status === 'accepted' ? String(from.content.id) : '';
    await ctx.step('authorise', () => {
      if (id !== 'mine') throw new Error('this is not your account');
    });
    await ctx.ask({ sure: { elicit: { message: 'Sure?', schema: NAME.schema } } });
    return `paid from ${id}`;
  });
  return staged;
}

test('a client that comes back and declares less is not asked again: the question fails, and says what is missing', async () => {
  const { server } = stage();
  server.tool('it', {}, async (_, ctx) => {
    const [name, where] = await Promise.all([ctx.elicit(NAME).catch(String), ctx.roots()]);
    return `${name} ${where.length}`;
  });
  const client = await Modern.of(server);
  const { requestState } = await client.ask('it');
  const poorer = new Modern(client.client, { roots: {} });
  const again = await poorer.ask('it', { requestState, inputResponses: {} });
  assert.equal(Object.keys(again.inputRequests), ['roots']);
  const result = textOf(await poorer.retry('it', again.requestState, { roots: { roots: [] } }));
  assert.match(result, /elicitation\.form.* 0$/);
  await server.close();
});

test('an answer stays the same if its call runs again, because a step may depend on it', async () => {
  const [before, after] = [transfers(), transfers()];
  const client = await Modern.of(before.server);
  const first = await client.ask('pay');
  const second = await client.ask('pay', {
    requestState: first.requestState,
    inputResponses: { from: accept({ id: 'mine' }) },
  });
  const result = await (await Modern.of(after.server)).retry('pay', second.requestState, {
    from: accept({ id: 'theirs' }),
    sure: ADA,
  });
  assert.is(textOf(result), 'paid from mine');
  await before.server.close();
  await after.server.close();
});

test('an answer that replaces an invalid one is accepted if its call runs again', async () => {
  const [before, after] = [transfers(), transfers()];
  const client = await Modern.of(before.server);
  const first = await client.ask('pay');
  const second = await client.ask('pay', {
    requestState: first.requestState,
    inputResponses: { from: accept({ id: 'no' }) },
  });
  const other = await Modern.of(after.server);
  const { inputRequests } = await other.ask('pay', {
    requestState: second.requestState,
    inputResponses: { from: accept({ id: 'mine' }) },
  });
  assert.equal(Object.keys(inputRequests), ['sure']);
  await before.server.close();
  await after.server.close();
});

test('a malformed question is rejected with a message', async () => {
  const { server } = stage();
  const said: string[] = [];
  server.tool('it', {}, async (_, ctx) => {
    const wrong: object[] = [
      { a: null },
      { a: 'elicit' },
      { a: { elicit: undefined } },
      { a: { sample: 'x' } },
      JSON.parse('{"__proto__":{"roots":true}}'),
    ];
    for (const questions of wrong)
      await Reflect.apply(ctx.ask, ctx, [questions]).catch((error: unknown) => said.push(String(error)));
    await Reflect.apply(ctx.elicit, ctx, []).catch((error: unknown) => said.push(String(error)));
  });
  await (await Modern.of(server)).send({ name: 'it' });
  const each = 'expected each question to be an object with "elicit", "elicitUrl", "sample" or "roots"';
  assert.equal(said, [
    `TypeError: ctx.ask: ${each}, got null`,
    `TypeError: ctx.ask: ${each}, got string "elicit"`,
    'TypeError: ctx.elicit: expected an object with the question, got nothing',
    'TypeError: ctx.sample: expected an object with the question, got string "x"',
    'TypeError: ctx.ask: expected another name for a question than "__proto__", which no client can answer',
    'TypeError: ctx.elicit: expected an object with the question, got nothing',
  ]);
  await server.close();
});

test('a message or a root that lacks what its type promises is asked for again', async () => {
  const { server } = stage();
  server.tool('it', {}, async (_, ctx) => {
    const { said, where } = await ctx.ask({
      said: { sample: { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 1 } },
      where: { roots: true },
    });
    return `${said.model} ${where.length}`;
  });
  const client = await Modern.of(server);
  const wrong: readonly (readonly [content: JsonObject | JsonObject[], root: JsonObject])[] = [
    [{}, { uri: 'file:///a', name: 5 }],
    [[{ type: 'text' }], { name: 'a' }],
  ];
  let { requestState } = await client.ask('it');
  const answers = (content: JsonObject | JsonObject[], root: JsonObject): JsonObject => ({
    said: { role: 'assistant', model: 'm', content },
    where: { roots: [root] },
  });
  for (const each of wrong) {
    const again = await client.ask('it', { requestState, inputResponses: answers(...each) });
    assert.equal(Object.keys(again.inputRequests).sort(), ['said', 'where']);
    ({ requestState } = again);
  }
  const right = answers([{ type: 'text', text: 'Hi' }], { uri: 'file:///a' });
  assert.is(textOf(await client.retry('it', requestState, right)), 'm 1');
  await server.close();
});

test('a response that cannot be read ends its question: the handler waits for no other', async () => {
  const { server } = stage();
  server.tool('greet', {}, async (_, ctx) => (await ctx.elicit(NAME)).status);
  const client = await inSession(server, '2025-11-25', ALL);
  for (const content of ['{"name":"\\ud800"}', '{"__proto__":1}', '{"name":"a","name":"b"}']) {
    const result = client.call('greet');
    const question = await client.next((each) => isObjectInTest(each) && each.method === 'elicitation/create');
    const id = isObjectInTest(question) ? question.id : undefined;
    client.raw(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"action":"accept","content":${content}}}`);
    assert.match(textOf(await result), 'the client did not answer: invalid response:');
  }
  await server.close();
});

test('the result of a step is recorded as it was then, even if its handler changes it later', async () => {
  const make = () => {
    const { server } = stage();
    server.tool('shop', {}, async (_, ctx) => {
      const cart = await ctx.step('fill', () => ({ items: ['tea'] }));
      cart.items.push('milk');
      await ctx.elicit(NAME);
      return cart.items.join();
    });
    return server;
  };
  const before = make();
  const { requestState } = await (await Modern.of(before)).ask('shop');
  await before.close();
  const after = make();
  const result = await (await Modern.of(after)).retry('shop', requestState, { elicit: { action: 'decline' } });
  assert.is(textOf(result), 'tea,milk');
  await after.close();
});

test('each question of a session has the whole time, also one that is asked while another is open', async () => {
  const { server, clock } = stage({ limits: { askMs: 10_000 } });
  server.tool('two', {}, async (_, ctx) => {
    const first = ctx.elicit(NAME).catch(() => {});
    await new Promise<void>((resolve) => void clock.after(9_000, resolve));
    const second = await ctx.elicit(NAME);
    await first;
    return second.status;
  });
  const client = await inSession(server, '2025-11-25', ALL);
  const result = client.call('two');
  await client.next((each) => isObjectInTest(each) && each.method === 'elicitation/create');
  await clock.advance(9_000);
  const question = await client.next((each) => isObjectInTest(each) && each.method === 'elicitation/create');
  await clock.advance(9_000);
  const answer = { jsonrpc: '2.0', id: isObjectInTest(question) ? question.id : 0, result: { action: 'decline' } };
  client.raw(JSON.stringify(answer));
  await clock.advance(10_000);
  assert.is(textOf(await result), 'declined');
  await server.close();
});

test('a message of several blocks is several messages to a client whose revision has one each', async () => {
  const { server } = stage();
  server.tool('say', {}, async (_, ctx) => {
    const text = (words: string) => ({ type: 'text', text: words }) as const;
    const messages = [
      { role: 'user', content: [text('a'), text('b')] },
      { role: 'assistant', content: text('c') },
    ] as const;
    return (await ctx.sample({ messages, maxTokens: 1 })).model;
  });
  for (const [revision, count] of [
    ['2025-06-18', 3],
    ['2025-11-25', 2],
  ] as const) {
    const client = await inSession(server, revision, ALL);
    const result = client.call('say');
    const question = await client.next((each) => isObjectInTest(each) && each.method === 'sampling/createMessage');
    const { id, params } = isObjectInTest(question) ? question : {};
    assert.is(isObjectInTest(params) && Array.isArray(params.messages) ? params.messages.length : 0, count);
    const sampled = { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' };
    client.raw(JSON.stringify({ jsonrpc: '2.0', id, result: sampled }));
    assert.is(textOf(await result), 'm');
    await client.close();
  }
  await server.close();
});
