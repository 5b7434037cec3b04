/** A gateway in front of servers of other projects: each conversation goes as without it, in both eras of the client. */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createServer, http, type MountOptions, type MountTarget } from 'troupe';
import { type Client, type ConnectOptions, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import {
  ANSWERS,
  converse,
  converseWithEverything,
  EVERYTHING_ANSWERS,
  PATIENT,
  PEERS,
  textOf,
} from '../../client/conversation.ts';
import {
  havePeers,
  type MarkedCommand,
  peerCommand,
  processesOf,
  serveEverything,
  servePeer,
} from '../../client/peers.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { PROOF } from '../../harness/scale.ts';

fullOnly('starts servers of other projects; the quick test of a gateway is mount.test.ts');

const test = suite('a gateway in front of other servers');
const ERAS = ['legacy', 'modern'] as const;
/** Names and addresses stay as they are. */
const UNCHANGED: MountOptions = {
  ...PATIENT,
  prefix: false,
  listMs: 60_000,
  firstListMs: 60_000,
  upstreamWaitMs: 60_000,
};

async function through(
  target: MountTarget,
  era: (typeof ERAS)[number],
  options: ConnectOptions,
  body: (client: Client) => Promise<void>,
): Promise<void> {
  const gateway = createServer({ name: 'gateway', version: '1.0.0', log() {} });
  try {
    await gateway.mount('peer', target, UNCHANGED);
    const transport = http({ port: 0 });
    await gateway.listen(transport);
    const client = await connect(transport.url, { ...PATIENT, ...options, eras: era });
    try {
      await body(client);
    } finally {
      await client.close();
    }
  } finally {
    await gateway.close();
  }
}

function ended(command: MarkedCommand): void {
  assert.equal(processesOf(command), [], 'a process of the upstream is left');
}

if (!havePeers) test.skip('all of them', 'npm ci --prefix bench/peers installs them');
else {
  for (const peer of PEERS)
    for (const era of ERAS)
      for (const way of ['stdio', 'http'] as const) {
        // In a full run, each server meets a client of each era over one transport.
        if (!PROOF && (era === 'legacy') !== (way === 'stdio')) continue;
        // A legacy upstream has a session for each owner of calls, and one that is listed.
        const behind = { gathers: true, listsIt: peer.era === 'modern' };
        test(`${peer.file} over ${way}, for a ${era} client`, async () => {
          if (way === 'http') {
            const served = await servePeer(peer.file);
            try {
              await through(served.url, era, ANSWERS, (client) => converse(client, peer, way, behind));
            } finally {
              await served.close();
            }
            return;
          }
          const command = peerCommand(peer.file, ['stdio']);
          await through(command, era, ANSWERS, (client) => converse(client, peer, way, behind));
          ended(command);
        });
      }

  for (const era of PROOF ? ERAS : ERAS.slice(0, 1)) {
    test(`the reference server "everything" over stdio, for a ${era} client`, async () => {
      const command = peerCommand('@modelcontextprotocol/server-everything/dist/index.js', ['stdio']);
      await through(command, era, EVERYTHING_ANSWERS, (client) => converseWithEverything(client, true));
      ended(command);
    });

    test(`the reference server "everything" over HTTP, for a ${era} client`, async () => {
      const served = await serveEverything();
      try {
        await through(served.url, era, EVERYTHING_ANSWERS, (client) => converseWithEverything(client, true));
      } finally {
        await served.close();
      }
    });

    test(`the reference server "filesystem" works in the roots of a ${era} client`, async () => {
      const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gateway-')));
      const command = peerCommand('@modelcontextprotocol/server-filesystem/dist/index.js', [tmpdir()]);
      const roots = (): { uri: string }[] => [{ uri: pathToFileURL(folder).href }];
      try {
        await through(command, era, { ...ANSWERS, roots }, async (client) => {
          const path = join(folder, 'tea.txt');
          await client.call('write_file', { path, content: 'oolong' });
          assert.is(readFileSync(path, 'utf8'), 'oolong');
          assert.is(textOf(await client.call('read_text_file', { path })), 'oolong');
          assert.is((await client.call('read_text_file', { path: join(folder, 'none') })).isError, true);
        });
        ended(command);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

    test(`the reference server "memory" keeps what a ${era} client tells it`, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'gateway-'));
      const env = { MEMORY_FILE_PATH: join(folder, 'memory.json') };
      const command = peerCommand('@modelcontextprotocol/server-memory/dist/index.js', [], env);
      try {
        await through(command, era, ANSWERS, async (client) => {
          const [graph] = await client.resources();
          const entities = [{ name: 'Ada', entityType: 'person', observations: ['drinks tea'] }];
          await client.call('create_entities', { entities });
          assert.match(textOf({ content: (await client.read(String(graph?.uri))).contents }), 'drinks tea');
        });
        ended(command);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  }
}
