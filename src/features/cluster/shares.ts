/** The share of each node: rendezvous hashing decides which node should own a cell. */
import { CELLS } from '../../core/protocol/cell.ts';

/**
 * Returns the node that should own each cell. Every node computes the same from the same nodes; a node that joins or
 * leaves changes only the cells that it gets or had.
 *
 * @param nodes their ids, in any order; not empty
 */
export function sharesOf(nodes: readonly string[]): readonly string[] {
  const seeds = nodes.map((node) => [node, seedOf(node)] as const);
  return Array.from({ length: CELLS }, (_, cell) => {
    let best = '';
    let most = -1;
    for (const [node, seed] of seeds) {
      const weight = mixed(seed, cell);
      if (weight < most || (weight === most && node < best)) continue;
      best = node;
      most = weight;
    }
    return best;
  });
}

/** FNV-1a (RFC draft eastlake-fnv) of the id. */
function seedOf(node: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < node.length; at += 1) hash = Math.imul(hash ^ node.charCodeAt(at), 0x01000193);
  return hash;
}

/** The finalizer of MurmurHash3: each bit of the seed and of the cell changes half of the bits. */
function mixed(seed: number, cell: number): number {
  let hash = seed ^ Math.imul(cell + 1, 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
