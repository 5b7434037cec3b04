/** The reader of server-sent events: any events, in any chunks, with any line ends. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { EventReader } from '../../src/client/channels/event-reader.ts';
import { suite } from '../harness/door.ts';
import { random } from '../harness/scale.ts';

const test = suite('server-sent events');

/** What a reader reports of these chunks. */
function read(chunks: readonly Buffer[], maxLength = 10_000): string[] {
  const seen: string[] = [];
  const reader = new EventReader({
    maxLength,
    onEvent: (type, data) => seen.push(`${type}: ${data}`),
    onId: (id) => seen.push(`id ${id}`),
    onRetry: (ms) => seen.push(`retry ${ms}`),
    onOverflow: () => seen.push('overflow'),
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
    fc.string({ unit: 'grapheme', maxLength: 6 }).map((data) => `data: ${data.replace(/[\r\n]/g, '')}`),
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

for (const [what, chunk] of [
  ['a line', 'x'.repeat(40)],
  ['an event', 'data: 0123456789\n'],
] as const)
  test(`${what} without an end is reported once, and nothing after it`, () => {
    const chunks = [...Array.from({ length: 50 }, () => Buffer.from(chunk)), Buffer.from('\n\ndata: late\n\n')];
    assert.equal(read(chunks, 100), ['overflow']);
  });
