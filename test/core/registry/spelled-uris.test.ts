/** A resource whose URI has characters that RFC 3986 does not allow is found in each spelling that clients send. */
import { createServer } from 'troupe';
import { connect } from 'troupe/client';
import { connect as openTest, type TestClient } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { clientError } from '../../client/fixture.ts';
import { suite } from '../../harness/door.ts';

const test = suite('spelled URIs');

const SPELLINGS = ['notes://été/x y', 'notes://%C3%A9t%C3%A9/x%20y', 'notes://%c3%a9té/x%20y'] as const;
const OTHERS = ['notes://été/x+y', 'notes://ete/x y', 'notes://été/x%2520y', 'notes://été/x y/', 'notes://%C3t%C3/x y'];

function served() {
  const server = createServer({ name: 'notes', version: '1', log: () => {} });
  server.resource('notes://plain', {}, () => 'plain');
  server.resource('notes://été/x y', {}, ({ uri }) => `it is ${uri}`);
  server.resource('notes://100%25', {}, () => 'all');
  return server;
}

for (const eras of ['legacy', 'modern'] as const) {
  test(`a ${eras} client reads a resource by each spelling of its URI, also through a gateway`, async () => {
    const server = served();
    const gateway = createServer({ name: 'gateway', version: '1', log: () => {} });
    await gateway.mount('up', server, { prefix: false });
    for (const target of [server, gateway]) {
      const client = await connect(target, { eras });
      for (const uri of SPELLINGS) {
        const [only] = (await client.read(uri)).contents;
        assert.is(only && 'text' in only && only.text, 'it is notes://été/x y', uri);
      }
      assert.is((await client.read('notes://100%25')).contents.length, 1);
      for (const uri of [...OTHERS, 'notes://100%', 'notes://100%2525'])
        assert.match((await clientError(client.read(uri))).message, 'Resource not found', uri);
      await client.close();
    }
    await gateway.close();
    await server.close();
  });
}

const updatesOf = (client: TestClient): unknown[] =>
  client.notifications.flatMap(({ method, params }) =>
    method === 'notifications/resources/updated' ? Object(params).uri : [],
  );

test('a session watches a resource by one spelling of its URI, and ceases by another', async () => {
  const server = served();
  const client = await openTest(server);
  await client.initialize('2025-11-25');
  await client.send('resources/subscribe', { uri: SPELLINGS[1] });
  server.resourceUpdated(SPELLINGS[0]);
  await client.next();
  assert.equal(updatesOf(client), [SPELLINGS[0]]);
  await client.send('resources/unsubscribe', { uri: SPELLINGS[2] });
  server.resourceUpdated(SPELLINGS[0]);
  await client.send('ping');
  await client.send('ping');
  assert.is(updatesOf(client).length, 1);
  await client.close();
  await server.close();
});

test('a stream of changes reports a resource that was asked for by another spelling of its URI', async () => {
  const server = served();
  const client = await openTest(server);
  void client.modern('subscriptions/listen', { notifications: { resourceSubscriptions: [SPELLINGS[1]] } });
  await client.next();
  server.resourceUpdated(SPELLINGS[0]);
  await client.next();
  assert.equal(updatesOf(client), [SPELLINGS[0]]);
  await client.close();
  await server.close();
});
