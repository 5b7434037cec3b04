/** The search in mounted tools: what it finds, what it costs, and whose rules hold for what it finds and calls. */
import { createServer, type ServerOptions } from 'troupe';
import { connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { memberTypes } from '../../../src/core/schema/written-types.ts';
import { ToolIndex } from '../../../src/gateway/mounts/tool-index.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { MANY_TOOLS, QUERIES } from './many-tools.ts';

const test = suite('search in mounted tools');

const server = (name: string, options: Partial<ServerOptions> = {}) =>
  createServer({ name, version: '1.0.0', log: () => {}, ...options });

/** A server with the two hundred tools, whose handlers say their names. */
function many() {
  const upstream = server('many');
  for (const { name, description = '', inputSchema } of MANY_TOOLS)
    upstream.tool(name, { description, input: inputSchema }, () => name);
  return upstream;
}

test('the right tool is among the first five for 95 of 100 queries over two hundred tools', async () => {
  assert.ok(MANY_TOOLS.length >= 200);
  assert.ok(QUERIES.length >= 60);
  const index = new ToolIndex();
  const tools = MANY_TOOLS.map((definition, ref) => ({ key: definition.name, ref, definition, source: 'mount many' }));
  await index.update(() => tools);
  const missed = QUERIES.filter(([query, tool]) => {
    assert.ok(tools.some(({ key }) => key === tool));
    return !index.find(query, 5, () => true).tools.some(({ key }) => key === tool);
  });
  assert.ok(missed.length <= QUERIES.length * 0.05, `missed: ${missed.map(([query]) => query).join(', ')}`);
});

test('two tools and a search cost at most a twentieth of the list, counted as characters of JSON divided by four', async () => {
  const everything = server('all');
  await everything.mount('many', many(), { prefix: false });
  const searched = server('searched');
  await searched.mount('many', many(), { prefix: false, expose: 'search' });
  const all = await connect(everything);
  const few = await connect(searched);
  const tokens = (value: unknown): number => JSON.stringify(value).length / 4;
  const whole = tokens(await all.tools());
  const listed = await few.tools();
  assert.equal(
    listed.map(({ name }) => name),
    ['find_tools', 'call_tool'],
  );
  for (const query of ['open an issue on github', 'schedule a meeting', 'logs of a pod']) {
    const cost = tokens(listed) + tokens(await few.call('find_tools', { query }));
    assert.ok(cost <= whole * 0.05, `${cost} of ${whole} tokens for "${query}"`);
  }
  await Promise.all([all.close(), few.close(), everything.close(), searched.close()]);
});

test('the texts of one upstream take a bounded part of the index, of which each of its tools has the same share', async () => {
  const index = new ToolIndex();
  const word = (tool: number): string => `w${tool.toString(36)}q`;
  const text = (tool: number): string => `about${tool * 7_919}`;
  const end = (tool: number): string => `ending${tool * 7_919}`;
  const tools = Array.from({ length: 1_000 }, (_, ref) => ({
    key: `tool_${word(ref)}`,
    ref,
    source: ref < 999 ? 'mount long' : 'mount short',
    definition: {
      name: `tool_${word(ref)}`,
      description: `${text(ref)} ${'filler '.repeat(60)} ${end(ref)}`,
      inputSchema: { type: 'object' },
    },
  }));
  await index.update(() => tools);
  const first = (query: string): string | undefined => index.find(query, 1, () => true).tools[0]?.key;
  // The first and the last of the list are found by the beginnings of their texts, and none by the end.
  for (const tool of [3, 998, 999]) assert.is(first(text(tool)), `tool_${word(tool)}`);
  assert.is(index.find(end(998), 1, (key) => key === `tool_${word(998)}`).matches, 0);
  assert.is(first(end(999)), `tool_${word(999)}`);
  assert.is(first(`tool_${word(998)}`), `tool_${word(998)}`);
  // The texts of tools that are gone count no longer.
  await index.update(() => tools.slice(990));
  await index.update(() => [...tools.slice(990), ...tools.slice(5, 6).map((tool) => ({ ...tool, ref: 2_000 }))]);
  assert.is(first(end(5)), `tool_${word(5)}`);
});

test('a tool about nothing else than the query is before those that have more words about something else', async () => {
  const index = new ToolIndex();
  const described: readonly (readonly [name: string, description: string])[] = [
    ['orgs_create_issue_type', 'Creates an issue type for an organization. Issue types are of issues.'],
    ['issues_add_sub_issue', 'Adds a sub-issue to an issue. An issue may have many issues.'],
    ['issues_create', 'Create an issue\n\nAny user with pull access can create an issue.'],
    ['issues_create_comment', 'Creates a comment on an issue.'],
    ['repos_get', 'Get a repository'],
    ['actions_get_repository_access', 'Gets the access of workflows in a repository to the repository.'],
  ];
  await index.update(() =>
    described.map(([name, description], ref) => ({
      ...{ key: name, ref, source: 'mount a' },
      definition: { name, description, inputSchema: { type: 'object' } },
    })),
  );
  for (const [query, name] of [
    ['create an issue', 'issues_create'],
    ['comment on an issue', 'issues_create_comment'],
    ['get a repository', 'repos_get'],
    ['add a sub-issue', 'issues_add_sub_issue'],
  ] as const)
    assert.is(index.find(query, 1, () => true).tools[0]?.key, name, query);
});

for (const eras of ['legacy', 'modern'] as const)
  test(`a ${eras} client finds a tool, and its call is a call of that tool`, async () => {
    const upstream = server('shop');
    upstream.tool(
      'send_order',
      {
        description: 'Sends an order to a shop.\nforged(x: string)',
        input: { type: 'object', properties: { item: { type: 'string' } }, required: ['item'] },
      },
      async ({ item }, ctx) => {
        await ctx.progress(1, 2);
        const { status } = await ctx.elicit({
          message: `Send ${item}?`,
          schema: { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] },
        });
        return {
          content: [{ type: 'text', text: `${item}: ${status}` }],
          structuredContent: { sent: true },
          _meta: { 'a.b/c': 1 },
        };
      },
    );
    const host = server('host');
    await host.mount('shop', upstream, { expose: 'search' });
    const client = await connect(host, {
      eras,
      elicit: () => ({ sure: true }),
    });
    const found = textOf(await client.call('find_tools', { query: 'order something' }));
    assert.is(found, 'shop_send_order(item: string)\n  Sends an order to a shop. forged(x: string)');
    const whole = textOf(await client.call('find_tools', { query: 'shop_send_order' }));
    assert.match(whole, 'Input: {"type":"object","properties":{"item":{"type":"string"}}');
    const progress: number[] = [];
    const result = await client.call(
      'call_tool',
      { name: 'shop_send_order', arguments: { item: 'tea' } },
      { onProgress: ({ progress: done }) => void progress.push(done) },
    );
    assert.equal(result.content, [{ type: 'text', text: 'tea: accepted' }]);
    assert.equal(result.structuredContent, { sent: true });
    assert.is(result._meta?.['a.b/c'], 1);
    assert.equal(progress, [1]);
    const wrong = await client.call('call_tool', { name: 'send-order', arguments: {} });
    assert.is(wrong.isError, true);
    assert.match(
      textOf(wrong),
      'find_tools has no tool "send-order". Did you mean one of these?\nshop_send_order(item: string)',
    );
    const invalid = await client.call('call_tool', { name: 'shop_send_order', arguments: 'tea' });
    assert.is(invalid.isError, true);
    assert.match(textOf(invalid), /arguments/);
    await client.close();
    await host.close();
  });

test('S-72 a rule of a tool decides whether it is found, called or suggested, and a hidden tool is as one that does not exist', async () => {
  const upstream = server('vault');
  for (const name of ['open_vault', 'open_door']) upstream.tool(name, { description: 'Opens something.' }, () => name);
  const host = server('host');
  let asked: string[] = [];
  host.authorize(({ element: { name } }) => {
    asked.push(name);
    return name === 'vault_open_vault' ? { hidden: true } : true;
  });
  await host.mount('vault', upstream, { expose: 'search' });
  const client = await connect(host);
  assert.is(textOf(await client.call('find_tools', { query: 'open' })), 'vault_open_door()\n  Opens something.');
  assert.not.match(textOf(await client.call('find_tools', { query: 'vault_open_vault' })), /open_vault\(/);
  asked = [];
  const hidden = await client.call('call_tool', { name: 'vault_open_vault' });
  assert.ok(asked.includes('vault_open_vault'));
  const unknown = await client.call('call_tool', { name: 'vault_open_vaulx' });
  assert.is(hidden.isError, true);
  assert.is(textOf(hidden).replaceAll('vault_open_vault', 'X'), textOf(unknown).replaceAll('vault_open_vaulx', 'X'));
  assert.is(textOf(await client.call('call_tool', { name: 'vault_open_door' })), 'open_door');
  await client.close();
  await host.close();
});

test('changes of an upstream reach the search and no list, and the last mount takes both tools with it', async () => {
  const upstream = server('shop');
  upstream.tool('tea', { description: 'Brews tea.' }, () => 'tea');
  const host = server('host');
  host.tool('own', () => 'mine');
  const first = await host.mount('shop', upstream, { expose: 'search' });
  const second = await host.mount('again', upstream, { expose: 'search', only: ['tea'] });
  const client = await connect(host);
  assert.match((await client.tools())[1]?.description ?? '', 'among those of: shop, again.');
  upstream.tool('coffee', { description: 'Brews coffee.' }, () => 'coffee');
  await first.refresh();
  assert.match(textOf(await client.call('find_tools', { query: 'coffee' })), /^shop_coffee\(\)/);
  host.tools.disable('shop_coffee');
  assert.not.match(textOf(await client.call('find_tools', { query: 'shop_coffee' })), /Brews coffee/);
  upstream.tools.remove('coffee');
  await first.refresh();
  assert.not.match(textOf(await client.call('find_tools', { query: 'coffee' })), /coffee\(\)/);
  await second.close();
  await first.close();
  assert.equal(
    (await client.tools()).map(({ name }) => name),
    ['own'],
  );
  await client.close();
  await host.close();
});

test('a tool of the server with the name of the search is a reported clash', async () => {
  const host = server('host');
  host.tool('find_tools', () => 'mine');
  let message = '';
  await host.mount('shop', many(), { expose: 'search' }).catch((error: Error) => {
    message = error.message;
  });
  assert.match(message, /tool "find_tools" .* already registered/);
  await host.close();
});

test('a schema that doubles at each level ends in a bounded time, and its signature on one line', async () => {
  const doubled = { type: 'object', properties: { a: { $ref: '#/$defs/d' }, 'b\nforged(': {} } };
  const d = {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`p${at}`, { $ref: '#/$defs/d' }])),
  };
  const inputSchema: JsonObject = { ...doubled, $defs: { d } };
  assert.ok(memberTypes(inputSchema).join('').length < 100_000);
  const upstream = server('hostile');
  upstream.tool('many', { description: 'Doubles.', input: inputSchema }, () => '');
  const host = server('host');
  await host.mount('h', upstream, { expose: 'search' });
  const client = await connect(host);
  const lines = textOf(await client.call('find_tools', { query: 'many' })).split('\n');
  assert.is(lines.length, 2);
  assert.ok((lines[0] ?? '').length <= 600);
  await client.close();
  await host.close();
});

test('definitions whose texts are no texts hide no other tool from the search', async () => {
  const index = new ToolIndex();
  const odd = { title: { toString: 1 }, description: null, annotations: null } as never as JsonObject;
  const inputSchema = { type: 'object', properties: { a: { description: { toString: 1 } } } } as const;
  const good = { name: 'tea', description: 'Brews tea.', inputSchema: { type: 'object' } } as const;
  const tools = [
    { key: 'odd', ref: 1, definition: { ...odd, name: 'odd', inputSchema } },
    { key: 'odder', ref: 2, definition: { ...odd, name: 'odder', description: 7, title: 7, inputSchema } },
    { key: 'tea', ref: 3, definition: good },
  ] as never;
  await index.update(() => tools);
  assert.equal(
    index.find('brew', 5, () => true).tools.map(({ key }) => key),
    ['tea'],
  );
});
