/** Lays out charts in advance: the layout engine is a large file, and loading it takes time. */

import { picturesOf } from '../chart/layout/start.ts';
import { measure } from '../chart/measure.ts';
import { model } from '../store/state.ts';

const known = new Set<string>();
let waiting = false;
/** Only Chromium tells. */
const savesData = Object(Reflect.get(navigator, 'connection')).saveData === true;

/** Called after each batch of frames. A reader who saves data waits for a chart when they look at it. */
export function layOutAhead(): void {
  if (savesData || waiting || model.value.charts.size === known.size) return;
  waiting = true;
  setTimeout(() => void next(), 400);
}

/** One chart at a time: a newly selected chart waits for at most one other. */
async function next(): Promise<void> {
  // Charts of authors come last: Troupe's own arrive with the first actors.
  for (const { id, root } of [...model.value.charts.values()].reverse()) {
    if (known.has(id)) continue;
    known.add(id);
    await picturesOf(id, root, measure).catch(() => {});
  }
  waiting = false;
}
