/** How everything stood at any place of the stream, and which record led to which. */
import * as assert from 'uvu/assert';
import type { ActorKind } from '../../../src/inspector/frames.ts';
import {
  actorTree,
  changes,
  flatten,
  hasClient,
  idleTimes,
  LIVE,
  lineOf,
  Model,
  timelineRows,
  waitsOf,
} from '../../../src/inspector/model/index.ts';
import { suite } from '../../harness/door.ts';
import { call, FrameFeed, hello, result, shop } from './frames.ts';

const test = suite('model');

test('an actor has the state of any place of the stream, and its transitions', () => {
  const shopping = shop();
  const inCart = shopping.seq;
  const checkout = shopping.step('order_1', 'checkout', ['cart#1'], ['confirming']);
  shopping.state('order_1', 'confirming');
  const paid = shopping.step('order_1', 'yes', ['confirming#0'], ['paid.packing', 'paid.billing']);
  const line = shopping.model.actor('order_1');
  assert.is(line?.standing(inCart)?.state, 'cart');
  assert.is(line?.standing(checkout)?.state, 'confirming');
  assert.is(line?.standing(paid - 1)?.state, 'confirming');
  assert.equal(line?.standing(LIVE)?.active, ['paid.packing', 'paid.billing']);
  assert.equal(line?.taken(paid - 1)?.edges, ['cart#1']);
  assert.is(line?.taken(inCart), undefined);
  assert.is(line?.standings.length, 3, 'a state that a step has told already is not told twice');
});

test('the state of an actor without steps is read as the paths of its chart', () => {
  const shopping = shop();
  shopping.state('order_1', 'paid.packing & paid.billing');
  assert.equal(shopping.model.actor('order_1')?.standing(LIVE)?.active, ['paid.packing', 'paid.billing']);
});

/** All kinds: the compiler finds a new one without a row. */
const KINDS: Readonly<Record<ActorKind, true>> = {
  ...{ server: true, session: true, requests: true, registry: true, executor: true, emitter: true, request: true },
  ...{ ask: true, machine: true, handle: true, invoked: true, subscriptions: true, task: true, client: true },
  ...{ mount: true, audit: true, state: true, approval: true, run: true, schedule: true, webhook: true },
};

test('an actor of each kind has a place in the tree', () => {
  const shopping = shop();
  for (const kind of Object.keys(KINDS))
    shopping.record({ type: 'created', actor: `lone ${kind}`, kind: kind as ActorKind, label: kind });
  const places = new Set(flatten(actorTree(shopping.model, LIVE)).map(({ actor }) => actor));
  assert.equal(
    Object.keys(KINDS).filter((kind) => !places.has(`lone ${kind}`)),
    [],
  );
});

test('visits are counted for an actor at a place, and for all that a chart governs', () => {
  const shopping = shop();
  shopping.step('order_1', 'add', ['cart#0'], ['cart']);
  shopping.step('order_1', 'checkout', ['cart#1'], ['confirming']);
  const back = shopping.step('order_1', 'no', ['confirming#1'], ['cart']);
  shopping.step('order_1', 'checkout', ['cart#1'], ['confirming']);
  shopping.step('order_1', 'yes', ['confirming#0'], ['paid.packing', 'paid.billing']);
  const then = shopping.model.visits('order_1', back);
  assert.equal(
    [...then.states],
    [
      ['cart', 2],
      ['confirming', 1],
    ],
  );
  assert.equal(
    [...then.edges],
    [
      ['cart#0', 1],
      ['cart#1', 1],
      ['confirming#1', 1],
    ],
  );
  const [coverage] = shopping.model.coverage();
  assert.is(coverage?.name, 'order');
  assert.is(coverage?.visits.states.get('paid'), 1);
  assert.equal([coverage?.visitedStates, coverage?.states.length], [5, 5]);
  assert.equal([coverage?.visitedEdges, coverage?.edges.length], [4, 4]);
});

test('a chain of causes leads up to the message that began it, and down to the answer', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'order_checkout'));
  const mail = shopping.record({ type: 'mail', actor: 'executor tools', name: 'call', data: {} }, asked);
  const other = shopping.record({ type: 'mail', actor: 'session c1', name: 'other', data: {} }, asked);
  const step = shopping.step('order_1', 'checkout', ['cart#1'], ['confirming'], mail);
  const answer = shopping.wire('out', result(1), { cause: mail, about: asked });
  const { causes } = shopping.model;
  assert.equal(
    causes.because(step).map(({ seq }) => seq),
    [step, mail, asked],
  );
  assert.equal(
    causes.followed(asked).map(({ seq }) => seq),
    [mail, other, step, answer],
  );
  assert.is(causes.root(answer), asked);
  assert.equal(
    causes.because(step).map((record) => lineOf(shopping.model, record)),
    ['order_1 handled checkout → confirming', 'call to executor tools', 'tools/call order_checkout'],
  );
});

test('an event that no state takes is flagged, and so is mail to one that has gone', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'order_send'));
  const unhandled = shopping.step('order_1', 'pay', [], ['cart'], asked);
  shopping.record({ type: 'gone', actor: 'order_1', why: 'ended' });
  const late = shopping.record({ type: 'mail', actor: 'order_1', name: 'event', data: {} }, asked);
  const queued = shopping.record({ type: 'mail', actor: 'server', name: 'drain', data: {}, fate: 'queued' });
  assert.equal(
    shopping.model.rows.filter(({ mark }) => mark).map(({ seq, from, mark }) => [seq, from, mark]),
    [
      [unhandled, 'session c1', 'unhandled'],
      [late, 'session c1', 'dropped'],
      [queued, undefined, 'queued'],
    ],
  );
  assert.equal(
    shopping.model.troubles.map(({ seq }) => seq),
    [unhandled, late],
  );
});

test('the tree has the connection of a client to a server', () => {
  const shopping = shop();
  shopping.record({
    type: 'created',
    actor: 'client/1',
    kind: 'client',
    connection: 'client/1',
    label: 'https://mcp.example.com/mcp',
  });
  const [root] = actorTree(shopping.model, LIVE).filter(({ kind }) => kind === 'client');
  assert.is(root?.label, 'https://mcp.example.com/mcp');
});

test('the tree has the client with its open call and question, the handle, and the tombstone of what has gone', () => {
  const shopping = shop();
  const before = shopping.seq;
  const asked = shopping.wire('in', call(1, 'slow'));
  const then = shopping.seq;
  shopping.record(
    { type: 'created', actor: 'request 1', kind: 'request', connection: 'c1', parent: 'requests c1', label: 'slow' },
    asked,
  );
  shopping.record(
    { type: 'created', actor: 'ask 1', kind: 'ask', connection: 'c1', parent: 'request 1', label: 'Sure?' },
    asked,
  );
  shopping.record({ type: 'timer', actor: 'ask 1', id: 't', event: 'timeout', delay: 500, due: 900 });
  shopping.record({ type: 'gone', actor: 'order_1', why: 'it expired' });
  const show = (seq: number): readonly string[] =>
    flatten(actorTree(shopping.model, seq)).map(
      ({ kind, label, gone }) => `${kind} ${label}${gone ? ` ✖ ${gone}` : ''}`,
    );
  const inside = ['group internal', 'executor executor tools'];
  const head = ['server server', 'group clients', 'session claude'];
  const table = 'requests in-flight requests · claude';
  assert.equal(show(before), [...head, 'group handles · order', 'handle order_1', ...inside, table]);
  assert.equal(show(then)[3], 'exchange tools/call slow');
  assert.equal(show(LIVE), [
    ...head,
    'request slow',
    'ask Sure?',
    'group handles · order',
    'handle order_1 ✖ it expired',
    ...inside,
    table,
  ]);
  assert.is(flatten(actorTree(shopping.model, LIVE)).find(({ label }) => label === 'Sure?')?.due, 900);
});

test('a handle that hibernates is asleep, not gone, and one that sleeps has the chart of its machine', () => {
  const shopping = shop();
  shopping.record({ type: 'created', actor: 'handle/order/a', kind: 'handle' });
  shopping.state('handle/order/a', 'cart');
  assert.is(shopping.model.chartOf('handle/order/a'), undefined);
  shopping.record({ type: 'created', actor: 'handle/order/b', kind: 'handle' });
  shopping.record({
    ...{ type: 'step', actor: 'handle/order/b', chart: 'order-1', event: 'xstate.init', edges: [], active: ['cart'] },
    ...{ status: 'active', handled: true },
  });
  assert.is(shopping.model.chartOf('handle/order/a')?.root.key, 'order');
  shopping.record({ type: 'gone', actor: 'handle/order/b', why: 'hibernation' });
  const asleep = flatten(actorTree(shopping.model, LIVE)).filter((node) => node.asleep);
  assert.equal(
    asleep.map(({ label }) => label),
    ['handle/order/b'],
  );
  shopping.record({ type: 'created', actor: 'handle/order/b', kind: 'handle' });
  assert.is(shopping.model.actor('handle/order/b')?.lives.length, 2);
});

test('clients without a session have a place of their own, and say themselves who they are', () => {
  const feed = new FrameFeed();
  feed.record({ type: 'created', actor: 'requests h1', kind: 'requests', connection: 'h1' });
  // The connection exists before its first client.
  assert.is(hasClient(feed.model), false);
  assert.equal(
    flatten(actorTree(feed.model, LIVE)).map(({ label }) => label),
    ['internal', 'without a session'],
  );
  const info = { 'io.modelcontextprotocol/clientInfo': { name: 'goose', version: '1.4.0' } };
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'slow', _meta: info } };
  const asked = feed.wire('in', message, { connection: 'h1' });
  assert.is(feed.model.exchanges.at(asked)[0]?.client, 'goose 1.4.0');
  assert.is(hasClient(feed.model), true);
  assert.equal(
    flatten(actorTree(feed.model, LIVE)).map(({ label }) => label),
    ['clients', 'goose 1.4.0', 'tools/call slow'],
  );
  // Many clients share a connection over HTTP.
  for (const name of ['zed', 'cursor']) {
    const other = { 'io.modelcontextprotocol/clientInfo': { name, version: '1' } };
    feed.wire('in', { ...message, id: name, params: { name: 'slow', _meta: other } }, { connection: 'h1' });
  }
  const [, door] = flatten(actorTree(feed.model, LIVE));
  assert.is(door?.label, 'without a session');
});

test('delays run from their beginning until they fire or are cancelled', () => {
  const shopping = shop();
  const begun = shopping.record({ type: 'timer', actor: 'order_1', id: 'a', event: 'patience', delay: 100, due: 190 });
  shopping.record({ type: 'timer', actor: 'order_1', id: 'a', event: 'patience', delay: 100 });
  const line = shopping.model.actor('order_1');
  assert.equal(line?.running(begun), [{ id: 'a', event: 'patience', delay: 100, due: 190 }]);
  assert.equal(line?.running(LIVE), []);
  assert.equal(waitsOf(shopping.model, 'order_1', begun), [{ what: 'patience', until: 190, lasts: 100 }]);
});

test('two places are compared: states, what began, what ended, and contexts', () => {
  const shopping = shop();
  const a = shopping.step('order_1', 'add', ['cart#0'], ['cart'], 0, { items: [], customer: 'Ada' });
  shopping.step('order_1', 'add', ['cart#0'], ['cart'], 0, { items: [{ sku: 'tea' }], customer: 'Ada' });
  shopping.record({ type: 'created', actor: 'order_2', kind: 'handle', chart: 'order-1' });
  shopping.state('order_2', 'cart');
  const expected = [
    {
      actor: 'order_1',
      before: 'cart',
      after: 'cart',
      context: [{ path: 'items.0', after: { sku: 'tea' } }],
    },
    { actor: 'order_2', before: undefined, after: 'cart', context: [] },
  ];
  assert.equal(changes(shopping.model, a, LIVE), expected);
  assert.equal(changes(shopping.model, LIVE, a), expected);
});

test('another process is another story: everything before is forgotten', () => {
  const shopping = shop();
  shopping.frame({ ...hello, control: true });
  assert.ok(shopping.model.actors.size > 0);
  shopping.frame({ ...hello, pid: 8 });
  assert.is(shopping.model.actors.size, 0);
  assert.is(shopping.model.causes.length, 0);
  assert.is(shopping.model.restarts, 1);
});

test('a living actor that is reported again is not a new one, and an actor that is not reported again has ended', () => {
  const shopping = shop();
  shopping.record({ type: 'created', actor: 'server', kind: 'server' });
  shopping.state('server', 'running');
  shopping.record({ type: 'created', actor: 'session c1', kind: 'session', connection: 'c1', label: 'claude' });
  shopping.state('session c1', 'ready');
  shopping.wire('in', call(1, 'a'));
  shopping.record({ type: 'mail', actor: 'session c1', name: 'call', data: {} });
  assert.ok(shopping.model.actor('session c1')?.aliveAt(LIVE));
  assert.is(shopping.model.actor('session c1')?.lives.length, 1);
  assert.not.ok(shopping.model.actor('order_1')?.aliveAt(LIVE));
  assert.match(shopping.model.actor('order_1')?.lives.last?.why ?? '', /while not observed/);
});

test('the oldest records are dropped and reported as a gap; the states at that time stay', () => {
  const shopping = shop({ maxRecords: 100 });
  for (let id = 1; id <= 500; id += 1) {
    const asked = shopping.wire('in', call(id, 'a'));
    shopping.wire('out', result(id), { about: asked });
  }
  const { model } = shopping;
  assert.ok(model.causes.length <= 100);
  assert.is(model.moments.length, model.causes.length);
  assert.ok(model.exchanges.all.length <= 51);
  assert.is(model.gaps.length, 1);
  const [gap] = model.gaps;
  assert.equal([gap?.from, gap?.why], [1, 'forgotten']);
  assert.is((gap?.records ?? 0) + model.causes.length, shopping.seq);
  assert.is(model.actor('order_1')?.standing(LIVE)?.state, 'cart');
  assert.ok(model.actor('order_1')?.aliveAt(LIVE));
});

test('actors that have gone are bounded', () => {
  const feed = new FrameFeed({ maxGone: 10 });
  for (let id = 1; id <= 50; id += 1) {
    feed.record({ type: 'created', actor: `request ${id}`, kind: 'request' });
    feed.record({ type: 'gone', actor: `request ${id}`, why: 'done' });
  }
  assert.is(feed.model.actors.size, 10);
});

test('a record that arrives twice is applied once', () => {
  const shopping = shop();
  const before = shopping.model.causes.length;
  const record = shopping.model.causes.newest;
  assert.ok(record);
  shopping.frame({ type: 'records', records: [record] });
  assert.is(shopping.model.causes.length, before);
});

test('a timeline has a row for each connection and each actor; idle time is where nothing happened', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'a'), { after: 5_000 });
  shopping.wire('out', result(1), { about: asked });
  const rows = timelineRows(shopping.model);
  assert.equal(
    rows.map(({ id, depth = 0 }) => `${depth} ${id}`),
    ['0 wire c1', '1 session c1', '0 order_1'],
  );
  assert.equal(
    rows[0]?.wire?.map(({ label, outcome }) => [label, outcome]),
    [['tools/call a', 'ok']],
  );
  assert.equal(idleTimes(shopping.model.moments, 1_000), [{ from: 80, to: 5_080 }]);
});

test.full('twenty thousand records are taken, and any place is found, quickly', () => {
  const feed = shop();
  const started = process.cpuUsage();
  for (let id = 1; id <= 5_000; id += 1) {
    const asked = feed.wire('in', call(id, 'a'));
    const mail = feed.record({ type: 'mail', actor: 'executor tools', name: 'call', data: {} }, asked);
    feed.step('order_1', 'add', ['cart#0'], ['cart'], mail);
    feed.wire('out', result(id), { cause: mail, about: asked });
  }
  const taken = process.cpuUsage(started).user / 1_000;
  const moved = process.cpuUsage();
  for (let seq = 1; seq < 20_000; seq += 100) actorTree(feed.model, seq);
  const each = process.cpuUsage(moved).user / 200_000;
  // Of the processor, and generous: other tests run beside this one. On a quiet machine 0.4 s and 1 ms.
  assert.ok(taken < 2_000, `20,000 records took ${taken.toFixed(0)} ms`);
  assert.ok(each < 20, `a tree took ${each.toFixed(1)} ms`);
});

test('an empty model reports that it is empty', () => {
  const model = new Model();
  assert.equal(actorTree(model, LIVE), []);
  assert.equal(timelineRows(model), []);
  assert.is(model.newest, 0);
  assert.is(model.timeAt(LIVE), 0);
  assert.equal(changes(model, 0, LIVE), []);
});
