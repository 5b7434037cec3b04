/** `troupe types`: the written file compiles whatever a server sends, has the same text each time, and types a client. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { serverTypesText, WRITTEN } from '../../src/cli/types/server-types-file.ts';
import type { JsonObject, JsonValue } from '../../src/core/protocol/json.ts';
import { createServer, http, type Server } from '../../src/index.ts';
import { suite } from '../harness/door.ts';
import { troupe } from './in-process.ts';

const test = suite('troupe types');
const root = fileURLToPath(new URL('../..', import.meta.url));

const SERVER = { name: 'shop', version: '1.0.0', revision: '2025-11-25', era: 'legacy' } as const;
const NONE = { server: SERVER, tools: [], prompts: [], resources: [], templates: [] } as const;

/** The text for one tool with this schema as input and as output. */
const written = (schema: JsonObject, name = 'look'): string =>
  serverTypesText({ ...NONE, tools: [{ name, inputSchema: schema, outputSchema: schema }] });

/** The type of a member `it` of the input. */
function typeOf(schema: JsonValue, more: JsonObject = {}): string {
  const text = written({ type: 'object', properties: { it: schema }, required: ['it'], ...more });
  return /readonly it: ([\s\S]*?);\n {6}\};\n/.exec(text)?.[1]?.replaceAll(/\s+/g, ' ') ?? text;
}

/** Compiles files in a folder of their own, as strictly as ours. @returns the errors */
function compiled(files: Readonly<Record<string, string>>): string {
  const folder = join(root, `dist/types-test-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
    writeFileSync(
      join(folder, 'tsconfig.json'),
      '{ "extends": "../../tsconfig.base.json", "compilerOptions": { "composite": false, "noEmit": true, "declaration": false, "sourceMap": false, "types": ["node"] }, "include": ["*.ts"] }',
    );
    const { stdout } = spawnSync(process.execPath, [
      join(root, 'node_modules/typescript/bin/tsc'),
      '--checkers',
      '1',
      '-p',
      folder,
    ]);
    return String(stdout);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

for (const [title, schema, expected, more] of [
  ['a text', { type: 'string' }, 'string'],
  ['an integer', { type: 'integer' }, 'number'],
  ['several types', { type: ['string', 'null'] }, 'string | null'],
  ['an enum', { enum: ['A-B', 1, null, "it's"] }, '"A-B" | 1 | null | "it\'s"'],
  ['a constant object', { const: { a: [1, true] } }, '{ readonly a: readonly [1, true] }'],
  ['no schema', {}, 'unknown'],
  ['true', true, 'unknown'],
  ['false', false, 'never'],
  [
    'a list of alternatives',
    { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'number' }] } },
    'readonly (string | number)[]',
  ],
  [
    'a list of lists',
    { type: 'array', items: { type: 'array', items: { type: 'string' } } },
    'readonly (readonly string[])[]',
  ],
  [
    'a tuple',
    { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false, minItems: 1 },
    'readonly [string, number?]',
  ],
  [
    'a tuple of draft-07',
    { type: 'array', items: [{ type: 'string' }], minItems: 1, additionalItems: { type: 'boolean' } },
    'readonly [string, ...boolean[]]',
  ],
  ['a map', { type: 'object', additionalProperties: { type: 'number' } }, '{ readonly [name: string]: number }'],
  ['no members', { type: 'object', additionalProperties: false }, '{ readonly [name: string]: never }'],
  ['a member without a schema', { type: 'object', required: ['x-y'] }, '{ readonly "x-y": unknown; }'],
  [
    'an optional member',
    { type: 'object', properties: { a: { type: 'string' } } },
    '{ readonly a?: string | undefined; }',
  ],
  [
    'a composition',
    {
      allOf: [
        { type: 'object', properties: { a: {} }, required: ['a'] },
        { type: 'object', properties: { b: {} }, required: ['b'] },
      ],
    },
    '{ readonly a: unknown; } & { readonly b: unknown; }',
  ],
  ['nullable of OpenAPI', { type: 'string', nullable: true }, 'string | null'],
  [
    'an enum in an alternative',
    { anyOf: [{ type: 'string', enum: ['a', 'b'], tsEnumNames: ['A', 'B'] }, { type: 'number' }] },
    '"a" | "b" | number',
  ],
  ['a reference that leads nowhere', { $ref: '#/User' }, 'unknown'],
  ['a foreign reference', { $ref: 'https://example.com/user.json' }, 'unknown'],
  [
    'a reference',
    { $ref: '#/$defs/user' },
    'LookInputUser',
    {
      $defs: { user: { type: 'object', properties: { friends: { type: 'array', items: { $ref: '#/$defs/user' } } } } },
    },
  ],
  [
    'a reference with a description',
    { $ref: '#/$defs/u', description: 'one of them' },
    'LookInputU',
    { $defs: { u: { type: 'string' } } },
  ],
] as const satisfies readonly (readonly [string, JsonValue, string, JsonObject?])[])
  test(`writes ${title}`, () => assert.is(typeOf(schema, more), expected));

/** Schemas of public reports about other generators, and what a hostile server may send. */
const HARD: Readonly<Record<string, JsonObject>> = {
  // bcherny/json-schema-to-typescript 240: a type that is itself.
  anyType: { oneOf: [{ type: 'string', nullable: true }, { type: 'array', items: { $ref: '#' } }, { type: 'object' }] },
  itself: { $ref: '#' },
  eachOther: {
    type: 'object',
    properties: { a: { $ref: '#/$defs/a' } },
    $defs: { a: { $ref: '#/$defs/b' }, b: { anyOf: [{ $ref: '#/$defs/a' }, { type: 'null' }] } },
  },
  // 135: objects, lists and values that lead to each other.
  json: {
    type: 'object',
    properties: { any: { $ref: '#/definitions/Any' } },
    definitions: {
      Any: { anyOf: [{ $ref: '#/definitions/Simple' }, { $ref: '#/definitions/List' }, { $ref: '#/definitions/Map' }] },
      Map: { type: 'object', additionalProperties: { $ref: '#/definitions/Any' } },
      List: { type: 'array', items: { $ref: '#/definitions/Any' } },
      Simple: { type: ['string', 'number', 'boolean', 'null'] },
    },
  },
  // 482: a recursive reference with a description.
  logical: {
    type: 'object',
    properties: { when: { description: 'when', $ref: '#/definitions/logical' } },
    definitions: {
      logical: {
        oneOf: [
          { type: 'string' },
          { type: 'object', properties: { not: { description: 'not', $ref: '#/definitions/logical' } } },
        ],
      },
    },
  },
  names: {
    type: 'object',
    properties: {
      'a-b': {},
      '1st': {},
      class: {},
      constructor: {},
      __proto__x: {},
      '"]: 1; //': {},
      '': {},
      'line\nbreak\u2028': {},
    },
  },
  comments: {
    type: 'object',
    description: '*/ export const x = 1; /*',
    properties: {
      a: { description: '*/ }; evil(); /* @ts-ignore' },
      b: { description: '@ts-nocheck' },
      c: { description: '**/\n*/' },
    },
  },
  literals: {
    type: 'object',
    properties: { a: { enum: ['`', '\\', '"', '*/', '\u2029', 1e21, -1.5, 0] }, b: { const: '"; evil(); "' } },
  },
  twoNames: {
    type: 'object',
    properties: { a: { $ref: '#/$defs/a-b' }, b: { $ref: '#/$defs/a_b' } },
    $defs: { 'a-b': { type: 'string' }, a_b: { type: 'number' } },
  },
  tuples: {
    type: 'object',
    properties: {
      a: { prefixItems: [{}, { type: 'string' }] },
      b: { items: [{ enum: ['a', 'b'] }], minItems: 5 },
      c: { type: 'array', items: false },
    },
  },
  odd: {
    type: 'object',
    properties: {
      a: { type: 'float' },
      b: { type: [] },
      c: { enum: [] },
      d: { anyOf: [] },
      e: { allOf: [] },
      f: { anyOf: [7] },
      g: { required: [1, 'x'], properties: 3 },
    },
    required: 'a',
  },
  deep: JSON.parse(`${'{"type":"object","properties":{"a":'.repeat(100)}{}${'}}'.repeat(100)}`),
  wide: {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`m${at}`, { $ref: '#/properties/m0' }])),
  },
  // Each level doubles: 2^40 without a bound.
  bomb: {
    type: 'object',
    properties: { a: { $ref: '#/$defs/d40' } },
    $defs: Object.fromEntries(
      Array.from({ length: 41 }, (_, at) => [
        `d${at}`,
        at === 0
          ? { type: 'string' }
          : { anyOf: [{ $ref: `#/$defs/d${at - 1}` }, { allOf: [{ $ref: `#/$defs/d${at - 1}` }] }] },
      ]),
    ),
  },
};

/** The written files of hostile names, descriptions and schemas. */
function hostileFiles(): Readonly<Record<string, string>> {
  const tools = Object.entries(HARD).map(([name, schema]) => ({ name, inputSchema: schema, outputSchema: schema }));
  const names = ['a-b', 'a_b', 'delete', '', 'ä', '"', 'x'.repeat(128), '*/', '__proto__', 'Json'].map((name) => ({
    name,
    description: '*/ evil(); /*',
    inputSchema: { type: 'object' } as const,
  }));
  const prompts = names.map(({ name }) => ({
    name,
    description: '*/',
    arguments: [{ name: 'a-b', description: '*/', required: true }, { name: 'a-b' }, { name: 'class' }],
  }));
  const resources = [
    { uri: 'app://"x"/*', name: 'x' },
    { uri: 'a:\n', name: 'y' },
  ];
  const templates = [{ uriTemplate: 'x://{a}/{+b}{?c}', name: 't' }];
  const schemas = fc.letrec<{ schema: JsonValue }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'schema' },
      fc.constantFrom<JsonValue>(
        {},
        true,
        false,
        { $ref: '#' },
        { $ref: '#/$defs/a' },
        { $ref: '#/$defs/b' },
        { type: 'string' },
        { type: 'null' },
        { enum: ['a', 2] },
      ),
      fc.record(
        { anyOf: fc.array(tie('schema'), { maxLength: 3 }), type: fc.constantFrom('object', 'array', 'string') },
        { requiredKeys: [] },
      ),
      fc.record({ allOf: fc.array(tie('schema'), { maxLength: 3 }) }),
      fc.record(
        {
          type: fc.constant('array'),
          items: tie('schema'),
          prefixItems: fc.array(tie('schema'), { maxLength: 2 }),
          minItems: fc.nat(3),
        },
        { requiredKeys: ['type'] },
      ),
      fc.record(
        {
          type: fc.constant('object'),
          properties: fc.dictionary(fc.string({ maxLength: 4 }), tie('schema'), { maxKeys: 3 }),
          additionalProperties: tie('schema'),
        },
        { requiredKeys: ['type'] },
      ),
    ),
  })).schema;
  const made = fc
    .sample(fc.tuple(schemas, schemas, schemas), { numRuns: 150, seed: 34 })
    .map(([it, a, b], at): { name: string; inputSchema: JsonObject; outputSchema: JsonObject } => {
      const schema = { type: 'object', properties: { it }, $defs: { a, b } };
      return { name: `made${at}`, inputSchema: schema, outputSchema: schema };
    });
  const hard = serverTypesText({
    ...NONE,
    server: { ...SERVER, name: '*/ class 7' },
    tools: [...tools, ...names],
    prompts,
    resources,
    templates,
  });
  const random = serverTypesText({ ...NONE, tools: made });
  assert.ok(hard.length < 1_000_000, `${hard.length} characters`);
  return { 'hard.ts': hard, 'random.d.ts': random, 'named.d.ts': written({ type: 'object' }) };
}

test('the text depends on the server alone, in the order of names', () => {
  const one = { name: 'a', inputSchema: { type: 'object' } } as const;
  const two = { name: 'b', inputSchema: { type: 'object' } } as const;
  const text = serverTypesText({ ...NONE, tools: [one, two] });
  assert.is(serverTypesText({ ...NONE, server: { ...SERVER, version: '2.0.0' }, tools: [two, one, one] }), text);
  assert.match(text, /export interface Shop \{/);
  assert.match(serverTypesText(NONE, 'Store'), /export interface Store \{/);
});

/** A server over HTTP, and a folder. */
async function shop(body: (at: { url: string; folder: string; server: Server }) => Promise<void>): Promise<void> {
  const server = createServer({ name: 'tea-shop', version: '1.0.0', log: () => {} })
    .tool(
      'search',
      {
        description: 'Finds tea',
        input: z.object({ q: z.string(), limit: z.int().default(10) }),
        output: z.object({ hits: z.array(z.string()) }),
      },
      ({ q }) => ({ hits: [q] }),
    )
    .prompt('review', { arguments: [{ name: 'code', required: true }, { name: 'style' }] }, ({ code }) => code)
    .resource('note://{id}', ({ uri }) => uri);
  const transport = http({ port: 0 });
  await server.listen(transport);
  const folder = join(tmpdir(), `troupe-types-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    await body({ url: String(transport.url), folder, server });
  } finally {
    rmSync(folder, { recursive: true });
    await server.close();
  }
}

test('the file is that of the server, and --check fails when it is stale', () =>
  shop(async ({ url, folder, server }) => {
    const options = { cwd: folder };
    const file = join(folder, 'shop.types.ts');
    const check = ['types', url, '--check', '--out', 'shop.types.ts'];
    const missing = await troupe(check, options);
    assert.is(missing.code, 1);
    assert.match(missing.err, 'shop.types.ts does not exist. Run the command without --check');
    assert.equal(await troupe(['types', url, '--out', 'shop.types.ts'], options), { code: 0, out: '', err: '' });
    const text = readFileSync(file, 'utf8');
    assert.ok(text.startsWith(WRITTEN));
    assert.equal(await troupe(['types', url], options), { code: 0, out: text, err: '' });
    assert.is((await troupe(check, options)).code, 0);
    server.tool('sell', () => 'sold');
    const stale = await troupe(check, options);
    assert.is(stale.code, 1);
    assert.match(stale.err, 'shop.types.ts is stale. Run the command without --check');
    assert.is(readFileSync(file, 'utf8'), text);
  }));

test('the written file types a client of the server, and compiles for hostile names, descriptions and schemas', () =>
  shop(async ({ url }) => {
    const { out } = await troupe(['types', url]);
    const program = `import { type Client, connect } from 'troupe/client';
import type { TeaShop } from './shop.types.ts';
const client = await connect<TeaShop>('${url}');
const { hits } = await client.data('search', { q: 'tea', limit: undefined });
const first: string | undefined = hits[0];
const any: Client = client;
await client.prompt('review', { code: 'x' });
await client.read('note://7');
// @ts-expect-error there is no such tool
await client.call('serch', { q: 'tea' });
// @ts-expect-error \`q\` is missing
await client.call('search', {});
// @ts-expect-error \`c\` is unknown
await client.call('search', { q: 'tea', c: 1 });
// @ts-expect-error there is no such resource
await client.read('book://7');
export { any, first };
`;
    // One compiler reads all of them.
    assert.is(compiled({ ...hostileFiles(), 'shop.types.ts': out, 'program.ts': program }), '');
  }));

for (const [title, args, expected] of [
  ['--check without a file', ['--check'], /--check needs --out FILE/],
  ['a name that is no identifier', ['--name', 'my shop'], /--name: expected an identifier such as Shop, got my shop/],
  ['more words', ['search'], /expected one TARGET, got /],
] as const)
  test(`refuses ${title}`, async () => {
    const { code, err } = await troupe(['types', 'http://127.0.0.1:9', ...args]);
    assert.is(code, 2);
    assert.match(err, expected);
  });

test('leaves a file alone that it has not written', () =>
  shop(async ({ url, folder }) => {
    writeFileSync(join(folder, 'server.ts'), 'export {};\n');
    const { code, err } = await troupe(['types', url, '--out', 'server.ts'], { cwd: folder });
    assert.is(code, 2);
    assert.match(err, 'server.ts was not written by troupe types. Remove it, or name another file');
    assert.is(readFileSync(join(folder, 'server.ts'), 'utf8'), 'export {};\n');
  }));
