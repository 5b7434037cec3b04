/** Instances of keys in a cluster: one for each key, whichever node a call reaches, also while its cell moves. */
import * as assert from 'uvu/assert';
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { CELLS, cellIn } from '../../../src/core/protocol/cell.ts';
import { handleOfKey } from '../../../src/features/machines/keys.ts';
import { http, type Server } from '../../../src/index.ts';
import { conclusive, suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { MemoryDatabase, type MemoryProcess } from '../../harness/memory-nodes.ts';
import { times } from '../../harness/scale.ts';
import { until } from '../../harness/wait.ts';

const test = suite('keys in a cluster');

/** The most calls that wait for one instance, by limits.handleMailbox. */
const CALLS = times(1_000, { quick: 200 });
const KEY = 'lobby';

const counter = setup({
  types: {
    input: {} as { key: string; principal: string },
    context: {} as { count: number },
    events: {} as { type: 'add'; by: string },
  },
}).createMachine({
  context: { count: 0 },
  on: { add: { actions: assign({ count: ({ context }) => context.count + 1 }) } },
});

interface Node {
  readonly server: Server;
  readonly process: MemoryProcess;
}

const open = new Set<Node>();
test.after(async () => {
  for (const { server } of open) await server.close();
});

async function start(
  database: MemoryDatabase,
  name: string,
  limits: { readonly maxRepliesPerSession?: number; readonly graceMs?: number } = {},
): Promise<Node> {
  const process = database.process(name);
  const { server } = loggedServer({
    ...{ name: 'counters', version: '1.0.0', store: process.store },
    cluster: { listen: '127.0.0.1:0', secret: 'a secret that all nodes of this test share' },
    limits: { graceMs: 5_000, ...limits },
  });
  server.machine('counter', counter, {
    key: { argument: 'counter' },
    events: { add: true },
    roles: { of: () => 'anyone', anyone: { events: '*' } },
    view: ({ context }) => context,
  });
  await server.listen(http({ port: 0 }));
  const node = { server, process };
  open.add(node);
  return node;
}

function created(database: MemoryDatabase): number {
  const writes = (database.commits ?? []).flatMap((commit) => (commit.refused ? [] : commit.writes));
  return writes.filter((write) => write.type === 'event' && write.kind === 'created').length;
}

/** The replies that were stored for idempotency keys. */
function replies(database: MemoryDatabase): number {
  const writes = (database.commits ?? []).flatMap((commit) => (commit.refused ? [] : commit.writes));
  return writes.filter((write) => write.type === 'reply' && write.data !== '').length;
}

test(`${CALLS} first calls of one key at three nodes make one instance, also while its cell moves`, async () => {
  const database = new MemoryDatabase(systemClock);
  database.commits = [];
  const nodes = [await start(database, 'one'), await start(database, 'two'), await start(database, 'three')];
  const cells = (): readonly number[] => nodes.map(({ server }) => server.cluster()?.cells ?? 0);
  await until(() => cells().every((count) => count > 0), 'cells at each node');
  const sent = Array.from({ length: CALLS }, (_, at) =>
    nodes[at % nodes.length]?.server.send('counter', KEY, { type: 'add' }, { idempotencyKey: `call ${at}` }),
  );
  // A busy machine may take longer than a call waits for an owner: that call is rejected, whenever it is.
  const settled = Promise.allSettled(sent);
  const cell = cellIn(handleOfKey('counter', 'argument', KEY)) ?? -1;
  const owner = nodes.find(({ process }) => process.id === database.ownerOf(cell));
  assert.ok(owner, 'the cell has an owner');
  // The owner leaves while the calls are on their way: its cells move, and no acknowledged event is lost.
  await Promise.any(sent);
  open.delete(owner);
  const closed = owner.server.close();
  const outcomes = await settled;
  await closed;
  const taken = outcomes.filter(({ status }) => status === 'fulfilled').length;
  const others = nodes.filter((node) => node !== owner);
  await until(() => others.reduce((sum, { server }) => sum + (server.cluster()?.cells ?? 0), 0) === CELLS, 'all cells');
  const view = await others[0]?.server.send('counter', KEY, { type: 'add' }, { idempotencyKey: 'last' });
  conclusive(() => {
    assert.is(created(database), 1);
    const { count } = z.object({ count: z.number() }).parse(view?.view);
    assert.ok(count - 1 >= taken && count - 1 <= CALLS, `${taken} were acknowledged, and ${count - 1} counted`);
    assert.equal(database.violations, []);
  });
});

test('calls whose answers are lost with their node run once at the next one, also if their instance has taken more keys than it keeps', async () => {
  let wayMs = 0;
  const database = new MemoryDatabase(systemClock, { way: () => wayMs });
  database.commits = [];
  // A busy machine takes its time to notice that a node stands still.
  const limits = { maxRepliesPerSession: 2, graceMs: 20_000 };
  const nodes = [await start(database, 'one', limits), await start(database, 'two', limits)];
  await until(() => nodes.every(({ server }) => (server.cluster()?.cells ?? 0) > 0), 'cells at each node');
  const cell = cellIn(handleOfKey('counter', 'argument', KEY)) ?? -1;
  const owner = nodes.find(({ process }) => process.id === database.ownerOf(cell));
  const other = nodes.find((node) => node !== owner);
  assert.ok(owner && other, 'the cell has an owner');
  const add = async (at: number): Promise<unknown> =>
    (await other.server.send('counter', KEY, { type: 'add' }, { idempotencyKey: `call ${at}` })).view;
  await add(0);
  // A node stops before it learns that its commit is durable.
  wayMs = 50;
  const sent = Promise.all(Array.from({ length: 8 }, (_, at) => add(at + 1)));
  await until(() => replies(database) === 9, 'all events are stored');
  owner.process.pause();
  wayMs = 0;
  await sent;
  owner.process.resume();
  conclusive(() => assert.is(created(database), 1));
  assert.equal(await add(9), { count: 10 });
});
