/** The owners of calls over HTTP: each has one connection to a legacy upstream, with its state. */
import { createServer, http, type Server } from 'troupe';
import { type Client, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { MemoryChannel } from '../../../src/client/channels/memory-channel.ts';
import { openInMemory } from '../../../src/client/in-memory.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
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
  connect(eras: 'legacy' | 'modern', elicit?: (message: string) => string): Promise<Client>;
  close(): Promise<void>;
}

async function stage(prepare: (server: Server) => void): Promise<Stage> {
  const { made, target } = programs(prepare);
  const host = createServer({ name: 'host', version: '1.0.0', log() {} });
  await host.mount('shop', target);
  const transport = http({ port: 0 });
  await host.listen(transport);
  const clients: Client[] = [];
  return {
    made,
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

test('a question of a process that several clients share reaches the client of its call', async () => {
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
