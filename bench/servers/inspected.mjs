/** Echo over stdio, with an inspector on the port and with the token that it is given; `delay` tells how long its event loop was held up. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createServer, stdio } from 'troupe';
import { openInspector } from 'troupe/inspector';

const [port, token] = process.argv.slice(2);
const server = createServer({ name: 'bench', version: '1.0.0' });
server.tool(
  'echo',
  {
    description: 'Answers the text',
    input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
  async ({ text }) => text,
);
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
server.tool('delay', {}, () => {
  const p99 = delay.percentile(99) / 1e6;
  const max = delay.max / 1e6;
  delay.reset();
  return { p99, max };
});
await openInspector(server, { port: Number(port), token });
await server.listen(stdio());
