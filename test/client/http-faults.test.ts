/** Faults of a server over HTTP: a lost session, cut streams, errors of status and network, silence, bodies without end. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { type Client, connect } from 'troupe/client';
import { SimulatedClock } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { suite } from '../harness/door.ts';
import { until, untilPassed } from '../harness/wait.ts';
import { clientError } from './fixture.ts';

const test = suite('faults over HTTP');

interface Exchange {
  readonly method: string;
  readonly name: string;
  readonly id: number;
  readonly session: string | undefined;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Responds with JSON. */
  result(result: object): void;
}

interface Peer {
  readonly url: string;
  /** The method and name of every message, and `GET` with its `Last-Event-ID`. */
  readonly seen: string[];
  readonly sessions: Set<string>;
  close(): Promise<void>;
}

const INITIALIZED = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {}, resources: {} },
  serverInfo: { name: 'peer', version: '1' },
};

/** A server of the legacy era. `on` returns true for what it has handled. */
async function peer(
  on: (exchange: Exchange) => boolean | undefined,
  get?: Peer['seen'][0] | ((from: string, response: ServerResponse) => void),
): Promise<Peer> {
  const seen: string[] = [];
  const sessions = new Set<string>();
  let count = 0;
  const server = createServer((request, response) => {
    const session = request.headers['mcp-session-id'];
    if (request.method !== 'POST') {
      const from = String(request.headers['last-event-id'] ?? '');
      seen.push(`${request.method} ${from}`.trim());
      if (request.method === 'GET' && from !== '' && typeof get === 'function') return get(from, response);
      response.writeHead(405).end();
      return;
    }
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.on('end', () => {
      const { id, method, params = {} } = JSON.parse(text);
      const name = String(params.name ?? params.uri ?? '');
      seen.push(`${method} ${name}`.trim());
      const result = (value: object): void => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ jsonrpc: '2.0', id, result: value }));
      };
      if (
        on({
          method,
          name,
          id,
          session: session === undefined ? undefined : String(session),
          request,
          response,
          result,
        })
      )
        return;
      if (id === undefined) response.writeHead(202).end();
      else if (method === 'initialize') {
        count += 1;
        sessions.add(`s${count}`);
        response.setHeader('mcp-session-id', `s${count}`);
        result(INITIALIZED);
      } else if (!sessions.has(String(session))) response.writeHead(404).end();
      else result({ content: [], contents: [], tools: [] });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('expected a port');
  return {
    url: `http://127.0.0.1:${address.port}/mcp`,
    seen,
    sessions,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function times(server: Peer, what: string): number {
  return server.seen.filter((each) => each === what).length;
}

async function closed(client: Client, server: Peer): Promise<void> {
  await client.close();
  await server.close();
}

test('U-06 a session is lost with 50 calls waiting: one `initialize`, each call carried out once, late 404s included', async () => {
  const late: ServerResponse[] = [];
  const done: string[] = [];
  const server = await peer(({ method, name, session, response }) => {
    if (method !== 'tools/call') return false;
    if (session === 's1') {
      // Half of the calls learn that the session is lost when there is a new one.
      if (Number(name) % 2 === 0) late.push(response);
      else response.writeHead(404).end();
      return true;
    }
    done.push(name);
    if (done.length === 25) for (const each of late) each.writeHead(404).end();
    return false;
  });
  const client = await connect(server.url, { eras: 'legacy' });
  server.sessions.delete('s1');
  await Promise.all(Array.from({ length: 50 }, (_, index) => client.call(String(index))));
  assert.is(times(server, 'initialize'), 2);
  assert.equal(
    done.map(Number).sort((a, b) => a - b),
    Array.from({ length: 50 }, (_, index) => index),
  );
  // The new session has its own stream for messages of the server.
  await until(() => times(server, 'GET') === 2);
  await closed(client, server);
});

const EVENT = (id: number): string =>
  `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [], contents: [] } })}\n\n`;

for (const [where, before] of [
  ['before the response', ': hello\n\n'],
  ['in the response', 'data: {"jsonrpc":"2.0",'],
] as const)
  test(`U-07 a stream without event ids is cut ${where}: a call reports unknown, and a read is repeated once`, async () => {
    let cut = 0;
    const server = await peer(({ method, response }) => {
      if (method !== 'tools/call' && method !== 'resources/read') return false;
      if (method === 'resources/read' && cut === 2) return false;
      cut += 1;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(before, () => response.destroy());
      return true;
    });
    const client = await connect(server.url, { eras: 'legacy' });
    const error = await clientError(client.call('x'));
    assert.equal([error.reason, error.carriedOut], ['closed', 'unknown']);
    await client.read('a://1');
    assert.is(times(server, 'tools/call x'), 1);
    assert.is(times(server, 'resources/read a://1'), 2);
    await closed(client, server);
  });

for (const [where, more] of [
  ['before the response', ''],
  ['in the response', 'id: 9\ndata: {"jsonrpc":"2.0",'],
] as const)
  test(`U-07 a stream with event ids is cut ${where}: it is resumed after its last whole event, and not before \`retry\``, async () => {
    let id = 0;
    let ended = false;
    const server = await peer(
      (exchange) => {
        if (exchange.method !== 'tools/call') return false;
        id = exchange.id;
        const { response } = exchange;
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.on('close', () => {
          ended = true;
        });
        response.write(`retry: 700\nid: 7\ndata:\n\n${more}`, () => response.destroy());
        return true;
      },
      (_from, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(`id: 8\n${EVENT(id)}`);
      },
    );
    const clock = new SimulatedClock();
    const client = await connect(server.url, { eras: 'legacy', clock });
    const call = client.call('x');
    await until(() => ended);
    await client.read('a://1');
    await clock.advance(699);
    assert.is(times(server, 'GET 7'), 0);
    await untilPassed(clock, () => times(server, 'GET 7') > 0, 1);
    assert.equal((await call).content, []);
    assert.is(times(server, 'GET 7'), 1);
    assert.is(times(server, 'tools/call x'), 1);
    await closed(client, server);
  });

test('U-07 a stream is cut after the response: nothing follows', async () => {
  const server = await peer(({ method, response, id }) => {
    if (method !== 'tools/call') return false;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`id: 7\n${EVENT(id)}`, () => response.destroy());
    return true;
  });
  const client = await connect(server.url, { eras: 'legacy' });
  await client.call('x');
  await client.read('a://1');
  assert.equal(
    server.seen.filter((each) => each !== 'GET'),
    ['initialize', 'notifications/initialized', 'tools/call x', 'resources/read a://1'],
  );
  await closed(client, server);
});

test('U-08 a status says why a call failed, whether it was carried out, and how long to wait', async () => {
  const server = await peer(({ method, name, response }) => {
    if (method !== 'tools/call') return false;
    const [status = '', wait] = name.split(' ');
    response.writeHead(Number(status), wait === undefined ? {} : { 'retry-after': wait }).end('overload');
    return true;
  });
  const client = await connect(server.url, { eras: 'legacy' });
  for (const [name, reason, carriedOut, retryAfterMs] of [
    ['502', 'unreachable', 'unknown', undefined],
    ['500', 'unreachable', 'unknown', undefined],
    ['503 2', 'overloaded', 'no', 2_000],
    ['429 7', 'overloaded', 'no', 7_000],
    ['400', 'refused', 'no', undefined],
  ] as const) {
    const error = await clientError(client.call(name));
    assert.equal([error.reason, error.carriedOut, error.retryAfterMs], [reason, carriedOut, retryAfterMs], name);
  }
  assert.is(times(server, 'tools/call 502'), 1);
  assert.is(times(server, 'tools/call 503 2'), 1);
  await closed(client, server);
});

test('U-08 no address, no connection and no agreement on encryption: nothing was carried out', async () => {
  const plain = await peer(() => false);
  const rude = createTcpServer((socket) => socket.once('data', () => socket.destroy()));
  rude.listen(0, '127.0.0.1');
  await once(rude, 'listening');
  const { port } = rude.address() as AddressInfo;
  for (const url of [
    'http://no-such-host.invalid/mcp',
    'http://127.0.0.1:9/mcp',
    plain.url.replace('http:', 'https:'),
    `https://127.0.0.1:${port}/mcp`,
  ]) {
    const error = await clientError(connect(url));
    assert.equal([error.reason, error.carriedOut], ['unreachable', 'no'], url);
  }
  rude.close();
  await plain.close();
});

/** A server of the legacy era without sessions, which can stop and start again at its address. */
async function restartable() {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    // No call meets a socket that closes.
    response.shouldKeepAlive = false;
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.on('end', () => {
      if (request.method !== 'POST') return void response.writeHead(405).end();
      const { id, method, params = {} } = JSON.parse(text);
      if (id === undefined) return void response.writeHead(202).end();
      if (method === 'tools/call') calls.push(params.name);
      response.writeHead(200, { 'content-type': 'application/json' });
      const result = method === 'initialize' ? INITIALIZED : { content: [] };
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
  });
  let port = 0;
  const start = async (): Promise<void> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  };
  const stop = async (): Promise<void> => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  await start();
  return { url: `http://127.0.0.1:${port}/mcp`, calls, start, stop };
}

test('U-08 calls wait for a server that restarts, and run once; they end after waitMs if it does not come back', async () => {
  const server = await restartable();
  const patient = await connect(server.url, { eras: 'legacy', waitMs: 60_000 });
  const hasty = await connect(server.url, { eras: 'legacy', waitMs: 400 });
  await server.stop();
  const calls = ['a', 'b', 'c'].map((name) => patient.call(name));
  const abort = new AbortController();
  const given = patient.call('given up', {}, { signal: abort.signal }).catch((error: unknown) => error);
  const error = await clientError(hasty.call('late'));
  assert.equal([error.reason, error.carriedOut], ['unreachable', 'no']);
  assert.match(error.message, /no connection within 400 ms \(waitMs\)\. The last failure: .*ECONNREFUSED/);
  abort.abort();
  assert.instance(await given, Error);
  await server.start();
  for (const call of calls) assert.equal((await call).content, []);
  assert.equal([...server.calls].sort(), ['a', 'b', 'c']);
  await hasty.call('later');
  await patient.close();
  await hasty.close();
  await server.stop();
});

test('U-08 the server closes an idle socket at the moment of a request: a read is repeated, a call reports unknown', async () => {
  const cut = new Set<string>();
  const server = await peer(({ name, request }) => {
    if (name === '' || cut.has(name)) return false;
    cut.add(name);
    request.socket.destroy();
    return true;
  });
  const client = await connect(server.url, { eras: 'legacy' });
  await client.read('a://1');
  assert.is(times(server, 'resources/read a://1'), 2);
  const error = await clientError(client.call('x'));
  assert.equal([error.reason, error.carriedOut], ['closed', 'unknown']);
  assert.is(times(server, 'tools/call x'), 1);
  await closed(client, server);
});

for (const eras of ['auto', 'legacy'] as const)
  test(`U-09 a server is silent to the first request (eras ${eras}): connect fails at its deadline`, async () => {
    const server = await peer(() => true);
    const clock = new SimulatedClock();
    const connecting = clientError(connect(server.url, { eras, clock, connectMs: 1_000 }));
    await until(() => server.seen.length === 1);
    await clock.advance(1_000);
    const error = await connecting;
    assert.is(error.reason, 'timed out');
    await server.close();
  });

test('U-09 a server is silent to tools/list: other calls continue, and the list fails at its deadline', async () => {
  const server = await peer(({ method }) => method === 'tools/list');
  const clock = new SimulatedClock();
  const client = await connect(server.url, { eras: 'legacy', clock });
  const listing = clientError(client.tools());
  await until(() => times(server, 'tools/list') === 1);
  for (let index = 0; index < 10; index += 1) await client.call('x');
  await clock.advance(60_000);
  const error = await listing;
  assert.equal([error.reason, error.carriedOut], ['timed out', 'unknown']);
  await client.call('x');
  await closed(client, server);
});

test('U-11 bodies without end, and responses to other requests, fail their call at once', async () => {
  const endless = (response: ServerResponse, text: string): true => {
    const write = (): void => {
      if (!response.destroyed) response.write(text.repeat(1_024), write);
    };
    write();
    return true;
  };
  const server = await peer(({ method, name, response, id }) => {
    if (method !== 'tools/call') return false;
    if (name === 'other id') {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: id + 1_000, result: { content: [] } }));
      return true;
    }
    if (name === 'id as another text') {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: `0${id}`, result: { content: [] } }));
      return true;
    }
    const [status = '', type = ''] = name.split(' ');
    response.writeHead(Number(status), { 'content-type': type });
    return endless(response, type === 'text/event-stream' ? 'data: ' : '{"jsonrpc":"2.0","error":');
  });
  const client = await connect(server.url, { eras: 'legacy', maxMessageBytes: 100_000 });
  for (const [name, reason, carriedOut] of [
    ['other id', 'malformed', 'yes'],
    ['id as another text', 'malformed', 'yes'],
    ['200 application/json', 'too long', 'yes'],
    ['200 text/event-stream', 'too long', 'yes'],
    ['200 text/html', 'not mcp', 'unknown'],
    ['400 text/plain', 'refused', 'no'],
    ['403 text/plain', 'forbidden', 'no'],
    ['302 text/plain', 'refused', 'no'],
  ] as const) {
    const error = await clientError(client.call(name));
    assert.equal([error.reason, error.carriedOut], [reason, carriedOut], name);
  }
  await closed(client, server);
});
