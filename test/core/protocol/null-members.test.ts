/** An optional member that a client writes as null is as if it were missing, in each request and each revision. */
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { createServer, type Server } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';

const test = suite('members that are null');

function served(): Server {
  const server = createServer({ name: 'shop', version: '1', log: () => {} });
  const complete = { x: (typed: string) => [`${typed}!`] };
  server.tool('echo', { task: 'allowed' }, (args) => JSON.stringify(args));
  server.resource('a://{x}', { complete }, ({ variables }) => JSON.stringify(variables));
  server.prompt('p', { arguments: [{ name: 'x' }, { name: 'y' }], complete }, (args) => JSON.stringify(args));
  return server;
}

const REF = { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'x', value: 'v' } };
const PROGRESS = { progressToken: null };
/** The same request with nulls, and without. */
const COMMON: readonly (readonly [method: string, withNulls: JsonObject, without: JsonObject])[] = [
  ['tools/list', { cursor: null }, {}],
  ['tools/call', { name: 'echo', arguments: null, task: null }, { name: 'echo' }],
  ['tools/call', { name: 'echo', arguments: { a: null } }, { name: 'echo', arguments: { a: null } }],
  ['resources/list', { cursor: null }, {}],
  ['resources/templates/list', { cursor: null }, {}],
  ['resources/read', { uri: 'a://1', requestState: null, inputResponses: null }, { uri: 'a://1' }],
  ['prompts/list', { cursor: null }, {}],
  ['prompts/get', { name: 'p', arguments: null }, { name: 'p' }],
  ['prompts/get', { name: 'p', arguments: { x: '1', y: null } }, { name: 'p', arguments: { x: '1' } }],
  ['completion/complete', { ...REF, context: null }, REF],
  ['completion/complete', { ...REF, context: { arguments: null } }, REF],
];

for (const revision of ['2024-11-05', '2025-06-18', '2025-11-25'])
  test(`a session of ${revision} reads optional members that are null as missing`, async () => {
    const server = served();
    const client = await inSession(server, revision);
    for (const [method, withNulls, without] of COMMON) {
      const expected = await client.send(method, without);
      assert.equal(await client.send(method, { ...withNulls, _meta: null }), expected, method);
      assert.equal(await client.send(method, { ...withNulls, _meta: PROGRESS }), expected, method);
    }
    await client.close();
    await server.close();
  });

test('requests of the modern era read optional members that are null as missing', async () => {
  const server = served();
  const client = await connect(server);
  const LEVEL = { 'io.modelcontextprotocol/logLevel': null, 'io.modelcontextprotocol/clientInfo': null };
  for (const [method, withNulls, without] of COMMON)
    assert.equal(
      await client.modern(method, withNulls, { ...PROGRESS, ...LEVEL }),
      await client.modern(method, without),
      method,
    );
  await client.close();
  await server.close();
});

test('params that are null are no params, in requests and notifications', async () => {
  const server = served();
  const client = await inSession(server, '2025-11-25');
  client.raw('{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":null}');
  for (const method of ['ping', 'tools/list']) {
    client.raw(`{"jsonrpc":"2.0","id":"${method}","method":"${method}","params":null}`);
    const answer = await client.next();
    assert.ok(isObject(answer) && isObject(answer.result), JSON.stringify(answer));
  }
  await client.close();
  await server.close();
});

test('a required member that is null is named in the error', async () => {
  const server = served();
  const client = await inSession(server, '2025-11-25');
  for (const [method, params, expected] of [
    ['tools/call', { name: null }, 'params.name: expected a string, got null'],
    ['resources/read', { uri: null }, 'params.uri: expected a string, got null'],
    ['completion/complete', { ...REF, argument: null }, 'params.argument: expected an object, got null'],
  ] as const) {
    const error: unknown = await client.send(method, params).catch((thrown: unknown) => thrown);
    assert.match(error instanceof Error ? error.message : '', expected);
  }
  await client.close();
  await server.close();
});
