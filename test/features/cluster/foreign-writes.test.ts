/** Commits of work that outlives its cell: refused, whether or not the node is a member again. */

import * as assert from 'uvu/assert';
import { Metrics } from '../../../src/core/kernel/telemetry/metrics.ts';
import { sessionActor, withCell } from '../../../src/core/protocol/cell.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { meteredStore, ownedStore } from '../../../src/core/store/metered-store.ts';
import { StoreError, type Write } from '../../../src/core/store/store.ts';
import { SimulatedClock } from '../../../src/testing/simulated-clock.ts';
import { actor, event } from '../../core/store/support.ts';
import { suite } from '../../harness/door.ts';
import { TestStore } from '../../harness/test-store.ts';

const test = suite('writes of cells');

const idOf = (cell: number): string => withCell(cell, 'x'.repeat(22));

test('the commits of a moment have ended when it is said so, and later ones count no more', async () => {
  const ends: (() => void)[] = [];
  const inner = new (class extends TestStore {
    override write(): Promise<void> {
      return new Promise((end) => ends.push(end));
    }
  })();
  const store = ownedStore(meteredStore(inner, new SimulatedClock(), new Metrics(), { rider: undefined }), {
    owns: () => true,
  });
  const first = store.commit([actor(`task/${idOf(7)}`)]);
  let written = false;
  const over = store.written?.().then(() => {
    written = true;
  });
  const second = store.commit([actor(`task/${idOf(8)}`)]);
  await Promise.resolve();
  assert.not.ok(written);
  ends[0]?.();
  await Promise.all([first, over]);
  assert.ok(written);
  ends[1]?.();
  await second;
});

test('D-12: a batch with an actor of a cell that another node owns is refused whole, and others pass', async () => {
  const inner = Object.assign(memoryStore(), { durable: true });
  const owned = new Set([7]);
  const owner = { owns: (cell: number) => owned.has(cell) };
  const store = ownedStore(meteredStore(inner, new SimulatedClock(), new Metrics(), { rider: undefined }), owner);
  const faultOf = async (...writes: readonly Write[]): Promise<string> => {
    try {
      await store.commit(writes);
      return 'none';
    } catch (error) {
      return error instanceof StoreError ? error.fault : String(error);
    }
  };
  const of = (cell: number): readonly string[] => [
    `handle/order/${idOf(cell)}`,
    `task/${idOf(cell)}`,
    sessionActor(cell, 'h'.repeat(43)),
  ];
  for (const id of of(7)) assert.is(await faultOf(actor(id), event(id, 's', 1)), 'none', id);
  for (const id of of(8)) {
    assert.is(await faultOf(actor(of(7)[0] ?? '', { status: 'late' }), event(id, 's', 1)), 'fenced', id);
    const timer = { actor: id, timer: 't', due: 1, data: '1' };
    for (const write of [actor(id), { type: 'timer', timer }, { type: 'forget', actor: id }] as const)
      assert.is(await faultOf(write), 'fenced', id);
  }
  assert.is((await inner.load(of(7)[0] ?? ''))?.actor.status, 'active');
  // What belongs to no cell, and the steps of a call that is in flight here.
  for (const id of ['server/secret', 'audit/1', `question/${idOf(8)}`]) assert.is(await faultOf(actor(id)), 'none', id);
  owned.delete(7);
  assert.is(await faultOf(event(of(7)[0] ?? '', 's', 2)), 'fenced');
});
