/** Which events an instance accepts, why it rejects one, and what its answers list: they agree with each other. */
import * as assert from 'uvu/assert';
import { and, createActor, createMachine, not, or, setup, stateIn } from 'xstate';
import { continuesAlone, refusalOf } from '../../../src/features/machines/event-acceptance.ts';
import { nextEvents } from '../../../src/features/machines/instance-view.ts';
import { createServer } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';

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

/** What the answers and the rejections of the tools say of a snapshot. */
const next = (snapshot: ReturnType<typeof at>) => nextEvents(snapshot, EVENTS);

test('an event whose guard depends on its data is listed as accepted, and its rejection says that other data may be', () => {
  assert.match(
    refusalOf(at(), { type: 'pay', amount: 3 }) ?? '',
    /^"pay" is not accepted with this data in state "idle": .* rejects it\. Other data may be accepted\.$/,
  );
  assert.equal(next(at()), { accepts: ['pay', 'wait', 'stop'] });
  assert.is(refusalOf(at(), { type: 'pay', amount: 12 }), undefined);
});

test('an event whose guard rejects it without its data is not listed', () => {
  assert.match(
    refusalOf(at(), { type: 'close' }) ?? '',
    /^"close" is not accepted now in state "idle": .* rejects it\.$/,
  );
  assert.not(next(at()).accepts.includes('close'));
});

type Go = { readonly type: Form; readonly amount?: number; readonly wanted?: boolean };
const FORMS = ['bare', 'inline', 'named', 'params', 'read', 'negated', 'joined', 'either', 'within', 'throws'] as const;
type Form = (typeof FORMS)[number];

/** One event for each form of a guard. */
const gates = setup({
  types: { context: {} as { open: boolean }, input: {} as { open: boolean }, events: {} as Go },
  guards: {
    open: ({ context }) => context.open,
    is: ({ context }, { wanted }: { wanted: boolean | undefined }) => context.open === wanted,
    exact: ({ event }) => event.amount === 12,
    throws: () => {
      throw new Error('no answer');
    },
  },
}).createMachine({
  context: ({ input }) => input,
  initial: 'here',
  states: {
    here: {
      on: {
        bare: 'there',
        inline: { guard: ({ context }) => context.open, target: 'there' },
        named: { guard: 'open', target: 'there' },
        params: { guard: { type: 'is', params: { wanted: true } }, target: 'there' },
        read: { guard: { type: 'is', params: ({ event }) => ({ wanted: event.wanted }) }, target: 'there' },
        negated: { guard: not('open'), target: 'there' },
        joined: { guard: and(['open', 'exact']), target: 'there' },
        either: { guard: or(['open', 'exact']), target: 'there' },
        within: { guard: stateIn('there'), target: 'there' },
        throws: { guard: 'throws', target: 'there' },
      },
    },
    there: {},
  },
});

test('an event is listed exactly if some data is accepted or cannot be judged, for every form of guard', () => {
  for (const open of [true, false]) {
    const actor = createActor(gates, { input: { open } }).start();
    const snapshot = actor.getSnapshot();
    const isAccepted = (type: Form): boolean =>
      [{}, { amount: 12 }, { wanted: true }, { wanted: false }].some((data) => {
        try {
          return refusalOf(snapshot, { type, ...data }) === undefined;
        } catch {
          return true;
        }
      });
    assert.equal(nextEvents(snapshot, FORMS), { accepts: FORMS.filter(isAccepted) }, `open: ${open}`);
    assert.equal(nextEvents(snapshot, ['within']), { accepts: [] }, 'other events may still lead out');
    actor.stop();
  }
});

test('a state with a timer continues by itself, and a state that only events of clients leave does not', () => {
  assert.is(continuesAlone(at(), EVENTS), false);
  assert.is(continuesAlone(at('wait'), EVENTS), true);
  assert.is(continuesAlone(at('stop'), EVENTS), false);
});

test('the answers of the tools list each event once, under the name of its tool', async () => {
  const server = createServer({ name: 'tills', version: '1.0.0' });
  server.machine('till', till, { events: { pay: true, close: true, wait: true, stop: true } });
  const client = await inSession(server);
  const text = async (tool: string, args: Readonly<Record<string, string>> = {}) => {
    const { content, structuredContent } = Object(await client.call(tool, args));
    return { text: String(content[0].text), handle: String(Object(structuredContent).handle) };
  };
  const list = 'Accepted next:\n- till_pay ()\n- till_wait ()\n- till_stop ()';
  const { handle, text: made } = await text('till_create');
  assert.match(made, list);
  const refused = await text('till_close', { handle });
  assert.is(refused.text, `"close" is not accepted now in state "idle": a guard rejects it.\n${list}`);
  const waits = 'No event is accepted now: the till continues by itself. Call till_get later to see the result.';
  assert.match((await text('till_wait', { handle })).text, waits);
  assert.is((await text('till_pay', { handle })).text, `"pay" is not accepted in state "waiting".\n${waits}`);
  const other = await text('till_create');
  const stuck = await text('till_stop', { handle: other.handle });
  const dead = 'No event is accepted now, and nothing leads out of this state. Call till_end if it is not needed.';
  assert.match(stuck.text, dead);
  const late = await text('till_wait', { handle: other.handle });
  assert.is(late.text, `"wait" is not accepted in state "stuck".\n${dead}`);
  await server.close();
});
