/** OpenAPI documents as tools: names, arguments, schemas, servers, filters and overrides, and what is left out. */
import * as assert from 'uvu/assert';
import type { JsonObject, JsonValue } from '../../../src/core/protocol/json.ts';
import { compileInput } from '../../../src/core/schema/compile-schema.ts';
import type { CompileOptions } from '../../../src/gateway/openapi/compile-options.ts';
import { suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { compiled, documentOf, names, only, propertiesOf, reading, writing } from './documents.ts';

const test = suite('compiled documents');

const rejected = async (document: JsonObject, options: CompileOptions = {}, most = 5_000): Promise<string> => {
  try {
    await compiled(document, options, most);
  } catch (error) {
    return String(error instanceof Error && error.message);
  }
  return 'nothing';
};
const fits = async (schema: JsonObject, value: JsonValue): Promise<boolean> =>
  (await compileInput(schema, 'test').check(value)).ok;

// Versions

for (const version of ['3.0.0', '3.0.4', '3.1.1', '3.2.0'])
  test(`a document of version ${version} is read`, async () => {
    const document = { ...documentOf({ '/pets': reading('listPets', []) }), openapi: version };
    assert.equal(names(await compiled(document)), ['listPets']);
  });

for (const [shown, document, expected] of [
  ['4.0', { openapi: '4.0.0', paths: {} }, 'got version string "4.0.0"'],
  ['1.2', { swaggerVersion: '1.2', apis: [] }, 'got the members swaggerVersion, apis'],
  ['none', {}, 'got the members none'],
] as const)
  test(`a document of version ${shown} is rejected in words`, async () =>
    assert.match(await rejected(document), expected));

test('Swagger 2 is translated: body, form, collections, host, credentials', async () => {
  const document = await compiled({
    swagger: '2.0',
    info: { title: 'Old', version: '1' },
    host: 'old.example.com',
    basePath: '/v2/',
    schemes: ['http', 'https'],
    consumes: ['application/json'],
    produces: ['application/json'],
    securityDefinitions: {
      key: { type: 'apiKey', in: 'header', name: 'X-Key' },
      basic: { type: 'basic' },
      flow: {
        type: 'oauth2',
        flow: 'accessCode',
        authorizationUrl: 'https://a.example',
        tokenUrl: 'https://t.example',
      },
    },
    security: [{ key: [] }],
    parameters: { page: { name: 'page', in: 'query', type: 'integer', minimum: 1 } },
    definitions: { Pet: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } },
    paths: {
      '/pets': {
        get: {
          operationId: 'list',
          parameters: [
            { $ref: '#/parameters/page' },
            { name: 'ids', in: 'query', type: 'array', items: { type: 'string' }, collectionFormat: 'pipes' },
            { name: 'X-Key', in: 'header', type: 'string' },
          ],
          responses: { 200: { description: 'ok', schema: { type: 'array', items: { $ref: '#/definitions/Pet' } } } },
        },
        post: {
          operationId: 'create',
          parameters: [{ name: 'pet', in: 'body', required: true, schema: { $ref: '#/definitions/Pet' } }],
          responses: { 201: { description: 'ok' } },
        },
      },
      '/photos': {
        post: {
          operationId: 'upload',
          consumes: ['multipart/form-data'],
          parameters: [
            { name: 'file', in: 'formData', type: 'file', required: true },
            { name: 'note', in: 'formData', type: 'string' },
          ],
          responses: { 200: { description: 'ok' } },
        },
      },
    },
  });
  const [create, list, upload] = document.operations;
  assert.is(list?.request.base, 'https://old.example.com/v2');
  assert.equal(Object.keys(propertiesOf(list?.tool.inputSchema ?? {})), ['page', 'ids']);
  assert.equal(
    list?.request.parameters.map(({ style, explode }) => [style, explode]),
    [
      ['form', true],
      ['pipeDelimited', false],
    ],
  );
  assert.is(list?.request.accept, 'application/json, */*;q=0.1');
  assert.equal(list?.request.security, [[{ scheme: 'key', scopes: [] }]]);
  assert.is(create?.request.body?.type, 'application/json');
  assert.is(await fits(create?.checked ?? {}, { body: {} }), false);
  assert.equal(upload?.request.body?.files, ['file']);
  assert.is(upload?.request.body?.kind, 'multipart');
  assert.equal(document.securitySchemes.basic, { type: 'http', scheme: 'basic' });
  assert.equal(document.securitySchemes.flow, {
    type: 'oauth2',
    flows: { authorizationCode: { authorizationUrl: 'https://a.example', tokenUrl: 'https://t.example', scopes: [] } },
  });
});

// Names

for (const [operationId, path, expected] of [
  ['listPets', '/pets', 'listPets'],
  ['pets.list all', '/pets', 'pets_list_all'],
  ['pets/list', '/pets', 'pets_list'],
  [undefined, '/pets/{petId}/photos', 'get_pets_by_petId_photos'],
  [undefined, '/', 'get'],
  ['日本', '/pets', 'get_pets'],
  ['x'.repeat(65), '/pets', `${'x'.repeat(55)}_b0bd07bf`],
] as const)
  test(`the operation ${operationId ?? 'without an id'} at ${path} has the name ${expected}`, async () => {
    const operation = { ...(operationId !== undefined && { operationId }), responses: {} };
    assert.is((await only(documentOf({ [path]: { get: operation } }))).tool.name, expected);
  });

test('operations with one name each have a hash, which no order changes', async () => {
  const paths = { '/a': reading('same', []), '/b': reading('Same', []), '/c': reading('sa/me', []) };
  const straight = names(await compiled(documentOf(paths)));
  const reversed = names(await compiled(documentOf(Object.fromEntries(Object.entries(paths).reverse()))));
  assert.equal(straight, reversed);
  assert.is(new Set(straight.map((name) => name.toLowerCase())).size, 3);
  assert.ok(straight.filter((name) => /^same_[0-9a-f]{8}$/i.test(name)).length === 2, straight.join());
});

test('long names that begin alike stay apart, and have at most 64 characters', async () => {
  const id = 'getTheVeryLongNameOfAnOperationThatSomebodyHasGeneratedFromAPath';
  const paths = { '/a': reading(`${id}One`, []), '/b': reading(`${id}Two`, []) };
  const found = names(await compiled(documentOf(paths)));
  assert.is(new Set(found).size, 2);
  assert.ok(found.every((name) => name.length === 64));
});

// Arguments

test('the path, the query and headers are flat, the body is one argument, and equal names stay apart', async () => {
  const { tool, request } = await only(
    documentOf({
      '/pets/{id}': {
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
        ...writing(
          'create',
          { type: 'object', properties: { id: { type: 'string' } } },
          {
            parameters: [
              { name: 'id', in: 'query', schema: { type: 'integer' } },
              { name: 'id', in: 'header', schema: { type: 'integer' } },
              { name: 'body', in: 'query', schema: { type: 'boolean' } },
              { name: 'Authorization', in: 'header', schema: { type: 'string' } },
              { name: 'Content-Type', in: 'header', schema: { type: 'string' } },
              { name: 'session', in: 'cookie', schema: { type: 'string' } },
            ],
          },
        ),
      },
    }),
  );
  assert.equal(Object.keys(propertiesOf(tool.inputSchema)), ['id', 'query_id', 'query_body', 'header_id', 'body']);
  assert.equal(tool.inputSchema.required, ['id', 'body']);
  assert.equal(
    request.parameters.map(({ argument, name, in: place }) => [argument, name, place]),
    [
      ['id', 'id', 'path'],
      ['query_id', 'id', 'query'],
      ['query_body', 'body', 'query'],
      ['header_id', 'id', 'header'],
    ],
  );
});

test('a parameter of the operation replaces that of the path', async () => {
  const { tool } = await only(
    documentOf({
      '/pets': {
        parameters: [{ name: 'limit', in: 'query', schema: { type: 'string' } }],
        ...reading('list', [{ name: 'limit', in: 'query', schema: { type: 'integer' } }]),
      },
    }),
  );
  assert.equal(propertiesOf(tool.inputSchema).limit, { type: 'integer' });
});

test('names that providers reject are changed in arguments, and described in bodies', async () => {
  const parameter = (name: string): JsonObject => ({ name, in: 'query', schema: { type: 'string' } });
  const schema = {
    type: 'object',
    properties: { plain: { type: 'string' }, 'uids[]': { type: 'array', items: { type: 'string' } } },
    required: ['uids[]', 'plain'],
    additionalProperties: false,
  };
  const { tool, checked, request } = await only(
    documentOf({
      '/calls': writing('find', schema, {
        parameters: ['StartTime', 'StartTime<', 'StartTime>', 'filter[search]', '$top'].map(parameter),
      }),
    }),
  );
  const listed = propertiesOf(tool.inputSchema);
  const properties = Object.keys(listed);
  assert.equal(properties.length, 6);
  assert.equal(new Set(request.parameters.map(({ name }) => name)).size, 5);
  const every = JSON.stringify(tool.inputSchema).matchAll(/"properties":\{("[^"]*")/g);
  for (const name of [...properties, ...[...every].map(([, each = '']) => String(JSON.parse(each)))])
    assert.match(name, /^[A-Za-z0-9_.-]{1,64}$/);
  assert.equal(listed.body, {
    type: 'object',
    properties: { plain: { type: 'string' } },
    required: ['plain'],
    description: 'More members: "uids[]" (array, required)',
  });
  assert.is(await fits(checked, { body: { plain: 'a' } }), false);
  assert.is(await fits(checked, { body: { plain: 'a', 'uids[]': ['1'] } }), true);
});

test('a variable of the path without a parameter is a required text', async () => {
  const { operations, warnings } = await compiled(documentOf({ '/pets/{petId}': reading('get', []) }));
  assert.equal(operations[0]?.tool.inputSchema.required, ['petId']);
  assert.match(warnings.join(), 'GET /pets/{petId}: {petId} of the path is no parameter');
});

test('an idempotency key, the keys of security schemes and configured headers are no arguments', async () => {
  const { tool, request } = await only(
    documentOf(
      {
        '/pay': writing(
          'pay',
          { type: 'object' },
          {
            parameters: ['Idempotency-Key', 'X-Api-Key', 'X-Tenant', 'X-Trace'].map((name) => ({
              ...{ name, in: 'header', required: true },
              schema: { type: 'string' },
            })),
          },
        ),
      },
      { components: { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'x-api-key' } } } },
    ),
    { headers: { 'x-tenant': 'acme' } },
  );
  assert.equal(Object.keys(propertiesOf(tool.inputSchema)), ['X-Trace', 'body']);
  assert.is(request.idempotencyHeader, 'Idempotency-Key');
});

// Schemas

const BODIES: readonly (readonly [
  title: string,
  version: string,
  schema: JsonObject,
  accepted: readonly JsonValue[],
  refused: readonly JsonValue[],
])[] = [
  ['a nullable text', '3.0.3', { type: 'string', nullable: true }, ['a', null], [1]],
  ['a nullable enum', '3.0.3', { type: 'string', nullable: true, enum: ['a'] }, ['a', null], ['b']],
  ['a text that is not nullable', '3.0.3', { type: 'string', nullable: false }, ['a'], [null]],
  ['a nullable reference', '3.0.3', { allOf: [{ $ref: '#/components/schemas/Pet' }], nullable: true }, [null], [1]],
  ['an exclusive minimum of 3.0', '3.0.3', { type: 'number', minimum: 1, exclusiveMinimum: true }, [2], [1]],
  ['an inclusive minimum of 3.0', '3.0.3', { type: 'number', minimum: 1, exclusiveMinimum: false }, [1], [0]],
  ['an exclusive minimum of 3.1', '3.1.0', { type: 'number', exclusiveMinimum: 1 }, [2], [1]],
  ['a union with null', '3.1.0', { anyOf: [{ type: 'string' }, { type: 'null' }] }, ['a', null], [1]],
  ['alternatives that overlap', '3.1.0', { oneOf: [{ type: 'number' }, { type: 'integer' }] }, [1, 1.5], ['a']],
  ['a pattern that JavaScript does not know', '3.1.0', { type: 'string', pattern: '(?i)a' }, ['a', 'b'], [1]],
  ['a type that does not exist', '3.1.0', { type: 'date' }, ['a', 1], []],
  [
    '`required: true` at a member',
    '3.0.3',
    { type: 'object', properties: { a: { type: 'string', required: true } } },
    [{}],
    [],
  ],
  [
    'siblings of a reference of 3.1',
    '3.1.0',
    { $ref: '#/components/schemas/Pet', required: ['tag'] },
    [{ name: 'a', tag: 'b' }],
    [{ name: 'a' }],
  ],
  ['a reference outside of components', '3.1.0', { $ref: '#/x-common/guid' }, ['12345678'], ['1']],
  ['a reference to nothing', '3.1.0', { $ref: '#/components/schemas/Lost' }, [1], []],
  ['a reference to itself', '3.1.0', { $ref: '#/components/schemas/Loop' }, [1], []],
];

for (const [title, version, schema, accepted, refused] of BODIES)
  test(`a body accepts ${title} as the document means it`, async () => {
    const { checked, tool } = await only({
      ...documentOf(
        { '/x': writing('x', schema) },
        {
          components: {
            schemas: {
              Pet: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
              Loop: { $ref: '#/components/schemas/Loop' },
            },
          },
          'x-common': { guid: { type: 'string', minLength: 8 } },
        },
      ),
      openapi: version,
    });
    for (const body of accepted) assert.is(await fits(checked, { body }), true, `${JSON.stringify(body)} fits`);
    for (const body of refused) assert.is(await fits(checked, { body }), false, `${JSON.stringify(body)} does not fit`);
    assert.not.match(JSON.stringify(tool), '"$ref"');
  });

test('a recursive schema is cut in the list, and whole in the check', async () => {
  const Node = {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/components/schemas/Node' } } },
  };
  const { checked, tool } = await only(
    documentOf({ '/x': writing('x', { $ref: '#/components/schemas/Node' }) }, { components: { schemas: { Node } } }),
  );
  assert.equal(propertiesOf(tool.inputSchema).body, {
    ...Node,
    properties: {
      name: { type: 'string' },
      children: { type: 'array', items: { type: 'object', description: 'Node, not listed further' } },
    },
  });
  const deep = (name: JsonValue): JsonValue => ({ name: 'a', children: [{ name: 'b', children: [{ name }] }] });
  assert.is(await fits(checked, { body: deep('c') }), true);
  assert.is(await fits(checked, { body: deep(1) }), false);
});

test('a recursive union compiles, and takes no other operation with it', async () => {
  const schemas = {
    Leaf: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
    Group: {
      type: 'object',
      properties: {
        filters: {
          type: 'array',
          items: { anyOf: [{ $ref: '#/components/schemas/Leaf' }, { $ref: '#/components/schemas/Group' }] },
        },
      },
    },
  };
  const document = await compiled(
    documentOf(
      { '/search': writing('search', { $ref: '#/components/schemas/Group' }), '/ping': reading('ping', []) },
      { components: { schemas } },
    ),
  );
  assert.equal(names(document), ['ping', 'search']);
  assert.not.match(JSON.stringify(document.operations.map(({ tool }) => tool)), '"$ref"');
});

test('definitions that only other definitions name are part of the check', async () => {
  const schemas = {
    People: { type: 'array', items: { $ref: '#/components/schemas/Person' } },
    Person: { type: 'object', properties: { name: { $ref: '#/components/schemas/Name' } } },
    Name: { type: 'string', minLength: 2 },
    Unused: { type: 'string' },
  };
  const { checked } = await only(
    documentOf({ '/x': writing('x', { $ref: '#/components/schemas/People' }) }, { components: { schemas } }),
  );
  assert.equal(Object.keys(Object(checked.$defs)), ['Name', 'People', 'Person']);
  assert.is(await fits(checked, { body: [{ name: 'a' }] }), false);
});

test('members that only the server writes are neither listed nor required', async () => {
  const Base = { type: 'object', properties: { id: { type: 'integer', readOnly: true } } };
  const Pet = {
    allOf: [{ $ref: '#/components/schemas/Base' }, { type: 'object', properties: { name: { type: 'string' } } }],
    required: ['id', 'name'],
  };
  const { checked, tool } = await only(
    documentOf(
      { '/x': writing('x', { $ref: '#/components/schemas/Pet' }) },
      { components: { schemas: { Base, Pet } } },
    ),
  );
  assert.not.match(JSON.stringify(tool), '"id"');
  assert.is(await fits(checked, { body: { name: 'a' } }), true);
});

test('descriptions of parameters and of schemas that they refer to are listed, as text', async () => {
  const { tool } = await only(
    documentOf(
      {
        '/x': reading('x', [
          {
            name: 'own',
            in: 'query',
            description: '<p>Of the <b>parameter</b>.</p>',
            schema: { $ref: '#/components/schemas/Text' },
          },
          { name: 'other', in: 'query', schema: { $ref: '#/components/schemas/Text' } },
        ]),
      },
      { components: { schemas: { Text: { type: 'string', description: 'Of the schema.' } } } },
    ),
  );
  assert.equal(propertiesOf(tool.inputSchema), {
    own: { type: 'string', description: 'Of the parameter.' },
    other: { type: 'string', description: 'Of the schema.' },
  });
});

test('a schema that is too long for a list is cut at a lower depth', async () => {
  const level = (depth: number): JsonObject => ({
    type: 'object',
    properties: Object.fromEntries(
      Array.from({ length: 8 }, (_, index) => [`member${index}`, depth === 0 ? { type: 'string' } : level(depth - 1)]),
    ),
  });
  const { tool, checked } = await only(
    documentOf({ '/x': writing('x', level(atScale({ quick: 3, full: 4, proof: 4 }))) }),
  );
  assert.ok(JSON.stringify(tool.inputSchema).length < 70_000);
  assert.ok(JSON.stringify(checked).length > 100_000);
});

// Bodies

for (const [types, kind, type] of [
  [['application/xml', 'application/json'], 'json', 'application/json'],
  [['text/plain', 'application/merge-patch+json'], 'json', 'application/merge-patch+json'],
  [['multipart/form-data', 'application/x-www-form-urlencoded'], 'form', 'application/x-www-form-urlencoded'],
  [['application/octet-stream', 'text/csv'], 'text', 'text/csv'],
  [['image/png'], 'binary', 'image/png'],
  [['*/*'], 'json', 'application/json'],
] as const)
  test(`of the bodies ${types.join(' and ')}, ${type} is sent`, async () => {
    const content = Object.fromEntries(types.map((each) => [each, { schema: { type: 'object' } }]));
    const operation = { post: { operationId: 'x', requestBody: { content }, responses: {} } };
    const { request } = await only(documentOf({ '/x': operation }));
    assert.equal([request.body?.kind, request.body?.type], [kind, type]);
  });

test('an operation that takes only XML is left out with its reason, or takes text', async () => {
  const requestBody = { required: true, content: { 'application/xml': { schema: { type: 'object' } } } };
  const document = documentOf({
    '/x': { post: { operationId: 'x', requestBody, responses: {} } },
    '/y': reading('y', []),
  });
  const { skipped } = await compiled(document);
  assert.match(String(skipped[0]?.reason), 'the body has the media type application/xml');
  const { operations } = await compiled(document, { xml: 'text' });
  assert.is(operations[0]?.request.body?.kind, 'text');
});

// Methods and descriptions

for (const [method, hints] of Object.entries({
  get: { readOnlyHint: true, openWorldHint: true },
  query: { readOnlyHint: true, openWorldHint: true },
  put: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
  delete: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
  post: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  patch: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
}))
  test(`annotations say what the method ${method} promises`, async () =>
    assert.equal((await only(documentOf({ '/x': { [method]: { responses: {} } } }))).tool.annotations, hints));

test('methods that are no operations are not offered, and additional ones are', async () => {
  const item = {
    head: {},
    options: {},
    trace: {},
    get: { operationId: 'x' },
    additionalOperations: { COPY: {}, CONNECT: {} },
  };
  assert.equal(names(await compiled(documentOf({ '/x': item }))), ['copy_x', 'x']);
});

test('the summary is the title only beside a description of its own', async () => {
  const document = await compiled(
    documentOf({
      '/a': reading('a', [], { summary: 'Lists pets' }),
      '/b': reading('b', [], { summary: 'Lists cats', description: 'All of <em>them</em>.' }),
      '/c': reading('c', []),
    }),
  );
  assert.equal(
    document.operations.map(({ tool: { title, description } }) => [title, description]),
    [
      [undefined, 'Lists pets'],
      ['Lists cats', 'Lists cats\n\nAll of them.'],
      [undefined, 'GET /c'],
    ],
  );
});

// Servers

for (const [title, servers, options, expected] of [
  ['https wins', [{ url: 'http://localhost/a' }, { url: 'https://b.example/c/' }], {}, 'https://b.example/c'],
  ['baseUrl wins', [{ url: 'https://b.example' }], { baseUrl: 'http://10.0.0.1:8080/v2/' }, 'http://10.0.0.1:8080/v2'],
  [
    'a default fills a variable',
    [{ url: 'https://{r}.example', variables: { r: { default: 'eu' } } }],
    {},
    'https://eu.example',
  ],
  [
    'an option fills it',
    [{ url: 'https://{r}.example', variables: { r: { default: 'eu' } } }],
    { variables: { r: 'us' } },
    'https://us.example',
  ],
  ['this machine needs no https', [{ url: 'http://127.0.0.1:3000' }], {}, 'http://127.0.0.1:3000'],
] as const)
  test(`of the servers of a document, ${title}`, async () =>
    assert.is((await only(documentOf({ '/x': reading('x', []) }, { servers }), options)).request.base, expected));

for (const [title, servers, expected] of [
  ['is relative', [{ url: '/v1' }], 'the document names no server with an address. Set baseUrl'],
  ['is missing', [], 'the document names no server with an address. Set baseUrl'],
  ['is not encrypted', [{ url: 'http://api.example.com' }], 'is not encrypted. Set baseUrl'],
  ['has a variable without a value', [{ url: 'https://{host}.example' }], 'has the variable host. Set it in variables'],
  ['is no web server', [{ url: 'ftp://api.example.com' }], 'Set baseUrl'],
] as const)
  test(`a document whose server ${title} is rejected in words`, async () =>
    assert.match(await rejected(documentOf({ '/x': reading('x', []) }, { servers })), expected));

test('an operation at another origin is left out until the configuration names the origin', async () => {
  const paths = {
    '/files': reading('files', [], { servers: [{ url: 'https://upload.example.com/api' }] }),
    '/v2': reading('same', [], { servers: [{ url: 'https://api.example.com/v2' }] }),
  };
  const { operations, skipped } = await compiled(documentOf(paths));
  assert.equal(
    operations.map(({ request }) => request.base),
    ['https://api.example.com/v2'],
  );
  assert.match(String(skipped[0]?.reason), 'the server is https://upload.example.com. Add it to origins');
  const all = await compiled(documentOf(paths), { origins: ['https://upload.example.com'] });
  assert.equal(names(all), ['files', 'same']);
  assert.equal(all.trusted, ['https://upload.example.com', 'https://api.example.com']);
});

// Filters and overrides

const SHOP = documentOf({
  '/pets': {
    ...reading('listPets', [], { tags: ['pets'] }),
    ...writing('createPet', { type: 'object' }, { tags: ['pets'] }),
  },
  '/pets/{id}': { delete: { operationId: 'deletePet', tags: ['pets'], responses: {} } },
  '/search': writing('search', { type: 'object' }, { tags: ['find'] }),
  '/old': reading('old', [], { deprecated: true }),
});

for (const [title, options, expected] of [
  ['nothing', {}, ['createPet', 'deletePet', 'listPets', 'search']],
  ['readOnly', { readOnly: true }, ['listPets']],
  [
    'readOnly and an annotation',
    { readOnly: true, operations: { search: { annotations: { readOnlyHint: true } } } },
    ['listPets', 'search'],
  ],
  ['methods', { methods: ['get', 'DELETE'] }, ['deletePet', 'listPets']],
  ['only a name', { only: ['list*'] }, ['listPets']],
  ['only a tag', { only: ['tag:find'] }, ['search']],
  ['only a path', { only: ['* /pets/*'] }, ['deletePet']],
  ['except a method', { except: ['POST /*'] }, ['deletePet', 'listPets']],
  ['a deprecated operation by its name', { only: ['old', 'search'] }, ['old', 'search']],
  ['a deprecated operation by a pattern', { only: ['o*', 'search'] }, ['search']],
] as const)
  test(`filtered by ${title}, ${expected.join(', ')} remain`, async () =>
    assert.equal(names(await compiled(SHOP, options)), expected));

test('a filter that fits no operation is a warning', async () =>
  assert.match((await compiled(SHOP, { except: ['tag:fnd'] })).warnings.join(), 'except: tag:fnd fits no operation'));

test('an override changes the name, the words, the hints and the arguments of an operation', async () => {
  const document = documentOf({
    '/pets': reading('listPets', [
      { name: 'limit', in: 'query', schema: { type: 'integer' } },
      { name: 'tenant', in: 'query', required: true, schema: { type: 'string' } },
    ]),
  });
  const override = {
    name: 'pets',
    title: 'Pets',
    description: 'All pets.',
    defaults: { tenant: 'acme', limit: 5 },
    hide: ['tenant'],
  };
  for (const key of ['listPets', 'GET /pets']) {
    const { tool, defaults, request } = await only(document, { operations: { [key]: override } });
    assert.equal([tool.name, tool.title, tool.description], ['pets', 'Pets', 'All pets.']);
    assert.equal(Object.keys(propertiesOf(tool.inputSchema)), ['limit']);
    assert.is(tool.inputSchema.required, undefined);
    assert.equal(defaults, { tenant: 'acme', limit: 5 });
    assert.equal(
      request.parameters.map(({ argument }) => argument),
      ['limit', 'tenant'],
    );
  }
});

for (const [title, operations, expected] of [
  ['no operation', { listPet: {} }, 'operations.listPet: the document has no such operation (did you mean listPets?)'],
  ['no argument', { listPets: { hide: ['limt'] } }, 'operations.listPets: hide: it has no argument limt. It has none'],
  [
    'a required argument without a value',
    { createPet: { hide: ['body'] } },
    'the argument body is required. Give it a value in defaults',
  ],
  ['an invalid name', { listPets: { name: 'list pets' } }, 'operations.listPets: name: expected 1 to 64 letters'],
] as const)
  test(`an override for ${title} is rejected`, async () =>
    assert.match(await rejected(SHOP, { operations }), expected));

test('a document with more operations than may be offered is rejected with advice', async () =>
  assert.match(
    await rejected(SHOP, {}, 3),
    'the document has 4 operations, and at most 3 can be offered (maxListed). Choose some with only',
  ));

test('deprecated operations, webhooks and callbacks are left out and counted', async () => {
  const document = await compiled({
    ...SHOP,
    webhooks: { petSold: {} },
    paths: { ...Object(SHOP.paths), '/cb': reading('cb', [], { callbacks: { done: {}, failed: {} } }) },
  });
  assert.is(document.webhooks, 3);
  assert.equal(
    document.skipped.map(({ operation }) => operation),
    ['GET /old'],
  );
});

for (const [path, reason] of [
  ['/a/../b', 'the path has a segment with dots'],
  ['/./a?b=c', 'the path has a segment with dots'],
  ['a', 'the path does not begin with a slash'],
  ['/a?b c', 'the query of the path has characters that no query has'],
])
  test(`an operation with the path ${path} is left out`, async () => {
    const { skipped } = await compiled(documentOf({ [String(path)]: reading('x', []), '/y': reading('y', []) }));
    assert.match(String(skipped[0]?.reason), String(reason));
  });

const queryOf = (name: string, schema: JsonObject = { type: 'string' }): JsonObject => ({ name, in: 'query', schema });

/** Paths with a query or a fragment: what is sent, and the arguments of the tool. */
for (const [path, parameters, sent, args] of [
  ['/?Action=List', [queryOf('Next')], '/?Action=List', ['Next']],
  // The document writes the pair as a parameter, too.
  ['/?Action=List&Version=1', [queryOf('Action'), queryOf('Next')], '/?Action=List&Version=1', ['Next']],
  ['/search?q={q}&kind=all', [queryOf('q')], '/search?kind=all', ['q']],
  ['/search?q={q}', [queryOf('q')], '/search', ['q']],
  ['/#X-Amz-Target=Shop.List', [], '/', []],
  ['/pets#search', [queryOf('q')], '/pets', ['q']],
] as const)
  test(`an operation with the path ${path} is offered, and sends ${sent}`, async () => {
    const { request, tool } = await only(documentOf({ [path]: reading('x', parameters) }));
    assert.is(request.path, sent);
    assert.equal(Object.keys(Object(tool.inputSchema.properties)), args);
  });

/** Security schemes whose credentials no request of ours has. */
for (const [scheme, words] of [
  [{ type: 'mutualTLS' }, 'securitySchemes.S: mutual TLS (a certificate of the client) is not supported'],
  [{ type: 'http', scheme: 'Digest' }, 'securitySchemes.S: HTTP digest authentication is not supported'],
  [{ type: 'magic' }, 'securitySchemes.S: a scheme of an unknown kind is not supported'],
  [
    { type: 'apiKey', in: 'header', name: 'Authorization', 'x-amazon-apigateway-authtype': 'awsSigv4' },
    'securitySchemes.S: AWS Signature Version 4 is not supported',
  ],
  [
    { type: 'apiKey', in: 'header', name: 'Authorization', description: 'Amazon Signature authorization v4' },
    'securitySchemes.S: AWS Signature Version 4 is not supported',
  ],
] as const)
  test(`${words} is a warning with a way out: ${JSON.stringify(scheme).slice(0, 90)}`, async () => {
    const components = { securitySchemes: { S: scheme as JsonObject } };
    const { warnings } = await compiled(documentOf({ '/x': reading('x', []) }, { components }));
    assert.match(warnings.join(), words);
    assert.match(warnings.join(), 'If a proxy in front of the API adds them, set baseUrl to its address');
  });

test('two operations that differ in the query of their path are two tools', async () => {
  const { operations } = await compiled(
    documentOf({ '/?Action=Get': { get: { responses: {} } }, '/?Action=List': { get: { responses: {} } } }),
  );
  assert.equal(
    operations.map(({ tool, request }) => [tool.name, request.path]),
    [
      ['get_Action_Get', '/?Action=Get'],
      ['get_Action_List', '/?Action=List'],
    ],
  );
});

test('deepObject of an object in an object, and parameters of unknown forms, are warnings', async () => {
  const nested = { type: 'object', properties: { a: { type: 'object', properties: { b: { type: 'string' } } } } };
  const { warnings, operations } = await compiled(
    documentOf({
      '/x': reading('x', [
        { name: 'f', in: 'query', style: 'deepObject', schema: nested },
        { name: 'g', in: 'query', style: 'tabDelimited', schema: { type: 'array' } },
        { name: 'h', in: 'query', content: { 'application/xml': { schema: {} } } },
      ]),
    }),
  );
  assert.is(warnings.length, 3);
  assert.equal(
    operations[0]?.request.parameters.map(({ name }) => name),
    ['f'],
  );
});

test('outputs: declare lists the schemas of results', async () => {
  const responses = {
    '200': {
      description: 'ok',
      content: { 'application/json': { schema: { type: 'array', items: { type: 'string' } } } },
    },
  };
  const { tool } = await only(documentOf({ '/x': { get: { responses } } }), { outputs: 'declare' });
  assert.equal(tool.outputSchema, {
    type: 'object',
    properties: { result: { type: 'array', items: { type: 'string' } } },
  });
});

test('short defaults of parameters are in the schema, so that a caller knows them; long ones and those of results are not', async () => {
  const parameters = [
    queryOf('state', { type: 'string', default: 'open' }),
    queryOf('size', { type: 'integer', default: 30 }),
    queryOf('text', { type: 'string', default: 'a'.repeat(100) }),
    queryOf('ids', { type: 'array', items: {}, default: [1] }),
  ];
  const schema = { type: 'object', properties: { a: { type: 'string', default: 'x' } } };
  const responses = { '200': { description: 'ok', content: { 'application/json': { schema } } } };
  const document = documentOf({ '/x': { get: { operationId: 'x', parameters, responses } } });
  const { operations, documented } = await compiled(document);
  const { state, size, text, ids } = Object(operations[0]?.tool.inputSchema.properties);
  assert.equal([state.default, size.default, text.default, ids.default], ['open', 30, undefined, undefined]);
  assert.equal(documented.get('x')?.().output, {
    type: 'object',
    properties: { a: { type: 'string' } },
  });
});

test('the documentation of an operation has its tags and the exact schema of its result, with definitions', async () => {
  const responses = {
    '200': { description: 'ok', content: { 'application/json': { schema: { $ref: '#/components/schemas/Tree' } } } },
  };
  const Tree = { type: 'array', items: { $ref: '#/components/schemas/Tree' } };
  const document = documentOf(
    { '/x': { get: { operationId: 'x', tags: ['trees', 7, 'more'], responses } }, '/y': reading('y', []) },
    { components: { schemas: { Tree } } },
  );
  const { documented, operations } = await compiled(document);
  const about = documented.get('x')?.();
  assert.equal(about?.tags, ['trees', 'more']);
  assert.equal(about?.output, {
    type: 'object',
    properties: { result: { $ref: '#/$defs/Tree' } },
    required: ['result'],
    $defs: { Tree: { type: 'array', items: { $ref: '#/$defs/Tree' } } },
  });
  assert.is(documented.get('y')?.().output, undefined);
  assert.is(operations[0]?.tool.outputSchema, undefined);
});
