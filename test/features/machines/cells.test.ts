/** Handles that move between processes: taken up and let go of by cell, with one owner at a time. */
import * as assert from 'uvu/assert';
import { setup } from 'xstate';
import { cellIn } from '../../../src/core/protocol/cell.ts';
import { fromSteps } from '../../../src/features/machines/durable-steps.ts';
import { HandleError } from '../../../src/features/machines/handle-error.ts';
import { settled } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';
import { rejection } from '../../harness/results.ts';
import { ALICE, disk, orderKind, orderMachine, stage, Work } from './support.ts';

const test = suite('handles by cell');
const add = (item: string) => ({ type: 'add', data: { item } });
const PAY = { type: 'pay', data: {} };
const MINUTE = 60_000;

const cellOf = (handle: string): number => {
  const cell = cellIn(handle);
  assert.ok(cell !== undefined);
  return cell;
};

/** Two processes on one store: the first owns everything, the second nothing yet. */
async function two(work = new Work(), told: (what: string) => void = () => {}) {
  const store = disk();
  const kinds = [orderKind(orderMachine(work.logic, told))];
  const one = await stage(kinds, { store });
  const other = await stage(kinds, { store, clock: one.clock, takes: [] });
  return { store, one, other };
}

test('D-12: a handle that has moved continues with its state, and its quota moves with it', async () => {
  const { one, other } = await two();
  const { handle } = await one.handles.create('order', {}, ALICE);
  const { handle: stays } = await one.handles.create('order', {}, ALICE);
  await one.handles.send('order', handle, add('tea'), ALICE);
  if (cellOf(stays) === cellOf(handle)) return;
  await one.handles.drop(new Set([cellOf(handle)]), true);
  await other.handles.take([cellOf(handle)]);
  assert.equal([one.quotas.handles.all, other.quotas.handles.all], [1, 1]);
  assert.is((await rejection(one.handles.get('order', handle, ALICE), HandleError)).reason, 'unknown');
  assert.equal((await other.handles.send('order', handle, add('milk'), ALICE)).view, { items: ['tea', 'milk'] });
  assert.equal((await one.handles.get('order', stays, ALICE)).view, { items: [] });
});

test('letting go waits for a change in progress, and an instance that is in memory runs in one process only', async () => {
  const told: string[] = [];
  const { store, one, other } = await two(undefined, (what) => told.push(what));
  const { handle } = await one.handles.create('order', {}, ALICE);
  store.held = true;
  const sent = one.handles.send('order', handle, add('tea'), ALICE);
  await settled();
  let left = false;
  const dropped = one.handles.drop(new Set([cellOf(handle)]), true).then(() => {
    left = true;
  });
  await settled();
  assert.is(left, false);
  store.release();
  assert.equal((await sent).view, { items: ['tea'] });
  await dropped;
  await other.handles.take([cellOf(handle)]);
  assert.equal((await other.handles.get('order', handle, ALICE)).view, { items: ['tea'] });
  assert.equal(told, ['tea']);
  assert.equal([one.inspection.live(`handle/order/${handle.slice(0, 8)}`) === undefined], [true]);
});

test('a process that lost its cells writes nothing more of them, and answers no call with a change', async () => {
  const { store, one, other } = await two();
  const { handle } = await one.handles.create('order', {}, ALICE);
  store.held = true;
  const sent = rejection(one.handles.send('order', handle, add('tea'), ALICE), HandleError);
  await settled();
  const queued = rejection(one.handles.send('order', handle, add('milk'), ALICE), HandleError);
  await settled();
  const before = store.batches.length;
  const dropped = one.handles.drop(new Set([cellOf(handle)]), false);
  assert.is((await queued).reason, 'busy');
  await dropped;
  store.lose();
  assert.is((await sent).reason, 'busy');
  await settled();
  assert.is(store.batches.length, before);
  await other.handles.take([cellOf(handle)]);
  assert.equal((await other.handles.get('order', handle, ALICE)).view, { items: [] });
  assert.is(one.quotas.handles.all, 0);
});

test('a timer fires in the process that owns its cell, once, and work resumes there', async () => {
  const work = new Work();
  const { one, other } = await two(work);
  const { handle } = await one.handles.create('order', {}, ALICE);
  await one.handles.send('order', handle, add('tea'), ALICE);
  await one.handles.send('order', handle, PAY, ALICE);
  await settled();
  assert.is(work.began.length, 1);
  await one.handles.drop(new Set([cellOf(handle)]), true);
  await other.handles.take([cellOf(handle)]);
  await settled();
  assert.is(work.began.length, 2);
  work.end('card');
  await settled();
  assert.is((await other.handles.get('order', handle, ALICE)).state, 'paid');
  await other.handles.drop(new Set([cellOf(handle)]), true);
  await one.clock.advance(MINUTE);
  await one.handles.take([cellOf(handle)]);
  await one.clock.advance(1);
  await settled();
  const view = await one.handles.get('order', handle, ALICE);
  assert.equal([view.state, view.status], ['shipped', 'done']);
});

test('D-12: work that does not heed its signal begins no step after its handle has moved, and the next owner runs the step', async () => {
  const ran: string[] = [];
  const gates: (() => void)[] = [];
  const machine = setup({
    actors: {
      work: fromSteps<unknown, string>(async ({ step }) => {
        await step('first', () => void ran.push('first'));
        await new Promise<void>((resolve) => gates.push(resolve));
        await step('second', () => void ran.push('second'));
        return 'done';
      }),
    },
  }).createMachine({
    initial: 'working',
    states: { working: { invoke: { src: 'work', input: () => null, onDone: 'worked' } }, worked: {} },
  });
  const store = disk();
  const kinds = [{ name: 'job', machine, version: '1', events: [] }];
  const one = await stage(kinds, { store });
  const other = await stage(kinds, { store, clock: one.clock, takes: [] });
  const { handle } = await one.handles.create('job', {}, ALICE);
  await settled();
  assert.equal([ran, gates.length], [['first'], 1]);
  await one.handles.drop(new Set([cellOf(handle)]), true);
  await other.handles.take([cellOf(handle)]);
  await settled();
  assert.is(gates.length, 2);
  gates[0]?.();
  await settled();
  assert.equal(ran, ['first']);
  gates[1]?.();
  await settled();
  assert.equal(ran, ['first', 'second']);
  assert.is((await other.handles.get('job', handle, ALICE)).state, 'worked');
});
