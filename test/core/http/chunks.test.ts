/** What a stream of events costs on the wire: those of one turn leave together, and none waits for the next. */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { modern } from './modern.ts';
import { Raw } from './raw.ts';
import { serving } from './session.ts';

const test = suite('chunks of a stream');

/** A modern call as bytes. */
function post(name: string, args: object): string {
  const { headers = {}, body } = modern('tools/call', {
    params: { name, arguments: args },
    meta: { progressToken: 'p' },
  });
  const text = JSON.stringify(body);
  const lines = Object.entries({
    host: 'localhost',
    accept: 'text/event-stream',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(text)),
    ...headers,
  }).map(([key, value]) => `${key}: ${String(value)}`);
  return `POST /mcp HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${text}`;
}

/** The chunks of a body (RFC 9112 section 7.1), each as text. */
function chunksOf(response: string): readonly string[] {
  const chunks: string[] = [];
  let at = response.indexOf('\r\n\r\n') + 4;
  for (;;) {
    const end = response.indexOf('\r\n', at);
    const length = Number.parseInt(response.slice(at, end), 16);
    if (length === 0) return chunks;
    chunks.push(response.slice(end + 2, end + 2 + length));
    at = end + 2 + length + 2;
  }
}

test('all that a handler reports in one turn is one chunk, whole and in order', () =>
  serving(async ({ url }) => {
    const raw = await Raw.open(url);
    raw.write(post('count', { to: 50 }));
    await raw.until('the end of the stream', (text) => text.endsWith('\r\n0\r\n\r\n'));
    const chunks = chunksOf(raw.text);
    const told = Array.from(chunks.join('').matchAll(/"progress":(\d+)/g), ([, progress]) => Number(progress));
    assert.equal(
      told,
      Array.from({ length: 50 }, (_, index) => index + 1),
    );
    assert.ok(chunks.length <= 3, `${chunks.length} chunks`);
    raw.cut();
  }));

test('a client has a report before the handler continues', () =>
  serving(async (stage) => {
    const raw = await Raw.open(stage.url);
    raw.write(post('held', { key: 'k' }));
    const { ctx, finish } = await stage.held('k');
    ctx.progress(1, 2);
    await raw.until('the first report', (text) => text.includes('"progress":1'));
    ctx.progress(2, 2);
    await raw.until('the second report', (text) => text.includes('"progress":2'));
    finish();
    await raw.until('the end of the stream', (text) => text.endsWith('\r\n0\r\n\r\n'));
    raw.cut();
  }));
