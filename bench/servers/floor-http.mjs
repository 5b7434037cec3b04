/** The floor over HTTP: bare `node:http` that parses each body, and answers as much as Troupe does: an echo, a length, or a stream of events. */
import { createServer } from 'node:http';
import { EACH_TURN, served, turn } from './telling.mjs';

const modern = {
  resultType: 'complete',
  _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'bench', version: '1.0.0' } },
};

const server = createServer((request, response) => {
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (/** @type {string} */ chunk) => {
    text += chunk;
  });
  request.on('end', () => {
    const { id, params } = JSON.parse(text);
    if (params.name === 'count') return count(response, id, params);
    const answer = params.name === 'size' ? String(params.arguments.text.length) : params.arguments.text;
    const body = shown(id, params, answer);
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
    response.end(body);
  });
});

function shown(id, params, text) {
  const content = [{ type: 'text', text }];
  const isModern = params._meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined;
  return JSON.stringify({ jsonrpc: '2.0', id, result: isModern ? { ...modern, content } : { content } });
}

async function count(response, id, params) {
  const { progressToken } = params._meta;
  const total = params.arguments.n;
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  for (let progress = 1; progress <= total; progress += 1) {
    const event = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress, total } };
    response.write(`event: message\ndata: ${JSON.stringify(event)}\n\n`);
    if (progress % EACH_TURN === 0) await turn();
  }
  response.end(`event: message\ndata: ${shown(id, params, 'counted')}\n\n`);
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') served(`http://127.0.0.1:${address?.port}/mcp`);
});
