/** Laws of the schema module, over thousands of generated schemas and values. */
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import type { SchemaDialect } from '../../../src/core/schema/keywords.ts';
import { explain } from '../../../src/core/schema/problems.ts';
import { quickCheck } from '../../../src/core/schema/quick-check.ts';
import { SchemaError } from '../../../src/core/schema/schema-error.ts';
import { guardSchema } from '../../../src/core/schema/schema-guard.ts';
import { walkSchema } from '../../../src/core/schema/walk.ts';
import { suite } from '../../harness/door.ts';
import { atScale, random, SCALE } from '../../harness/scale.ts';
import { input, output } from './checking.ts';

const test = suite('laws of schemas');
const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';
const LENIENT = { strict: false, logger: false, validateFormats: false } as const;
/** The generated schemas are valid: each instance of ajv would compile the meta-schema first, which takes most of its time. */
const VALID = { ...LENIENT, validateSchema: false, ownProperties: true } as const;

const name = fc.constantFrom('a', 'b', 'c', 'constructor', 'x y', 'p/q~r');
const scalar = fc.oneof(
  fc.constantFrom('', 'a', 'b', '😀'),
  fc.integer({ min: -2, max: 3 }),
  fc.constantFrom(0.5, null, true, false),
);

/** Values that the schemas below sometimes fit. */
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;

const type = fc.constantFrom('string', 'number', 'integer', 'boolean', 'null', 'array', 'object');

/** Valid schemas; what one dialect does not know, it ignores. */
const schema = fc.letrec<{ schema: unknown; leaf: unknown }>((tie) => ({
  leaf: fc.oneof(
    fc.boolean(),
    fc.record({ type }),
    fc.record({ type: fc.uniqueArray(type, { minLength: 1, maxLength: 3 }) }),
    fc.record({ enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 3 }) }),
    fc.record({ const: scalar }),
    fc.record(
      { minimum: fc.integer({ min: -1, max: 2 }), multipleOf: fc.constantFrom(1, 0.5, 2) },
      { requiredKeys: [] },
    ),
    fc.record(
      { minLength: fc.nat(2), maxLength: fc.nat(2), pattern: fc.constantFrom('^a', '^.$', '\\p{L}') },
      { requiredKeys: [] },
    ),
    fc.record({ $ref: fc.constantFrom('#/$defs/a', '#/$defs/b') }),
  ),
  schema: fc.oneof(
    { maxDepth: 4 },
    tie('leaf'),
    fc.record(
      {
        type: fc.constant('object'),
        properties: fc.dictionary(name, tie('schema'), { maxKeys: 3 }),
        required: fc.uniqueArray(name, { maxLength: 2 }),
        additionalProperties: tie('schema'),
        propertyNames: tie('leaf'),
        minProperties: fc.nat(2),
      },
      { requiredKeys: [] },
    ),
    fc.record(
      {
        type: fc.constant('array'),
        items: tie('schema'),
        contains: tie('schema'),
        uniqueItems: fc.boolean(),
        maxItems: fc.nat(3),
      },
      { requiredKeys: [] },
    ),
    fc.record(
      {
        prefixItems: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
        unevaluatedItems: tie('schema'),
        unevaluatedProperties: tie('schema'),
        dependentSchemas: fc.dictionary(name, tie('schema'), { maxKeys: 2, noNullPrototype: true }),
        minContains: fc.nat(2),
      },
      { requiredKeys: [] },
    ),
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    fc.record(
      { allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }), not: tie('schema') },
      { requiredKeys: ['allOf'] },
    ),
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema.
    fc.record({ if: tie('schema'), then: tie('schema'), else: tie('schema') }, { requiredKeys: ['if'] }),
  ),
})).schema;

const document = fc
  .record({ root: schema, a: schema, b: schema, $schema: fc.constantFrom(undefined, DRAFT_07) })
  .map(({ root, a, b, $schema }) => ({ ...($schema ? { $schema } : {}), allOf: [root], $defs: { a, b } }));

/** Whether the guard accepts; references that loop are refused rightly, and nothing else of these. */
function passes(source: unknown): boolean {
  try {
    guardSchema(source, 'tool "t": output', 'output');
    return true;
  } catch (error) {
    assert.instance(error, SchemaError);
    assert.match(String(error), 'returns here');
    return false;
  }
}

test('a check says what ajv says', async () => {
  let fitted = 0;
  let misfitted = 0;
  const law = fc.asyncProperty(document, fc.array(value, { minLength: 4, maxLength: 4 }), async (source, values) => {
    fc.pre(passes(source));
    // With its optimiser, Ajv2020 makes code that throws: see src/core/schema/ajv.ts.
    const options = { ...VALID, multipleOfPrecision: 10, code: { optimize: false } };
    const ajv = '$schema' in source ? new Ajv({ ...options, ignoreKeywordsWithRef: true }) : new Ajv2020(options);
    const validate = ajv.compile(source);
    const compiled = output(source);
    for (const each of values) {
      let checked = await compiled.check(each);
      // A check has 250 ms by the wall clock, which another process may take from it.
      while (!checked.ok && checked.problems[0]?.expected.includes('checked within'))
        checked = await compiled.check(each);
      assert.is(checked.ok, validate(each));
      if (checked.ok) assert.is(checked.value, each);
      else assert.ok(checked.problems.length > 0);
      if (checked.ok) fitted += 1;
      else misfitted += 1;
    }
  });
  const numRuns = atScale({ quick: 10, full: 300, proof: 1_000 });
  await fc.assert(law, { numRuns });
  // Few values may all be of one kind.
  assert.ok(
    SCALE === 'quick' || (fitted > numRuns / 2 && misfitted > numRuns / 2),
    `${fitted} fitted, ${misfitted} did not`,
  );
});

const bound = fc.constantFrom(-1, 0, 0.5, 1, 2);

/** Schemas of all keywords that the quick check has. */
const simple = fc.letrec<{ simple: unknown }>((tie) => ({
  simple: fc.oneof(
    { maxDepth: 3 },
    fc.boolean(),
    fc.record(
      {
        ...{ title: fc.string(), description: fc.string(), default: value },
        type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })),
        enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 4 }),
        const: scalar,
      },
      { requiredKeys: [] },
    ),
    fc.record(
      { minimum: bound, maximum: bound, exclusiveMinimum: bound, exclusiveMaximum: bound },
      { requiredKeys: [] },
    ),
    fc.record({ minLength: fc.nat(2), maxLength: fc.nat(2) }, { requiredKeys: [] }),
    fc.record({ items: tie('simple'), minItems: fc.nat(2), maxItems: fc.nat(3) }, { requiredKeys: [] }),
    fc.record(
      {
        properties: fc.dictionary(name, tie('simple'), { maxKeys: 3 }),
        required: fc.uniqueArray(name, { maxLength: 2 }),
        additionalProperties: tie('simple'),
      },
      { requiredKeys: [] },
    ),
  ),
})).simple;

test('the quick check accepts exactly the values that ajv accepts', () => {
  let accepted = 0;
  let left = 0;
  const law = fc.property(simple, fc.array(value, { minLength: 6, maxLength: 6 }), (source, values) => {
    const quick = quickCheck(source);
    assert.ok(quick, JSON.stringify(source));
    if ((typeof source !== 'object' && typeof source !== 'boolean') || source === null) throw new Error('no schema');
    const validate = new Ajv2020({ ...VALID, strictNumbers: true }).compile(source);
    for (const each of values) {
      const accepts = quick?.(each);
      assert.is(accepts, validate(each), `${JSON.stringify(source)} and ${JSON.stringify(each)}`);
      if (accepts) accepted += 1;
      else left += 1;
    }
  });
  const numRuns = atScale({ quick: 60, full: 1_000, proof: 5_000 });
  fc.assert(law, { numRuns });
  assert.ok(SCALE === 'quick' || (accepted > numRuns && left > numRuns), `${accepted} accepted, ${left} left to ajv`);
});

const parts = [
  ...[
    -1,
    0,
    1.5,
    3,
    '',
    'a',
    'string',
    true,
    null,
    [],
    ['a'],
    ['a', 'a'],
    [1],
    ['string', 'null'],
    ['string', 'string'],
  ],
  ...[
    {},
    { a: {} },
    { a: true },
    { a: 1 },
    { a: ['b'] },
    { a: ['b', 'b'] },
    { a: { type: 'x' } },
    [{}],
    [true],
    [{ minimum: '' }],
  ],
];
const COMMON =
  '$comment title description readOnly examples multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength ' +
  'pattern maxItems minItems uniqueItems contains maxProperties minProperties required additionalProperties definitions properties ' +
  'patternProperties dependencies propertyNames const default type format contentMediaType contentEncoding if then else allOf anyOf ' +
  'oneOf not items additionalItems x-unknown';
const ONLY_2020 =
  '$anchor $dynamicAnchor $vocabulary $defs prefixItems dependentSchemas dependentRequired unevaluatedItems unevaluatedProperties ' +
  'maxContains minContains deprecated writeOnly contentSchema';

for (const [dialect, keywords, meta] of [
  ['draft-2020-12', `${COMMON} ${ONLY_2020}`.split(' '), new Ajv2020(LENIENT)],
  ['draft-07', COMMON.split(' '), new Ajv(LENIENT)],
] as const) {
  const one = (source: Readonly<Record<string, unknown>>, expected: SchemaDialect): boolean => {
    try {
      walkSchema(source as Parameters<typeof walkSchema>[0], expected, 'tool "t": input');
      return true;
    } catch (error) {
      assert.instance(error, SchemaError);
      return false;
    }
  };

  test(`the table of keywords says what the meta-schema of ${dialect} says, keyword by keyword`, () => {
    for (const keyword of keywords)
      for (const part of parts)
        assert.is(
          one({ [keyword]: part }, dialect),
          meta.validateSchema({ [keyword]: part }),
          `${keyword}: ${JSON.stringify(part)}`,
        );
  });

  test(`the walk says what the meta-schema of ${dialect} says, for nested schemas`, () => {
    const nesting = fc.constantFrom('properties', 'allOf', 'items', 'not', 'dependencies', 'x-unknown');
    const law = fc.property(
      fc.dictionary(fc.constantFrom(...keywords), fc.constantFrom(...parts), { maxKeys: 3 }),
      fc.array(nesting, { maxLength: 4 }),
      (inner, path) => {
        let source: Readonly<Record<string, unknown>> = inner;
        for (const keyword of path)
          source = {
            [keyword]:
              keyword === 'allOf'
                ? [source]
                : keyword === 'properties' || keyword === 'dependencies'
                  ? { p: source }
                  : source,
          };
        assert.is(one(source, dialect), meta.validateSchema(source));
      },
    );
    fc.assert(law, { numRuns: random(2_000) });
  });
}

test('no value makes a check throw, and no report has more than ten lines', async () => {
  const compiled = input({
    type: 'object',
    properties: { a: { type: 'string' }, b: { anyOf: [{ $ref: '#' }, { type: 'array', items: { $ref: '#' } }] } },
    patternProperties: { '^x': { type: 'number' } },
    propertyNames: { maxLength: 5 },
    additionalProperties: false,
  });
  const law = fc.asyncProperty(
    fc.anything({ withNullPrototype: true, withSparseArray: true, withBigInt: true, withDate: true }),
    async (hostile) => {
      const checked = await compiled.check(hostile);
      if (checked.ok) return;
      const lines = explain(checked.problems, 'arguments').split('\n');
      assert.ok(lines.length <= 10 && lines.every((line) => line.length < 700));
    },
  );
  await fc.assert(law, { numRuns: random(1_000) });
});

test('no author object makes the guard do worse than refuse', () => {
  const law = fc.property(
    fc.anything({ withNullPrototype: true, withSparseArray: true, withBigInt: true, withMap: true }),
    (hostile) => {
      try {
        const { json } = guardSchema(hostile, 'tool "t": input', 'input');
        assert.is(json.type, 'object');
      } catch (error) {
        assert.instance(error, SchemaError);
      }
    },
  );
  fc.assert(law, { numRuns: random(1_000) });
});
