/** Changes reach the listeners at every node, and no other principal; after a cut each listener learns that it may have missed some. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as assert from 'uvu/assert';
import { assign, createMachine } from 'xstate';
import { z } from 'zod';
import type { LinkNews } from '../../../../src/core/http/other-nodes.ts';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { cellIn, withCell } from '../../../../src/core/protocol/cell.ts';
import { isObject } from '../../../../src/core/protocol/json.ts';
import { RemoteChanges } from '../../../../src/features/cluster/remote-changes.ts';
import { defineMachine, defineResource } from '../../../../src/index.ts';
import { SimulatedClock } from '../../../../src/testing/simulated-clock.ts';
import { call, send } from '../../../core/http/modern.ts';
import { type Answer, type Message, openSession } from '../../../core/http/support.ts';
import { suite, timeLimit } from '../../../harness/door.ts';
import { atScale } from '../../../harness/scale.ts';
import { type Offers, type StaticNode, staticNodes } from './static-nodes.ts';
import { Arrivals } from './support.ts';

/** The cell of a handle. */
const cellOf = (uri: string): number | undefined => cellIn(uri.split('/')[3] ?? '');

const test = suite('changes between nodes');
timeLimit(atScale({ quick: 60_000, full: 300_000, proof: 3_600_000 }));

/** It ends by no timer: the full numbers take minutes. */
const counter = createMachine({
  types: {} as { context: { count: number }; events: { type: 'add' } },
  context: { count: 0 },
  on: { add: { actions: assign({ count: ({ context }) => context.count + 1 }) } },
});

function define({ machines, resources }: Offers): void {
  resources.register(defineResource({ uri: 'notes://a', handler: () => 'a note' }));
  machines.register(defineMachine({ name: 'counter', machine: counter, events: { add: z.object({}) } }));
}

const authenticate = ({ header }: { header(name: string): string | undefined }): string =>
  header('x-user') ?? 'anonymous';

/** Bytes that are in use after a collection: the pages that a process holds depend on when it collects. */
function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') Reflect.apply(collect, undefined, []);
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** A wire between two nodes that a test can cut. */
async function wire(address: string): Promise<{ readonly address: string; cut(): void; close(): void }> {
  const [host = '', port = ''] = address.split(':');
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ host, port: Number(port) });
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
    }
    near.pipe(far).pipe(near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const at = server.address();
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return {
    address: `127.0.0.1:${typeof at === 'object' ? at?.port : 0}`,
    cut,
    close() {
      cut();
      server.close();
    },
  };
}

/** A subscription that has been acknowledged, and the URIs that it was told of. */
interface Listening {
  readonly answer: Answer;
  /** Resolves once it is told of this resource again. */
  heard(uri: string): Promise<string>;
  readonly count: (uri: string) => number;
}

async function listen({ url }: StaticNode, uris: readonly string[], user = 'anonymous'): Promise<Listening> {
  const params = { notifications: { resourceSubscriptions: uris } };
  const answer = await send(url, 'subscriptions/listen', { params, headers: { 'x-user': user }, agent: false });
  const acknowledged = await answer.events.message();
  assert.is(acknowledged.method, 'notifications/subscriptions/acknowledged', JSON.stringify(acknowledged));
  const told = new Map<string, Arrivals<string>>();
  const of = (uri: string): Arrivals<string> => {
    const arrivals = told.get(uri) ?? new Arrivals<string>(`a change of ${uri}`);
    told.set(uri, arrivals);
    return arrivals;
  };
  const read = async (): Promise<void> => {
    for (;;) {
      const { method, params } = await answer.events.message(60_000);
      // Over a million come: they share the text of their URI, and nothing else is kept of them.
      answer.events.forget();
      const uri = uris.find((each) => isObject(params) && each === params.uri);
      if (method === 'notifications/resources/updated' && uri !== undefined) of(uri).put(uri);
    }
  };
  // It ends with the stream.
  read().catch(() => {});
  return { answer, count: (uri) => of(uri).all.length, heard: (uri) => of(uri).next() };
}

async function create({ url }: StaticNode, user = 'anonymous'): Promise<string> {
  const answer = await call(url, 'counter_create', {}, { headers: { 'x-user': user } });
  const { result }: Message = JSON.parse(await answer.text());
  const content = result?.structuredContent;
  if (!isObject(content) || typeof content.handle !== 'string') throw new Error('expected a handle');
  return content.handle;
}

const update = async ({ url }: StaticNode, handle: string, user = 'anonymous'): Promise<void> => {
  // A kept connection may have been idle for too long by now: the server closes it while this is sent.
  const answer = await call(url, 'counter_add', { handle }, { headers: { 'x-user': user }, agent: false });
  assert.is(answer.status, 200);
  const text = await answer.text();
  assert.not(/"isError":true|"error":/.test(text), text);
};

test('a node whose news were discarded is asked again about every resource that is listened to', () => {
  const told: { readonly node: string; readonly news: LinkNews }[] = [];
  const changes = new RemoteChanges({
    clock: systemClock,
    gatherMs: 10,
    link: { tell: (node, news) => void told.push({ node, news }), reaches: () => true },
    peers: () => ['node-b'],
    placeOf: () => ({ at: 'peer', peer: { node: 'node-b' } }),
    cellOf,
  });
  const uris = Array.from(
    { length: 1_500 },
    (_, index) => `troupe://counter/${withCell(7, `a${index}`.padEnd(22, 'x'))}`,
  );
  for (const uri of uris) changes.listened(uri);
  told.length = 0;
  changes.dropped('node-c');
  assert.equal(told, []);
  changes.dropped('node-b');
  assert.ok(told.length <= 2, `${told.length}`);
  assert.equal(
    told.flatMap(({ news }) => (news.news === 'watch' ? news.topics : [])),
    uris,
  );
});

test('a node that begins to listen learns of an earlier change, also after thousands of later ones', () => {
  const told: LinkNews[] = [];
  const clock = new SimulatedClock();
  const changes = new RemoteChanges({
    ...{ clock, gatherMs: 10 },
    link: { tell: (_, news) => void told.push(news), reaches: () => true },
    peers: () => ['node-b'],
    placeOf: () => ({ at: 'here' }),
    cellOf,
  });
  const mailbox = changes.around({ address: 'subscriptions', send: () => {} });
  const uris = Array.from(
    { length: 20_000 },
    (_, index) => `troupe://order/${withCell(7, `a${index}`.padEnd(22, 'x'))}`,
  );
  for (const uri of uris) mailbox.send({ type: 'resource updated', uri });
  const [oldest = '', recent = '', latest = ''] = [uris[0], uris.at(-5_000), uris.at(-1)];
  changes.news('node-b', { news: 'watch', topics: [oldest, recent, latest] });
  clock.pass(10);
  const learned = told.flatMap((news) => (news.news === 'changed' ? news.changes : []));
  assert.equal(
    learned.map((change) => (change.type === 'resource updated' ? change.uri : '')),
    [recent, latest],
  );
  changes.end();
});

test('D-08: each of many streams at three nodes is notified of a change at any node', async () => {
  const { nodes } = await staticNodes(['node-a', 'node-b', 'node-c'], define, {
    http: { authenticate, maxExchangesPerPrincipal: 4_096 },
  });
  const [a, b, c] = nodes;
  if (!a || !b || !c) throw new Error('no nodes');
  const streams = atScale({ quick: 2, full: 50, proof: 500 });
  const rounds = atScale({ quick: 6, full: 6, proof: 1_000 });
  const handle = await create(a);
  const uri = `troupe://counter/${handle}`;
  const all: Listening[] = [];
  for (const node of nodes)
    for (let stream = 0; stream < streams; stream += 1) all.push(await listen(node, [uri, 'notes://a']));
  const before = heapUsed();
  for (let round = 0; round < rounds; round += 1) {
    const heard = Promise.all(all.map((each) => each.heard(round % 2 === 0 ? uri : 'notes://a')));
    if (round % 2 === 0) await update(nodes[round % 3] ?? a, handle);
    else nodes[round % 3]?.offers.resourceUpdated('notes://a');
    await heard;
  }
  const grown = heapUsed() - before;
  process.stdout.write(`D-08: ${Math.round(grown / 1024)} KiB more after ${rounds} rounds\n`);
  assert.ok(grown < 64 * 1024 * 1024, `${grown} bytes`);
  for (const { answer } of all) answer.cut();
  for (const node of nodes) await node.close();
});

test('D-08: a change during a cut is notified as soon as the link is back', async () => {
  const { nodes } = await staticNodes(['node-a', 'node-b'], define, { http: { authenticate } });
  const [a, b] = nodes;
  if (!a || !b) throw new Error('no nodes');
  const handle = await create(a);
  const uri = `troupe://counter/${handle}`;
  const wires = [await wire(a.address), await wire(b.address)] as const;
  a.links.peers([]);
  b.links.peers([]);
  a.links.peers([{ node: 'node-b', address: wires[1].address }]);
  b.links.peers([{ node: 'node-a', address: wires[0].address }]);
  const own = await listen(a, [uri]);
  const far = await listen(b, [uri, 'notes://a']);
  await update(a, handle);
  await Promise.all([own.heard(uri), far.heard(uri)]);
  for (const round of [1, 2, 3]) {
    for (const each of wires) each.cut();
    await update(a, handle);
    a.offers.resourceUpdated('notes://a');
    await Promise.all([own.heard(uri), far.heard(uri), far.heard('notes://a')]);
    assert.ok(far.count(uri) >= round + 1);
  }
  // A listener at the node of the handle is told once of each.
  assert.is(own.count(uri), 4);
  for (const { answer } of [own, far]) answer.cut();
  for (const node of nodes) await node.close();
  for (const each of wires) each.close();
});

test('listeners are notified once when a node is gone, whose last changes they may have missed', async () => {
  const { nodes } = await staticNodes(['node-a', 'node-b'], define);
  const [a, b] = nodes;
  if (!a || !b) throw new Error('no nodes');
  const far = await listen(b, ['notes://a']);
  b.links.peers([]);
  await far.heard('notes://a');
  far.answer.cut();
  for (const node of nodes) await node.close();
});

test('a change of a handle reaches its owner only, at every node', async () => {
  const { nodes, cells } = await staticNodes(['node-a', 'node-b'], define, { http: { authenticate } });
  const [a, b] = nodes;
  if (!a || !b) throw new Error('no nodes');
  const user = cells.principalOf('node-a');
  const uri = `troupe://counter/${await create(a, user)}`;
  const mine = await listen(b, [uri, 'notes://a'], user);
  const theirs = await listen(b, [uri, 'notes://a'], 'mallory');
  await update(b, uri.slice('troupe://counter/'.length), user);
  await mine.heard(uri);
  b.offers.resourceUpdated('notes://a');
  await theirs.heard('notes://a');
  assert.is(theirs.count(uri), 0);
  for (const { answer } of [mine, theirs]) answer.cut();
  for (const node of nodes) await node.close();
});

test('the listeners at other nodes follow a cell that moves, and are notified once', async () => {
  const { nodes, cells } = await staticNodes(['node-a', 'node-b', 'node-c'], define);
  const [a, b, c] = nodes;
  if (!a || !b || !c) throw new Error('no nodes');
  const handle = await create(a);
  const uri = `troupe://counter/${handle}`;
  const far = await listen(c, [uri]);
  await update(c, handle);
  await far.heard(uri);
  cells.moveOf(handle, 'node-b');
  c.links.peers(nodes.flatMap(({ id, address }) => (id === 'node-c' ? [] : { node: id, address })));
  await far.heard(uri);
  // The new owner tells of its changes.
  b.offers.resourceUpdated(uri);
  await far.heard(uri);
  far.answer.cut();
  for (const node of nodes) await node.close();
});

test('a session that watches a resource is notified of a change at another node', async () => {
  const { nodes } = await staticNodes(['node-a', 'node-b'], define);
  const [a, b] = nodes;
  if (!a || !b) throw new Error('no nodes');
  const handle = await create(a);
  const uri = `troupe://counter/${handle}`;
  const session = await openSession(b.url);
  const own = await session.get();
  const subscribed = await session.post({ jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri } });
  assert.is(subscribed.status, 200);
  await subscribed.text();
  await update(a, handle);
  const { method, params } = await own.events.message();
  assert.equal([method, params], ['notifications/resources/updated', { uri }]);
  own.cut();
  for (const node of nodes) await node.close();
});
