/** A call of a client waits a moment for the work that it starts: short work is done when the answer leaves, long work is not waited for. */
import * as assert from 'uvu/assert';
import { fromPromise, setup } from 'xstate';
import type { Context } from '../../../src/core/execution/context.ts';
import { elicitWith } from '../../../src/features/asking/invocations.ts';
import { courseText } from '../../../src/features/machines/course.ts';
import { PROGRAM_CALLER } from '../../../src/features/machines/program-events.ts';
import { SimulatedClock, settled } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';
import { ALICE, disk, orderKind, orderMachine, stage, Work } from './support.ts';

const test = suite('short work');

const PAY = { type: 'pay', data: {} };
const CART = { items: ['tea'] };
const atOnce = orderKind(orderMachine(fromPromise<unknown, unknown>(() => Promise.resolve('by card'))));

/** Simulated time that passes by itself, as far as the server knows. */
class PassingClock extends SimulatedClock {
  override readonly isManual = undefined;
}

for (const [name, store] of [
  ['in memory', undefined],
  ['on a disk', disk()],
] as const)
  test(`R-120: the answer of a call shows the state after work that ends at once, ${name}`, async () => {
    const { handles } = await stage([atOnce], store && { store });
    const { handle } = await handles.create('order', CART, ALICE);
    const paid = await handles.send('order', handle, PAY, ALICE);
    assert.is(paid.state, 'paid');
    assert.is(paid.course && courseText(paid.course), 'cart → paying → paid');
    assert.is((await handles.get('order', handle, ALICE)).version, paid.version);
  });

test('the answer of a call shows no result of its work that is not durable', async () => {
  const store = disk();
  const { handles } = await stage([atOnce], { store });
  const { handle } = await handles.create('order', CART, ALICE);
  let answered = false;
  store.held = true;
  const paying = handles.send('order', handle, PAY, ALICE).finally(() => {
    answered = true;
  });
  await settled();
  store.release();
  store.held = true;
  await settled();
  await settled();
  assert.not.ok(answered);
  store.release();
  assert.is((await paying).state, 'paid');
});

test('a call whose work lasts is answered while the work runs, also with a clock that stands still', async () => {
  const work = new Work();
  const { handles } = await stage([orderKind(orderMachine(work.logic))]);
  const { handle } = await handles.create('order', CART, ALICE);
  assert.is((await handles.send('order', handle, PAY, ALICE)).state, 'paying');
  work.end('by card');
  await settled();
  assert.is((await handles.get('order', handle, ALICE)).state, 'paid');
});

test('R-120: a call waits 50 ms at most for its work, and no longer than the work lasts', async () => {
  const work = new Work();
  const clock = new PassingClock();
  const { handles } = await stage([orderKind(orderMachine(work.logic))], { clock });
  const [first, second] = await Promise.all([
    handles.create('order', CART, ALICE),
    handles.create('order', CART, ALICE),
  ]);
  let answered = false;
  const long = handles.send('order', first.handle, PAY, ALICE).finally(() => {
    answered = true;
  });
  await clock.advance(49);
  assert.not.ok(answered);
  await clock.advance(1);
  assert.is((await long).state, 'paying');
  const short = handles.send('order', second.handle, PAY, ALICE);
  await settled();
  work.end('by card');
  assert.is((await short).state, 'paid');
});

test('a call does not wait for work that ran before it, and calls of programs wait for none', async () => {
  const waiting = setup({ actors: { work: new Work().logic } }).createMachine({
    id: 'order',
    initial: 'on',
    states: { on: { invoke: { src: 'work' }, on: { add: { actions: () => {} } } } },
  });
  const clock = new PassingClock();
  const { handles } = await stage([orderKind(waiting), { ...orderKind(), name: 'other' }], { clock });
  const creating = handles.create('order', {}, ALICE);
  await clock.advance(50);
  const { handle } = await creating;
  const at = clock.now();
  const added = await handles.send('order', handle, { type: 'add', data: { item: 'tea' } }, ALICE);
  assert.is(added.state, 'on');
  const { handle: other } = await handles.create('other', CART, PROGRAM_CALLER);
  assert.is((await handles.send('other', other, PAY, PROGRAM_CALLER)).state, 'paying');
  assert.is(clock.now(), at);
});

test('a question that follows from short work is asked in the same call', async () => {
  const form = { type: 'object', properties: { sure: { type: 'boolean' } } } as const;
  const checked = setup({
    actors: { check: fromPromise(() => Promise.resolve()), ask: elicitWith(form) },
    types: { events: {} as { type: 'add' } },
  }).createMachine({
    id: 'order',
    initial: 'idle',
    states: {
      idle: { on: { add: 'checking' } },
      checking: { invoke: { src: 'check', onDone: 'asking' } },
      asking: { invoke: { src: 'ask', input: { message: 'Sure?' }, onDone: 'storing' } },
      storing: { invoke: { src: 'check', onDone: 'done' } },
      done: {},
    },
  });
  const { handles } = await stage([orderKind(checked)]);
  const { handle } = await handles.create('order', {}, ALICE);
  const ctx = {
    principal: 'alice',
    signal: new AbortController().signal,
    client: { capabilities: { elicitation: {} } },
    ask: async (questions: object) =>
      Object.fromEntries(Object.keys(questions).map((key) => [key, { status: 'accepted', content: { sure: true } }])),
  } as unknown as Context;
  const { state, course } = await handles.send('order', handle, { type: 'add', data: {} }, { ...ALICE, ctx });
  assert.is(state, 'done');
  assert.is(
    course && courseText(course),
    'idle → checking → asking → storing → done (the question "Sure?" was answered with sure: true)',
  );
});
