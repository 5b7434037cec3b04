/** Webhooks on a socket: what senders and strangers do to a request that no client library lets a test do. */
import * as assert from 'uvu/assert';
import { github } from '../../../src/webhooks.ts';
import { Raw, type RawResponse } from '../../core/http/raw.ts';
import { serveHttp } from '../../core/http/support.ts';
import { suite } from '../../harness/door.ts';
import { until } from '../../harness/wait.ts';
import { byGithub, type HeaderLines, PATH, SECRET } from './support.ts';

const test = suite('webhooks on a socket');
const BODY = '{"n":1}';

const head = (headers: HeaderLines, more: readonly string[] = []): string =>
  [
    `POST ${PATH} HTTP/1.1`,
    'Host: hooks.example.com',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...more,
    '\r\n',
  ].join('\r\n');

const length = (text: string): string => `Content-Length: ${Buffer.byteLength(text)}`;

test('S-143: bytes on a socket are a delivery however they come, and are rejected early if they cannot be one', async () => {
  const handled: string[] = [];
  const stage = await serveHttp({ allowedHosts: ['mcp.example.com'] }, (server) => {
    server.webhook(PATH, {
      verify: github({ secret: SECRET }),
      to: ({ raw }) => void handled.push(Buffer.from(raw).toString()),
      maxBytes: 1_000,
    });
  });
  const one = async (text: string): Promise<RawResponse> => {
    const raw = await Raw.open(stage.url);
    raw.write(text);
    const response = await raw.response();
    raw.socket.destroy();
    return response;
  };
  const statusOf = async (text: string): Promise<number> => (await one(text)).status;
  // A sender is in no list of hosts, and is no page.
  assert.is(await statusOf(head(byGithub(BODY, { origin: 'https://evil.example.com' }), [length(BODY)]) + BODY), 200);
  // In chunks, with one byte each.
  const chunked = [...'{"n":2}'].map((byte) => `1\r\n${byte}\r\n`).join('');
  const inChunks = head(byGithub('{"n":2}'), ['Transfer-Encoding: chunked']);
  assert.is(await statusOf(`${inChunks}${chunked}0\r\n\r\n`), 200);
  // Without a body at all: genuine, and no JSON.
  assert.is(await statusOf(head(byGithub(''), ['Content-Length: 0'])), 400);
  // The signature twice: a proxy and a server could choose different ones.
  const twice = `X-Hub-Signature-256: ${byGithub('{"n":3}')['x-hub-signature-256']}`;
  assert.is(await statusOf(`${head(byGithub('{"n":3}'), [twice, length('{"n":3}')])}{"n":3}`), 401);
  // One byte too long: by its length before it is sent, and by counting.
  const long = `"${'x'.repeat(999)}"`;
  assert.is(await statusOf(head(byGithub(long), [length(long)])), 413);
  assert.is(await statusOf(`${head(byGithub(long), ['Transfer-Encoding: chunked'])}3e9\r\n${long}`), 413);
  const fits = long.replace('x', '');
  assert.is(await statusOf(head(byGithub(fits), [length(fits)]) + fits), 200);
  // A body that is to come after a 100 Continue, which a wrong method does not get.
  const expecting = await Raw.open(stage.url);
  expecting.write(head(byGithub('{"n":4}'), [length('{"n":4}'), 'Expect: 100-continue']));
  await expecting.until('a 100', (text) => text.includes('100 Continue'));
  expecting.write('{"n":4}');
  await expecting.until('a 200', (text) => text.includes('HTTP/1.1 200'));
  expecting.socket.destroy();
  // Cut off in the middle: nothing of it is a delivery, and the next one is served.
  const cut = await Raw.open(stage.url);
  cut.write(`${head(byGithub('{"n":5}'), [length('{"n":5}')])}{"n"`);
  cut.socket.destroy();
  assert.is(await statusOf(`${head(byGithub('{"n":6}'), [length('{"n":6}')])}{"n":6}`), 200);
  await until(() => handled.length === 5);
  assert.equal(handled.sort(), [fits, BODY, '{"n":2}', '{"n":4}', '{"n":6}'].sort());
  // The MCP endpoint beside it still has its guards.
  assert.is(await statusOf(`POST /mcp HTTP/1.1\r\nHost: hooks.example.com\r\nContent-Length: 2\r\n\r\n{}`), 403);
  assert.equal(stage.told, []);
  await stage.close();
});
