/** The dead letters of a server: what each kind of work leaves when it is given up, and what "deliver again" does with it. */
import * as assert from 'uvu/assert';
import { setup } from 'xstate';
import { tell } from '../../../src/features/machines/messages/tell.ts';
import { INTERNALS } from '../../../src/features/server/internals.ts';
import type { Server } from '../../../src/index.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { TestStore } from '../../harness/test-store.ts';
import { until } from '../../harness/wait.ts';
import { deliveryStage, idsOf, receiver, SEP, subscription, untilDelivered } from '../events/delivery/support.ts';
import { receiver as hookReceiver } from '../hooks/support.ts';
import { stockMachine } from '../machines/messages/stock.ts';
import { later, serving } from '../schedules/support.ts';

const test = suite('dead letters');

const orderMachine = setup({ types: { events: {} as { type: 'order'; n: number } } }).createMachine({
  id: 'order',
  on: { order: { actions: tell('stock', 'tea', ({ event: { n } }) => ({ type: 'reserve', n })) } },
});

const WITH_NUMBER = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const;

const keyed = (argument: string) =>
  ({
    key: { argument },
    roles: { of: () => 'anyone', anyone: { events: '*' } },
  }) as const;

const lettersOf = (server: Server) => server[INTERNALS].deadLetters();

test('an event that its callback has rejected is delivered again: once, with the same id, and is then no dead letter', async () => {
  const hook = await receiver();
  const { as, emit, server, close } = deliveryStage([hook.origin]);
  const ada = await as('ada');
  await ada.modern('events/subscribe', subscription(hook.url), SEP);
  hook.answer = ({ id }) => (id === 'e1' ? 410 : 200);
  for (const n of [1, 2]) await emit(n);
  await untilDelivered(hook, 2);
  const letters = lettersOf(server);
  const [letter, ...others] = await letters.list();
  assert.equal(others, []);
  assert.is(letter?.kind, 'event');
  assert.match(letter?.what ?? '', /^note e1 to 127\.0\.0\.1:\d+ of ada$/);
  assert.equal([letter?.error, letter?.attempts], ['http_4xx', 1]);
  const ref = letter?.ref ?? '';
  assert.is(await letters.again(ref), 'failed again: http_4xx');
  assert.is((await letters.list()).length, 1);
  hook.answer = () => 200;
  assert.is(await letters.again(ref), 'accepted');
  assert.equal(idsOf(hook), ['e1', 'e2', 'e1', 'e1']);
  await until(async () => (await letters.list()).length === 0);
  assert.is(await letters.again(ref), undefined, 'it was delivered, although its topic still has it');
  assert.is(await letters.again('event unknown 1'), undefined);
  await close();
  await hook.close();
});

test('a subscription keeps its last 50 dead letters, and an event that its topic has no more is not delivered again', async () => {
  const hook = await receiver();
  const { as, emit, server, clock, close } = deliveryStage([hook.origin], {}, { retain: { ms: 60_000 } });
  const ada = await as('ada');
  await ada.modern('events/subscribe', subscription(hook.url), SEP);
  hook.answer = () => 410;
  for (let n = 1; n <= 64; n += 1) await emit(n);
  await untilDelivered(hook, 64);
  const letters = await lettersOf(server).list();
  assert.is(letters.length, 50);
  await clock.advance(120_000);
  await emit(65);
  await untilDelivered(hook, 65);
  assert.is(await lettersOf(server).again(letters[0]?.ref ?? ''), undefined);
  await close();
  await hook.close();
});

test('a delivery to a webhook is a dead letter with its path, and is handled again as another delivery', async () => {
  const received = await hookReceiver({ attempts: 1 });
  const { send, handled, clock, server } = received;
  received.work = () => {
    throw new Error('closed');
  };
  await send('{"n":1}');
  await clock.advance(0);
  const letters = lettersOf(server);
  await until(async () => (await letters.list()).length === 1);
  const [letter] = await letters.list();
  assert.is(letter?.kind, 'webhook');
  assert.match(letter?.what ?? '', /^\/hooks\/github push /);
  assert.is(letter?.error, 'closed');
  received.work = () => {};
  assert.match((await letters.again(letter?.ref ?? '')) ?? '', /^sent again as /);
  await until(() => handled.length === 2);
  await server.close();
});

test('a slot that has ended its process three times runs when an operator says so', async () => {
  const store = new TestStore();
  const never = (server: Server): void =>
    void server.schedule('nightly', { everyMs: 60_000 }, () => new Promise(() => {}));
  let last = await serving(never, { store });
  await last.clock.advance(60_000);
  for (let death = 1; death < 3; death += 1) last = await serving(never, { store, clock: later(last, 1) });
  await settled();
  let ran = 0;
  const { server } = await serving(
    (program) =>
      void program.schedule('nightly', { everyMs: 60_000 }, () => {
        ran += 1;
      }),
    { store, clock: later(last, 1) },
  );
  await settled();
  const letters = lettersOf(server);
  const [letter] = await letters.list();
  assert.equal([letter?.kind, letter?.attempts, ran], ['schedule', 3, 0]);
  assert.is(await letters.again(letter?.ref ?? ''), 'runs now');
  await until(() => ran === 1);
  assert.match(server.metrics(), /troupe_attempts_total\{troupe_kind="schedule",troupe_result="dead"\} 1/);
  assert.match(server.metrics(), /troupe_dead_letters_total 1/);
  await server.close();
});

test('R-96: a message that is delivered again is taken once, although later ones of its sender were taken', async () => {
  const { server, clock } = await serving(
    (program) => {
      program.machine('order', orderMachine, { ...keyed('order'), events: { order: WITH_NUMBER } });
    },
    { store: new TestStore(), limits: { tellMs: 60_000 } },
  );
  await server.send('order', 'o1', { type: 'order', n: 1 });
  const letters = lettersOf(server);
  await until(async () => {
    await clock.advance(1_000);
    return (await letters.list()).length === 1;
  });
  const [letter] = await letters.list();
  assert.is(letter?.kind, 'message');
  assert.match(letter?.what ?? '', /^a message of order to stock\/tea: reserve$/);
  assert.match((await letters.again(letter?.ref ?? '')) ?? '', /^failed again: .*no machine "stock"/);
  server.machine('stock', stockMachine, {
    ...keyed('sku'),
    events: { close: true },
    view: ({ context }: { context: object }) => context,
  });
  await server.send('order', 'o1', { type: 'order', n: 2 });
  for (let time = 0; time < 2; time += 1) assert.is(await letters.again(letter?.ref ?? ''), 'accepted');
  const history = await server.send('stock', 'tea', { type: 'close' });
  assert.equal(history.view, { taken: [2, 1] });
  await server.close();
});
