/** Bug reports of other programs that turn OpenAPI documents into tools, about what becomes a tool and what its schema is. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { compileDocument } from '../../../src/gateway/openapi/compile-document.ts';
import { readOpenApi } from '../../../src/gateway/openapi/document-source.ts';
import { requestAddress } from '../../../src/gateway/openapi/request-address.ts';
import { suite } from '../../harness/door.ts';
import { compiled, documentOf, only, propertiesOf, reading, writing } from './documents.ts';

const test = suite('bug reports of others about documents as tools');
const OK: JsonObject = { '200': { description: 'ok' } };

test('punkpeye/fastmcp#374: two paths that share a referenced path item are two tools', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-reports-'));
  const parameters = '- name: petId\n    in: path\n    required: true\n    schema:\n      type: integer';
  writeFileSync(
    join(folder, 'pet.yaml'),
    `parameters:\n  ${parameters}\nget:\n  responses:\n    "200":\n      description: OK\n`,
  );
  writeFileSync(
    join(folder, 'root.yaml'),
    'openapi: 3.0.3\ninfo:\n  title: Shared\n  version: 1.0.0\nservers:\n  - url: https://api.example.com\npaths:\n  /pets/{petId}:\n    $ref: ./pet.yaml\n  /archived-pets/{petId}:\n    $ref: ./pet.yaml\n',
  );
  try {
    const { operations } = compileDocument(
      await readOpenApi(join(folder, 'root.yaml'), { clock: systemClock }),
      {},
      100,
    );
    assert.equal(
      operations.map(({ tool, request }) => [
        tool.name,
        request.path,
        Object.keys(Object(tool.inputSchema.properties)),
      ]),
      [
        ['get_archived-pets_by_petId', '/archived-pets/{petId}', ['petId']],
        ['get_pets_by_petId', '/pets/{petId}', ['petId']],
      ],
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('PrefectHQ/fastmcp#195: an enum has each value once, because hosts reject a list with one twice', async () => {
  const kind = { type: 'string', enum: ['a', 'b', 'a'] };
  const parameters = [{ name: 'kind', in: 'query', schema: kind }];
  const schema = {
    type: 'object',
    properties: { kind: { ...kind, nullable: true }, deep: { type: 'array', items: kind } },
  };
  const read = await only(documentOf({ '/x': reading('x', parameters) }));
  assert.equal(propertiesOf(read.tool.inputSchema).kind, { type: 'string', enum: ['a', 'b'] });
  const { tool, checked } = await only({ ...documentOf({ '/x': writing('x', schema) }), openapi: '3.0.3' });
  for (const each of [tool.inputSchema, checked]) assert.not.match(JSON.stringify(each), '"a","b","a"');
});

test('PrefectHQ/fastmcp#5060: a delimited list is one parameter also where explode is omitted', async () => {
  for (const [style, sent] of [
    ['pipeDelimited', 'ids=a%7Cb'],
    ['spaceDelimited', 'ids=a%20b'],
    ['form', 'ids=a&ids=b'],
  ]) {
    const ids = { name: 'ids', in: 'query', style: style ?? '', schema: { type: 'array', items: { type: 'string' } } };
    const { request } = await only(documentOf({ '/x': reading('x', [ids]) }));
    assert.is(requestAddress('api', request, { ids: ['a', 'b'] }).search, `?${sent}`);
  }
});

test('kagent-dev/kagent#1888: a tool without arguments has an empty list of them', async () => {
  const { tool } = await only(documentOf({ '/x': reading('x', []) }));
  assert.equal(tool.inputSchema, { type: 'object', properties: {}, additionalProperties: false });
});

test('rapi-doc/RapiDoc#1034: an empty list of servers is that of the address of the document, or of baseUrl', async () => {
  const { operations } = await compiled(
    { ...documentOf({ '/x': reading('x', []) }), servers: [] },
    { baseUrl: 'https://api.example.com/v1' },
  );
  assert.is(operations[0]?.request.base, 'https://api.example.com/v1');
  const item = { ...reading('x', [], { servers: [] }), servers: [] };
  assert.is((await only(documentOf({ '/x': item }))).request.base, 'https://api.example.com/v1');
});

test('2013xile/openapi2mcptools#3: members of a path item that are no methods are no tools, and its parameters are those of each', async () => {
  const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' } };
  const item = {
    ...{ summary: 'Pets', description: 'About pets', servers: [], 'x-get': { responses: OK }, parameters: [id] },
    ...{ get: { responses: OK }, delete: { responses: OK, parameters: [{ ...id, description: 'Which' }] } },
  };
  const { operations } = await compiled(documentOf({ '/pets/{id}': item }));
  assert.equal(
    operations.map(({ tool }) => [tool.name, Object.keys(Object(tool.inputSchema.properties))]),
    [
      ['delete_pets_by_id', ['id']],
      ['get_pets_by_id', ['id']],
    ],
  );
});

test('BerriAI/litellm#22952: a parameter that refers to a component is that component, also of a path', async () => {
  const components = {
    parameters: { page: { name: 'per-page', in: 'query', schema: { $ref: '#/components/schemas/N' } } },
    schemas: { N: { type: 'integer' } },
  };
  const item = { parameters: [{ $ref: '#/components/parameters/page' }], get: { operationId: 'x', responses: OK } };
  const { tool } = await only(documentOf({ '/x': item }, { components }));
  assert.equal(tool.inputSchema.properties, { 'per-page': { type: 'integer' } });
});
