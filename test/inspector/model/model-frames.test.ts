/** A model tells another what it knows: for a tab that comes later, and for a file. */
import * as assert from 'uvu/assert';
import { actorTree, framesOf, LIVE, Model, recordingOfModel } from '../../../src/inspector/model/index.ts';
import { suite } from '../../harness/door.ts';
import { call, hello, result, shop } from './frames.ts';

const test = suite('model: retelling');

test('another model knows the same', () => {
  const shopping = shop();
  const asked = shopping.wire('in', call(1, 'order_checkout'));
  shopping.step('order_1', 'checkout', ['cart#1'], ['confirming'], asked, { items: [] });
  shopping.record({ type: 'gone', actor: 'executor tools', why: 'replaced' });
  const other = new Model();
  for (const frame of framesOf(shopping.model)) other.take(frame);
  assert.equal(actorTree(other, LIVE), actorTree(shopping.model, LIVE));
  assert.equal(other.rows, shopping.model.rows);
  assert.equal(other.actor('order_1')?.context(LIVE), { items: [] });
  assert.is(other.hello?.live, false);
});

test('another model has the actors in the same order, although a view came before the records', () => {
  const shopping = shop();
  const view = {
    kind: 'handle',
    at: 0,
    seq: 0,
    state: '',
    mailbox: 0,
    waits: [],
    facts: {},
    next: [],
    active: [],
  } as const;
  shopping.frame({ type: 'look', look: { actor: 'order_3', ...view } });
  for (const actor of ['order_2', 'order_3']) shopping.record({ type: 'created', actor, kind: 'handle', since: 0 });
  const other = new Model();
  for (const frame of framesOf(shopping.model)) other.take(frame);
  const orders = ({ actors }: Model): readonly string[] => [...actors.keys()].filter((each) => /^order_/.test(each));
  assert.equal(orders(shopping.model), ['order_1', 'order_2', 'order_3']);
  assert.equal(orders(other), orders(shopping.model));
});

test('another tab knows how a client is connected, and a recording does not contain these paths', () => {
  const { model } = shop();
  const connect = { note: 'Do this.', ways: [{ client: 'Cursor', text: '{}' }] };
  model.take({ ...hello, connect });
  const [tab, file] = [framesOf(model, true)[0], recordingOfModel(model).frames[0]];
  assert.equal(Object(tab).connect, connect);
  assert.not.ok('connect' in Object(file));
});

test('an actor from before the oldest record is sent with its current state', () => {
  const shopping = shop({ maxRecords: 50 });
  for (let id = 1; id <= 200; id += 1) {
    const asked = shopping.wire('in', call(id, 'a'));
    shopping.wire('out', result(id), { about: asked });
  }
  const other = new Model();
  for (const frame of recordingOfModel(shopping.model).frames) other.take(frame);
  assert.is(other.actor('order_1')?.standing(LIVE)?.state, 'cart');
  assert.is(other.actor('order_1')?.chart, 'order-1');
  assert.is(other.actor('session c1')?.label, 'claude');
  assert.is(other.gaps[0]?.why, 'forgotten');
});

test('an empty model sends nothing', () => {
  assert.equal(framesOf(new Model()), []);
});
