/** A server with rules: who may use which element, how often, and a record of it. */
import { createServer } from 'troupe';
import { z } from 'zod';

const server = createServer({
  name: 'orders',
  version: '1.0.0',
  audit: { to: (record) => console.error(JSON.stringify(record)) },
});

// An element names the scopes that a caller needs.
server.tool('list_orders', { scopes: ['orders:read'] }, (_, ctx) => `the orders of ${ctx.auth?.subject}`);
server.resource('orders://{id}', { name: 'order', scopes: ['orders:read'] }, ({ variables: { id } }) => `order ${id}`);

// A rule about every element decides by the arguments: a large refund needs one scope more.
server.tool('refund', { scopes: ['orders:refund'], input: z.object({ amount: z.number() }) }, () => 'refunded');
server.authorize(({ element, arguments: args }) => {
  const large = element.name === 'refund' && Number(args.amount) >= 100;
  return !large || { scopes: ['orders:refund:large'] };
});

// For everybody else, this tool does not exist.
server.tool('close_shop', { allow: ({ auth }) => auth?.claims.staff === true || { hidden: true } }, () => 'closed');

// Twice a minute for each principal.
server.tool('export', { scopes: ['orders:read'], limits: { perMinute: 2 } }, () => 'id,amount\n17,80\n');

export default server;
