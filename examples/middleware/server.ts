/** A server whose middleware logs and times every request, and rejects large withdrawals. */
import { createServer, type Middleware, stdio, ToolError } from 'troupe';
import { z } from 'zod';

const server = createServer({ name: 'ledger', version: '1.0.0' });

/** Writes one line to stderr for each request: what was asked, for whom, how it ended, and after how long. */
const logged: Middleware = async (call, ctx, next) => {
  const what = 'name' in call.params ? `${call.method} ${call.params.name}` : call.method;
  const started = performance.now();
  let outcome = 'failed';
  try {
    const result = await next();
    outcome = 'isError' in result && result.isError ? 'error result' : 'ok';
    return result;
  } finally {
    const ms = (performance.now() - started).toFixed(1);
    console.error(`${what} for ${ctx.client.info?.name ?? 'unknown'}: ${outcome}, ${ms} ms`);
  }
};

server.use(logged);

server.use('tools/call', async (call, _ctx, next) => {
  const { name, arguments: given } = call.params;
  // The arguments are unchecked here: the schema of the tool rejects what is no number.
  if (name === 'withdraw' && Number(given.coins) > 50)
    throw new ToolError('Nobody withdraws more than 50 coins at once. Ask your user for a smaller amount.');
  return next();
});

let balance = 100;

server.tool('balance', { annotations: { readOnlyHint: true } }, () => `${balance} coins`);

server.tool('withdraw', { input: z.object({ coins: z.int().min(1) }) }, ({ coins }) => {
  balance -= coins;
  return `${balance} coins left`;
});

await server.listen(stdio());
