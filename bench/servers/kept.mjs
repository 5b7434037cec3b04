/** Troupe as it is built, for the part of the benchmark that compares a store with none: `kept.mjs none|FILE [audit|required]`. */
import { createServer, http, postgres, sqlite } from 'troupe';
import { served } from './telling.mjs';

const [file = 'none', audit] = process.argv.slice(2);
const server = createServer({
  name: 'bench',
  version: '1.0.0',
  ...(file === 'none' ? {} : { store: file.startsWith('postgres:') ? postgres(file) : sqlite(file) }),
  ...(audit === undefined ? {} : { audit: { to: 'store', required: audit === 'required' } }),
});
const input = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const READS = { readOnlyHint: true, idempotentHint: true };
server.tool('echo', { description: 'Answers the text', input, annotations: READS }, async ({ text }) => text);
const PUTS = { idempotentHint: true };
server.tool('put', { description: 'Answers the text', input, annotations: PUTS }, async ({ text }) => text);
server.tool('write', { description: 'Answers the text, and may have done more', input }, async ({ text }) => text);

const transport = http({ port: 0 });
await server.listen(transport);
served(transport.url, () => void server.close().then(() => process.exit()));
