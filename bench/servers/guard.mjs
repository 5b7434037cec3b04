/** Troupe as it is built, for the part of the benchmark that compares guards: `guard.mjs name`, `guard.mjs remember|verify ISSUER`. */
import { createServer, http } from 'troupe';
import { oauth } from 'troupe/oauth';
import { served } from './telling.mjs';

const [guard = 'name', issuer] = process.argv.slice(2);
const rememberMs = guard === 'verify' ? 0 : 300_000;
const server = createServer({ name: 'bench', version: '1.0.0', log() {} });
const input = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
server.tool('echo', { description: 'Answers the text', input }, async ({ text }) => text);

const transport = http(
  guard === 'name'
    ? { port: 0, authenticate: () => 'ada' }
    : { port: 0, auth: oauth({ resource: 'https://mcp.example.com/mcp', issuer, rememberMs }) },
);
await server.listen(transport);
served(transport.url, () => void server.close().then(() => process.exit()));
