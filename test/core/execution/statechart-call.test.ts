/** A statechart as a tool: a call runs it to its final state, what it invokes may ask the client, and it ends with its call. */
import * as assert from 'uvu/assert';
import { assign, createMachine, fromCallback, fromPromise, setup } from 'xstate';
import { z } from 'zod';
import {
  CannotAsk,
  createServer,
  DefinitionError,
  defineTool,
  elicit,
  elicitUrl,
  elicitWith,
  type JsonObject,
  roots,
  type ServerOptions,
  sample,
  Unanswered,
} from '../../../src/index.ts';
import { connect, type ErrorResponse, SimulatedClock, settled, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';

const test = suite('statecharts as tools');

const ALL: JsonObject = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

const make = (options: Partial<ServerOptions> = {}) =>
  createServer({ name: 'test', version: '1.0.0', log: () => {}, clock: new SimulatedClock(), ...options });

/** The next question of the server to the client of a session. */
async function asked(client: TestClient): Promise<{ id: string; method: string; params: JsonObject }> {
  const request = await client.next(
    (message) => typeof message === 'object' && message !== null && 'method' in message && 'id' in message,
    'a question',
  );
  return request as unknown as { id: string; method: string; params: JsonObject };
}

const answer = (client: TestClient, id: string, result: JsonObject): void =>
  client.raw(JSON.stringify({ jsonrpc: '2.0', id, result }));

const modern = (client: TestClient, params: JsonObject): Promise<JsonObject> =>
  client.modern('tools/call', params, { 'io.modelcontextprotocol/clientCapabilities': ALL });

const textOf = (result: { readonly content?: unknown }): string => JSON.stringify(result.content);

const size = z.object({ size: z.enum(['S', 'L']) });

/** Asks for a size, and is done: with the size, refused, or without an answer. */
const order = setup({
  types: {
    input: {} as { item: string },
    context: {} as { item: string; size: string; why: string },
    output: {} as { item: string; size: string; why: string },
  },
  actors: { askSize: elicitWith(size) },
}).createMachine({
  id: 'order',
  initial: 'asking',
  context: ({ input }) => ({ item: input.item, size: 'none', why: '' }),
  states: {
    asking: {
      invoke: {
        id: 'size',
        src: 'askSize',
        input: ({ context }) => ({ message: `Which size of ${context.item}?` }),
        onDone: {
          target: 'done',
          actions: assign({
            size: ({ event }) => (event.output.status === 'accepted' ? event.output.content.size : event.output.status),
          }),
        },
        onError: {
          target: 'done',
          actions: assign({ why: ({ event }) => (event.error instanceof Error ? event.error.constructor.name : '') }),
        },
      },
    },
    done: { type: 'final' },
  },
  output: ({ context }) => context,
});

const input = z.object({ item: z.string() });

test('runs to its final state: its input is the checked arguments, its output the result', async () => {
  const server = make();
  const machine = setup({
    types: { input: {} as { a: number; b: number }, output: {} as { sum: number } },
  }).createMachine({
    initial: 'done',
    context: ({ input: given }) => given,
    states: { done: { type: 'final' } },
    output: ({ context }) => ({ sum: Number(context.a) + Number(context.b) }),
  });
  const numbers = z.object({ a: z.number(), b: z.number().default(2) });
  server.tool('add', { input: numbers, output: z.object({ sum: z.number() }), machine });
  const client = await inSession(server, '2025-11-25', ALL);
  assert.equal((await client.call('add', { a: 1, more: true })).structuredContent, { sum: 3 });
  assert.match(textOf(await client.call('add', { a: 'one' })), 'Invalid arguments for tool');
  await client.close();
});

test('checks the output against the schema of the tool', async () => {
  const server = make();
  const machine = setup({}).createMachine({ initial: 'x', states: { x: { type: 'final' } }, output: { sum: 'three' } });
  server.tool('add', { output: z.object({ sum: z.number() }), machine });
  const client = await inSession(server, '2025-11-25', ALL);
  const result = await client.call('add');
  assert.is(result.isError, true);
  assert.match(textOf(result), 'own output schema');
  await client.close();
});

test('asks the client of a session, and continues where it was', async () => {
  const server = make();
  server.tool('order', { input, machine: order });
  const client = await inSession(server, '2025-11-25', ALL);
  const result = client.call('order', { item: 'coat' });
  const { id, method, params } = await asked(client);
  assert.is(method, 'elicitation/create');
  assert.is(params.message, 'Which size of coat?');
  answer(client, id, { action: 'accept', content: { size: 'L' } });
  assert.equal((await result).content, [{ type: 'text', text: '{"item":"coat","size":"L","why":""}' }]);
  await client.close();
});

test('asks a modern client by the answer to its call, and continues where it was', async () => {
  const server = make();
  let starts = 0;
  const machine = setup({ actors: { elicit } }).createMachine({
    initial: 'first',
    entry: () => {
      starts += 1;
    },
    states: {
      first: {
        invoke: { id: 'one', src: 'elicit', input: { message: 'One?', schema: size }, onDone: 'second' },
      },
      second: {
        invoke: { id: 'two', src: 'elicit', input: { message: 'Two?', schema: size }, onDone: 'done' },
      },
      done: { type: 'final' },
    },
    output: 'ordered',
  });
  server.tool('order', { machine });
  const client = await connect(server);
  const first = await modern(client, { name: 'order' });
  assert.is(first.resultType, 'input_required');
  assert.equal(Object.keys(first.inputRequests as JsonObject), ['one']);
  const accept = { action: 'accept', content: { size: 'S' } };
  const second = await modern(client, {
    name: 'order',
    requestState: String(first.requestState),
    inputResponses: { one: accept },
  });
  assert.equal(Object.keys(second.inputRequests as JsonObject), ['two']);
  const third = await modern(client, {
    name: 'order',
    requestState: String(second.requestState),
    inputResponses: { two: accept },
  });
  assert.match(textOf(third), 'ordered');
  assert.is(starts, 1);
  await client.close();
});

test('asks what parallel states invoke in one round', async () => {
  const server = make();
  const machine = setup({ actors: { elicitUrl, sample, roots } }).createMachine({
    type: 'parallel',
    context: { model: '', roots: 0, visit: '' },
    states: {
      page: {
        initial: 'open',
        states: {
          open: {
            invoke: {
              id: 'page',
              src: 'elicitUrl',
              input: { message: 'Pay', url: 'https://example.com/pay' },
              onDone: { target: 'closed', actions: assign({ visit: ({ event }) => event.output.status }) },
            },
          },
          closed: { type: 'final' },
        },
      },
      model: {
        initial: 'open',
        states: {
          open: {
            invoke: {
              id: 'model',
              src: 'sample',
              input: { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 9 },
              onDone: { target: 'closed', actions: assign({ model: ({ event }) => event.output.model }) },
            },
          },
          closed: { type: 'final' },
        },
      },
      roots: {
        initial: 'open',
        states: {
          open: {
            invoke: {
              id: 'roots',
              src: 'roots',
              onDone: { target: 'closed', actions: assign({ roots: ({ event }) => event.output.length }) },
            },
          },
          closed: { type: 'final' },
        },
      },
    },
    output: ({ context }) => context,
  });
  server.tool('all', { machine });
  const client = await connect(server);
  const { inputRequests, requestState } = await modern(client, { name: 'all' });
  assert.equal(
    Object.entries(inputRequests as Record<string, JsonObject>).map(([key, { method }]) => [key, method]),
    [
      ['page', 'elicitation/create'],
      ['model', 'sampling/createMessage'],
      ['roots', 'roots/list'],
    ],
  );
  const done = await modern(client, {
    name: 'all',
    requestState: String(requestState),
    inputResponses: {
      page: { action: 'accept' },
      model: { role: 'assistant', content: { type: 'text', text: 'Yes' }, model: 'm' },
      roots: { roots: [{ uri: 'file:///a' }, { uri: 'file:///b' }] },
    },
  });
  assert.match(textOf(done), /\{\\"model\\":\\"m\\",\\"roots\\":2,\\"visit\\":\\"accept(ed)?\\"\}/);
  await client.close();
});

test('asks for what a machine within the machine invokes, without a name in any setup', async () => {
  const server = make();
  const inner = createMachine({
    initial: 'open',
    states: { open: { invoke: { id: 'where', src: roots, onDone: 'closed' } }, closed: { type: 'final' } },
    output: 'inner',
  });
  const outer = setup({ actors: { inner } }).createMachine({
    initial: 'open',
    states: { open: { invoke: { src: 'inner', onDone: 'closed' } }, closed: { type: 'final' } },
    output: 'outer',
  });
  server.tool('nested', { machine: outer });
  const client = await inSession(server, '2025-11-25', ALL);
  const result = client.call('nested');
  const { id, method } = await asked(client);
  assert.is(method, 'roots/list');
  answer(client, id, { roots: [] });
  assert.match(textOf(await result), 'outer');
  await client.close();
});

test('receives in onError that the client cannot be asked', async () => {
  const server = make();
  server.tool('order', { input, machine: order });
  const client = await inSession(server, '2025-11-25', {});
  assert.match(textOf(await client.call('order', { item: 'coat' })), CannotAsk.name);
  await client.close();
});

test('receives in onError that no answer came', async () => {
  const clock = new SimulatedClock();
  const server = make({ clock, limits: { askMs: 5_000 } });
  server.tool('order', { input, machine: order });
  const client = await inSession(server, '2025-11-25', ALL);
  const result = client.call('order', { item: 'coat' });
  await asked(client);
  await clock.advance(5_000);
  assert.match(textOf(await result), Unanswered.name);
  await client.close();
});

test('without onError, fails the call with what the actor threw', async () => {
  const server = make();
  const failing = {
    promise: fromPromise(async () => {
      throw new Error('no stock');
    }),
    callback: fromCallback(() => {
      throw new Error('no stock');
    }),
  };
  for (const [name, src] of Object.entries(failing))
    server.tool(name, {
      machine: setup({ actors: { src } }).createMachine({
        initial: 'open',
        states: { open: { invoke: { src: 'src', onDone: 'closed' } }, closed: { type: 'final' } },
      }),
    });
  server.tool('action', {
    machine: setup({}).createMachine({
      entry: () => {
        throw new Error('no stock');
      },
    }),
  });
  server.tool('context', {
    machine: setup({}).createMachine({
      context: () => {
        throw new Error('no stock');
      },
    }),
  });
  server.tool('unasked', {
    machine: setup({ actors: { roots } }).createMachine({ invoke: { src: 'roots' } }),
  });
  const client = await inSession(server, '2025-11-25', {});
  for (const name of ['promise', 'callback', 'action', 'context'])
    assert.equal(await client.call(name), { content: [{ type: 'text', text: 'no stock' }], isError: true }, name);
  assert.match(textOf(await client.call('unasked')), 'does not declare the capability for it (roots)');
  await client.close();
});

/** Counts how many of its actors run. */
function endless() {
  const counts = { running: 0 };
  const ticking = fromCallback(() => {
    counts.running += 1;
    return () => {
      counts.running -= 1;
    };
  });
  return { counts, machine: setup({ actors: { ticking } }).createMachine({ invoke: { src: 'ticking' } }) };
}

test('is stopped with all its actors when the client cancels', async () => {
  const server = make();
  const { counts, machine } = endless();
  server.tool('endless', { machine });
  const client = await inSession(server, '2025-11-25', ALL);
  client.raw('{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"endless"}}');
  await settled();
  assert.is(counts.running, 1);
  client.notify('notifications/cancelled', { requestId: 'e' });
  await settled();
  assert.is(counts.running, 0);
  assert.equal(client.rest(), []);
  await client.close();
});

test('times out when it never ends', async () => {
  const clock = new SimulatedClock();
  const server = make({ clock });
  const { counts, machine } = endless();
  server.tool('endless', { machine, timeoutMs: 1_000 });
  const client = await inSession(server, '2025-11-25', ALL);
  const result = client.call('endless').then(
    () => 'it ended',
    (error: ErrorResponse) => error.message,
  );
  await clock.advance(1_000);
  assert.match(await result, 'took longer than its timeout of 1 s');
  assert.is(counts.running, 0);
  await client.close();
});

test('leaves none of its actors running when it fails', async () => {
  const server = make();
  const { counts, machine: ticking } = endless();
  const failing = fromPromise(async () => {
    throw new Error('no stock');
  });
  server.tool('half', {
    machine: setup({ actors: { ticking, failing } }).createMachine({
      invoke: [{ src: 'ticking' }, { src: 'failing' }],
    }),
  });
  const client = await inSession(server, '2025-11-25', ALL);
  assert.match(textOf(await client.call('half')), 'no stock');
  assert.is(counts.running, 0);
  await client.close();
});

test("keeps the server's time", async () => {
  const clock = new SimulatedClock();
  const server = make({ clock });
  const machine = setup({}).createMachine({
    initial: 'waiting',
    states: { waiting: { after: { 30000: 'over' } }, over: { type: 'final' } },
    output: 'over',
  });
  server.tool('wait', { machine });
  const client = await inSession(server, '2025-11-25', ALL);
  const result = client.call('wait');
  await clock.advance(29_999);
  assert.equal(client.rest(), []);
  await clock.advance(1);
  assert.match(textOf(await result), 'over');
  await client.close();
});

test('runs once for each call, side by side', async () => {
  const server = make();
  server.tool('order', { input, machine: order });
  const client = await inSession(server, '2025-11-25', ALL);
  const results = [client.call('order', { item: 'coat' }), client.call('order', { item: 'hat' })];
  const [first, second] = [await asked(client), await asked(client)];
  answer(client, second.id, { action: 'accept', content: { size: 'S' } });
  answer(client, first.id, { action: 'decline' });
  const [coat, hat] = await Promise.all(results);
  assert.match(textOf(coat ?? {}), /coat.*declined/);
  assert.match(textOf(hat ?? {}), /hat.*S/);
  await client.close();
});

test('is seen by the inspector, with its states', async () => {
  const server = make();
  server.tool('order', { input, machine: order });
  const seen: string[] = [];
  server.inspect((record) => {
    if (!('actor' in record) || record.actor !== 'machine/order/1') return;
    seen.push(`${record.actor} ${record.type} ${record.type === 'state' ? record.state : ''}`.trim());
  });
  const client = await inSession(server, '2025-11-25', ALL);
  const result = client.call('order', { item: 'coat' });
  answer(client, (await asked(client)).id, { action: 'cancel' });
  await result;
  assert.equal(seen, [
    'machine/order/1 created',
    'machine/order/1 state asking',
    'machine/order/1 step',
    'machine/order/1 mail',
    'machine/order/1 step',
    'machine/order/1 state done',
    'machine/order/1 gone',
  ]);
  await client.close();
});

test('refuses a tool that has a handler and a machine, neither, or something else for a machine', () => {
  const server = make();
  const machine = setup({}).createMachine({});
  const refused = (body: () => unknown, expected: string): void => {
    try {
      body();
    } catch (error) {
      assert.instance(error, DefinitionError);
      assert.match((error as Error).message, expected);
      return;
    }
    assert.unreachable('it was not refused');
  };
  refused(
    () => server.tools.register({ name: 'x', machine, handler: () => 1 }),
    'expected a handler or a machine, got both',
  );
  refused(() => server.tools.register({ name: 'x' }), 'handler: expected a function');
  refused(() => server.tool('x', { machine: {} as typeof machine }), 'machine: expected a statechart of XState v5');
});

test('is what a module may export', async () => {
  const server = make();
  server.tools.register(defineTool({ name: 'order', input, machine: order }));
  // @ts-expect-error the machine takes an item, which the schema does not give
  defineTool({ name: 'order', input: z.object({ thing: z.string() }), machine: order });
  const client = await inSession(server, '2025-11-25', ALL);
  const result = client.call('order', { item: 'coat' });
  answer(client, (await asked(client)).id, { action: 'decline' });
  assert.match(textOf(await result), 'declined');
  await client.close();
});

test('outside of a call, reports that there is no client to ask', async () => {
  const { createActor, toPromise } = await import('xstate');
  const actor = createActor(roots).start();
  await toPromise(actor).then(
    () => assert.unreachable('it was answered'),
    (error: Error) => assert.match(error.message, 'Offer it as a tool'),
  );
});

/** Asks, gives up after a minute, and asks something else. */
const impatient = setup({ actors: { elicit } }).createMachine({
  initial: 'first',
  states: {
    first: {
      invoke: { id: 'first', src: 'elicit', input: { message: 'One?', schema: size }, onDone: 'done' },
      after: { 60000: 'second' },
    },
    second: { invoke: { id: 'second', src: 'elicit', input: { message: 'Two?', schema: size }, onDone: 'done' } },
    done: { type: 'final' },
  },
  output: 'over',
});

test('withdraws a question from a session when its state is left', async () => {
  const clock = new SimulatedClock();
  const server = make({ clock });
  server.tool('impatient', { machine: impatient });
  const client = await inSession(server, '2025-11-25', ALL);
  const result = client.call('impatient');
  const first = await asked(client);
  await clock.advance(60_000);
  assert.is((await client.notification('notifications/cancelled')).requestId, first.id);
  const second = await asked(client);
  assert.is(second.params.message, 'Two?');
  // Too late: nobody waits for it.
  answer(client, first.id, { action: 'decline' });
  await settled();
  answer(client, second.id, { action: 'decline' });
  assert.match(textOf(await result), 'over');
  await client.close();
});

test('asks a modern client only for what is still wanted when it comes back', async () => {
  const clock = new SimulatedClock();
  const server = make({ clock });
  server.tool('impatient', { machine: impatient });
  const client = await connect(server);
  const first = await modern(client, { name: 'impatient' });
  await clock.advance(60_000);
  const late = { first: { action: 'decline' } };
  const second = await modern(client, {
    name: 'impatient',
    requestState: String(first.requestState),
    inputResponses: late,
  });
  assert.equal(Object.keys(second.inputRequests as JsonObject), ['second']);
  const done = await modern(client, {
    name: 'impatient',
    requestState: String(second.requestState),
    inputResponses: { second: { action: 'decline' } },
  });
  assert.match(textOf(done), 'over');
  await client.close();
});

test('withdraws what is still asked when the machine ends', async () => {
  const clock = new SimulatedClock();
  const server = make({ clock });
  const machine = setup({ actors: { elicit } }).createMachine({
    initial: 'asking',
    states: {
      asking: { invoke: { src: 'elicit', input: { message: 'One?', schema: size } }, after: { 60000: 'done' } },
      done: { type: 'final' },
    },
    output: 'unasked',
  });
  server.tool('brief', { machine });
  const client = await inSession(server, '2025-11-25', ALL);
  const result = client.call('brief');
  const { id } = await asked(client);
  await clock.advance(60_000);
  assert.match(textOf(await result), 'unasked');
  assert.is((await client.notification('notifications/cancelled')).requestId, id);
  await client.close();
});

test('asks through the model, where that is allowed', async () => {
  const server = make({ askThroughModel: true });
  server.tool('order', { input, machine: order });
  const client = await inSession(server, '2025-11-25', {});
  const text = textOf(await client.call('order', { item: 'coat' }));
  assert.match(text, 'Which size of coat?');
  const id = /\\"id\\":\\"([^\\]+)\\"/.exec(text)?.[1] ?? '';
  const answers = { size: { action: 'accept', content: { size: 'S' } } };
  assert.match(textOf(await client.call('troupe_answer', { id, answers })), /coat.*S/);
  await client.close();
});
