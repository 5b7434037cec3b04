/**
 * A request that is refused before its body was read: its client receives the response, however it sends the body, and the
 * connection ends as RFC 9112 section 9.6 describes (S-40).
 */
import { once } from 'node:events';
import { createServer as createNodeServer, type Server as NodeServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { createServer, type HttpOptions, http, type Server } from '../../../src/index.ts';
import { SimulatedClock, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';
import { answered, call } from './modern.ts';
import { Raw } from './raw.ts';

const test = suite('refusals before the body');

const LIMIT = 10_000;
/** More than a socket and its peer hold between them, so that whoever sends it waits for a reader. */
const LONG = 12 * 2 ** 20;
const PIECE = Buffer.alloc(65_536, ' ');

interface Place {
  readonly url: string;
  readonly clock: SimulatedClock;
  readonly server: Server;
}

type Kind = 'http' | 'node';

/** Serves for the length of one test, by `http()` or mounted. */
async function serving(kind: Kind, options: HttpOptions, body: (place: Place) => Promise<void>): Promise<void> {
  const clock = new SimulatedClock();
  const limits = { maxMessageBytes: LIMIT };
  const server = createServer({ name: 'refusing', version: '1.0.0', clock, log: () => {}, limits, http: options });
  server.tool('echo', {}, () => 'here');
  let host: NodeServer | undefined;
  let url = '';
  if (kind === 'http') {
    const transport = http({ port: 0, ...options });
    await server.listen(transport);
    url = transport.url;
  } else {
    host = createNodeServer((request, response) => server.node(request, response));
    await once(host.listen(0, '127.0.0.1'), 'listening');
    const address = host.address();
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp`;
  }
  try {
    await body({ url, clock, server });
  } finally {
    const closed = server.close();
    await clock.advance(10_000);
    await closed;
    host?.closeAllConnections();
    host?.close();
  }
}

interface Request {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly framing: 'length' | 'chunks';
  readonly bytes?: number;
  /** Waits for the response to its headers before it sends a body, as `Expect: 100-continue` says. */
  readonly expects?: boolean;
}

function headOf({ method = 'POST', path = '/mcp', headers = {}, framing, bytes = LONG, expects }: Request): string {
  const all = {
    Host: 'localhost',
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...(framing === 'length' ? { 'Content-Length': String(bytes) } : { 'Transfer-Encoding': 'chunked' }),
    ...(expects ? { Expect: '100-continue' } : {}),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return `${[`${method} ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`;
}

/** Waits until what was written is with the system. @returns false when the connection broke */
function written(socket: Socket, bytes: string | Uint8Array): Promise<boolean> {
  return new Promise((resolve) => void socket.write(bytes, (error) => resolve(!error)));
}

/** Sends all of a request before it reads a byte, as blocking clients do. @returns the whole of what came back */
async function sendAll(url: string, request: Request): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => {});
  await once(socket, 'connect');
  const { framing, bytes = LONG } = request;
  let sends = await written(socket, headOf(request));
  for (let sent = 0; sends && sent < bytes; sent += PIECE.length) {
    const piece = PIECE.subarray(0, Math.min(PIECE.length, bytes - sent));
    if (framing === 'chunks') sends = await written(socket, `${piece.length.toString(16)}\r\n`);
    sends = sends && (await written(socket, piece));
    if (sends && framing === 'chunks') sends = await written(socket, '\r\n');
  }
  if (sends && framing === 'chunks') await written(socket, '0\r\n\r\n');
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  await once(socket, 'close');
  return text;
}

/** Sends the head alone, and reads what comes. */
async function sendHead(url: string, request: Request): Promise<string> {
  const raw = await Raw.open(url);
  raw.write(headOf(request));
  await raw.closed();
  return raw.text;
}

const ATTEMPTS = times(10, { quick: 1 });
const FRAMINGS = ['length', 'chunks'] as const;

for (const kind of ['http', 'node'] as const) {
  test(`S-40: ${kind}: each of ${ATTEMPTS * 4} bodies that are too long is answered with 413, whether its client sends on or asks first`, () =>
    serving(kind, {}, async ({ url }) => {
      for (let nth = 0; nth < ATTEMPTS; nth += 1)
        for (const framing of FRAMINGS)
          for (const expects of [false, true]) {
            const text = await sendAll(url, { framing, expects });
            const [continued, rest] = text.startsWith('HTTP/1.1 100')
              ? text.split(/(?<=\r\n\r\n)(?=HTTP)/)
              : ['', text];
            assert.match(rest ?? '', /^HTTP\/1\.1 413 /, `${framing} ${expects} ${nth}: ${text.slice(0, 100)}`);
            assert.match(rest ?? '', /^connection: close\r$/im);
            assert.match(rest ?? '', 'maxMessageBytes');
            // Whoever has a server of its own refuses a length that is too long before it asks for the body.
            if (kind === 'http') assert.is(continued !== '', expects && framing === 'chunks', text.slice(0, 100));
          }
    }));

  const refusals: readonly (readonly [status: number, options: HttpOptions, request: Omit<Request, 'framing'>])[] = [
    [401, { authenticate: () => undefined }, {}],
    [403, {}, { headers: { Origin: 'http://evil.example.com' } }],
    [403, {}, { headers: { Host: 'evil.example.com' } }],
    [405, {}, { method: 'PUT' }],
    [406, {}, { headers: { Accept: 'text/html' } }],
    [415, {}, { headers: { 'Content-Type': 'text/plain' } }],
    [415, {}, { headers: { 'Content-Encoding': 'gzip' } }],
    [429, { rate: { perSecond: 0.001, burst: 1 } }, {}],
    [204, {}, { method: 'OPTIONS' }],
    [401, { authenticate: () => undefined }, { headers: { Connection: 'close' }, bytes: 200_000 }],
    ...(kind === 'http'
      ? ([
          [404, {}, { path: '/nowhere' }],
          [200, {}, { method: 'GET', path: '/healthz' }],
          [431, {}, { headers: { 'X-Long': 'x'.repeat(20_000) } }],
          [431, {}, { headers: Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`h${n}`, 'x'])) }],
          [400, {}, { headers: { 'Transfer-Encoding ': 'chunked' } }],
          [413, {}, { path: '/sse?sse=unknown' }],
        ] as const)
      : []),
  ];
  // Both kinds refuse by the same code: one refusal of a mounted server is quick.
  for (const [index, [status, options, request]] of refusals.entries())
    (kind === 'http' || index === 0 ? test : test.full)(
      `S-40: ${kind}: ${status} reaches a client that sends all of its body first (${JSON.stringify(request).slice(0, 80)})`,
      () =>
        serving(kind, options, async ({ url }) => {
          if (status === 429) await (await call(url, 'echo', {}, { agent: false })).text();
          for (const framing of FRAMINGS) {
            const text = await sendAll(url, { ...request, framing });
            assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `), `${framing}: ${text.slice(0, 200)}`);
            assert.is(text.match(/^HTTP\/1\.1/gm)?.length, 1);
          }
        }),
    );

  test(`S-40: ${kind}: 503 reaches a client of a server that closes`, () =>
    serving(kind, {}, async ({ url, server }) => {
      if (kind === 'http') return;
      await server.close();
      for (const framing of FRAMINGS) assert.match(await sendAll(url, { framing }), /^HTTP\/1\.1 503 /);
    }));

  test(`${kind}: a body that is soon read over keeps its connection`, () =>
    serving(kind, { authenticate: () => undefined }, async ({ url }) => {
      const raw = await Raw.open(url);
      for (let nth = 0; nth < 3; nth += 1) {
        raw.write(headOf({ framing: 'length', bytes: 30_000 }));
        const { status, headers } = await raw.response();
        assert.equal([status, headers.connection], [401, 'keep-alive']);
        raw.write(PIECE.subarray(0, 30_000));
      }
      raw.cut();
    }));

  test(`S-40: ${kind}: serves no request that follows on a connection that it has ended`, () =>
    serving(kind, {}, async ({ url }) => {
      const raw = await Raw.open(url);
      raw.write(headOf({ framing: 'length', bytes: 100_000 }));
      raw.write(Buffer.alloc(100_000, ' '));
      raw.write(headOf({ framing: 'length', bytes: 2 }));
      raw.write('{}');
      await raw.closed();
      assert.is(raw.text.match(/^HTTP\/1\.1/gm)?.length, 1, raw.text);
    }));

  // A mounted server drops them by the same code.
  (kind === 'http' ? test : test.full)(
    `S-40: ${kind}: drops a client whose body does not end, and one that sends nothing more`,
    () =>
      serving(kind, {}, async ({ url, clock }) => {
        const { hostname, port } = new URL(url);
        const open = async (): Promise<Socket> => {
          const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
          socket.on('error', () => {});
          await once(socket, 'connect');
          socket.write(headOf({ framing: 'length', bytes: 2 ** 30 }));
          // The end of what the server says: it has half-closed, and reads on.
          await once(socket.resume(), 'end');
          return socket;
        };
        const endless = await open();
        let sent = 0;
        while (await written(endless, PIECE)) sent += PIECE.length;
        assert.ok(sent >= 32 * 2 ** 20 && sent < 256 * 2 ** 20, `${sent} bytes were taken`);

        const silent = await open();
        const busy = await open();
        const pass = async (ms: number): Promise<void> => {
          assert.ok(await written(busy, 'x'));
          // By a round trip of another client, the server has read that.
          await (await call(url, 'echo', {}, { agent: false })).text();
          await clock.advance(ms);
        };
        // Half-closed as it is, a client finds out by writing.
        const dropped = async (socket: Socket): Promise<void> => {
          while (!socket.destroyed) {
            await written(socket, 'x');
            await settled();
          }
        };
        for (let nth = 0; nth < 4; nth += 1) await pass(4_000);
        await dropped(silent);
        for (let nth = 0; nth < 3; nth += 1) await pass(4_000);
        await clock.advance(4_000);
        await dropped(busy);
      }),
  );
}

test('S-40: http: a client that waits for 100 Continue receives it, and is served', () =>
  serving('http', {}, async ({ url }) => {
    const raw = await Raw.open(url);
    const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    raw.write(headOf({ framing: 'length', bytes: body.length, expects: true }));
    assert.is((await raw.response()).status, 100);
    raw.write(body);
    assert.is((await raw.response()).status, 400);
    raw.cut();
    await answered(await call(url, 'echo', {}));
  }));

test('S-40: http: a client that waits for its 100 Continue gets the refusal instead, and never sends a byte', () =>
  serving('http', { authenticate: () => undefined }, async ({ url }) => {
    for (const bytes of [10, LONG])
      assert.match(await sendHead(url, { framing: 'length', bytes, expects: true }), /^HTTP\/1\.1 401 /);
  }));
