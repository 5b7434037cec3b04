/** What servers send in their own way is read as it is meant, and what the client returns is what strict clients accept. */
import {
  CallToolResultSchema,
  GetPromptResultSchema,
  ListPromptsResultSchema,
  ListResourcesResultSchema,
  ListResourceTemplatesResultSchema,
  ListToolsResultSchema,
} from '@modelcontextprotocol/sdk/types.js';
import fc from 'fast-check';
import { type Channel, type ChannelHost, type Client, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { readResult } from '../../src/client/received.ts';
import { suite } from '../harness/door.ts';
import { random } from '../harness/scale.ts';
import { PlayedServer, text } from './played-server.ts';

const test = suite('received from servers');

/** A client of a server with these results, by method. A function gets the cursor or the name. */
async function using(
  results: Readonly<Record<string, unknown>>,
  body: (client: Client, log: readonly string[]) => Promise<void>,
  capabilities: object = { tools: {}, resources: {}, prompts: {} },
): Promise<void> {
  const server = new PlayedServer();
  server.initialized = { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'n', version: '1' } };
  server.script = ({ id, method, name }) => {
    const result = results[method];
    if (result === undefined) return [text({ id, error: { code: -32601, message: `Method not found: ${method}` } })];
    return [text({ id, result: typeof result === 'function' ? result(name) : result })];
  };
  const log: string[] = [];
  const client = await server.connect(undefined, { log: (_, message) => void log.push(message) });
  await body(client, log);
  await client.close();
}

const odd = fc.oneof(
  fc.constant(null),
  fc.constantFrom<unknown>(7, '', 'text', true, false, [], {}, [null], ['x'], { title: null }, { x: 1 }),
);
const oddMembers = (...names: readonly string[]): fc.Arbitrary<object> =>
  fc.record(Object.fromEntries(names.map((name) => [name, odd])), { requiredKeys: [] });
const COMMON = ['title', 'description', 'icons', '_meta', 'annotations'];

for (const [method, member, schema, elements, list] of [
  [
    'tools/list',
    'tools',
    ListToolsResultSchema,
    fc
      .tuple(oddMembers(...COMMON, 'inputSchema', 'outputSchema', 'execution'))
      .map(([more]) => ({ name: 't', ...more })),
    (client: Client) => client.tools(),
  ],
  [
    'resources/list',
    'resources',
    ListResourcesResultSchema,
    oddMembers(...COMMON, 'name', 'mimeType', 'size').map((more) => ({ uri: 'a://1', ...more })),
    (client: Client) => client.resources(),
  ],
  [
    'resources/templates/list',
    'resourceTemplates',
    ListResourceTemplatesResultSchema,
    oddMembers(...COMMON, 'name', 'mimeType').map((more) => ({ uriTemplate: 'a://{b}', ...more })),
    (client: Client) => client.templates(),
  ],
  [
    'prompts/list',
    'prompts',
    ListPromptsResultSchema,
    oddMembers('title', 'description', 'icons', '_meta', 'arguments').map((more) => ({ name: 'p', ...more })),
    (client: Client) => client.prompts(),
  ],
] as const)
  test(`${method}: the official schema accepts every list, whatever an element has in its optional members`, () =>
    fc.assert(
      fc.asyncProperty(fc.array<object>(elements as fc.Arbitrary<object>, { maxLength: 4 }), (sent) =>
        using({ [method]: { [member]: sent } }, async (client) => {
          const listed = await list(client);
          const checked = schema.safeParse({ [member]: listed });
          assert.ok(checked.success, JSON.stringify({ sent, listed }));
        }),
      ),
      { numRuns: random(300) },
    ));

test('elements without faults come as they were sent, with unknown members', async () => {
  const tool = {
    name: 't',
    inputSchema: { type: 'object', properties: { a: { default: null, enum: [null, 1] } }, default: null },
    annotations: { readOnlyHint: true, 'x-own': 1 },
    _meta: { a: null },
    'x-own': null,
  };
  await using({ 'tools/list': { tools: [tool] } }, async (client, log) => {
    assert.equal(await client.tools(), [tool]);
    assert.equal(log, []);
  });
});

for (const [what, given, kept] of [
  ['no schema', undefined, { type: 'object' }],
  ['null', null, { type: 'object' }],
  ['no type', { properties: {} }, { type: 'object', properties: {} }],
  ['a list of types', { type: ['object', 'null'] }, { type: 'object' }],
  ['null keywords', { type: 'object', properties: null, required: null }, { type: 'object' }],
  ['a text', 'object', undefined],
  [
    'a reference to nothing',
    { type: 'object', properties: { a: { $ref: '#/$defs/A', title: 'a' } } },
    { type: 'object', properties: { a: { title: 'a' } } },
  ],
  [
    'a definition that is nested where its reference does not look',
    { type: 'object', properties: { a: { $defs: { A: {} }, anyOf: [{ $ref: '#/$defs/A' }, { type: 'null' }] } } },
    { type: 'object', properties: { a: { $defs: { A: {} }, anyOf: [{}, { type: 'null' }] } } },
  ],
  ['another type', { type: 'string' }, undefined],
] as const)
  test(`a tool whose input schema is ${what} ${kept ? 'is offered' : 'is left out, and the others stay'}`, () =>
    using(
      {
        'tools/list': {
          tools: [
            { name: 'odd', inputSchema: given },
            { name: 'fine', inputSchema: { type: 'object' } },
          ],
        },
      },
      async (client) => {
        const tools = await client.tools();
        assert.is(tools.at(-1)?.name, 'fine');
        assert.equal(tools.find(({ name }) => name === 'odd')?.inputSchema, kept);
      },
    ));

const DONE = [{ type: 'text', text: 'done' }];
/** A number in place of a text, and members that a text does not have. */
const SEVEN = { type: 'text', text: '7' };
const REST = { data: {}, uri: [], resource: 'x' };
for (const [what, sent, expected] of [
  ['data without content', { structuredContent: { a: 1 } }, { content: [], structuredContent: { a: 1 } }],
  ['nothing', {}, { content: [] }],
  ['null content', { content: null }, { content: [] }],
  ['text as content', { content: 'done' }, { content: DONE }],
  ['one block as content', { content: DONE[0] }, { content: DONE }],
  ['null members', { content: DONE, isError: null, structuredContent: null, _meta: null }, { content: DONE }],
  ['null in a block', { content: [{ ...DONE[0], annotations: null, _meta: null }] }, { content: DONE }],
  ['a block that is null', { content: [null, ...DONE] }, { content: DONE }],
  ...['text', 'image', 'audio', 'resource_link', 'resource'].flatMap((type) =>
    [{}, { text: null, data: null, uri: null, resource: null }, { text: 7, data: {}, uri: [], resource: 'x' }].map(
      (members) =>
        [
          `a block "${type}" with the members ${JSON.stringify(members)}`,
          { content: [{ type, ...members }, ...DONE] },
          {
            content:
              type === 'text' && 'text' in members && members.text === 7 ? [{ ...SEVEN, ...REST }, ...DONE] : DONE,
          },
        ] as const,
    ),
  ),
  ...[5, true, { a: [1] }, []].map(
    (said) =>
      [
        `the text ${JSON.stringify(said)}`,
        { content: [{ type: 'text', text: said }] },
        { content: [{ type: 'text', text: JSON.stringify(said) }] },
      ] as const,
  ),
  ['a failure as text', { content: DONE, isError: 'true' }, { content: DONE, isError: true }],
  ['a failure as a number', { content: DONE, isError: 1 }, { content: DONE, isError: true }],
  ['no failure as text', { content: DONE, isError: 'false' }, { content: DONE }],
  [
    'a link without a name',
    { content: [{ type: 'resource_link', uri: 'x://y', name: null }] },
    { content: [{ type: 'resource_link', uri: 'x://y', name: 'x://y' }] },
  ],
  [
    'an image as a data URI',
    { content: [{ type: 'image', data: 'data:image/gif;base64,R0lG', mimeType: 'image/png' }] },
    { content: [{ type: 'image', data: 'R0lG', mimeType: 'image/gif' }] },
  ],
  [
    'a sound in base64 for URLs, in lines and without padding',
    { content: [{ type: 'audio', data: '-_\n8', mimeType: 'audio/wav' }] },
    { content: [{ type: 'audio', data: '+/8=', mimeType: 'audio/wav' }] },
  ],
  [
    'the address of an image',
    { content: [{ type: 'image', data: 'https://example.com/a.png', mimeType: 'image/png', _meta: { a: 1 } }] },
    { content: [{ type: 'text', text: 'https://example.com/a.png', _meta: { a: 1 } }] },
  ],
  [
    'a blob as a data URI',
    { content: [{ type: 'resource', resource: { uri: 'x://y', blob: 'data:,a' } }] },
    { content: [{ type: 'resource', resource: { uri: 'x://y', blob: 'YQ==' } }] },
  ],
  [
    'a blob that is not base64',
    { content: [{ type: 'resource', resource: { uri: 'x://y', blob: 'no base64' } }] },
    { content: [{ type: 'resource', resource: { uri: 'x://y', text: 'no base64' } }] },
  ],
] as const)
  test(`the result of a tool with ${what} is read`, () =>
    using({ 'tools/call': sent }, async (client, log) => {
      const result = await client.call('x');
      assert.equal(result, expected);
      assert.ok(CallToolResultSchema.safeParse(result).success);
      assert.ok(
        log.some((line) => line.includes('repaired in tools/call')),
        log.join('\n'),
      );
    }));

test('the data of images and blobs in contents and prompts is read as that of results', () =>
  using(
    {
      'resources/read': { contents: [{ uri: 'x://y', blob: 'data:image/gif;base64,R0lG' }] },
      'prompts/get': {
        messages: [
          { role: 'user', content: { type: 'image', data: 'data:image/gif;base64,R0lG', mimeType: 'image/png' } },
          { role: 'user', content: { type: 'image', data: 'R0lG', mimeType: 'image/gif' } },
        ],
      },
    },
    async (client, log) => {
      assert.equal((await client.read('x://y')).contents, [{ uri: 'x://y', blob: 'R0lG', mimeType: 'image/gif' }]);
      const content = { type: 'image', data: 'R0lG', mimeType: 'image/gif' };
      assert.equal((await client.prompt('p')).messages, [
        { role: 'user', content },
        { role: 'user', content },
      ]);
      assert.is(log.filter((line) => line.includes('repaired in')).length, 2, log.join('\n'));
    },
  ));

const TEXT = { type: 'text', text: 'a' };
const SAID = { role: 'user', content: TEXT };

for (const [what, sent, expected] of [
  ['texts as contents', [{ role: 'assistant', content: 'a' }], [{ role: 'assistant', content: TEXT }]],
  ['lists of blocks', [{ role: 'user', content: [TEXT, null, { type: 'text' }, TEXT] }], [SAID, SAID]],
  ['other roles', [{ role: 'system', content: TEXT }, { content: TEXT }], [SAID, SAID]],
  ['nothing that can be read', [null, 5, {}, { role: 'user' }, { role: 'user', content: null }, SAID], [SAID]],
  ['a block without its text', [{ role: 'user', content: { type: 'text' } }, SAID], [SAID]],
  ['blocks in the place of messages', [TEXT, SAID], [SAID, SAID]],
  ['texts in their place', ['a'], [SAID]],
  ['one message', SAID, [SAID]],
  ['one text', 'a', [SAID]],
] as const)
  test(`a prompt with ${what} is read`, () =>
    using({ 'prompts/get': { messages: sent } }, async (client, log) => {
      const result = await client.prompt('p');
      assert.equal(result.messages, expected);
      assert.ok(GetPromptResultSchema.safeParse(result).success);
      assert.ok(log.some((line) => line.includes('repaired in prompts/get')));
    }));

test('the result in a task of 2026-07-28 is read as that of a tool, and a task without one stays as it came', () => {
  const repairs: string[] = [];
  const read = (task: object): unknown => readResult('tasks/get', task, (member) => void repairs.push(member));
  assert.equal(read({ taskId: 'k', status: 'completed', result: { content: [null, TEXT], isError: 'no' } }), {
    taskId: 'k',
    status: 'completed',
    result: { content: [TEXT] },
  });
  assert.equal(repairs, ['isError', 'content', 'result']);
  for (const task of [
    { taskId: 'k', status: 'working' },
    { status: 'completed', result: { content: [TEXT] } },
    { result: 5 },
  ])
    assert.is(read(task), task);
  assert.is(repairs.length, 3);
});

test('a list that is not implemented, or null, is empty, and the others are listed', () =>
  using(
    { 'tools/list': { tools: [{ name: 't', inputSchema: { type: 'object' } }] }, 'prompts/list': { prompts: null } },
    async (client, log) => {
      assert.is((await client.tools()).length, 1);
      assert.equal([await client.resources(), await client.templates(), await client.prompts()], [[], [], []]);
      assert.ok(log.some((line) => line.includes('resources/list')));
    },
  ));

test('capabilities that are null are not declared', () =>
  using(
    {},
    async (client) => {
      assert.equal(await client.prompts(), []);
      assert.equal(client.server.capabilities, { tools: {} });
    },
    { tools: {}, prompts: null, logging: null },
  ));

test('the progress of a task reaches its call until the task ends', async () => {
  const server = new PlayedServer();
  server.initialized = {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
    serverInfo: { name: 't', version: '1' },
  };
  let token = 0;
  const progress = (value: number): void =>
    server.current?.send({
      type: 'text',
      text: text({ method: 'notifications/progress', params: { progressToken: token, progress: value } }),
      about: undefined,
    });
  const times = { createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z', ttl: 60_000 };
  server.script = ({ id, method }) => {
    if (method === 'tools/call') token = id;
    const results: Readonly<Record<string, object>> = {
      'tools/list': {
        tools: [{ name: 'long', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } }],
      },
      'tools/call': { task: { taskId: 't1', status: 'working', ...times } },
      'tasks/get': { taskId: 't1', status: 'completed', ...times },
      'tasks/result': { content: DONE },
    };
    return [text({ id, result: results[method] ?? {} })];
  };
  const client = await server.connect(undefined);
  const seen: number[] = [];
  const task = await client.start('long', {}, { onProgress: (report) => void seen.push(report.progress) });
  progress(1);
  progress(2);
  assert.equal((await task.result()).content, DONE);
  progress(3);
  await client.tools({ fresh: true });
  assert.equal(seen, [1, 2]);
  await client.close();
});

const page = (name: string, nextCursor: unknown): object => ({
  tools: [{ name, inputSchema: { type: 'object' } }],
  nextCursor,
});
for (const [what, pages, names] of [
  ['an empty cursor', () => page('a', ''), ['a']],
  ['a null cursor', () => page('a', null), ['a']],
  ['a cursor that is a number', () => page('a', 7), ['a']],
  ['the same page again and again', () => page('a', 'x'), ['a']],
  ['new pages under one cursor', (cursor: string) => page(cursor === '' ? 'a' : 'b', 'x'), ['a', 'b']],
  ['two cursors in turns', (cursor: string) => page(`${cursor}t`, cursor === 'x' ? 'y' : 'x'), ['t', 'xt', 'yt']],
  ['an end', (cursor: string) => page(`${cursor}t`, cursor === '' ? 'x' : undefined), ['t', 'xt']],
] as const)
  test(`a list with ${what} ends`, () =>
    using({ 'tools/list': pages }, async (client) =>
      assert.equal(
        (await client.tools()).map(({ name }) => name),
        names,
      ),
    ));

test('ids and progress tokens that a server sends back as text belong to the requests with these numbers', async () => {
  const server = new PlayedServer();
  server.script = ({ id, method }) => [
    text({ method: 'notifications/progress', params: { progressToken: String(id), progress: 1 } }),
    text({ id: String(id), result: method === 'tools/list' ? { tools: [] } : { content: DONE } }),
    // A text that only looks like a number is another id.
    text({ id: `0${id}`, result: { content: [] } }),
    text({ id: `${id}.0`, error: { code: 1, message: 'no' } }),
  ];
  const client = await server.connect(undefined);
  const seen: number[] = [];
  const result = await client.call('a', {}, { onProgress: ({ progress }) => void seen.push(progress) });
  assert.equal([result.content, seen], [DONE, [1]]);
  assert.equal(await client.tools(), []);
  await client.close();
});

test('the id of a subscription that a server sends back as text belongs to its request', async () => {
  let host: ChannelHost | undefined;
  const respond = (message: object): void => host?.send({ type: 'text', text: text(message), about: undefined });
  const channel = (): Channel => ({
    kind: 'stream',
    open(to) {
      host = to;
      to.send({ type: 'opened' });
    },
    send(message) {
      const { id, method } = JSON.parse(message.text);
      const common = {
        resultType: 'complete',
        serverInfo: { name: 'n', version: '1' },
        ttlMs: 0,
        cacheScope: 'private',
      };
      const capabilities = { tools: { listChanged: true } };
      if (method === 'server/discover')
        return respond({ id, result: { ...common, supportedVersions: ['2026-07-28'], capabilities } });
      if (method !== 'subscriptions/listen') return;
      const _meta = { 'io.modelcontextprotocol/subscriptionId': String(id) };
      const notifications = { toolsListChanged: true };
      respond({ method: 'notifications/subscriptions/acknowledged', params: { _meta, notifications } });
      respond({ method: 'notifications/tools/list_changed', params: { _meta } });
    },
    abandon() {},
    answered() {},
    close: () => Promise.resolve(),
  });
  const client = await connect({ name: 'stage', channel }, { log: () => {}, drainMs: 1 });
  for await (const { type } of client.changes({ tools: true })) {
    assert.is(type, 'tools');
    break;
  }
  await client.close();
});
