/** A server with one client, as on stdio: its connection to a legacy upstream serves the lists, too. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, http, type Server, type ServerOptions, sqlite } from 'troupe';
import { type Client, connect } from 'troupe/client';
import { SimulatedClock } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { MemoryChannel } from '../../../src/client/channels/memory-channel.ts';
import { openInMemory } from '../../../src/client/in-memory.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { memory } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { until } from '../../harness/wait.ts';
import { speakLegacy } from './asking-server.ts';

const test = suite('a gateway with one client');
const folder = mkdtempSync(join(tmpdir(), 'troupe-one-client-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const quiet: NonNullable<ServerOptions['log']> = () => {};

/** A program over stdio is another server for each connection. The sent methods are noted. */
function programs(clock: SimulatedClock, era: 'legacy' | 'modern') {
  const made: Server[] = [];
  const sent: { readonly method: string; readonly capabilities: unknown }[] = [];
  const channel = (): MemoryChannel => {
    const server = createServer({ name: 'shop', version: '1.0.0', clock, log: quiet });
    if (era === 'legacy') speakLegacy(server);
    server.tool('enroll', () => {
      server.tool('members', () => `of process ${made.indexOf(server)}`);
      return `process ${made.indexOf(server)}`;
    });
    made.push(server);
    const opened = new MemoryChannel({ clock, connect: () => openInMemory(server) });
    const send = opened.send.bind(opened);
    opened.send = (message) => {
      const { method, params } = JSON.parse(message.text);
      sent.push({ method, capabilities: params?.capabilities });
      send(message);
    };
    return opened;
  };
  return { made, sent, target: { name: 'shop', channel } };
}

interface Gateway {
  readonly host: Server;
  connect(eras: 'legacy' | 'modern'): Promise<Client>;
}

/** A server on a transport for one client. */
async function gateway(
  clock: SimulatedClock,
  target: ReturnType<typeof programs>['target'],
  options: Partial<ServerOptions> = {},
): Promise<Gateway> {
  const host = createServer({ name: 'host', version: '1.0.0', clock, log: quiet, ...options });
  await host.mount('shop', target);
  const { transport, connect: open } = memory();
  await host.listen(Object.assign(transport, { oneClient: true }));
  const channel = () => new MemoryChannel({ clock, connect: () => Promise.resolve(open({ principal: 'local user' })) });
  return {
    host,
    connect: (eras) => connect({ name: 'host', channel }, { clock, eras, log: quiet, elicit: () => 'decline' }),
  };
}

const names = async (client: Client): Promise<string[]> =>
  (await client.tools({ fresh: true })).map(({ name }) => name);

async function closed(clock: SimulatedClock, ...all: readonly { close(): Promise<void> }[]): Promise<void> {
  const ended = Promise.all(all.map((each) => each.close()));
  for (let step = 0; step < 20; step += 1) await clock.advance(1_000);
  await ended;
}

for (const eras of ['legacy', 'modern'] as const)
  for (const era of ['legacy', 'modern'] as const)
    test(`a ${eras} client and a ${era} upstream have one process, whose new tool is offered at once`, async () => {
      const clock = new SimulatedClock();
      const shop = programs(clock, era);
      const { host, connect } = await gateway(clock, shop.target);
      assert.is(shop.made.length, 0, 'the upstream is not started without its client');
      const client = await connect(eras);
      assert.equal(await names(client), ['shop_enroll']);
      let changes = 0;
      void (async () => {
        for await (const { type } of client.changes({ tools: true })) if (type === 'tools') changes += 1;
      })();
      const content = [{ type: 'text', text: 'process 0' }];
      assert.equal((await client.call('shop_enroll')).content, content);
      for (let step = 0; step < 20 && changes === 0; step += 1) await clock.advance(250);
      assert.ok(changes > 0);
      assert.equal(await names(client), ['shop_enroll', 'shop_members']);
      assert.equal((await client.call('shop_members')).content, [{ type: 'text', text: 'of process 0' }]);
      // It serves the client as long as the client is there.
      await clock.advance(3_600_000);
      assert.equal((await client.call('shop_members')).content, [{ type: 'text', text: 'of process 0' }]);
      assert.is(shop.made.length, 1);
      if (era === 'legacy') {
        const [declared] = shop.sent.flatMap(({ method, capabilities }) =>
          method === 'initialize' ? [capabilities] : [],
        );
        assert.equal(
          Object.keys(Object(declared)).filter((name) => name !== 'extensions'),
          ['elicitation'],
        );
      }
      await closed(clock, client, host, ...shop.made);
    });

for (const era of ['legacy', 'modern'] as const)
  (era === 'legacy' ? test : test.full)(
    `the next process knows the era of a ${era} upstream, and one of another era is found nevertheless`,
    async () => {
      const listed = async (of: 'legacy' | 'modern'): Promise<string | undefined> => {
        const clock = new SimulatedClock();
        const shop = programs(clock, of);
        const store = sqlite(join(folder, `${era}.db`));
        const { host, connect } = await gateway(clock, shop.target, { store });
        const client = await connect('legacy');
        assert.ok((await names(client)).includes('shop_enroll'));
        const call = client.call('shop_enroll');
        for (let step = 0; step < 20; step += 1) await clock.advance(250);
        assert.is((await call).isError, undefined);
        await closed(clock, client, host, ...shop.made);
        return shop.sent[0]?.method;
      };
      assert.is(await listed(era), 'server/discover');
      assert.is(await listed(era), era === 'legacy' ? 'initialize' : 'server/discover');
      await listed(era === 'legacy' ? 'modern' : 'legacy');
    },
  );

for (const eras of ['legacy', 'modern'] as const)
  for (const era of ['legacy', 'modern'] as const)
    test(`a ${eras} client and a ${era} upstream over HTTP have one session`, async () => {
      const shop = createServer({ name: 'shop', version: '1.0.0', log: quiet });
      if (era === 'legacy') speakLegacy(shop);
      let sessions = 0;
      shop.inspect((record) => {
        if (record.type === 'created' && record.kind === 'session') sessions += 1;
      });
      shop.tool('enroll', () => {
        shop.tool('members', () => 'ada');
        return 'enrolled';
      });
      const door = http({ port: 0 });
      await shop.listen(door);
      const host = createServer({ name: 'host', version: '1.0.0', log: quiet });
      await host.mount('shop', String(door.url));
      const { transport, connect: open } = memory();
      await host.listen(Object.assign(transport, { oneClient: true }));
      const channel = () =>
        new MemoryChannel({ clock: systemClock, connect: () => Promise.resolve(open({ principal: 'local user' })) });
      const client = await connect({ name: 'host', channel }, { eras, log: quiet, elicit: () => 'decline' });
      assert.equal(await names(client), ['shop_enroll']);
      assert.is((await client.call('shop_enroll')).isError, undefined);
      await until(async () => (await names(client)).length >= 2);
      assert.equal(await names(client), ['shop_enroll', 'shop_members']);
      assert.is(sessions, era === 'legacy' ? 1 : 0);
      for (const each of [client, host, shop]) await each.close();
    });
