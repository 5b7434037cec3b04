/** Pictures with the layout of the inspector's page: nothing overlaps, equal machines have equal bytes, and each failure leads to a list. */
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { readChart } from '../../../src/core/kernel/charts/chart.ts';
import { pagePictureOf, pictureOf } from '../../../src/features/charts/chart-picture.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('pictures of charts');
// A thread compiles 1.5 MB, which takes a busy machine some time.

const WAIT_MS = 2_000;
const LANES = /font-family="ui-monospace/;

const region = (word: string) => ({
  initial: 'resting',
  states: {
    resting: { on: { begin: 'working', [`${word} is not necessary`]: 'checked' } },
    working: { invoke: { src: 'work', onDone: 'checked', onError: 'over' }, on: { rest: 'resting' } },
    checked: {
      initial: 'one',
      states: { one: { on: { again: 'two' } }, two: { on: { again: 'one' } } },
      onDone: 'over',
    },
    over: { type: 'final' as const },
  },
});

/** Twenty-one states, nested and parallel. */
const chartOf = () =>
  readChart(
    createMachine({
      id: 'plant',
      initial: 'closed',
      states: {
        closed: { on: { open: { target: 'running', guard: 'isMorning', actions: 'switchOn' } } },
        running: {
          type: 'parallel',
          states: { line: region('the line'), store: region('the store') },
          onDone: 'closed',
          on: { fire: 'alarm', pause: 'paused' },
        },
        paused: { on: { resume: 'running', fire: 'alarm' }, after: { 60000: 'closed' } },
        alarm: { initial: 'loud', states: { loud: { on: { mute: 'silent' } }, silent: {} }, on: { reset: 'closed' } },
      },
    }),
  );

const clock = new SimulatedClock();
const picture = (chart = chartOf(), active: readonly string[] = []): Promise<string> =>
  pictureOf(chart, { title: 'plant', active, clock, waitMs: WAIT_MS });

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The boxes of the states without children, the labels, and the segments of the lines, in the coordinates of one group. */
function partsIn(svg: string) {
  const states: Box[] = [];
  const labels: Box[] = [];
  const lines: Box[] = [];
  const wide: string[] = [];
  let at = { x: 0, y: 0 };
  let width = 0;
  for (const line of svg.split('\n')) {
    const moved = /^<g transform="translate\(([\d.]+) ([\d.]+)\)">$/.exec(line);
    if (moved) at = { x: Number(moved[1]), y: Number(moved[2]) };
    const rect = /^<rect .*?width="([\d.]+)" height="([\d.]+)" rx="(\d)" fill="(\S+)"/.exec(line);
    if (rect) {
      width = Number(rect[1]);
      const box = { ...at, width, height: Number(rect[2]) };
      if (rect[3] === '8' && rect[4] === '#ffffff') states.push(box);
      if (rect[3] === '5' && rect[4] !== 'none') labels.push(box);
    }
    const text = /textLength="([\d.]+)".*>(.*)<\/text>/.exec(line);
    if (text && rect === null && Number(text[1]) > width && width > 0) wide.push(text[2] ?? '');
    const path = /^<path d="(M[^"]*)" fill="none" stroke="\S+" stroke-width="1\.\d"\/><path/.exec(line);
    if (path) {
      const points = [...(path[1] ?? '').matchAll(/[ML]([\d.]+) ([\d.]+)/g)].map(([, x, y]) => ({
        x: Number(x),
        y: Number(y),
      }));
      points.forEach((to, index) => {
        const from = points[index - 1];
        if (from === undefined) return;
        const [x, y] = [Math.min(from.x, to.x), Math.min(from.y, to.y)];
        lines.push({ x, y, width: Math.abs(from.x - to.x), height: Math.abs(from.y - to.y) });
      });
    }
  }
  return { states, labels, lines, wide };
}

function overlap(a: Box, b: Box): boolean {
  return a.x + a.width > b.x + 1 && b.x + b.width > a.x + 1 && a.y + a.height > b.y + 1 && b.y + b.height > a.y + 1;
}

test.full(
  'twenty nested and parallel states: no box or label covers another, and no line crosses a state',
  async () => {
    const svg = await picture();
    assert.not.match(svg, LANES);
    const { states, labels, lines, wide } = partsIn(svg);
    assert.is(states.length, 14);
    assert.ok(labels.length >= 20 && lines.length >= 30, `${labels.length} labels, ${lines.length} segments`);
    const boxes = [...states, ...labels];
    boxes.forEach((box, index) => {
      for (const other of boxes.slice(index + 1)) assert.not.ok(overlap(box, other), JSON.stringify([box, other]));
    });
    for (const line of lines)
      for (const state of states) assert.not.ok(overlap(line, state), JSON.stringify([line, state]));
    assert.equal(wide, []);
  },
);

test.full('equal machines have equal pictures, and the current states are marked without moving anything', async () => {
  const chart = chartOf();
  const plain = await picture(chart);
  assert.is(await picture(), plain);
  const active = await picture(chart, ['running.line.working', 'running.store.resting']);
  const marked = [...active.matchAll(/fill="#1f3c9e"[^>]*font-weight="bold">([^<]*)</g)].map(([, name]) => name);
  assert.equal(marked.sort(), ['resting', 'working']);
  assert.equal(partsIn(active).lines, partsIn(plain).lines);
});

test.full('the picture for a page has classes and paths instead of colours, at the same places', async () => {
  const chart = chartOf();
  const coloured = await picture(chart);
  const forPage = (await pagePictureOf(chart, clock)) ?? '';
  assert.not.match(forPage, /#[\da-f]{6}\b|\bstyle=|<style|\bon\w+=/);
  const placesOf = (svg: string) => svg.match(/ (d|x|y|textLength)="[^"]*"/g)?.slice(-200);
  assert.equal(placesOf(forPage), placesOf(coloured));
  const paths = new Set([...forPage.matchAll(/class="box" data-state="([^"]*)"/g)].map(([, path]) => path));
  assert.ok(paths.has('running.line.working') && paths.has('running.store.resting'));
  assert.match(forPage, /class="line" data-state="running\.line\.working"/);
  const large = readChart(
    createMachine({
      id: 'large',
      initial: 's0',
      states: Object.fromEntries(Array.from({ length: 700 }, (_, index) => [`s${index}`, {}])),
    }),
  );
  assert.is(await pagePictureOf(large, clock), undefined);
});

test.full('a reader who has waited long enough gets a list, and the next reader the layout', async () => {
  const chart = chartOf();
  const first = picture(chart);
  await clock.advance(WAIT_MS);
  assert.match(await first, LANES);
  assert.not.match(await picture(chart), LANES);
});

test('a layout that exceeds its limit is ended, and not tried again', async () => {
  const chart = chartOf();
  const first = picture(chart);
  // The thread has been started then.
  await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(20_000);
  assert.match(await first, LANES);
  assert.match(await picture(chart), LANES);
});

test('a chart with more than 600 states and transitions is a list at once', async () => {
  const states = Object.fromEntries(Array.from({ length: 700 }, (_, index) => [`s${index}`, {}]));
  assert.match(await picture(readChart(createMachine({ id: 'large', initial: 's0', states }))), LANES);
});
