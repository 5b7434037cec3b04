/** Forms: what may be asked, what each revision is shown of it, and how answers are judged. */
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as assert from 'uvu/assert';
import * as v from 'valibot';
import * as z from 'zod';
import { DIALECTS } from '../../../src/core/protocol/dialects/index.ts';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import type { Revision } from '../../../src/core/protocol/revisions.ts';
import { SchemaError } from '../../../src/core/schema/schema-error.ts';
import { compileForm, type Form } from '../../../src/features/asking/form.ts';
import { suite } from '../../harness/door.ts';
import { haveOfficialSchemas, officialSchema } from '../../harness/wire-schemas.ts';

const test = suite('forms');

const WITH_FORMS: readonly Revision[] = ['2025-06-18', '2025-11-25', '2026-07-28'];

type Source = Parameters<typeof compileForm>[0];

/** Compiles what a library built, or what a test wrote as plain JSON. */
function form(source: unknown): Form {
  return compileForm(source as Source, 'tool "t": form');
}

function shown(source: unknown, revision: Revision): JsonObject {
  const seen = form(source).shown(DIALECTS[revision]);
  assert.is(form(source).obstacle(DIALECTS[revision]), undefined);
  if (seen === undefined) throw new Error('the form cannot be asked, and names no obstacle');
  return seen;
}

/** How a plain JSON Schema of one property is shown, after the official schema of the revision has judged it. */
function field(
  property: unknown,
  revision: Revision = '2025-11-25',
  definition = 'PrimitiveSchemaDefinition',
): unknown {
  const schema = shown(having(property), revision);
  assert.equal(officialSchema(revision)?.faults(definition, fieldOf(schema)) ?? [], []);
  return fieldOf(schema);
}

function fieldOf(schema: JsonObject): unknown {
  return isObject(schema.properties) ? schema.properties.a : undefined;
}

function having(property: unknown): unknown {
  return { type: 'object', properties: { a: property }, required: ['a'] };
}

function refuses(source: unknown, ...texts: readonly string[]): void {
  try {
    form(source);
  } catch (error) {
    assert.instance(error, SchemaError);
    const message = error instanceof Error ? error.message : '';
    assert.ok(message.startsWith('tool "t": form: '), message);
    for (const text of texts) assert.ok(message.includes(text), `"${message}" does not tell of "${text}"`);
    return;
  }
  assert.unreachable('the form was compiled');
}

/** One form as each library writes it; JSON Schema of arktype has no titles and no defaults. */
const trips = {
  plain: {
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 40 },
      mail: { type: 'string', format: 'email' },
      seats: { type: 'integer', minimum: 1 },
      price: { type: 'number', maximum: 99.5 },
      window: { type: 'boolean' },
      class: { type: 'string', enum: ['first', 'second'] },
      meals: { type: 'array', items: { type: 'string', enum: ['fish', 'rice'] } },
    },
    required: ['name', 'mail', 'seats', 'price', 'class', 'meals'],
  },
  zod: z.object({
    name: z.string().min(1).max(40),
    mail: z.email(),
    seats: z.int().min(1),
    price: z.number().max(99.5),
    window: z.boolean().optional(),
    class: z.enum(['first', 'second']),
    meals: z.array(z.enum(['fish', 'rice'])),
  }),
  valibot: toStandardJsonSchema(
    v.object({
      name: v.pipe(v.string(), v.minLength(1), v.maxLength(40)),
      mail: v.pipe(v.string(), v.email()),
      seats: v.pipe(v.number(), v.integer(), v.minValue(1)),
      price: v.pipe(v.number(), v.maxValue(99.5)),
      window: v.optional(v.boolean()),
      class: v.picklist(['first', 'second']),
      meals: v.array(v.picklist(['fish', 'rice'])),
    }),
  ),
  arktype: type({
    name: '1 <= string <= 40',
    mail: 'string.email',
    seats: 'number.integer >= 1',
    price: 'number <= 99.5',
    'window?': 'boolean',
    class: "'first' | 'second'",
    meals: "('fish' | 'rice')[]",
  }),
};

for (const [library, schema] of Object.entries(trips)) {
  test(`shows the same form whether ${library} says it or JSON Schema`, () => {
    const { required, ...rest } = shown(schema, '2025-11-25');
    const { required: expected, ...same } = trips.plain;
    assert.equal(rest, same);
    assert.equal([...(Array.isArray(required) ? required : [])].sort(), [...expected].sort());
  });

  test(`judges answers by ${library}`, async () => {
    const content = { name: 'Ann', mail: 'ann@example.com', seats: 2, price: 9.5, class: 'first', meals: ['fish'] };
    assert.equal(await form(schema).check(content), { ok: true, value: content });
    const checked = await form(schema).check({ ...content, seats: 0, class: 'third' });
    assert.equal(checked.ok ? [] : checked.problems.map(({ path }) => path).sort(), ['class', 'seats']);
  });
}

test('shows text with its lengths and the formats that forms have', () => {
  const text = { type: 'string', title: 'T', description: 'D', minLength: 1, maxLength: 9, default: 'x' };
  assert.equal(field(text), text);
  for (const format of ['email', 'uri', 'date', 'date-time'])
    assert.equal(field({ type: 'string', format }, '2025-11-25', 'StringSchema'), { type: 'string', format });
});

test('shows numbers with their bounds', () => {
  const number = { type: 'number', title: 'N', description: 'D', minimum: -1.5, maximum: 9, default: 0.5 };
  assert.equal(field(number, '2025-11-25', 'NumberSchema'), number);
  const integer = { type: 'integer', minimum: 0, maximum: 9, default: 3 };
  assert.equal(field(integer, '2025-11-25', 'NumberSchema'), integer);
});

test('shows true and false', () => {
  const flag = { type: 'boolean', title: 'F', description: 'D', default: false };
  assert.equal(field(flag, '2025-11-25', 'BooleanSchema'), flag);
  assert.equal(field({ const: true }), { type: 'boolean' });
});

const CHOICES = {
  UntitledSingleSelectEnumSchema: { type: 'string', title: 'C', enum: ['r', 'g'], default: 'g' },
  TitledSingleSelectEnumSchema: {
    type: 'string',
    description: 'C',
    oneOf: [
      { const: 'r', title: 'Red' },
      { const: 'g', title: 'Green' },
    ],
    default: 'r',
  },
  UntitledMultiSelectEnumSchema: {
    type: 'array',
    title: 'C',
    minItems: 1,
    maxItems: 2,
    items: { type: 'string', enum: ['r', 'g'] },
    default: ['g', 'r'],
  },
  TitledMultiSelectEnumSchema: {
    type: 'array',
    items: {
      anyOf: [
        { const: 'r', title: 'Red' },
        { const: 'g', title: 'Green' },
      ],
    },
    default: ['r'],
  },
  LegacyTitledEnumSchema: { type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'], default: 'r' },
};

for (const [definition, choice] of Object.entries(CHOICES))
  test(`shows choices of the form ${definition} as they are`, () => {
    for (const revision of ['2025-11-25', '2026-07-28'] as const)
      assert.equal(field(choice, revision, definition), choice);
  });

test('shows each way of libraries to list strings as choices', () => {
  const bare = { type: 'string', enum: ['a', 'b'] };
  const titled = {
    type: 'string',
    oneOf: [
      { const: 'a', title: 'A' },
      { const: 'b', title: 'b' },
    ],
  };
  const one = (schema: unknown): unknown => fieldOf(shown(schema, '2025-11-25'));
  assert.equal(one(z.object({ a: z.union([z.literal('a'), z.literal('b')]) })), bare);
  assert.equal(one(z.object({ a: z.literal(['a', 'b']) })), bare);
  assert.equal(one(z.object({ a: z.union([z.enum(['a']), z.enum(['b'])]) })), bare);
  assert.equal(one(z.object({ a: z.union([z.literal('a').meta({ title: 'A' }), z.literal('b')]) })), titled);
  assert.equal(one(z.object({ a: z.xor([z.literal('a').meta({ title: 'A' }), z.literal('b')]) })), titled);
  assert.equal(one(z.object({ a: z.literal('a') })), { type: 'string', enum: ['a'] });
  assert.equal(one(type({ a: "'a' | 'b'" })), bare);
  assert.equal(one(type({ a: "'a'" })), { type: 'string', enum: ['a'] });
  assert.equal(one(type({ a: "'a'[]" })), { type: 'array', items: { type: 'string', enum: ['a'] } });
  const titles = v.union([v.pipe(v.literal('a'), v.title('A')), v.literal('b')]);
  assert.equal(one(toStandardJsonSchema(v.object({ a: titles }))), titled);
  assert.equal(one(z.object({ a: z.array(z.union([z.literal('a').meta({ title: 'A' }), z.literal('b')])).min(1) })), {
    type: 'array',
    minItems: 1,
    items: { anyOf: titled.oneOf },
  });
  assert.equal(one(z.object({ a: z.enum(['a', 'b']).default('b') })), { ...bare, default: 'b' });
});

test('follows references within the schema', () => {
  const color = z.enum(['r', 'g']).meta({ id: 'Color', title: 'Color' });
  assert.equal(shown(z.object({ a: color, b: z.array(color).optional() }), '2025-11-25'), {
    type: 'object',
    properties: {
      a: { type: 'string', title: 'Color', enum: ['r', 'g'] },
      b: { type: 'array', items: { type: 'string', enum: ['r', 'g'] } },
    },
    required: ['a'],
  });
  const whole = {
    $ref: '#/$defs/F',
    $defs: { F: having({ $ref: '#/$defs/T', title: 'own' }), T: { type: 'string', title: 'T' } },
  };
  assert.equal(shown(whole, '2025-11-25'), having({ type: 'string', title: 'own' }));
});

test('leaves out of the form what it has no words for, and judges the answer by it all the same', async () => {
  const strict = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      code: { type: 'string', pattern: '^[A-Z]+$', $comment: 'c', examples: ['A'] },
      id: { type: 'string', format: 'uuid' },
      size: { type: 'number', exclusiveMinimum: 0, multipleOf: 0.5 },
      tags: { type: 'array', items: { enum: ['a', 'b'] }, uniqueItems: true },
    },
    anyOf: [{ required: ['code'] }, { required: ['id'] }],
    additionalProperties: false,
  };
  assert.equal(shown(strict, '2025-11-25'), {
    type: 'object',
    properties: {
      code: { type: 'string' },
      id: { type: 'string' },
      size: { type: 'number' },
      tags: { type: 'array', items: { type: 'string', enum: ['a', 'b'] } },
    },
  });
  const { check } = form(strict);
  assert.is((await check({ code: 'A', size: 0.5, tags: ['a'] })).ok, true);
  for (const wrong of [
    { code: 'a' },
    { id: 'x' },
    { code: 'A', size: 0 },
    { code: 'A', tags: ['a', 'a'] },
    { code: 'A', more: 1 },
    {},
  ])
    assert.is((await check(wrong)).ok, false, JSON.stringify(wrong));
});

test('shows an exclusive bound of whole numbers as the next whole number', () => {
  const shownAs = (bounds: object): unknown => field({ type: 'integer', ...bounds });
  assert.equal(shownAs({ exclusiveMinimum: 0, exclusiveMaximum: 10 }), { type: 'integer', minimum: 1, maximum: 9 });
  assert.equal(shownAs({ exclusiveMinimum: 0.5, exclusiveMaximum: 9.5 }), { type: 'integer', minimum: 1, maximum: 9 });
  assert.equal(shownAs({ exclusiveMinimum: 0, minimum: 5 }), { type: 'integer', minimum: 5 });
  assert.equal(fieldOf(shown(z.object({ a: z.int() }), '2025-11-25')), { type: 'integer' });
});

test('hands on what the schema makes of an answer', async () => {
  const { check } = form(z.object({ day: z.iso.date().transform((day) => new Date(day)), seats: z.int().default(1) }));
  assert.equal(await check({ day: '2026-07-28' }), { ok: true, value: { day: new Date('2026-07-28'), seats: 1 } });
});

test('waits for asynchronous rules', async () => {
  const { check } = form(z.object({ name: z.string().refine(async (name) => name !== 'taken', 'is taken') }));
  assert.is((await check({ name: 'free' })).ok, true);
  assert.is((await check({ name: 'taken' })).ok, false);
});

test('is a question of yes or no where it has no fields, and needs no content then', async () => {
  for (const empty of [{ type: 'object' }, { type: 'object', properties: {} }, z.object({})]) {
    assert.equal(shown(empty, '2025-11-25'), { type: 'object', properties: {} });
    assert.is((await form(empty).check(undefined)).ok, true);
  }
  assert.is((await form(having({ type: 'string' })).check(undefined)).ok, false);
  for (const content of [null, 'x', 3, [], [{}]]) assert.is((await form({ type: 'object' }).check(content)).ok, false);
});

test('shows 2025-06-18 what it knows: no default but true and false, and titles as enumNames', () => {
  const old = (property: unknown, definition: string): unknown => field(property, '2025-06-18', definition);
  assert.equal(old({ type: 'string', title: 'T', format: 'date', default: 'x' }, 'StringSchema'), {
    type: 'string',
    title: 'T',
    format: 'date',
  });
  assert.equal(old({ type: 'integer', minimum: 1, default: 3 }, 'NumberSchema'), { type: 'integer', minimum: 1 });
  assert.equal(old({ type: 'boolean', default: true }, 'BooleanSchema'), { type: 'boolean', default: true });
  const { UntitledSingleSelectEnumSchema: bare, TitledSingleSelectEnumSchema: titled } = CHOICES;
  assert.equal(old(bare, 'EnumSchema'), { type: 'string', title: 'C', enum: ['r', 'g'] });
  const named = { type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'] };
  assert.equal(old(titled, 'EnumSchema'), { ...named, description: 'C' });
  assert.equal(old(CHOICES.LegacyTitledEnumSchema, 'EnumSchema'), named);
});

test('says which field a revision cannot show, and which revision has no forms', () => {
  const why = (source: unknown, revision: Revision): string | undefined => {
    assert.is(form(source).shown(DIALECTS[revision]), undefined);
    return form(source).obstacle(DIALECTS[revision]);
  };
  assert.is(
    why(trips.plain, '2025-06-18'),
    'property "meals" is a choice of several values, which forms of revision 2025-06-18 do not support',
  );
  for (const revision of ['2024-11-05', '2025-03-26'] as const)
    assert.is(why({ type: 'object' }, revision), `revision ${revision} has no forms`);
});

if (haveOfficialSchemas)
  test('shows forms that the official schema of each revision takes', () => {
    const { meals: _, ...plain } = trips.plain.properties;
    for (const revision of WITH_FORMS) {
      const required = revision === '2025-06-18' ? ['name'] : trips.plain.required;
      const properties = revision === '2025-06-18' ? plain : { ...trips.plain.properties, ...CHOICES };
      const requestedSchema = shown({ type: 'object', properties, required }, revision);
      const params = { message: 'Where to?', requestedSchema };
      const request = { jsonrpc: '2.0', id: 1, method: 'elicitation/create', params };
      assert.equal(officialSchema(revision)?.faults('ElicitRequest', request), []);
      const broken = { ...request, params: { ...params, requestedSchema: { type: 'object' } } };
      assert.is.not(officialSchema(revision)?.faults('ElicitRequest', broken).length, 0);
    }
  });
else test.skip('shows forms that the official schema of each revision takes', '../shared/spec is not there');

test('compiles a schema once, and shows one object each time', () => {
  for (const schema of [trips.zod, trips.arktype, { type: 'object' } as const]) {
    assert.is(compileForm(schema, 'x'), compileForm(schema, 'y'));
    for (const revision of ['2025-11-25', '2026-07-28'] as const)
      assert.is(shown(schema, revision), shown(schema, '2026-07-28'));
  }
});

test('refuses by name what a form cannot ask, and says what would fit', () => {
  const refusesField = (property: unknown, ...texts: readonly string[]): void => {
    refuses(having(property), 'at #/properties/a: property "a" ', ...texts);
  };
  refusesField({ type: 'object', properties: {} }, 'is an object, but a form is flat', 'a field');
  refusesField({ type: 'array', items: { type: 'string' } }, 'is a list of arbitrary values', '"items" with an "enum"');
  refusesField({ type: 'array' }, 'is a list of arbitrary values');
  refusesField({ type: 'array', items: { enum: [1, 2] } }, 'is a list of arbitrary values');
  refusesField({ type: 'array', prefixItems: [{ enum: ['a'] }] }, 'is a list of arbitrary values');
  refusesField({ type: ['string', 'null'] }, 'may be null', '.optional()');
  refusesField({ enum: ['a', null] }, 'choices that are not strings');
  refusesField({ type: 'number', enum: [1, 2] }, 'choices that are not strings', 'such as "1"');
  refusesField({ anyOf: [{ const: 1 }, { const: 2 }] }, 'choices that are not strings');
  refusesField({ anyOf: [{ type: 'string' }, { type: 'number' }] }, 'allows several types', 'integer');
  refusesField({ type: ['string', 'number'] }, 'allows several types');
  refusesField({}, 'has no type that a form supports', 'string, number, integer, boolean');
  refusesField(true, 'has the schema true');
  refusesField({ type: 'string', enum: ['a', 'b'], enumNames: ['A'] }, '2 values in "enum" and 1 in "enumNames"');
});

test('refuses a default that is no value of its field', () => {
  const refusesDefault = (property: object, value: unknown, fix: string): void =>
    refuses(having({ ...property, default: value }), 'property "a" has the default ', `must be a valid answer: ${fix}`);
  refusesDefault({ type: 'string' }, 3, 'a string');
  refusesDefault({ type: 'number' }, '3', 'a number');
  refusesDefault({ type: 'integer' }, 1.5, 'a whole number');
  refusesDefault({ type: 'boolean' }, 'yes', 'true or false');
  refusesDefault({ enum: ['x', 'y'] }, 'z', 'one of "x", "y"');
  refusesDefault({ type: 'array', items: { enum: ['x', 'y'] } }, ['z'], 'a list, each item one of "x", "y"');
  refusesDefault({ type: 'array', items: { enum: ['x', 'y'] } }, 'x', 'a list');
});

test('refuses a root that is no list of fields', () => {
  refuses({ anyOf: [having({ type: 'string' })] }, 'the root has "anyOf" and no "properties"', 'a flat list of fields');
  refuses(z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]), 'the root has "anyOf"');
  refuses(z.record(z.string(), z.string()), 'the root has no properties', 'list each in "properties"');
  refuses({ type: 'object', required: ['a'] }, '"required" has "a", which is not a property', 'add it');
  refuses({ type: 'array', items: {} }, 'the type "array"');
  refuses(z.string(), 'the type "string"');
  refuses(having({ type: 'text' }), 'must be one of');
  refuses(3, 'the schema is 3');
  refuses(undefined, 'the schema is nothing', 'pass a schema of zod');
  refuses(null, 'the schema is null');
  refuses({}, 'no "type"');
});
