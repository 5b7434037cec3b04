/** Newline framing on the way in: the same lines whatever the chunks, and bounded memory whatever the line. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { LineReader } from '../../../src/core/transports/lines.ts';
import { character } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';
import { random } from '../../harness/scale.ts';

const test = suite('lines');

/** Feeds chunks to a reader, and lists what it said. */
function read(chunks: readonly Buffer[], maxBytes = 1_000_000): string[] {
  const said: string[] = [];
  const reader = new LineReader({
    maxBytes,
    onLine: (text) => void said.push(`line ${text}`),
    onUnreadable: (reason, bytes) => void said.push(`${reason} ${bytes}`),
  });
  for (const chunk of chunks) reader.push(chunk);
  reader.end();
  return said;
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

/** What a reader says, in the plainest code: all bytes at hand, one line after the other. */
function expected(bytes: Buffer, maxBytes: number): string[] {
  const said: string[] = [];
  for (let from = 0; from < bytes.length; ) {
    const newline = bytes.indexOf(0x0a, from);
    const line = bytes.subarray(from, newline === -1 ? bytes.length : newline);
    from += line.length + 1;
    if (line.length > maxBytes) said.push(`too long ${line.length}`);
    else {
      try {
        const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(line).replace(/\r$/, '');
        if (bare(text) !== '') said.push(`line ${bare(text)}`);
      } catch {
        said.push(`not UTF-8 ${line.length}`);
      }
    }
  }
  return said;
}

/** What is read of the text of a line: a message without the noise around it, if noise comes first. */
function bare(text: string): string {
  const noise = String.raw`(?:[\s\uFEFF\0]|\x1b\[[0-9;?]*[A-Za-z])+`;
  const message = text.replace(new RegExp(`^${noise}`), '');
  if (message !== text && /^[{[]/.test(message)) return message.replace(new RegExp(`${noise}$`), '');
  return text.replace(/^\uFEFF/, '');
}

const places = fc.array(fc.nat(), { maxLength: 12 });
const text = fc.string({ unit: character, minLength: 1 }).filter((each) => !/\n|\r$|^\uFEFF/.test(each));

test('any split of the bytes of any texts gives the same texts', () => {
  fc.assert(
    fc.property(
      fc.array(text),
      places,
      fc.constantFrom('\n', '\r\n', '\n\n'),
      fc.boolean(),
      (texts, split, lineEnd, endsWithNewline) => {
        const bytes = Buffer.from(texts.join(lineEnd) + (endsWithNewline ? lineEnd : ''));
        const lines = texts.map((each) => `line ${each}`);
        assert.equal(read(cut(bytes, split)), lines);
        const longest = Math.max(1, ...texts.map((each) => Buffer.byteLength(each) + lineEnd.length - 1));
        assert.equal(read(cut(bytes, split), longest), lines);
      },
    ),
    { numRuns: random(2_000) },
  );
});

test('any bytes, in any split, are read as one plain pass over all of them reads', () => {
  const byte = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom(0x0a, 0x0d, 0x61, 0xc3, 0xa9, 0xef, 0xbb, 0xbf, 0xbd, 0xf0, 0x9f, 0x98, 0x80),
    },
    { weight: 1, arbitrary: fc.constantFrom(0x20, 0x00, 0x1b, 0x5b, 0x7b, 0x6d) },
    { weight: 1, arbitrary: fc.nat(255) },
  );
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 60 }), places, fc.integer({ min: 1, max: 20 }), (list, split, maxBytes) => {
      const bytes = Buffer.from(list);
      assert.equal(read(cut(bytes, split), maxBytes), expected(bytes, maxBytes));
      assert.equal(read(cut(bytes, split)), expected(bytes, 1_000_000));
    }),
    { numRuns: random(5_000) },
  );
});

test('a replacement character that the peer sent passes, and one that stands for bad bytes does not', () => {
  const chunk = Buffer.concat([
    Buffer.from('a\uFFFDb\n'),
    Buffer.from([0x61, 0xff, 0x62, 0x0a]),
    Buffer.from('next\n'),
  ]);
  assert.equal(read([chunk]), ['line a\uFFFDb', 'not UTF-8 3', 'line next']);
});

test('drops a byte order mark at the start of a line, even in pieces', () => {
  const bytes = Buffer.from('\uFEFFone\n\uFEFFtwo\n');
  assert.equal(read(cut(bytes, [1, 2])), ['line one', 'line two']);
  assert.equal(read([Buffer.from('\uFEFF\none\n')]), ['line one']);
});

test('reads a message between white space, byte order marks, zeros and colours, and leaves other lines as they are', () => {
  const noise = fc.array(fc.constantFrom(' ', '\t', '\uFEFF', '\0', '\x1b[0m', '\x1b[32;1m', '\x1b[?25h'), {
    maxLength: 5,
  });
  fc.assert(
    fc.property(noise, noise, fc.constantFrom('{"a":"\uFEFF \x1b[0m"}', '[1]', '{}'), (before, after, message) => {
      assert.equal(read([Buffer.from(`${before.join('')}${message}${before.length > 0 ? after.join('') : ''}\n`)]), [
        `line ${message}`,
      ]);
    }),
  );
  for (const line of ['INFO {"a":1}', '  indented', '\x1b[31mred\x1b[0m'])
    assert.equal(read([Buffer.from(`${line}\n`)]), [`line ${line}`]);
});

test('accepts a line of exactly the limit and skips one byte more', () => {
  assert.equal(read([Buffer.from('1234\n12345\n1234')], 4), ['line 1234', 'too long 5', 'line 1234']);
  assert.equal(read([Buffer.from('123'), Buffer.from('45'), Buffer.from('6\nok\n')], 4), ['too long 6', 'line ok']);
});

test('reports a line that is too long only at its end, once', () => {
  const said: string[] = [];
  const reader = new LineReader({
    maxBytes: 4,
    onLine: (line) => void said.push(line),
    onUnreadable: (reason, bytes) => void said.push(`${reason} ${bytes}`),
  });
  for (let index = 0; index < 5; index += 1) reader.push(Buffer.from('xxx'));
  assert.equal(said, []);
  reader.end();
  assert.equal(said, ['too long 15']);
});

test('S-28: a line of 100 MB takes no more memory than the limit allows, and the next line works', () => {
  const said: string[] = [];
  const maxBytes = 1_048_576;
  const reader = new LineReader({
    maxBytes,
    onLine: (line) => void said.push(line),
    onUnreadable: (reason, bytes) => void said.push(`${reason} ${bytes}`),
  });
  const chunk = Buffer.alloc(65_536, 'x');
  const before = process.memoryUsage().arrayBuffers;
  let peak = 0;
  for (let index = 0; index < 1_600; index += 1) {
    reader.push(chunk);
    peak = Math.max(peak, process.memoryUsage().arrayBuffers - before);
  }
  reader.push(Buffer.from('\nnext\n'));
  assert.equal(said, ['too long 104857600', 'next']);
  // A store that doubles leaves its smaller selves to the collector: at most as much again.
  assert.ok(peak < 2 * maxBytes + 4 * chunk.length, `${peak} bytes`);
});

test('a long line in single bytes costs neither copies of copies nor an object a byte', () => {
  const lengths: number[] = [];
  const reader = new LineReader({
    maxBytes: 4_000_000,
    onLine: (line) => void lengths.push(line.length),
    onUnreadable: () => {},
  });
  const byte = Buffer.from('x');
  const before = process.memoryUsage();
  for (let index = 0; index < 2_000_000; index += 1) reader.push(byte);
  const after = process.memoryUsage();
  reader.push(Buffer.from('\n'));
  assert.equal(lengths, [2_000_000]);
  assert.ok(after.arrayBuffers - before.arrayBuffers < 9_000_000, `${after.arrayBuffers - before.arrayBuffers} bytes`);
});

test('refuses a limit that is no length', () => {
  for (const maxBytes of [0, -1, 1.5, Number.NaN, 2 ** 40]) {
    assert.throws(() => read([], maxBytes), /maxBytes: expected a whole number from 1/);
  }
});

test('the limit can change while a line comes in, and a line that is skipped is known by how it begins', () => {
  const said: string[] = [];
  const reader = new LineReader({
    maxBytes: 10,
    onLine: (text) => void said.push(text),
    onUnreadable: (reason, bytes, head) => void said.push(`${reason} ${bytes} ${head.length} ${head.slice(0, 12)}`),
  });
  reader.push(Buffer.from('0123456'));
  assert.is(reader.heldBytes, 7);
  reader.maxBytes = 5;
  reader.push(Buffer.from('\n01234\n012345\n'));
  reader.maxBytes = 3_000;
  reader.push(Buffer.from('y'.repeat(1_000)));
  reader.maxBytes = 2_000;
  for (const _ of [1, 2, 3]) reader.push(Buffer.from('z'.repeat(1_000)));
  assert.is(reader.heldBytes, 0);
  reader.push(Buffer.from('\nnext\n'));
  reader.push(Buffer.from([0x61, 0xff, 0x0a]));
  assert.equal(said, [
    'too long 7 7 0123456',
    '01234',
    'too long 6 6 012345',
    'too long 4000 1024 yyyyyyyyyyyy',
    'next',
    'not UTF-8 2 2 a\uFFFD',
  ]);
  assert.throws(() => {
    reader.maxBytes = 0;
  }, RangeError);
});
