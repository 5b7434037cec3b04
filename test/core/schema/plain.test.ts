/** Checks by plain JSON Schema: what fits, what the report of a misfit says, and what hostile values cost. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { having, input, output, report } from './checking.ts';

const test = suite('plain JSON Schema');
const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';

/** The report on one property `a`. */
const onProperty = (property: unknown, value: unknown): Promise<string[]> =>
  report(input(having(property)), { a: value });

test('S-11: answers with the value itself, and never changes or coerces it', async () => {
  const compiled = input(having({ type: 'number', default: 3 }));
  const value = Object.freeze({});
  const checked = await compiled.check(value);
  assert.ok(checked.ok && checked.value === value);
  assert.equal(await report(compiled, { a: '3' }), ['- a: expected number, got string "3"']);
});

test('answers without a promise once ajv is loaded', async () => {
  const compiled = input(having({ type: 'number' }));
  await compiled.check({});
  assert.equal(compiled.check({ a: 1 }), { ok: true, value: { a: 1 } });
  assert.equal(input(having({ type: 'string' })).check({ a: 'x' }), { ok: true, value: { a: 'x' } });
});

test('tells of every problem with its path, what was expected and what came', async () => {
  const compiled = input({
    type: 'object',
    properties: {
      user: {
        type: 'object',
        properties: { tags: { type: 'array', items: { type: 'string' } }, age: { type: 'integer', minimum: 0 } },
      },
      'odd key': { type: 'boolean' },
    },
    required: ['user', 'missing', 'toString'],
    additionalProperties: false,
  });
  assert.equal(await report(compiled, { user: { tags: ['x', null, 3], age: -1 }, 'odd key': {}, extra: [1] }), [
    '- missing: expected a value, got nothing',
    '- toString: expected a value, got nothing',
    '- extra: expected no such property (known: user, "odd key"), got array of 1',
    '- user.tags[1]: expected string, got null',
    '- user.tags[2]: expected string, got number 3',
    '- user.age: expected integer >= 0, got number -1',
    '- ["odd key"]: expected boolean, got object',
  ]);
});

test('says of a missing property what belongs there', async () => {
  const schema = having({ enum: ['x', 'y'] }, { required: ['a', 'b'] });
  assert.equal(await report(input(schema), {}), [
    '- a: expected one of "x", "y", got nothing',
    '- b: expected a value, got nothing',
  ]);
  assert.equal(
    await report(
      input({
        type: 'object',
        properties: { 'a/b': { $ref: '#/$defs/n' } },
        required: ['a/b'],
        $defs: { n: { type: 'null' } },
      }),
      {},
    ),
    ['- ["a/b"]: expected null, got nothing'],
  );
});

for (const [schema, value, line] of [
  [{ type: ['string', 'null'] }, 1, 'string or null, got number 1'],
  [{ enum: ['a', 1, null, { x: 1 }] }, 'b', 'one of "a", 1, null, object, got string "b"'],
  [{ const: 'a' }, 'b', '"a", got string "b"'],
  [{ minimum: 1 }, 0, 'number >= 1, got number 0'],
  [{ type: 'integer', exclusiveMaximum: 1 }, 1, 'integer < 1, got number 1'],
  [{ multipleOf: 0.01 }, 0.001, 'number that is a multiple of 0.01, got number 0.001'],
  [{ minLength: 1 }, '', 'string of at least 1 character, got string ""'],
  [{ maxLength: 2 }, 'abc', 'string of at most 2 characters, got string "abc"'],
  [{ pattern: '^\\d+$' }, 'x', 'string that matches "^\\\\d+$", got string "x"'],
  [{ format: 'email' }, 'x', 'string in format "email", got string "x"'],
  [{ minItems: 2 }, [], 'array of at least 2, got array of 0'],
  [{ maxItems: 1 }, [1, 2], 'array of at most 1, got array of 2'],
  [{ prefixItems: [{}], items: false }, [1, 2], 'array of at most 1, got array of 2'],
  [{ uniqueItems: true }, [1, 2, 1], 'items that differ (0 and 2 are equal), got array of 3'],
  [{ minProperties: 1 }, {}, 'object of at least 1 property, got object'],
  [{ maxProperties: 0 }, { x: 1 }, 'object of at most 0 properties, got object'],
  [{ contains: { type: 'string' } }, [1], 'array with at least 1 of: string, got array of 1'],
  [{ not: { type: 'null' } }, null, 'anything but null, got null'],
  [false, 1, 'nothing, got number 1'],
  [{ anyOf: [{ type: 'string' }, { type: 'integer' }] }, null, 'string or integer, got null'],
  [{ anyOf: [{ type: 'string' }, { type: 'string' }] }, null, 'string, got null'],
  [
    { oneOf: [{ type: 'number' }, { minimum: 1 }] },
    2,
    'only one of: number or a value that fits its schema (it fits several), got number 2',
  ],
] as const) {
  test(`says of ${JSON.stringify(schema)}: expected ${line}`, async () => {
    assert.equal(await onProperty(schema, value), [`- a: expected ${line}`]);
  });
}

test('tells of properties that depend on others, and of names', async () => {
  assert.equal(await onProperty({ dependentRequired: { x: ['y'] } }, { x: 1 }), [
    '- a.y: expected a value, because "x" is given, got nothing',
  ]);
  assert.equal(await onProperty({ propertyNames: { pattern: '^[a-z]$' } }, { A: 1 }), [
    '- a.A: expected another name: string that matches "^[a-z]$", got number 1',
  ]);
  assert.equal(await onProperty({ properties: { x: true }, unevaluatedProperties: false }, { x: 1, y: 2 }), [
    '- a.y: expected no such property, got number 2',
  ]);
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema.
  assert.equal(await onProperty({ if: { required: ['i'] }, then: { required: ['j'] } }, { i: 1 }), [
    '- a.j: expected a value, got nothing',
  ]);
});

test('reports only the branch that was meant, recognized by type or by fixed values', async () => {
  const shape = (kind: string, size: string) => ({
    type: 'object',
    properties: { kind: { const: kind }, [size]: { type: 'number' } },
    required: ['kind', size],
  });
  const shapes = { oneOf: [{ $ref: '#/$defs/circle' }, { $ref: '#/$defs/square' }, { type: 'null' }] };
  const compiled = input(having(shapes, { $defs: { circle: shape('circle', 'r'), square: shape('square', 'side') } }));
  assert.equal(await report(compiled, { a: { kind: 'circle', r: 'x' } }), ['- a.r: expected number, got string "x"']);
  assert.equal(await report(compiled, { a: { kind: 'square' } }), ['- a.side: expected number, got nothing']);
  const all = '- a: expected object with kind "circle" or object with kind "square" or null';
  assert.equal(await report(compiled, { a: { kind: 'star' } }), [`${all}, got object`]);
  assert.equal(await report(compiled, { a: 3 }), [`${all}, got number 3`]);
});

test('keeps the problems beside a composition', async () => {
  const schema = {
    type: 'object',
    required: ['x'],
    anyOf: [{ required: ['p'] }, { required: ['q'] }],
    properties: { y: { type: 'string' } },
  };
  assert.equal((await onProperty(schema, { y: 1 })).sort(), [
    '- a.x: expected a value, got nothing',
    '- a.y: expected string, got number 1',
    '- a: expected object with "p" or object with "q", got object',
  ]);
});

test('reports at most eight lines, and counts the rest', async () => {
  const lines = await onProperty({ type: 'array', items: { type: 'string' } }, Array(11).fill(0));
  assert.is(lines.length, 9);
  assert.is(lines[8], '- and 3 more');
  assert.is(
    (await onProperty({ type: 'array', items: { type: 'string' } }, Array(1_500).fill(0)))[8],
    '- and at least 92 more',
  );
});

test('reports one problem of a huge value, and holds no errors for the others', async () => {
  assert.equal(await onProperty({ type: 'array', items: { type: 'string' } }, Array(3_000_000).fill(0)), [
    '- a[0]: expected string, got number 0',
  ]);
});

test('reports a value that is nested deeper than the stack, whether the schema follows it or not', async () => {
  let deep: unknown = {};
  for (let level = 0; level < 200_000; level++) deep = { a: deep };
  assert.equal(await report(input(having({ $ref: '#' })), deep), ['- expected a value with less nesting, got object']);
  assert.equal(await report(input(having({ type: 'string' })), deep), ['- a: expected string, got object']);
});

test('reports objects that cannot be compared because of their keys', async () => {
  const lines = await onProperty({ uniqueItems: true }, JSON.parse('[{"valueOf":1},{"valueOf":1}]'));
  assert.equal(lines, ['- expected no "valueOf" or "toString" in it, got object']);
});

test('judges own properties only', async () => {
  const compiled = input({
    type: 'object',
    properties: { constructor: { type: 'string' }, a: { type: 'string' } },
    additionalProperties: false,
  });
  assert.equal(await report(compiled, {}), []);
  assert.equal(await report(compiled, Object.create({ a: 1 })), []);
  assert.equal(await report(compiled, JSON.parse('{"__proto__":{"a":1}}')), [
    '- __proto__: expected no such property (known: constructor, a), got object',
  ]);
});

test('counts characters, not code units, and matches by code points', async () => {
  assert.equal(await onProperty({ maxLength: 1, pattern: '^.$' }, '😀'), []);
  assert.equal(await onProperty({ maxLength: 1 }, '\ud800'), []);
  assert.equal(await onProperty({ pattern: '^\\p{Lu}$' }, 'É'), []);
});

test('takes 19.99 for a multiple of 0.01, and NaN for no number', async () => {
  assert.equal(await onProperty({ multipleOf: 0.01 }, 19.99), []);
  assert.equal(await report(output({ type: 'number' }), Number.NaN), ['- expected number, got number NaN']);
});

test('takes formats that it does not know for notes, even those named like methods of an object', async () => {
  for (const format of ['colour', 'isPrototypeOf', 'hasOwnProperty', 'constructor', '__proto__', 'valueOf'])
    assert.equal(await onProperty({ type: 'string', format }, 'x'), [], format);
});

test('judges the schema for which the optimiser of ajv makes code that throws', async () => {
  const $defs = { d: { anyOf: [{ properties: { a: { type: 'string' } } }, {}] } };
  const schema = { oneOf: [{ allOf: [{ allOf: [{ $ref: '#/$defs/d' }], not: true }] }, {}], $defs };
  assert.equal(await report(output(schema), {}), []);
});

test('checks by draft-07 where the schema says so', async () => {
  const schema = {
    $schema: DRAFT_07,
    type: 'object',
    properties: { a: { items: [{ type: 'string' }], additionalItems: false } },
  };
  assert.equal(await report(input(schema), { a: ['x'] }), []);
  assert.equal(await report(input(schema), { a: [1, 2] }), [
    '- a: expected array of at most 1, got array of 2',
    '- a[0]: expected string, got number 1',
  ]);
  const ignored = { ...schema, properties: { a: { prefixItems: [{ type: 'string' }] } } };
  assert.equal(await report(input(ignored), { a: [1] }), []);
});

test('checks outputs of any root', async () => {
  assert.equal(await report(output({ type: 'array', items: { type: 'integer' } }), [1, 2.5]), [
    '- [1]: expected integer, got number 2.5',
  ]);
  assert.equal(await report(output({ type: 'string' }), undefined), ['- expected string, got nothing']);
  assert.equal(await report(output({}), 3), []);
});

test('keeps line breaks of hostile keys and values out of the report', async () => {
  const compiled = input({ type: 'object', properties: {}, additionalProperties: false });
  const lines = await report(compiled, { 'x\n- y: fine': 'a\r\nb', [`z${'z'.repeat(100_000)}`]: 1 });
  assert.is(lines.length, 2);
  assert.is(lines[0], '- ["x - y: fine"]: expected no such property, got string "a b"');
  assert.ok((lines[1] ?? '').length < 200);
});

test('holds no value after its check', async () => {
  const compiled = input(having({ type: 'string' }));
  let value: object | undefined = { a: { big: 1 } };
  const watched = new WeakRef(value);
  await report(compiled, value);
  value = undefined;
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  await new Promise((done) => setImmediate(done));
  collect();
  assert.is(watched.deref(), undefined);
});
