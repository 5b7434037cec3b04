/** Pictures of statecharts: nothing overlaps, whatever the chart, and whichever engine has laid it out. */
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { dagreLayout } from '../../../inspector/src/chart/layout/dagre.ts';
import { improveWithElk, layoutWithElk } from '../../../inspector/src/chart/layout/elk.ts';
import { elkHere } from '../../../inspector/src/chart/layout/elk-here.ts';
import { gridLayout } from '../../../inspector/src/chart/layout/grid.ts';
import { type Engine, layout } from '../../../inspector/src/chart/layout/layout.ts';
import { layoutPacked } from '../../../inspector/src/chart/layout/pack.ts';
import { fit } from '../../../inspector/src/chart/view.ts';
import { readChart } from '../../../src/core/kernel/charts/chart.ts';
import { betterIn } from '../../../src/features/charts/placed.ts';
import { groupsOf, sketch } from '../../../src/features/charts/sketch.ts';
import { suite } from '../../harness/door.ts';
import { atScale, SCALE } from '../../harness/scale.ts';
import { loadMachine } from '../../system/house/machines-page.ts';
import { charts, faults, grow, large, measure, packed, parallel, strays } from './charts.ts';

const test = suite('layout');
const run = elkHere();
const elk: Engine = async (sketch, direction) =>
  improveWithElk(sketch, await layoutWithElk(sketch, direction, run), run);
const dagre: Engine = (sketch, direction) => Promise.resolve(dagreLayout(sketch, direction));
const once: Engine = (sketch, direction) => layoutWithElk(sketch, direction, run);
const grid: Engine = (sketch, direction) => Promise.resolve(gridLayout(sketch, direction));
const PANE = { width: 800, height: 680 };
const MACHINES = [
  'emitter',
  'handle',
  'input-request',
  'interactive-request',
  'server',
  'session',
  'supervisor',
  'task',
] as const;

for (const [name, engine] of Object.entries({ elk, dagre, grid }))
  test(`${name} lays out any chart without overlaps${name === 'elk' ? ', on level and upright lines that meet their states and labels' : ''}`, async () => {
    let own = 0;
    let all = 0;
    await fc.assert(
      fc.asyncProperty(charts, fc.constantFrom('right' as const, 'down' as const), async (chart, direction) => {
        const placed = await layout(chart, measure, direction, [engine]);
        all += 1;
        if (placed.engine === name) own += 1;
        assert.equal(faults(chart, placed), []);
        if (placed.engine === 'elk') assert.equal(strays(chart, placed), []);
        assert.equal(
          placed.edges.map(({ id }) => id).sort(),
          groupsOf(chart)
            .map(({ id }) => id)
            .sort(),
        );
      }),
      {
        numRuns: name === 'elk' ? atScale({ quick: 2, full: 6, proof: 6 }) : atScale({ quick: 8, full: 20, proof: 40 }),
        seed: 6,
      },
    );
    assert.ok(own > all * 0.9, `${name} has laid out only ${own} of ${all} charts`);
  });

test('every machine of ours is laid out by elk, both ways', async () => {
  for (const name of SCALE === 'quick' ? (['supervisor'] as const) : MACHINES) {
    const chart = readChart(await loadMachine(name));
    // Quick: one direction, which needs one layout.
    for (const direction of SCALE === 'quick' ? (['right'] as const) : (['right', 'down'] as const)) {
      const placed = await layout(chart, measure, direction, [direction === 'down' ? elk : once]);
      assert.is(placed.engine, 'elk', name);
      assert.equal(faults(chart, placed), [], name);
    }
  }
});

test.full('a machine of sixty states and a hundred and fifty transitions is laid out in a second', async () => {
  const chart = large(60, 150);
  assert.ok(groupsOf(chart).length > 140, 'lines between as many different states');
  let best = Number.POSITIVE_INFINITY;
  for (let time = 0; time < 3 && best > 1_000; time += 1) {
    // The time of this process: what else the machine does is not the layout's.
    const before = process.cpuUsage();
    const placed = await layout(chart, measure, 'down', [elk]);
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / 1_000);
    assert.is(placed.engine, 'elk');
    assert.equal(faults(chart, placed), []);
  }
  assert.ok(best < 1_000, `it took ${best} ms`);
});

test('an engine that throws, or gives nonsense, is followed by the next', async () => {
  const chart = large(8, 12);
  const crashes: Engine = () => Promise.reject(new TypeError('undefined is not a node'));
  const forgets: Engine = async (sketch, direction) => {
    const placed = await dagre(sketch, direction);
    return { ...placed, nodes: placed.nodes.slice(1) };
  };
  const loses: Engine = async (sketch, direction) => {
    const placed = await dagre(sketch, direction);
    return { ...placed, nodes: placed.nodes.map((node) => ({ ...node, x: Number.NaN })) };
  };
  assert.is((await layout(chart, measure, 'down', [crashes, dagre])).engine, 'dagre');
  assert.is((await layout(chart, measure, 'down', [forgets, loses, dagre])).engine, 'dagre');
  const last = await layout(chart, measure, 'down', [crashes, forgets, loses]);
  assert.is(last.engine, 'grid');
  assert.equal(faults(chart, last), []);
});

test.full('states that are active at the same time stand side by side and share their borders', async () => {
  const inner = { type: 'atomic', invokes: 0, nodes: [] } as const;
  const region = { type: 'compound', invokes: 0, nodes: [inner, inner] } as const;
  const chart = grow({ type: 'parallel', invokes: 0, nodes: [region, { ...region, nodes: [inner, inner, inner] }] }, [
    { from: 2, to: 3, guard: false, word: 'go' },
    { from: 5, to: 6, guard: true, word: 'a long event indeed' },
  ]);
  const { nodes } = await layout(chart, measure, 'down', [elk]);
  const [first, second] = ['s0', 's1'].flatMap((path) => nodes.find(({ id }) => id === path) ?? []);
  assert.is(first?.y, second?.y);
  assert.is(first?.height, second?.height);
  const [left, right] = (first?.x ?? 0) < (second?.x ?? 0) ? [first, second] : [second, first];
  assert.is((left?.x ?? 0) + (left?.width ?? 0), right?.x);
});

test.full(
  'five regions of twelve states fill the pane, beside and below each other, and the lines between them keep clear',
  async () => {
    const chart = parallel(5);
    for (const direction of ['right', 'down'] as const) {
      const placed = await layoutPacked(sketch(chart, measure), direction, [once], PANE);
      assert.is(placed.engine, 'elk');
      assert.equal(faults(chart, placed), []);
      assert.equal(strays(chart, placed), []);
      assert.equal(
        placed.edges.map(({ id }) => id).sort(),
        groupsOf(chart)
          .map(({ id }) => id)
          .sort(),
      );
      const ratio = placed.width / placed.height;
      assert.ok(ratio > 0.5 && ratio < 3, `${direction}: ${placed.width}×${placed.height}`);
    }
  },
);

test('regions that are packed hold for any chart and any lines between them', async () => {
  await fc.assert(
    fc.asyncProperty(packed, async (chart) => {
      const placed = await layoutPacked(sketch(chart, measure), 'down', [dagre], PANE);
      assert.equal(faults(chart, placed), []);
      assert.equal(placed.edges.length, groupsOf(chart).length);
    }),
    { numRuns: atScale({ quick: 8, full: 15, proof: 30 }), seed: 6 },
  );
});

test('a picture is fitted whole, however large it is', () => {
  for (const size of [
    { width: 400, height: 30_000 },
    { width: 50_000, height: 90 },
    { width: 100, height: 100 },
  ]) {
    const { x, y, k } = fit(size, PANE);
    assert.ok(x >= 0 && y >= 0 && x + k * size.width <= PANE.width && y + k * size.height <= PANE.height);
  }
});

test('the direction that fills the pane better is kept, and the first where it makes no difference', () => {
  const wide = { engine: 'elk', direction: 'right', width: 800, height: 200, nodes: [], edges: [] } as const;
  const tall = { ...wide, direction: 'down', width: 200, height: 800 } as const;
  assert.is(betterIn({ width: 600, height: 300 }, [wide, tall])?.direction, 'right');
  assert.is(betterIn({ width: 300, height: 600 }, [wide, tall])?.direction, 'down');
  assert.is(betterIn({ width: 2_000, height: 2_000 }, [wide, tall])?.direction, 'right');
  assert.is(betterIn({ width: 2_000, height: 2_000 }, []), undefined);
});
