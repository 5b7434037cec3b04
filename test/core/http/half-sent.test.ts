/** Clients that stop half-way, leave early or send ahead: each is given a bounded time, and costs nobody else anything (S-08). */
import nodeHttp from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { times } from '../../harness/scale.ts';
import { busy } from '../../system/fuzz/conversation.ts';
import { answered, call, modern } from './modern.ts';
import { Raw, rawRequest } from './raw.ts';
import { initialize, type Stage, serveHttp } from './support.ts';

const test = suite('half-sent requests');

/** Node's own timers bound how long a request may take to come: here they run so many times faster. */
const FASTER = 50;
const given: nodeHttp.ServerOptions[] = [];
const { createServer } = nodeHttp;
const faster = (ms: number | undefined): number => Math.ceil((ms ?? 300_000) / FASTER);

let stage: Stage;
test.before(async () => {
  const scaled = (options: nodeHttp.ServerOptions, listener: nodeHttp.RequestListener): nodeHttp.Server => {
    given.push(options);
    const { headersTimeout, requestTimeout, connectionsCheckingInterval } = options;
    return createServer(
      {
        ...options,
        headersTimeout: faster(headersTimeout),
        requestTimeout: faster(requestTimeout),
        connectionsCheckingInterval: faster(connectionsCheckingInterval),
      },
      listener,
    );
  };
  Object.assign(nodeHttp, { createServer: scaled });
  syncBuiltinESMExports();
  stage = await serveHttp();
});
test.after(async () => {
  Object.assign(nodeHttp, { createServer });
  syncBuiltinESMExports();
  await stage.close();
});

const request = modern('tools/call', { params: { name: 'echo', arguments: { text: 'x' } } });
const LINES = [
  'Host: localhost',
  'Content-Type: application/json',
  'Accept: application/json, text/event-stream',
  ...Object.entries(request.headers ?? {}).map(([name, value]) => `${name}: ${String(value)}`),
];
const BODY = JSON.stringify(request.body);
const WHOLE = rawRequest('POST', '/mcp', LINES, BODY);
const HEAD_END = WHOLE.indexOf('\r\n\r\n') + 4;

const echo = async (): Promise<number> => {
  const started = performance.now();
  await answered(await call(stage.url, 'echo', { text: 'x' }));
  return performance.now() - started;
};

test('headers are given 10 seconds, a whole request 30, and that is looked after', () => {
  const [options] = given;
  assert.ok(options);
  const { headersTimeout = 0, requestTimeout = 0, connectionsCheckingInterval = 30_000, maxHeaderSize } = options;
  assert.ok(headersTimeout > 0 && headersTimeout <= 10_000, String(headersTimeout));
  assert.ok(requestTimeout > 0 && requestTimeout <= 30_000, String(requestTimeout));
  assert.ok(connectionsCheckingInterval <= 5_000, String(connectionsCheckingInterval));
  assert.ok(maxHeaderSize === undefined || maxHeaderSize <= 16_384);
});

for (const [what, sent] of [
  ['nothing at all', 0],
  ['half of the first line', 5],
  ['half of its headers', HEAD_END / 2],
  ['its headers alone', HEAD_END],
  ['half of its body', HEAD_END + BODY.length / 2],
  ['all but the last byte', WHOLE.length - 1],
] as const) {
  test(`a client that sends ${what}, and then no more, is disconnected, and nothing of it stays`, async () => {
    const raw = await Raw.open(stage.url);
    raw.write(WHOLE.slice(0, sent));
    assertFigure(await echo(), 500, 'a call of another client');
    await raw.closed();
    // If it is told anything, then that it took too long.
    assert.match(raw.text.slice(0, 12), /^(HTTP\/1\.1 408)?$/);
    assert.equal(busy(stage.server), []);
  });
}

test('an idle connection stays open for idleConnectionMs, longer than balancers reuse one and than a request may take', async () => {
  const [options] = given;
  assert.is(options?.keepAliveTimeout, 75_000);
  const [idle, silent] = await Promise.all([Raw.open(stage.url), Raw.open(stage.url)]);
  for (let round = 0; round < 2; round += 1) {
    idle.write(WHOLE);
    const { status, headers } = await idle.response();
    assert.is(status, 200);
    assert.is(headers['keep-alive'], 'timeout=75');
    // The time limits of requests end this connection, and not the idle one.
    if (round === 0) await silent.closed();
  }
  idle.cut();
});

test('idleConnectionMs sets the time, with createServer({ http }), too', async () => {
  for (const options of [{ idleConnectionMs: 50_000 }, { server: { http: { idleConnectionMs: 50_000 } } }]) {
    const other = await serveHttp(options);
    assert.is(given.at(-1)?.keepAliveTimeout, 50_000);
    await other.close();
  }
});

test('a body in chunks that never ends is no different', async () => {
  const raw = await Raw.open(stage.url);
  raw.write(`${['POST /mcp HTTP/1.1', ...LINES, 'Transfer-Encoding: chunked'].join('\r\n')}\r\n\r\n5\r\n{"jso\r\n`);
  await raw.closed();
  assert.match(raw.text.slice(0, 12), /^(HTTP\/1\.1 408)?$/);
});

test('a request that is being answered, and a stream, may take longer than a request may take to come', async () => {
  const asked = call(stage.url, 'held', { key: 'long' }, { meta: { progressToken: 1 } });
  const { ctx, finish } = await stage.held('long');
  ctx.progress(1);
  const answer = await asked;
  await answer.events.message();
  const raw = await Raw.open(stage.url);
  // It is disconnected later than anything that these timers would have ended before.
  raw.write(WHOLE.slice(0, HEAD_END));
  await raw.closed();
  assert.not(ctx.signal.aborted);
  finish('at last');
  assert.match((await answer.events.rest()).at(-1)?.data ?? '', 'at last');
});

const SLOW = times(200, { quick: 30 });

test(`S-08: ${SLOW} clients that send a byte now and then delay no other client`, async () => {
  const calls = times(300, { quick: 30 });
  const p99 = async (turn: () => void): Promise<number> => {
    const took: number[] = [];
    for (let nth = 0; nth < calls; nth += 1) {
      turn();
      took.push(await echo());
    }
    return took.sort((a, b) => a - b)[Math.floor(took.length * 0.99)] ?? 0;
  };
  await p99(() => {});
  const alone = await p99(() => {});
  const slow = await Promise.all(Array.from({ length: SLOW }, () => Raw.open(stage.url)));
  let byte = 0;
  const among = await p99(() => {
    for (let nth = 0; nth < 20; nth += 1) {
      const at = byte++;
      slow[at % 200]?.write(WHOLE[Math.floor(at / 200) % HEAD_END] ?? '');
    }
  });
  process.stdout.write(`p99 of a call: ${alone.toFixed(1)} ms alone, ${among.toFixed(1)} ms among 200 slow clients\n`);
  // S-08: the goal is 1.2 times; at a millisecond or two, on a busy machine, that is noise.
  assertFigure(among, 1.2 * alone + 25, 'a call among slow clients');
  await Promise.all(slow.map((raw) => raw.closed()));
});

const LEAVING = times(1_000, { quick: 50 });

test(`${LEAVING} clients that leave in the middle of a request leave nothing behind, and open no session`, async () => {
  const opening = rawRequest('POST', '/mcp', LINES.slice(0, 3), JSON.stringify(initialize('2025-11-25')));
  const leave = async (text: string, index: number): Promise<void> => {
    const raw = await Raw.open(stage.url);
    raw.write(text.slice(0, Math.floor((text.length * (index % 100)) / 100)));
    if (index % 2 === 0) raw.cut();
    else raw.socket.end();
    await raw.closed();
  };
  for (let round = 0; round < LEAVING / 100; round += 1)
    await Promise.all(Array.from({ length: 100 }, (_, index) => leave(index % 3 === 0 ? WHOLE : opening, index)));
  await echo();
  assert.is(stage.sessions(), 0);
  assert.equal(busy(stage.server), []);
  assert.equal(stage.told, []);
});

test('a connection that is used again and again, ahead of its answers too, leaves nothing with its socket', async () => {
  const warnings: string[] = [];
  const hear = ({ name, message }: Error): void => void warnings.push(`${name}: ${message}`);
  process.on('warning', hear);
  const raw = await Raw.open(stage.url);
  for (let round = 0; round < 5; round += 1) {
    raw.write(WHOLE.repeat(20));
    for (let nth = 0; nth < 20; nth += 1) assert.is((await raw.response()).status, 200);
  }
  raw.cut();
  await raw.closed();
  // Node warns on the next turn of its loop.
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', hear);
  assert.equal(warnings, []);
});

test('requests that are sent ahead are answered in their order, each with its own answer', async () => {
  const ids = Array.from({ length: 50 }, (_, id) => id);
  const said = (id: number): string => {
    const { body } = modern('tools/call', { id, params: { name: 'echo', arguments: { text: `t${id}` } } });
    return rawRequest('POST', '/mcp', LINES, JSON.stringify(body));
  };
  const raw = await Raw.open(stage.url);
  raw.write(ids.map(said).join(''));
  for (const id of ids) {
    const { status, body } = await raw.response();
    assert.is(status, 200);
    const message = JSON.parse(body);
    assert.equal([message.id, message.result.content[0].text], [id, `t${id}`]);
  }
  // One that takes its time holds back those after it, and mixes nothing up.
  const key = JSON.stringify(
    modern('tools/call', { id: 'first', params: { name: 'held', arguments: { key: 'h' } } }).body,
  );
  raw.write(
    rawRequest(
      'POST',
      '/mcp',
      LINES.map((line) => line.replace('mcp-name: echo', 'mcp-name: held')),
      key,
    ) + said(7),
  );
  (await stage.held('h')).finish('first');
  assert.is(JSON.parse((await raw.response()).body).id, 'first');
  assert.is(JSON.parse((await raw.response()).body).id, 7);
  raw.cut();
});
