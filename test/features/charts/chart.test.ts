/** What is read from an author's statechart, and its picture. */
import * as assert from 'uvu/assert';
import { createMachine, fromPromise, setup } from 'xstate';
import { eventsOf, fingerprint, nodesOf, readChart, takers } from '../../../src/core/kernel/charts/chart.ts';
import { pathsIn } from '../../../src/core/kernel/charts/paths.ts';
import { drawChart } from '../../../src/features/charts/picture.ts';
import { plainText } from '../../../src/features/machines/tools/plain-text.ts';
import { suite } from '../../harness/door.ts';

const test = suite('charts');

const work = setup({
  actors: { charge: fromPromise(async () => 1) },
  guards: { rich: () => true },
  delays: { patience: 1_000 },
}).createMachine({
  id: 'work',
  initial: 'open',
  on: { stop: '.over' },
  states: {
    open: {
      on: { pay: { guard: 'rich', target: 'busy', description: 'Pays' }, 'note.*': {} },
      after: { patience: 'over', 90000: 'over' },
    },
    busy: {
      type: 'parallel',
      states: {
        money: { initial: 'moving', states: { moving: { invoke: { src: 'charge', onDone: 'there' } }, there: {} } },
        goods: { initial: 'here', states: { here: { on: { pay: 'there' } }, there: {} } },
      },
    },
    over: { type: 'final' },
  },
});
const chart = readChart(work);

test('each transition is named as people would', () => {
  const labels = nodesOf(chart).flatMap(({ path, edges }) =>
    edges.map(({ label, guard, targets }) => [path, label, guard, ...targets]),
  );
  assert.equal(labels, [
    ['', 'stop', undefined, 'over'],
    ['open', 'pay', 'rich', 'busy'],
    ['open', 'note.*', undefined],
    ['open', 'after 90 s', undefined, 'over'],
    ['open', 'after patience', undefined, 'over'],
    ['busy.money.moving', 'charge done', undefined, 'busy.money.there'],
    ['busy.goods.here', 'pay', undefined, 'busy.goods.there'],
  ]);
});

test('it is known which states take an event, written out or by a pattern', () => {
  assert.equal(takers(chart, 'pay'), ['open', 'busy.goods.here']);
  assert.equal(takers(chart, 'note.red'), ['open']);
  assert.is(takers(chart, 'stop'), 'all');
  assert.equal(takers(chart, 'fly'), []);
  assert.equal(eventsOf(chart), ['stop', 'pay']);
});

test('a state is read as paths, those of parallel states side by side', () => {
  assert.equal(pathsIn('open'), ['open']);
  assert.equal(pathsIn({ busy: { money: 'moving', goods: { here: {} } } }), ['busy.money.moving', 'busy.goods.here']);
});

test('a fingerprint changes with the chart, and with nothing else', () => {
  const states = (to: string, guard?: string) => ({
    initial: 'a',
    states: { a: { on: { go: guard ? { target: to, guard } : to } }, b: {}, c: {} },
  });
  const print = (config: ReturnType<typeof states>, id = 'm') =>
    fingerprint(readChart(createMachine({ id, ...config })));
  assert.is(print(states('b')), print(states('b')));
  assert.is(print(states('b')), print(states('b'), 'other'));
  assert.is.not(print(states('b')), print(states('c')));
  assert.is.not(print(states('b')), print(states('b', 'may')));
});

test('a picture without a layout marks the states that the instance is in, and those around them', () => {
  const svg = drawChart(chart, 'work', ['busy.money.moving', 'busy.goods.here'], undefined);
  const marked = [...svg.matchAll(/font-weight="bold">([^<]*)</g)].filter(([text]) => text.length > 0);
  const green = [...svg.matchAll(/fill="#1a7f37" font-weight="bold">([^<]*)</g)].map(([, name]) => name);
  assert.equal(green, ['busy (parallel)', 'money', 'moving', 'goods', 'here']);
  assert.is(marked.length, nodesOf(chart).length);
});

test('an author cannot bring anything but text into the picture', () => {
  const hostile = createMachine({
    id: '</text><script>alert(1)</script>',
    initial: 'a"b\'c&d\u0000\ud800',
    states: { 'a"b\'c&d\u0000\ud800': { on: { '<img onerror=x>': {} } } },
  });
  const svg = drawChart(readChart(hostile), '<b>', [], undefined);
  assert.not.match(svg, /<script|<img|<b>/);
  assert.match(svg, /&lt;script&gt;/);
  assert.match(svg, /a&quot;b&apos;c&amp;d/);
  assert.ok(svg.isWellFormed() && !svg.includes(String.fromCharCode(0)));
  assert.not.match(svg, /href|url\((?!#)|<style/);
});

test('a chart of any size gives a picture of bounded size, which says what it leaves out', () => {
  const states = Object.fromEntries(
    Array.from({ length: 3_000 }, (_, index) => [`s${index}`, { on: { go: `s${(index * 7) % 3_000}` } }]),
  );
  const svg = drawChart(readChart(createMachine({ id: 'big', initial: 's0', states })), 'big', ['s0'], undefined);
  assert.ok(svg.length < 400_000, `${svg.length} characters`);
  assert.match(svg, /… and 5000 more states and transitions/);
});

test('data becomes a few plain lines', () => {
  assert.equal(plainText({ items: [{ sku: 'tea', quantity: 2 }], tags: ['a', 'b'], total: 8, none: null, empty: {} }), [
    'items:',
    '- sku: tea',
    '  quantity: 2',
    'tags: a, b',
    'total: 8',
    'none: none',
    'empty: none',
  ]);
  assert.equal(plainText('done', 'result'), ['result: done']);
  assert.is(plainText(Array.from({ length: 1_000 }, (_, index) => ({ index, more: 'x'.repeat(500) }))).length, 61);
});
