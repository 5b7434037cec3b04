/** A tea shop in the middle of its day: real clients of both eras, a question that is open, a parcel that waits, a call that runs. */
import { createServer, ToolError } from 'troupe';
import { openInspector } from 'troupe/inspector';
import { connect, type TestClient } from 'troupe/testing';
import * as z from 'zod';
import { orderMachine, SKU, totalOf } from '../../../examples/order/order.ts';
import { elapse } from '../../harness/wait.ts';

/**
 * Limits of a server that pages look at. On a busy machine a test takes minutes: by default, a handle hibernates after 30 s, and then the
 * tree lists it elsewhere, and a call ends after 60 s.
 */
export const PATIENT = { handleRestMs: 3_600_000, timeoutMs: 600_000 };

export interface Stage {
  readonly url: string;
  /** The handles of the orders, by their customers. */
  readonly orders: Readonly<Record<string, string>>;
  readonly clients: Readonly<Record<string, TestClient>>;
  /** What happens, once somebody watches. */
  begin(): Promise<void>;
  close(): Promise<void>;
}

const ASKED = { elicitation: {} };
/** A client of the modern era says with each request who it is. */
const GOOSE = {
  'io.modelcontextprotocol/clientInfo': { name: 'goose', version: '1.4.0' },
  'io.modelcontextprotocol/clientCapabilities': ASKED,
};

/** The shop of `examples/order`, with a tool that refunds and one that takes its time. */
export function shopServer() {
  const server = createServer({ name: 'tea-shop', version: '2.3.0', limits: PATIENT });
  server.machine('order', orderMachine, {
    description: 'An order in a tea shop.',
    input: z.object({ customer: z.string() }),
    events: {
      add_item: z.object({ sku: SKU, quantity: z.number().int().min(1).default(1) }),
      checkout: true,
      cancel: z.object({ reason: z.string().optional() }),
    },
    view: ({ context }) => ({ ...context, total: totalOf(context) }),
  });
  const sure = z.object({ sure: z.boolean() });
  server.tool(
    'refund',
    { description: 'Pays an order back.', input: z.object({ order: z.string(), password: z.string().optional() }) },
    async ({ order }, ctx) => {
      const answer = await ctx.elicit({ message: `Pay 42 € back for ${order}?`, schema: sure });
      return answer.status === 'accepted' && answer.content.sure ? 'Paid.' : 'Nothing was paid.';
    },
  );
  server.tool(
    'print_label',
    { description: 'Prints the label of a parcel.', input: z.object({ order: z.string() }) },
    () => {
      throw new ToolError('The printer is out of paper.');
    },
  );
  server.tool('count_stock', { description: 'Counts what is on the shelves.', input: z.object({}) }, async (_, ctx) => {
    for (let shelf = 1; !ctx.signal.aborted; shelf += 1) {
      if (shelf <= 40) ctx.progress(shelf, 40, `shelf ${shelf}`);
      await elapse(1_500, 'the tool counts a shelf');
    }
    return 'stopped';
  });
  return server;
}

export async function join(
  server: ReturnType<typeof createServer>,
  name: string,
  version: string,
  title?: string,
): Promise<TestClient> {
  const client = await connect(server, { deadlineMs: 600_000 });
  await client.send('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: ASKED,
    clientInfo: { name, version, ...(title === undefined ? {} : { title }) },
  });
  client.notify('notifications/initialized');
  return client;
}

export const tool = (
  client: TestClient,
  name: string,
  args: Readonly<Record<string, string | number>> = {},
  meta?: { progressToken: string },
) => client.send('tools/call', { name, arguments: { ...args }, ...(meta ? { _meta: meta } : {}) });

export async function handleOf(client: TestClient, customer: string): Promise<string> {
  const made = await tool(client, 'order_create', { customer });
  return String(Object(made.structuredContent).handle);
}

/** Opens the shop, its inspector, and lets clients come in. */
export async function stage({ control = false, chatter = true } = {}): Promise<Stage> {
  const server = shopServer();
  const inspector = await openInspector(server, { control });
  const claude = await join(server, 'claude-code', '2.1.4');
  const cursor = await join(server, 'cursor', '1.9.0');
  const goose = await connect(server, { deadlineMs: 600_000 });
  const zed = await join(server, 'zed', '0.210.0');
  const quiet = (promise: Promise<unknown>): void => void promise.catch(() => {});
  const [ada, grace] = [await handleOf(claude, 'Ada'), await handleOf(cursor, 'Grace')];
  const begin = async (): Promise<void> => {
    await zed.send('tools/list');
    await tool(zed, 'order_create', { customer: 'Edsger' });
    await elapse(120, 'the next thing happens later');
    await zed.close();
    await tool(cursor, 'order_add_item', { handle: grace, sku: 'kettle' });
    for (const order of ['o-4', 'o-5', 'o-6']) await tool(cursor, 'print_label', { order });
    await elapse(300, 'the next thing happens later');
    quiet(tool(cursor, 'order_checkout', { handle: grace }));
    const question = Object(await cursor.next((message) => Object(message).method === 'elicitation/create'));
    await elapse(400, 'the next thing happens later');
    cursor.raw(
      JSON.stringify({ jsonrpc: '2.0', id: question.id, result: { action: 'accept', content: { agreed: true } } }),
    );
    quiet(tool(cursor, 'count_stock', {}, { progressToken: 'stock' }));
    await tool(claude, 'order_add_item', { handle: ada, sku: 'tea', quantity: 2 });
    await elapse(250, 'the next thing happens later');
    await tool(claude, 'order_add_item', { handle: ada, sku: 'cup' });
    await elapse(150, 'the next thing happens later');
    quiet(tool(claude, 'order_add_item', { handle: ada, sku: 'coffee' }));
    await elapse(200, 'the next thing happens later');
    quiet(tool(claude, 'order_checkout', { handle: ada }));
    quiet(goose.modern('tools/call', { name: 'refund', arguments: { order: 'o-7' } }, GOOSE));
  };
  let begun: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    if (chatter) quiet(tool(cursor, 'order_get', { handle: grace }));
  }, 700);
  return {
    url: inspector.url,
    orders: { Ada: ada, Grace: grace },
    clients: { claude, cursor },
    begin: () => {
      begun = begin();
      return begun;
    },
    close: async () => {
      clearInterval(timer);
      await begun.catch(() => {});
      await inspector.close();
      await server.close();
    },
  };
}
