/** Numbers that a JavaScript number cannot hold keep their digits from a reader to a writer. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { parseText } from '../../src/codec/inbound/parse.ts';
import { isObject } from '../../src/protocol/json.ts';
import { writeJson } from '../../src/protocol/well-formed-json.ts';
import { suite } from '../harness/door.ts';
import { random } from '../harness/scale.ts';

const test = suite('exact numbers');

function passed(text: string): string {
  const parsed = parseText(text, { maxDepth: 256 });
  if (!parsed.ok) throw parsed.error;
  return writeJson(parsed.value);
}

/** Whole numbers as texts of JSON, of any length. */
const digits = fc.stringMatching(/^-?(?:0|[1-9]\d{0,30})$/).filter((text) => text !== '-0');
const { tree } = fc.letrec<{ tree: string }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    digits,
    fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify(text.toWellFormed())),
    fc.constantFrom('true', 'null', '"1234567890123456789"', '"a \\" 1234567890123456789 {[,:"', '{}', '[]'),
    fc.array(tie('tree'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
    fc
      .uniqueArray(fc.tuple(fc.constantFrom('a', 'b', '', '1', 'c"', 'é', '1234567890123456789'), tie('tree')), {
        maxLength: 4,
        selector: ([key]) => key,
      })
      .map((members) => `{${members.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`),
  ),
}));

/** JavaScript lists whole numbers among the keys of an object first. */
const ordered = (text: string): boolean => !/"1":|"1234567890123456789":/.test(text);

test('any JSON is written as it was read, digit by digit', () => {
  fc.assert(
    fc.property(
      tree.filter((text) => /^[{[]/.test(text) && ordered(text)),
      (text) => {
        assert.is(passed(text), text);
      },
    ),
    { numRuns: random(5_000) },
  );
});

for (const [text, what] of [
  ['{"id":1234567890123456789}', 'an id above 2^53'],
  ['{"a":[{"b":-9223372036854775808},18446744073709551615]}', 'the bounds of 64 bits'],
  [
    '{"a":{"a":1234567890123456789,"b":[12345678901234567890,1]},"b":1234567890123456789}',
    'equal keys at several levels',
  ],
  ['[123456789012345678901234567890]', 'more than 21 digits'],
  ['{"1":1234567890123456789,"x":"1234567890123456789"}', 'a text of the same digits'],
] as const)
  test(`${what} is written as it was read`, () => assert.is(passed(text), text));

test('a long text, and a list of many such numbers, are read in linear time and do not throw', () => {
  const text = `{"a":"${'x'.repeat(20_000_000)}","id":1234567890123456789}`;
  assert.ok(passed(text) === text);
  const escaped = `{"a":"${'\\\\'.repeat(1_000_000)}\\"","id":1234567890123456789}`;
  assert.ok(passed(escaped) === escaped);
  const numbers = Array.from({ length: 20_000 }, (_, index) => `1234567890123456${String(index).padStart(6, '0')}`);
  const written = passed(`[${numbers.join(',')}]`)
    .slice(1, -1)
    .split(',');
  // The bound is a bound of time: the numbers after it are as exact as JavaScript.
  assert.ok(written.slice(0, 10_000).every((text, index) => text === numbers[index]));
  assert.is(written.length, numbers.length);
});

test('a text in the form of the mark is written as text', () => {
  for (const forged of [
    '{"a":"\uE000troupe-number:7","id":1234567890123456789}',
    '{"\uE000troupe-number:7":1,"id":1234567890123456789}',
  ]) {
    assert.equal(JSON.parse(passed(forged)), JSON.parse(forged));
    assert.match(passed(forged), '"\uE000troupe-number:7"');
  }
});

test('a program reads the nearest number, and what it changes is written', () => {
  const parsed = parseText('{"id":1234567890123456789,"n":9007199254740993}', { maxDepth: 9 });
  const value = parsed.ok && isObject(parsed.value) ? parsed.value : {};
  assert.is(value.id, 1234567890123456800);
  Object.assign(value, { id: 7 });
  assert.is(writeJson(value), '{"id":7,"n":9007199254740993}');
});
