/**
 * The floor of a hop: `floor-hop.mjs owner` echoes the lines of one socket; `floor-hop.mjs entry` is `node:http`, and passes each
 * body to it as a line. All lines of a turn are one write. Nothing is signed or checked.
 */
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { answering, served } from './telling.mjs';

let link;
/** Not a Map, which keeps removed entries in memory (docs/adr/0006). */
const waiting = new Array(4_096);
let last = 0;
answering('address', () => '');
answering('link', async (to) => {
  if (process.argv[2] !== 'entry' || link) return true;
  const [host, port] = to.split(':');
  link = lines(connect({ host, port: Number(port) }), (number, answer) => {
    const response = waiting[number % waiting.length];
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(answer) });
    response.end(answer);
  });
  return true;
});

/** Reads lines with a number in front. @returns writes one, at the end of the turn */
function lines(socket, line) {
  let rest = '';
  let unsent = '';
  socket.setNoDelay(true);
  socket.setEncoding('utf8').on('data', (text) => {
    const all = (rest + text).split('\n');
    rest = all.pop();
    for (const each of all) line(Number(each.slice(0, each.indexOf(' '))), each.slice(each.indexOf(' ') + 1));
  });
  socket.on('error', () => {});
  return (number, text) => {
    if (unsent === '')
      process.nextTick(() => {
        socket.write(unsent);
        unsent = '';
      });
    unsent += `${number} ${text}\n`;
  };
}

const owner = createTcpServer((socket) => {
  const write = lines(socket, (number, body) => {
    const { id, params } = JSON.parse(body);
    const content = [{ type: 'text', text: params.arguments.text }];
    write(number, JSON.stringify({ jsonrpc: '2.0', id, result: { content } }));
  });
});
const entry = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.once('end', () => {
    last += 1;
    waiting[last % waiting.length] = response;
    link(last, Buffer.concat(chunks).toString());
  });
});

const server = process.argv[2] === 'owner' ? owner : entry;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') served(`http://127.0.0.1:${address?.port}/mcp`);
});
