/** Events that a machine emits: in the commit of its turn, to its owner unless it says all. */
import * as assert from 'uvu/assert';
import { setup } from 'xstate';
import { z } from 'zod';
import { createServer, DefinitionError } from '../../../../src/index.ts';
import { settled } from '../../../../src/testing/simulated-clock.ts';
import { connect } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';

const test = suite('events of machines');

const order = setup({
  types: {
    context: {} as { order: string },
    input: {} as { order: string },
    events: {} as { type: 'pay' } | { type: 'note' },
  },
}).createMachine({
  context: ({ input }) => input,
  initial: 'open',
  states: { open: { on: { pay: 'paid', note: { actions: () => {} } } }, paid: {} },
});

function shop(audience?: 'all') {
  const server = createServer({ name: 'shop', version: '1.0.0', log: () => {} });
  for (const name of ['order.paid', 'order.noted'])
    server.event(name, { description: 'Something of an order.', payload: z.object({ order: z.string() }) });
  const data = ({ context }: { context: { order: string } }) => ({ order: context.order });
  server.machine('order', order, {
    events: { pay: true, note: true },
    input: z.object({ order: z.string() }),
    emits: {
      'order.paid': { entered: 'paid', data, ...(audience ? { audience } : {}) },
      'order.noted': { event: 'note', data, audience: 'all' },
    },
  });
  return server;
}

for (const [audience, others] of [
  [undefined, 0],
  ['all', 1],
] as const)
  test(`a machine emits the states that it enters and the events that it takes, to ${audience ?? 'its owner'}`, async () => {
    const server = shop(audience);
    const [ada, bob] = [
      await connect(server, { auth: { principal: 'ada' } }),
      await connect(server, { auth: { principal: 'bob' } }),
    ];
    const poll = async (
      client: typeof ada,
      name: string,
      cursor: unknown,
    ): Promise<{ cursor: string; orders: unknown[] }> => {
      const { events, cursor: next } = await client.modern('events/poll', {
        name,
        arguments: {},
        cursor: cursor === undefined ? null : String(cursor),
      });
      return {
        cursor: String(next),
        orders: Array.isArray(events) ? events.map((event) => (event as { data: unknown }).data) : [],
      };
    };
    const from = [
      await poll(ada, 'order.paid', undefined),
      await poll(bob, 'order.paid', undefined),
      await poll(bob, 'order.noted', undefined),
    ];
    const { structuredContent } = await ada.call('order_create', { order: 'o1' });
    const { handle } = structuredContent as { handle: string };
    await ada.call('order_note', { handle });
    await ada.call('order_pay', { handle });
    await settled();
    assert.equal((await poll(ada, 'order.paid', from[0]?.cursor)).orders, [{ order: 'o1' }]);
    assert.is((await poll(bob, 'order.paid', from[1]?.cursor)).orders.length, others);
    assert.equal((await poll(bob, 'order.noted', from[2]?.cursor)).orders, [{ order: 'o1' }]);
    await server.close();
  });

test('emits names a state or an event that the machine has', () => {
  const server = createServer({ name: 'shop', version: '1.0.0', log: () => {} });
  const register = (emit: object) => () =>
    server.machine('order', order, {
      events: { pay: true },
      input: z.object({ order: z.string() }),
      emits: { 'order.paid': emit as { data(): object } },
    });
  for (const [emit, why] of [
    [{ entered: 'lost', data: () => ({}) }, /entered: expected a state/],
    [{ event: 'lost', data: () => ({}) }, /event: expected one of pay, note/],
    [{ data: () => ({}) }, /expected one of "entered" and "event"/],
    [{ entered: 'paid' }, /data: expected a function/],
  ] as const)
    assert.throws(register(emit), (error: unknown) => error instanceof DefinitionError && why.test(error.message));
});
