/** Messages between instances of one process: what an action of `tell` sends, in which order, and what becomes of it. */
import * as assert from 'uvu/assert';
import { HandleError } from '../../../../src/features/machines/handle-error.ts';
import { settled } from '../../../../src/testing/simulated-clock.ts';
import { suite } from '../../../harness/door.ts';
import { rejection } from '../../../harness/results.ts';
import { ALICE, disk, type Stage, stage } from '../support.ts';
import { orderKind, stockKind } from './stock.ts';

const test = suite('messages between machines');

async function shop(options: Parameters<typeof stage>[1] = { store: disk() }) {
  const at = await stage([stockKind(), orderKind()], options);
  const stock = (await at.handles.create('stock', {}, ALICE)).handle;
  const order = (await at.handles.create('order', { stock }, ALICE)).handle;
  return { ...at, stock, order };
}

const taken = async ({ handles }: Pick<Stage, 'handles'>, stock: string): Promise<unknown> =>
  (await handles.get('stock', stock, ALICE)).view;

test('an event that an action tells reaches the other instance, once and in order', async () => {
  const at = await shop();
  for (const n of [1, 2, 3]) await at.handles.send('order', at.order, { type: 'order', data: { n } }, ALICE);
  await settled();
  assert.equal(await taken(at, at.stock), { taken: [1, 2, 3] });
  assert.equal((await at.store.load(`handle/order/${at.order}`))?.timers, []);
  assert.equal(await at.store.streams(`handle/order/${at.order}`), []);
});

test('a message is delivered when its turn is durable, and not at all if the store rejects the turn', async () => {
  const store = disk();
  const at = await shop({ store });
  store.held = true;
  const sent = rejection(at.handles.send('order', at.order, { type: 'order', data: { n: 1 } }, ALICE), HandleError);
  await settled();
  store.lose();
  await sent;
  await at.clock.advance(5_000);
  assert.equal(await taken(at, at.stock), { taken: [] });
});
