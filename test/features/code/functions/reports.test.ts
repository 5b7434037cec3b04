/** Public reports about how others' code modes and tool searches show tools to models, each tried here. */
import { createServer, type ServerOptions } from 'troupe';
import { connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import { suite } from '../../../harness/door.ts';
import { textOf } from '../../../harness/results.ts';

const test = suite('reports about code modes');

const server = (name: string, options: Partial<ServerOptions> = {}) =>
  createServer({ name, version: '1.0.0', log: () => {}, ...options });

type Upstream = ReturnType<typeof server>;

async function withGateway(
  upstream: Upstream,
  use: (call: (tool: string, args: JsonObject) => Promise<string>) => Promise<void>,
): Promise<void> {
  const host = server('host', { code: { effects: 'allow' } });
  await host.mount('up', upstream, { expose: 'code' });
  const client = await connect(host);
  try {
    await use(async (tool, args) => textOf(await client.call(tool, args)));
  } finally {
    await client.close();
    await host.close();
  }
}

test('mcp-execution#133: a script calls each function that the search lists, whatever word its tool is called by', async () => {
  const words = [
    ...'delete typeof class await default arguments eval catch finally apply call bind name length raw'.split(' '),
    ...Reflect.ownKeys(Object.prototype).map(String),
    ...'then toJSON prototype 2fa a-b'.split(' '),
  ];
  const upstream = server('words');
  for (const [at, word] of words.entries()) upstream.tool(word, { description: `task${at}` }, () => `is ${word}`);
  await withGateway(upstream, async (call) => {
    const calls: string[] = [];
    for (const at of words.keys()) {
      const found = await call('search_functions', { query: `task${at}` });
      const functions = [...found.matchAll(/^up\.([A-Za-z0-9_$]+)\(/gm)].map(([, name]) => `up.${name}()`);
      calls.push(...functions);
    }
    const result = await call('run_code', { code: `return Promise.all([${calls.join(', ')}])` });
    for (const word of words) assert.match(result, `"is ${word}"`, `${word}: ${calls.join(', ')}`);
  });
});

test('code-mode#10 (UTCP): a result schema with $defs breaks no discovery, and its types are declared', async () => {
  const upstream = server('memory');
  const output = {
    type: 'object',
    properties: { results: { type: 'array', items: { $ref: '#/$defs/ContextResult' } } },
    required: ['results'],
    $defs: { ContextResult: { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] } },
  } as const;
  upstream.tool('build_context', { output }, () => ({ results: [{ title: 'a' }] }));
  await withGateway(upstream, async (call) => {
    assert.match(await call('search_functions', { query: 'context' }), /^up\.build_context\(\) !$/);
    assert.match(
      await call('describe_functions', { names: ['up.build_context'] }),
      'build_context(): Promise<{ results: { title: string }[] }>',
    );
    assert.match(
      await call('run_code', { code: 'return (await up.build_context()).results[0].title' }),
      '"result":"a"',
    );
  });
});

test('fastmcp#3336: a line of a search has at most 350 characters, however large the schema is', async () => {
  const upstream = server('openbb');
  const properties = Object.fromEntries(
    Array.from({ length: 80 }, (_, at) => [
      `parameter_${at}`,
      { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }], description: 'Long. '.repeat(200) },
    ]),
  );
  for (const name of ['equity_price_historical', 'equity_price_quote'])
    upstream.tool(name, { description: 'Get prices. '.repeat(300), input: { type: 'object', properties } }, () => '');
  await withGateway(upstream, async (call) => {
    const lines = (await call('search_functions', { query: 'equity price' })).split('\n');
    assert.is(lines.length, 2);
    for (const line of lines) assert.ok(line.length <= 350, `${line.length}: ${line}`);
    assert.ok((await call('describe_functions', { names: ['up.equity_price_quote'] })).length <= 24_000);
  });
});

test('hpe-networking-mcp#208: a search inside of a script is answered with the reason, and nothing has run', async () => {
  await withGateway(server('up'), async (call) => {
    assert.match(
      await call('run_code', { code: 'const found = await search_functions({ query: "tool" });\nreturn found.length' }),
      /Nothing of the script has run\.\nline 1, column 21: search_functions is a tool\. Call it outside of scripts\./,
    );
  });
});

test('fastmcp#3368: a function that a call of the script has switched on can be called in the same script', async () => {
  const upstream = server('locked');
  upstream.tool('secret', () => '42');
  upstream.tools.disable('secret');
  const host = server('host', { code: { effects: 'allow' } });
  const mount = await host.mount('up', upstream, { expose: 'code' });
  upstream.tool('unlock', async () => {
    upstream.tools.enable('secret');
    await mount.refresh();
    return 'unlocked';
  });
  await mount.refresh();
  const client = await connect(host);
  // A name that the script computes: a literal one is checked before anything runs.
  const code = 'await up.unlock(); const name = "secret"; return await up[name]()';
  assert.match(textOf(await client.call('run_code', { code })), '"result":"42"');
  await client.close();
  await host.close();
});

test('codex#31901: references with escaped names, siblings and cycles keep their shape', async () => {
  const upstream = server('refs');
  const input = {
    type: 'object',
    properties: {
      where: { $ref: '#/definitions/a~1filter', description: 'The filter.' },
      items: { type: 'array', items: { $ref: '#/definitions/item' } },
    },
    definitions: {
      'a/filter': {
        type: 'object',
        properties: {
          and: { type: 'array', items: { $ref: '#/definitions/a~1filter' } },
          field: { type: 'string' },
          value: {},
        },
      },
      item: { type: 'object', properties: { id: { type: 'integer' } } },
    },
  } as const;
  upstream.tool('query', { input }, () => '');
  await withGateway(upstream, async (call) => {
    const text = await call('describe_functions', { names: ['up.query'] });
    assert.match(text, 'where?: AFilter; // The filter.');
    assert.match(text, 'items?: { id?: number }[];');
    assert.match(text, 'type AFilter = { and?: AFilter[]; field?: string; value?: unknown };');
  });
});

test('agents#315 (LibreChat), pulse-agent#854: names in camel case and in parts are found, the exact one first', async () => {
  const upstream = server('pipedrive');
  for (const name of [
    'addActivity',
    'addPerson',
    'updatePerson',
    'canvas_create_edge',
    'bitable_v1_appTableRecord_search',
  ])
    upstream.tool(name, () => name);
  await withGateway(upstream, async (call) => {
    const first = async (query: string): Promise<string> =>
      (await call('search_functions', { query })).replace(/\([\s\S]*/, '');
    for (const query of ['addPerson', 'up.addPerson', 'add person', 'addperson', 'up_addPerson'])
      assert.is(await first(query), 'up.addPerson', query);
    assert.is(await first('create edge'), 'up.canvas_create_edge');
    assert.is(await first('table record'), 'up.bitable_v1_appTableRecord_search');
  });
});

test('hermes-agent#106676: a search says which words no function has', async () => {
  const upstream = server('incidents');
  for (const name of ['create_incident', 'send_report', 'read_report']) upstream.tool(name, () => name);
  await withGateway(upstream, async (call) => {
    assert.match(
      await call('search_functions', { query: 'send gmail report' }),
      /^up\.send_report\(\)[\s\S]*\nNo function has: gmail\.$/,
    );
    assert.not.match(await call('search_functions', { query: 'send reports' }), /No function has/);
  });
});

test('agents#1117 (Cloudflare): a script in a fence, a function, and a bare expression run, with the names of tools as they are', async () => {
  const upstream = server('github');
  upstream.tool('list-issues', () => ({ count: 3 }));
  await withGateway(upstream, async (call) => {
    for (const code of [
      '```js\nasync () => {\n  return await up["list-issues"]();\n}\n```',
      'await up.list_issues()',
      '(async () => { return up.list_issues(); })()',
    ])
      assert.match(await call('run_code', { code }), '"result":{"count":3}', code);
  });
});
