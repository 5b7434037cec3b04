/** An entry of JSON that people edit changes, and nothing else of the text does. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { withEntry } from '../../src/cli/setup/json-edit.ts';
import { readCommentedJson } from '../../src/core/codec/commented-json.ts';
import { isJsonObject } from '../../src/core/protocol/json.ts';
import { suite } from '../harness/door.ts';
import { random } from '../harness/scale.ts';

const test = suite('edited JSON');

const ENTRY = { command: 'x', args: ['a'] };
const set = (text: string): string => withEntry(text, 'servers', 'shop', ENTRY);
const remove = (text: string): string => withEntry(text, 'servers', 'shop', undefined);

for (const [what, text, expected] of [
  [
    'an empty file',
    '',
    '{\n  "servers": {\n    "shop": {\n      "command": "x",\n      "args": [\n        "a"\n      ]\n    }\n  }\n}\n',
  ],
  ['no member', '{}', '{\n  "servers": {\n    "shop": E4\n  }\n}'],
  ['a member that is null', '{ "servers": null }', '{ "servers": {\n  "shop": E2\n} }'],
  [
    'comments and trailing commas',
    '{\n  // mine\n  "servers": {\n    "a": { "b": 1 }, /* one */ // two\n  },\n}\n',
    '{\n  // mine\n  "servers": {\n    "a": { "b": 1 }, /* one */ // two\n    "shop": E4,\n  },\n}\n',
  ],
  [
    'a comment without a comma before it',
    '{\n  "servers": {\n    "a": 1 // one\n  }\n}',
    '{\n  "servers": {\n    "a": 1, // one\n    "shop": E4\n  }\n}',
  ],
  ['one line', '{ "servers": { "a": 1 }, "z": 2 }', '{ "servers": { "a": 1,\n  "shop": E2\n}, "z": 2 }'],
  ['only a comment', '{\n  "servers": { // none\n  }\n}', '{\n  "servers": { // none\n    "shop": E4\n  }\n}'],
  [
    'another entry of this name',
    '{\n  "servers": {\n    "shop": { "old": [1] }, // kept\n    "b": 1\n  }\n}',
    '{\n  "servers": {\n    "shop": E4, // kept\n    "b": 1\n  }\n}',
  ],
  [
    'numbers that JavaScript cannot hold',
    '{ "n": 12345678901234567890 }',
    '{ "n": 12345678901234567890,\n  "servers": {\n    "shop": E4\n  }\n}',
  ],
] as const)
  test(`an entry is added to a file with ${what}`, () => {
    const shown = (indent: number): string =>
      JSON.stringify(ENTRY, undefined, 2).replaceAll('\n', `\n${' '.repeat(indent)}`);
    assert.is(
      set(text),
      expected.replace(/E(\d)/, (_, indent: string) => shown(Number(indent))),
    );
  });

test('tabs, CRLF and a byte order mark stay', () =>
  assert.is(
    set('\ufeff{\r\n\t"servers": {\r\n\t\t"a": 1\r\n\t}\r\n}\r\n'),
    '\ufeff{\r\n\t"servers": {\r\n\t\t"a": 1,\r\n\t\t"shop": {\r\n\t\t\t"command": "x",\r\n\t\t\t"args": [\r\n\t\t\t\t"a"\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}\r\n',
  ));

for (const [what, text, expected] of [
  ['the only one', '{ "servers": { "shop": 1 } }', '{ "servers": {  } }'],
  [
    'the first one',
    '{\n  "servers": {\n    "shop": [\n      1\n    ],\n    "b": 1 // b\n  }\n}',
    '{\n  "servers": {\n    "b": 1 // b\n  }\n}',
  ],
  [
    'the last one',
    '{\n  "servers": {\n    "a": 1, // a\n    "shop": 2\n  }\n}',
    '{\n  "servers": {\n    "a": 1 // a\n  }\n}',
  ],
  [
    'the last one, with a comma',
    '{\n  "servers": {\n    "a": 1, // a\n    "shop": 2,\n  }\n}',
    '{\n  "servers": {\n    "a": 1, // a\n  }\n}',
  ],
  ['none', '{ "servers": { "a": 1 } } // a', '{ "servers": { "a": 1 } } // a'],
  ['none, without servers', '{}', '{}'],
] as const)
  test(`an entry that is ${what} is removed`, () => assert.is(remove(text), expected));

test('texts that are no JSON, or whose member is no object, throw', () => {
  for (const text of ['{', '[]', '{ "servers": [] }', '{ "servers": { "a": 1, "a": 2 } }'])
    assert.throws(
      () => set(text),
      (error: unknown) => error instanceof Error,
    );
});

const space = fc
  .array(fc.constantFrom(' ', '\n', '\t', '\r\n', '// c }\n', '/* { " */'), { maxLength: 3 })
  .map((parts) => parts.join(''));
const leaf = fc.oneof(
  fc.constantFrom('null', 'true', '12345678901234567891', '"a}b"', '"\\u0041\\""'),
  fc.constant('[1, { }]'),
);
/** The text of an object, and the names of its members. */
const object = (value: fc.Arbitrary<string>, names: readonly string[]): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.subarray([...names]),
      fc.array(fc.tuple(space, space, space, value, space), { minLength: names.length, maxLength: names.length }),
      fc.boolean(),
      space,
    )
    .map(([chosen, parts, comma, end]) => {
      const members = chosen.map((name, index) => {
        const [a = '', b = '', c = '', text = '', d = ''] = parts[index] ?? [];
        return `${a}"${name}"${b}:${c}${text}${d}`;
      });
      return `{${members.join(',')}${comma && members.length > 0 ? ',' : ''}${end}}`;
    });

test('only the entry changes in any layout, and the others stay when it is removed', () => {
  const law = fc.property(
    space,
    object(fc.oneof(leaf, object(leaf, ['shop', 'a', 'b'])), ['servers', 'x', 'y']),
    (before, text) => {
      const whole = `${before}${text}`;
      const { value } = readCommentedJson(whole);
      const servers = isJsonObject(value) ? (value.servers ?? {}) : undefined;
      if (!isJsonObject(value) || !isJsonObject(servers)) return;
      const added = set(whole);
      assert.equal(readCommentedJson(added).value, { ...value, servers: { ...servers, shop: ENTRY } });
      const { shop: _, ...others } = servers;
      assert.equal(readCommentedJson(remove(added)).value, { ...value, servers: others });
      // Those in the entry itself go with it.
      if (servers.shop !== undefined) return;
      for (const comment of whole.match(/\/\/ c \}|\/\* \{ " \*\//g) ?? []) assert.ok(added.includes(comment), comment);
    },
  );
  fc.assert(law, { numRuns: random(2_000) });
});
