/** The types of `server.machine`: held by the compiler, which reads this file with the tests. */
import * as assert from 'uvu/assert';
import { createMachine, setup } from 'xstate';
import { z } from 'zod';
import { createServer, DefinitionError, defineMachine } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';

const test = suite('types of machines');

const typed = setup({
  types: {
    input: {} as { who: string },
    context: {} as { sum: number },
    events: {} as { type: 'add'; amount: number } | { type: 'note'; text?: string } | { type: 'stop' },
  },
}).createMachine({
  context: { sum: 0 },
  initial: 'on',
  states: { on: { on: { add: {}, note: {}, stop: 'off' } }, off: { type: 'final' } },
});

const input = z.object({ who: z.string() });
const server = () => createServer({ name: 'types', version: '1.0.0', log: () => {} });

test('an event takes the schema that gives its members, or true where it has none', () => {
  server().machine('sum', typed, {
    input,
    events: { add: z.object({ amount: z.number() }), note: true, stop: true },
    view: ({ context }) => ({ sum: context.sum }),
    annotations: { add: { idempotentHint: false }, create: { openWorldHint: false } },
  });
  server().machine('sum', typed, {
    input,
    events: { add: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] } },
  });
});

test('an event that the machine does not have does not compile, and is refused', () => {
  assert.throws(
    // @ts-expect-error there is no such event
    () => server().machine('sum', typed, { input, events: { subtract: true } }),
    (error: unknown) =>
      error instanceof DefinitionError &&
      error.message === 'machine "sum": events.subtract: no state accepts this event; the machine has add, note, stop',
  );
});

test('a schema that does not give the members of its event does not compile', () => {
  // @ts-expect-error amount is a number
  server().machine('sum', typed, { input, events: { add: z.object({ amount: z.string() }) } });
  // @ts-expect-error amount is missing
  server().machine('sum', typed, { input, events: { add: true } });
});

test('a machine whose input the schema does not give does not compile', () => {
  // @ts-expect-error who is missing
  server().machine('sum', typed, { events: { stop: true } });
  // @ts-expect-error who is a string
  server().machine('sum', typed, { input: z.object({ who: z.number() }), events: { stop: true } });
});

test('a view sees the snapshot of its machine', () => {
  server().machine('sum', typed, {
    input,
    events: { stop: true },
    // @ts-expect-error there is no such member of the context
    view: ({ context }) => context.product,
  });
});

test('a machine without types takes any schema', () => {
  const plain = createMachine({ initial: 'a', states: { a: { on: { go: 'b' } }, b: {} } });
  server().machine('plain', plain, { events: { go: z.object({ far: z.boolean() }) } });
});

test('defineMachine checks the same', () => {
  defineMachine({ name: 'sum', machine: typed, input, events: { stop: true } });
  // @ts-expect-error there is no such event
  defineMachine({ name: 'sum', machine: typed, input, events: { subtract: true } });
  // @ts-expect-error who is missing
  defineMachine({ name: 'sum', machine: typed, events: { stop: true } });
});
