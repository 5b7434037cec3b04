/** The declarations of functions: TypeScript that is valid, bounded, and wide enough for what a schema accepts. */
import { parseAst } from 'rolldown/parseAst';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import { sentenceOf } from '../../../../src/core/schema/first-sentence.ts';
import { declareParameters, declarePart, declaring } from '../../../../src/features/code/functions/declarations.ts';
import type { ScriptFunction } from '../../../../src/features/code/functions/function-table.ts';
import { suite } from '../../../harness/door.ts';
import { times } from '../../../harness/scale.ts';

const test = suite('declarations of functions');

function functionOf(inputSchema: JsonObject, description = '', name = 'f'): ScriptFunction {
  return {
    ...{ group: 'g', name, whole: `g.${name}`, key: `g_${name}`, ref: 1, source: 'mount g', tool: name },
    ...{ effects: false, approved: false, guarded: false, documented: () => undefined },
    definition: { name: `g_${name}`, inputSchema, ...(description !== '' && { description }) },
  };
}

function declared(functions: readonly { of: ScriptFunction; output?: JsonObject }[]) {
  const steps = declaring(functions.map(({ of, output }) => ({ of, output, seen: false })));
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  // It throws for what is no TypeScript.
  parseAst(step.value.text, { lang: 'ts' });
  return step.value;
}

/** The line of the only function, and those behind it. */
function methodOf(input: JsonObject, output?: JsonObject): string {
  const { text } = declared([{ of: functionOf(input), ...(output && { output }) }]);
  return text
    .replace('declare const g: {\n', '')
    .replace(/^\};\n/m, '')
    .trim();
}

const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...more });
const A = { type: 'string' };
const PERSON = object({ id: { type: 'integer' }, name: A, mail: A }, { required: ['id'] });

const TYPES: readonly (readonly [why: string, input: JsonObject, declaration: string])[] = [
  ['no parameters', object({}), 'f(): Promise<unknown>;'],
  ['no parameters, closed', { type: 'object', additionalProperties: false }, 'f(): Promise<unknown>;'],
  ['any parameters', { type: 'object' }, 'f(args?: object): Promise<unknown>;'],
  ['a map', { type: 'object', additionalProperties: A }, 'f(args?: Record<string, string>): Promise<unknown>;'],
  ['optional parameters', object({ a: A }), 'f(args?: { a?: string }): Promise<unknown>;'],
  [
    'names that are no identifiers',
    object({ 'x-y': A, '\u202e"': A }, { required: ['x-y'] }),
    'f(args: { "x-y": string; "\\u202e\\""?: string }): Promise<unknown>;',
  ],
  [
    'enumerations, constants and null',
    object({ a: { enum: ['x', 2, null] }, b: { const: true }, c: { type: ['string', 'null'] } }),
    'f(args?: { a?: "x" | 2 | null; b?: true; c?: string | null }): Promise<unknown>;',
  ],
  [
    'a long enumeration, of which the rest is a string',
    object({ a: { enum: Array.from({ length: 40 }, (_, at) => `v${at}`) } }),
    `f(args?: { a?: ${Array.from({ length: 20 }, (_, at) => `"v${at}"`).join(' | ')} | string }): Promise<unknown>;`,
  ],
  [
    'comments and defaults',
    object({ a: { ...A, description: 'The name. More.' }, b: { type: 'integer', default: 30 } }, { required: ['a'] }),
    'f(args: {\n    a: string; // The name.\n    b?: number; // Default: 30.\n  }): Promise<unknown>;',
  ],
  [
    'a tuple of an object whose comment has brackets',
    object({
      a: { type: 'array', prefixItems: [A, { ...object({ b: { ...A, description: '} | (' } }), nullable: true }] },
    }),
    'f(args?: { a?: [string?, ({\n      b?: string; // } | (\n    } | null)?, ...unknown[]] }): Promise<unknown>;',
  ],
  [
    'alternatives of parameters',
    { type: 'object', anyOf: [object({ a: A }, { required: ['a'] }), object({ b: A }, { required: ['b'] })] },
    'f(args: { a: string } | { b: string }): Promise<unknown>;',
  ],
  [
    'a reference to a type that is used once',
    { ...object({ p: { $ref: '#/$defs/person' } }), $defs: { person: PERSON } },
    'f(args?: { p?: { id: number; name?: string; mail?: string } }): Promise<unknown>;',
  ],
  [
    'a type that is used twice',
    {
      ...object({ from: { $ref: '#/$defs/the-person' }, to: { $ref: '#/$defs/the-person' } }),
      $defs: { 'the-person': PERSON },
    },
    'f(args?: { from?: ThePerson; to?: ThePerson }): Promise<unknown>;\ntype ThePerson = { id: number; name?: string; mail?: string };',
  ],
  [
    'equal types that are inlined, one of which may be null',
    object({ owner: PERSON, author: { ...PERSON, type: ['object', 'null'], description: 'Who wrote it.' } }),
    'f(args?: {\n    owner?: Owner;\n    author?: Owner | null; // Who wrote it.\n  }): Promise<unknown>;\ntype Owner = { id: number; name?: string; mail?: string };',
  ],
  [
    'a type that contains itself',
    {
      ...object({ tree: { $ref: '#/$defs/node' } }),
      $defs: { node: object({ id: A, name: A, parts: { type: 'array', items: { $ref: '#/$defs/node' } } }) },
    },
    'f(args?: { tree?: Node }): Promise<unknown>;\ntype Node = { id?: string; name?: string; parts?: Node[] };',
  ],
  [
    'a list that contains itself',
    {
      ...object({ all: { $ref: '#/$defs/list' } }),
      $defs: { list: { type: 'array', items: { $ref: '#/$defs/list' } } },
    },
    'f(args?: { all?: unknown[] }): Promise<unknown>;',
  ],
];

for (const [why, input, declaration] of TYPES)
  test(`declares ${why}`, () => {
    assert.is(methodOf(input), declaration);
  });

test('a shared type is written once for all functions, and results have no comments', () => {
  const list = {
    of: functionOf(object({}), 'Lists.', 'list'),
    output: object({ all: { type: 'array', items: { ...PERSON, title: 'Person' } } }),
  };
  const get = {
    of: functionOf(object({}), 'Gets.', 'delete'),
    output: { ...PERSON, description: 'A person.', title: 'Person' },
  };
  assert.is(
    declared([list, get]).text,
    `declare const g: {
  // Lists.
  list(): Promise<{ all?: Person[] }>;
  // Gets.
  delete(): Promise<Person>;
};
type Person = { id: number; name?: string; mail?: string };
`,
  );
});

/** An object in which objects nest, with some members at each level. */
const nested = (depth: number, side = ''): JsonObject =>
  object({
    ...Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`member${side}_${depth}_${at}`, A])),
    ...(depth > 0 && { left: nested(depth - 1, `${side}l`), right: nested(depth - 1, `${side}r`) }),
  });

test('a large function is cut at a depth, says how to get the rest, and the parts are there', () => {
  const of = functionOf(nested(7));
  const { text } = declared([{ of }]);
  assert.ok(text.length <= 6_200, String(text.length));
  const [, way = ''] = /"object" is cut: describe_functions\(\{ names: \["g\.f:(args\.[\w.]+)"\] \}\)/.exec(text) ?? [];
  assert.match(way, /^args\.left/);
  const declarable = { of, output: nested(1), seen: false };
  const part = declarePart(declarable, way) ?? '';
  parseAst(part, { lang: 'ts' });
  assert.match(part, /^type Left = \{ memberl+_/);
  assert.match(declarePart(declarable, 'result.right') ?? '', /^type Right = \{ memberr_0_0\?: string;/);
  assert.is(declarePart(declarable, 'args.left.missing'), undefined);
  assert.is(declarePart(declarable, 'other.left'), undefined);
});

test('a part is found through lists, references, alternatives, and names with points', () => {
  const schema = {
    ...object({ 'a.b': { anyOf: [{ type: 'null' }, { type: 'array', items: { $ref: '#/$defs/person' } }] } }),
    $defs: { person: object({ address: object({ city: A, zip: A, street: A }) }) },
  };
  const part = declarePart({ of: functionOf(schema), output: undefined, seen: false }, 'args.a.b.address');
  assert.is(part, 'type Address = { city?: string; zip?: string; street?: string };\n');
});

test('the functions that are too long for one answer are named', () => {
  const functions = Array.from({ length: 20 }, (_, at) => ({ of: functionOf(nested(5), '', `f${at}`) }));
  const { text, left } = declared(functions.map(({ of }, at) => ({ of, output: nested((at % 3) + 3) })));
  assert.ok(text.length <= 50_000, String(text.length));
  assert.ok(left.length > 0 && left.length < 20);
  assert.match(text, new RegExp(` f${20 - left.length - 1}\\(`));
});

test('a schema that doubles at each level, or that has thousands of members, is declared in a bounded text', () => {
  const d = object(Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`p${at}`, { $ref: '#/$defs/d' }])));
  const wide = object(
    Object.fromEntries(
      Array.from({ length: times(10_000, { quick: 2_000 }) }, (_, at) => [`p${at}`, { ...A, description: 'A.' }]),
    ),
  );
  for (const schema of [{ ...object({ a: { $ref: '#/$defs/d' } }), $defs: { d } }, wide]) {
    const steps = declaring([{ of: functionOf(schema), output: schema, seen: false }]);
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    assert.ok(step.value.text.length <= 50_000, String(step.value.text.length));
    assert.ok(declareParameters(functionOf(schema)).length <= 1_600);
  }
});

test('texts of an upstream stay comments on one line of visible characters', () => {
  const text = 'Ends.\u2028*/ forged(): void; //\u202e\nsecond\r\nthird `{x}`';
  const of = functionOf(object({ a: { ...A, description: text, default: '*/\u2028' } }), text);
  const { text: whole } = declared([{ of }]);
  assert.equal(whole.split('\n').length, 7);
  assert.not.match(whole, /[\u2028\u202e\r]/);
  assert.equal(
    whole.split('\n').filter((line) => !line.trim().startsWith('//') && /forged/.test(line.replace(/\/\/.*/, ''))),
    [],
  );
});

const SENTENCES: readonly (readonly [text: unknown, sentence: string])[] = [
  ['Lists issues. They are sorted.', 'Lists issues.'],
  ['Lists issues', 'Lists issues'],
  ['Lists e.g. issues of v1.2 files. More.', 'Lists e.g. issues of v1.2 files.'],
  ['# Heading\n\nText', '# Heading'],
  ['One line\nand the next. More.', 'One line and the next.'],
  ['See [the docs](https://example.com/a_b#c). More.', 'See the docs.'],
  ['Is it? Yes.', 'Is it?'],
  [`${'a'.repeat(200)}. b`, `${'a'.repeat(99)}…`],
  ['', ''],
  [undefined, ''],
  [{ toString: 1 }, ''],
];

for (const [text, sentence] of SENTENCES)
  test(`the first sentence of ${JSON.stringify(text)?.slice(0, 50)} is "${sentence.slice(0, 50)}"`, () => {
    assert.is(sentenceOf(text, 100), sentence);
  });
