/** The nodes that share the store of an inspected server. The facts of its server actor list them. */

import type { Plain } from '../frames.ts';
import { KNOWS_HIBERNATING } from './hibernating.ts';
import type { Model } from './model.ts';
import { LIVE } from './ordered-log.ts';
import { isList, member, textOfValue } from './plain-values.ts';

export interface NodeLine {
  readonly node: string;
  /** The address of its link. */
  readonly address: string;
  /** The version of its package. */
  readonly version: string;
  /** Number of cells that it owns. */
  readonly cells: number;
  readonly leaving: boolean;
}

export interface KnownNodes {
  /** The state of the inspected node, such as `owning`. */
  readonly state: string;
  /** Number of cells without a living owner. */
  readonly free: number;
  /** The inspected node first. */
  readonly nodes: readonly NodeLine[];
}

/** @returns undefined for a server that shares its store with no other, and before its first view */
export function clusterNodesOf(model: Model, seq = LIVE): KnownNodes | undefined {
  const cluster: Plain | undefined = model.actor(KNOWS_HIBERNATING)?.view(seq)?.facts.cluster;
  const nodes = member(cluster, 'nodes');
  if (!isList(nodes)) return undefined;
  return {
    state: textOfValue(member(cluster, 'state')) ?? '',
    free: numberOf(member(cluster, 'free')),
    nodes: nodes.map((node) => ({
      node: textOfValue(member(node, 'node')) ?? '',
      address: textOfValue(member(node, 'address')) ?? '',
      version: textOfValue(member(node, 'version')) ?? '',
      cells: numberOf(member(node, 'cells')),
      leaving: member(node, 'leaving') === true,
    })),
  };
}

function numberOf(value: Plain | undefined): number {
  return typeof value === 'number' ? value : 0;
}
