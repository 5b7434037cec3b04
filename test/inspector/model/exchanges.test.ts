/** Requests and their answers are paired, whoever asks, and what is in between belongs to them. */
import * as assert from 'uvu/assert';
import type { Plain } from '../../../src/inspector/frames.ts';
import {
  argumentLine,
  exchangeWaits,
  failuresOf,
  LIVE,
  lastCalls,
  resultLine,
  statusAt,
  timings,
} from '../../../src/inspector/model/index.ts';
import { suite } from '../../harness/door.ts';
import { call, FrameFeed, result, shop } from './frames.ts';

const test = suite('model: exchanges');

test('an answer is paired with the request that it is about, and says how long it took', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'order_create'));
  const answered = shopping.wire('out', result(1), { cause: asked, about: asked, after: 30 });
  const [exchange] = shopping.model.exchanges.at(asked);
  assert.is(exchange?.status, 'ok');
  assert.is(exchange?.end, answered);
  assert.is((exchange?.endAt ?? 0) - (exchange?.at ?? 0), 30);
  assert.is(exchange?.target, 'order_create');
  assert.is(exchange && statusAt(exchange, answered - 1), 'open');
});

test('requests of two clients with one id are distinguished by the subject of their answers', () => {
  const feed = new FrameFeed();
  const first = feed.wire('in', call(1, 'a'));
  const second = feed.wire('in', call(1, 'b'));
  const open = (): unknown[] => feed.model.exchanges.open(LIVE).map(({ target }) => target);
  assert.equal(open(), ['a', 'b']);
  feed.wire('out', { jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'no' } }, { about: first });
  feed.wire('out', result(1), { about: second });
  assert.is(feed.model.exchanges.at(first)[0]?.status, 'error');
  assert.is(feed.model.exchanges.at(second)[0]?.status, 'ok');
  assert.equal(open(), []);
});

test('a question of the server is paired by its id within the connection, and belongs to the call that asks it', () => {
  const feed = new FrameFeed();
  const asked = feed.wire('in', call(1, 'refund'));
  const message = { jsonrpc: '2.0', id: 1, method: 'elicitation/create', params: { message: 'Sure?' } };
  const question = feed.wire('out', message, { about: asked, cause: asked });
  const [exchange] = feed.model.exchanges.at(asked);
  assert.ok(exchange);
  assert.equal(
    exchangeWaits(feed.model, exchange, LIVE).map(({ what, because }) => [what, because]),
    [['Sure?', question]],
  );
  feed.wire('in', result(1, { action: 'accept' }));
  assert.is(exchange.asks[0]?.status, 'ok');
  assert.is(exchange.status, 'open', 'the call has the same id, in the other direction');
  assert.is(feed.model.exchanges.open(LIVE).length, 1);
  assert.equal(
    feed.model.exchanges.open(question).map(({ seq }) => seq),
    [asked, question],
  );
});

test('a request that another node did not answer has failed, unless its client left', () => {
  const feed = new FrameFeed();
  const hop = { type: 'hop', way: 'to', node: 'n2', number: 17 } as const;
  const ends = ['lost', 'left', 'answered'] as const;
  for (const [index, end] of ends.entries()) {
    const asked = feed.wire('in', call(index, 'a'));
    feed.record(hop, asked);
    if (end === 'answered') feed.wire('out', result(index), { about: asked });
    feed.record({ ...hop, end }, asked);
  }
  assert.equal(
    feed.model.exchanges.all.until(LIVE).map(({ status }) => status),
    ['error', 'cancelled', 'ok'],
  );
  assert.equal(
    failuresOf(feed.model, LIVE).map(({ error }) => error),
    ['lost at node n2, exchange 17'],
  );
  assert.is(feed.model.exchanges.open(LIVE).length, 0);
});

test('failures of a tool, questions as answers, and cancelled requests are distinguished', () => {
  const feed = new FrameFeed();
  const failed = feed.wire('in', call(1, 'a'));
  feed.wire('out', result(1, { isError: true, content: [] }), { about: failed });
  const asking = feed.wire('in', call(2, 'a'));
  feed.wire('out', result(2, { resultType: 'input_required' }), { about: asking });
  const cancelled = feed.wire('in', call(3, 'a'));
  feed.wire('in', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3 } });
  const left = feed.wire('in', call(4, 'a'));
  feed.record({ type: 'created', actor: 'requests c1', kind: 'requests', connection: 'c1' });
  feed.record({ type: 'gone', actor: 'requests c1', why: 'closed' });
  assert.equal(
    [failed, asking, cancelled, left].map((seq) => feed.model.exchanges.at(seq)[0]?.status),
    ['isError', 'asked', 'cancelled', 'cancelled'],
  );
  assert.equal(
    feed.model.exchanges.at(cancelled)[0]?.notices.map(({ method }) => method),
    ['notifications/cancelled'],
  );
});

test('progress goes to its request: by what it is about, or by its token', () => {
  const feed = new FrameFeed();
  const params = { name: 'a', arguments: {}, _meta: { progressToken: 'p' } };
  const asked = feed.wire('in', { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } };
  feed.wire('out', progress, { about: asked });
  feed.wire('out', progress);
  assert.is(feed.model.exchanges.at(asked)[0]?.notices.length, 2);
  assert.is(feed.model.exchanges.all.length, 1);
});

test('of a batch, each message is an exchange of its own', () => {
  const feed = new FrameFeed();
  const asked = feed.wire('in', [call(1, 'a'), call(2, 'b')]);
  feed.wire('out', [result(2), result(1)], { about: asked });
  assert.equal(
    feed.model.exchanges.at(asked).map(({ key, target, status }) => [key, target, status]),
    [
      [`${asked}`, 'a', 'ok'],
      [`${asked}.1`, 'b', 'ok'],
    ],
  );
  assert.is(feed.model.exchanges.find(`${asked}.1`)?.target, 'b');
});

test('a text that is no JSON, and an answer to nothing that is here, have rows of their own', () => {
  const feed = new FrameFeed();
  feed.record({ type: 'wire', connection: 'c1', direction: 'in', text: '{oops', bytes: 5 });
  feed.wire('in', result(77));
  assert.equal(
    feed.model.exchanges.all.until(LIVE).map(({ kind, method }) => [kind, method]),
    [
      ['unreadable', 'not JSON'],
      ['notification', 'response to an unknown request'],
    ],
  );
});

test('an exchange names the actor nearest to the work', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'order_add_item'));
  const mail = shopping.record({ type: 'mail', actor: 'executor tools', name: 'call', data: {} }, asked);
  assert.is(shopping.model.exchanges.at(asked)[0]?.servedBy, 'executor tools');
  shopping.record({ type: 'mail', actor: 'order_1', name: 'event', data: {} }, mail);
  shopping.record({ type: 'mail', actor: 'executor tools', name: 'done', data: {} }, mail);
  assert.is(shopping.model.exchanges.at(asked)[0]?.servedBy, 'order_1');
});

test('percentiles are shown for each method, and for each tool', () => {
  const feed = new FrameFeed();
  for (let id = 1; id <= 100; id += 1) {
    const asked = feed.wire('in', call(id, 'a'));
    feed.wire('out', result(id), { about: asked, after: id });
  }
  const open = feed.wire('in', call(101, 'a'));
  assert.ok(open);
  assert.equal(timings(feed.model.exchanges.all.until(LIVE)), [
    { method: 'tools/call a', count: 100, failed: 0, p50: 50, p99: 99, slowest: 100 },
  ]);
});

test('the error that a handler threw belongs to the exchange of its call', () => {
  const feed = new FrameFeed();
  const asked = feed.wire('in', call(1, 'pay'));
  const other = feed.wire('in', call(2, 'pay'));
  const mail = feed.record({ type: 'mail', actor: 'executor/tools', name: 'execute', data: {} }, asked);
  const error = 'Error: declined\n    at pay (/home/ada/server.ts:3:9)';
  const failed = feed.record(
    { type: 'failed', actor: 'executor/tools', element: 'tool "pay"', error, incident: 'x7' },
    mail,
  );
  assert.equal(feed.model.exchanges.at(asked)[0]?.failures, [
    { seq: failed, element: 'tool "pay"', error, incident: 'x7' },
  ]);
  assert.equal(feed.model.exchanges.at(other)[0]?.failures, []);
});

test('the progress of a call from before the observation is one row', () => {
  const feed = new FrameFeed();
  const progress = (done: number) => ({
    ...{ jsonrpc: '2.0', method: 'notifications/progress' },
    params: { progressToken: 'p', progress: done, total: 3 },
  });
  for (const done of [1, 2, 3]) feed.wire('out', progress(done));
  feed.wire('out', { ...progress(1), params: { progressToken: 'q', progress: 1 } });
  assert.equal(
    feed.model.exchanges.all.until(LIVE).map(({ notices }) => notices.length),
    [2, 0],
  );
});

test('the last calls are lines: what was passed, and the first text, the data or the error that came back', () => {
  const shopping = shop();
  const reply = (id: number, args: Plain, answer: Plain): void => {
    const at = shopping.wire('in', call(id, `tool_${id}`, args));
    shopping.wire('out', answer, { about: at, cause: at });
  };
  reply(1, { sku: 'tea', quantity: 2 }, result(1, { content: [{ type: 'text', text: 'Added\n2 teas' }] }));
  reply(2, {}, result(2, { structuredContent: { total: 7 } }));
  reply(3, { list: [1, 2] }, { jsonrpc: '2.0', id: 3, error: { code: -32602, message: 'no such list' } });
  reply(4, { text: 'a'.repeat(1_000) }, result(4, { content: [{ type: 'text', text: 'b'.repeat(1_000) }] }));
  shopping.wire('in', { jsonrpc: '2.0', id: 5, method: 'tools/list' });
  shopping.wire('in', call(6, 'slow'));
  const { model } = shopping;
  const calls = lastCalls(model, LIVE, 5);
  assert.equal(
    calls.map(({ target }) => target),
    ['slow', 'tool_4', 'tool_3', 'tool_2', 'tool_1'],
  );
  const [slow, long, ...rest] = calls.map((each) => [argumentLine(each), resultLine(each, LIVE)]);
  assert.equal(slow, [undefined, undefined]);
  assert.equal(
    long?.map((line) => line?.length),
    [161, 161],
  );
  assert.equal(rest, [
    ['list: [1,2]', 'no such list'],
    [undefined, '{"total":7}'],
    ['sku: tea, quantity: 2', 'Added 2 teas'],
  ]);
});
