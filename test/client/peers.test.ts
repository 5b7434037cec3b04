/** The client with servers of other projects, over stdio and HTTP: everything that each of them offers. */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Client, type ConnectOptions, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { fullOnly, suite } from '../harness/door.ts';
import {
  ANSWERS,
  converse,
  converseWithEverything,
  EVERYTHING_ANSWERS,
  PATIENT,
  PEERS,
  type Peer,
  textOf,
} from './conversation.ts';
import { havePeers, peerCommand, processesOf, serveEverything, servePeer } from './peers.ts';

fullOnly('starts servers of other projects; the quick tests of the client use our own');

const test = suite('the client with other servers');

/** Runs the body against a peer, and checks that nothing of the peer is left. */
async function withPeer(
  { file }: Peer,
  way: 'stdio' | 'http',
  options: ConnectOptions,
  body: (client: Client) => Promise<void>,
): Promise<void> {
  if (way === 'http') {
    const served = await servePeer(file);
    try {
      const client = await connect(served.url, { ...PATIENT, ...options });
      await body(client);
      await client.close();
      assert.is(client.state, 'closed');
    } finally {
      await served.close();
    }
    return;
  }
  const command = peerCommand(file, ['stdio']);
  const client = await connect(command, { ...PATIENT, ...options });
  try {
    await body(client);
  } finally {
    await client.close();
  }
  assert.is(client.state, 'closed');
  assert.equal(processesOf(command), []);
}

async function withCommand(
  name: string,
  args: readonly string[],
  { env, ...options }: ConnectOptions & { readonly env?: Record<string, string> },
  body: (client: Client) => Promise<void>,
): Promise<void> {
  const command = peerCommand(`@modelcontextprotocol/${name}/dist/index.js`, args, env);
  const client = await connect(command, { ...PATIENT, ...options });
  try {
    await body(client);
  } finally {
    await client.close();
  }
  assert.equal(processesOf(command), []);
}

if (!havePeers) test.skip('all of them', 'npm ci --prefix bench/peers installs them');
else {
  for (const peer of PEERS)
    for (const way of ['stdio', 'http'] as const)
      test(`speaks with ${peer.file} over ${way}`, () =>
        withPeer(peer, way, ANSWERS, (client) => {
          assert.is(client.server.era, peer.era);
          assert.is(client.server.name, peer.file.replace('.mjs', ''));
          return converse(client, peer, way);
        }));

  test('speaks with the reference server "everything" over stdio', () =>
    withCommand('server-everything', ['stdio'], EVERYTHING_ANSWERS, (client) => {
      assert.is(client.server.name, 'mcp-servers/everything');
      assert.match(String(client.server.instructions), 'Everything Server');
      return converseWithEverything(client);
    }));

  test('speaks with the reference server "everything" over HTTP', async () => {
    const served = await serveEverything();
    try {
      const client = await connect(served.url, { ...PATIENT, ...EVERYTHING_ANSWERS });
      await converseWithEverything(client);
      await client.close();
    } finally {
      await served.close();
    }
  });

  test('speaks with the reference server "filesystem", which takes its directories from the roots', async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'peers-')));
    try {
      const roots = (): { uri: string }[] => [{ uri: pathToFileURL(folder).href }];
      // A directory has to be named at the start; the roots replace it.
      await withCommand('server-filesystem', [tmpdir()], { ...ANSWERS, roots }, async (client) => {
        const path = join(folder, 'tea.txt');
        await client.call('write_file', { path, content: 'oolong' });
        assert.is(textOf(await client.call('read_text_file', { path })), 'oolong');
        assert.is(readFileSync(path, 'utf8'), 'oolong');
        assert.match(textOf(await client.call('list_allowed_directories')), folder);
        assert.is((await client.call('read_text_file', { path: join(folder, 'none') })).isError, true);
        assert.equal(await client.resources(), []);
        assert.equal(await client.prompts(), []);
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('speaks with the reference server "memory", and watches its resource', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'peers-'));
    try {
      const env = { MEMORY_FILE_PATH: join(folder, 'memory.json') };
      await withCommand('server-memory', [], { ...ANSWERS, env }, async (client) => {
        const [graph] = await client.resources();
        const uri = String(graph?.uri);
        const changes = client.changes({ resources: [uri] });
        const entities = [{ name: 'Ada', entityType: 'person', observations: ['drinks tea'] }];
        await client.call('create_entities', { entities });
        assert.equal((await changes.next()).value, { type: 'resource', uri });
        await changes.return();
        assert.match(textOf({ content: (await client.read(uri)).contents }), 'drinks tea');
        assert.match(JSON.stringify((await client.call('read_graph')).structuredContent), 'Ada');
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
