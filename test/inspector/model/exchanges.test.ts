/** Requests and their answers are paired, whoever asks, and what is in between belongs to them. */
import * as assert from 'uvu/assert';
import { exchangeWaits, LIVE, statusAt, timings } from '../../../src/inspector/model/index.ts';
import { suite } from '../../harness/door.ts';
import { call, result, shop, Teller } from './frames.ts';

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

test('requests of two clients with one id are told apart by what their answers are about', () => {
  const teller = new Teller();
  const first = teller.wire('in', call(1, 'a'));
  const second = teller.wire('in', call(1, 'b'));
  const open = (): unknown[] => teller.model.exchanges.open(LIVE).map(({ target }) => target);
  assert.equal(open(), ['a', 'b']);
  teller.wire('out', { jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'no' } }, { about: first });
  teller.wire('out', result(1), { about: second });
  assert.is(teller.model.exchanges.at(first)[0]?.status, 'error');
  assert.is(teller.model.exchanges.at(second)[0]?.status, 'ok');
  assert.equal(open(), []);
});

test('a question of the server is paired by its id within the connection, and belongs to the call that asks it', () => {
  const teller = new Teller();
  const asked = teller.wire('in', call(1, 'refund'));
  const message = { jsonrpc: '2.0', id: 1, method: 'elicitation/create', params: { message: 'Sure?' } };
  const question = teller.wire('out', message, { about: asked, cause: asked });
  const [exchange] = teller.model.exchanges.at(asked);
  assert.ok(exchange);
  assert.equal(
    exchangeWaits(teller.model, exchange, LIVE).map(({ what, because }) => [what, because]),
    [['Sure?', question]],
  );
  teller.wire('in', result(1, { action: 'accept' }));
  assert.is(exchange.asks[0]?.status, 'ok');
  assert.is(exchange.status, 'open', 'the call has the same id, in the other direction');
  assert.is(teller.model.exchanges.open(LIVE).length, 1);
  assert.equal(
    teller.model.exchanges.open(question).map(({ seq }) => seq),
    [asked, question],
  );
});

test('failures of a tool, questions as answers, and cancelled requests are told apart', () => {
  const teller = new Teller();
  const failed = teller.wire('in', call(1, 'a'));
  teller.wire('out', result(1, { isError: true, content: [] }), { about: failed });
  const asking = teller.wire('in', call(2, 'a'));
  teller.wire('out', result(2, { resultType: 'input_required' }), { about: asking });
  const cancelled = teller.wire('in', call(3, 'a'));
  teller.wire('in', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3 } });
  const left = teller.wire('in', call(4, 'a'));
  teller.tell({ type: 'created', actor: 'requests c1', kind: 'requests', connection: 'c1' });
  teller.tell({ type: 'gone', actor: 'requests c1', why: 'closed' });
  assert.equal(
    [failed, asking, cancelled, left].map((seq) => teller.model.exchanges.at(seq)[0]?.status),
    ['isError', 'asked', 'cancelled', 'cancelled'],
  );
  assert.equal(
    teller.model.exchanges.at(cancelled)[0]?.notices.map(({ method }) => method),
    ['notifications/cancelled'],
  );
});

test('progress goes to its request: by what it is about, or by its token', () => {
  const teller = new Teller();
  const params = { name: 'a', arguments: {}, _meta: { progressToken: 'p' } };
  const asked = teller.wire('in', { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } };
  teller.wire('out', progress, { about: asked });
  teller.wire('out', progress);
  assert.is(teller.model.exchanges.at(asked)[0]?.notices.length, 2);
  assert.is(teller.model.exchanges.all.length, 1);
});

test('of a batch, each message is an exchange of its own', () => {
  const teller = new Teller();
  const asked = teller.wire('in', [call(1, 'a'), call(2, 'b')]);
  teller.wire('out', [result(2), result(1)], { about: asked });
  assert.equal(
    teller.model.exchanges.at(asked).map(({ key, target, status }) => [key, target, status]),
    [
      [`${asked}`, 'a', 'ok'],
      [`${asked}.1`, 'b', 'ok'],
    ],
  );
  assert.is(teller.model.exchanges.find(`${asked}.1`)?.target, 'b');
});

test('a text that is no JSON, and an answer to nothing that is here, have rows of their own', () => {
  const teller = new Teller();
  teller.tell({ type: 'wire', connection: 'c1', direction: 'in', text: '{oops', bytes: 5 });
  teller.wire('in', result(77));
  assert.equal(
    teller.model.exchanges.all.until(LIVE).map(({ kind, method }) => [kind, method]),
    [
      ['unreadable', 'no JSON'],
      ['notification', 'an answer to a request from before'],
    ],
  );
});

test('an exchange names the actor nearest to the work', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'order_add_item'));
  const mail = shopping.tell({ type: 'mail', actor: 'executor tools', name: 'call', data: {} }, asked);
  assert.is(shopping.model.exchanges.at(asked)[0]?.servedBy, 'executor tools');
  shopping.tell({ type: 'mail', actor: 'order_1', name: 'event', data: {} }, mail);
  shopping.tell({ type: 'mail', actor: 'executor tools', name: 'done', data: {} }, mail);
  assert.is(shopping.model.exchanges.at(asked)[0]?.servedBy, 'order_1');
});

test('percentiles are told for each method, and for each tool', () => {
  const teller = new Teller();
  for (let id = 1; id <= 100; id += 1) {
    const asked = teller.wire('in', call(id, 'a'));
    teller.wire('out', result(id), { about: asked, after: id });
  }
  const open = teller.wire('in', call(101, 'a'));
  assert.ok(open);
  assert.equal(timings(teller.model.exchanges.all.until(LIVE)), [
    { method: 'tools/call a', count: 100, failed: 0, p50: 50, p99: 99, slowest: 100 },
  ]);
});
