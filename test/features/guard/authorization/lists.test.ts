/** Each caller lists what its rules show; lists are made once for each view, and cursors belong to one (G-06). */
import * as assert from 'uvu/assert';
import { ListViews, MAX_VIEWS } from '../../../../src/features/guard/authorization/list-views.ts';
import { createServer, ErrorCode, type Server } from '../../../../src/index.ts';
import { connect, ErrorResponse, SimulatedClock, settled, type TestClient } from '../../../../src/testing/testing.ts';
import { modern } from '../../../core/http/modern.ts';
import { serving } from '../../../core/http/session.ts';
import { ask } from '../../../core/http/support.ts';
import { suite } from '../../../harness/door.ts';
import { atScale } from '../../../harness/scale.ts';

const test = suite('lists for each caller');

const TOOLS = 200;
const VIEWS = 8;

/** Tool `tool_7` belongs to group 7; a caller of group 7 sees the tools of the other groups, and not that of its own. */
function grouped(server: Server): Server {
  for (let index = 0; index < TOOLS; index += 1)
    server.tool(`tool_${index}`, { description: `group ${index % VIEWS}` }, () => 'done');
  server.authorize(({ element: { name }, principal }) => {
    const group = Number(principal.split('-')[1] ?? '0') % VIEWS;
    return Number(name.split('_')[1]) % VIEWS !== group || { hidden: true };
  });
  return server;
}

const namesOf = async (client: TestClient): Promise<readonly string[]> =>
  (await client.tools()).map(({ name }) => name);

test('G-06: of 200 tools, each of many principals lists its own', async () => {
  const server = grouped(createServer({ name: 'lists', version: '1.0.0', limits: { pageSize: 50 } }));
  const principals = atScale({ quick: 16, full: 64, proof: 1_000 });
  for (let index = 0; index < principals; index += 1) {
    const client = await connect(server, { auth: { principal: `ada-${index}` } });
    const names = await namesOf(client);
    assert.is(names.length, TOOLS - TOOLS / VIEWS);
    assert.not.ok(names.some((name) => Number(name.split('_')[1]) % VIEWS === index % VIEWS));
    await client.close();
  }
  await server.close();
});

test('G-06: a cache in front of the server mixes nothing: a list that depends on its caller is private', () => {
  /** A shared cache as RFC 9111 has it, by the `cacheScope` of 2026-07-28. */
  const cached = new Map<string, string>();
  return serving(
    async ({ url }) => {
      const through = async (principal: string): Promise<string> => {
        const found = cached.get('tools/list');
        if (found !== undefined) return found;
        const answer = await ask(url, modern('tools/list', { headers: { authorization: principal } }));
        const text = await answer.text();
        if (JSON.parse(text).result.cacheScope !== 'private') cached.set('tools/list', text);
        return text;
      };
      for (let index = 0; index < 2 * VIEWS; index += 1) {
        const own = new RegExp(`"group ${index % VIEWS}"`);
        assert.not.match(await through(`ada-${index}`), own);
      }
      assert.is(cached.size, 0);
    },
    { authenticate: ({ header }) => header('authorization') },
    (server) => void grouped(server),
  );
});

test('G-06: a cursor belongs to the view of its list', async () => {
  const server = grouped(createServer({ name: 'lists', version: '1.0.0', limits: { pageSize: 10 } }));
  const [ada, eve, adas] = await Promise.all(
    ['ada-1', 'eve-2', 'bob-9'].map((principal) => connect(server, { auth: { principal } })),
  );
  if (!ada || !eve || !adas) throw new Error('three clients were expected');
  const { nextCursor } = await ada.modern('tools/list');
  assert.type(nextCursor, 'string');
  const cursor = String(nextCursor);
  assert.not.match(cursor, /tool|group/);
  const page = await ada.modern('tools/list', { cursor });
  assert.equal(await adas.modern('tools/list', { cursor }), page, 'a caller who sees the same may continue');
  for (const wrong of [cursor, cursor.split('.')[0] ?? '', `${cursor}x`]) {
    const refused = await eve.modern('tools/list', { cursor: wrong }).catch((error: unknown) => error);
    assert.instance(refused, ErrorResponse);
    assert.is(refused instanceof ErrorResponse && refused.code, ErrorCode.InvalidParams);
  }
  for (const client of [ada, eve, adas]) await client.close();
  await server.close();
});

test('G-06: stores at most 64 views of a list, and drops the one that was unused longest', () => {
  const views = new ListViews();
  const first = views.of(['a']);
  assert.is(views.of(['a']), first);
  for (let index = 0; index < 1_000; index += 1) {
    views.of([`tool_${index}`]);
    assert.is(views.of(['a']), first);
    assert.ok(views.size <= MAX_VIEWS);
  }
  assert.is(views.size, MAX_VIEWS);
  assert.not.equal(views.of(['b']).id, first.id);
  assert.not.equal(new ListViews().of(['a']).id, first.id, 'an id tells nothing without the key of its server');
});

test('without a rule that hides, all callers share one list; elements whose scopes are missing are in it', async () => {
  const server = createServer({ name: 'lists', version: '1.0.0' });
  server.tool('open', {}, () => 'open');
  server.tool('closed', { scopes: ['staff'] }, () => 'closed');
  const client = await connect(server);
  const list = await client.modern('tools/list');
  assert.is(list.cacheScope, 'public');
  assert.equal(await namesOf(client), ['open', 'closed']);
  await client.close();
  await server.close();
});

test('a resource with scopes is private to caches, whatever its author says', async () => {
  const server = createServer({ name: 'lists', version: '1.0.0' });
  server.resource('orders://all', { scopes: ['orders'], cacheScope: 'public', ttlMs: 1_000 }, () => 'all');
  const client = await connect(server, { auth: { principal: 'ada', scopes: ['orders'] } });
  assert.is((await client.modern('resources/read', { uri: 'orders://all' })).cacheScope, 'private');
  await client.close();
  await server.close();
});

test('a session whose next token shows more is notified of the lists that have grown', () => {
  const clock = new SimulatedClock();
  return serving(
    async ({ url }) => {
      const post = async (scopes: string, body: object, id?: string) => {
        const session = id === undefined ? {} : { 'mcp-session-id': id };
        const answer = await ask(url, { body, headers: { authorization: scopes, ...session } });
        return { id: answer.headers['mcp-session-id'], text: await answer.text() };
      };
      const opened = await post('low', {
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } },
      });
      const id = String(opened.id);
      await post('low', { jsonrpc: '2.0', method: 'notifications/initialized' }, id);
      const stream = await ask(url, { method: 'GET', headers: { authorization: 'low', 'mcp-session-id': id } });
      const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
      assert.not.match((await post('low', list, id)).text, /"grand"/);
      // The same scopes again change nothing; more do.
      await post('low', { jsonrpc: '2.0', id: 2, method: 'ping' }, id);
      await post('low high', { jsonrpc: '2.0', id: 3, method: 'ping' }, id);
      await settled();
      await clock.advance(1_000);
      for (;;) {
        const { data = '' } = await stream.events.next();
        if (data.includes('notifications/tools/list_changed')) break;
      }
      assert.match((await post('low high', list, id)).text, /"grand"/);
    },
    {
      authenticate: ({ header }) => ({ principal: 'ada', scopes: header('authorization')?.split(' ') }),
      server: { clock },
    },
    (server) => {
      server.tool(
        'grand',
        { allow: ({ auth }) => auth?.scopes.includes('high') === true || { hidden: true } },
        () => '',
      );
    },
  );
});

test('a view is remembered for a second, unless its rules have read the request', async () => {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'lists', version: '1.0.0', clock });
  let open = false;
  server.tool('shop', { allow: () => open || { hidden: true } }, () => 'open');
  server.tool('mine', { allow: (_, { meta }) => meta['example/mine'] === true || { hidden: true } }, () => 'mine');
  server.prompt('quiet', { allow: () => open || { hidden: true } }, () => 'quiet');
  const client = await connect(server, { auth: { principal: 'ada' } });
  const tools = async (mine: boolean) =>
    JSON.stringify((await client.modern('tools/list', {}, { 'example/mine': mine })).tools).match(/"(shop|mine)"/g);
  const prompts = async () => (await client.modern('prompts/list')).prompts;
  assert.equal(await tools(false), null);
  assert.equal(await tools(true), ['"mine"']);
  assert.equal(await prompts(), []);
  open = true;
  assert.equal(await tools(true), ['"shop"', '"mine"']);
  assert.equal(await prompts(), []);
  await client.modern('prompts/get', { name: 'quiet' });
  await clock.advance(1_000);
  assert.is(JSON.stringify(await prompts()).includes('quiet'), true);
  await client.close();
  await server.close();
});
