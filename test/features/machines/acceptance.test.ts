/** Which events an instance accepts, why it rejects one, and what its answers list: they agree with each other. */
import * as assert from 'uvu/assert';
import { createActor, createMachine } from 'xstate';
import { continuesAlone, refusalOf } from '../../../src/features/machines/event-acceptance.ts';
import { createServer } from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('handles: acceptance');

const till = createMachine({
  id: 'till',
  context: { open: false },
  initial: 'idle',
  states: {
    idle: {
      on: {
        pay: { guard: ({ event }) => Number(event.amount) >= 10, target: 'paid' },
        close: { guard: ({ context }) => context.open, target: 'closed' },
        wait: 'waiting',
        stop: 'stuck',
      },
    },
    waiting: { after: { 60000: 'idle' } },
    paid: { type: 'final' },
    closed: { type: 'final' },
    stuck: {},
  },
});
const EVENTS = ['pay', 'close', 'wait', 'stop'];

function at(...types: readonly string[]) {
  const actor = createActor(till).start();
  for (const type of types) actor.send({ type });
  const snapshot = actor.getSnapshot();
  actor.stop();
  return snapshot;
}

test('an event whose guard depends on its data is still listed as accepted, with other data', () => {
  const refused = refusalOf(at(), { type: 'pay', amount: 3 }, EVENTS);
  assert.match(refused?.why ?? '', /^"pay" is not accepted with this data in state "idle": .* rejected it\. /);
  assert.match(refused?.why ?? '', /Accepted now: pay with other data, close, wait, stop\.$/);
  assert.equal(refused?.accepts, EVENTS);
  assert.is(refusalOf(at(), { type: 'pay', amount: 12 }, EVENTS), undefined);
});

test('an event whose guard depends on the context alone is not listed', () => {
  const refused = refusalOf(at(), { type: 'close' }, EVENTS);
  assert.match(refused?.why ?? '', /^"close" is not accepted now in state "idle": .*Accepted now: pay, wait, stop\.$/);
  assert.equal(refused?.accepts, ['pay', 'wait', 'stop']);
});

test('a state with a timer continues without an event, and a state without transitions does not', () => {
  assert.is(continuesAlone(at()), true);
  assert.is(continuesAlone(at('wait')), true);
  assert.is(continuesAlone(at('stop')), false);
});

test('the answers of the tools say so', async () => {
  const server = createServer({ name: 'tills', version: '1.0.0' });
  server.machine('till', till, { events: { pay: true, close: true, wait: true, stop: true } });
  const client = await connect(server);
  await client.initialize();
  const text = async (tool: string, args: Readonly<Record<string, string>> = {}) => {
    const { content, structuredContent } = Object(await client.callTool(tool, args));
    return { text: String(content[0].text), handle: String(Object(structuredContent).handle) };
  };
  const { handle } = await text('till_create');
  const refused = await text('till_close', { handle });
  assert.match(
    refused.text,
    /Accepted now: pay, wait, stop\.\nAccepted next:\n- till_pay \(\)\n- till_wait \(\)\n- till_stop \(\)$/,
  );
  assert.match((await text('till_wait', { handle })).text, /No event is accepted now: it continues without one\./);
  const other = await text('till_create');
  const stuck = await text('till_stop', { handle: other.handle });
  assert.match(stuck.text, /No event is accepted now, and nothing leads out of this state\. Call till_end/);
  assert.not.match(stuck.text, /continues/);
  const late = await text('till_wait', { handle: other.handle });
  assert.is(late.text, '"wait" is not accepted in state "stuck". No other event is accepted now.');
  await server.close();
});
