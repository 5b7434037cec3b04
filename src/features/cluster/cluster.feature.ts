/** The cluster: this server is one of several nodes that share a store. */
import { preloadAjv } from '../../core/schema/ajv-preload.ts';
import type { Feature, FeatureParts } from '../../core/server/feature.ts';
import { Cluster, DatabaseClock } from './cluster.ts';
import { problemOfCluster } from './cluster-options.ts';
import { type ClusterService, nodeParts } from './node-parts.ts';

const ALONE: FeatureParts<ClusterService> = {
  service: { shared: false, report: () => undefined, calls: undefined },
};

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
