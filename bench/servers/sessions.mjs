/** Troupe over HTTP with as many tools as its argument says; it weighs itself when the benchmark asks over IPC. Run with `--expose-gc`. */
import { createServer, http } from 'troupe';

const server = createServer({ name: 'sessions', version: '1.0.0' });
const tools = Number(process.argv[2]);
for (let n = 1; n <= tools; n += 1) {
  server.tool(
    n === 1 ? 'echo' : `tool_${n}`,
    {
      description: `Answers the text: tool ${n} of ${tools}`,
      input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    },
    async ({ text }) => text,
  );
}

process.on('message', async () => {
  // More than once, and with a turn between: what finalizers and weak references let go of goes with the next.
  for (let times = 0; times < 4; times += 1) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  process.send?.({ heap: heapUsed + external, rss });
});

const transport = http({ port: 0 });
await server.listen(transport);
process.stdout.write(`${transport.url}\n`);
process.stdin.resume().once('end', () => void server.close().then(() => process.exit()));
