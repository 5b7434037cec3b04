/** What passes from an upstream: nothing in the name of this server, no definition without a bound, and long messages by an option. */
import { createServer, type MountOptions } from 'troupe';
import { type Client, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { PlayedServer, text } from '../../client/played-server.ts';
import { suite } from '../../harness/door.ts';

const test = suite('passing of a mount');

/** A gateway to one upstream with these results, and a client of it. */
async function using(
  results: Readonly<Record<string, unknown>>,
  options: MountOptions,
  body: (client: Client, log: readonly string[]) => Promise<void>,
): Promise<void> {
  const log: string[] = [];
  const host = createServer({ name: 'host', version: '1', log: (_, message) => void log.push(message) });
  const upstream = new PlayedServer();
  upstream.initialized = { ...upstream.initialized, capabilities: { tools: {}, resources: {}, prompts: {} } };
  upstream.script = ({ id, method }) => [text({ id, result: results[method] ?? {} })];
  const mount = await host.mount('up', { name: 'up', channel: () => upstream.channel() }, { pins: 'off', ...options });
  await mount.ready();
  const client = await connect(host, { maxMessageBytes: 64_000_000 });
  await body(client, log);
  await client.close();
  await host.close();
}

const OWN = {
  'io.troupe/upstream-failure': { upstream: 'other', reason: 'closed', carriedOut: 'no', retry: 'safe' },
  'io.troupe/retry-after-ms': 86_400_000,
  'io.troupe/anything': 1,
};
const META = { ...OWN, 'example.com/kept': 1 };
const inputSchema = { type: 'object' };
const TOOLS = { tools: [{ name: 'a', inputSchema, _meta: META, annotations: { title: 'A', _meta: META } }] };

test('a block of an unknown type becomes text that says the same, for clients that reject unknown types', () =>
  using(
    {
      'tools/list': { tools: [{ name: 'a', inputSchema: { type: 'object' } }] },
      'tools/call': {
        content: [
          { type: 'error', text: 'The budget is closed.', annotations: { priority: 1 }, _meta: { 'example.com/a': 1 } },
          { type: 'json', json: { a: [1] }, _meta: { 'example.com/a': 1 } },
          { type: 'video', data: 'A'.repeat(70_000) },
        ],
      },
    },
    {},
    async (client) =>
      assert.equal((await client.call('up_a')).content, [
        { type: 'text', text: 'The budget is closed.', annotations: { priority: 1 }, _meta: { 'example.com/a': 1 } },
        { type: 'text', text: '{"type":"json","json":{"a":[1]}}', _meta: { 'example.com/a': 1 } },
        { type: 'text', text: '[video content, which protocol revision 2026-07-28 does not have]' },
      ]),
  ));

test('S-91 nothing under io.troupe/ passes from an upstream, in any part of a result or a definition', () =>
  using(
    {
      'tools/list': TOOLS,
      'tools/call': {
        content: [
          { type: 'text', text: 'x', _meta: META, annotations: { priority: 1, _meta: META } },
          { type: 'resource', resource: { uri: 'a://1', text: '', _meta: META } },
        ],
        _meta: META,
      },
      'resources/list': { resources: [{ uri: 'a://1', name: 'r', _meta: META }] },
      'resources/read': { contents: [{ uri: 'a://1', text: '', _meta: META }], _meta: META },
      'prompts/list': { prompts: [{ name: 'p', _meta: META }] },
      'prompts/get': { messages: [{ role: 'user', content: { type: 'text', text: '', _meta: META } }], _meta: META },
    },
    {},
    async (client) => {
      const got = JSON.stringify([
        await client.tools(),
        await client.resources(),
        await client.prompts(),
        await client.call('up_a'),
        await client.read('up+a://1'),
        await client.prompt('up_p'),
      ]);
      assert.not.match(got, 'io.troupe/');
      assert.is(got.split('example.com/kept').length - 1, 12, got);
    },
  ));

for (const odd of [
  undefined,
  null,
  5,
  {},
  [{ uri: 'a://1' }],
  [{ uri: 'a://1', text: null, blob: {} }],
  [null, 5, 'a', { role: 'system', content: [null, 'b'] }],
  'c',
])
  test(`a prompt and a resource whose results have ${JSON.stringify(odd)} as their lists are shown, or fail as results of the upstream`, () =>
    using(
      {
        'prompts/list': { prompts: [{ name: 'p' }] },
        'resources/list': { resources: [{ uri: 'a://1', name: 'r' }] },
        'prompts/get': { messages: odd },
        'resources/read': { contents: odd },
      },
      {},
      async (client, log) => {
        for (const ask of [() => client.prompt('up_p'), () => client.read('up+a://1')])
          await ask().catch((error: Error) =>
            assert.match(error.message, /^host: up: the response of the server cannot be read/),
          );
        assert.not.ok(
          log.some((line) => /incident|TypeError/.test(line)),
          log.join('\n'),
        );
      },
    ));

test('S-92 a definition beyond maxDefinitionBytes is left out, and the operator reads the option', () =>
  using(
    { 'tools/list': { tools: [{ name: 'long', inputSchema, description: 'x'.repeat(2_000_000) }, ...TOOLS.tools] } },
    {},
    async (client, log) => {
      assert.equal(
        (await client.tools()).map(({ name }) => name),
        ['up_a'],
      );
      assert.ok(
        log.some((line) => /"long" is left out.*maxDefinitionBytes/s.test(line)),
        log.join('\n'),
      );
    },
  ));

const SOUND = { content: [{ type: 'audio', data: 'A'.repeat(5_000_000), mimeType: 'audio/mpeg' }] };

test('a message of 5 MB passes with the option maxMessageBytes, and without it the call names the option', async () => {
  const results = { 'tools/list': TOOLS, 'tools/call': SOUND };
  await using(results, { maxMessageBytes: 8_000_000 }, async (client) =>
    assert.equal((await client.call('up_a')).content, SOUND.content),
  );
  // A channel in memory has no bound of its own: the bound of calls shows.
  await using(results, { maxMessageBytes: 1_000 }, async (client) => {
    const result = await client.call('up_a', { long: 'x'.repeat(2_000) });
    assert.is(result.isError, true);
    assert.match(JSON.stringify(result.content), 'maxMessageBytes');
  });
});
