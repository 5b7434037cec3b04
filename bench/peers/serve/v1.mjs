/** Serves servers of the official SDK, version 1: over stdio, over HTTP with sessions, and over HTTP without, each as its documentation shows it. */
import { randomUUID } from 'node:crypto';
import { localhostHostValidation } from '@modelcontextprotocol/sdk/server/middleware/hostHeaderValidation.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import express from 'express';
import { served } from '../../servers/telling.mjs';

/**
 * @param {'stdio' | 'http' | 'stateless'} way
 * @param {() => import('@modelcontextprotocol/sdk/server/mcp.js').McpServer} makeServer
 */
export async function serve(way, makeServer) {
  if (way === 'stdio') return makeServer().connect(new StdioServerTransport());
  // As its createMcpExpressApp does, with room for bodies of more than 100 KB.
  const app = express().use(express.json({ limit: '32mb' }), localhostHostValidation());
  app.all('/mcp', way === 'stateless' ? alone(makeServer) : inSession(makeServer));
  const listener = app.listen(0, '127.0.0.1', () => served(`http://127.0.0.1:${listener.address().port}/mcp`));
}

function inSession(makeServer) {
  /** Sessions by their ids. */
  const transports = {};
  return async (request, response) => {
    let transport = transports[request.headers['mcp-session-id']];
    if (!transport) {
      if (!isInitializeRequest(request.body)) return void response.status(404).end();
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => {
          transports[id] = transport;
        },
      });
      transport.onclose = () => delete transports[transport.sessionId];
      await makeServer().connect(transport);
    }
    await transport.handleRequest(request, response, request.body);
  };
}

function alone(makeServer) {
  return async (request, response) => {
    const server = makeServer();
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on('close', () => {
      transport.close();
      server.close();
    });
    await server.connect(transport);
    await transport.handleRequest(request, response, request.body);
  };
}
