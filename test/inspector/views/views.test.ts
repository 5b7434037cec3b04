/** What the views find out before they draw: lanes and their rows, the marks of a chart, zoom. */
import * as assert from 'uvu/assert';
import { allowedOf, marksOf } from '../../../inspector/src/chart/marks.ts';
import { carried, fit, zoomAt } from '../../../inspector/src/chart/view.ts';
import { endsOf, lanesOf, rowFrom, windowOf } from '../../../inspector/src/messages/lanes.ts';
import type { MessageLane, MessageRow } from '../../../inspector/src/messages/props.ts';
import { groupsOf, labelText, rowsOf } from '../../../src/features/charts/sketch.ts';
import type { ChartNode } from '../../../src/inspector/frames.ts';
import { suite } from '../../harness/door.ts';

const test = suite('views');

const state = (path: string, over: Partial<ChartNode> = {}): ChartNode => ({
  key: path.split('.').at(-1) ?? '',
  path,
  type: 'atomic',
  initial: false,
  invokes: [],
  edges: [],
  nodes: [],
  ...over,
});
const chart: ChartNode = state('', {
  key: 'order',
  type: 'compound',
  nodes: [
    state('cart', {
      initial: true,
      edges: [
        { id: 'cart#0', on: 'add', label: 'add', actions: ['assign'], targets: [] },
        { id: 'cart#1', on: 'checkout', label: 'checkout', guard: 'filled', targets: ['paying.asking'] },
        { id: 'cart#2', on: 'xstate.after.patience.order.cart', label: 'after patience', targets: ['cancelled'] },
        { id: 'cart#3', on: 'cancel', label: 'cancel', targets: ['cancelled'] },
      ],
    }),
    state('paying', { type: 'compound', nodes: [state('paying.asking', { initial: true })] }),
    state('cancelled', { type: 'final' }),
  ],
});

test('transitions between the same states share a line, and those that stay are rows of their state', () => {
  assert.equal(
    groupsOf(chart).map(({ from, to, edges }) => [from, to, edges.map(({ id }) => id)]),
    [
      ['\n', 'cart', []],
      ['cart', 'paying.asking', ['cart#1']],
      ['cart', 'cancelled', ['cart#2', 'cart#3']],
      ['paying\n', 'paying.asking', []],
    ],
  );
  assert.equal(
    rowsOf(chart.nodes[0] ?? chart).map(({ text }) => text),
    ['add / assign'],
  );
  assert.is(labelText({ id: '', on: 'x', label: 'x', guard: '', targets: [] }), 'x [if]');
});

test('the states around an active one are marked, up to the whole machine', () => {
  const { active, around } = marksOf({ id: 'o', chart, active: ['paying.asking'] });
  assert.equal([...active], ['paying.asking']);
  assert.equal([...around].sort(), ['', 'paying']);
});

test('a running delay marks the edges that it leads along, and the state that waits', () => {
  const delay = { event: 'xstate.after.patience.order.cart', due: 900, lasts: 1_000 };
  const { delays, waiting } = marksOf({ id: 'o', chart, active: ['cart'], delays: [delay] });
  assert.equal([...delays], [['cart#2', delay]]);
  assert.equal([...waiting], [['cart', delay]]);
});

test('a line is as possible as the most possible of its transitions', () => {
  const cancel = groupsOf(chart)[2]?.edges ?? [];
  const marks = (allowed: 'yes' | 'no' | 'unknown') =>
    marksOf({
      id: 'o',
      chart,
      active: ['cart'],
      next: [
        { edge: 'cart#2', event: 'x', allowed: 'no' },
        { edge: 'cart#3', event: 'cancel', allowed },
      ],
    });
  assert.is(allowedOf(cancel, marks('yes')), 'yes');
  assert.is(allowedOf(cancel, marks('unknown')), 'unknown');
  assert.is(allowedOf(cancel, marks('no')), 'no');
  assert.is(allowedOf(cancel, marksOf({ id: 'o', chart, active: [] })), undefined);
});

test('a picture that is fitted is in the middle of its pane, and zooming leaves the point under the pointer', () => {
  const view = fit({ width: 400, height: 100 }, { width: 1_000, height: 500 });
  assert.is(view.x + (400 * view.k) / 2, 500);
  assert.is(view.y + (100 * view.k) / 2, 250);
  const near = zoomAt(view, 2, { x: 620, y: 260 });
  assert.ok(Math.abs((620 - view.x) / view.k - (620 - near.x) / near.k) < 1e-9);
  assert.ok(zoomAt(view, 1_000, { x: 0, y: 0 }).k <= 3);
});

test('a view is carried to another picture of the chart at its scale, with the same share of the picture in the middle', () => {
  const pane = { width: 1_000, height: 500 };
  const draft = { width: 400, height: 100 };
  const final = { width: 200, height: 900 };
  const view = { k: 2, x: 300, y: 50 };
  const moved = carried(view, draft, final, pane);
  assert.is(moved.k, 2);
  assert.is((500 - moved.x) / moved.k / final.width, (500 - view.x) / view.k / draft.width);
  assert.is((250 - moved.y) / moved.k / final.height, (250 - view.y) / view.k / draft.height);
  assert.equal(carried(view, draft, draft, pane), view);
});

const lanes: readonly MessageLane[] = [
  { id: 'client', label: 'claude', kind: 'client' },
  { id: 'a', label: 'order a', kind: 'handle', gone: true },
  { id: 'b', label: 'order b', kind: 'handle' },
];
const message = (seq: number, to: string, from?: string): MessageRow => ({
  seq,
  at: seq * 10,
  to,
  name: 'go',
  kind: 'mail',
  ...(from === undefined ? {} : { from }),
});

test('actors have a lane each, or one for each kind; a lane is gone when all of its actors are', () => {
  const each = lanesOf(lanes, 'actor', 600);
  assert.equal(
    each.all.map(({ label, x, gone }) => [label, x, gone]),
    [
      ['claude', 100, false],
      ['order a', 300, true],
      ['order b', 500, false],
    ],
  );
  const kinds = lanesOf(lanes, 'kind', 600);
  assert.equal(
    kinds.all.map(({ label, actors, gone }) => [label, actors, gone]),
    [
      ['client', 1, false],
      ['handle', 2, false],
    ],
  );
  assert.equal(endsOf(message(1, 'b', 'a'), kinds), { from: kinds.all[1]?.x, to: kinds.all[1]?.x });
});

test('lanes that do not fit are as narrow as can be read, and a sender that is not known has no lane', () => {
  const many = lanesOf(
    Array.from({ length: 30 }, (_, index) => ({ id: `${index}`, label: 'x', kind: 'k' })),
    'actor',
    600,
  );
  assert.ok(many.each >= 80);
  assert.is(many.width, 30 * many.each);
  assert.equal(endsOf(message(1, '2'), many), { from: undefined, to: many.all[2]?.x });
});

test('only the rows in view are drawn, of a hundred thousand', () => {
  const { first, last } = windowOf(1_500_000, 600, 30, 100_000);
  assert.ok(first <= 50_000 && last >= 50_020 && last - first < 60, `${first} to ${last}`);
  assert.equal(windowOf(0, 600, 30, 3), { first: 0, last: 3 });
  assert.equal(windowOf(9_000, 600, 30, 3), { first: 3, last: 3 });
});

test('a row is found by its place in the stream, also where places are missing', () => {
  const rows = [2, 5, 9].map((seq) => message(seq, 'a'));
  assert.equal(
    [0, 2, 3, 5, 9, 10].map((seq) => rowFrom(rows, seq)),
    [0, 0, 1, 1, 2, 3],
  );
});
