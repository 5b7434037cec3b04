/** A client over stdio is the user of the process: it owns what it creates, as over HTTP with authentication. */
import { PassThrough } from 'node:stream';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { type Auth, authOf, restoredAuth } from '../../../src/core/messages/auth.ts';
import { createServer, http, memory, type Server, type StdioOptions, sqlite, stdio } from '../../../src/index.ts';
import { TestClient } from '../../../src/testing/testing.ts';
import { Tree } from '../../features/discovery/tree.ts';
import { suite } from '../../harness/door.ts';
import { assertRejects } from '../../harness/results.ts';

const test = suite('the local user');

const SECRET = 'a secret of at least thirty-two characters';
const lamp = createMachine({
  initial: 'off',
  states: { off: { on: { toggle: 'on' } }, on: { on: { toggle: 'off' } } },
});

function make(path?: string): Server {
  const server = createServer({
    name: 'x',
    version: '1.0.0',
    log: () => {},
    keys: [SECRET],
    ...(path === undefined ? {} : { store: sqlite(path) }),
  });
  server.machine('lamp', lamp, { events: { toggle: true } });
  server.tool('who', {}, (_, ctx) => ctx.principal);
  server.tool('work', { task: 'required' }, () => 'worked');
  server.tool('ask', {}, async (_, ctx) => {
    const { status } = await ctx.elicit({ message: 'Well?', schema: { type: 'object', properties: {} } });
    return status;
  });
  return server;
}

/** A client over the streams of a stdio transport. */
async function overStdio(server: Server, options: StdioOptions = {}): Promise<TestClient> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const listeners: ((text: string) => void)[] = [];
  let rest = '';
  output.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) for (const listener of listeners) listener(line);
  });
  await server.listen(stdio({ ...options, input, output }));
  return new TestClient({
    send: (text) => void input.write(`${text}\n`),
    onText: (listener) => void listeners.push(listener),
    close: () => void input.end(),
    closed: new Promise((resolve) => output.on('end', () => resolve('ended'))),
  });
}

async function overMemory(server: Server): Promise<TestClient> {
  const { transport, connect } = memory();
  await server.listen(transport);
  return new TestClient(connect());
}

const data = async (client: TestClient, tool: string, args = {}): Promise<Record<string, unknown>> =>
  Object((await client.call(tool, args)).structuredContent);

async function textOf(client: TestClient, tool: string): Promise<unknown> {
  const { content } = await client.call(tool, {});
  return content[0]?.type === 'text' ? content[0].text : undefined;
}

const DECLARED = {
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: { form: {} },
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
};

test('it lists what it created, which lives as long as that of any other user', async () => {
  const server = make();
  const client = await overStdio(server);
  assert.is(await textOf(client, 'who'), 'local user');
  const { handle, created, expires } = await data(client, 'lamp_create');
  assert.ok(Date.parse(String(expires)) - Date.parse(String(created)) > 23 * 3_600_000);
  const { handles } = await data(client, 'lamp_list');
  assert.equal(Array.isArray(handles) && handles.map((each) => each.handle), [handle]);
  const other = await overMemory(server);
  assert.is((await other.call('lamp_get', { handle: String(handle) })).isError, true);
  await server.close();
});

test('the author names the principal; a name that owns nothing is an error', async () => {
  const server = make();
  assert.is(await textOf(await overStdio(server, { principal: 'ada' }), 'who'), 'ada');
  await server.close();
});

for (const [what, options, passes] of [
  ['the local user', {}, true],
  ['the local user with the scopes of a transport', { scopes: ['a:b', 'c:d', 'staff'] }, true],
  ['the local user without a scope, because the transport says so', { scopes: [] }, false],
  ['the local user with another scope', { scopes: ['other'] }, false],
  ['a named user without scopes', { principal: 'ada' }, false],
  ['a named user with the scope *', { principal: 'ada', scopes: ['*'] }, false],
] as const)
  test(`S-96 ${what} ${passes ? 'passes' : 'fails'} scopes of an element, of a rule, and of the code of a rule`, async () => {
    const server = make();
    server.tool('element', { scopes: ['a:b'] }, () => 'used');
    server.tool('rule', { allow: () => ({ scopes: ['c:d'] }) }, () => 'used');
    server.tool('code', { allow: ({ auth }) => auth?.scopes.includes('staff') === true }, () => 'used');
    server.tool('handler', {}, (_, { auth }) => String(auth?.scopes.includes('any')));
    const client = await overStdio(server, options);
    for (const tool of ['element', 'rule', 'code'])
      if (passes) assert.is(await textOf(client, tool), 'used');
      else
        assert.match(
          String(await client.call(tool).catch((error: unknown) => error)),
          /lack the scope|rejected|not allowed|forbidden/i,
        );
    assert.is(await textOf(client, 'handler'), String(passes && !('scopes' in options)));
    await server.close();
  });

test('S-96 the scopes of the local user survive their storage, and those that a transport names do not grow', () => {
  const stored = (scopes?: readonly string[]): Auth =>
    restoredAuth(JSON.parse(JSON.stringify(authOf('local user', scopes))));
  assert.ok(stored().scopes.includes('x'));
  assert.not.ok(stored([]).scopes.includes('x'));
  assert.not.ok(stored(['y']).scopes.includes('x'));
  assert.not.ok(restoredAuth(JSON.parse(JSON.stringify(authOf('ada', ['*'])))).scopes.includes('x'));
  assert.equal(structuredClone(authOf('local user')).scopes, ['*']);
});

test('it uses nothing that an anonymous client created in the same store', async () => {
  const tree = new Tree();
  const before = make(tree.at('shared.db'));
  const anonymous = await overMemory(before);
  const { handle } = await data(anonymous, 'lamp_create');
  const task = await anonymous.modern('tools/call', { name: 'work', arguments: {} }, DECLARED);
  const asked = await anonymous.modern('tools/call', { name: 'ask', arguments: {} }, DECLARED);
  await before.close();
  const server = make(tree.at('shared.db'));
  const client = await overStdio(server);
  assert.is((await client.call('lamp_get', { handle: String(handle) })).isError, true);
  await assertRejects(client.modern('tasks/get', { taskId: task.taskId ?? null }, DECLARED), /unknown task/);
  const inputResponses = { elicit: { action: 'accept', content: {} } };
  const answer = { name: 'ask', arguments: {}, requestState: asked.requestState ?? null, inputResponses };
  await assertRejects(
    client.modern('tools/call', answer, DECLARED),
    /params\.requestState: expected .* the same principal/,
  );
  await server.close();
});

test('no client over HTTP becomes the local user', async () => {
  const server = make();
  const transport = http({ port: 0, authenticate: ({ header }) => header('x-user') });
  await server.listen(transport);
  const statusOf = async (user: string): Promise<number> => {
    const headers = {
      'x-user': user,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    return (await fetch(transport.url, { method: 'POST', headers, body })).status;
  };
  assert.is(await statusOf('local user'), 401);
  assert.not.equal(await statusOf('ada'), 401);
  await server.close();
});
