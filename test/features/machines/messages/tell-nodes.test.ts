/** Messages between instances of three nodes: over the link, over a handle that moves, and over the death of a node. */
import * as assert from 'uvu/assert';
import { assign, setup } from 'xstate';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { CELLS } from '../../../../src/core/protocol/cell.ts';
import { isObject } from '../../../../src/core/protocol/json.ts';
import { OUT_TIMER } from '../../../../src/features/machines/messages/out-message.ts';
import { createServer, memory, type Server, tell } from '../../../../src/index.ts';
import { suite } from '../../../harness/door.ts';
import { MemoryDatabase, type MemoryProcess } from '../../../harness/memory-nodes.ts';
import { atScale } from '../../../harness/scale.ts';
import { until } from '../../../harness/wait.ts';

const test = suite('messages between nodes');

const ORDERS = atScale({ quick: 8, full: 20, proof: 200 });
const EACH = 10;

interface Node {
  readonly server: Server;
  readonly process: MemoryProcess;
}

const stock = setup({
  types: {
    context: {} as { taken: readonly string[] },
    events: {} as { type: 'reserve'; n: number; by: string } | { type: 'close' },
  },
}).createMachine({
  context: { taken: [] },
  initial: 'open',
  states: {
    open: {
      on: {
        reserve: { actions: assign({ taken: ({ context, event }) => [...context.taken, `${event.by} ${event.n}`] }) },
        close: 'closed',
      },
    },
    closed: {},
  },
});

const order = setup({
  types: { context: {} as { ordered: number }, events: {} as { type: 'order' } },
}).createMachine({
  context: { ordered: 0 },
  on: {
    order: {
      actions: [
        assign({ ordered: ({ context }) => context.ordered + 1 }),
        ...['tea', 'milk'].map((key) =>
          tell<{ ordered: number }, { type: 'order' }, undefined>('stock', key, ({ context }) => ({
            type: 'reserve',
            n: context.ordered,
          })),
        ),
      ],
    },
  },
});

async function start(database: MemoryDatabase, name: string): Promise<Node> {
  const process = database.process(name);
  const server = createServer({
    ...{ name: 'shop', version: '1.0.0', store: process.store, log: () => {} },
    cluster: { listen: '127.0.0.1:0', secret: 'a secret that all nodes of this test share' },
    limits: { graceMs: 1_000 },
  });
  const roles = { of: () => 'anyone', anyone: { events: '*' } } as const;
  const view = ({ context }: { context: object }) => context;
  server.machine('stock', stock, { events: { close: true }, key: { argument: 'sku' }, roles, view });
  server.machine('order', order, { events: { order: true }, key: { argument: 'id' }, roles, view });
  await server.listen(memory().transport);
  return { server, process };
}

async function takenAt({ server }: Node, sku: string): Promise<readonly string[]> {
  const { view } = await server.send('stock', sku, { type: 'close' }).catch(() => ({ view: undefined }));
  return isObject(view) && Array.isArray(view.taken) ? view.taken.map(String) : [];
}

test('R-58: a message reaches an instance of another node once and in order, also when one of the nodes dies', async () => {
  const database = new MemoryDatabase(systemClock);
  const nodes: Node[] = [];
  for (const name of ['one', 'two', 'three']) nodes.push(await start(database, name));
  await until(() => nodes.every(({ server }) => (server.cluster()?.cells ?? 0) > CELLS / 4), 'shares of the cells');
  const [one, two, three] = nodes;
  assert.ok(one && two && three);
  const acknowledged = new Map<string, number>();
  const orders = Array.from({ length: ORDERS }, (_, at) => `o${at}`);
  let rounds = 0;
  await Promise.all(
    orders.map(async (id, at) => {
      for (let n = 1; n <= EACH; n += 1) {
        const { server } = at % 2 === 0 ? one : two;
        // A call whose outcome is unknown is not sent again.
        const answer = await server.send('order', id, { type: 'order' }).catch(() => undefined);
        if (isObject(answer?.view)) acknowledged.set(id, Number(answer.view.ordered));
        rounds += 1;
        if (rounds === (ORDERS * EACH) / 2) {
          three.process.kill();
          database.fence(three.process.id);
        }
      }
    }),
  );
  assert.is(acknowledged.size, ORDERS);
  const outboxes = async (): Promise<number> => {
    const timers = await database.data.timers(Number.MAX_SAFE_INTEGER, 10_000);
    return timers.filter(({ timer }) => timer === OUT_TIMER).length;
  };
  await until(async () => (await outboxes()) === 0, 'empty outboxes');
  for (const sku of ['tea', 'milk']) {
    const taken = await takenAt(one, sku);
    for (const id of orders) {
      const own = taken.filter((each) => each.startsWith(`order/${id} `)).map((each) => Number(each.split(' ')[1]));
      assert.equal(
        own,
        Array.from({ length: own.length }, (_, n) => n + 1),
        `${sku} of ${id}`,
      );
      assert.ok(own.length >= (acknowledged.get(id) ?? 0), `${sku} of ${id}: ${own.length}`);
    }
  }
  three.process.clear();
  for (const { server } of nodes) await server.close();
});
