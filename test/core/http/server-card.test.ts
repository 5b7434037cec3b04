/** The card of a server over HTTP and the catalogue that names it: what they have, who may read them, and what they never say. */
import * as assert from 'uvu/assert';
import { createServer, http } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { ask } from './support.ts';

const test = suite('server cards');

const options = { name: 'shop', version: '1.2.0', title: 'The Shop', description: 'Sells things.' };

async function serve(card: Parameters<typeof http>[0]) {
  const server = createServer(options);
  server.tool('secret_tool', () => 'a');
  const transport = http({ port: 0, ...card });
  await server.listen(transport);
  const { origin } = new URL(transport.url);
  const get = (path: string, headers = {}, method = 'GET') =>
    ask(`${origin}${path}`, { method, headers: { accept: undefined, ...headers } });
  return { server, get };
}

test('a card has the server and its address, never the tools, and the catalogue leads to it', async () => {
  const { server, get } = await serve({ card: true, allowedHosts: ['mcp.example.com'], authenticate: () => undefined });
  const card = await get('/mcp/server-card', { origin: 'https://somebody.example.org' });
  assert.is(card.status, 200);
  assert.is(card.headers['content-type'], 'application/mcp-server-card+json');
  assert.is(card.headers['access-control-allow-origin'], '*');
  assert.is(card.headers['cache-control'], 'public, max-age=3600');
  const text = await card.text();
  assert.not.match(text, /secret_tool/);
  const { remotes, ...rest } = JSON.parse(text);
  assert.equal(rest, {
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    ...{ name: 'com.example.mcp/shop', version: '1.2.0', description: 'Sells things.', title: 'The Shop' },
  });
  assert.equal(
    [remotes.length, remotes[0].type, remotes[0].url],
    [1, 'streamable-http', 'https://mcp.example.com/mcp'],
  );
  assert.is(remotes[0].supportedProtocolVersions[0], '2026-07-28');
  const { etag } = card.headers;
  const again = await get('/mcp/server-card', { 'if-none-match': `"other", W/${String(etag)}` });
  assert.equal([again.status, again.headers.etag, await again.text()], [304, etag, '']);
  assert.is((await get('/mcp/server-card', { 'if-none-match': '"other"' })).status, 200);
  const catalogue = await get('/.well-known/ai-catalog.json');
  assert.is(catalogue.headers['content-type'], 'application/ai-catalog+json');
  const catalog = JSON.parse(await catalogue.text());
  assert.equal(catalog.entries, [
    {
      identifier: 'urn:air:mcp.example.com:mcp:shop',
      ...{ type: 'application/mcp-server-card+json', url: 'https://mcp.example.com/mcp/server-card' },
    },
  ]);
  // Everything else still needs a sign-in, and another site stays out.
  assert.is((await get('/mcp')).status, 401);
  assert.is((await get('/mcp', { origin: 'https://somebody.example.org' })).status, 403);
  assert.is((await get('/mcp/server-card', { host: 'evil.example.org' })).status, 403);
  assert.is((await get('/mcp/server-card', {}, 'POST')).status, 405);
  assert.is((await get('/mcp/server-card', {}, 'HEAD')).status, 200);
  assert.is((await get('/mcp/server-card', {}, 'OPTIONS')).status, 204);
  assert.is((await get('/mcp/server-card?a=b')).status, 200);
  await server.close();
});

test('the address of a card comes from options and never from a request, and a server without the option has none', async () => {
  const { server, get } = await serve({
    card: { url: 'https://example.com/tools/mcp', name: 'com.example/tools', catalog: '/.well-known/mcp/catalog.json' },
    allowedHosts: ['example.com', 'other.example.com'],
  });
  const card = JSON.parse(await (await get('/tools/mcp/server-card', { host: 'other.example.com' })).text());
  assert.equal([card.name, card.remotes[0].url], ['com.example/tools', 'https://example.com/tools/mcp']);
  assert.is((await get('/.well-known/ai-catalog.json')).status, 404);
  assert.is((await get('/.well-known/mcp/catalog.json')).status, 200);
  await server.close();
  const none = await serve({});
  assert.is((await none.get('/mcp/server-card')).status, 404);
  await none.server.close();
});
