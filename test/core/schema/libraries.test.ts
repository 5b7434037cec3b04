/** Schemas of zod, valibot and arktype: what clients are shown, what handlers receive, and what the report says. */
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as assert from 'uvu/assert';
import * as v from 'valibot';
import * as z from 'zod';
import * as mini from 'zod/mini';
import { compileInput, compileOutput } from '../../../src/core/schema/compile-schema.ts';
import { suite } from '../../harness/door.ts';
import { having, input, output, refused, refusedBy, report } from './checking.ts';

const test = suite('schemas of libraries');

/** One schema, as each library writes it. */
const people = {
  zod: z.object({ name: z.string(), tags: z.array(z.string()).default([]), age: z.number().int().min(1).optional() }),
  valibot: toStandardJsonSchema(
    v.object({
      name: v.string(),
      tags: v.optional(v.array(v.string()), []),
      age: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
    }),
  ),
  arktype: type({ name: 'string', tags: type('string[]').default(() => []), 'age?': 'number.integer >= 1' }),
};

for (const [library, schema] of Object.entries(people)) {
  test(`shows clients what goes into a schema of ${library}`, () => {
    const { json } = compileInput(schema, 'tool "t": input');
    assert.is(json.type, 'object');
    assert.is(json.$schema, 'https://json-schema.org/draft/2020-12/schema');
    assert.equal(json.required, ['name']);
    assert.equal(Object.keys(json.properties ?? {}).sort(), ['age', 'name', 'tags']);
    assert.ok(Object.isFrozen(json));
  });

  test(`applies the defaults of ${library}`, async () => {
    const value = Object.freeze({ name: 'x' });
    assert.equal(await compileInput(schema, 'tool "t": input').check(value), {
      ok: true,
      value: { name: 'x', tags: [] },
    });
    assert.equal(value, { name: 'x' });
  });

  test(`gives paths and what came beside the words of ${library}`, async () => {
    const lines = await report(compileInput(schema, 'tool "t": input'), { tags: ['a', 3], age: 0 });
    assert.is(lines.length, 3);
    const line = (path: string): string => lines.find((each) => each.startsWith(`- ${path}: `)) ?? '';
    assert.match(line('name'), /\(got nothing\)$/);
    assert.match(line('tags[1]'), /string.*\(got number 3\)$/i);
    assert.match(line('age'), /1.*\(got number 0\)$/);
  });

  test(`refuses hostile values by ${library}, without throwing`, async () => {
    const compiled = compileInput(schema, 'tool "t": input');
    for (const value of [
      null,
      undefined,
      3,
      [],
      'x',
      JSON.parse('{"__proto__":{"name":"x"}}'),
      { name: { toString: 1 } },
    ])
      assert.is((await compiled.check(value)).ok, false);
    const polluted = await compiled.check(JSON.parse('{"name":"x","__proto__":{"admin":true}}'));
    assert.is(
      Reflect.get(polluted.ok && typeof polluted.value === 'object' ? (polluted.value ?? {}) : {}, 'admin'),
      undefined,
    );
  });

  test(`adds the type to a union of ${library}`, async () => {
    const unions = {
      zod: z.union([z.object({ k: z.literal('a') }), z.object({ k: z.literal('b') })]),
      valibot: toStandardJsonSchema(v.variant('k', [v.object({ k: v.literal('a') }), v.object({ k: v.literal('b') })])),
      arktype: type({ k: '"a"' }).or({ k: '"b"', n: 'number' }),
    };
    const compiled = input(Reflect.get(unions, library));
    assert.is(compiled.json.type, 'object');
    assert.equal(await report(compiled, { k: 'a' }), []);
    assert.is((await report(compiled, { k: 'c' })).length, 1);
  });
}

test('hands the transformed value on, and shows clients the type before the transform', async () => {
  const schema = z.object({ when: z.iso.datetime().transform((text) => new Date(text)) });
  const compiled = compileInput(schema, 'tool "t": input');
  assert.equal(await compiled.check({ when: '2026-07-28T00:00:00Z' }), {
    ok: true,
    value: { when: new Date('2026-07-28T00:00:00Z') },
  });
  assert.is(Reflect.get(Object(compiled.json.properties), 'when').type, 'string');
});

test('shows clients what comes out of an output schema', () => {
  const schema = z.object({ n: z.number().default(1), s: z.string().transform(Number).pipe(z.number()) });
  const { json } = compileOutput(schema, 'tool "t": output');
  assert.equal(json.required, ['n', 's']);
  assert.is(Reflect.get(Object(json.properties), 's').type, 'number');
});

test('waits for asynchronous refinements', async () => {
  const schema = z.object({ a: z.string().refine(async (text) => text !== 'taken', 'is taken') });
  const compiled = compileInput(schema, 'tool "t": input');
  assert.equal(await compiled.check({ a: 'free' }), { ok: true, value: { a: 'free' } });
  assert.equal(await report(compiled, { a: 'taken' }), ['- a: is taken (got string "taken")']);
});

test('passes on what a refinement throws: that is no misfit', async () => {
  const schema = z.object({
    a: z.string().refine(() => {
      throw new Error('database gone');
    }),
  });
  try {
    await compileInput(schema, 'tool "t": input').check({ a: 'x' });
    assert.unreachable();
  } catch (error) {
    assert.match(String(error), 'database gone');
  }
});

test('carries x-mcp-header from the notes of a library, and checks it', () => {
  const field = (name: string) => z.object({ region: z.string().meta({ 'x-mcp-header': name }) });
  assert.is(Reflect.get(Object(input(field('Region')).json.properties), 'region')['x-mcp-header'], 'Region');
  refused(field('not a name'), '#/properties/region', 'header name');
});

test('checks recursion by the library and shows it by reference', async () => {
  const tree = z.object({
    name: z.string(),
    get kids() {
      return z.array(tree);
    },
  });
  const compiled = input(tree);
  assert.equal(await report(compiled, { name: 'a', kids: [{ name: 'b', kids: [] }] }), []);
  assert.match((await report(compiled, { name: 'a', kids: [{ name: 'b' }] }))[0] ?? '', 'kids[0].kids');
});

test('says what to do where a library cannot give JSON Schema', () => {
  refused(z.object({ d: z.date() }), 'zod cannot convert this to JSON Schema', 'Date', 'date-time');
  refused(mini.object({ a: mini.string() }), 'this schema of zod cannot produce JSON Schema', 'zod/mini');
  refused(v.object({ a: v.string() }), 'this schema of valibot cannot produce JSON Schema', 'toStandardJsonSchema');
  refused(
    { '~standard': { version: 1, vendor: 'other', validate: () => ({ value: 1 }) } },
    'this schema of other',
    'Standard JSON Schema',
  );
  refusedBy(
    () => output(z.object({ n: z.string().transform(Number) })),
    'tool "t": output',
    'transforms without an output type',
  );
});

test('refuses an input that is no object, whichever library made it', () => {
  for (const schema of [z.string(), toStandardJsonSchema(v.string()), type('string'), z.array(z.string())])
    refused(schema, 'the root has the type', 'make the value a property');
  refused(z.any(), 'the root has no "type"');
});

test('says how to wrap a bare shape of schemas', () => {
  for (const shape of [{ a: z.string() }, { a: v.string() }, { a: type('string') }, having(z.string())])
    refused({ type: 'object', ...shape }, 'a plain object contains a schema of a library', 'z.object');
});

test('takes JSON Schema that zod made, at the root or inside', async () => {
  const made = z.toJSONSchema(z.object({ a: z.string() }));
  assert.equal(await report(input(made), { a: 'x' }), []);
  assert.is((await report(input(made), { a: 1 })).length, 1);
  assert.equal(await report(input(having(made)), { a: { a: 'x' } }), []);
});

test('bounds what a library reports', async () => {
  const compiled = input(z.object({ l: z.array(z.string()) }));
  const checked = await compiled.check({ l: Array(5_000).fill(0) });
  assert.ok(!checked.ok && checked.problems.length === 100);
});

test('reports a refusal without issues as one problem', async () => {
  const silent = {
    '~standard': {
      version: 1,
      vendor: 'silent',
      validate: () => ({ issues: [] }),
      jsonSchema: { input: () => ({ type: 'object' }), output: () => ({}) },
    },
  };
  assert.equal(await report(input(silent), 3), ['- expected a value that its schema accepts, got number 3']);
});
