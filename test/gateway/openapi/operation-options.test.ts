/** Options of single operations, and files of bodies that are resources: what they change, and what they cannot. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type MountOptions, type OpenApiOptions, openapi, type Server, sqlite, ToolError } from 'troupe';
import { type Client, connect } from 'troupe/client';
import { connect as connectTest } from 'troupe/testing';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { readExact, writeJson } from '../../../src/core/protocol/json-text.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { pickedFrom, problemOfPointers } from '../../../src/gateway/openapi/picked-result.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { OPS } from '../../features/approvals/support.ts';
import { EXTENSION } from '../../features/tasks/support.ts';
import { suite } from '../../harness/door.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { apiServer, petsDocument } from './api-server.ts';
import { documentOf } from './documents.ts';

const test = suite('options of operations');

interface Stage {
  readonly host: Server;
  readonly client: Client;
  /** The requests that the API got, as texts. */
  readonly requests: readonly string[];
}

const TASKS: JsonObject = { [META.clientCapabilities]: EXTENSION };
const OK: JsonObject = { '200': { description: 'ok' } };

/** Mounts a document of an API that answers each request with `answer`. */
async function staged(
  paths: JsonObject,
  options: OpenApiOptions & { readonly mount?: MountOptions; readonly answer?: string },
  run: (stage: Stage) => Promise<void>,
): Promise<void> {
  const { mount = {}, answer = '{}', ...api } = options;
  const requests: string[] = [];
  const server = createHttpServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const type = request.headers['content-type'] ?? '';
      requests.push(`${request.method} ${request.url} ${type}\n${Buffer.concat(chunks).toString('latin1')}`);
      // One that never answers.
      if (request.url === '/slow') return;
      response.setHeader('content-type', 'application/json').end(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const host = createServer({ name: 'host', version: '1.0.0', log: () => {} });
  host.resource('app://reports/july.pdf', { mimeType: 'application/pdf' }, () => ({
    contents: [
      { uri: 'app://reports/july.pdf', mimeType: 'application/pdf', blob: Buffer.from('%PDF').toString('base64') },
    ],
  }));
  host.resource('app://notes', () => 'words');
  host.resource('app://hidden', { allow: () => ({ hidden: true }) }, () => 'secret');
  host.resource('app://asks', async (_, ctx) => (await ctx.roots()).join());
  const baseUrl = `http://127.0.0.1:${port}`;
  await (await host.mount('pets', openapi(documentOf(paths), { baseUrl, ...api }), mount)).ready();
  const client = await connect(host);
  try {
    await run({ host, client, requests });
  } finally {
    await client.close();
    await host.close();
    server.closeAllConnections();
    server.close();
  }
}

async function textOf(client: Client, tool: string, args?: JsonObject): Promise<string> {
  const { content } = await client.call(tool, args);
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('\n');
}

const READ: JsonObject = { get: { operationId: 'read', responses: OK } };
const LIST =
  '{"items":[{"id":1,"name":"a","price":12345678901234567890},{"id":2,"name":"b"}],"next":"n","debug":{"x":1}}';

test('pick passes on the members of a response that its pointers name, with the digits of their numbers', () =>
  staged(
    { '/x': READ },
    { answer: LIST, operations: { read: { result: { pick: ['/items/*/id', '/items/*/price', '/next'] } } } },
    async ({ client }) => {
      const text = await textOf(client, 'pets_read');
      assert.is(text, '{"items":[{"id":1,"price":12345678901234567890},{"id":2}],"next":"n"}');
    },
  ));

test('pick leaves the next page in _meta, errors as they are, and a tool without a schema of its results', () =>
  staged(
    {
      '/x': {
        get: {
          ...Object(READ.get),
          responses: { '200': { content: { 'application/json': { schema: { type: 'object' } } } } },
        },
      },
    },
    { answer: LIST, outputs: 'declare', operations: { read: { result: { pick: ['/items/0/id'] } } } },
    async ({ client }) => {
      const result = await client.call('pets_read');
      assert.equal(result.structuredContent, { items: [{ id: 1 }] });
      assert.is(Object(result._meta?.[META.http]).next, 'n');
      assert.is((await client.tools())[0]?.outputSchema, undefined);
    },
  ));

/** Values, pointers, and what is picked. */
const PICKED: readonly (readonly [string, readonly string[], string])[] = [
  ['[{"a":1,"b":2},{"b":3}]', ['/*/a'], '[{"a":1},{}]'],
  ['[1,2,3]', ['/0', '/2'], '[1,3]'],
  ['{"a":{"b":1,"c":2},"d":3}', ['/a', '/a/b'], '{"a":{"b":1,"c":2}}'],
  ['{"a":{"b":1,"c":2}}', ['/a/b', '/a'], '{"a":{"b":1,"c":2}}'],
  ['{"a":{"x":{"v":1,"w":2},"y":{"v":3,"w":4}}}', ['/a/*/v', '/a/x/w'], '{"a":{"x":{"v":1,"w":2},"y":{"v":3}}}'],
  ['{"a/b":1,"c~d":2,"e":3}', ['/a~1b', '/c~0d'], '{"a/b":1,"c~d":2}'],
  ['{"a":1}', ['/b', '/a/b'], '{}'],
  ['"text"', ['/a'], '{}'],
  ['{"__proto__":{"a":1},"b":2}', ['/__proto__/a'], '{"__proto__":{"a":1}}'],
  ['{"a":null,"b":false}', ['/a', '/b'], '{"a":null,"b":false}'],
];

for (const [value, pointers, expected] of PICKED)
  test(`${pointers.join(', ')} of ${value} is ${expected}`, () =>
    assert.is(writeJson(pickedFrom(readExact(value) as JsonObject, pointers)), expected));

for (const pointers of [[], ['id'], ['/a~2'], 'id', [1], Array.from({ length: 101 }, () => '/a')])
  test(`${JSON.stringify(pointers).slice(0, 30)} are no pointers`, () =>
    assert.match(String(problemOfPointers(pointers)), 'expected a list of 1 to 100 JSON Pointers'));

test('timeoutMs ends a call of one operation, and not those of others', () =>
  staged(
    { '/slow': { get: { operationId: 'slow', responses: OK } }, '/x': READ },
    { operations: { slow: { timeoutMs: 50 } } },
    async ({ client }) => {
      const late = await client.call('pets_slow').then(
        (result) => JSON.stringify(result),
        (error: unknown) => String(error),
      );
      assert.match(late, /50 ms|timed out|longer/);
      assert.is(await textOf(client, 'pets_read'), '{}');
    },
  ));

const REMOVE: JsonObject = {
  delete: {
    operationId: 'remove',
    parameters: [{ name: 'count', in: 'query', schema: { type: 'integer' } }],
    responses: OK,
  },
};

test('approve holds the calls of one operation that meet its conditions, beside those of the mount', () =>
  staged(
    { '/x': { ...REMOVE, ...READ } },
    { operations: { remove: { approve: { by: { scope: 'ops' }, when: { count: { min: 10 } }, expires: '1h' } } } },
    async ({ client, host, requests }) => {
      assert.is(await textOf(client, 'pets_read'), '{}');
      assert.is(await textOf(client, 'pets_remove', { count: 9 }), '{}');
      assert.match(await textOf(client, 'pets_remove', { count: 10 }), 'Not carried out yet');
      assert.is(requests.length, 2);
      const [approval] = await host.approvals.list();
      assert.match(approval?.text ?? '', 'Policy: mount pets: remove when count.');
      const olga = { principal: 'olga', scopes: ['ops'] };
      await host.approvals.decide(approval?.id ?? '', { approver: olga, decision: 'approve' });
      assert.is(await textOf(client, 'pets_remove', { count: 10 }), '{}');
      assert.is(requests.length, 3);
    },
  ));

test('approve: true of an operation asks its caller, and also if the operation has another name', () =>
  staged(
    { '/x': REMOVE },
    { operations: { remove: { approve: true, name: 'wipe' } }, mount: { rename: { wipe: 'pets_erase' } } },
    async ({ client, requests }) => {
      assert.match(await textOf(client, 'pets_erase'), 'it needs the approval of its user');
      assert.equal(requests, []);
    },
  ));

test('a catalogue that was stored before an operation needed approval lets no call run unapproved', async () => {
  const api = await apiServer();
  const store = new TestStore();
  const opened = async (options: OpenApiOptions): Promise<readonly [Server, Client]> => {
    const host = createServer({ name: 'host', version: '1.0.0', log: () => {}, store });
    const target = openapi(`${api.url}/openapi.json`, options);
    const mount = await host.mount('pets', target);
    await mount.ready().catch(() => {});
    return [host, await connect(host)];
  };
  const [first, earlier] = await opened({});
  assert.match(await textOf(earlier, 'pets_deletePet', { petId: '1' }), 'DELETE /pets/1');
  await earlier.close();
  await first.close();
  // The document cannot be read at the next start.
  api.document = { openapi: '9' };
  const [second, later] = await opened({ operations: { deletePet: { approve: true } } });
  const outcome = await textOf(later, 'pets_deletePet', { petId: '1' }).catch(String);
  assert.not.match(outcome, 'DELETE');
  api.document = petsDocument();
  await later.close();
  await second.close();
  await api.close();
});

test('instructions of a mount are a paragraph of the instructions of the server, until it closes', async () => {
  const host = createServer({ name: 'host', version: '1.0.0', log: () => {}, instructions: 'Be kind.' });
  const mount = await host.mount('pets', openapi(documentOf({ '/x': READ })), { instructions: 'Prices are in cents.' });
  const read = async (): Promise<string | undefined> => {
    const client = await connect(host);
    const { instructions } = client.server;
    await client.close();
    return instructions;
  };
  assert.is(await read(), 'Be kind.\n\npets: Prices are in cents.');
  await mount.change({ options: { instructions: 'Prices are in euros.' } });
  assert.is(await read(), 'Be kind.\n\npets: Prices are in euros.');
  await mount.close();
  assert.is(await read(), 'Be kind.');
  await host.close();
});

// Files

const UPLOAD: JsonObject = {
  post: {
    operationId: 'upload',
    requestBody: { required: true, content: { 'application/octet-stream': {} } },
    responses: OK,
  },
};
const FORM: JsonObject = {
  post: {
    operationId: 'attach',
    requestBody: {
      content: {
        'multipart/form-data': {
          schema: {
            type: 'object',
            properties: {
              title: { type: 'string' },
              file: { type: 'string', format: 'binary' },
              more: { type: 'array', items: { type: 'string', format: 'binary' } },
            },
          },
        },
      },
    },
    responses: OK,
  },
};

test('a file of a body is a resource that its caller can read, with its type and name', () =>
  staged({ '/u': UPLOAD, '/f': FORM }, {}, async ({ client, requests }) => {
    assert.is(await textOf(client, 'pets_upload', { body: { uri: 'app://reports/july.pdf' } }), '{}');
    assert.match(requests[0] ?? '', /^POST \/u application\/octet-stream\n%PDF$/);
    const body = {
      title: 'Two',
      file: { uri: 'app://reports/july.pdf' },
      more: [{ uri: 'app://notes', name: 'n.txt', type: 'text/x' }, { data: 'YQ==' }],
    };
    assert.is(await textOf(client, 'pets_attach', { body }), '{}');
    assert.match(
      requests[1] ?? '',
      /name="file"; filename="july\.pdf"\r\nContent-Type: application\/pdf\r\n\r\n%PDF\r\n/,
    );
    assert.match(requests[1] ?? '', /name="more"; filename="n\.txt"\r\nContent-Type: text\/x\r\n\r\nwords\r\n/);
    assert.match(requests[1] ?? '', /name="title"\r\n\r\nTwo\r\n/);
  }));

/** Files that are not sent. */
for (const [title, file, words] of [
  [
    'a resource that does not exist',
    { uri: 'app://none' },
    /the resource app:\/\/none cannot be sent: .*Nothing was sent/,
  ],
  ['a resource that a rule hides', { uri: 'app://hidden' }, /the resource app:\/\/hidden cannot be sent/],
  ['a resource that asks the caller', { uri: 'app://asks' }, /the resource app:\/\/asks cannot be sent/],
  ['a file of this machine', { uri: 'file:///etc/passwd' }, /the resource file:\/\/\/etc\/passwd cannot be sent/],
  [
    'a resource and data',
    { uri: 'app://notes', data: 'YQ==' },
    /with data in base64, or with the uri of a resource, got both/,
  ],
  ['neither', { name: 'x' }, /expected a file as \{ data: base64, type\?, name\? \} or \{ uri \}/],
  ['a number as uri', { uri: 1 }, /uri/],
] as const)
  test(`${title} is not sent`, () =>
    staged({ '/u': UPLOAD }, { mount: {} }, async ({ client, requests }) => {
      assert.match(await textOf(client, 'pets_upload', { body: file }), words);
      assert.equal(requests, []);
    }));

test('a resource is read with the rights of the caller of the tool', async () => {
  const seen: string[] = [];
  await staged({ '/u': UPLOAD }, {}, async ({ host, client }) => {
    host.resource('app://mine', (_, { principal }) => {
      seen.push(principal);
      if (principal !== 'ada') throw new ToolError('it belongs to Ada');
      return 'mine';
    });
    assert.match(await textOf(client, 'pets_upload', { body: { uri: 'app://mine' } }), 'it belongs to Ada');
    assert.equal(seen, ['anonymous']);
  });
});

test('a listed file says that it may be a resource', () =>
  staged({ '/u': UPLOAD }, {}, async ({ client }) => {
    const [tool] = await client.tools();
    const { body } = Object(tool?.inputSchema.properties);
    assert.ok(isObjectInTest(body) && isObjectInTest(body.properties));
    assert.equal(Object.keys(Object(body.properties)), ['data', 'uri', 'type', 'name']);
  }));

test('an approved operation that answers 202 is polled by the next process, and its request is sent once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-operation-'));
  const requests: string[] = [];
  let ready = false;
  const api = createHttpServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    if (request.method === 'POST') return response.writeHead(202, { location: '/jobs/1' }).end();
    if (!ready) return response.writeHead(202, { location: '/jobs/1', 'content-type': 'application/json' }).end('{}');
    return response.setHeader('content-type', 'application/json').end('{"state":"succeeded"}');
  });
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  const address = api.address();
  const baseUrl = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  const job: JsonObject = { post: { operationId: 'start', responses: { '202': { description: 'later' } } } };
  const opened = async (): Promise<Server> => {
    const store = sqlite(join(folder, 'a.db'));
    const host = createServer({ name: 'host', version: '1.0.0', log: () => {}, store, limits: { taskPollMs: 50 } });
    const target = openapi(documentOf({ '/jobs': job }), {
      baseUrl,
      operations: { start: { approve: { by: { scope: 'ops' } } } },
    });
    await (await host.mount('api', target)).ready();
    return host;
  };
  const ada = { auth: { principal: 'ada' } };
  const first = await opened();
  const client = await connectTest(first, ada);
  const created = await client.modern('tools/call', { name: 'api_start', arguments: {} }, TASKS);
  const { taskId = '' } = created;
  await until(async () => (await first.approvals.list()).length === 1);
  const [waiting] = await first.approvals.list();
  await first.approvals.decide(waiting?.id ?? '', { approver: OPS, decision: 'approve' });
  await until(() => requests.filter((each) => each === 'GET /jobs/1').length > 0);
  await first.close();
  const second = await opened();
  ready = true;
  const later = await connectTest(second, ada);
  const look = (): Promise<JsonObject> => later.modern('tasks/get', { taskId }, TASKS);
  await until(async () => (await look()).status !== 'working');
  const { status, result } = await look();
  assert.equal(
    [status, Object(result).structuredContent],
    ['completed', { state: 'succeeded' }],
    JSON.stringify(result),
  );
  assert.is(requests.filter((each) => each === 'POST /jobs').length, 1);
  await second.close();
  api.closeAllConnections();
  api.close();
  rmSync(folder, { recursive: true });
});
