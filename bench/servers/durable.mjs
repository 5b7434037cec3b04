/** The server of the durable benchmark: `durable.mjs FILE PORT SLEEP_MS`. Says its url in a line on stdout. */
import { createServer, http, sqlite } from '../../dist/lib/index.js';

const [file, port, sessionSleepMs] = process.argv.slice(2);
const limits = { sessionSleepMs: Number(sessionSleepMs) };
const server = createServer({ name: 'durable', version: '1.0.0', store: sqlite(file), limits });
server.tool('look', { annotations: { readOnlyHint: true } }, () => 'looked');
server.tool('charge', {}, () => 'charged');
server.tool('weigh', { annotations: { readOnlyHint: true } }, () => {
  global.gc();
  global.gc();
  return JSON.stringify(process.memoryUsage());
});
const transport = http({ port: Number(port), authenticate: ({ header }) => header('authorization') });
await server.listen(transport);
process.stdout.write(`${transport.url}\n`);
