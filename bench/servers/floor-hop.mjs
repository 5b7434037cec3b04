/** The floor of a hop: `floor-hop.mjs owner` echoes over bare `node:http2`; `floor-hop.mjs entry` is `node:http`, and passes each body to it. */
import { createServer } from 'node:http';
import { connect, createServer as createHttp2Server } from 'node:http2';
import { answering, served } from './telling.mjs';

let link;
answering('address', () => '');
answering('link', async (to) => {
  if (process.argv[2] === 'entry') link ??= connect(`http://${to}`);
  return true;
});

/** Reads all of a stream. */
function whole(stream, done) {
  const chunks = [];
  stream.on('data', (chunk) => chunks.push(chunk));
  stream.once('end', () => done(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
}

const owner = createHttp2Server();
owner.on('stream', (stream) =>
  whole(stream, (body) => {
    const { id, params } = JSON.parse(body.toString());
    const content = [{ type: 'text', text: params.arguments.text }];
    stream.respond({ ':status': 200, 'content-type': 'application/json' });
    stream.end(JSON.stringify({ jsonrpc: '2.0', id, result: { content } }));
  }),
);
const entry = createServer((request, response) =>
  whole(request, (body) => {
    const stream = link.request({ ':method': 'POST', ':path': '/exchange' });
    stream.once('response', (headers) =>
      whole(stream, (answer) => {
        response.writeHead(200, { 'Content-Type': headers['content-type'], 'Content-Length': answer.length });
        response.end(answer);
      }),
    );
    stream.end(body);
  }),
);

const server = process.argv[2] === 'owner' ? owner : entry;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') served(`http://127.0.0.1:${address?.port}/mcp`);
});
