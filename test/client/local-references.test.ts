/** References of schemas that name nothing: left out, and nothing else is. */
import { Ajv } from 'ajv';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { withoutDangling } from '../../src/client/local-references.ts';
import { isObject } from '../../src/core/protocol/json.ts';
import { suite } from '../harness/door.ts';
import { random } from '../harness/scale.ts';

const test = suite('local references');

const A = { type: 'object' };
for (const [what, schema] of [
  ['a definition', { $defs: { A }, properties: { a: { $ref: '#/$defs/A' } } }],
  ['its own root', { properties: { a: { $ref: '#' } } }],
  ['itself', { $defs: { A: { properties: { a: { $ref: '#/$defs/A' } } } }, properties: { a: { $ref: '#/$defs/A' } } }],
  ['another property', { properties: { a: A, b: { $ref: '#/properties/a' } } }],
  ['a name with "/", "~" and a space', { $defs: { 'a/b~ c': A }, items: { $ref: '#/$defs/a~1b~0%20c' } }],
  ['an element of a list', { anyOf: [A, { $ref: '#/anyOf/0' }] }],
  ['an anchor', { $defs: { A: { $anchor: 'here' } }, items: { $ref: '#here' } }],
  ['another document', { items: { $ref: 'https://example.com/a.json#/$defs/A' } }],
  ['a place below an identifier', { $defs: { A: { $id: 'urn:a', $defs: { B: {} }, items: { $ref: '#/$defs/B' } } } }],
  ['a property that is called $ref', { properties: { $ref: { type: 'string', const: '#/$defs/A' } } }],
  [
    'a value of a default',
    { default: { $ref: '#/$defs/A' }, enum: [{ $ref: '#/$defs/A' }], examples: [{ $ref: '#/x' }] },
  ],
] as const)
  test(`a reference to ${what} stays`, () => assert.is(withoutDangling(schema), schema));

test('a property that is called "default" has a schema, and its references are read', () => {
  const schema = {
    properties: { default: { $ref: '#/$defs/A' }, properties: { properties: { $ref: { $ref: '#/x' } } } },
  };
  assert.equal(withoutDangling(schema), { properties: { default: {}, properties: { properties: { $ref: {} } } } });
});

for (const [what, schema, read] of [
  ['itself', { $defs: { A: { $ref: '#/$defs/A' } }, items: { $ref: '#/$defs/A' } }, { $defs: { A: {} }, items: {} }],
  ['its root', { $ref: '#', title: 't' }, { title: 't' }],
  [
    'another one that leads back',
    { $defs: { A: { $ref: '#/$defs/B' }, B: { $ref: '#/$defs/A', title: 'b' } } },
    { $defs: { A: {}, B: { title: 'b' } } },
  ],
  [
    'one that leads to nothing',
    { $defs: { A: { $ref: '#/$defs/B' }, B: { $ref: '#/$defs/C' } } },
    { $defs: { A: { $ref: '#/$defs/B' }, B: {} } },
  ],
] as const)
  test(`a reference that leads to ${what} only is left out`, () => assert.equal(withoutDangling(schema), read));

test('any schema compiles in a strict validator once its references to nothing are left out', () => {
  const { schema } = fc.letrec<{ schema: object }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constantFrom('#/$defs/A', '#/$defs/B', '#/definitions/A', '#/$defs/A/items', '#').map(($ref) => ({ $ref })),
      fc.record({ properties: fc.dictionary(fc.constantFrom('a', 'default', '$ref', 'items'), tie('schema')) }),
      fc.record({ items: tie('schema'), title: fc.constant('t') }),
      fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ default: fc.constant({ $ref: '#/nowhere' }) }),
    ),
  }));
  const root = fc
    .tuple(schema, fc.option(schema))
    .map(([own, A]) => ({ ...own, ...(A === null ? {} : { $defs: { A } }) }));
  fc.assert(
    fc.property(root, (given) => {
      const read = withoutDangling(given);
      assert.ok(isObject(read));
      new Ajv({ strict: false }).compile(read);
      assert.is(withoutDangling(read), read);
    }),
    { numRuns: random(200) },
  );
});
