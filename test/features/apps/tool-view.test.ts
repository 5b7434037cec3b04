/** The pages of tools with `app: true`: made of their schemas, and as visible as the tools. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { createServer, type Server } from '../../../src/index.ts';
import { connect, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { itemsOf, namesOf, refusalOf, session, WITH_VIEWS } from './support.ts';

const test = suite("a tool's view");

function weather(): Server {
  const server = createServer({ name: 'weather', version: '1.0.0', log: () => {} });
  server.tool(
    'forecast',
    {
      title: 'Forecast',
      description: 'Three days of weather',
      app: true,
      input: z.object({ city: z.string(), days: z.number().int().min(1).max(3).default(2) }),
      output: z.object({
        days: z
          .array(z.object({ rain: z.number().meta({ title: 'Rain in mm' }), at: z.string() }))
          .meta({ title: 'Days' }),
      }),
    },
    ({ days }) => ({ days: Array.from({ length: days }, (_, index) => ({ rain: index, at: 'noon' })) }),
  );
  server.tool('plain', { app: false }, () => 'plain');
  return server;
}

async function uriOf(client: TestClient, tool: string): Promise<unknown> {
  const found = itemsOf('tools/list', await client.modern('tools/list')).find(({ name }) => name === tool);
  return Object(Object(found?._meta).ui).resourceUri;
}

async function definitionAt(client: TestClient, uri: unknown): Promise<JsonObject> {
  const { contents } = await client.read(String(uri));
  return JSON.parse(/id="definition">(.*?)<\/script>/.exec(String(Object(contents[0]).text))?.[1] ?? '');
}

test('the page has a form of the arguments and the titles of the result', async () => {
  const server = weather();
  const client = await connect(server);
  const uri = await uriOf(client, 'forecast');
  assert.match(String(uri), /^ui:\/\/weather\/tools\/forecast\.[0-9a-f]{8}\.html$/);
  const { fields, ...rest } = await definitionAt(client, uri);
  assert.equal(rest, {
    kind: 'tool',
    server: 'weather',
    title: 'Forecast',
    tool: 'forecast',
    description: 'Three days of weather',
    output: { days: 'Days', rain: 'Rain in mm' },
  });
  const shown = Array.isArray(fields) ? fields.map((field) => Object(field)) : [];
  assert.equal(
    shown.map(({ name, field }) => [name, field.kind, field.initial]),
    [
      ['city', 'text', undefined],
      ['days', 'number', 2],
    ],
  );
  assert.is(await uriOf(client, 'plain'), undefined);
  assert.equal(await namesOf(client, 'resources/list', WITH_VIEWS), ['tools/forecast']);
  assert.equal(await namesOf(client, 'resources/list', {}), []);
  await server.close();
});

test('the page follows its tool: a changed schema has another address, and a removed tool has no page', async () => {
  const server = weather();
  const client = await connect(server);
  const first = await uriOf(client, 'forecast');
  server.tools.update({
    name: 'forecast',
    app: true,
    input: z.object({ place: z.string() }),
    handler: () => 'sunny',
  });
  const second = await uriOf(client, 'forecast');
  assert.is.not(second, first);
  const { fields, output } = await definitionAt(client, first);
  assert.equal([Object(Array.isArray(fields) ? fields[0] : {}).name, output], ['place', {}]);
  server.tools.remove('forecast');
  assert.match(await refusalOf(client.read(String(second))), /Resource not found/);
  await server.close();
});

test('S-66: a caller that may not see a tool sees no page of it', async () => {
  const server = weather();
  server.authorize(({ element }) => (element.name === 'forecast' ? { hidden: true } : true));
  const client = await session(server, '2025-11-25', true);
  assert.equal(await namesOf(client, 'resources/list'), []);
  const hidden = await refusalOf(client.send('resources/read', { uri: 'ui://weather/tools/forecast.00000000.html' }));
  const unknown = await refusalOf(client.send('resources/read', { uri: 'ui://weather/tools/nothing.00000000.html' }));
  assert.is(hidden, unknown);
  await server.close();
});

test('a markup in a description ends no block of the page', async () => {
  const server = createServer({ name: 'a', version: '1', log: () => {} });
  const description = '</script><script>steal()</script> $& <!--';
  server.tool('t', { app: true, description, input: z.object({ a: z.string().describe(description) }) }, () => '');
  const client = await connect(server);
  const uri = String(await uriOf(client, 't'));
  assert.is((await definitionAt(client, uri)).description, description);
  assert.not.match(String(Object((await client.read(uri)).contents[0]).text), /steal\(\)<\/script>/);
  await server.close();
});
