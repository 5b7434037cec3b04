/** Coverage: which states and transitions of its author's statecharts a running server visits. */
import * as assert from 'uvu/assert';
import { setup } from 'xstate';
import { readChart } from '../../src/core/kernel/charts/chart.ts';
import { createServer } from '../../src/index.ts';
import type { CountedChart } from '../../src/inspector/frames.ts';
import { openInspector } from '../../src/inspector/inspector.ts';
import { Counter, KnownChart } from '../../src/inspector/model/chart-coverage.ts';
import { Model } from '../../src/inspector/model/index.ts';
import { connect, watchCoverage } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';

const test = suite('coverage');

const order = setup({ types: { events: {} as { type: string } }, guards: { no: () => false } }).createMachine({
  id: 'order',
  initial: 'cart',
  states: {
    cart: { on: { pay: 'paying', note: { actions: () => {} }, leave: { guard: 'no', target: 'gone' } } },
    paying: {
      initial: 'checking',
      states: {
        checking: { always: 'charging' },
        charging: { on: { charged: '#order.done' } },
        was: { type: 'history' },
      },
      on: { cancel: 'cart' },
    },
    done: { type: 'final' },
    gone: { type: 'final' },
  },
});
const events = { pay: true, note: true, leave: true, charged: true, cancel: true } as const;

async function open() {
  const server = createServer({ name: 'coverage', version: '1.0.0' });
  server.machine('order', order, { events });
  const coverage = watchCoverage(server);
  const client = await connect(server);
  const { handle } = await client.call('order_create').then(({ structuredContent }) => Object(structuredContent));
  return { server, coverage, client, handle, send: (event: string) => client.call(`order_${event}`, { handle }) };
}

test('a machine that has not run is reported as not visited', async () => {
  const server = createServer({ name: 'coverage', version: '1.0.0' });
  server.machine('order', order, { events });
  const coverage = watchCoverage(server);
  assert.is(
    String(coverage),
    `machine  states    transitions
order    0/6  0 %  0/6  0 %

order: not visited
  states       cart, paying, paying.checking, paying.charging, done, gone
  transitions  cart: pay → paying
               cart: note
               cart: leave [no] → gone
               paying: cancel → cart
               paying.checking: always → paying.charging
               paying.charging: charged → done`,
  );
  coverage.stop();
  await server.close();
});

test('states that a step only passes through, and transitions that stay, are visited', async () => {
  const { server, coverage, send } = await open();
  assert.equal(coverage.unvisited('order').slice(0, 3), ['paying', 'paying.checking', 'paying.charging']);
  for (const event of ['note', 'pay', 'cancel', 'pay', 'charged']) await send(event);
  assert.equal(coverage.unvisited('order'), ['gone', 'cart: leave [no] → gone']);
  assert.match(String(coverage), 'order    5/6  83 %  5/6  83 %');
  const [counted] = coverage.coverage();
  assert.is(counted?.visits.states.get('cart'), 2);
  assert.is(counted?.visits.states.get('paying.charging'), 2);
  await server.close();
});

test('states that an instance passes before its first event count as visited', async () => {
  const server = createServer({ name: 'coverage', version: '1.0.0' });
  const machine = setup({ types: { events: {} as { type: string } }, guards: { isNew: () => false } }).createMachine({
    id: 'begin',
    initial: 'start',
    states: {
      start: { always: [{ guard: 'isNew', target: 'fresh' }, { target: 'checking' }] },
      checking: { always: 'ready' },
      ready: { on: { go: 'gone' } },
      fresh: { on: { go: 'gone' } },
      gone: { on: { back: 'start' } },
    },
  });
  server.machine('begin', machine, { events: { go: true, back: true } });
  server.tool('run', {
    machine: setup({}).createMachine({ initial: 'a', states: { a: { always: 'b' }, b: { type: 'final' } } }),
  });
  const coverage = watchCoverage(server);
  const client = await connect(server);
  const { structuredContent } = await client.call('begin_create');
  // Two transitions can have led there: nobody knows which, and neither is counted.
  const unknown = ['start: always [isNew] → fresh', 'start: always [otherwise] → checking'];
  assert.equal(coverage.unvisited('begin'), [
    'start',
    'checking',
    'fresh',
    'gone',
    ...unknown,
    'checking: always → ready',
    'ready: go → gone',
    'fresh: go → gone',
    'gone: back → start',
  ]);
  for (const event of ['go', 'back']) await client.call(`begin_${event}`, { handle: Object(structuredContent).handle });
  assert.equal(coverage.unvisited('begin'), ['fresh', unknown[0], 'fresh: go → gone']);
  await client.call('run');
  assert.equal(coverage.unvisited('run'), []);
  await server.close();
});

test('a machine that replaces another of its name takes its place in the table', async () => {
  const { server, coverage, send } = await open();
  await send('pay');
  const wider = setup({ types: { events: {} as { type: string } } }).createMachine({
    id: 'order',
    initial: 'cart',
    states: { cart: { on: { pay: 'paid' } }, paid: {} },
  });
  server.machines.update({ name: 'order', machine: wider, events: { pay: true } });
  assert.equal(
    coverage.coverage().map(({ name, states, visitedStates }) => [name, states.length, visitedStates]),
    [['order', 2, 0]],
  );
  assert.throws(() => coverage.unvisited('door'), 'coverage: expected the name of a machine, one of order; got door');
  await server.close();
});

test('a visit is an entry: what stays active is not visited again, what is left for itself is', () => {
  const chart = new KnownChart('c', readChart(order));
  const counter = new Counter();
  const edge = (path: string, on: string): string =>
    chart.nodes.get(path)?.edges.find((each) => each.on === on)?.id ?? assert.unreachable() ?? '';
  counter.step([], { edges: [], active: ['paying.charging'] }, chart);
  counter.step(
    ['paying.charging'],
    {
      edges: [edge('paying', 'cancel'), edge('cart', 'pay'), edge('paying.checking', '')],
      active: ['paying.charging'],
    },
    chart,
  );
  counter.step(['paying.charging'], { edges: [], active: ['paying.charging'] }, chart);
  assert.equal(Object.fromEntries(counter.states), { cart: 1, paying: 2, 'paying.checking': 1, 'paying.charging': 2 });
});

test('an open inspector counts from its start, without a viewer, and a viewer that comes later gets running timers', async () => {
  const patient = setup({ delays: { patience: 60_000 } }).createMachine({
    id: 'patient',
    initial: 'calm',
    states: { calm: { after: { patience: 'angry' }, on: { calmed: 'happy' } }, angry: {}, happy: {} },
  });
  const server = createServer({ name: 'coverage', version: '1.0.0' });
  server.machine('order', order, { events });
  server.machine('patient', patient, { events: { calmed: true } });
  const inspector = await openInspector(server);
  const client = await connect(server);
  const made = async (name: string) => Object((await client.call(name)).structuredContent).handle;
  await client.call('order_pay', { handle: await made('order_create') });
  await made('patient_create');
  const { origin, hash } = new URL(inspector.url);
  const answer = await fetch(`${origin}/api/coverage`, { headers: { Authorization: `Bearer ${hash.slice(1)}` } });
  const { charts } = Object(await answer.json());
  assert.equal(
    charts.map(({ name, states }: CountedChart) => [name, states]),
    [
      ['order', { cart: 1, paying: 1, 'paying.checking': 1, 'paying.charging': 1 }],
      ['patient', { calm: 1 }],
    ],
  );
  const model = new Model();
  model.take({ type: 'coverage', since: 0, charts });
  assert.equal(
    model.coverage().map(({ name, visitedStates }) => [name, visitedStates]),
    [
      ['order', 4],
      ['patient', 1],
    ],
  );
  const timers: string[] = [];
  const stop = server.inspect((record) => record.type === 'timer' && timers.push(record.event));
  assert.match(timers.join(), /^xstate\.after\.patience/);
  stop();
  await server.close();
});
