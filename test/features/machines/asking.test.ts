/** What an instance asks: its call puts it to its client; without a call, or after a restart, the question waits for the next. */
import * as assert from 'uvu/assert';
import { assign, fromPromise, setup } from 'xstate';
import type { Context } from '../../../src/core/execution/context.ts';
import { CannotAsk, Unanswered } from '../../../src/core/execution/input-errors.ts';
import { SchemaError } from '../../../src/core/schema/schema-error.ts';
import { elicitWith } from '../../../src/features/asking/invocations.ts';
import { courseText } from '../../../src/features/machines/course.ts';
import type { Caller } from '../../../src/features/machines/machine-definition.ts';
import { settled } from '../../../src/testing/simulated-clock.ts';
import { suite } from '../../harness/door.ts';
import { ALICE, disk, stage } from './support.ts';

const test = suite('handles that ask');

const size = { type: 'object', properties: { size: { type: 'string' } }, required: ['size'] } as const;
const machine = setup({
  types: {
    context: {} as { size?: unknown; gift?: unknown; why?: string },
    events: {} as { type: 'pack' } | { type: 'cancel' },
  },
  actors: { askSize: elicitWith(size) },
}).createMachine({
  id: 'parcel',
  context: {},
  initial: 'cart',
  states: {
    cart: { on: { pack: 'sizing' } },
    sizing: {
      on: { cancel: 'cart' },
      invoke: {
        id: 'size',
        src: 'askSize',
        input: { message: 'Which size?' },
        onDone: { target: 'wrapping', actions: assign({ size: ({ event }) => event.output }) },
        onError: { target: 'cart', actions: assign({ why: ({ event }) => String(event.error) }) },
      },
    },
    wrapping: {
      invoke: {
        id: 'gift',
        src: 'askSize',
        input: { message: 'Which paper?' },
        onDone: { target: 'packed', actions: assign({ gift: ({ event }) => event.output }) },
      },
    },
    packed: { on: { pack: 'sizing' } },
  },
});
const kind = {
  name: 'parcel',
  machine,
  version: '1',
  events: ['pack', 'cancel'],
  view: (snapshot: { context: unknown }) => snapshot.context,
};
const NONE = { states: [], reasons: [] };
const PACK = { type: 'pack', data: {} };

/** A call of Alice's, whose client answers what it is asked with `answer`. */
function calling(
  answer: (key: string) => unknown,
): Caller & { readonly asked: string[]; readonly abort: AbortController } {
  const asked: string[] = [];
  const abort = new AbortController();
  const ctx: Pick<Context, 'ask' | 'signal' | 'session'> = {
    signal: abort.signal,
    session: undefined,
    ask: (async (questions: Record<string, unknown>) => {
      const answers: Record<string, unknown> = {};
      for (const key of Object.keys(questions)) {
        asked.push(key);
        answers[key] = await answer(key);
      }
      return answers;
    }) as Context['ask'],
  };
  // What handles use of it, and nothing more.
  return { principal: 'alice', ctx: ctx as Context, asked, abort };
}

const accepted = (key: string) => ({ status: 'accepted', content: { size: key } });

test('the call that leads to a question asks its client, and so for what the answer leads to; then it is answered', async () => {
  const { handles } = await stage([kind]);
  const { handle } = await handles.create('parcel', {}, ALICE);
  const caller = calling(accepted);
  const packed = await handles.send('parcel', handle, PACK, caller);
  assert.equal(caller.asked, ['size', 'gift']);
  assert.is(packed.state, 'packed');
  assert.equal(packed.view, { size: accepted('size'), gift: accepted('gift') });
  // Entered anew, it is another question.
  const again = calling(accepted);
  await handles.send('parcel', handle, PACK, again);
  assert.equal(again.asked, ['size.2', 'gift.2']);
});

test('a question without a client waits, is reported, and is asked by the next call', async () => {
  const { handles } = await stage([kind]);
  const { handle } = await handles.create('parcel', {}, ALICE);
  await handles.send('parcel', handle, PACK, ALICE);
  const open = await handles.get('parcel', handle, ALICE);
  assert.is(open.state, 'sizing');
  assert.equal(open.asks, [{ id: 'size', kind: 'elicit', message: 'Which size?' }]);
  const caller = calling(accepted);
  assert.is((await handles.get('parcel', handle, caller)).state, 'packed');
  assert.equal(caller.asked, ['size', 'gift']);
});

test('a question survives a restart under the same name, and hibernation; it is answered once', async () => {
  const first = await stage([kind], { store: disk() });
  const { handle } = await first.handles.create('parcel', {}, ALICE);
  const silent = calling(() => new Promise(() => {}));
  void first.handles.send('parcel', handle, PACK, silent).catch(() => {});
  await settled();
  assert.equal(silent.asked, ['size']);
  const second = await first.again();
  await second.clock.advance(120_000);
  const caller = calling(accepted);
  const packed = await second.handles.get('parcel', handle, caller);
  assert.equal(caller.asked, ['size', 'gift']);
  assert.is(packed.state, 'packed');
  const later = calling(accepted);
  const { course, ...view } = packed;
  assert.is(
    courseText(course ?? NONE),
    'sizing → wrapping → packed (the question "Which size?" was answered; the question "Which paper?" was answered)',
  );
  assert.equal(await second.handles.get('parcel', handle, later), view);
  assert.equal(later.asked, []);
});

test('an instance whose question no call can ask hibernates, and asks when it wakes', async () => {
  const { handles, clock, inspection } = await stage([kind]);
  const { handle } = await handles.create('parcel', {}, ALICE);
  await handles.send('parcel', handle, PACK, ALICE);
  const gone: string[] = [];
  inspection.listen((record) => void (record.type === 'gone' && gone.push(record.why)));
  await clock.advance(60_000);
  assert.equal(gone, ['its parent was stopped', 'hibernation']);
  assert.equal((await handles.get('parcel', handle, ALICE)).asks?.length, 1);
});

test('while one call puts a question, another is answered at once and does not ask', async () => {
  const { handles } = await stage([kind]);
  const { handle } = await handles.create('parcel', {}, ALICE);
  let answer: (given: unknown) => void = () => {};
  const asking = calling(
    () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  );
  const packing = handles.send('parcel', handle, PACK, asking);
  await settled();
  const other = calling(accepted);
  const seen = await handles.get('parcel', handle, other);
  assert.is(seen.state, 'sizing');
  assert.equal(other.asked, []);
  answer(accepted('size'));
  await settled();
  answer(accepted('gift'));
  assert.is((await packing).state, 'packed');
});

test('an event that leaves the state withdraws the question', async () => {
  const { handles } = await stage([kind]);
  const { handle } = await handles.create('parcel', {}, ALICE);
  const asking = calling(() => new Promise(() => {}));
  void handles.send('parcel', handle, PACK, asking).catch(() => {});
  await settled();
  const cancelled = await handles.send('parcel', handle, { type: 'cancel', data: {} }, ALICE);
  assert.is(cancelled.state, 'cart');
  assert.is(cancelled.asks, undefined);
});

test('a call reports the states that it led to, and what happened to its question', async () => {
  const outcomes: Readonly<Record<string, readonly [answer: () => unknown, course: string]>> = {
    answered: [
      () => accepted('S'),
      'cart → sizing → wrapping → packed (the question "Which size?" was answered; the question "Which paper?" was answered)',
    ],
    declined: [
      () => ({ status: 'declined' }),
      'cart → sizing → wrapping → packed (the question "Which size?" was declined; the question "Which paper?" was declined)',
    ],
    cancelled: [
      () => ({ status: 'cancelled' }),
      'cart → sizing → wrapping → packed (the question "Which size?" was cancelled; the question "Which paper?" was cancelled)',
    ],
    'one checkbox': [
      () => ({ status: 'accepted', content: { agreed: false } }),
      'cart → sizing → wrapping → packed (the question "Which size?" was answered with agreed: false; the question "Which paper?" was answered with agreed: false)',
    ],
    'cannot ask': [
      () => Promise.reject(new CannotAsk('a form', { elicitation: {} })),
      'cart → sizing → cart (the question "Which size?" could not be asked: this client does not support such questions, so another call from it does not help)',
    ],
    unanswered: [
      () => Promise.reject(new Unanswered('nobody answered within 1 min')),
      'cart → sizing (the question "Which size?" was not answered: nobody answered within 1 min)',
    ],
  };
  const { handles } = await stage([kind]);
  for (const [name, [answer, expected]] of Object.entries(outcomes)) {
    const { handle } = await handles.create('parcel', {}, ALICE);
    const { course } = await handles.send('parcel', handle, PACK, calling(answer));
    assert.is(courseText(course ?? NONE), expected, name);
  }
});

test('a call that waits for an answer reports what another call has done in the meantime', async () => {
  const { handles } = await stage([kind]);
  const { handle } = await handles.create('parcel', {}, ALICE);
  let withdraw: () => void = () => {};
  const asking = calling(
    () =>
      new Promise((_, reject) => {
        withdraw = () => reject(new Error('withdrawn'));
      }),
  );
  const packing = handles.send('parcel', handle, PACK, asking);
  await settled();
  await handles.send('parcel', handle, { type: 'cancel', data: {} }, ALICE);
  withdraw();
  const { course } = await packing;
  assert.is(courseText(course ?? NONE), 'cart → sizing → cart (cancel)');
});

for (const named of [{ id: 'work' }, {}])
  test(`a change without a call is reported to the next call of a model, once, with its reason: an invocation ${named.id ? 'with' : 'without'} an id`, async () => {
    let fail: (why: Error) => void = () => {};
    const work = fromPromise(
      () =>
        new Promise((_, reject) => {
          fail = reject;
        }),
    );
    const patient = setup({ actors: { work } }).createMachine({
      id: 'patient',
      initial: 'working',
      states: {
        working: { invoke: { ...named, src: 'work', onError: 'waiting' } },
        waiting: { after: { 90000: 'over' } },
        over: {},
      },
    });
    const { handles, clock } = await stage([{ ...kind, name: 'patient', machine: patient, events: [] }]);
    const { handle } = await handles.create('patient', {}, ALICE);
    fail(new Error('no'));
    await clock.advance(90_000);
    assert.is((await handles.get('patient', handle, ALICE)).unseen, undefined, 'a reader of a resource is no model');
    const seen = await handles.get('patient', handle, calling(accepted));
    assert.equal(seen.unseen, ['working → waiting → over ("work" failed; after 90 s)']);
    assert.is((await handles.get('patient', handle, calling(accepted))).unseen, undefined);
  });

test('a machine gets an error if the client of the call that led to its question cannot be asked, and none for the client of a later call', async () => {
  const { handles } = await stage([kind]);
  const { handle } = await handles.create('parcel', {}, ALICE);
  const cannot = () => Promise.reject(new CannotAsk('a form', { elicitation: {} }));
  const unable = await handles.send('parcel', handle, PACK, calling(cannot));
  assert.is(unable.state, 'cart');
  assert.match(String((unable.view as { why: string }).why), /does not declare the capability/);
  await handles.send('parcel', handle, PACK, ALICE);
  const still = await handles.get('parcel', handle, calling(cannot));
  assert.is(still.state, 'sizing');
  const unanswered = await handles.get(
    'parcel',
    handle,
    calling(() => Promise.reject(new Unanswered('too late'))),
  );
  assert.is(unanswered.asks?.length, 1);
});

test('an invalid form fails the invocation, also for the client of a later call', async () => {
  const { handles } = await stage([kind]);
  const { handle } = await handles.create('parcel', {}, ALICE);
  const wrong = () => Promise.reject(new SchemaError('elicit', '#', 'the schema is nothing', 'pass a schema'));
  await handles.send('parcel', handle, PACK, ALICE);
  const failed = await handles.get('parcel', handle, calling(wrong));
  assert.is(failed.state, 'cart');
  assert.match(String((failed.view as { why: string }).why), /the schema is nothing; pass a schema/);
});
