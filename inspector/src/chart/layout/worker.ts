/** The layout worker: ELK first, then dagre. It starts with the first chart. */

import { betterIn, DIRECTIONS, type Pane, type PlacedChart } from '../../../../src/features/charts/placed.ts';
import type { Sketch } from '../../../../src/features/charts/sketch.ts';
import { dagreLayout } from './dagre.ts';
import { improveWithElk, layoutWithElk } from './elk.ts';
import { elkHere } from './elk-here.ts';
import type { Engine } from './layout.ts';
import { isMany, layoutPacked } from './pack.ts';

export interface LayoutRequest {
  readonly id: number;
  readonly sketch: Sketch;
  /** The pane to fill. */
  readonly pane: Pane;
}

export interface LayoutAnswer {
  readonly id: number;
  /** Empty: it failed. */
  readonly placed: readonly PlacedChart[];
}

const elk = elkHere();

self.onmessage = async ({ data: { id, sketch, pane } }: MessageEvent<LayoutRequest>) => {
  // Always respond: without a response the page waits for its time limit.
  const placed = await draw(sketch, pane).catch(() => []);
  const answer: LayoutAnswer = { id, placed };
  self.postMessage(answer);
};

async function draw(sketch: Sketch, pane: Pane): Promise<readonly PlacedChart[]> {
  const plain: Engine = (asked, way) => layoutWithElk(asked, way, elk);
  const improved: Engine = async (asked, way) => improveWithElk(asked, await plain(asked, way), elk);
  const dagre: Engine = (asked, way) => Promise.resolve(dagreLayout(asked, way));
  const first: PlacedChart[] = [];
  for (const direction of DIRECTIONS) first.push(await layoutPacked(sketch, direction, [plain, dagre], pane));
  // Only the visible picture is worth more tries; a machine with many regions is improved region by region.
  const better = betterIn(pane, first);
  const placed: PlacedChart[] = [];
  for (const each of first) {
    if (each !== better) placed.push(each);
    else if (isMany(sketch)) placed.push(await layoutPacked(sketch, each.direction, [improved, dagre], pane));
    else placed.push(await improveWithElk(sketch, each, elk));
  }
  return placed;
}
