/** How the page reads a JSON Schema: references, types, parts and bounds, of hostile schemas too. */
import * as assert from 'uvu/assert';
import { constantsOf, follow, limitsOf, partsOf, typeWord } from '../../../inspector/src/server/schema.ts';
import type { Plain } from '../../../src/inspector/frames.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the page as a reader of schemas');

const partNames = (root: Plain, schema: Plain = root): readonly string[] => {
  const { schema: followed } = follow(root, schema);
  return followed ? partsOf(root, followed).map(({ name }) => name) : [];
};

test('follows references within the schema, by pointer and by anchor, and no others', () => {
  const root = {
    $defs: { 'a/b': { type: 'string' }, node: { $anchor: 'node', type: 'object' }, through: { $ref: '#/$defs/node' } },
  };
  assert.equal(follow(root, { $ref: '#/$defs/a~1b' }).schema, { type: 'string' });
  assert.equal(follow(root, { $ref: '#node', title: 'Here' }).schema, {
    $anchor: 'node',
    type: 'object',
    title: 'Here',
  });
  assert.equal(follow(root, { $ref: '#/$defs/through' }).through, ['#/$defs/through', '#/$defs/node']);
  assert.is(follow(root, { $ref: 'other.json' }).schema, undefined);
  assert.is(follow(root, { $ref: '#/%E0%A4%A' }).schema, undefined);
});

test('a reference that leads to itself ends', () => {
  const root = { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } };
  assert.is(follow(root, { $ref: '#/$defs/a' }).schema, undefined);
  const list: Plain = { type: 'array', items: { $ref: '#' } };
  assert.equal(partNames(list), []);
  assert.is(typeWord(list, list), 'list of list of list of list');
});

test('names types, choices and parts', () => {
  const schema = {
    type: 'object',
    properties: { size: { enum: ['s', 'm'] }, tags: { type: 'array', items: { type: 'string' } } },
    required: ['size', 'other'],
    patternProperties: { '^x-': { type: 'string' } },
    anyOf: [{ type: 'object' }, { type: 'null' }],
  };
  assert.equal(partNames(schema), ['size', 'tags', 'members like ^x-', 'any of · 1', 'any of · 2']);
  assert.is(typeWord(schema, schema.properties.size), 'string');
  assert.is(typeWord(schema, schema.properties.tags), 'list of string');
  assert.is(typeWord({}, { type: ['string', 'null'] }), 'string or null');
  assert.equal(limitsOf(schema), ['requires other']);
  assert.equal(limitsOf({ minimum: -Number.MAX_SAFE_INTEGER, maximum: 9 }), ['≤ 9']);
  assert.equal(constantsOf({ oneOf: [{ const: 'a', title: 'A' }, { const: 'b' }] }), [
    { value: 'a', title: 'A' },
    { value: 'b', title: undefined },
  ]);
});
