/** Servers that share a database: whatever one of them has begun, the others serve, continue and count, also after its death. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { CELLS, cellIn } from '../../../src/core/protocol/cell.ts';
import { isObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { TASKS_EXTENSION } from '../../../src/core/protocol/task-params.ts';
import { sharesOf } from '../../../src/features/cluster/shares.ts';
import { http, type Server } from '../../../src/index.ts';
import { call, send } from '../../core/http/modern.ts';
import { type Answer, ask, type Message, openSession, type Session } from '../../core/http/support.ts';
import { compiled } from '../../harness/compiled.ts';
import { conclusive, suite } from '../../harness/door.ts';
import { loggedServer } from '../../harness/memory.ts';
import { MemoryDatabase, type MemoryProcess } from '../../harness/memory-nodes.ts';
import { haveShares } from '../../harness/shares.ts';
import { HANG_MS, until } from '../../harness/wait.ts';
import { orderMachine, orderOptions } from '../machines/shop.ts';

const test = suite('nodes that share a store');

const SECRET = 'a secret that all nodes of this test share';

interface Node {
  readonly server: Server;
  readonly process: MemoryProcess;
  readonly url: string;
  readonly told: string[];
  readonly ran: string[];
  /** Ends the calls of `bake` at this node. */
  readonly ends: (() => void)[];
  stop(): Promise<void>;
}

const open = new Set<Node>();
test.after(async () => {
  for (const node of open) await node.stop();
});

async function start(database: MemoryDatabase, name: string, spread?: 'session'): Promise<Node> {
  const process = database.process(name);
  const authenticate = ({ header }: { header(name: string): string | undefined }): string => header('x-user') ?? 'ann';
  const ran: string[] = [];
  const ends: (() => void)[] = [];
  const { server, logged: told } = loggedServer({
    ...{ name: 'shop', version: '1.0.0', store: process.store },
    cluster: { listen: '127.0.0.1:0', secret: SECRET, spread },
    http: { authenticate },
    // A request waits as long for the owner of its cell.
    limits: { graceMs: HANG_MS },
  });
  server.machine('order', orderMachine, orderOptions);
  server.tool('pay', { input: z.object({ n: z.number() }) }, ({ n }) => {
    ran.push(`pay ${n}`);
    return `${name} paid ${n}`;
  });
  server.tool('bake', { task: 'required' }, async () => {
    await new Promise<void>((resolve) => ends.push(resolve));
    return 'baked';
  });
  const transport = http({ port: 0, authenticate });
  await server.listen(transport);
  const node: Node = {
    ...{ server, process, told, ran, ends, url: transport.url },
    async stop() {
      open.delete(node);
      if (process.state === 'killed') process.clear();
      else process.resume();
      await server.close();
    },
  };
  open.add(node);
  return node;
}

async function messageIn(answer: Answer): Promise<Message> {
  const body = await answer.text();
  try {
    return JSON.parse([...body.matchAll(/^data: (.+)$/gm)].at(-1)?.[1] ?? body);
  } catch {
    throw new Error(`expected a message, got ${answer.status}: ${body}`);
  }
}

async function called(session: Session, url: string, id: number, name: string, args: object): Promise<Message> {
  const body = { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } };
  return messageIn(await ask(url, { headers: session.headers, body }));
}

function stateIn({ result, error }: Message): Readonly<Record<string, unknown>> {
  const content = result?.structuredContent;
  if (!isObject(content)) throw new Error(`expected a handle, got ${JSON.stringify(error ?? result)}`);
  return content;
}

test('a session and a handle live through the death of their node, at whichever node the client asks', async () => {
  const database = new MemoryDatabase(systemClock);
  const one = await start(database, 'one');
  assert.is(one.server.cluster()?.cells, CELLS);
  const session = await openSession(one.url);
  const handle = String(stateIn(await called(session, one.url, 1, 'order_create', { customer: 'Ada' })).handle);
  assert.is(cellIn(handle), cellIn(session.id));
  await called(session, one.url, 2, 'order_add_item', { handle, sku: 'tea', quantity: 2 });
  const two = await start(database, 'two');
  // Asked at the node that may not own it.
  const seen = stateIn(await called(session, two.url, 3, 'order_get', { handle }));
  assert.match(JSON.stringify(seen), '"tea"');
  one.process.kill();
  database.fence(one.process.id);
  await until(() => two.server.cluster()?.cells === CELLS, 'all cells');
  const after = await called(session, two.url, 4, 'order_add_item', { handle, sku: 'cup', quantity: 1 });
  assert.match(JSON.stringify(stateIn(after)), '"cup"');
  // The same call again is answered and not run.
  const again = await called(session, two.url, 4, 'order_add_item', { handle, sku: 'cup', quantity: 1 });
  assert.equal(again, after);
  conclusive(() => assert.equal(database.violations, []));
  await one.stop();
  await two.stop();
});

test('server.fetch of a node finds what a node has whose server.fetch was never called', async () => {
  const database = new MemoryDatabase(systemClock);
  const one = await start(database, 'one');
  const two = await start(database, 'two');
  await haveShares(one.server, two.server);
  const session = await openSession(one.url);
  const entry = database.ownerOf(cellIn(session.id) ?? -1) === one.process.id ? two : one;
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'pay', arguments: { n: 5 } } };
  const request = new Request('http://localhost/mcp', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...session.headers },
    body: JSON.stringify(body),
  });
  const response = await entry.server.fetch(request);
  assert.match(await response.text(), / paid 5/);
  assert.equal([...one.ran, ...two.ran], ['pay 5']);
  await one.stop();
  await two.stop();
});

test.full(
  "with spread: 'session', one principal works at all nodes: each session, its handles and its keys are found from each node",
  async () => {
    const database = new MemoryDatabase(systemClock);
    const one = await start(database, 'one', 'session');
    const two = await start(database, 'two', 'session');
    // A session is in a cell of its node, which moves while the nodes share.
    await haveShares(one.server, two.server);
    const sessions = await Promise.all([one, one, one, two, two, two].map(({ url }) => openSession(url)));
    const cells = sessions.map(({ id }) => cellIn(id) ?? -1);
    assert.ok(new Set(cells).size > 1, String(cells));
    assert.is(new Set(cells.map((cell) => database.ownerOf(cell))).size, 2);
    for (const [n, session] of sessions.entries()) {
      const made = stateIn(await called(session, one.url, 1, 'order_create', { customer: `Ada ${n}` }));
      assert.is(cellIn(String(made.handle)), cells[n]);
      const { handle } = made;
      const seen = stateIn(await called(session, two.url, 2, 'order_get', { handle }));
      assert.match(JSON.stringify(seen), `Ada ${n}`);
    }
    // A key is in one cell, whichever node its call enters by.
    const meta = { [META.idempotencyKey]: 'one key of the principal, 0123456789' };
    const paid = await Promise.all(
      [one, two, one].map(({ url }) => call(url, 'pay', { n: 7 }, { meta }).then(messageIn)),
    );
    assert.is([...one.ran, ...two.ran].filter((ran) => ran === 'pay 7').length, 1, JSON.stringify(paid));
    conclusive(() => assert.equal(database.violations, []));
    await one.stop();
    await two.stop();
  },
);

test('a node that stops gives its cells away first: no request fails, and no session begins again', async () => {
  const database = new MemoryDatabase(systemClock);
  const one = await start(database, 'one');
  const sessions = await Promise.all(
    Array.from({ length: 12 }, (_, n) => openSession(one.url, '2025-11-25', { 'x-user': `user ${n}` })),
  );
  const two = await start(database, 'two');
  let stopped = false;
  const stopping = one.stop().then(() => {
    stopped = true;
  });
  let calls = 0;
  const work = sessions.map(async (session) => {
    for (let n = 1; !stopped || n < 5; n += 1) {
      calls += 1;
      const { result, error } = await called(session, two.url, n, 'pay', { n: calls });
      assert.ok(result, JSON.stringify(error));
    }
  });
  await Promise.all([stopping, ...work]);
  assert.is(two.server.cluster()?.cells, CELLS);
  assert.is(one.ran.length + two.ran.length, calls);
  conclusive(() => assert.equal(database.violations, []));
  assert.equal(
    two.server.cluster()?.nodes.map(({ node }) => node),
    ['two-1'],
  );
  await two.stop();
});

test.full('a node that joins gets a cell with a working task only when the task has ended', async () => {
  const database = new MemoryDatabase(systemClock);
  const one = await start(database, 'one');
  const meta = { [META.clientCapabilities]: { extensions: { [TASKS_EXTENSION]: {} } } };
  const shares = sharesOf([one.process.id, 'two-1']);
  let task = '';
  // A task of a call without a session is in any cell of its node.
  while (shares[cellIn(task) ?? -1] !== 'two-1') {
    const { result, error } = await messageIn(await call(one.url, 'bake', {}, { meta }));
    assert.type(result?.taskId, 'string', JSON.stringify(error ?? result));
    task = String(result?.taskId);
  }
  const status = async (node: Node): Promise<unknown> => {
    const looked = await send(node.url, 'tasks/get', { params: { taskId: task }, headers: { 'mcp-name': task }, meta });
    return (await messageIn(looked)).result?.status;
  };
  const two = await start(database, 'two');
  assert.is(two.process.id, 'two-1');
  const share = shares.filter((node) => node === 'two-1').length;
  await until(() => Number(two.server.cluster()?.cells) >= share - 1, 'all of its share without tasks');
  assert.is(await status(two), 'working');
  for (const end of one.ends) end();
  await until(() => two.server.cluster()?.cells === share, 'its share');
  assert.is(await status(two), 'completed');
  conclusive(() => assert.equal(database.violations, []));
  await one.stop();
  await two.stop();
});

test.full(
  'a node has loaded what its calls need when it serves: a call for a cell that has moved to it does not wait for modules',
  async () => {
    const thread = new Worker(compiled('test/fixtures/cluster/loaded.ts'));
    const [loaded] = await once(thread, 'message');
    assert.equal(loaded, { before: false, serving: true });
    await once(thread, 'exit');
  },
);

test('a zombie commits nothing, answers nothing of its sessions, and joins again', async () => {
  const database = new MemoryDatabase(systemClock);
  const one = await start(database, 'one');
  const session = await openSession(one.url);
  const stream = await session.get();
  assert.is(stream.status, 200);
  const two = await start(database, 'two');
  const handle = String(stateIn(await called(session, one.url, 1, 'order_create', { customer: 'Ada' })).handle);
  const owner = database.ownerOf(cellIn(session.id) ?? -1) === one.process.id ? one : two;
  const other = owner === one ? two : one;
  const before = owner.process.id;
  owner.process.pause();
  // Its lease is over, as the database's clock says.
  const row = database.nodes.get(before);
  assert.ok(row);
  row.beatAt -= 10_000;
  database.fence(before);
  await until(() => other.server.cluster()?.cells === CELLS, 'all cells');
  const added = await called(session, other.url, 2, 'order_add_item', { handle, sku: 'tea', quantity: 1 });
  assert.match(JSON.stringify(stateIn(added)), '"tea"');
  database.commits = [];
  owner.process.resume();
  await until(() => owner.process.id !== before && owner.server.cluster()?.state === 'owning', 'another seat');
  for (const { node, refused } of database.commits) assert.ok(node !== before || refused);
  assert.match(owner.told.join('\n'), 'has lost its');
  const seen = stateIn(await called(session, owner.url, 3, 'order_get', { handle }));
  assert.match(JSON.stringify(seen), '"tea"');
  conclusive(() => assert.equal(database.violations, []));
  stream.cut();
  await one.stop();
  await two.stop();
});
