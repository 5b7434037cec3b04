/** Lays out charts before somebody looks at them: the layout begins with a large file, which nobody should wait for. */

import { picturesOf } from '../chart/layout/start.ts';
import { measure } from '../chart/measure.ts';
import { model } from '../store/state.ts';

const known = new Set<string>();
let waiting = false;

/** Called whenever frames have come. */
export function layOutAhead(): void {
  if (waiting || model.value.charts.size === known.size) return;
  waiting = true;
  setTimeout(() => void next(), 400);
}

/** One after the other: whoever selects another chart meanwhile waits for one at most. */
async function next(): Promise<void> {
  // The charts of authors are at the end: ours come with the first actors.
  for (const { id, root } of [...model.value.charts.values()].reverse()) {
    if (known.has(id)) continue;
    known.add(id);
    await picturesOf(id, root, measure).catch(() => {});
  }
  waiting = false;
}
