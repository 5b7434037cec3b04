/** Troupe as it is built, with rules and without, for the part of the benchmark that compares them: `rules.mjs open|ruled|list|views`. */
import { createServer, http } from 'troupe';
import { served } from './telling.mjs';

const TOOLS = 200;
const VIEWS = 8;

const [way = 'open'] = process.argv.slice(2);
const server = createServer({ name: 'bench', version: '1.0.0', log() {}, limits: { pageSize: TOOLS } });
const input = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const scopes = way === 'ruled' ? { scopes: ['orders:read'] } : {};
server.tool('echo', { description: 'Answers the text', input, ...scopes }, async ({ text }) => text);
if (way === 'ruled')
  server.authorize(
    ({ element, arguments: { text } }) => element.name !== 'echo' || text.length < 100 || { deny: 'long' },
  );
if (way === 'list' || way === 'views')
  for (let index = 1; index < TOOLS; index += 1)
    server.tool(`tool_${index}`, { description: `Tool ${index}`, input }, async ({ text }) => text);
if (way === 'views') {
  // Each group sees all but 24 of the tools. A rule looks names up in tables, and parses none.
  const groups = new Map(Array.from({ length: TOOLS }, (_, index) => [`tool_${index}`, index % VIEWS]));
  server.authorize(({ element, auth }) => groups.get(element.name) !== auth?.claims.group || { hidden: true });
}

const callers = new Map(
  Array.from({ length: 32 }, (_, index) => [
    `Bearer ${index}`,
    Object.freeze({
      principal: `ada-${index}`,
      scopes: Object.freeze(['orders:read']),
      claims: Object.freeze({ group: index % VIEWS }),
    }),
  ]),
);
const transport = http({
  port: 0,
  auth: {
    authenticate({ header }) {
      const auth = callers.get(header('authorization') ?? '');
      return auth ? { auth } : { status: 401, headers: {}, message: 'who?' };
    },
    challenge: () => [],
    documents: new Map(),
  },
});
await server.listen(transport);
served(transport.url, () => void server.close().then(() => process.exit()));
