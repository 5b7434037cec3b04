/** Messages between instances of one process: what an action of `tell` sends, in which order, and what becomes of it. */
import * as assert from 'uvu/assert';
import type { Limits } from '../../../../src/core/kernel/limits.ts';
import { isObject, type JsonValue } from '../../../../src/core/protocol/json.ts';
import { replay } from '../../../../src/features/machines/event-history.ts';
import { HandleError } from '../../../../src/features/machines/handle-error.ts';
import { settled } from '../../../../src/testing/simulated-clock.ts';
import { suite } from '../../../harness/door.ts';
import { rejection } from '../../../harness/results.ts';
import { times } from '../../../harness/scale.ts';
import { ALICE, BOB, disk, type Stage, stage } from '../support.ts';
import { DyingDisk } from './dying-disk.ts';
import { echoKind, orderKind, stockKind } from './stock.ts';

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

test('R-58: a process that dies before or after any of its writes loses no message, repeats none and reorders none', async () => {
  let runs = 0;
  for (const stores of [false, true])
    for (let at = 2; ; at += 1) {
      const store = new DyingDisk(at, stores);
      const one = await shop({ store });
      for (const n of [1, 2, 3]) {
        const send = one.handles.send('order', one.order, { type: 'order', data: { n } }, ALICE);
        await Promise.race([send, settled()]);
      }
      await settled();
      if (!store.dead) break;
      runs += 1;
      const two = await one.again({ store: store.crash() });
      await two.clock.advance(60_000);
      const { view } = await two.handles.get('order', one.order, ALICE);
      assert.ok(isObject(view) && typeof view.ordered === 'number');
      const stock = await taken(two, one.stock);
      assert.equal(
        stock,
        { taken: [1, 2, 3].slice(0, view.ordered) },
        `write ${at}, ${stores ? 'stored' : 'not stored'}`,
      );
      await two.handles.send('order', one.order, { type: 'order', data: { n: 9 } }, ALICE);
      await settled();
      assert.equal(await taken(two, one.stock), { taken: [...[1, 2, 3].slice(0, view.ordered), 9] });
      assert.equal(await two.store.streams(`handle/order/${one.order}`), []);
    }
  assert.ok(runs > 12, `${runs} kills`);
});

test('an instance that ends with a message delivers it, also after a restart', async () => {
  const store = disk();
  const at = await shop({ store });
  store.held = true;
  void at.handles.send('order', at.order, { type: 'finish', data: { n: 7 } }, ALICE).catch(() => {});
  await settled();
  const [turn] = store.batches.slice(-1);
  const after = store.crash();
  await after.commit(turn ?? []);
  const two = await at.again({ store: after });
  await settled();
  assert.is((await two.handles.get('order', at.order, ALICE)).status, 'done');
  assert.equal(await taken(two, at.stock), { taken: [7] });
});

test('a message that the state does not accept is noted in the history, and is no failure', async () => {
  const store = disk();
  const at = await shop({ store });
  await at.handles.send('stock', at.stock, { type: 'close', data: {} }, ALICE);
  await at.handles.send('order', at.order, { type: 'order', data: { n: 1 } }, ALICE);
  await settled();
  assert.equal(await taken(at, at.stock), { taken: [] });
  const history = store.history.get(`handle/stock/${at.stock}`) ?? [];
  assert.equal(history.at(-1)?.kind, 'ignored');
  assert.match(history.at(-1)?.data ?? '', /reserve/);
  const replayed = replay(stockKind().machine, history);
  assert.is(replayed?.value, 'closed');
  assert.equal(await at.store.deadLetters(10), []);
});

test('R-59: a message to a machine that does not exist becomes a dead letter, and its sender receives tell.failed', async () => {
  const at = await shop();
  await at.handles.send('order', at.order, { type: 'to', data: { machine: 'lost', key: 'k' } }, ALICE);
  await settled();
  assert.equal((await at.handles.get('order', at.order, ALICE)).view, {
    stock: at.stock,
    failed: ['unknown'],
    ordered: 0,
  });
  const [letter] = await at.store.deadLetters(10);
  assert.match(letter?.error ?? '', /unknown: this server has no machine "lost"/);
  assert.match(letter?.mail ?? '', /"type":"tell"/);
  assert.equal(await at.store.streams(`handle/order/${at.order}`), []);
});

test('a message to an instance that has ended, or to one of another principal, is a dead letter', async () => {
  const at = await shop();
  await at.handles.send('stock', at.stock, { type: 'end', data: {} }, ALICE);
  await at.handles.send('order', at.order, { type: 'order', data: { n: 1 } }, ALICE);
  await settled();
  const other = (await at.handles.create('stock', {}, BOB)).handle;
  const thief = (await at.handles.create('order', { stock: other }, ALICE)).handle;
  await at.handles.send('order', thief, { type: 'order', data: { n: 1 } }, ALICE);
  await settled();
  const views = await Promise.all([at.order, thief].map((id) => at.handles.get('order', id, ALICE)));
  assert.equal(
    views.map(({ view }) => isObject(view) && view.failed),
    [['ended'], ['unknown']],
  );
  assert.equal((await at.handles.get('stock', other, BOB)).view, { taken: [] });
});

test('a message that crashes its receiver becomes a dead letter of both, and the next ones arrive', async () => {
  const at = await shop();
  for (const type of ['fail', 'reserve'])
    await at.handles.send('order', at.order, { type: 'bad', data: { event: { type, n: 4 } } }, ALICE);
  await settled();
  await at.clock.advance(1_000);
  assert.equal(await taken(at, at.stock), { taken: [4] });
  assert.equal((await at.store.deadLetters(10)).map(({ actor }) => actor.split('/')[1]).sort(), ['order', 'stock']);
});

test('an event that cannot be sent fails its turn, with the place', async () => {
  const at = await shop();
  const bad = (event: JsonValue) => at.handles.send('order', at.order, { type: 'bad', data: { event } }, ALICE);
  for (const event of [null, 'reserve', { type: '' }, { type: 'xstate.stop' }, { type: 'tell.failed' }, { n: 1 }])
    assert.is((await rejection(bad(event), HandleError)).reason, 'failed');
  assert.match(String(at.incidents.at(-1)?.error), /tell\("stock", …\): expected an event with a type/);
  await settled();
  assert.equal(await taken(at, at.stock), { taken: [] });
});

test('an event whose action throws after its commit is undone, and its messages are not delivered', async () => {
  const store = disk();
  const at = await shop({ store });
  const thrown = rejection(at.handles.send('order', at.order, { type: 'throw', data: { n: 1 } }, ALICE), HandleError);
  assert.is((await thrown).reason, 'failed');
  await at.handles.send('order', at.order, { type: 'order', data: { n: 2 } }, ALICE);
  await settled();
  assert.equal(await taken(at, at.stock), { taken: [2] });
  assert.equal(await at.store.streams(`handle/order/${at.order}`), []);
});

test('R-60: an outbox takes no more than its limit; the turn is rejected, and nothing of it has happened', async () => {
  const store = disk();
  const at = await shop({ store, limits: { maxOutMessages: 100, maxOutLength: 100_000, handleMailbox: 1 } });
  const many = (count: number) => at.handles.send('order', at.order, { type: 'many', data: { count } }, ALICE);
  const huge = await rejection(many(5_000), HandleError);
  assert.match(
    huge.message,
    /at most 100 messages of 100000 characters in one turn, got 40 of \d+ .*limits.maxOutMessages/,
  );
  // The receiver cannot store anything, so nothing leaves the outbox.
  store.rejects = (writes) => writes.some((write) => write.type === 'snapshot' && write.actor.includes('/stock/'));
  await many(10);
  await many(10);
  const full = await rejection(many(10), HandleError);
  assert.is(full.reason, 'busy');
  assert.match(full.message, /80 messages of this instance wait/);
  store.rejects = undefined;
  await at.clock.advance(60_000);
  const stock = await taken(at, at.stock);
  assert.ok(isObject(stock) && Array.isArray(stock.taken));
  assert.is(stock.taken.length, 80);
  await many(10);
});

test('a message that nothing accepts in time is a dead letter', async () => {
  const store = disk();
  const at = await shop({ store, limits: { tellMs: 60_000 } });
  store.rejects = (writes) => writes.some((write) => write.type === 'snapshot' && write.actor.includes('/stock/'));
  await at.handles.send('order', at.order, { type: 'order', data: { n: 1 } }, ALICE);
  await at.clock.advance(50_000);
  assert.equal(await at.store.deadLetters(10), []);
  await at.clock.advance(20_000);
  const [letter] = await at.store.deadLetters(10);
  assert.match(letter?.error ?? '', /late: no acceptance in time/);
  store.rejects = undefined;
  await at.clock.advance(20_000);
  assert.equal(await taken(at, at.stock), { taken: [] });
});

/** Two machines that answer each other, after an event of each. */
async function echoes(times: number, limits: Partial<Limits>) {
  const at = await stage([echoKind(times)], { store: disk(), limits });
  const [one = '', two = ''] = [
    (await at.handles.create('echo', {}, ALICE)).handle,
    (await at.handles.create('echo', {}, ALICE)).handle,
  ];
  const seen = async () => {
    const views = await Promise.all([one, two].map((id) => at.handles.get('echo', id, ALICE)));
    return views.map(({ view }) => (isObject(view) ? Number(view.seen) : 0));
  };
  await at.handles.send('echo', two, { type: 'meet', data: { other: one } }, ALICE);
  await at.handles.send('echo', one, { type: 'meet', data: { other: two } }, ALICE);
  for (const id of [one, two]) await at.handles.send('echo', id, { type: 'echo', data: {} }, ALICE);
  return { ...at, one, two, seen };
}

test('R-60: machines that tell each other in a circle end after 32 messages, in a dead letter', async () => {
  const at = await echoes(1, {});
  await at.clock.advance(10_000);
  // Each of the two events begins a chain, which goes back and forth.
  const [one = 0, two = 0] = await at.seen();
  assert.is(one + two, 2 + 2 * 32);
  const letters = await at.store.deadLetters(10);
  assert.equal(
    letters.map(({ error }) => error.split(':')[0]),
    ['hops', 'hops'],
  );
});

test('R-60: machines that answer each message with two flood nothing: outboxes stay within their limit, and end', async () => {
  const most = times(20, { quick: 6 });
  const at = await echoes(2, { maxOutMessages: most, tellMs: 60_000 });
  for (let minute = 0; minute < 120; minute += 1) {
    await at.clock.advance(60_000);
    const rows = await Promise.all([at.one, at.two].map((id) => at.store.streams(`handle/echo/${id}`)));
    const waiting = rows.flat().reduce((sum, { last, purged }) => sum + last - purged, 0);
    assert.ok(waiting <= 2 * most, `${waiting} messages wait`);
    if (waiting === 0) break;
  }
  const [before, after] = [await at.seen(), await at.clock.advance(600_000).then(() => at.seen())];
  assert.equal(after, before);
});
