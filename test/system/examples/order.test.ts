/** `examples/order` is driven as it is by the official clients of both eras: a cart, a question, one charge, and a parcel that leaves by itself. */
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { connect } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';
import { until } from '../../harness/wait.ts';
import { type OrderShop, openShop } from './order-shop.ts';

const test = suite('examples/order');

/** What both official clients give for a call. */
interface Answered {
  readonly isError?: unknown;
  readonly content?: unknown;
  readonly structuredContent?: unknown;
}

interface Caller {
  call(name: string, args: Readonly<Record<string, unknown>>): Promise<Answered>;
  read(uri: string): Promise<unknown>;
}

interface Seen {
  readonly handle: string;
  readonly state: string;
  readonly status: string;
  readonly accepts: readonly string[];
  readonly view: { readonly items: readonly unknown[]; readonly total: number };
  readonly output?: { readonly payment?: string; readonly total: number };
}

function seen({ isError, structuredContent, content }: Answered): Seen {
  assert.not.ok(isError, JSON.stringify(content));
  return Object(structuredContent);
}

async function buys({ call, read }: Caller, shop: OrderShop, questions: readonly string[]): Promise<void> {
  const { handle } = seen(await call('order_create', { customer: 'Ada' }));
  const early = await call('order_checkout', { handle });
  assert.is(early.isError, true);
  assert.match(JSON.stringify(early.content), /filled/);
  const cart = seen(await call('order_add_item', { handle, sku: 'tea', quantity: 3 }));
  assert.is(cart.view.total, 12);
  assert.equal(cart.accepts, ['add_item', 'checkout', 'cancel']);
  assert.match(JSON.stringify(await read(`troupe://order/${handle}/chart`)), /image\/svg\+xml/);

  let now = seen(await call('order_checkout', { handle }));
  assert.equal(questions, ['Charge Ada 12?']);
  await until(async () => {
    now = seen(await call('order_get', { handle }));
    return now.status !== 'active';
  }, 'the order to be shipped');
  assert.is(now.state, 'shipped');
  assert.is(now.output?.total, 12);
  assert.equal(shop.charges(), [`${now.output?.payment} Ada 12`]);
  const late = await call('order_add_item', { handle, sku: 'tea' });
  assert.is(late.isError, true);
}

async function inShop(run: (shop: OrderShop) => Promise<void>): Promise<void> {
  const shop = openShop();
  try {
    await run(shop);
  } finally {
    shop.close();
  }
}

const AGREED = { action: 'accept' as const, content: { agreed: true } };

test.full('the v1 client (2025-06-18) over stdio', () =>
  inShop(async (shop) => {
    const client = new ClientV1({ name: 'v1', version: '1' }, { capabilities: { elicitation: {} } });
    const questions: string[] = [];
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      questions.push(params.message);
      return AGREED;
    });
    const transport = new StdioV1(shop.stdio);
    // The client has no option for the revision that it asks for.
    const send = transport.send.bind(transport);
    transport.send = (message) =>
      send(
        'method' in message && message.method === 'initialize'
          ? { ...message, params: { ...message.params, protocolVersion: '2025-06-18' } }
          : message,
      );
    await client.connect(transport);
    await client.listTools();
    await buys(
      {
        call: async (name, args) => Object(await client.callTool({ name, arguments: args })),
        read: (uri) => client.readResource({ uri }),
      },
      shop,
      questions,
    );
    await client.close();
  }),
);

async function v2Buys(transport: v2.Transport, shop: OrderShop): Promise<void> {
  const client = new v2.Client(
    { name: 'v2', version: '2' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  const questions: string[] = [];
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    questions.push(String(params.message));
    return AGREED;
  });
  await client.connect(transport);
  await client.listTools();
  await buys(
    {
      call: (name, args) => client.callTool({ name, arguments: args }),
      read: (uri) => client.readResource({ uri }),
    },
    shop,
    questions,
  );
  await client.close();
}

test.full('the v2 client (2026-07-28) over stdio', () => inShop((shop) => v2Buys(new StdioV2(shop.stdio), shop)));

test('the v2 client (2026-07-28) over HTTP', () =>
  inShop(async (shop) => v2Buys(new v2.StreamableHTTPClientTransport((await shop.serve()).url), shop)));

test('a model reads what a checkout did, whatever its user answers, and few bytes of definitions', async () => {
  const { default: server } = await import('../../../examples/order/server.ts');
  const answers = {
    'cannot ask': undefined,
    declined: () => 'decline' as const,
    cancelled: () => 'cancel' as const,
    'did not agree': () => ({ agreed: false }),
    agreed: () => ({ agreed: true }),
  };
  const first: Record<string, string> = {};
  for (const [name, answer] of Object.entries(answers)) {
    const client = await connect(server, answer ? { elicit: answer } : {});
    await client.initialize();
    const { structuredContent } = await client.call('order_create', { customer: 'Ada' });
    const { handle } = Object(structuredContent);
    await client.call('order_add_item', { handle, sku: 'tea' });
    const { content } = await client.call('order_checkout', { handle });
    // The payment may end while the call waits a moment for it.
    first[name] = (String(Object(content[0]).text).split('\n')[0] ?? '').replace('paying → packing', 'paying');
    await client.close();
  }
  const question = 'the question "Charge Ada 4?"';
  assert.equal(first, {
    'cannot ask': `checkout: cart → confirming → cart (${question} could not be asked: this client does not support such questions, so another call from it does not help)`,
    declined: `checkout: cart → confirming → cart (${question} was declined)`,
    cancelled: `checkout: cart → confirming → cart (${question} was cancelled)`,
    'did not agree': `checkout: cart → confirming → cart (${question} was answered with agreed: false)`,
    agreed: `checkout: cart → confirming → paying (${question} was answered with agreed: true)`,
  });
  const client = await inSession(server);
  const tools = await client.tools();
  // 600 and 1,500 tokens: `npm run bench:tokens` counts them.
  const read = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  assert.ok(JSON.stringify(read).length < 2_600, `${JSON.stringify(read).length} characters for a model`);
  assert.ok(JSON.stringify(tools).length < 6_000, `${JSON.stringify(tools).length} characters on the wire`);
  await server.close();
});
