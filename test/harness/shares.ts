/** Waits for the nodes of a cluster to share its cells. */
import { sharesOf } from '../../src/features/cluster/shares.ts';
import type { Server } from '../../src/index.ts';
import { until } from './wait.ts';

/** Resolves when each of these nodes has its share of the cells: none moves from then on, until a node comes or goes. */
export async function haveShares(...servers: readonly Server[]): Promise<void> {
  const isDone = (server: Server): boolean => {
    const { node, cells, nodes = [] } = server.cluster() ?? {};
    const share = sharesOf(nodes.map((each) => each.node)).filter((owner) => owner === node).length;
    return nodes.length === servers.length && cells === share;
  };
  await until(
    () => servers.every(isDone),
    () => `shares of the cells: ${servers.map((server) => server.cluster()?.cells).join(', ')}`,
  );
}
