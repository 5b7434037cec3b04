/** Serves a server of tmcp: both eras over stdio and over HTTP, there with sessions for the legacy ones. */
import { HttpTransport } from '@tmcp/transport-http';
import { StdioTransport } from '@tmcp/transport-stdio';
import { serve as listen } from 'srvx';
import { served } from '../../servers/telling.mjs';

/**
 * @param {'stdio' | 'http'} way
 * @param {import('tmcp').McpServer} server
 */
export async function serve(way, server) {
  if (way === 'stdio') return new StdioTransport(server).listen();
  const transport = new HttpTransport(server, { path: '/mcp' });
  const listening = listen({
    port: 0,
    hostname: '127.0.0.1',
    silent: true,
    gracefulShutdown: false,
    fetch: async (request) => (await transport.respond(request)) ?? new Response(null, { status: 404 }),
  });
  await listening.ready();
  served(new URL('/mcp', listening.url).href);
}
