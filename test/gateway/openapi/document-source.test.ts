/** The reading of OpenAPI documents: files and their references, addresses, YAML, and bounds. */
import { symlinkSync, writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { compileDocument } from '../../../src/gateway/openapi/compile-document.ts';
import { readOpenApi } from '../../../src/gateway/openapi/document-source.ts';
import { Tree } from '../../features/discovery/tree.ts';
import { suite } from '../../harness/door.ts';
import { apiServer, petsDocument } from './api-server.ts';
import { documentOf, names, propertiesOf, writing } from './documents.ts';

const test = suite('the source of a document');

const read = (source: string | URL | JsonObject) => readOpenApi(source, { clock: systemClock });
const rejected = async (source: string | URL | JsonObject): Promise<string> => {
  try {
    await read(source);
  } catch (error) {
    return String(error instanceof Error && error.message);
  }
  return 'nothing';
};

test('a file is JSON or YAML, whatever its name is', async () => {
  const yaml = `openapi: 3.1.0
info: { title: T, version: 2024-01-01 }
servers: [{ url: https://api.example.com }]
paths:
  /pets: &pets
    get: { operationId: on, responses: { 200: { description: ok } } }
  /cats: { get: { operationId: cats, responses: { 200: { description: no } } } }
`;
  const tree = new Tree({
    'a.json': JSON.stringify(petsDocument()),
    'b.txt': yaml,
    'c.yaml': `\uFEFF${JSON.stringify(petsDocument())}`,
  });
  assert.equal((await read(tree.at('a.json'))).root, petsDocument());
  assert.equal((await read(tree.at('c.yaml'))).root, petsDocument());
  const document = compileDocument(await read(tree.at('b.txt')), {}, 10);
  assert.equal(names(document), ['cats', 'on']);
  assert.is(document.info.version, '2024-01-01');
});

test('a file refers to other files below its folder, and those to others and back', async () => {
  const body = (schema: JsonObject) =>
    JSON.stringify({
      post: { operationId: 'x', responses: {}, requestBody: { content: { 'application/json': { schema } } } },
    });
  const tree = new Tree({
    'api.yaml': JSON.stringify(documentOf({ '/x': { $ref: './paths/x.json' } })),
    'paths/x.json': body({ $ref: '../schemas/pet.yaml#/Pet' }),
    'schemas/pet.yaml':
      'Pet: { type: object, properties: { friend: { $ref: "#/Pet" }, tag: { $ref: "tags/tag.yaml" } } }\n',
    'schemas/tags/tag.yaml': 'type: string\nminLength: 2\n',
  });
  const document = compileDocument(await read(tree.at('api.yaml')), {}, 10);
  assert.equal(document.warnings, []);
  const [operation] = document.operations;
  const pet = propertiesOf({ ...Object(propertiesOf(operation?.tool.inputSchema ?? {}).body) });
  assert.equal(pet.tag, { type: 'string', minLength: 2 });
  assert.match(JSON.stringify(pet.friend), 'not listed further');
  // The names of definitions have no path of this machine.
  assert.not.match(JSON.stringify(operation?.checked), tree.path);
});

for (const [title, reference, expected] of [
  ['above its folder', '../secret.json#/a', 'which is not below'],
  [
    'on another server',
    'https://evil.example/a.json',
    'References to other servers are not followed. Bundle the document',
  ],
  ['by a file URL', 'file:///etc/passwd', 'References to other servers are not followed'],
  ['that does not exist', './lost.json', 'cannot be read'],
  ['through a link', './link.json', 'which is not below'],
] as const)
  test(`a file ${title} is not read`, async () => {
    const tree = new Tree({
      'secret.json': '{ "a": { "type": "string" } }',
      'api/api.json': JSON.stringify(documentOf({ '/x': writing('x', { $ref: reference }) })),
    });
    symlinkSync(tree.at('secret.json'), tree.at('api/link.json'));
    assert.match(await rejected(tree.at('api/api.json')), expected);
  });

test('a reference in an example is data', async () => {
  const schema = {
    type: 'object',
    example: { $ref: 'https://other.example/x' },
    properties: { example: { type: 'string' } },
  };
  assert.is(await rejected(documentOf({ '/x': writing('x', schema) })), 'nothing');
});

test('an object and an address refer to no other document', async () => {
  const outside = documentOf({ '/x': writing('x', { $ref: './pet.json' }) });
  assert.match(await rejected(outside), 'the document refers to ./pet.json. Bundle the document into one file');
  const api = await apiServer(outside);
  assert.match(await rejected(`${api.url}/openapi.json`), 'it refers to another document, ./pet.json. Bundle');
  await api.close();
});

test('an address is fetched once more only if its document has changed', async () => {
  const api = await apiServer();
  const url = `${api.url}/openapi.json`;
  const first = await read(url);
  assert.is(await readOpenApi(url, { clock: systemClock, known: first }), undefined);
  // A server without an ETag sends the same text.
  assert.is(await readOpenApi(url, { clock: systemClock, known: { digest: first.digest ?? '' } }), undefined);
  api.document = petsDocument({ info: { title: 'Changed pets', version: '2' } });
  const second = await readOpenApi(url, { clock: systemClock, known: first });
  assert.equal(second?.root.info, { title: 'Changed pets', version: '2' });
  assert.is(api.requests.length, 4);
  await api.close();
});

test('a file that is written again with the same text has not changed, and one of its files that differs has', async () => {
  const schema = { $ref: './pet.json' };
  const tree = new Tree({
    'api.json': JSON.stringify(documentOf({ '/x': writing('x', schema) })),
    'pet.json': '{ "type": "object" }',
  });
  const path = tree.at('api.json');
  const first = await read(path);
  assert.is(await readOpenApi(path, { clock: systemClock, known: first }), undefined);
  writeFileSync(tree.at('pet.json'), '{ "type": "string" }');
  assert.ok(await readOpenApi(path, { clock: systemClock, known: first }));
});

for (const [url, expected] of [
  ['http://api.example.com/openapi.json', 'expected an https address'],
  ['https://user:secret@api.example.com/openapi.json', 'credentials in an address are not allowed'],
] as const)
  test(`a document is not fetched from ${new URL(url).protocol} ${new URL(url).username}`, async () => {
    const message = await rejected(url);
    assert.match(message, expected);
    assert.not.match(message, 'secret');
  });

const nested = (levels: number): JsonObject => (levels === 0 ? {} : { a: nested(levels - 1) });
const looped: Record<string, JsonObject> = {};
looped.a = looped;

for (const [title, source, expected] of [
  ['nests too deep', { x: nested(70) }, 'nested deeper than 64 levels'],
  ['contains itself', looped, 'nested deeper than 64 levels'],
  ['has a function', { x: () => 1 } as unknown as JsonObject, 'expected values of JSON'],
] as const)
  test(`a document that ${title} is rejected`, async () => assert.match(await rejected(source), expected));

for (const [title, text, expected] of [
  ['is neither JSON nor YAML', '{ "a": ', 'expected JSON or YAML'],
  ['is a list', '[]', 'expected an OpenAPI document, got array of 0'],
  ['is long, and no JSON', `# ${'x'.repeat(10_485_760)}`, 'Convert the document to JSON'],
  ['is empty', '', 'expected an OpenAPI document'],
  [
    'multiplies itself by aliases',
    `a: &a [x, x, x, x, x, x, x, x, x]\n${'bcdefgh'
      .split('')
      .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[index]}`).join(', ')}]`)
      .join('\n')}\n`,
    'resource exhaustion',
  ],
] as const)
  test(`a file that ${title} is rejected`, async () => {
    const tree = new Tree({ 'a.yaml': text });
    assert.match(await rejected(tree.at('a.yaml')), expected);
  });

test('a file that does not exist is named', async () =>
  assert.match(await rejected('/nowhere/openapi.json'), '/nowhere/openapi.json: cannot be read'));
