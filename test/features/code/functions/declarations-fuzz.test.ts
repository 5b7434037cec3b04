/** Declarations of arbitrary schemas: they are TypeScript, bounded, and on lines of their own. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { parseAst } from 'vite';
import type { JsonObject, JsonValue } from '../../../../src/core/protocol/json.ts';
import { declareParameters, declarePart, declaring } from '../../../../src/features/code/functions/declarations.ts';
import type { ScriptFunction } from '../../../../src/features/code/functions/function-table.ts';
import { character } from '../../../harness/character.ts';
import { suite } from '../../../harness/door.ts';
import { atScale } from '../../../harness/scale.ts';

const test = suite('declarations of arbitrary schemas');

/** Texts that could leave a comment, a literal or a line. */
const text = fc.oneof(
  fc.constantFrom(
    '*/ }',
    '// x',
    '`{a}`',
    '\'"\\',
    'a\nb',
    '\u2028',
    '\u202e',
    '\ud800',
    '__proto__',
    'constructor',
    '',
  ),
  fc.string({ unit: character, maxLength: 8 }),
  fc.constantFrom('a', 'b', 'id', 'name', 'items'),
);

const { schema } = fc.letrec<{ schema: JsonValue; object: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'schema' },
    fc.record(
      {
        type: fc.constantFrom('string', 'number', 'integer', 'boolean', 'null'),
        description: text,
        default: fc.jsonValue(),
      },
      { requiredKeys: ['type'] },
    ),
    fc.record({ enum: fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 25 }) }),
    fc.record({ const: fc.jsonValue({ maxDepth: 1 }) }),
    fc.constantFrom<JsonValue>(
      true,
      false,
      {},
      7,
      null,
      'x',
      [],
      { type: 'nonsense' },
      { properties: 7, required: 'a' },
    ),
    fc.record({
      $ref: fc.oneof(fc.constantFrom('#', '#/$defs/a', '#/$defs/b', '#/$defs/c~1d', '#/nowhere', 'https://x'), text),
    }),
    tie('object'),
    fc.record(
      { type: fc.constant('array'), items: tie('schema'), prefixItems: fc.array(tie('schema'), { maxLength: 2 }) },
      { requiredKeys: ['type'] },
    ),
    fc.record(
      { anyOf: fc.array(tie('schema'), { maxLength: 3 }), allOf: fc.array(tie('schema'), { maxLength: 2 }) },
      { requiredKeys: [] },
    ),
  ),
  object: fc.record(
    {
      type: fc.constantFrom<JsonValue>('object', ['object', 'null']),
      properties: fc.dictionary(text, tie('schema'), { maxKeys: 5 }),
      required: fc.array(text, { maxLength: 2 }),
      additionalProperties: tie('schema'),
      title: text,
      description: text,
      nullable: fc.boolean(),
    },
    { requiredKeys: ['properties'] },
  ) as fc.Arbitrary<JsonObject>,
}));

const root = fc
  .record({
    properties: fc.dictionary(text, schema, { maxKeys: 5 }),
    a: schema,
    b: schema,
    c: schema,
    required: fc.array(text),
  })
  .map(({ properties, a, b, c, required }) => ({
    ...{ type: 'object', properties, required },
    $defs: { a, b, 'c/d': c },
  }));

function functionOf(inputSchema: JsonObject, description: string): ScriptFunction {
  return {
    ...{ group: 'g', name: 'f', whole: 'g.f', key: 'g_f', ref: 1, source: 'mount g', tool: 'f' },
    ...{ effects: true, approved: true, guarded: false, documented: () => undefined },
    definition: { name: 'g_f', inputSchema, description },
  };
}

test('they are valid TypeScript, of bounded length, in which no text of an upstream begins a line', () => {
  fc.assert(
    fc.property(root, root, text, (input: JsonObject, output: JsonObject, description) => {
      const of = functionOf(input, description);
      const steps = declaring([{ of, output, seen: false }]);
      let step = steps.next();
      while (step.done !== true) step = steps.next();
      const { text: whole } = step.value;
      parseAst(whole, { lang: 'ts' });
      assert.ok(whole.length <= 48_001);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there.
      assert.not.match(whole, /[\0-\x09\x0b-\x1f\u2028\u2029\u202e]/);
      const parameters = declareParameters(of);
      assert.ok(parameters.length <= 1_501 && !parameters.includes('\n'));
      for (const path of ['args', 'result', 'args.a', 'result.items.id']) {
        const part = declarePart({ of, output, seen: false }, path);
        if (part !== undefined) parseAst(part, { lang: 'ts' });
      }
    }),
    { numRuns: atScale({ quick: 40, full: 2_500, proof: 5_000 }) },
  );
});
