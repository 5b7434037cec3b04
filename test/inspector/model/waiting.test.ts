/** What is waited for, for whom, until when and why: from what the server tells of an actor, and from what can be seen. */
import * as assert from 'uvu/assert';
import type { ActorView } from '../../../src/inspector/frames.ts';
import {
  actorTree,
  eventName,
  exchangeWaits,
  flatten,
  framesOf,
  holdsUnseen,
  LIVE,
  Model,
  unseenOf,
  waitsOf,
} from '../../../src/inspector/model/index.ts';
import { suite } from '../../harness/door.ts';
import { call, type FrameFeed, hello, result, shop } from './frames.ts';

const test = suite('model: waiting');

const ask = { jsonrpc: '2.0', id: 9, method: 'elicitation/create', params: { message: 'Charge Ada 17?' } };

function look(shopping: FrameFeed, actor: string, more: Partial<ActorView>): void {
  const { seq, now } = shopping;
  const nothing = { state: 'cart', mailbox: 0, facts: {}, waits: [], next: [] };
  shopping.frame({ type: 'look', look: { actor, kind: 'handle', at: now, seq, ...nothing, ...more } });
}

test('a question of a handle says whom it was put to, by the call that is open', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'order_checkout'));
  const question = shopping.wire('out', ask, { about: asked, cause: asked });
  look(shopping, 'order_1', {
    waits: [{ what: 'Charge Ada 17?', whom: 'the client of the next call on this handle' }],
  });
  assert.equal(waitsOf(shopping.model, 'order_1', LIVE), [
    { what: 'Charge Ada 17?', whom: 'the user of claude', because: question, unconfirmed: true },
  ]);
  shopping.wire('in', result(9));
  assert.equal(waitsOf(shopping.model, 'order_1', LIVE)?.[0]?.whom, 'the client of the next call on this handle');
});

test('a session waits for what its open calls wait for, and says which', () => {
  const shopping = shop();
  look(shopping, 'session c1', { kind: 'session' });
  assert.equal(waitsOf(shopping.model, 'session c1', LIVE), []);
  const asked = shopping.wire('in', call(1, 'order_checkout'));
  const question = shopping.wire('out', ask, { about: asked, cause: asked });
  assert.equal(
    waitsOf(shopping.model, 'session c1', LIVE)?.map(({ who, what, because }) => [who, what, because]),
    [['tools/call order_checkout', 'Charge Ada 17?', question]],
  );
});

test('a session waits for calls that came before anybody watched: the table of its requests knows them', () => {
  const shopping = shop();
  const table = 'requests/c1';
  shopping.record({ type: 'created', actor: table, kind: 'requests', connection: 'c1' });
  shopping.state(table, 'admitting (2)');
  look(shopping, 'session c1', { kind: 'session' });
  const slow = { id: 4, operation: { method: 'tools/call', name: 'slow' }, deadline: 61_000 };
  const later = { id: 5, operation: { method: 'tools/call', name: 'later' }, deadline: 62_000 };
  const { model } = shopping;
  const line = model.actor(table);
  assert.ok(line && holdsUnseen(model, line, LIVE));
  look(shopping, table, { kind: 'requests', state: 'admitting (2)', facts: { 'in flight': [slow, later] } });
  shopping.wire('in', call(5, 'later'));
  assert.equal(unseenOf(model, line, LIVE), [
    { id: '4', key: '4', method: 'tools/call', name: 'tools/call slow', until: 61_000 },
  ]);
  assert.equal(
    waitsOf(model, 'session c1', LIVE)?.map(({ who, until }) => [who, until]),
    [
      ['tools/call later', 62_000],
      ['tools/call slow', 61_000],
    ],
  );
  const client = flatten(actorTree(model, LIVE)).find(({ id }) => id === 'session c1');
  const [known] = model.exchanges.open(LIVE);
  assert.is(known && exchangeWaits(model, known, LIVE)[0]?.until, 62_000, 'the table knows when its time is up');
  assert.equal(
    client?.children.filter(({ unseen }) => unseen).map(({ label, due }) => [label, due]),
    [['tools/call slow', 61_000]],
  );
  shopping.state(table, 'admitting (1)');
  assert.equal(unseenOf(model, line, LIVE), [], 'the one that is left is known');
  assert.not.ok(holdsUnseen(model, line, LIVE));
});

test('a delay from before the observation is shown as its transition', () => {
  const shopping = shop();
  const on = 'xstate.after.grow.plant.seed';
  const seed = { id: 'seed#0', on, label: 'after grow', targets: ['ripe'] };
  const leaf = { type: 'atomic', initial: true, invokes: [], nodes: [] } as const;
  const chart = {
    ...leaf,
    key: 'plant',
    path: '',
    edges: [],
    nodes: [{ ...leaf, key: 'seed', path: 'seed', edges: [seed] }],
  };
  shopping.frame({ type: 'chart', id: 'plant-1', chart: { ...chart, type: 'compound' } });
  shopping.record({ type: 'created', actor: 'plant', kind: 'handle', chart: 'plant-1' });
  shopping.state('plant', 'seed');
  look(shopping, 'plant', { state: 'seed', waits: [{ what: `#${on}`, until: 20_000 }] });
  assert.equal(waitsOf(shopping.model, 'plant', LIVE), [{ what: 'after grow', until: 20_000, after: seed }]);
});

test('a call without a question waits for its result, from the handle that serves it and from no executor', () => {
  const handle = { actor: 'order_1', whom: 'order_1' };
  const executor = { actor: 'executor tools', whom: undefined };
  for (const { actor, whom } of [handle, executor]) {
    const shopping = shop();
    const asked = shopping.wire('in', call(1, 'slow'));
    shopping.record({ type: 'mail', actor, name: 'execute', data: {} }, asked);
    const [exchange] = shopping.model.exchanges.at(asked);
    assert.ok(exchange);
    assert.is(exchange.servedBy, actor);
    assert.equal(exchangeWaits(shopping.model, exchange, LIVE), [
      { what: 'its result', because: asked, ...(whom === undefined ? {} : { whom }), unconfirmed: true },
    ]);
    shopping.wire('out', result(1), { about: asked });
    assert.equal(exchangeWaits(shopping.model, exchange, LIVE), []);
  }
});

test('a look that is older than the last change of its actor is not believed', () => {
  const shopping = shop();
  look(shopping, 'order_1', { waits: [{ what: 'something' }] });
  shopping.step('order_1', 'checkout', ['cart#1'], ['confirming']);
  assert.is(waitsOf(shopping.model, 'order_1', LIVE), undefined);
});

test('a delay says along which transition it leads on', () => {
  const shopping = shop();
  shopping.record({ type: 'timer', actor: 'order_1', id: 't', event: 'add', delay: 50, due: 500 });
  look(shopping, 'order_1', { waits: [{ what: '#add', until: 500 }] });
  const [wait, ...more] = waitsOf(shopping.model, 'order_1', LIVE) ?? [];
  assert.equal([wait?.after?.id, wait?.until, wait?.lasts, more.length], ['cart#0', 500, 50, 0]);
});

test("XState's own events are described in words", () => {
  const { model } = shop();
  assert.is(eventName(model, 'order_1', 'pay'), 'pay');
  assert.is(eventName(model, 'order_1', 'xstate.init'), 'start');
  assert.is(eventName(model, 'order_1', 'xstate.after.patience.order.cart'), 'after patience');
  assert.is(eventName(model, 'order_1', 'xstate.done.actor.consent'), 'consent done');
  assert.is(eventName(model, 'order_1', 'xstate.error.actor.consent'), 'consent failed');
});

test('a handle that rejected an event still waits, and a later transition ends its failure', () => {
  const shopping = shop();
  const { model } = shopping;
  const handleNode = () => flatten(actorTree(model, LIVE)).find(({ id }) => id === 'order_1');
  // A state outside of the chart, such as that of a machine without nested states.
  shopping.state('order_1', 'waiting');
  look(shopping, 'order_1', { waits: [{ what: 'something', whom: 'the client' }] });
  shopping.step('order_1', 'pay', [], ['cart']);
  assert.equal(waitsOf(model, 'order_1', LIVE), [{ what: 'something', whom: 'the client' }]);
  assert.equal([handleNode()?.waits, handleNode()?.trouble], [true, 'unhandled']);
  shopping.step('order_1', 'checkout', ['cart#1'], ['confirming']);
  assert.equal([handleNode()?.waits, handleNode()?.trouble], [undefined, undefined]);
});

test('a timer from before the observation ends when the view says, and a restarted one when its record says', () => {
  const shopping = shop();
  const { model } = shopping;
  shopping.record({ type: 'timer', actor: 'order_1', id: 't', event: 'add', delay: 500, due: 560 });
  look(shopping, 'order_1', { waits: [{ what: '#add', until: 300 }] });
  assert.is(model.actor('order_1')?.running(LIVE)[0]?.due, 300);
  shopping.record({ type: 'timer', actor: 'order_1', id: 't', event: 'add', delay: 500, due: 900 });
  assert.is(model.actor('order_1')?.running(LIVE)[0]?.due, 900);
});

test('ages are exact if the server reports when an actor was created', () => {
  const shopping = shop();
  const { model } = shopping;
  const line = (actor: string) => {
    const found = model.actor(actor);
    assert.ok(found);
    return found;
  };
  shopping.frame({ ...hello, now: 1_000 });
  shopping.record({ type: 'created', actor: 'order_2', kind: 'handle', chart: 'order-1', since: 20 });
  shopping.state('order_2', 'cart');
  assert.equal(model.since(line('order_2'), 'life'), { at: 20, earlier: false });
  assert.equal(model.since(line('order_2'), 'state'), { at: 100, earlier: true });
  shopping.step('order_2', 'checkout', ['cart#1'], ['confirming']);
  assert.equal(model.since(line('order_2'), 'state'), { at: 110, earlier: false });
  shopping.record({ type: 'created', actor: 'order_3', kind: 'handle', chart: 'order-1', since: shopping.now + 10 });
  shopping.state('order_3', 'cart');
  assert.equal(model.since(line('order_3'), 'life'), { at: 120, earlier: false });
  assert.equal(model.since(line('order_3'), 'state'), { at: 130, earlier: false });
  const copy = new Model();
  for (const frame of framesOf(model)) copy.take(frame);
  assert.equal(copy.since(copy.actor('order_2') ?? line('order_2'), 'life'), { at: 20, earlier: false });
});

test('a request that its client repeats with answers is listed once', () => {
  const shopping = shop();
  const { model } = shopping;
  const first = shopping.wire('in', call(1, 'refund'));
  const request = {
    type: 'created',
    actor: 'request/1',
    kind: 'request',
    connection: 'c1',
    label: 'tools/call refund',
  };
  shopping.record({ ...request, type: 'created', kind: 'request' }, first);
  shopping.wire('out', result(1, { resultType: 'input_required' }), { about: first });
  const again = shopping.wire('in', call(2, 'refund'));
  shopping.record({ type: 'mail', actor: 'request/1', name: 'retry', data: {} }, again);
  const calls = flatten(actorTree(model, LIVE)).filter(({ label }) => label === 'tools/call refund');
  assert.equal(
    calls.map(({ id }) => id),
    ['request/1'],
  );
});
