/** Mounts of OpenAPI documents: calls, checks, filters, search, pins with requests, and documents that change. */
import { writeFileSync } from 'node:fs';
import { createServer, type Mount, type MountOptions, type OpenApiOptions, openapi, type Server } from 'troupe';
import { type Client, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { isJsonObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { Tree } from '../../features/discovery/tree.ts';
import { suite } from '../../harness/door.ts';
import { until } from '../../harness/wait.ts';
import { type ApiServer, apiServer, petsDocument } from './api-server.ts';
import { unreadable } from './api-stage.ts';
import { reading } from './documents.ts';

const test = suite('mounts of OpenAPI documents');

interface Stage {
  readonly api: ApiServer;
  readonly host: Server;
  readonly mount: Mount;
  readonly client: Client;
  readonly log: readonly string[];
}

const names = async (client: Client): Promise<string[]> =>
  (await client.tools({ fresh: true })).map(({ name }) => name);
const textOf = async (client: Client, tool: string, args?: JsonObject): Promise<string> => {
  const { content } = await client.call(tool, args);
  const [block] = content;
  return block?.type === 'text' ? block.text : '';
};

/** @param given a path of a document on this machine; default: the address of the API */
async function staged(
  options: MountOptions,
  run: (stage: Stage) => Promise<void>,
  { document, given, ...api }: OpenApiOptions & { readonly document?: JsonObject; readonly given?: string } = {},
): Promise<void> {
  const server = await apiServer(document);
  const log: string[] = [];
  const host = createServer({ name: 'host', version: '1.0.0', log: (_, message) => void log.push(message) });
  const mount = await host.mount('pets', openapi(given ?? `${server.url}/openapi.json`, api), options);
  const client = await connect(host);
  try {
    await mount.ready();
    await run({ api: server, host, mount, client, log });
  } finally {
    await client.close();
    await host.close();
    await server.close();
  }
}

test('operations are tools with the prefix of the mount, and a call is a request', () =>
  staged({}, async ({ api, client }) => {
    assert.equal(await names(client), ['pets_createPet', 'pets_deletePet', 'pets_listPets']);
    assert.equal(JSON.parse(await textOf(client, 'pets_listPets', { limit: 5 })), { did: 'GET /pets?limit=5' });
    assert.equal(JSON.parse(await textOf(client, 'pets_deletePet', { petId: 'a/b' })), { did: 'DELETE /pets/a%2Fb' });
    assert.equal(api.requests.slice(1), ['GET /pets?limit=5', 'DELETE /pets/a%2Fb']);
  }));

test('arguments that do not fit the document reach no server, unless nothing is checked', async () => {
  await staged({}, async ({ api, client }) => {
    assert.match(await textOf(client, 'pets_listPets', { limit: 500 }), 'limit');
    assert.match(await textOf(client, 'pets_createPet', { body: {} }), 'body.name');
    assert.match(await textOf(client, 'pets_listPets', { limt: 5 }), 'limt');
    assert.equal(api.requests, ['GET /openapi.json']);
  });
  await staged({ validate: false }, async ({ client }) =>
    assert.match(await textOf(client, 'pets_listPets', { limit: 500 }), 'limit=500'),
  );
});

for (const [title, options, api, expected] of [
  ['readOnly', {}, { readOnly: true }, ['pets_listPets']],
  ['only with a path', { only: ['POST /pets'] }, {}, ['pets_createPet']],
  ['except', { except: ['delete*'] }, {}, ['pets_createPet', 'pets_listPets']],
  ['prefix and rename', { prefix: false, rename: { listPets: 'pets' } }, { readOnly: true }, ['pets']],
] as const)
  test(`the options of the mount apply: ${title}`, () =>
    staged(options, async ({ client }) => assert.equal(await names(client), expected), api));

test('the defaults and hidden arguments of an override are sent', () =>
  staged(
    {},
    async ({ client }) => {
      assert.match(await textOf(client, 'pets_listPets'), 'GET /pets?limit=7');
      assert.match(await textOf(client, 'pets_listPets', { limit: 9 }), 'limit');
    },
    { operations: { listPets: { defaults: { limit: 7 }, hide: ['limit'] } } },
  ));

test('headers of the configuration are sent', () =>
  staged(
    {},
    async ({ api, client }) => {
      await textOf(client, 'pets_listPets');
      assert.is(api.headers['x-tenant'], 'acme');
    },
    { headers: { 'X-Tenant': 'acme' } },
  ));

// Many operations

const MANY = petsDocument({
  paths: Object.fromEntries(
    Array.from({ length: 101 }, (_, index) => [
      `/things/${index}`,
      reading(`getThing${index}`, [], { summary: `Reads thing ${index}` }),
    ]),
  ),
});

test('more than 100 operations are found by a search, and the option expose says otherwise', async () => {
  await staged(
    {},
    async ({ client, log }) => {
      assert.equal(await names(client), ['find_tools', 'call_tool']);
      assert.match(await textOf(client, 'find_tools', { query: 'thing 42' }), 'pets_getThing42()');
      assert.match(await textOf(client, 'call_tool', { name: 'pets_getThing42', arguments: {} }), 'GET /things/42');
      assert.match(log.join('\n'), 'mount "pets": 101 operations are found with find_tools');
    },
    { document: MANY },
  );
  await staged({ expose: 'all' }, async ({ client }) => assert.is((await names(client)).length, 101), {
    document: MANY,
  });
});

test('a document that grows beyond 100 operations is searched from then on, and one that shrinks is listed', () =>
  staged({}, async ({ api, client, mount }) => {
    assert.is((await names(client)).length, 3);
    api.document = MANY;
    await mount.refresh();
    assert.equal(await names(client), ['find_tools', 'call_tool']);
    api.document = petsDocument({ info: { title: 'Again', version: '3' } });
    await mount.refresh();
    assert.equal(await names(client), ['pets_createPet', 'pets_deletePet', 'pets_listPets']);
  }));

// Pins

/** The document with another request behind each tool that looks as before. */
const CHANGED: Readonly<Record<string, (document: JsonObject) => JsonObject>> = {
  'another path': (document) => ({
    ...document,
    paths: Object.fromEntries(
      Object.entries(isJsonObject(document.paths) ? document.paths : {}).map(([path, item]) => [`/v2${path}`, item]),
    ),
  }),
  'another server': (document) => ({ ...document, servers: [{ url: '/other' }] }),
  'other credentials': (document) => ({
    ...document,
    security: [{ key: [] }],
    components: {
      ...Object(document.components),
      securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } },
    },
  }),
};

for (const [title, change] of Object.entries(CHANGED))
  test(`hold withdraws tools behind which the document has ${title}, until they are approved`, () =>
    staged({ pins: 'hold' }, async ({ api, client, mount, log }) => {
      assert.equal(await names(client), []);
      assert.is((await mount.approve()).length, 3);
      assert.is((await names(client)).length, 3);
      api.document = change(petsDocument());
      await mount.refresh();
      assert.equal(await names(client), []);
      assert.match(log.join('\n'), 'tool "listPets": its request changed, held until it is approved');
      assert.equal(await mount.approve('listPets'), ['tool "listPets": its request changed']);
      assert.equal(await names(client), ['pets_listPets']);
    }));

test('a document that is only written in another order changes no pin', () =>
  staged({ pins: 'hold' }, async ({ api, client, mount }) => {
    await mount.approve();
    const reordered = (value: unknown): unknown =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([name, each]) => [name, reordered(each)]),
          )
        : value;
    api.document = { ...Object(reordered(petsDocument())), 'x-more': 1 };
    await mount.refresh();
    assert.is((await names(client)).length, 3);
  }));

// Changes

test('a file is watched, and a text that is no document changes nothing', async () => {
  const tree = new Tree({ 'api.json': JSON.stringify(petsDocument({ servers: [{ url: 'http://127.0.0.1:9' }] })) });
  await staged(
    {},
    async ({ client, log }) => {
      assert.is((await names(client)).length, 3);
      writeFileSync(tree.at('api.json'), '{ "openapi": ');
      await until(() => log.some((line) => line.includes('could not be listed')));
      assert.is((await names(client)).length, 3);
      const paths = { '/cats': reading('listCats', []) };
      writeFileSync(
        tree.at('api.json'),
        JSON.stringify(petsDocument({ servers: [{ url: 'http://127.0.0.1:9' }], paths })),
      );
      await until(async () => (await names(client)).join() === 'pets_listCats');
    },
    { given: tree.at('api.json') },
  );
});

test('a mount changes from a document to a server and back', () =>
  staged({}, async ({ api, client, mount }) => {
    const other = createServer({ name: 'other', version: '1.0.0', log: () => {} });
    other.tool('own', () => 'mine');
    await mount.change({ options: {}, target: other });
    assert.equal(await names(client), ['pets_own']);
    assert.is(await textOf(client, 'pets_own'), 'mine');
    await mount.change({ options: {}, target: openapi(`${api.url}/openapi.json`, { readOnly: true }) });
    assert.equal(await names(client), ['pets_listPets']);
    assert.match(await textOf(client, 'pets_listPets'), 'GET /pets');
    await other.close();
  }));

test('operations that are left out are reported', () =>
  staged(
    {},
    async ({ log }) => assert.match(log.join('\n'), 'GET /old is left out: deprecated. Name it in only to offer it'),
    {
      document: petsDocument({
        paths: { '/old': reading('old', [], { deprecated: true }), '/new': reading('new', []) },
      }),
    },
  ));

test('a stored catalogue is offered before the document is read, and its calls wait for the document', async () => {
  const tree = new Tree();
  const options = { catalogueFile: tree.at('catalogue.json') };
  const api = await apiServer();
  const target = openapi(`${api.url}/openapi.json`);
  const open = async (): Promise<readonly [Server, Mount, Client]> => {
    const host = createServer({ name: 'host', version: '1.0.0', log: () => {} });
    const mount = await host.mount('pets', target, options);
    return [host, mount, await connect(host)];
  };
  const [first, listed, client] = await open();
  await listed.ready();
  await client.close();
  await first.close();
  api.document = {};
  const [second, , again] = await open();
  assert.is((await names(again)).length, 3);
  assert.match(await textOf(again, 'pets_listPets'), 'expected an OpenAPI document');
  api.document = petsDocument();
  assert.match(await textOf(again, 'pets_listPets'), 'GET /pets');
  await again.close();
  await second.close();
  await api.close();
});

test('a call makes the request that was offered, or none', async () => {
  const api = await apiServer();
  const upstream = openapi(`${api.url}/openapi.json`).open({
    ...{ mount: 'pets', clock: systemClock, log: () => {}, maxResultLength: 1_000 },
    settings: { validate: true, maxListed: 100 },
    loadSignIns: () => Promise.reject(new Error('nobody signs in')),
    readResource: unreadable,
  });
  const { requests = {} } = await upstream.list(() => {});
  const call = (request: JsonObject | undefined): Promise<string> =>
    upstream.call('listPets', {}, request, Object.create(null)).then(
      () => 'it was made',
      (error: unknown) => String(error),
    );
  assert.match(
    await call({ ...requests.listPets, path: '/other' }),
    'has changed, and so has this tool. The call was not carried out',
  );
  assert.match(await call(undefined), 'has changed, and so has this tool');
  assert.match(await call(requests.listPets), 'nobody signs in');
  await upstream.close();
  await api.close();
});

test('an override for no operation is an error of the mount', async () => {
  const api = await apiServer();
  const host = createServer({ name: 'host', version: '1.0.0', log: () => {} });
  const target = openapi(`${api.url}/openapi.json`, { operations: { listPet: { title: 'x' } } });
  const mount = await host.mount('pets', target);
  const client = await connect(host);
  let message = '';
  await mount.ready().catch((error: unknown) => {
    message = String(error);
  });
  assert.match(message, 'operations.listPet: the document has no such operation (did you mean listPets?)');
  await client.close();
  await host.close();
  await api.close();
});
