/** The parts of the cluster's feature that a node has. */
import { InspectedHops } from '../../core/kernel/inspection/inspected-hops.ts';
import type { NodeCalls } from '../../core/messages/node-calls.ts';
import type { Core, FeatureParts } from '../../core/server/feature.ts';
import { asking } from '../asking/asking.feature.ts';
import type { ClusterNode } from './cluster-node.ts';
import type { ClusterReport } from './cluster-report.ts';
import { LinkedCalls } from './linked-calls.ts';
import type { ClusterParts } from './node-links.ts';
import { cellOfUri, PlacedRequests } from './placed-requests.ts';
import { RemoteChanges } from './remote-changes.ts';

export interface ClusterService {
  /** True if other nodes share the store. */
  readonly shared: boolean;
  /** The cluster as this node sees it; undefined without the option. */
  report(): ClusterReport | undefined;
  /** Calls between nodes; undefined if this server owns all cells. */
  readonly calls: NodeCalls | undefined;
}

/** A node of a cluster whose other parts are elsewhere. */
export function nodeParts(
  core: Core,
  { cells, links }: ClusterParts,
  node?: ClusterNode,
): FeatureParts<ClusterService> {
  const { limits, quotas, storage, system } = core;
  system.ids.chooseBy(cells);
  const remote = new RemoteChanges({
    ...{ clock: system.clock, gatherMs: limits.gatherMs, link: links.link },
    peers: () => links.nodes,
    placeOf: (cell) => links.placeOf(cell),
    cellOf: (uri) => cellOfUri(uri, core.elements.catalogues.tools),
  });
  links.tellOf(remote);
  const calls = new LinkedCalls({ nodes: links, clock: system.clock, limits, retained: quotas.retained });
  return {
    service: { shared: true, report: () => node?.report(), calls },
    listens: remote,
    changes: (subscriptions) => remote.around(subscriptions),
    placement: () =>
      new PlacedRequests({
        tools: core.elements.catalogues.tools,
        interactive: core.service(asking).interactive,
        cells,
      }),
    hosts: () => ({ nodes: links, hops: new InspectedHops(system.inspection) }),
    facts: () => (node ? { cluster: node.report() } : {}),
    unready() {
      if (!node || storage.impairment !== undefined) return undefined;
      if (!node.connected) return 'store not open';
      return node.ready ? undefined : 'no cells';
    },
    ...(node && { leave: () => node.leave() }),
    async stop() {
      remote.end();
      await node?.end();
    },
  };
}
