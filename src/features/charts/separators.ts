/** The dashed lines between the regions of a parallel state. */
import type { PlacedNode } from './placed.ts';

export interface Separator {
  readonly x: number;
  readonly y: number;
  readonly toX: number;
  readonly toY: number;
}

/** Undefined: the regions do not fill the state in columns or rows, and keep their frames. */
export function separatorsOf(regions: readonly PlacedNode[]): readonly Separator[] | undefined {
  const across = [...regions].sort((a, b) => a.x - b.x);
  const down = [...regions].sort((a, b) => a.y - b.y);
  if (touch(across, ({ x, width }) => [x, x + width]))
    return across.slice(1).map(({ x, y, height }) => ({ x: x + 0.5, y, toX: x + 0.5, toY: y + height }));
  if (touch(down, ({ y, height }) => [y, y + height]))
    return down.slice(1).map(({ x, y, width }) => ({ x, y: y + 0.5, toX: x + width, toY: y + 0.5 }));
  return undefined;
}

function touch(regions: readonly PlacedNode[], ends: (region: PlacedNode) => readonly [number, number]): boolean {
  return regions.every((region, index) => {
    const before = regions[index - 1];
    return before === undefined || ends(before)[1] === ends(region)[0];
  });
}
