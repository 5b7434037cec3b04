/** Numbers that a JavaScript number cannot hold keep their digits from a reader to a writer. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { editableJson, readCommentedJson } from '../../../src/core/codec/commented-json.ts';
import { parseText } from '../../../src/core/codec/inbound/parse.ts';
import { isJsonObject, isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { writeJson } from '../../../src/core/protocol/json-text.ts';
import { digest, KeyRing } from '../../../src/core/store/seal.ts';
import { fromText, toText } from '../../../src/core/store/serialize.ts';
import { copyOf } from '../../../src/features/asking/step-log.ts';
import { isIntact, pinsOf } from '../../../src/gateway/mounts/pins.ts';
import { grapheme } from '../../harness/character.ts';
import { suite } from '../../harness/door.ts';
import { random, times } from '../../harness/scale.ts';

const test = suite('exact numbers');

function passed(text: string): string {
  const parsed = parseText(text, { maxDepth: 256 });
  if (!parsed.ok) throw parsed.error;
  return writeJson(parsed.value);
}

function read(text: string): JsonObject {
  const parsed = parseText(text, { maxDepth: 256 });
  if (!parsed.ok || !isJsonObject(parsed.value)) throw new Error(`expected an object: ${text}`);
  return parsed.value;
}

/** Whole numbers as texts of JSON, of any length. */
const digits = fc.stringMatching(/^-?(?:0|[1-9]\d{0,30})$/).filter((text) => text !== '-0');
const { tree } = fc.letrec<{ tree: string }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    digits,
    fc.string({ unit: grapheme }).map((text) => JSON.stringify(text.toWellFormed())),
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
  ['{"a":1e400,"b":-1e400,"c":null}', 'a number beyond the largest of JavaScript'],
  ['{"a":[12345678901234567890.5,1e22,1.5E+30]}', 'a fraction, and exponents as their writer has them'],
] as const)
  test(`${what} is written as it was read`, () => assert.is(passed(text), text));

test('a long text, and a list of many such numbers, are read in linear time and do not throw', () => {
  const text = `{"a":"${'x'.repeat(times(20_000_000, { quick: 4_000_000 }))}","id":1234567890123456789}`;
  assert.ok(passed(text) === text);
  const escaped = `{"a":"${'\\\\'.repeat(times(1_000_000, { quick: 200_000 }))}\\"","id":1234567890123456789}`;
  assert.ok(passed(escaped) === escaped);
  const numbers = Array.from(
    { length: times(200_000, { quick: 40_000 }) },
    (_, index) => `1234567890123456${String(index).padStart(6, '0')}`,
  );
  const list = `[${numbers.join(',')}]`;
  assert.ok(passed(list) === list);
});

test('the memory of a message counts the digits that are remembered', () => {
  const bytes = (number: string): number => {
    const parsed = parseText(`[${Array(1_000).fill(number).join(',')}]`, { maxDepth: 9 });
    return parsed.ok ? parsed.bytes : 0;
  };
  assert.ok(bytes('1234567890123456789') - bytes('1234567890123456800') >= 100_000);
});

/** The places where values leave the memory of their process, or are copied, and come back. */
const RING = KeyRing.random();
const WAYS: Readonly<Record<string, (value: JsonObject) => unknown>> = {
  'a store': (value) => fromText(toText(value), 'test'),
  'a sealed state': (value) => {
    const opened = RING.open(RING.seal(value, ['a']), ['a']);
    return opened.ok ? opened.payload : undefined;
  },
  'a file that people edit': (value) => readCommentedJson(editableJson(value)).value,
  'the copy of a step': (value) => copyOf(value),
};
const objects = tree.map((text) => `{"a":${text}}`);

for (const [name, way] of Object.entries(WAYS))
  test(`any JSON passes ${name} digit by digit`, () => {
    fc.assert(
      fc.property(objects.filter(ordered), (text) => {
        assert.is(writeJson(way(read(text))), text);
      }),
      { numRuns: random(1_000) },
    );
  });

test('S-12: two ids that are one number have different digests, in any order of members', () => {
  const [one, other] = ['1234567890123456789', '1234567890123456788'];
  for (const shape of ['{"id":ID}', '{"a":[[1,ID]]}', '{"a":{"b":{"id":ID}}}']) {
    assert.is.not(digest(read(shape.replace('ID', one))), digest(read(shape.replace('ID', other))));
    assert.is.not(RING.fingerprint(read(shape.replace('ID', one))), RING.fingerprint(read(shape.replace('ID', other))));
  }
  assert.is(digest(read(`{"a":1,"id":${one}}`)), digest(read(`{"id":${one},"a":1}`)));
});

test('a pin whose schema has a bound of 64 bits is intact after its lock file was read', () => {
  const inputSchema = '{"type":"object","properties":{"id":{"maximum":9223372036854775807}}}';
  const { tools } = pinsOf({ tools: [read(`{"name":"a","inputSchema":${inputSchema}}`)], prompts: [] });
  const [pin] = tools;
  assert.ok(pin);
  const again = readCommentedJson(editableJson({ ...pin })).value;
  assert.ok(isJsonObject(again) && isJsonObject(again.definition));
  assert.ok(isIntact({ ...pin, definition: again.definition }));
});

test('a text in the form of an earlier mark is written as text, and changes no number', () => {
  for (const forged of [
    '{"a":"\uE000troupe-number:7","id":1234567890123456789}',
    '{"\uE000troupe-number:7":"number-:7","id":1234567890123456789}',
  ])
    assert.is(passed(forged), forged);
});

test('a program reads the nearest number, and what it changes is written', () => {
  const parsed = parseText('{"id":1234567890123456789,"n":9007199254740993}', { maxDepth: 9 });
  const value = parsed.ok && isObject(parsed.value) ? parsed.value : {};
  assert.is(value.id, 1234567890123456800);
  Object.assign(value, { id: 7 });
  assert.is(writeJson(value), '{"id":7,"n":9007199254740993}');
});
