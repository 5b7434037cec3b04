/** The owners of calls over HTTP: each has one connection to a legacy upstream, with its state. */
import { createServer, http, type Mount, type MountOptions, type Server } from 'troupe';
import { type Client, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { MemoryChannel } from '../../../src/client/channels/memory-channel.ts';
import type { ConnectedClient } from '../../../src/client/connected-client.ts';
import { openInMemory } from '../../../src/client/in-memory.ts';
import type { CallOwner } from '../../../src/core/execution/request-context.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import type { Tool } from '../../../src/core/protocol/types.ts';
import { OwnerViews } from '../../../src/gateway/mounts/owner-views.ts';
import type { UpstreamCatalogue } from '../../../src/gateway/mounts/upstream-catalogue.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { until } from '../../harness/wait.ts';
import { speakLegacy } from './asking-server.ts';

const test = suite('owners of calls over HTTP');

/** A legacy program over stdio: each connection is another process of it, with its own count. */
function programs(prepare: (server: Server) => void) {
  const made: Server[] = [];
  const channel = (): MemoryChannel => {
    const server = createServer({ name: 'shop', version: '1.0.0', log() {} });
    speakLegacy(server);
    made.push(server);
    prepare(server);
    return new MemoryChannel({ clock: systemClock, connect: () => openInMemory(server) });
  };
  return { made, target: { name: 'shop', channel } };
}

interface Stage {
  readonly made: readonly Server[];
  readonly mount: Mount;
  connect(eras: 'legacy' | 'modern', elicit?: (message: string) => string): Promise<Client>;
  close(): Promise<void>;
}

async function stage(prepare: (server: Server) => void, options: MountOptions = {}): Promise<Stage> {
  const { made, target } = programs(prepare);
  const host = createServer({ name: 'host', version: '1.0.0', log() {} });
  const mount = await host.mount('shop', target, options);
  const transport = http({ port: 0 });
  await host.listen(transport);
  const clients: Client[] = [];
  return {
    made,
    mount,
    async connect(eras, elicit = () => '') {
      const client = await connect(String(transport.url), {
        eras,
        log() {},
        elicit: ({ message }) => ({ said: elicit(message) }),
      });
      clients.push(client);
      return client;
    },
    async close() {
      for (const each of [...clients, host, ...made]) await each.close();
    },
  };
}

/** Counts the calls in its process. */
function counts(server: Server): void {
  let count = 0;
  server.tool('count', () => String(++count));
}

const call = async (client: Client, name: string): Promise<string> => textOf(await client.call(name));

test('calls of clients without sessions and sign-in run in one process at the same time, and share its state', async () => {
  const { made, connect, close } = await stage(counts);
  const [ada, bob] = [await connect('modern'), await connect('modern')];
  await ada.tools();
  const at = made.length;
  const counted = await Promise.all([ada, ada, ada, bob].map((client) => call(client, 'shop_count')));
  assert.equal(counted.sort(), ['1', '2', '3', '4']);
  assert.is(made.length, at + 1);
  // Each session has a process of its own.
  assert.is(await call(await connect('legacy'), 'shop_count'), '1');
  assert.is(await call(await connect('legacy'), 'shop_count'), '1');
  assert.is(made.length, at + 3);
  await close();
});

test('S-95 a question of a process that several clients share reaches the client of its call', async () => {
  const { connect, close } = await stage((server) => {
    server.tool('ask', async (_args, ctx) => {
      const answer = await ctx.elicit({
        message: 'Who?',
        schema: { type: 'object', properties: { said: { type: 'string' } }, required: ['said'] },
      });
      return answer.status === 'accepted' ? String(answer.content.said) : answer.status;
    });
  });
  const names = ['ada', 'bob', 'eve'];
  const clients = await Promise.all(names.map((name) => connect('modern', () => name)));
  const everyone = (): Promise<readonly string[]> =>
    Promise.all(clients.map((client) => call(client, 'shop_ask').catch(String)));
  // Questions name no call, and those of several clients are in flight: no client gets the question of another.
  for (const [index, said] of (await everyone()).entries())
    assert.ok(said === names[index] || /not certain whose call asks/.test(said), said);
  // Calls take turns, because their server asks.
  for (let round = 0; round < 3; round += 1) assert.equal(await everyone(), names);
  await close();
});

/** A login adds a tool, a prompt and a resource to its process, and removes a tool. */
function logsIn(server: Server): void {
  server.tool('public', () => 'public');
  server.prompt('hello', () => ({ messages: [] }));
  server.resource('shop://about', {}, () => 'a shop');
  server.tool('login', () => {
    server.tool('secret', { description: 'For members.' }, () => 'the secret');
    server.prompt('invite', () => ({ messages: [] }));
    server.resource('shop://members', {}, () => 'ada');
    server.tools.remove('login');
    return 'welcome';
  });
}

const names = async (client: Client): Promise<string[]> =>
  (await client.tools({ fresh: true })).map(({ name }) => name).sort();

for (const eras of ['legacy', 'modern'] as const)
  test(`S-95 a tool that a login adds exists for its owner only, for ${eras} clients`, async () => {
    const { connect, close } = await stage(logsIn);
    // Modern clients without sign-in are one owner: the other one has a session.
    const [ada, bob] = [await connect(eras), await connect('legacy')];
    const told = { ada: 0, bob: 0 };
    const listens = async (who: 'ada' | 'bob', client: Client): Promise<void> => {
      for await (const { type } of client.changes({ tools: true, prompts: true, resourceList: true }))
        if (type !== 'missed') told[who] += 1;
    };
    const before = ['shop_login', 'shop_public'];
    assert.equal([await names(ada), await names(bob)], [before, before]);
    const listening = [listens('ada', ada), listens('bob', bob)];
    assert.is(await call(bob, 'shop_public'), 'public');
    assert.is(await call(ada, 'shop_login'), 'welcome');
    await until(async () => (await names(ada)).includes('shop_secret'));
    assert.equal([await names(ada), await names(bob)], [['shop_public', 'shop_secret'], before]);
    assert.is(await call(ada, 'shop_secret'), 'the secret');
    assert.equal((await ada.prompt('shop_invite')).messages, []);
    assert.ok((await ada.resources({ fresh: true })).some(({ uri }) => uri === 'shop+shop://members'));
    assert.equal([(await bob.prompts({ fresh: true })).length, (await bob.resources({ fresh: true })).length], [1, 1]);
    const refused = async (client: Client, name: string): Promise<string> => call(client, name).catch(String);
    assert.match(await refused(bob, 'shop_secret'), /Unknown tool: shop_secret/);
    assert.match(await refused(ada, 'shop_login'), /Unknown tool: shop_login/);
    assert.match(await bob.prompt('shop_invite').then(String, String), /Unknown prompt/);
    assert.match(await bob.read('shop+shop://members').then(String, String), /not found/);
    await until(() => told.ada >= 3);
    assert.is(told.bob, 0, 'the change is no news to the other');
    // The login of the other is his own, and the state of the first ends with its connection.
    assert.is(await call(bob, 'shop_login'), 'welcome');
    await until(async () => (await names(bob)).includes('shop_secret'));
    assert.is(await call(bob, 'shop_secret'), 'the secret');
    await bob.close();
    assert.ok((await names(ada)).includes('shop_secret'));
    if (eras === 'legacy') {
      await ada.close();
      const eve = await connect('legacy');
      await until(async () => !(await names(eve)).includes('shop_secret'));
      assert.match(await refused(eve, 'shop_secret'), /Unknown tool: shop_secret/);
    }
    await close();
    await Promise.all(listening);
  });

test('a tool that a login adds is held until it is approved, as any other', async () => {
  const { connect, mount, close } = await stage(logsIn, { pins: 'hold' });
  await mount.approve();
  const ada = await connect('legacy');
  assert.is(await call(ada, 'shop_login'), 'welcome');
  await until(async () => !(await names(ada)).includes('shop_login'));
  assert.equal(await names(ada), ['shop_public']);
  assert.equal(await mount.approve('secret'), ['tool "secret": new']);
  await until(async () => (await names(ada)).includes('shop_secret'));
  assert.is(await call(ada, 'shop_secret'), 'the secret');
  await close();
});

test('a tool that a login adds is found and called by its owner only where tools are found by search', async () => {
  const { connect, close } = await stage(logsIn, { expose: 'search' });
  const [ada, bob] = [await connect('legacy'), await connect('legacy')];
  const through = async (client: Client, name: string, args: object): Promise<string> =>
    textOf(await client.call(name, { ...args })).trim();
  const found = (client: Client): Promise<string> => through(client, 'find_tools', { query: 'secret for members' });
  const called = (client: Client): Promise<string> =>
    through(client, 'call_tool', { name: 'shop_secret' }).catch(String);
  assert.is(await through(ada, 'call_tool', { name: 'shop_login' }), 'welcome');
  await until(async () => (await found(ada)).includes('shop_secret'));
  assert.not.match(await found(bob), 'shop_secret');
  assert.is(await called(ada), 'the secret');
  assert.match(await called(bob), 'find_tools has no tool "shop_secret"');
  await close();
});

test('a tool that a login adds ends with the process that has it', async () => {
  const { connect, made, close } = await stage(logsIn);
  const ada = await connect('legacy');
  assert.is(await call(ada, 'shop_login'), 'welcome');
  await until(async () => (await names(ada)).includes('shop_secret'));
  await made.at(-1)?.close();
  // The next call starts the program again, which knows of no login.
  await call(ada, 'shop_public').catch(() => {});
  await until(async () => (await names(ada)).includes('shop_login'));
  assert.equal(await names(ada), ['shop_login', 'shop_public']);
  await close();
});

/** A catalogue with these tools. */
const catalogueOf = (tools: readonly Tool[]): UpstreamCatalogue => ({
  ...{ capabilities: {}, tools, resources: [], templates: [], prompts: [], skills: [] },
});
const tool = (name: string, description = name): Tool => ({ name, description, inputSchema: { type: 'object' } });
const ownerOf = (key: string): CallOwner => ({
  ...{ key, capabilities: {}, principal: key, session: undefined, several: false },
});
// The views compare connections and never use them.
const connection = (): ConnectedClient => ({}) as unknown as ConnectedClient;

test('of two owners with different tools of one name the first has it, and what all list is as the mount lists it', () => {
  const views = new OwnerViews();
  const shared = catalogueOf([tool('a'), tool('b')]);
  views.set(connection(), ownerOf('ada'), catalogueOf([tool('a', 'another'), tool('b'), tool('c')]), 10_000);
  views.set(connection(), ownerOf('bob'), catalogueOf([tool('a'), tool('c', 'of bob'), tool('d')]), 10_000);
  const { whole, views: seen } = views.over(shared);
  assert.equal(whole.tools, [tool('a'), tool('b'), tool('c'), tool('d')]);
  assert.equal(
    [...seen.tool].map(([name, { owned }]) => [name, owned]),
    [
      ['c', true],
      ['d', true],
      ['b', false],
    ],
  );
  assert.is(views.over(whole).views.tool.get('c'), undefined);
  views.clear();
  assert.is(views.over(shared).whole, shared);
});

test('the catalogues of owners have a bound, beyond which an owner sees that of the mount', () => {
  const views = new OwnerViews();
  const [one, other] = [connection(), connection()];
  const long = catalogueOf([tool('a', 'x'.repeat(600))]);
  views.set(one, ownerOf('ada'), long, 1_000);
  views.set(one, ownerOf('ada'), long, 1_000);
  assert.throws(() => views.set(other, ownerOf('bob'), long, 1_000), /The option is maxListBytes/);
  views.delete(one);
  views.set(other, ownerOf('bob'), long, 1_000);
});
