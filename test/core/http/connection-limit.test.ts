/** The limit of connections: a new connection replaces the one that has been idle for the longest time, and no request is cut off. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { limitConnections } from '../../../src/core/http/connection-limit.ts';
import { createServer as createMcpServer, http } from '../../../src/index.ts';
import { openViewFrames } from '../../../src/inspector/http/view-frames.ts';
import { openInspector } from '../../../src/inspector/inspector.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the limit of connections');

interface Peer {
  readonly socket: Socket;
  readonly text: () => string;
  readonly closed: Promise<unknown>;
  /** Sends a request. Resolves with the status of its response. */
  get(path?: string): Promise<string>;
}

async function peer(port: number): Promise<Peer> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8').on('data', (part) => {
    text += part;
  });
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await once(socket, 'connect');
  return {
    socket,
    text: () => text,
    closed,
    async get(path = '/') {
      const before = text.length;
      socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
      await Promise.race([once(socket, 'data'), closed]);
      return text.slice(before, before + 12);
    },
  };
}

test('the connection that has been idle for the longest time makes room, and one with a request never does', async () => {
  const held: ServerResponse[] = [];
  const server = createServer((request, response) => {
    if (request.url === '/hold') {
      held.push(response);
      response.writeHead(200).write('begun');
    } else response.end('done');
  });
  limitConnections(server, 4);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const peers: Peer[] = [];
  const add = async (): Promise<Peer> => {
    const one = await peer(port);
    peers.push(one);
    return one;
  };
  const busy = await add();
  await busy.get('/hold');
  const used = await add();
  const first = await add();
  const second = await add();
  // A request makes this connection the newest of the idle ones.
  assert.is(await used.get(), 'HTTP/1.1 200');
  const third = await add();
  await first.closed;
  assert.is(await third.get(), 'HTTP/1.1 200');
  const fourth = await add();
  await second.closed;
  await fourth.get('/hold');
  const fifth = await add();
  await used.closed;
  await fifth.get('/hold');
  const sixth = await add();
  await third.closed;
  await sixth.get('/hold');
  // All connections have requests now.
  await (await add()).closed;
  for (const one of [busy, fourth, fifth, sixth]) assert.match(one.text(), 'begun');
  for (const response of held) response.end('held');
  // Connections whose requests have ended are idle again.
  assert.is(await (await add()).get(), 'HTTP/1.1 200');
  server.close();
  server.closeAllConnections();
});

const LISTENERS: Readonly<Record<string, () => Promise<{ port: number; path: string; close(): Promise<unknown> }>>> = {
  async inspector() {
    const server = createMcpServer({ name: 'shown', version: '1.0.0', log: () => {} });
    const { url } = await openInspector(server);
    return { port: Number(new URL(url).port), path: '/', close: () => server.close() };
  },
  async 'frames of views'() {
    const frames = await openViewFrames(() => 'http://127.0.0.1:1');
    return { port: Number(new URL(frames.origin).port), path: '/', close: () => frames.close() };
  },
  async metrics() {
    const server = createMcpServer({ name: 'measured', version: '1.0.0', log: () => {} });
    const transport = http({ port: 0, metrics: { port: 0 } });
    await server.listen(transport);
    const { port, pathname } = new URL(transport.metricsUrl ?? '');
    return { port: Number(port), path: pathname, close: () => server.close() };
  },
};
for (const [name, open] of Object.entries(LISTENERS))
  test(`S-92: 150 idle connections of one program lock no one else out: ${name}`, async () => {
    const { port, path, close } = await open();
    const idle: Peer[] = [];
    for (let count = 0; count < 150; count += 1) idle.push(await peer(port));
    const viewer = await peer(port);
    assert.is(await viewer.get(path), 'HTTP/1.1 200');
    for (let count = 0; count < 20; count += 1) idle.push(await peer(port));
    assert.is(await viewer.get(path), 'HTTP/1.1 200');
    for (const { socket } of [...idle, viewer]) socket.destroy();
    await close();
  });
