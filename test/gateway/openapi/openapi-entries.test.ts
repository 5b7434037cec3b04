/** Entries with an OpenAPI document in the configuration of a gateway: their members, variables, secrets, and the lock file. */
import { readFileSync, writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { readConfiguration } from '../../../src/gateway/configuration.ts';
import { Cli } from '../../cli/cli.ts';
import { troupe } from '../../cli/in-process.ts';
import { Tree } from '../../features/discovery/tree.ts';
import { suite } from '../../harness/door.ts';
import { apiServer, petsDocument } from './api-server.ts';
import { reading } from './documents.ts';

const test = suite('entries with an OpenAPI document');

const ENVIRONMENT = { KEY: 's3cret', HOST: 'api.example.com' };
const read = (entry: object) =>
  readConfiguration(JSON.stringify({ mcpServers: { shop: entry } }), { file: '/p/mcp.json', environment: ENVIRONMENT });
const problems = (entry: object): string[] =>
  read(entry).problems.map(({ field, message, off }) => `${off === undefined ? 'note' : 'off'} ${field}: ${message}`);

test('an entry has the members of openapi(), with variables, and options of a mount', () => {
  const { servers, problems: found } = read({
    openapi: './api.yaml',
    baseUrl: `https://\${HOST}/v1`,
    readOnly: true,
    headers: { 'X-Key': '$KEY' },
    auth: { key: { token: `\${KEY}` } },
    operations: { listPets: { title: 'Pets' } },
    troupe: { only: ['tag:pets'], pins: 'hold' },
  });
  assert.equal(found, []);
  const [server] = servers;
  assert.equal(server?.target, {
    openapi: '/p/api.yaml',
    api: {
      readOnly: true,
      operations: { listPets: { title: 'Pets' } },
      baseUrl: 'https://api.example.com/v1',
      headers: { 'X-Key': 's3cret' },
      auth: { key: { token: 's3cret' } },
    },
  });
  assert.equal(server?.options, { only: ['tag:pets'], pins: 'hold' });
  assert.is(server?.shown, 'OpenAPI ./api.yaml');
});

for (const [title, entry, expected] of [
  ['an unknown member', { readonly: true }, 'off mcpServers.shop.readonly: unknown option (did you mean readOnly?)'],
  ['a wrong type', { readOnly: 'yes' }, 'off mcpServers.shop.readOnly: expected true or false, got string "yes"'],
  ['a command beside it', { command: 'npx' }, 'off mcpServers.shop.command: unknown option'],
  [
    'a secret in the file',
    { auth: { key: { token: 'abc' } } },
    `off mcpServers.shop.auth.key.token: expected a variable such as \${NAME}`,
  ],
  [
    'a password in the file',
    { auth: { basic: { username: 'a', password: 'abc' } } },
    'off mcpServers.shop.auth.basic.password: expected a variable',
  ],
  [
    'a variable that is not set',
    { headers: { A: `\${GONE}` } },
    'off mcpServers.shop.headers.A: the environment variable GONE is not set',
  ],
  [
    'an unknown option of a mount',
    { troupe: { onyl: [] } },
    'off mcpServers.shop.troupe.onyl: unknown option (did you mean only?)',
  ],
  [
    'auth of a mount',
    { troupe: { auth: {} } },
    'off mcpServers.shop.troupe.auth: an entry with openapi has auth beside openapi',
  ],
  [
    'a wrong approval of an operation',
    { operations: { listPets: { approve: { by: 'caler' } } } },
    'off mcpServers.shop.operations: listPets: approve: by: expected "caller"',
  ],
  [
    'a wrong pointer',
    { operations: { listPets: { result: { pick: ['id'] } } } },
    'off mcpServers.shop.operations: listPets: result: pick: expected a list of 1 to 100 JSON Pointers',
  ],
  ['a wrong address', { baseUrl: 'api' }, 'off mcpServers.shop.baseUrl: expected an address such as'],
] as const)
  test(`${title} turns the entry off`, () =>
    assert.ok(
      problems({ openapi: './api.json', ...entry })
        .join('\n')
        .startsWith(expected),
      problems({ openapi: './api.json', ...entry }).join(),
    ));

/** An API, and a gateway to it: its command runs in this process, and serves in one of its own. */
async function staged() {
  const api = await apiServer();
  const document = petsDocument({ servers: [{ url: api.url }] });
  const tree = new Tree({ 'api.json': JSON.stringify(document) });
  const state = { XDG_STATE_HOME: tree.at('state'), LOCALAPPDATA: tree.at('state') };
  const entry = { openapi: './api.json', readOnly: true, troupe: { pins: 'hold' } };
  tree.write('mcp.json', JSON.stringify({ mcpServers: { pets: entry } }));
  const options = { cwd: tree.path, env: state };
  const run = (...args: readonly string[]) => troupe(['gateway', 'mcp.json', ...args], options);
  return { api, document, tree, run, serve: () => new Cli(['gateway', 'mcp.json'], options) };
}

test('--diff and --approve know the requests of an entry', async () => {
  const { api, document, tree, run } = await staged();
  assert.match((await run('--diff')).out, 'pets: tool "listPets": new');
  assert.match((await run('--approve', 'pets')).out, 'pets: tool "listPets": new');
  assert.is((await run('--diff')).code, 0);
  assert.match(readFileSync(tree.at('mcp.lock.json'), 'utf8'), '"request"');
  const paths = { '/other': reading('listPets', [], { summary: 'Lists pets' }) };
  writeFileSync(tree.at('api.json'), JSON.stringify({ ...document, paths }));
  const { code, out } = await run('--diff');
  assert.is(code, 1);
  assert.match(out, 'tool "listPets": its inputSchema, request changed');
  assert.match(out, '+ request: {');
  assert.match(out, '"/other"');
  await api.close();
});

// The process of a gateway is in command.test.ts, and what a document offers in openapi-mount.test.ts.
test.full('a gateway offers the API of an entry', async () => {
  const { api, run, serve } = await staged();
  await run('--approve', 'pets');
  const cli = serve();
  await cli.initialize();
  assert.equal(await cli.list('tools'), ['pets_listPets']);
  assert.match(await cli.call('pets_listPets'), 'GET /pets');
  assert.is(await cli.end(), 0);
  await api.close();
});
