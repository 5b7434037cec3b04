/** The cluster: this server is one of several nodes that share a store. */
import { InspectedHops } from '../../core/kernel/inspection/inspected-hops.ts';
import { preloadAjv } from '../../core/schema/ajv.ts';
import type { Core, Feature, FeatureParts } from '../../core/server/feature.ts';
import { asking } from '../asking/asking.feature.ts';
import { Cluster, DatabaseClock } from './cluster.ts';
import type { ClusterNode } from './cluster-node.ts';
import { problemOfCluster } from './cluster-options.ts';
import type { ClusterReport } from './cluster-report.ts';
import type { ClusterParts } from './node-links.ts';
import { PlacedRequests } from './placed-requests.ts';
import { RemoteChanges } from './remote-changes.ts';

interface ClusterService {
  /** True if other nodes share the store. */
  readonly shared: boolean;
  /** The cluster as this node sees it; undefined without the option. */
  report(): ClusterReport | undefined;
}

const ALONE: FeatureParts<ClusterService> = { service: { shared: false, report: () => undefined } };

export const cluster: Feature<ClusterService> = {
  name: 'cluster',
  options: { cluster: problemOfCluster },
  opensFirst: true,
  clock: (options, clock) => (options.cluster ? new DatabaseClock(clock) : undefined),
  open(core) {
    const { options, system, limits, info, storage } = core;
    const { clock, log, metrics } = system;
    const { nodes } = options.store ?? {};
    if (!options.cluster || !nodes) return ALONE;
    const joined = new Cluster(options.cluster, {
      ...{
        nodes,
        log,
        limits,
        metrics,
        clock: clock instanceof DatabaseClock ? clock.own : clock,
        version: info.version,
      },
      maxExchanges: options.http?.maxExchanges,
    });
    const { node } = joined;
    if (clock instanceof DatabaseClock) clock.follows = () => node.date();
    joined.holds(storage);
    // Other nodes give cells to a node that has joined: the requests for them would wait while its modules load.
    storage.ownedBy({
      owns: (cell) => node.owns(cell),
      join: () => preloadAjv().then(() => node.join()),
      own: () => node.own(),
    });
    metrics.gauge('troupe.nodes', '{node}', 'Nodes that share the store.', () => node.report().nodes.length);
    metrics.gauge('troupe.cells', '{cell}', 'Cells that this node serves.', () => node.report().cells);
    return nodeParts(core, joined, node);
  },
};

/** A node of a cluster whose other parts are elsewhere. */
export function nodeParts(
  core: Core,
  { cells, links }: ClusterParts,
  node?: ClusterNode,
): FeatureParts<ClusterService> {
  const { limits, storage, system } = core;
  system.ids.chooseBy(cells);
  const remote = new RemoteChanges({
    ...{ clock: system.clock, gatherMs: limits.gatherMs, link: links.link },
    peers: () => links.nodes,
    placeOf: (cell) => links.placeOf(cell),
  });
  links.tellOf(remote);
  return {
    service: { shared: true, report: () => node?.report() },
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
