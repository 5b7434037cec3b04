/** Troupe as it is built, in the way and with as many tools as its command line asks for. */
import { createServer, http, stdio } from 'troupe';
import { asked, DESCRIPTION, EACH_TURN, served, turn } from './telling.mjs';

const { way, names } = asked();
const server = createServer({
  name: 'bench',
  version: '1.0.0',
  limits: { maxMessageBytes: 32 * 1024 * 1024 },
});
const text = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const number = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
for (const name of names) {
  if (name === 'count')
    server.tool(name, { description: DESCRIPTION, input: number }, async ({ n }, ctx) => {
      for (let done = 1; done <= n; done += 1) {
        ctx.progress(done, n);
        if (done % EACH_TURN === 0) await turn();
      }
      return 'counted';
    });
  else
    server.tool(name, { description: DESCRIPTION, input: text }, async ({ text }) =>
      name === 'size' ? String(text.length) : text,
    );
}

if (way === 'stdio') await server.listen(stdio());
else {
  const transport = http({ port: 0 });
  await server.listen(transport);
  served(transport.url, () => void server.close().then(() => process.exit()));
}
