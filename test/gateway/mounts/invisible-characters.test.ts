/** Invisible characters: removed from titles and descriptions, reported in names and values. */
import * as assert from 'uvu/assert';
import {
  describeInvisible,
  visibleDefinition,
  withoutInvisible,
} from '../../../src/gateway/mounts/invisible-characters.ts';
import { suite } from '../../harness/door.ts';

const test = suite('invisible characters');

/** A text as tag characters, which models read and people do not see. */
const tags = (text: string): string => [...text].map((c) => String.fromCodePoint(0xe0000 + c.charCodeAt(0))).join('');

for (const [title, text, clean, characters] of [
  ['characters of zero width', 'a\u200bb\u2060c\ufeff', 'abc', ['U+200B', 'U+2060', 'U+FEFF']],
  ['marks of direction', '\u202egnp.\u202c \u2066x\u2069', 'gnp. x', ['U+202E', 'U+202C', 'U+2066', 'U+2069']],
  ['tags', `Adds.${tags('hi')}`, 'Adds.', ['U+E0068', 'U+E0069']],
  ['runs of variation selectors', 'x\u{e0101}\u{e0102}\ufe01', 'x', ['U+E0101', 'U+E0102', 'U+FE01']],
  ['escape sequences', 'a\u001b[8mb\u009bc', 'a[8mbc', ['U+001B', 'U+009B']],
  ['a joiner between Latin letters', 'de\u200dlete', 'delete', ['U+200D']],
] as const)
  test(`removes ${title}`, () => assert.equal(withoutInvisible(text), { text: clean, characters }));

for (const text of [
  'Line 1\n\tline 2\r\n',
  'Élan, naïve, 日本語, emoji 😀',
  'می\u200cخواهم',
  'क्\u200dष',
  'a family: 👨\u200d👩\u200d👧, a heart: ❤\ufe0f, a pilot: 👩🏽\u200d✈\ufe0f, a key: 1\ufe0f\u20e3',
  '葛\u{e0100}',
])
  test(`leaves ${JSON.stringify(text)}`, () => assert.equal(withoutInvisible(text), { text, characters: [] }));

test('cleans the nested texts of a definition, and reports names and values', () => {
  const definition = {
    name: 'add',
    title: 'A\u200bdd',
    description: 'Plain.',
    inputSchema: {
      type: 'object',
      description: 'x\u200b',
      properties: {
        description: { type: 'string', title: 'ok', description: `in${tags('!')}` },
        'b\u200b': { enum: ['x\u202e'], default: { title: 'v\u2060' } },
        list: { items: [{ anyOf: [{ description: '\u200e' }] }] },
      },
    },
    _meta: { note: '\u200b' },
  };
  const { definition: clean, found } = visibleDefinition(definition);
  assert.equal(clean, {
    ...definition,
    title: 'Add',
    inputSchema: {
      type: 'object',
      description: 'x',
      properties: {
        description: { type: 'string', title: 'ok', description: 'in' },
        'b\u200b': { enum: ['x\u202e'], default: { title: 'v\u2060' } },
        list: { items: [{ anyOf: [{ description: '' }] }] },
      },
    },
  });
  assert.equal(
    found.map(({ at, removed, characters }) => `${removed ? '-' : '?'} ${at} ${characters}`),
    [
      '- title U+200B',
      '- inputSchema/description U+200B',
      '- inputSchema/properties/description/description U+E0021',
      '? inputSchema/properties/b U+200B',
      '? inputSchema/properties/b/enum U+202E',
      '? inputSchema/properties/b/default U+2060',
      '- inputSchema/properties/list/items/0/anyOf/0/description U+200E',
    ],
  );
  assert.match(describeInvisible('add', found), '"add": invisible characters: removed U+200B in title; removed');
});

test('cleans the arguments of a prompt', () => {
  const { definition } = visibleDefinition({
    name: 'ask',
    arguments: [{ name: 'q', description: 'a\u200bb' }, { name: 'r' }],
  });
  assert.equal(definition, { name: 'ask', arguments: [{ name: 'q', description: 'ab' }, { name: 'r' }] });
});

test('a clean definition is the same object', () => {
  const definition = {
    name: 'add',
    description: 'Adds.',
    inputSchema: { type: 'object', properties: { a: { title: 'A' } } },
  };
  assert.is(visibleDefinition(definition).definition, definition);
});
