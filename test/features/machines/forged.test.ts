/** What reaches a machine: the events that its author listed, data that is data, and snapshots that are its own. */
import * as assert from 'uvu/assert';
import { assign, fromPromise, setup } from 'xstate';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import type { Store } from '../../../src/core/store/store.ts';
import { HandleError } from '../../../src/features/machines/handle-error.ts';
import { settled } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';
import { rejection } from '../../harness/results.ts';
import { readingFrom } from '../../harness/test-store.ts';
import { ALICE, orderKind, stage } from './support.ts';

const test = suite('forged events');

const charge = setup({
  types: { context: {} as { seen: string[]; output?: unknown } },
  actors: { pay: fromPromise(() => new Promise<string>(() => {})) },
}).createMachine({
  id: 'bank',
  context: { seen: [] },
  initial: 'paying',
  on: { '*': { actions: assign({ seen: ({ context, event }) => [...context.seen, event.type] }) } },
  states: {
    paying: {
      invoke: {
        id: 'charge',
        src: 'pay',
        onDone: { target: 'paid', actions: assign({ output: ({ event }) => event.output }) },
      },
      after: { 60000: 'late' },
    },
    paid: {},
    late: {},
  },
});

const bank = {
  name: 'bank',
  machine: charge,
  version: '1',
  events: ['hello'],
  view: (snapshot: { context: unknown }) => snapshot.context,
};

test('S-01: none of the six forged events reaches a machine, which takes everything', async () => {
  const { handles } = await stage([bank]);
  const { handle } = await handles.create('bank', {}, ALICE);
  const before = await handles.get('bank', handle, ALICE);
  for (const [type, data] of [
    ['xstate.done.actor.charge', { output: 'forged', actorId: 'charge' }],
    ['xstate.error.actor.charge', { error: 'forged' }],
    ['xstate.stop', {}],
    ['xstate.after.60000.bank.paying', {}],
    ['whatever', {}],
    ['*', {}],
  ] as const) {
    const refused = await rejection(handles.send('bank', handle, { type, data }, ALICE), HandleError);
    assert.is(refused.reason, 'refused');
    assert.match(refused.message, /unknown event .*: expected one of hello/);
    assert.equal(await handles.get('bank', handle, ALICE), before);
  }
  const said = await handles.send('bank', handle, { type: 'hello', data: {} }, ALICE);
  assert.equal(said.view, { seen: ['hello'] });
});

test("S-01: a machine that lists XState's events, or wildcards, is not offered", async () => {
  const { handles } = await stage([]);
  for (const type of ['xstate.done.actor.charge', '*', 'item.*', ''])
    assert.throws(() => handles.define({ ...bank, events: [type] }), /event ".*"/);
});

test('S-01: data that reaches prototypes, names an actor, nests too deep, or is another type is refused', async () => {
  const { handles } = await stage([orderKind()]);
  const { handle } = await handles.create('order', {}, ALICE);
  let deep: Record<string, unknown> = {};
  for (let level = 0; level < 100; level += 1) deep = { in: deep };
  for (const note of [
    JSON.parse('{"__proto__":{"isAdmin":true}}'),
    { constructor: { prototype: {} } },
    { xstate$$type: 1, id: 'charge' },
    deep,
  ]) {
    const refused = await rejection(
      handles.send('order', handle, { type: 'note', data: { note } }, ALICE),
      HandleError,
    );
    assert.is(refused.reason, 'refused');
    assert.is((await rejection(handles.create('order', { items: [note] }, ALICE), HandleError)).reason, 'refused');
  }
  const typed = await rejection(
    handles.send('order', handle, { type: 'note', data: { type: 'pay' } }, ALICE),
    HandleError,
  );
  assert.match(typed.message, /expected no member "type"/);
  assert.is(Reflect.get({}, 'isAdmin'), undefined);
});

/** The same store, with what it kept of instances changed by somebody. */
function tampered(under: Store, change: (data: string) => string): Store {
  return readingFrom(under, async (query) => {
    const answer = await under.ask(query);
    if (answer.type !== 'load' || !answer.value?.snapshot) return answer;
    const { snapshot } = answer.value;
    return { type: 'load', value: { ...answer.value, snapshot: { ...snapshot, data: change(snapshot.data) } } };
  });
}

test('S-02: a snapshot that names logic or states that are not the machine’s is refused, and nothing of it runs', async () => {
  const store = memoryStore();
  const first = await stage([bank], { store });
  const { handle } = await first.handles.create('bank', {}, ALICE);
  await settled();
  for (const change of [
    (data: string) => data.replace('"src":"pay"', '"src":"rm -rf"'),
    (data: string) => data.replace('"src":"pay"', '"src":"__proto__"'),
    (data: string) => data.replace('"src":"pay"', '"src":"toString"'),
    (data: string) => data.replace('"src":"pay"', '"src":"xstate.invoke.7.bank.paying"'),
    (data: string) => data.replace('"value":"paying"', '"value":"owned"'),
    (data: string) => data.replace('"value":"paying"', '"value":"constructor"'),
    (data: string) => data.replace('"turn"', '"nothing"'),
  ]) {
    const second = await first.again({ store: tampered(store, change) });
    await settled();
    const refused = await rejection(second.handles.get('bank', handle, ALICE), HandleError);
    assert.ok(['refused', 'failed'].includes(refused.reason), refused.message);
    await second.handles.stop();
  }
  const honest = await first.again();
  assert.is((await honest.handles.get('bank', handle, ALICE)).state, 'paying');
});
