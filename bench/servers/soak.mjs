/** Troupe as it is built, with tools for a long run: one that answers, one that fails, one that reports, one that waits until it is cancelled. */
import { createServer, stdio } from 'troupe';

const server = createServer({ name: 'soak', version: '1.0.0' });
const text = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const waits = { running: 0, cancelled: 0 };

server.tool('echo', { input: text }, async ({ text }) => text);
server.tool('fail', { input: text }, async ({ text }) => {
  throw new Error(text);
});
server.tool('report', { input: text }, async ({ text }, ctx) => {
  for (let done = 1; done <= 3; done += 1) ctx.progress(done, 3);
  return { text };
});
server.tool('wait', {}, async (_, ctx) => {
  waits.running += 1;
  await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
  waits.running -= 1;
  waits.cancelled += 1;
});
server.tool('waits', {}, () => waits);
server.tool('collect', {}, () => {
  globalThis.gc?.();
  return 'collected';
});
await server.listen(stdio());
