/** Serves a server of FastMCP (TypeScript): over stdio, over HTTP with sessions, and over HTTP without. */
import { createServer } from 'node:net';
import { served } from '../../servers/telling.mjs';

const quiet = () => {};

/** A logger that writes nothing: stdout has only the address. */
export const logger = { debug: quiet, error: quiet, info: quiet, log: quiet, warn: quiet };

/**
 * @param {'stdio' | 'http' | 'stateless'} way
 * @param {import('fastmcp').FastMCP} server
 */
export async function serve(way, server) {
  if (way === 'stdio') return server.start({ transportType: 'stdio' });
  const port = await freePort();
  console.log = console.info = quiet;
  await server.start({
    transportType: 'httpStream',
    httpStream: { host: '127.0.0.1', port, stateless: way === 'stateless' },
  });
  served(`http://127.0.0.1:${port}/mcp`);
}

/** FastMCP does not report the port that it chose itself. */
async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
