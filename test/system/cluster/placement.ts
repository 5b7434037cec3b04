/** Where the cells of a cluster are, by its database, beside where they should be. */
import { sharesOf } from '../../../src/features/cluster/shares.ts';

export interface Placement {
  /** The ids of the living nodes. */
  readonly nodes: readonly string[];
  /** The cells that are not at the node that should own them: they still move. */
  readonly misplaced: readonly number[];
}

/** @param query asks the database of the cluster */
export async function placementOf(
  query: (text: string) => Promise<readonly Record<string, unknown>[]>,
): Promise<Placement> {
  const nodes = (await query('SELECT id FROM troupe.node WHERE NOT fenced')).map(({ id }) => String(id));
  const cells = await query('SELECT node FROM troupe.cell ORDER BY n');
  const shares = sharesOf(nodes);
  return { nodes, misplaced: cells.flatMap(({ node }, cell) => (node === shares[cell] ? [] : [cell])) };
}
