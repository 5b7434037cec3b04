/** Typed calls: names, arguments and results from the type of a server, and one interface for programs and tests. The compiler checks most of this file. */
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as assert from 'uvu/assert';
import * as v from 'valibot';
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { type Client, ClientError, connect } from '../../src/client/client.ts';
import {
  createServer,
  defineMachine,
  definePrompt,
  defineResource,
  defineTool,
  type Server,
  toolResult,
} from '../../src/index.ts';
import { type TestClient, connect as testConnect } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';

const test = suite('typed calls');

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** The compiler checks the argument. */
const holds = <T extends true>(..._: T[]): void => {};

const tab = setup({
  types: {
    input: {} as { guest: string },
    context: {} as { guest: string; drinks: readonly string[] },
    events: {} as { type: 'order'; drink: string } | { type: 'pay' },
    output: {} as { owed: number },
  },
}).createMachine({
  context: ({ input }) => ({ guest: input.guest, drinks: [] }),
  initial: 'open',
  states: {
    open: {
      on: {
        order: { actions: assign({ drinks: ({ context, event }) => [...context.drinks, event.drink] }) },
        pay: 'paid',
      },
    },
    paid: { type: 'final' },
  },
  output: ({ context }) => ({ owed: context.drinks.length * 4 }),
});
const TAB_EVENTS = { order: z.object({ drink: z.string() }), pay: true } as const;

interface Row {
  readonly id: number;
  readonly when: Date;
  readonly tags?: readonly string[];
}

/** A server whose elements are given in each of the ways. */
const shop = () => {
  const add = defineTool({
    name: 'add',
    input: z.object({ a: z.number(), b: z.number().default(1) }),
    handler: ({ a, b }) => ({ sum: a + b }),
  });
  const weigh = defineTool({
    name: 'weigh',
    input: { type: 'object', properties: { unit: { enum: ['g', 'kg'] } }, required: ['unit'] },
    output: z.object({ grams: z.number() }),
    handler: () => ({ grams: 12 }),
  });
  const review = definePrompt({
    name: 'review',
    arguments: [{ name: 'code', required: true }, { name: 'style' }],
    handler: ({ code, style }) => `Review ${code} ${style ?? ''}`,
  });
  const clock = defineResource({ uri: 'app://time', handler: () => '12:00' });
  return createServer({
    ...{ name: 'shop', version: '1.0.0', log: () => {} },
    tools: [add, weigh],
    prompts: [review],
    resources: [clock],
    machines: [
      defineMachine({ name: 'tab', machine: tab, input: z.object({ guest: z.string() }), events: TAB_EVENTS }),
    ],
  })
    .tool('ping', () => 'pong')
    .tool('rows', { description: 'All rows.' }, async (): Promise<readonly Row[]> => [{ id: 1, when: new Date(0) }])
    .tool('sealed', {}, () => toolResult({ data: [1, 2] }))
    .tool('fail', { input: z.object({ why: z.string() }) }, ({ why }): { done: boolean } => {
      throw new Error(why);
    })
    .prompt(
      'level',
      { input: z.object({ depth: z.number(), tone: z.enum(['dry', 'warm']).optional() }) },
      ({ depth }) => String(depth),
    )
    .resource('note://{id}', ({ variables }) => `note ${variables.id}`)
    .machine('bar', tab, {
      input: z.object({ guest: z.string() }),
      events: TAB_EVENTS,
      single: true,
      view: ({ context }) => ({ drinks: context.drinks }),
    });
};
type Shop = ReturnType<typeof shop>;

test('knows names, arguments and results of tools of lists, of a chain and of machines', async () => {
  const server = shop();
  const client = await connect(server);
  const { structuredContent: sum } = await client.call('add', { a: 1 });
  holds<Equal<typeof sum, { readonly sum: number } | undefined>>();
  assert.equal(sum, { sum: 2 });
  const weighed = await client.call('weigh', { unit: 'g' });
  if (weighed.isError === true) throw new Error('expected a weight');
  const grams: number = weighed.structuredContent.grams;
  assert.is(grams, 12);
  const pong = await client.call('ping');
  holds<Equal<typeof pong.structuredContent, undefined>>();
  const rows = await client.data('rows');
  holds<Equal<(typeof rows)[number]['when'], string>>();
  const whens: readonly string[] = rows.map(({ when }) => when);
  assert.is(whens.length, 1);
  assert.equal(rows, [{ id: 1, when: '1970-01-01T00:00:00.000Z' }]);
  const { data = [] } = await client.data('sealed');
  assert.equal(data, [1, 2]);

  const opened = await client.data('tab_create', { guest: 'Ada' });
  holds<Equal<typeof opened.accepts, readonly ('order' | 'pay')[]>>();
  const { handle } = opened;
  await client.call('tab_order', { handle, drink: 'tea', idempotencyKey: 'k'.repeat(24) });
  const paid = await client.data('tab_pay', { handle });
  assert.is(paid.output?.owed, 4);
  holds<Equal<typeof paid.state, 'open' | 'paid'>>();
  const bar = await client.data('bar_create', { guest: 'Eve' });
  const sent = await client.data('bar_send', { handle: bar.handle, event: 'order', data: { drink: 'gin' } });
  assert.equal(sent.view?.drinks, ['gin']);
  await client.close();
  await server.close();
});

test('knows the arguments of prompts, and the addresses of resources', async () => {
  const server = shop();
  const client = await connect(server);
  const [review] = (await client.prompt('review', { code: 'x' })).messages;
  assert.equal(review?.content, { type: 'text', text: 'Review x ' });
  await client.prompt('level', { depth: '3', tone: 'dry' });
  await client.read('app://time');
  await client.read('note://7');
  const [first] = await client.resources();
  // An address from elsewhere is a text whose value the compiler does not know.
  await client.read(first?.uri ?? '');
  await client.close();
  await server.close();
});

test('rejects what the server does not have', () => {
  // Never called: the compiler checks the body.
  const wrong = async (client: Client<Shop['~types']>): Promise<void> => {
    // @ts-expect-error there is no such tool
    await client.call('substract', { a: 1 });
    // @ts-expect-error `a` is missing
    await client.call('add');
    // @ts-expect-error `a` is missing
    await client.call('add', {});
    // @ts-expect-error `a` is a number
    await client.call('add', { a: '1' });
    // @ts-expect-error `c` is unknown
    await client.call('add', { a: 1, c: 2 });
    // @ts-expect-error one of g, kg
    await client.call('weigh', { unit: 'lb' });
    // @ts-expect-error the result may be an error
    (await client.call('weigh', { unit: 'g' })).structuredContent.grams;
    // @ts-expect-error there is no such member
    (await client.data('weigh', { unit: 'g' })).kilos;
    // @ts-expect-error a tool without parameters
    await client.call('ping', { loud: true });
    // @ts-expect-error the handle is missing
    await client.call('tab_pay', {});
    // @ts-expect-error the machine has one tool for all events
    await client.call('bar_pay', { handle: '' });
    // @ts-expect-error the data of another event
    await client.call('bar_send', { handle: '', event: 'order', data: { drink: 1 } });
    // @ts-expect-error there is no such prompt
    await client.prompt('revue', { code: 'x' });
    // @ts-expect-error `code` is missing
    await client.prompt('review', {});
    // @ts-expect-error each argument is a text on the wire
    await client.prompt('level', { depth: 3 });
    // @ts-expect-error no resource has this address
    await client.read('app://date');
    // @ts-expect-error there is no such tool
    await client.start('rebuild');
  };
  assert.type(wrong, 'function');
});

test('infers from valibot, arktype and literal JSON Schema as from zod', async () => {
  const NUMBERED = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] } as const;
  const server = createServer({
    ...{ name: 'schemas', version: '1.0.0' },
    tools: [
      defineTool({
        name: 'valibot',
        input: toStandardJsonSchema(v.object({ n: v.number() })),
        handler: ({ n }) => ({ n }),
      }),
      defineTool({
        name: 'arktype',
        input: type({ 's?': 'string' }),
        output: type({ k: 'number' }),
        handler: () => ({ k: 1 }),
      }),
    ],
  }).tool('json', { input: NUMBERED }, ({ id }) => [id]);
  const client = await connect(server);
  const n: number = (await client.data('valibot', { n: 1 })).n;
  const k: number = (await client.data('arktype')).k;
  const ids: readonly number[] = await client.data('json', { id: 1 });
  assert.equal([n, k, ...ids], [1, 1, 1]);
  // Never called: the compiler checks the body.
  const wrong = async (): Promise<void> => {
    // @ts-expect-error `n` is a number
    await client.call('valibot', { n: 'x' });
    // @ts-expect-error `s` is a text
    await client.call('arktype', { s: 1 });
    // @ts-expect-error `id` is a number
    await client.call('json', { id: 'x' });
  };
  assert.type(wrong, 'function');
  await client.close();
  await server.close();
});

test('takes the types of a server for another target', async () => {
  const server: Server = shop();
  const client = await connect<Shop>(server);
  assert.is((await client.data('add', { a: 2, b: 3 })).sum, 5);
  await client.close();
  // An interface, as `troupe types` writes one.
  interface Written {
    tools: { add: { input: { a: number; b?: number }; output: { sum: number } }; ping: { input: object } };
    prompts: Record<never, never>;
    resources: Record<never, never>;
  }
  const written = await connect<Written>(server);
  assert.is((await written.data('add', { a: 2 })).sum, 3);
  const { structuredContent } = await written.call('ping', {});
  assert.is(structuredContent, undefined);
  // Nothing is known of its prompts.
  await written.prompt('review', { code: 'x' });
  // @ts-expect-error there is no such tool
  const wrong = () => written.call('weigh', { unit: 'g' });
  assert.type(wrong, 'function');
  await written.close();
  await server.close();
});

test('accepts each name for a server without types, and for a typed one that is passed as such', async () => {
  const server = createServer({ name: 'plain', version: '1.0.0' });
  server.tool('say', { input: z.object({ text: z.string() }) }, ({ text }) => ({ text }));
  const client = await connect(server);
  const said = await client.call('say', { text: 'hi' });
  assert.equal(said.structuredContent, { text: 'hi' });
  const typed = await connect(shop());
  const anyClient = async (any: Client): Promise<number> => (await any.tools()).length;
  assert.is(await anyClient(client), 1);
  assert.ok((await anyClient(typed)) > 10);
  await client.close();
  await typed.close();
  await server.close();
});

test('is one interface: a function that takes the client of a program takes that of a test', async () => {
  const server = shop();
  const sum = async (client: Client<Shop['~types']>): Promise<number> => (await client.data('add', { a: 2, b: 2 })).sum;
  const [program, tester] = [await connect(server), await testConnect(server)];
  assert.is(await sum(program), 4);
  assert.is(await sum(tester), 4);
  assert.equal(await tester.call('ping'), await program.call('ping'));
  assert.equal(await tester.tools(), await program.tools());
  const plain: TestClient = await testConnect(server as Server);
  assert.equal((await plain.request('tools/list')) !== undefined, true);
  assert.ok(tester.messages.length > 0);
  await tester.close();
  await plain.close();
  await program.close();
  await server.close();
});

test('data throws the text of a tool that failed, and for a result without structured content', async () => {
  const server = shop();
  for (const client of [await connect(server), await testConnect(server)]) {
    const failed = await client.data('fail', { why: 'no tea left' }).catch((error: unknown) => error);
    assert.ok(failed instanceof ClientError);
    assert.equal([failed.reason, failed.carriedOut], ['tool error', 'yes']);
    assert.match(failed.message, 'tools/call fail: no tea left');
    const none = await client.data('ping').catch((error: unknown) => error);
    assert.ok(none instanceof ClientError && none.reason === 'malformed');
    assert.match(none.message, 'expected structured content, got the text "pong". Use `call` for this tool');
    const returned = await client.call('fail', { why: 'no tea left' });
    assert.is(returned.isError, true);
    await client.close();
  }
  await server.close();
});
