/** Readiness: its reasons and who reads them, and the time between `/readyz` and the shutdown. */
import { request as send } from 'node:http';
import * as assert from 'uvu/assert';
import {
  createServer,
  type HttpOptions,
  http,
  memoryStore,
  type ServerOptions,
  type Store,
} from '../../../src/index.ts';
import { SimulatedClock } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';

const test = suite('readiness');

interface Reply {
  readonly status: number | undefined;
  readonly text: string;
}

function get(url: string, accept = 'application/json'): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = send(url, { headers: { accept }, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode, text }));
    });
    request.on('error', reject);
    request.end();
  });
}

async function stage(options: Partial<ServerOptions> = {}, own: HttpOptions = {}) {
  const clock = new SimulatedClock();
  const server = createServer({ name: 's', version: '1', clock, log: () => {}, ...options });
  server.tool('good', () => 'good');
  const transport = http({ port: 0, metrics: { port: 0 }, ...own });
  await server.listen(transport);
  const ready = new URL('/readyz', transport.url).href;
  const metrics = new URL('/readyz', transport.metricsUrl).href;
  const call = () =>
    fetch(transport.url, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/json', accept: 'application/json', 'mcp-protocol-version': '2026-07-28' },
        ...{ 'mcp-method': 'tools/call', 'mcp-name': 'good', connection: 'close' },
      },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: {
          name: 'good',
          arguments: {},
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientCapabilities': {},
          },
        },
      }),
    });
  return { clock, server, transport, ready, metrics, call };
}

const OK: Reply = { status: 200, text: '{"ready":true,"reasons":[]}' };
const DRAINING: Reply = { status: 503, text: '{"ready":false,"reasons":["draining"]}' };

test('after SIGTERM, /readyz is 503 at once, and requests are served for drainDelayMs', async () => {
  const { clock, server, ready, metrics, call, transport } = await stage({ http: { drainDelayMs: 5_000 } });
  assert.equal([await get(ready), await get(metrics)], [OK, OK]);
  const closed = server.close('SIGTERM');
  assert.equal([await get(ready), await get(metrics)], [DRAINING, DRAINING]);
  assert.equal(server.readiness(), { ready: false, reasons: ['draining'] });
  await clock.advance(4_999);
  assert.is((await call()).status, 200);
  // A second request to close does not cut it short, and no transport opens meanwhile.
  assert.is(server.close(), closed);
  assert.match(
    String(await server.listen(http({ port: 0 })).catch((error: unknown) => error)),
    /this server is closed/,
  );
  assert.is((await call()).status, 200);
  const { href } = new URL('/healthz', transport.url);
  assert.is((await get(href)).status, 200);
  await clock.advance(1);
  assert.is(
    await get(ready).then(
      ({ status }) => status,
      () => 503,
    ),
    503,
  );
  await closed;
});

test('the delay is that of the transport that has the longest, and 0 by default', async () => {
  const { clock, server, call } = await stage({ http: { drainDelayMs: 1 } }, { drainDelayMs: 50 });
  const closed = server.close();
  await clock.advance(49);
  assert.is((await call()).status, 200);
  await clock.advance(1);
  await closed;
  const plain = await stage();
  await plain.server.close();
  assert.is(plain.clock.now(), 0);
});

test('without Accept: application/json, there is only the status', async () => {
  const { clock, server, ready } = await stage({ http: { drainDelayMs: 1 } });
  assert.equal(await get(ready, '*/*'), { status: 200, text: 'ok\n' });
  const closed = server.close();
  assert.equal(await get(ready, '*/*'), { status: 503, text: 'not ready\n' });
  await clock.advance(1);
  await closed;
});

test('a server whose store is not open, or only read, is not ready; an issuer that is down makes no difference', async () => {
  let impairment: ReturnType<Store['impairment']>;
  const store: Store = Object.assign(memoryStore(), { durable: true, impairment: () => impairment });
  const server = createServer({ name: 's', version: '1', log: () => {}, store });
  assert.equal(server.readiness(), { ready: false, reasons: ['store not open'] });
  const down = new Error('the issuer is down');
  const transport = http({ port: 0, authenticate: () => Promise.reject(down) });
  await server.listen(transport);
  const ready = new URL('/readyz', transport.url).href;
  assert.equal(await get(ready), OK);
  for (const state of ['not open', 'read-only'] as const) {
    impairment = state;
    assert.equal(await get(ready), { status: 503, text: `{"ready":false,"reasons":["store ${state}"]}` });
    // The process lives all the same: a restart would not help.
    assert.is((await get(new URL('/healthz', transport.url).href)).status, 200);
  }
  impairment = undefined;
  assert.equal(await get(ready), OK);
  await server.close();
});
