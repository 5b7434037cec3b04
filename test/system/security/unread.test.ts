/** S-47: what HTTP clients have sent in part, and what they do not read, is limited in bytes by the quota of everything that clients hold. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { ErrorCode } from '../../../src/index.ts';
import { call, modern } from '../../core/http/modern.ts';
import { Raw, rawRequest } from '../../core/http/raw.ts';
import { messagesOf, serving } from '../../core/http/session.ts';
import type { Stage } from '../../core/http/support.ts';
import { suite } from '../../harness/door.ts';

const test = suite('unread bytes');
const KB = 1_024;
const MB = KB * KB;
const COMMON = ['Host: localhost', 'Content-Type: application/json', 'Accept: application/json, text/event-stream'];

/** The head of a POST, without its body. */
const head = (framing: string): string => `POST /mcp HTTP/1.1\r\n${[...COMMON, framing].join('\r\n')}\r\n\r\n`;
const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`;

async function opened({ url }: Stage, text: string): Promise<Raw> {
  const raw = await Raw.open(url);
  raw.write(text);
  return raw;
}

/** Calls `echo` with 30 KB until the status is this one: each call is a round trip, so the server reads other connections between. */
async function until(stage: Stage, wanted: number): Promise<void> {
  for (;;) {
    const answer = await call(stage.url, 'echo', { text: 'x'.repeat(30 * KB) });
    await answer.text();
    if (answer.status === wanted) return;
    assert.ok(answer.status === 200 || answer.status === 503, `status ${answer.status}`);
  }
}

test('S-47: a body whose declared length exceeds limits.maxMessageBytes gets 413 before any of it was sent', () =>
  serving(
    async (stage) => {
      const raw = await opened(stage, head(`Content-Length: ${100 * KB}`));
      const { status, body } = await raw.response();
      assert.is(status, 413);
      assert.match(body, 'limits.maxMessageBytes');
      raw.cut();
    },
    { server: { limits: { maxMessageBytes: 50 * KB } } },
  ));

test('S-47: bodies count in bytes while they are received: without room, a client gets 503 with Retry-After before it has sent its body', () =>
  serving(
    async (stage) => {
      const half = await opened(stage, head(`Content-Length: ${200 * KB}`));
      half.write(' '.repeat(180 * KB));
      await until(stage, 503);
      const early = await opened(stage, head(`Content-Length: ${30 * KB}`));
      const { status, headers, body } = await early.response();
      assert.equal([status, headers['retry-after']], [503, '1']);
      const { error } = JSON.parse(body);
      assert.is(error.code, ErrorCode.Overloaded);
      assert.match(error.message, /bytes in memory of at most 204800, .*limits\.maxRetainedBytes/);
      // The length of a chunked body is known only when it has come.
      const chunked = await opened(stage, head('Transfer-Encoding: chunked') + chunk(10 * KB));
      chunked.write(chunk(20 * KB));
      assert.is((await chunked.response()).status, 503);
      // Small bodies count by the number of exchanges.
      assert.is((await call(stage.url, 'echo', { text: 'small' })).status, 200);
      half.cut();
      await until(stage, 200);
    },
    { server: { limits: { maxRetainedBytes: 200 * KB } } },
  ));

test('S-47: a client that declares a long body and sends nothing takes no room', () =>
  serving(
    async (stage) => {
      const idle: Raw[] = [];
      for (let count = 0; count < 10; count += 1) idle.push(await opened(stage, head(`Content-Length: ${150 * KB}`)));
      assert.is((await call(stage.url, 'echo', { text: 'x'.repeat(30 * KB) })).status, 200);
      for (const raw of idle) raw.cut();
    },
    { server: { limits: { maxRetainedBytes: 200 * KB } } },
  ));

for (const response of ['json', 'sse'] as const)
  (response === 'json' ? test : test.full)(
    `S-47: long results that clients do not read count in bytes (${response}): the next one that does not fit becomes an error`,
    () =>
      serving(
        async (stage) => {
          const big = modern('tools/call', { params: { name: 'big', arguments: { length: 12 * MB } } });
          const lines = Object.entries(big.headers ?? {}).map(([name, value]) => `${name}: ${String(value)}`);
          const deaf = await Raw.open(stage.url);
          deaf.socket.pause();
          deaf.write(rawRequest('POST', '/mcp', [...COMMON, ...lines], JSON.stringify(big.body)));
          const results = async (): Promise<string> => {
            const answer = await call(stage.url, 'big', { length: 12 * MB });
            const [message] = await messagesOf(answer);
            if (!message?.error) return 'whole';
            assert.is(message.error.code, ErrorCode.Overloaded);
            assert.match(message.error.message, /has ended, but its response .*limits\.maxRetainedBytes/);
            return 'error';
          };
          while ((await results()) === 'whole');
          // Short results still fit.
          assert.is((await call(stage.url, 'echo', { text: 'short' })).status, 200);
          deaf.cut();
          while ((await results()) === 'error');
        },
        { response, server: { limits: { maxRetainedBytes: 20 * MB } } },
        (server) => server.tool('big', { input: z.object({ length: z.number() }) }, ({ length }) => 'x'.repeat(length)),
      ),
  );
