/** The guard at registration: which plain JSON Schemas pass, and what it says of the others. */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { having, input, output, refused, refusedBy } from './checking.ts';

const test = suite('schema guard');
const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';

/** Nests a schema in itself by `properties`. */
function nested(levels: number): Record<string, unknown> {
  let schema: Record<string, unknown> = { type: 'string' };
  for (let level = 0; level < levels; level++) schema = having(schema);
  return schema;
}

test('shows clients the schema as its author wrote it', () => {
  const schema = {
    $schema: DRAFT_07,
    title: 'T',
    type: 'object',
    properties: { a: { $ref: '#/definitions/x' } },
    definitions: { x: { type: 'string', 'x-note': { any: [1, null] } } },
  };
  assert.equal(input(schema).json, schema);
});

test('keeps a frozen copy, so that later changes of the author reach no client', () => {
  const schema = having({ type: 'string' });
  const { json } = input(schema);
  Object.assign(schema, { type: 'array' });
  assert.is(json.type, 'object');
  assert.ok(Object.isFrozen(json) && Object.isFrozen(json.properties));
});

test('lists a missing input as an object without members, and still takes one that has some', async () => {
  const { json, check } = input(undefined);
  assert.equal(json, { type: 'object', additionalProperties: false });
  assert.equal(await check({ x: 1 }), { ok: true, value: { x: 1 } });
  assert.equal(await check([]), { ok: false, problems: [{ path: '', expected: 'object', got: 'array of 0' }] });
});

test('accepts both dialects, and names them when it refuses another', () => {
  input({ $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' });
  input({ $schema: DRAFT_07, type: 'object' });
  for (const $schema of ['http://json-schema.org/draft-04/schema#', 'https://json-schema.org/draft/2019-09/schema', 3])
    refused({ $schema, type: 'object' }, '"$schema" is', 'draft/2020-12/schema', 'draft-07/schema');
  refused(having({ $schema: DRAFT_07, type: 'string' }), '#/properties/a', 'one dialect');
});

test('adds the type to an input root that only composes others', () => {
  for (const keyword of ['anyOf', 'allOf', 'oneOf']) {
    const root = { [keyword]: [{ required: ['a'] }] };
    assert.equal(input(root).json, { type: 'object', ...root });
  }
  assert.is(input({ $ref: '#/$defs/a', $defs: { a: { type: 'object' } } }).json.type, 'object');
});

test('refuses an input root that is no object, and lets an output be anything', () => {
  refused({ type: 'string' }, 'the type "string"', 'make the value a property');
  refused({ type: ['object', 'null'] }, 'array of 2');
  refused({ properties: {} }, 'no "type"', 'add "type": "object"');
  for (const root of [{ type: 'string' }, {}, { type: ['object', 'null'] }]) assert.equal(output(root).json, root);
});

test('refuses what is no schema at all', () => {
  for (const source of [null, 3, 'object', true, [], () => {}])
    refused(source, 'the schema is', 'zod, arktype or valibot');
});

test('refuses wrong values of keywords, with their place and what they must be', () => {
  refused(having({ type: 'strin' }), 'at #/properties/a: "type" is "strin"', '"string"');
  refused(having({ minimum: '3' }), '"minimum" is "3"', 'must be a number');
  refused(having({ multipleOf: 0 }), 'above 0');
  refused(having({ minLength: -1 }), 'integer of at least 0');
  refused(having({ anyOf: [] }), 'at least one schema');
  refused(having({ anyOf: [3] }), 'at #/properties/a/anyOf/0: 3', 'true or false');
  refused(having({ enum: [] }), 'at least one value');
  refused({ type: 'object', required: 'a' }, '"required" is "a"', 'different strings');
  refused({ type: 'object', required: ['a', 'a'] }, 'different strings');
  refused({ type: 'object', properties: [] }, '"properties" is array of 0', 'object of schemas');
  refused({ type: 'object', properties: { 'x/y~z': null } }, '#/properties/x~1y~0z: null');
});

test('knows which keywords are of which dialect', () => {
  input({ $schema: DRAFT_07, type: 'object', prefixItems: 3, items: [{}] });
  refused({ type: 'object', prefixItems: 3 }, '"prefixItems" is 3');
  refused({ type: 'object', items: [{}] }, '"items" is array of 1');
});

test('lets unknown keywords pass, except those that our validator would act on', () => {
  input(having({ type: 'string', 'x-anything': { deep: [1] }, constructor: 1, toString: { a: 1 } }));
  refused(having({ $async: true }), '"$async" is not a keyword');
  refused(having({ type: 'string', nullable: true }), '"nullable"', '["string", "null"]');
  refused(having({ id: 'x' }), 'write "$id"');
  refused(having({ $recursiveRef: '#' }), 'write "$ref"');
  input({ type: 'object', properties: { id: { type: 'string' }, nullable: {}, $async: {}, $ref: { type: 'string' } } });
});

test('refuses a pattern that does not compile with the "u" flag', () => {
  input(having({ type: 'string', pattern: '^\\p{L}+$' }));
  for (const pattern of ['[', '\\-', '(?<n>a)\\k<m>', 'a{2,1}'])
    refused(having({ pattern }), '"pattern" is', '"u" flag');
  refused({ type: 'object', patternProperties: { '[': {} } }, '"patternProperties"', 'regular expressions');
});

test('accepts 32 levels of subschemas and refuses 33', () => {
  input(nested(32));
  refused(nested(33), 'deeper than 32 levels', '$defs');
});

test('refuses plain JSON that nests without end', () => {
  let value: unknown = 1;
  for (let level = 0; level < 100_000; level++) value = [value];
  refused(having({ default: value }), 'deeper than 128 levels');
});

test('accepts 5,000 subschemas and refuses more', () => {
  const wide = (count: number): unknown => ({
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, true])),
  });
  input(wide(4_999));
  refused(wide(5_000), 'more than 5000 subschemas');
});

test('refuses a schema of more than 256 KiB', () => {
  input(having({ description: 'x'.repeat(200_000) }));
  refused(having({ description: 'x'.repeat(270_000) }), '256 KiB');
  refused(having({ description: 'é'.repeat(140_000) }), '256 KiB');
  refused(having({ enum: Array.from({ length: 60_000 }, (_, index) => index) }), '256 KiB');
});

test('stops at the bound where shared objects would unfold to billions', () => {
  let laugh: unknown[] = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
  for (let level = 0; level < 30; level++) laugh = Array(10).fill(laugh);
  refused(having({ default: laugh }), '256 KiB');
});

test('refuses an object that contains itself, and accepts one that is used twice', () => {
  const schema: Record<string, unknown> = { type: 'object', properties: {} };
  schema.properties = { child: { anyOf: [schema] } };
  refused(schema, 'at #/properties/child/anyOf/0', 'contains itself', '$ref');
  const text = { type: 'string' };
  input({ type: 'object', properties: { a: text, b: text } });
});

test('refuses what is no JSON', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, 1n, Symbol('x'), () => 1])
    refused(having({ default: value }), 'at #/properties/a/default', 'not a JSON value');
  for (const value of [new Date(0), /x/, new Map(), new (class Own {})()])
    refused(having({ default: value }), 'its own prototype');
  refused(having({ default: [undefined] }), 'at #/properties/a/default/0', 'nothing');
  assert.equal(input(having({ default: undefined })).json, having({}));
});

test('refuses the key "__proto__", written as JSON or as a literal', () => {
  refused(
    JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}'),
    'at #/properties',
    '"__proto__"',
  );
  refused({ type: 'object', properties: { __proto__: { type: 'string' } } }, 'at #/properties', '__proto__');
  assert.is(Reflect.get({}, 'type'), undefined);
});

test('accepts objects without a prototype and names of Object.prototype', () => {
  const properties = Object.assign(Object.create(null), {
    constructor: { type: 'string' },
    toString: { type: 'number' },
  });
  assert.equal(Object.keys(input({ type: 'object', properties }).json.properties ?? {}), ['constructor', 'toString']);
});

test('cuts hostile texts in its messages', () => {
  refusedBy(() => {
    try {
      input(having({ type: 'x\n'.repeat(10_000) }, { [`k${'y'.repeat(10_000)}`]: 1 }));
    } catch (error) {
      assert.ok(error instanceof Error && error.message.length < 400 && !error.message.includes('\n'));
      throw error;
    }
  }, '"type" is "x x');
});
