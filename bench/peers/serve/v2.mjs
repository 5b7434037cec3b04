/** Serves servers of the official SDK, version 2: both eras over stdio; over HTTP the modern one, and the legacy ones without sessions. */
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { served } from '../../servers/telling.mjs';

/**
 * @param {'stdio' | 'http'} way
 * @param {() => import('@modelcontextprotocol/server').McpServer} makeServer
 * @returns the function that announces changed tools to the clients of HTTP
 */
export function serve(way, makeServer) {
  if (way === 'stdio') {
    serveStdio(makeServer);
    return () => {};
  }
  const large = { maxRequestBodySize: 32 * 1024 * 1024 };
  const handler = createMcpHandler(makeServer, large);
  const listener = createServer(toNodeHandler(handler, large));
  listener.listen(0, '127.0.0.1', () => served(`http://127.0.0.1:${listener.address().port}/mcp`));
  return () => handler.notify.toolsChanged();
}
