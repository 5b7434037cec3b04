/** Messages to instances of keys: a message creates its receiver, roles decide about it, and an instance that ends has a successor. */
import * as assert from 'uvu/assert';
import { isObject } from '../../../../src/core/protocol/json.ts';
import { handleOfKey } from '../../../../src/features/machines/keys.ts';
import type { KeyedKind, MachineKind } from '../../../../src/features/machines/machine-definition.ts';
import { PROGRAM_CALLER } from '../../../../src/features/machines/program-events.ts';
import { settled } from '../../../../src/testing/simulated-clock.ts';
import { suite } from '../../../harness/door.ts';
import { disk, type Stage, stage } from '../support.ts';
import { DyingDisk } from './dying-disk.ts';
import { orderKind, stockKind } from './stock.ts';

const test = suite('messages by key');

const KEYED: KeyedKind = { kind: 'argument', argument: 'key', create: 'event', roles: undefined, keep: false };

/** An order tells the stock `tea`, which is the key that each new order begins with. */
const kinds = (roles?: KeyedKind['roles']): readonly MachineKind[] => [
  stockKind({ keyed: { ...KEYED, roles } }),
  orderKind({ keyed: KEYED }),
];

const send = ({ handles }: Stage, machine: string, key: string, type: string, data = {}) =>
  handles.sendTo(machine, key, { type, data }, PROGRAM_CALLER);
const viewOf = async ({ handles }: Stage, machine: string, key: string): Promise<unknown> =>
  (await handles.get(machine, key, PROGRAM_CALLER)).view;

test('a message creates the instance of its key, and names the sender as the principal', async () => {
  const store = disk();
  const at = await stage(kinds(), { store });
  await send(at, 'order', 'o1', 'order', { n: 1 });
  await settled();
  assert.equal(await viewOf(at, 'stock', 'tea'), { taken: [1] });
  const history = store.history.get(`handle/stock/${handleOfKey('stock', 'argument', 'tea')}`) ?? [];
  assert.match(history.at(-1)?.data ?? '', /"by":"order\/o1"/);
});

test('R-59: roles decide about messages, and one without a role becomes a dead letter', async () => {
  const roles: NonNullable<KeyedKind['roles']> = {
    of: ({ principal }) => (principal === 'order/good' ? 'shop' : undefined),
    byName: new Map([['shop', { events: ['reserve'] }]]),
  };
  const at = await stage(kinds(roles), { store: disk() });
  await send(at, 'order', 'good', 'order', { n: 1 });
  await send(at, 'order', 'bad', 'order', { n: 2 });
  await settled();
  assert.equal(await viewOf(at, 'stock', 'tea'), { taken: [1] });
  const bad = await viewOf(at, 'order', 'bad');
  assert.equal(isObject(bad) && bad.failed, ['unknown']);
});

test('an instance of a key that follows one that has ended sends messages that are taken', async () => {
  const at = await stage(kinds(), { store: disk() });
  await send(at, 'order', 'o1', 'finish', { n: 1 });
  await settled();
  await at.clock.advance(1_000);
  for (const n of [2, 3]) await send(at, 'order', 'o1', 'order', { n });
  await settled();
  assert.equal(await viewOf(at, 'stock', 'tea'), { taken: [1, 2, 3] });
});

test('R-58: a message that has ended its receiver takes effect once, whatever dies: the next one begins another instance', async () => {
  const actor = `handle/stock/${handleOfKey('stock', 'argument', 'tea')}`;
  let runs = 0;
  for (const stores of [false, true])
    for (let at = 0; ; at += 1) {
      const store = new DyingDisk(at, stores);
      const one = await stage(kinds(), { store });
      const bad = (event: object) => send(one, 'order', 'o1', 'bad', { event });
      for (const event of [{ type: 'reserve', n: 1 }, { type: 'end' }, { type: 'reserve', n: 2 }])
        await Promise.race([bad(event), settled()]);
      await settled();
      if (!store.dead) break;
      runs += 1;
      const after = store.crash();
      const two = await one.again({ store: after, laterMs: 1_000 });
      await two.clock.advance(60_000);
      const order = await two.handles.get('order', 'o1', PROGRAM_CALLER);
      // Each event of the order that is stored has reached the stock.
      const sent = order.version - 1;
      const created = (after.history.get(actor) ?? []).filter(({ kind }) => kind === 'created').length;
      const where = `write ${at}, ${stores ? 'stored' : 'not stored'}, ${sent} sent`;
      assert.is(created, [0, 0, 1, 1, 2][sent + 1], where);
      const { view, status } = await two.handles.get('stock', 'tea', PROGRAM_CALLER);
      if (sent > 0)
        assert.equal(
          [view, status],
          sent === 3 ? [{ taken: [2] }, 'active'] : [{ taken: [1] }, sent === 2 ? 'done' : 'active'],
          where,
        );
    }
  assert.ok(runs > 10, `${runs} kills`);
});
