/** An office behind one gateway: an issue tracker with an OpenAPI document, a shop and a mail server, in which scripts work. */
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { createServer, openapi, type Server, type ServerOptions } from '../../../src/index.ts';

interface Issue {
  readonly number: number;
  readonly title: string;
  state: string;
  readonly labels: readonly string[];
  readonly comments: string[];
}

export interface Office {
  readonly gateway: Server;
  readonly issues: readonly Issue[];
  /** The orders that were refunded, and the mails that were sent. */
  readonly refunds: number[];
  readonly mails: string[];
  close(): Promise<void>;
}

const ISSUE = {
  type: 'object',
  properties: {
    number: { type: 'integer' },
    title: { type: 'string' },
    state: { type: 'string', enum: ['open', 'closed'] },
    labels: { type: 'array', items: { type: 'string' } },
  },
  required: ['number', 'title', 'state', 'labels'],
};

const inPath = { name: 'number', in: 'path', required: true, schema: { type: 'integer' } };
const inQuery = (name: string, schema: JsonObject, description = ''): JsonObject => ({
  ...{ name, in: 'query', schema },
  ...(description !== '' && { description }),
});
const answers = (schema: JsonObject): JsonObject => ({
  '200': { description: 'ok', content: { 'application/json': { schema } } },
});
const accepts = (schema: JsonObject): JsonObject => ({ required: true, content: { 'application/json': { schema } } });

const DOCUMENT: JsonObject = {
  openapi: '3.1.0',
  info: { title: 'Tracker', version: '1.0.0' },
  servers: [{ url: '/' }],
  paths: {
    '/issues': {
      get: {
        ...{ operationId: 'issues/list', tags: ['issues'], summary: 'Lists issues' },
        description: 'Lists issues, the newest first. A page that is not full is the last.',
        parameters: [
          inQuery('state', { type: 'string', enum: ['open', 'closed', 'all'], default: 'open' }),
          inQuery('page', { type: 'integer', default: 1 }),
          inQuery('per_page', { type: 'integer', maximum: 30, default: 10 }, 'At most 30. Less is quicker.'),
        ],
        responses: answers({ type: 'array', items: { $ref: '#/components/schemas/Issue' } }),
      },
    },
    '/issues/{number}': {
      patch: {
        ...{ operationId: 'issues/update', tags: ['issues'], summary: 'Changes an issue' },
        parameters: [inPath],
        requestBody: accepts({ type: 'object', properties: { state: { type: 'string', enum: ['open', 'closed'] } } }),
        responses: answers({ $ref: '#/components/schemas/Issue' }),
      },
    },
    '/issues/{number}/comments': {
      post: {
        ...{ operationId: 'issues/create-comment', tags: ['issues', 'comments'], summary: 'Comments on an issue' },
        parameters: [inPath],
        requestBody: accepts({ type: 'object', properties: { body: { type: 'string' } }, required: ['body'] }),
        responses: answers({ type: 'object', properties: { id: { type: 'integer' } } }),
      },
    },
  },
  components: { schemas: { Issue: ISSUE } },
};

/** Opens the office. Its gateway has clients whose answers to approvals are their own. */
export async function openOffice(options: Partial<ServerOptions> = {}): Promise<Office> {
  const issues: Issue[] = Array.from({ length: 57 }, (_, at) => ({
    number: at + 1,
    title: at % 6 === 0 ? `Order ${1_000 + at} arrived broken` : `Something else ${at}`,
    state: at % 4 === 3 ? 'closed' : 'open',
    labels: [at % 2 === 0 ? 'bug' : 'question', ...(at % 5 === 0 ? ['urgent'] : [])],
    comments: [],
  }));
  const api = createHttpServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    bodyOf(request).then(
      (body) => {
        const answer = answered(issues, request.method ?? '', new URL(request.url ?? '', 'http://tracker'), body);
        response.writeHead(answer === undefined ? 404 : 200).end(JSON.stringify(answer ?? { message: 'Not found' }));
      },
      () => response.destroy(),
    );
  }).listen(0, '127.0.0.1');
  await once(api, 'listening');
  const address = api.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const refunds: number[] = [];
  const mails: string[] = [];
  const gateway = createServer({ name: 'office', version: '1.0.0', log: () => {}, ...options });
  await gateway.mount('tracker', openapi({ ...DOCUMENT, servers: [{ url: `http://127.0.0.1:${port}` }] }), {
    expose: 'code',
  });
  await gateway.mount('shop', shop(refunds), { expose: 'code', trust: true, validate: true });
  await gateway.mount('mail', mailServer(mails), { expose: 'code', trust: true, validate: true });
  return {
    ...{ gateway, issues, refunds, mails },
    async close() {
      await gateway.close();
      api.closeAllConnections();
      api.close();
      await once(api, 'close');
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<JsonObject> {
  let text = '';
  for await (const part of request) text += String(part);
  return text === '' ? {} : JSON.parse(text);
}

function answered(
  issues: readonly Issue[],
  method: string,
  { pathname, searchParams }: URL,
  body: JsonObject,
): unknown {
  const [, root, number, comments] = pathname.split('/');
  if (root !== 'issues') return undefined;
  const shown = ({ comments: _, ...issue }: Issue): object => issue;
  if (number === undefined) {
    const state = searchParams.get('state') ?? 'open';
    const [page, size] = [Number(searchParams.get('page') ?? 1), Number(searchParams.get('per_page') ?? 10)];
    const found = issues.filter((issue) => state === 'all' || issue.state === state);
    return found.slice((page - 1) * size, page * size).map(shown);
  }
  const issue = issues[Number(number) - 1];
  if (!issue) return undefined;
  if (comments === 'comments' && method === 'POST') return { id: issue.comments.push(String(body.body)) };
  if (method !== 'PATCH') return undefined;
  issue.state = String(body.state);
  return shown(issue);
}

const READS = { readOnlyHint: true } as const;
const CUSTOMERS = ['ada', 'bob', 'cy', 'dora'];

function shop(refunds: number[]): Server {
  const server = createServer({ name: 'shop', version: '1.0.0', log: () => {} });
  const orders = Array.from({ length: 60 }, (_, at) => ({
    id: 1_000 + at,
    customer: CUSTOMERS[at % 3] ?? '',
    cents: 500 * (at + 1),
    status: at % 7 === 0 ? 'lost' : 'delivered',
  }));
  server.tool(
    'customers',
    { description: 'Lists all customers with their mail addresses.', annotations: READS },
    // As many servers do: JSON in a text, without a schema.
    () => ({
      content: [
        {
          type: 'text',
          text: JSON.stringify(CUSTOMERS.map((id) => ({ id, mail: `${id}@example.com`, since: 2_020 }))),
        },
      ],
    }),
  );
  const id = { type: 'integer', description: 'The number of the order.' } as const;
  server.tool(
    'get-order',
    {
      description: 'Returns one order. Amounts are in cents.',
      annotations: READS,
      input: { type: 'object', properties: { id }, required: ['id'] },
    },
    ({ id: wanted }) => orders.find((order) => order.id === wanted) ?? { error: 'no such order' },
  );
  server.tool(
    'list-orders',
    {
      description: 'Lists the orders of a customer.',
      annotations: READS,
      input: { type: 'object', properties: { customer: { type: 'string' } }, required: ['customer'] },
    },
    ({ customer }) => ({ orders: orders.filter((order) => order.customer === customer) }),
  );
  server.tool(
    'refund',
    {
      description: 'Refunds an order in full.',
      input: { type: 'object', properties: { id, reason: { type: 'string' } }, required: ['id'] },
    },
    ({ id: order }) => {
      refunds.push(order);
      return `refunded order ${order}`;
    },
  );
  return server;
}

function mailServer(mails: string[]): Server {
  const server = createServer({ name: 'mail', version: '1.0.0', log: () => {} });
  server.tool(
    'send',
    {
      description: 'Sends a mail. Fails for an address that does not exist.',
      input: {
        type: 'object',
        properties: { to: { type: 'string' }, subject: { type: 'string' }, text: { type: 'string' } },
        required: ['to', 'subject', 'text'],
      },
    },
    ({ to, subject }) => {
      if (to.startsWith('cy@')) throw new Error('550 mailbox unavailable');
      mails.push(`${to}: ${subject}`);
      return { content: [{ type: 'text', text: `sent to ${to}` }] };
    },
  );
  return server;
}
