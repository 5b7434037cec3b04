/** The floor over HTTP: bare `node:http` that parses each body, and answers an echo as large as Troupe's. */
import { createServer } from 'node:http';
import './cpu.mjs';

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
    const content = [{ type: 'text', text: params.arguments.text }];
    const result = params._meta === undefined ? { content } : { ...modern, content };
    const body = JSON.stringify({ jsonrpc: '2.0', id, result });
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') process.stdout.write(`http://127.0.0.1:${address?.port}/mcp\n`);
});
process.stdin.resume().once('end', () => process.exit(0));
