/** The reader of server-sent events: any events, in any chunks, with any line ends. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { EventReader } from '../../src/client/channels/event-reader.ts';
import { grapheme } from '../harness/character.ts';
import { suite } from '../harness/door.ts';
import { random } from '../harness/scale.ts';

const test = suite('server-sent events');

/** What a reader reports of these chunks. */
function read(chunks: readonly Buffer[], maxBytes = 10_000, skips = false): string[] {
  const seen: string[] = [];
  const reader = new EventReader({
    maxBytes,
    onEvent: (type, data) => seen.push(`${type}: ${data}`),
    onId: (id) => seen.push(`id ${id}`),
    onRetry: (ms) => seen.push(`retry ${ms}`),
    onOverflow: () => seen.push('overflow'),
    ...(skips ? { onSkipped: (envelope: string, bytes: number) => seen.push(`skipped ${envelope} of ${bytes}`) } : {}),
  });
  for (const chunk of chunks) reader.push(chunk);
  return seen;
}

for (const [what, text, expected] of [
  ['data', 'data: a\n\n', ['message: a']],
  ['data without a space', 'data:a\n\n', ['message: a']],
  ['several lines', 'data: a\ndata\ndata:  b\n\n', ['message: a\n\n b']],
  ['a name', 'event: endpoint\ndata: /m\n\n', ['endpoint: /m']],
  ['an id without data', 'id: 7\n\n', ['id 7']],
  ['an id with empty data', 'id: 7\ndata:\n\n', ['id 7']],
  ['an empty id', 'id\ndata: a\n\n', ['id ', 'message: a']],
  ['an id with a zero', 'id: a\0\ndata: a\n\n', ['message: a']],
  ['an id of an event that does not end', 'id: 7\ndata: a\n\nid: 8\ndata: b\n', ['id 7', 'message: a']],
  ['retry', 'retry: 70\nretry: x\nretry: -1\nretry:\n\n', ['retry 70']],
  ['comments and unknown fields', ': hi\nfoo: bar\nbar\ndata: a\n\n', ['message: a']],
  ['a byte order mark', '\uFEFFdata: a\n\n', ['message: a']],
  ['a name without data, which does not last', 'event: x\n\ndata: a\n\n', ['message: a']],
] as const)
  for (const [end, lineEnd] of [
    ['LF', '\n'],
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ] as const)
    test(`reads ${what} with ${end}`, () => {
      assert.equal(read([Buffer.from(text.replaceAll('\n', lineEnd))]), expected);
    });

test('the cuts between chunks and the line ends change nothing', () => {
  const line = fc.oneof(
    fc.string({ unit: grapheme, maxLength: 6 }).map((data) => `data: ${data.replace(/[\r\n]/g, '')}`),
    fc.constantFrom('', '', 'id: 1', 'event: e', 'retry: 5', ': note', 'data'),
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r'))),
      fc.array(fc.nat({ max: 400 })),
      (lines, cuts) => {
        // After CR, an empty line that ends with LF would be the end of the same line.
        const bytes = Buffer.from(
          lines.map(([text, end], at) => text + (lines[at + 1]?.[0] === '' ? '\n' : end)).join(''),
        );
        const places = [0, ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
        const chunks = places.slice(1).map((to, at) => bytes.subarray(places[at], to));
        const expected = read([Buffer.from(`${lines.map(([text]) => text).join('\n')}\n`)]);
        assert.equal(read(chunks), lines.length === 0 ? [] : expected);
      },
    ),
    { numRuns: random(500) },
  );
});

test('a response that ends anywhere in its last event delivers the event if its message is whole, and no part of it', () => {
  const message = fc
    .record({ id: fc.nat(), result: fc.jsonValue({ maxDepth: 3 }) })
    .map((value) => JSON.stringify(value));
  fc.assert(
    fc.property(message, fc.constantFrom('\n', '\r\n', '\r'), fc.boolean(), (data, end, named) => {
      const head = named ? `id: 1${end}event: message${end}data: ` : 'data: ';
      const bytes = Buffer.from(`${head}${data}${end}${end}`);
      const least = Buffer.byteLength(head) + Buffer.byteLength(data);
      for (let to = 0; to <= bytes.length; to += 1) {
        const events: string[] = [];
        const reader = new EventReader({ maxBytes: 1_000_000, onEvent: (_, got) => events.push(got) });
        reader.push(bytes.subarray(0, to));
        reader.end();
        assert.equal(events, to < least ? [] : [data], `${to} of ${bytes.length}`);
      }
    }),
    { numRuns: random(50) },
  );
});

for (const [what, chunk] of [
  ['a line', 'x'.repeat(40)],
  ['an event', 'data: 0123456789\n'],
] as const)
  test(`${what} without an end is reported once, and nothing after it`, () => {
    const chunks = [...Array.from({ length: 50 }, () => Buffer.from(chunk)), Buffer.from('\n\ndata: late\n\n')];
    assert.equal(read(chunks, 100), ['overflow']);
  });

test('the limit counts bytes, and not characters', () => {
  const event = Buffer.from(`data: ${'ü'.repeat(60)}\n\n`);
  assert.equal(read([event], 121), [`message: ${'ü'.repeat(60)}`]);
  assert.equal(read([event], 100), ['overflow']);
  assert.equal(
    read(
      [...event].map((byte) => Buffer.of(byte)),
      100,
    ),
    ['overflow'],
  );
});

test('an event that is too long is skipped with its envelope, however it is cut, and the next events follow', () => {
  const long = JSON.stringify({ jsonrpc: '2.0', id: 7, result: { text: 'x'.repeat(300) } });
  const cut = long.indexOf('result');
  const text = `id: 1\ndata: ${long.slice(0, cut - 1)}\ndata: ${long.slice(cut - 1)}\n: note\n\nid: 2\ndata: next\n\n`;
  const bytes = Buffer.from(text);
  const expected = [
    'overflow',
    'id 1',
    `skipped {"jsonrpc":"2.0","id":7,"result":null} of ${long.length}`,
    'id 2',
    'message: next',
  ];
  for (const size of [1, 3, 50, bytes.length]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.subarray(at * size, (at + 1) * size),
    );
    const seen = read(chunks, 100, true);
    assert.equal(
      seen.map((each) => each.replace(/of \d+/, `of ${long.length}`)),
      expected,
      `in chunks of ${size}`,
    );
  }
});
