/** Both official clients and `mcp-remote` behind a balancer over three nodes: they keep their sessions while nodes are killed. */
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as assert from 'uvu/assert';
import { timeLimit } from '../../harness/door.ts';
import { postgresSuite } from '../../harness/postgres.ts';
import { atScale, SCALE } from '../../harness/scale.ts';
import { mcpRemote } from '../clients/mcp-remote.ts';
import { ClusterStage } from './stage.ts';

const KILLS = atScale({ quick: 0, full: 1, proof: 100 });

timeLimit(60_000 + KILLS * 15_000);
const test = postgresSuite('official clients of nodes');
const INFO = { name: 'official', version: '1.0.0' };

/** A connected client: its calls, and its session. */
interface Connected {
  readonly name: string;
  echo(text: string): Promise<unknown>;
  session(): string | undefined;
  close(): Promise<void>;
}

async function v1(url: string): Promise<Connected> {
  const transport = new HttpV1(new URL(url), { requestInit: { headers: { authorization: 'v1' } } });
  const client = new ClientV1(INFO);
  // The types of the SDK do not allow `undefined` where its classes have it.
  await client.connect(transport as Parameters<ClientV1['connect']>[0]);
  return {
    name: '@modelcontextprotocol/sdk',
    echo: async (text) => (await client.callTool({ name: 'echo', arguments: { text } })).content,
    session: () => transport.sessionId,
    close: () => client.close(),
  };
}

async function v2(url: string): Promise<Connected> {
  const transport = new HttpV2(new URL(url), { requestInit: { headers: { authorization: 'v2' } } });
  const client = new ClientV2(INFO);
  await client.connect(transport);
  return {
    name: '@modelcontextprotocol/client',
    echo: async (text) => (await client.callTool({ name: 'echo', arguments: { text } })).content,
    session: () => transport.sessionId,
    close: () => client.close(),
  };
}

async function remote(url: string): Promise<Connected> {
  const transport = mcpRemote(url, '--header', 'authorization:remote');
  const client = new ClientV1(INFO);
  await client.connect(transport);
  return {
    name: 'mcp-remote',
    echo: async (text) => (await client.callTool({ name: 'echo', arguments: { text } })).content,
    session: () => undefined,
    close: () => client.close(),
  };
}

/** The number of sessions in the database. `mcp-remote` opens two: one to find out the transport of its server. */
async function stored({ postgres, database }: ClusterStage): Promise<number> {
  return (await postgres.query("SELECT id FROM troupe.actor WHERE id LIKE 'session/%'", database)).length;
}

if (SCALE === 'quick') test.skip('the clients', 'npm run test:full runs it');
else
  test('official clients keep their sessions while one node after the other is killed', async () => {
    const stage = await ClusterStage.open();
    const clients = await Promise.all([v1(stage.url), v2(stage.url), remote(stage.url)]);
    const sessions = clients.map((client) => client.session());
    const opened = await stored(stage);
    let killing = true;
    const counts = new Map<string, { calls: number; failed: number }>();
    const load = clients.map(async (client) => {
      const count = { calls: 0, failed: 0 };
      counts.set(client.name, count);
      while (killing) {
        count.calls += 1;
        const text = `call ${count.calls}`;
        // A call whose node is killed has an unknown outcome, so the application repeats it.
        const content = await client.echo(text).catch(() => undefined);
        if (content === undefined) count.failed += 1;
        else assert.match(JSON.stringify(content), text);
      }
    });
    const loaded = Promise.all(load);
    for (let kill = 0; kill < KILLS; kill += 1) {
      const node = stage.nodes[kill % stage.nodes.length];
      await Promise.race([node?.kill(), loaded]);
      await Promise.race([node?.start(), loaded]);
    }
    killing = false;
    await loaded;
    for (const client of clients) {
      assert.match(JSON.stringify(await client.echo('the end')), 'the end', client.name);
      await client.close();
    }
    assert.equal(
      clients.map((client) => client.session() ?? ''),
      sessions.map((session) => session ?? ''),
    );
    // A client that had begun again would have left another session.
    assert.equal(await stored(stage), opened);
    console.log(
      `${KILLS} kills: ${[...counts].map(([name, { calls, failed }]) => `${name} ${calls} calls, ${failed} repeated`).join('; ')}`,
    );
    await stage.close();
  });
