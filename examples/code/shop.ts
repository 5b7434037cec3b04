/** The API of a shop, with its OpenAPI document, at a port of this machine. */

import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

const ORDERS = [
  { id: 'A1', product: 'lamp', amount: 40, customer: 'ada@example.com' },
  { id: 'A2', product: 'desk', amount: 310, customer: 'bob@example.com' },
  { id: 'A3', product: 'sofa', amount: 990, customer: 'eve@example.com' },
] as const;

const order = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    product: { type: 'string' },
    amount: { type: 'number', description: 'In euros' },
    customer: { type: 'string', description: 'The address for mail' },
  },
};
const json = (schema: object): object => ({ description: 'ok', content: { 'application/json': { schema } } });

const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Shop', version: '1.0.0' },
  servers: [{ url: '/' }],
  paths: {
    '/orders': {
      get: {
        operationId: 'list_orders',
        summary: 'Lists the orders that are not sent yet',
        responses: { '200': json({ type: 'object', properties: { orders: { type: 'array', items: order } } }) },
      },
    },
    '/orders/{id}/refund': {
      post: {
        operationId: 'refund_order',
        summary: 'Cancels an order and pays the money back',
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
        responses: { '200': json({ type: 'object', properties: { refunded: { type: 'number' } } }) },
      },
    },
  },
};

/** A file with a line for each effect, which a test counts. */
const ledger = process.env.OFFICE_LEDGER;

/** Has an effect. @returns its description */
export function effect(what: string): string {
  if (ledger !== undefined) appendFileSync(ledger, `${what}\n`);
  return what;
}

/** Starts the API, which does not keep this process alive. @returns the address of its document */
export async function startShop(): Promise<string> {
  const web = createServer((request, response) => {
    const [, id] = /^\/orders\/([^/]+)\/refund$/.exec(request.url ?? '') ?? [];
    const found = ORDERS.find((each) => each.id === id);
    response.setHeader('content-type', 'application/json');
    if (request.url === '/shop.json') response.end(JSON.stringify(DOCUMENT));
    else if (request.method === 'GET' && request.url === '/orders') response.end(JSON.stringify({ orders: ORDERS }));
    else if (request.method === 'POST' && found) {
      effect(`refunded ${found.id}`);
      response.end(JSON.stringify({ refunded: found.amount }));
    } else response.writeHead(404).end(JSON.stringify({ message: `there is no ${request.url}` }));
  });
  web.unref();
  await once(web.listen(0, '127.0.0.1'), 'listening');
  const address = web.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/shop.json`;
}
