/** Webhooks and schedules of two nodes over a PostgreSQL: one delivery and one slot have one effect, and a node that ends leaves its own to the other. */
import * as assert from 'uvu/assert';
import { createServer, http, postgres, type Server } from '../../../src/index.ts';
import { github } from '../../../src/webhooks.ts';
import { nodesSuite } from '../../harness/postgres.ts';
import { until } from '../../harness/wait.ts';
import { byGithub, PATH, SECRET } from '../hooks/support.ts';

const { nodes, servers, database } = nodesSuite('webhooks and schedules over PostgreSQL');

interface Reached {
  readonly server: Server;
  /** The bodies that its handler got, and the slots that it ran. */
  readonly handled: unknown[];
  readonly slots: string[];
  readonly runs: () => boolean;
  send(body: string): Promise<number>;
}

async function start(url: string): Promise<Reached> {
  const server = createServer({
    ...{ name: 'reached', version: '1.0.0', store: postgres(url), log: () => {} },
    cluster: { listen: '127.0.0.1:0', secret: 'a secret that all nodes of this test share' },
  });
  const handled: unknown[] = [];
  const slots: string[] = [];
  server.webhook(PATH, { verify: github({ secret: SECRET }), to: ({ body }) => void handled.push(body) });
  const schedule = server.schedule('beat', { everyMs: 1_000 }, ({ scheduledFor }) => void slots.push(scheduledFor));
  servers.push(server);
  const transport = http({ port: 0 });
  await server.listen(transport);
  const address = new URL(PATH, transport.url);
  return {
    ...{ server, handled, slots, runs: () => schedule.next !== undefined },
    send: async (body) => (await fetch(address, { method: 'POST', body, headers: byGithub(body) })).status,
  };
}

nodes(
  'R-66: equal deliveries at two nodes over PostgreSQL are handled once, also after one of the nodes has ended',
  async () => {
    const url = await database();
    const [one, two] = [await start(url), await start(url)];
    await until(() => one.server.readiness().ready && two.server.readiness().ready, 'both nodes to be ready');
    // A cell may be on its way to the other node. A sender repeats what is answered with 503.
    const accepted = (node: typeof one, body: string): Promise<void> =>
      until(async () => {
        const status = await node.send(body);
        assert.ok([200, 503].includes(status), `${body}: ${status}`);
        return status === 200;
      }, `a node to take ${body}`);
    await Promise.all([1, 2, 3].flatMap((n) => [one, two].map((node) => accepted(node, `[${n}]`))));
    const all = (): readonly unknown[] => [...one.handled, ...two.handled].flat();
    await until(() => all().length >= 3, 'three deliveries to be handled');
    await one.server.close();
    await accepted(two, '[1]');
    await accepted(two, '[4]');
    await until(() => all().includes(4), 'the fourth delivery');
    assert.equal([...all()].sort(), [1, 2, 3, 4]);
  },
);

nodes(
  'R-81: each slot of a schedule runs at one of two nodes over PostgreSQL, and at the other when that one ends',
  async () => {
    const url = await database();
    const [one, two] = [await start(url), await start(url)];
    await until(() => one.runs() !== two.runs(), 'one node to run the schedule');
    const [here, there] = one.runs() ? [one, two] : [two, one];
    await until(() => here.slots.length >= 2, 'two slots');
    assert.equal(there.slots, []);
    await here.server.close();
    await until(() => there.slots.length >= 1, 'a slot at the other node');
    const slots = [...here.slots, ...there.slots];
    assert.equal(slots, [...new Set(slots)].toSorted());
  },
);
