/** Servers composed of others: mounted by their own names, by modules, after the opening, and across reloads. */
import * as assert from 'uvu/assert';
import { ReloadHost } from '../../../src/cli/reload/reload-host.ts';
import { Endpoints } from '../../../src/cli/serving/endpoints.ts';
import { connect } from '../../../src/client/client.ts';
import { launchedBy } from '../../../src/core/server/launcher.ts';
import { createServer, type MountDefinition, type Server, type ServerOptions } from '../../../src/index.ts';
import { settled } from '../../../src/testing/testing.ts';
import { PlayedServer, text } from '../../client/played-server.ts';
import { TROUPE, Tree } from '../../features/discovery/tree.ts';
import { suite } from '../../harness/door.ts';

const test = suite('composed servers');

const server = (name: string, log: NonNullable<ServerOptions['log']> = () => {}): Server =>
  createServer({ name, version: '1', log });

function shop(name = 'Shop API 2'): Server {
  const created = server(name);
  created.tool('price', () => '3');
  return created;
}

/** A server in a channel, which counts its connections. */
function played(...tools: readonly string[]): PlayedServer {
  const upstream = new PlayedServer();
  upstream.script = ({ id, method }) => [
    text({
      id,
      result:
        method === 'tools/list'
          ? { tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) }
          : { content: [] },
    }),
  ];
  upstream.initialized = { ...upstream.initialized, capabilities: { tools: {} } };
  return upstream;
}

async function toolsOf(host: Server): Promise<string[]> {
  const client = await connect(host);
  const tools = await client.tools();
  await client.close();
  return tools.map(({ name }) => name).sort();
}

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

test('a server of the process is mounted under its own name, also when the host is open', async () => {
  const host = server('host');
  const other = shop();
  const mount = await host.mount(other);
  assert.is(mount.name, 'shop-api-2');
  assert.equal(await toolsOf(host), ['shop-api-2_price']);
  assert.match(String(await errorOf(host.mount(shop()))), /"shop-api-2": the name is taken/);
  // The host is open: the mount begins by itself.
  const later = shop('later');
  await (await host.mount(later, { prefix: false })).ready();
  assert.equal(await toolsOf(host), ['price', 'shop-api-2_price']);
  for (const given of [[{}], [undefined], ['x'], ['x', 7]]) {
    const mounted: Promise<unknown> = Reflect.apply(host.mount, host, given);
    assert.match(String(await errorOf(mounted)), /^(?:Type|Definition)Error: .*expected /, String(given));
  }
  await Promise.all([host.close(), other.close(), later.close()]);
});

test('replacing the mounts of a source keeps those that are equal, with their connections, and closes the others', async () => {
  const upstreams = new Map(['a', 'b', 'c'].map((name) => [name, played(name)]));
  const channels = new Map([...upstreams].map(([name, upstream]) => [name, () => upstream.channel()]));
  const definition = (name: string, more: Partial<MountDefinition> = {}): MountDefinition => ({
    name,
    target: { name, channel: channels.get(name) ?? missing },
    ...more,
  });
  const host = server('host');
  host.mounts.replaceSource('file', [definition('a'), definition('b')]);
  assert.equal(await toolsOf(host), ['a_a', 'b_b']);
  const opened = upstreams.get('a')?.opened;
  host.mounts.replaceSource('file', [definition('b', { prefix: 'x.' }), definition('a'), definition('c')]);
  await eventually(async () => (await toolsOf(host)).length === 3);
  assert.equal(await toolsOf(host), ['a_a', 'c_c', 'x.b']);
  assert.is(upstreams.get('a')?.opened, opened);
  assert.throws(() => host.mounts.replaceSource('other', [definition('a')]), /taken by another mount/);
  host.mounts.replaceSource('file', []);
  assert.equal([await toolsOf(host), host.mounts.definitions()], [[], []]);
  await eventually(async () => [...upstreams.values()].every(({ open }) => open === 0));
  await host.close();
});

test('a module exports a mount; loading it again without it withdraws it', async () => {
  const tree = new Tree({
    'shop.mjs': `import { createServer, defineMount } from '${TROUPE}';
      const shop = createServer({ name: 'shop', version: '1', log: () => {} });
      shop.tool('price', () => '3');
      export default defineMount({ name: 'shop', target: shop, except: ['hidden_*'] });`,
  });
  const log: string[] = [];
  const host = server('host', (_, message) => log.push(message));
  const { failed } = await host.discover(['.'], { from: tree.path });
  assert.equal(failed, []);
  assert.equal(await toolsOf(host), ['shop_price']);
  tree.write('shop.mjs', `export const f = Object.assign(() => 'f', { schema: { type: 'object' } });`);
  await host.discover(['.'], { from: tree.path });
  assert.equal(await toolsOf(host), ['f']);
  await host.close();
});

test('a reload of the program keeps the mounts that have not changed', async () => {
  const upstream = played('a');
  const target = { name: 'up', channel: () => upstream.channel() };
  let host: Server | undefined;
  const reload = new ReloadHost(
    { name: 'program', version: '1', log: () => {} },
    new Endpoints('dev', { values: {}, lists: {}, positionals: [], rest: [] }),
    async (opened) => {
      host = opened;
    },
  );
  const program = async (prefix: string): Promise<Server> => {
    const loaded = server('program');
    // A program need not wait for its mounts.
    void loaded.mount('up', target);
    void loaded.mount('again', target, { prefix });
    return loaded;
  };
  reload.adopt(await program('one_'));
  assert.equal(await toolsOf(host ?? missing()), ['one_a', 'up_a']);
  const { opened } = upstream;
  const next = await program('two_');
  reload.adopt(next);
  await eventually(async () => (await toolsOf(host ?? missing())).includes('two_a'));
  assert.equal(await toolsOf(host ?? missing()), ['two_a', 'up_a']);
  assert.is(upstream.opened, opened + 1);
  // Mounts that the program makes later are mounted, too.
  await next.mount('late', target);
  await eventually(async () => (await toolsOf(host ?? missing())).includes('late_a'));
  await host?.close();
  await next.close();
  assert.is(upstream.open, 0);
});

function missing(): never {
  throw new Error('it does not exist');
}

test('a program of troupe dev may wait for its mounts, and dials nothing itself', async () => {
  const upstream = played('a');
  launchedBy({ listens: () => undefined, reads() {}, servesInstead: true });
  try {
    const program = server('program');
    const mount = await program.mount('up', { name: 'up', channel: () => upstream.channel() });
    await mount.ready();
    await mount.refresh();
    assert.equal([upstream.opened, mount.state], [0, 'idle']);
    await program.close();
  } finally {
    launchedBy({ listens: () => undefined, reads() {} });
  }
});

/** Waits for a cause that has begun. */
async function eventually(condition: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 1_000; turn += 1) {
    if (await condition()) return;
    await settled();
  }
  assert.unreachable('it did not happen');
}
