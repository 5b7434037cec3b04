/** Every bound of the HTTP transport, at its limit and one beyond: what is too much is refused, said, and costs nobody else anything (S-09, S-20). */
import * as assert from 'uvu/assert';
import { LATEST_MODERN } from '../../../src/core/protocol/revisions.ts';
import { ErrorCode } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { answered, call, modern, refused, send } from './modern.ts';
import { Raw, rawRequest } from './raw.ts';
import { type Answer, ask, type Headers, openSession, type Stage, serveHttp } from './support.ts';

const test = suite('HTTP limits');

const LIMIT = 10_000;
const { headers: listing = {}, body: listBody } = modern('tools/list');
const lines = (headers: Headers): string[] => [
  'Host: localhost',
  'Content-Type: application/json',
  'Accept: application/json, text/event-stream',
  ...Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`),
];

/** A valid request of exactly so many bytes. */
function padded(bytes: number): string {
  const text = JSON.stringify(listBody);
  return text + ' '.repeat(bytes - text.length);
}

let stage: Stage;
test.before(async () => {
  stage = await serveHttp({ server: { limits: { maxMessageBytes: LIMIT, maxDepth: 16 } } });
});
test.after(() => stage.close());

test('takes a body of exactly the limit, and refuses one byte more with 413', async () => {
  await answered(await ask(stage.url, { headers: listing, body: padded(LIMIT) }));
  const { error } = await refused(await ask(stage.url, { headers: listing, body: padded(LIMIT + 1) }), 413, undefined);
  assert.match(error?.message ?? '', 'maxMessageBytes');
  assert.match(error?.message ?? '', String(LIMIT));
});

test('counts the bytes of a body that does not say its length', async () => {
  const chunked: Headers = { ...listing, 'content-length': undefined, 'transfer-encoding': 'chunked' };
  await answered(await ask(stage.url, { headers: chunked, body: padded(LIMIT) }));
  await refused(await ask(stage.url, { headers: chunked, body: padded(LIMIT + 1) }), 413, undefined, 1);
});

test('counts bytes, not characters', async () => {
  const text = padded(LIMIT - 10).replace('"test"', '"tést💡"');
  assert.is(Buffer.byteLength(text) - text.length, 3);
  const fill = ' '.repeat(LIMIT - Buffer.byteLength(text));
  await answered(await ask(stage.url, { headers: listing, body: text + fill }));
  await refused(await ask(stage.url, { headers: listing, body: `${text + fill} ` }), 413, undefined);
});

test('answers 413 to a body that says it is too long before any of it has come', async () => {
  const raw = await Raw.open(stage.url);
  raw.write(`${['POST /mcp HTTP/1.1', ...lines(listing), 'Content-Length: 1073741824'].join('\r\n')}\r\n\r\n{`);
  assert.is((await raw.response()).status, 413);
  raw.cut();
});

test('CVE-2026-39313: answers 413 to a gigabyte in chunks once the limit is reached, and holds none of it', async () => {
  const raw = await Raw.open(stage.url);
  const before = process.memoryUsage().rss;
  raw.write(`${['POST /mcp HTTP/1.1', ...lines(listing), 'Transfer-Encoding: chunked'].join('\r\n')}\r\n\r\n`);
  const chunk = Buffer.from(`10000\r\n${' '.repeat(65_536)}\r\n`);
  let sent = 0;
  let peak = 0;
  const answer = raw.response();
  while (sent < 2 ** 30 && !raw.over && !raw.received) {
    sent += chunk.length;
    if (!raw.socket.write(chunk))
      await new Promise((resolve) => raw.socket.once('drain', resolve).once('close', resolve));
    peak = Math.max(peak, process.memoryUsage().rss - before);
  }
  assert.is((await answer).status, 413);
  // What lies in the buffers of two sockets on its way is the system's.
  assert.ok(sent < 32 * 2 ** 20, `${sent} bytes were taken before the answer`);
  assert.ok(peak < 48 * 2 ** 20, `${peak} bytes more in memory`);
  raw.cut();
});

test('refuses what is nested deeper than the limit', async () => {
  const nested = (depth: number): Promise<Answer> => {
    const deep = JSON.parse('['.repeat(depth) + ']'.repeat(depth));
    // Within the message, its params and their arguments.
    return call(stage.url, 'whoami', { deep });
  };
  await answered(await nested(16 - 3));
  await refused(await nested(16 - 2), 400, ErrorCode.InvalidRequest, 1);
});

const HOSTILE: readonly (readonly [what: string, body: string])[] = [
  ['a key twice', '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":META}'],
  ['a key twice, once escaped', '{"jsonrpc":"2.0","id":1,"method":"tools/list","\\u006dethod":"ping","params":META}'],
  ['__proto__', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":META,"__proto__":{"polluted":1}}'],
  [
    '__proto__ deep within',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":[{"__proto__":{"polluted":1}}]}}',
  ],
  [
    'a prototype',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"constructor":{"prototype":{"polluted":1}}}}',
  ],
  ['half of a surrogate pair', '{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list","params":META}'],
  ['Method for method', '{"jsonrpc":"2.0","id":1,"Method":"tools/list","params":META}'],
  ['a key with a folded letter', '{"jsonrpc":"2.0","id":1,"method":"tools/list","param\\u017f":META}'],
];
for (const [what, body] of HOSTILE) {
  test(`refuses ${what} with 400`, async () => {
    const meta = `{"_meta":${JSON.stringify(modern('tools/list').body).match(/"_meta":(\{.*\})\}\}$/)?.[1]}}`;
    const answer = await ask(stage.url, { headers: listing, body: body.replace('META', meta) });
    const text = await answer.text();
    assert.is(answer.status, 400, text);
    assert.ok(JSON.parse(text).error, text);
    assert.is(({} as { polluted?: unknown }).polluted, undefined);
  });
}

test('answers 404 beside its path, 405 to other methods with those there are, and 406 to who accepts neither form', async () => {
  for (const path of ['/', '/mcp/', '/mcp/x', '/MCP', '/mcpx', '/.well-known/x', '/%6dcp/..'])
    assert.is((await send(new URL(path, stage.url).href, 'tools/list')).status, 404, path);
  await answered(await send(`${stage.url}?a=b`, 'tools/list'));
  for (const method of ['PUT', 'PATCH', 'HEAD', 'PROPFIND']) {
    const { status, headers } = await ask(stage.url, { method });
    assert.is(status, 405, method);
    for (const allowed of ['POST', 'GET', 'DELETE']) assert.match(headers.allow ?? '', allowed);
  }
  for (const accept of ['text/html', 'image/*', 'application/json;q=0, text/event-stream;q=0'])
    await refused(await send(stage.url, 'tools/list', { headers: { accept } }), 406, undefined);
});

test('serves at the configured path', async () => {
  const other = await serveHttp({ path: '/a/b' });
  assert.is(new URL(other.url).pathname, '/a/b');
  await answered(await send(other.url, 'tools/list'));
  assert.is((await send(new URL('/mcp', other.url).href, 'tools/list')).status, 404);
  await other.close();
});

test('S-08: refuses headers beyond what it reads with 431, and serves the next client', async () => {
  for (const flood of [
    `X-Flood: ${'x'.repeat(70_000)}`,
    Array.from({ length: 4_000 }, (_, n) => `X-${n}: ${'x'.repeat(10)}`).join('\r\n'),
  ]) {
    const raw = await Raw.open(stage.url);
    raw.write(rawRequest('POST', '/mcp', [...lines(listing), flood], JSON.stringify(listBody)));
    assert.is((await raw.response()).status, 431);
    raw.cut();
  }
  await answered(await send(stage.url, 'tools/list'));
});

test('S-39: counts the bytes of headers as they came, names, separators and line ends', async () => {
  const limit = 16 * 1024;
  const head = ['POST /mcp HTTP/1.1', ...lines(listing), `Content-Length: ${JSON.stringify(listBody).length}`];
  const request = (bytes: number, filler: string): string => {
    const start = `${head.join('\r\n')}\r\n`;
    const many = Math.floor((bytes - start.length - 100) / (filler.length + 2));
    const some = start + `${filler}\r\n`.repeat(many);
    const last = `X: ${'x'.repeat(bytes - some.length - 7)}\r\n\r\n`;
    return `${some}${last}${JSON.stringify(listBody)}`;
  };
  for (const filler of ['A: b', `X-Longer: ${'x'.repeat(50)}`])
    for (const [bytes, expected] of [
      [limit, 200],
      [limit + 1, 431],
      [20_000, 431],
    ] as const) {
      const raw = await Raw.open(stage.url);
      raw.write(request(bytes, filler));
      const { status, body } = await raw.response();
      assert.is(status, expected, `${filler}: ${bytes}`);
      if (status === 431) assert.match(body, `${limit}`);
      raw.cut();
    }
});

test('S-39: sees a second Host behind two thousand headers', async () => {
  const raw = await Raw.open(stage.url);
  raw.write(rawRequest('POST', '/mcp', [...lines(listing), ...Array(2_000).fill('a: '), 'Host: x'], ''));
  assert.is((await raw.response()).status, 400);
  raw.cut();
});

test('S-08: refuses what proxies and servers read differently: two lengths, a length and chunks, a line without its end', async () => {
  const body = JSON.stringify(listBody);
  const smuggled = rawRequest('POST', '/mcp', lines(listing), body);
  for (const framing of [
    ['Content-Length: 5', `Content-Length: ${body.length}`],
    [`Content-Length: ${body.length}`, 'Transfer-Encoding: chunked'],
    ['Transfer-Encoding: chunked, identity'],
    ['Transfer-Encoding : chunked'],
    ['Content-Length: +5'],
    ['X-Folded: a', ' b: c', 'X-\u0000: y'],
  ]) {
    const raw = await Raw.open(stage.url);
    raw.write(`${['POST /mcp HTTP/1.1', ...lines(listing), ...framing].join('\r\n')}\r\n\r\n0\r\n\r\n${smuggled}`);
    assert.is((await raw.response()).status, 400, String(framing));
    await raw.closed();
    assert.is(raw.text.includes('HTTP/1.1'), false, `a second answer after ${framing}`);
  }
});

test('S-21: holds each principal to its rate, and says when to come again', async () => {
  const limited = await serveHttp({
    rate: { perSecond: 2, burst: 3 },
    authenticate: ({ header }) => header('authorization')?.replace('Bearer ', ''),
  });
  const as = (who: string): Promise<Answer> =>
    call(limited.url, 'whoami', {}, { headers: { authorization: `Bearer ${who}` } });
  for (let nth = 1; nth <= 3; nth += 1) await answered(await as('ann'));
  const answer = await as('ann');
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/);
  assert.match((await refused(answer, 429, undefined)).error?.message ?? '', /\brate\b/);
  assert.equal((await answered(await as('bob'))).content, [{ type: 'text', text: `bob ${LATEST_MODERN}` }]);
  await limited.clock.advance(500);
  await answered(await as('ann'));
  await refused(await as('ann'), 429, undefined);
  await limited.close();
});

test('limits the rate of each session if clients are anonymous', async () => {
  const limited = await serveHttp({ rate: { perSecond: 1, burst: 5 } });
  const [one, other] = [await openSession(limited.url), await openSession(limited.url)];
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const statuses: number[] = [];
  for (let nth = 0; nth < 6; nth += 1) {
    const answer = await one.post(ping);
    statuses.push(answer.status);
    await answer.text();
  }
  assert.is(statuses.at(-1), 429);
  assert.is((await other.post(ping)).status, 200);
  await limited.close();
});
