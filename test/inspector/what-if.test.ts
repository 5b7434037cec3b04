/** What could happen next, and what an event would lead to: found out without the actor noticing, whatever its author's code does. */
import * as assert from 'uvu/assert';
import { and, assign, createActor, createMachine, emit, fromPromise, not, setup, stateIn } from 'xstate';
import type { AnyEvent } from '../../src/inspector/http/viewer-input.ts';
import { nextOf, whatIf } from '../../src/inspector/views/what-if.ts';
import { suite } from '../harness/door.ts';

const test = suite('inspector: what if');

const ran: string[] = [];
const order = setup({
  types: { context: {} as { items: number; paid: boolean }, events: {} as { type: string; amount?: number } },
  actions: { note: () => void ran.push('note') },
  guards: {
    hasItems: ({ context }) => context.items > 0,
    isEnough: ({ event }) => Number(event.amount) >= 10,
    breaks: () => {
      throw new Error('this guard is broken');
    },
    atLeast: ({ context }, { least }: { least: number }) => context.items >= least,
  },
}).createMachine({
  id: 'order',
  initial: 'cart',
  context: { items: 0, paid: false },
  on: { cancel: '.cancelled' },
  states: {
    cart: {
      on: {
        add: { actions: assign({ items: ({ context }) => context.items + 1 }) },
        checkout: { target: 'paying', guard: 'hasItems', actions: 'note' },
        bulk: { target: 'paying', guard: { type: 'atLeast', params: { least: 5 } } },
        never: { target: 'paying', guard: and([not('hasItems'), 'hasItems']) },
        broken: { target: 'paying', guard: 'breaks' },
        inline: { target: 'paying', guard: ({ context }) => context.items === 3 },
        forbidden: {},
        where: { target: 'paying', guard: stateIn('paying') },
      },
    },
    paying: {
      initial: 'asking',
      onDone: 'done',
      states: {
        asking: { on: { pay: { target: 'paid', guard: 'isEnough', actions: emit({ type: 'paid' }) } } },
        paid: { type: 'final' },
      },
      after: { 1000: 'cancelled' },
    },
    done: { type: 'final' },
    cancelled: { type: 'final' },
  },
});

function at(...events: AnyEvent[]) {
  const actor = createActor(order, { logger: () => {} }).start();
  for (const event of events) actor.send(event);
  const charted = { machine: order, snapshot: actor.getSnapshot() };
  return { actor, charted, ask: (event: AnyEvent) => whatIf(charted, event, (context) => JSON.stringify(context)) };
}

test('an event that is taken: the transitions, the states, the context and the actions, and the actor notices nothing', () => {
  const { actor, charted, ask } = at({ type: 'add' });
  let changes = 0;
  actor.subscribe(() => {
    changes += 1;
  });
  ran.length = 0;
  assert.equal(ask({ type: 'checkout' }), {
    allowed: true,
    edges: ['cart#1'],
    active: ['paying.asking'],
    status: 'active',
    context: '{"items":1,"paid":false}',
    actions: ['note', 'raise'],
  });
  assert.is(ask({ type: 'add' }).context, '{"items":2,"paid":false}');
  assert.is(ask({ type: 'cancel' }).status, 'done');
  assert.is(actor.getSnapshot(), charted.snapshot);
  assert.equal([changes, ran], [0, []]);
});

test('an event that leads through several transitions', () => {
  const { ask } = at({ type: 'add' }, { type: 'checkout' });
  const { edges, active, status, actions } = ask({ type: 'pay', amount: 10 });
  assert.equal({ edges, active, status }, { edges: ['paying.asking#0', 'paying#0'], active: ['done'], status: 'done' });
  assert.ok(actions.includes('emit'));
});

test('an event that is not taken: which, or which guards returned false', () => {
  const { ask, charted } = at();
  const why = (type: string): string | undefined => ask({ type }).why;
  assert.match(why('pay') ?? '', /^no state handles it: expected one of add, checkout, .*cancel$/);
  assert.is(why('checkout'), 'the guard "hasItems" of "checkout" in state "cart" returned false');
  assert.is(why('bulk'), 'the guard "atLeast" of "bulk" in state "cart" returned false');
  assert.match(why('never') ?? '', /of "never" in state "cart" returned false$/);
  assert.is(why('broken'), 'the guard "breaks" of "broken" in state "cart" threw: this guard is broken');
  assert.is(why('inline'), 'the guard of "inline" in state "cart" returned false');
  assert.is(why('forbidden'), 'state "cart" forbids it');
  assert.match(why('where') ?? '', /of "where" in state "cart" returned false$/);
  assert.is(why('*'), 'type: expected an event\'s type, got "*"');
  const refused = ask({ type: 'checkout' });
  assert.equal([refused.allowed, refused.edges, refused.active], [false, [], ['cart']]);
  assert.is(charted.snapshot.status, 'active');
});

test('an actor at its end accepts no event', () => {
  const { ask, charted } = at({ type: 'cancel' });
  assert.equal(
    [ask({ type: 'add' }).allowed, ask({ type: 'add' }).why],
    [false, 'the actor is done and accepts no events'],
  );
  assert.equal(nextOf(charted), []);
});

test("an error of an author's code is reported", () => {
  const throwing = createMachine({
    context: {},
    on: {
      go: {
        actions: assign(() => {
          throw new Error('this assigner is broken');
        }),
      },
    },
  });
  const snapshot = createActor(throwing).start().getSnapshot();
  const { allowed, why } = whatIf({ machine: throwing, snapshot }, { type: 'go' }, () => null);
  assert.equal([allowed, why], [false, 'its code threw: this assigner is broken']);
});

test('an author whose code changes what it is given does so to a copy: the actor notices nothing', () => {
  const mutating = createMachine({
    context: { items: ['tea'], seen: new Set<number>(), tries: 0 },
    on: {
      add: {
        actions: assign(({ context }) => {
          context.items.push('cup');
          context.seen.add(1);
          return {};
        }),
      },
      check: {
        guard: ({ context }) => {
          context.tries += 1;
          return false;
        },
      },
    },
  });
  const snapshot = createActor(mutating).start().getSnapshot();
  const charted = { machine: mutating, snapshot };
  for (const type of ['add', 'add', 'check'])
    whatIf(charted, { type }, (context) => {
      if (type === 'add') assert.equal(Object(context).items, ['tea', 'cup']);
      return null;
    });
  nextOf(charted);
  assert.equal(snapshot.context, { items: ['tea'], seen: new Set(), tries: 0 });
});

test('an invocation with a system id is found each time', () => {
  const invoking = createMachine({
    initial: 'idle',
    states: {
      idle: { on: { go: 'working' } },
      working: { invoke: { src: fromPromise(async () => 1), systemId: 'worker' } },
    },
  });
  const snapshot = createActor(invoking).start().getSnapshot();
  const ask = () => whatIf({ machine: invoking, snapshot }, { type: 'go' }, () => null);
  assert.equal([ask().active, ask().active, ask().allowed], [['working'], ['working'], true]);
});

test('the next transitions are listed, each with the verdict of its guard if that needs no data', () => {
  const allowed = (charted: Parameters<typeof nextOf>[0]) =>
    Object.fromEntries(nextOf(charted).map(({ event, allowed, guard }) => [event, `${allowed} ${guard ?? '-'}`]));
  assert.equal(allowed(at().charted), {
    add: 'yes -',
    checkout: 'no hasItems',
    bulk: 'no atLeast',
    never: 'no and not hasItems, hasItems',
    broken: 'unknown breaks',
    inline: 'no ',
    forbidden: 'yes -',
    where: 'no stateIn',
    cancel: 'yes -',
  });
  const paying = at({ type: 'add' }, { type: 'checkout' });
  assert.equal(allowed(paying.charted), {
    pay: 'unknown isEnough',
    'xstate.done.state.order.paying': 'yes -',
    'xstate.after.1000.order.paying': 'yes -',
    cancel: 'yes -',
  });
});
