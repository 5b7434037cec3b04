/** The floor of a broadcast: bare `node:http` that keeps the responses of its streams, and writes one event to each in one loop. */
import { createServer } from 'node:http';
import { answering, served } from './telling.mjs';

const SESSION = '0123456789abcdefghijkl';

/** The streams: each with what its events begin and end with, which is its own. */
const streams = [];

const server = createServer((request, response) => {
  if (request.method === 'GET') return open(response, undefined);
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (/** @type {string} */ chunk) => {
    text += chunk;
  });
  request.on('end', () => {
    const { id, method, params } = JSON.parse(text);
    if (method === 'subscriptions/listen') return open(response, id);
    if (id === undefined) return response.writeHead(202, { 'Content-Length': 0 }).end();
    const result =
      method === 'tools/call'
        ? { content: [{ type: 'text', text: params.arguments.text }], task: { taskId: 'task' }, taskId: 'task' }
        : { protocolVersion: '2025-11-25' };
    const body = JSON.stringify({ jsonrpc: '2.0', id, result });
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      'Mcp-Session-Id': SESSION,
    });
    response.end(body);
  });
});

/** @param listen the id of the request that the stream answers; undefined for the stream of a session, whose events have ids */
function open(response, listen) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
  response.flushHeaders();
  streams.push({ response, listen, name: `~${String(streams.length).padStart(12, '0')}`, seq: 0 });
  if (listen === undefined) return;
  const _meta = { 'io.modelcontextprotocol/subscriptionId': listen };
  response.write(`data: ${message('notifications/subscriptions/acknowledged', { _meta })}\n\n`);
}

function message(method, params) {
  return JSON.stringify({ jsonrpc: '2.0', method, params });
}

/** Writes one event to each stream, in one loop. */
function tell(method, params) {
  const text = message(method, params);
  for (const stream of streams) {
    const { response, listen, name } = stream;
    if (listen === undefined) {
      stream.seq += 1;
      response.write(`id: ${name}_${stream.seq}\ndata: ${text}\n\n`);
    } else {
      const _meta = { 'io.modelcontextprotocol/subscriptionId': listen };
      response.write(`data: ${message(method, { _meta, ...params })}\n\n`);
    }
  }
}

const status = {
  taskId: '0123456789abcdefghijkl',
  status: 'working',
  statusMessage: 'report 1',
  createdAt: '2026-01-01T00:00:00.000Z',
  lastUpdatedAt: '2026-01-01T00:00:00.000Z',
  ttlMs: 3_600_000,
  pollIntervalMs: 1_000,
};

const changing = (change) => () => {
  const at = String(process.hrtime.bigint());
  change();
  return at;
};
answering(
  'list',
  changing(() => tell('notifications/tools/list_changed')),
);
answering(
  'resource',
  changing(() => tell('notifications/resources/updated', { uri: 'doc://1' })),
);
answering(
  'task',
  changing(() => tell('notifications/tasks', status)),
);
answering(
  'tasks',
  changing(() => tell('notifications/tasks/status', status)),
);

server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  const address = server.address();
  if (typeof address === 'object') served(`http://127.0.0.1:${address?.port}/mcp`);
});
