/** The official SDK, version 1: over stdio, over HTTP with sessions, and over HTTP without, each as its documentation shows it. */
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { localhostHostValidation } from '@modelcontextprotocol/sdk/server/middleware/hostHeaderValidation.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import express from 'express';
import { z } from 'zod';
import { asked, DESCRIPTION, EACH_TURN, served, turn } from '../servers/telling.mjs';

const { way, names } = asked();

function makeServer() {
  const server = new McpServer({ name: 'bench', version: '1.0.0' });
  const text = { description: DESCRIPTION, inputSchema: { text: z.string() } };
  for (const name of names) {
    if (name === 'count')
      server.registerTool(
        name,
        { description: DESCRIPTION, inputSchema: { n: z.number() } },
        async ({ n }, { _meta, sendNotification }) => {
          for (let progress = 1; progress <= n; progress += 1) {
            await sendNotification({
              method: 'notifications/progress',
              params: { progressToken: _meta?.progressToken, progress, total: n },
            });
            if (progress % EACH_TURN === 0) await turn();
          }
          return { content: [{ type: 'text', text: 'counted' }] };
        },
      );
    else
      server.registerTool(name, text, async ({ text }) => ({
        content: [{ type: 'text', text: name === 'size' ? String(text.length) : text }],
      }));
  }
  return server;
}

/** Sessions by their ids. */
const transports = {};

async function inSession(request, response) {
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
}

async function alone(request, response) {
  const server = makeServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => {
    transport.close();
    server.close();
  });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
}

if (way === 'stdio') await makeServer().connect(new StdioServerTransport());
else {
  // What its createMcpExpressApp makes, but for bodies of more than 100 KB.
  const app = express().use(express.json({ limit: '32mb' }), localhostHostValidation());
  app.all('/mcp', way === 'stateless' ? alone : inSession);
  const listener = app.listen(0, '127.0.0.1', () => served(`http://127.0.0.1:${listener.address().port}/mcp`));
}
