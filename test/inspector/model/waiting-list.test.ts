/** The list of everything that waits: one row for each wait, the earliest deadline first. */
import * as assert from 'uvu/assert';
import type { ActorView } from '../../../src/inspector/frames.ts';
import { LIVE, progressOf, waitingList } from '../../../src/inspector/model/index.ts';
import { suite } from '../../harness/door.ts';
import { call, type FrameFeed, leaf, order, result, shop } from './frames.ts';

const test = suite('model: the list of everything that waits');

const ask = { jsonrpc: '2.0', id: 9, method: 'elicitation/create', params: { message: 'Charge Ada 17?' } };

function look(shopping: FrameFeed, actor: string, more: Partial<ActorView>): void {
  const { seq, now } = shopping;
  const nothing = { state: 'cart', mailbox: 0, facts: {}, waits: [], next: [] };
  shopping.frame({ type: 'look', look: { actor, kind: 'handle', at: now, seq, ...nothing, ...more } });
}

const lines = ({ model }: FrameFeed): readonly string[] =>
  waitingList(model, LIVE).map(
    ({ who, wait, idle }) =>
      `${idle ? 'idle ' : ''}${who}: ${wait.what}, ${wait.whom ?? 'nobody'}, ${wait.until ?? '–'}`,
  );

test('a session and a handle between two events are idle, the lifetime of the handle drains', () => {
  const shopping = shop();
  look(shopping, 'order_1', { facts: { expires: 1_000_000 + 60_000, used: 1_000_000 } });
  assert.equal(lines(shopping), [
    'idle order_1: its next event, nobody, 60000',
    'idle claude: its next request, nobody, –',
  ]);
  assert.is(waitingList(shopping.model, LIVE)[0]?.wait.lasts, 60_000);
});

test('a question of a handle is one row: the handle asks, the call is the reason', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'order_checkout'));
  shopping.wire('out', ask, { about: asked, cause: asked });
  const whom = 'the client of the next call on this handle';
  look(shopping, 'order_1', { state: 'confirming', waits: [{ what: 'Charge Ada 17?', whom }] });
  const [row, ...more] = waitingList(shopping.model, LIVE);
  assert.equal(more, [], 'neither the call nor the session has a row of its own');
  assert.equal(
    [row?.who, row?.wait.what, row?.wait.whom, row?.because],
    ['order_1', 'Charge Ada 17?', 'the user of claude', asked],
  );
});

test('timers and calls are in the order of their deadlines, whatever has none follows', () => {
  const shopping = shop();
  const timer = (id: string, due: number): void => {
    shopping.record({ type: 'timer', actor: 'order_1', id, event: id, delay: due, due });
  };
  timer('late', 9_000);
  timer('soon', 4_000);
  shopping.wire('in', call(1, 'slow'));
  assert.equal(lines(shopping), [
    'order_1: soon, nobody, 4000',
    'order_1: late, nobody, 9000',
    'tools/call slow: its result, nobody, –',
  ]);
  shopping.wire('in', { jsonrpc: '2.0', id: 1, result: {} });
  shopping.wire('out', result(1));
  assert.equal(lines(shopping).slice(2), ['idle claude: its next request, nobody, –']);
});

test('a call has the progress that was last reported', () => {
  const shopping = shop();
  const meta = { progressToken: 'p' };
  const about = shopping.wire('in', {
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: { name: 'count', _meta: meta },
  });
  const progress = (params: object): void => {
    const message = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', ...params } };
    shopping.wire('out', JSON.parse(JSON.stringify(message)), { about });
  };
  const [row] = waitingList(shopping.model, LIVE);
  assert.is(row?.progress, undefined);
  progress({ progress: 1, total: 4 });
  const then = shopping.seq;
  progress({ progress: 3, total: 4, message: 'shelf 3' });
  const shown = waitingList(shopping.model, LIVE)[0];
  assert.equal(shown?.progress, { done: 3, total: 4, message: 'shelf 3', reports: 2 });
  const [exchange] = shopping.model.exchanges.at(about);
  assert.ok(exchange);
  assert.equal(progressOf(exchange, then), { done: 1, total: 4, reports: 1 });
});

test('a task waits for its result until it has ended', () => {
  const shopping = shop();
  shopping.record({ type: 'created', actor: 'task/1', kind: 'task', label: 'brew' });
  shopping.state('task/1', 'working');
  assert.equal(lines(shopping).slice(0, 1), ['brew: its result, nobody, –']);
  for (const state of ['completed', 'failed', 'cancelled']) {
    shopping.state('task/1', state);
    assert.equal(
      waitingList(shopping.model, LIVE).filter(({ idle }) => !idle),
      [],
    );
  }
});

test('a handle that hibernates is in the list, whether or not its actor was seen', () => {
  const shopping = shop();
  shopping.record({ type: 'created', actor: 'handle/order/aaaaaaaa', kind: 'handle', label: 'order aaaaaa' });
  shopping.state('handle/order/aaaaaaaa', 'cart');
  shopping.record({ type: 'gone', actor: 'handle/order/aaaaaaaa', why: 'hibernation' });
  const some = ['handle/order/aaaaaaaa', 'handle/order/bbbbbbbb'];
  const timers = { 'handle/order/aaaaaaaa': 9_000, 'handle/order/bbbbbbbb': 8_000 };
  look(shopping, 'server', { kind: 'server', facts: { hibernating: { count: 2, some, timers } } });
  const asleep = waitingList(shopping.model, LIVE).filter((row) => row.asleep);
  assert.equal(
    asleep.map(({ who, state, wait }) => `${who} ${state}: ${wait.what} ${wait.until}`),
    ['order bbbbbbbb hibernating: its next event 8000', 'order aaaaaa cart: its next event 9000'],
  );
});

test('a question of a client without a session is one row: its request asks', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'refund'));
  const request = { type: 'created', actor: 'request 1', kind: 'request', connection: 'c1', label: 'refund' } as const;
  shopping.record(request, asked);
  shopping.record({ type: 'created', actor: 'ask 1', kind: 'ask', parent: 'request 1', label: 'Sure?' }, asked);
  shopping.wire('out', { ...{ jsonrpc: '2.0', id: 1 }, result: { resultType: 'input_required' } }, { about: asked });
  const waits = [{ what: 'Sure?', whom: 'the user of goose' }];
  look(shopping, 'request 1', { kind: 'request', waits });
  look(shopping, 'ask 1', { kind: 'ask', waits: [{ what: 'Sure?', until: 9_000 }] });
  const rows = waitingList(shopping.model, LIVE).filter(({ idle }) => !idle);
  assert.equal(
    rows.map(({ who, actor, wait }) => [who, actor, wait.whom, wait.until]),
    [['refund', 'request 1', 'the user of goose', 9_000]],
  );
});

test('an instance in a final state waits for nothing, whether the page saw its last step, or was opened later', () => {
  const ending = (status: 'active' | 'done', after: (feed: FrameFeed) => void): readonly string[] => {
    const feed = shop();
    feed.frame({
      type: 'chart',
      id: 'order-2',
      chart: { ...order.chart, nodes: [...order.chart.nodes, leaf('returned', [], 'final')] },
    });
    feed.record({ type: 'created', actor: 'order_1', kind: 'handle', chart: 'order-2' });
    if (status === 'done')
      feed.record({
        type: 'step',
        actor: 'order_1',
        event: 'no',
        edges: ['confirming#1'],
        active: ['returned'],
        status,
        handled: true,
      });
    after(feed);
    return lines(feed);
  };
  const session = ['idle claude: its next request, nobody, –'];
  assert.equal(
    ending('done', () => {}),
    session,
    'after its last step',
  );
  assert.equal(
    ending('active', (feed) => feed.state('order_1', 'returned')),
    session,
    'in its final state',
  );
  for (const state of ['done', 'failed', 'ended', 'quarantined'])
    assert.equal(
      ending('active', (feed) => feed.state('order_1', state)),
      session,
      state,
    );
  assert.equal(
    ending('done', (feed) => feed.record({ type: 'gone', actor: 'order_1', why: 'hibernation' })),
    session,
    'after it has left memory',
  );
  assert.ok(
    ending('active', (feed) => feed.state('order_1', 'paid')).includes('idle order_1: its next event, nobody, –'),
  );
});

test('a question of a call of a script is one row: that of the call; what the script itself waits for has its own', () => {
  const shopping = shop();
  shopping.record({ type: 'created', actor: 'run/1', kind: 'run', label: 'run_code of ada' });
  shopping.state('run/1', 'waiting for client');
  shopping.record({ type: 'created', actor: 'call', kind: 'request', parent: 'run/1', label: 'tools/call pay' });
  const whom = 'the user of claude';
  look(shopping, 'call', { kind: 'request', state: 'asking', waits: [{ what: 'Pay?', whom }] });
  const sleep = { what: 'the end of sleep (call 2)', until: 900 };
  const asked = { what: 'Pay?', whom: `${whom}, for shop.pay (call 1)` };
  look(shopping, 'run/1', { kind: 'run', state: 'waiting for client', waits: [asked, sleep] });
  assert.equal(lines(shopping).slice(0, 2), [
    'run_code of ada: the end of sleep (call 2), nobody, 900',
    'tools/call pay: Pay?, the user of claude, –',
  ]);
});
