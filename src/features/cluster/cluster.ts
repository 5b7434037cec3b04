/** One node of a cluster, assembled: its cells, its links, and the date of the database. */

import { MAX_EXCHANGES } from '../../core/http/http-options.ts';
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import type { RuntimeLog } from '../../core/kernel/operator-log.ts';
import type { Metrics } from '../../core/kernel/telemetry/metrics.ts';
import type { CellHolder } from '../../core/messages/cell-holder.ts';
import { ANONYMOUS, LOCAL } from '../../core/protocol/principals.ts';
import type { Nodes } from '../../core/store/membership.ts';
import { ClusterNode } from './cluster-node.ts';
import type { ClusterOptions } from './cluster-options.ts';
import { type ClusterParts, NodeLinks } from './node-links.ts';

/** A clock whose date is that of the database once the node has joined. Time that only this process reads stays its own. */
export class DatabaseClock implements Clock {
  readonly dateIsSteady = true;
  /** The clock of this process. */
  readonly own: Clock;
  /** Returns the date of the database; undefined until the node has joined. */
  follows: (() => number) | undefined;

  constructor(clock: Clock) {
    this.own = clock;
  }

  get isManual(): true | undefined {
    return this.own.isManual;
  }

  now(): number {
    return this.own.now();
  }

  date(): number {
    return this.follows?.() ?? this.own.date();
  }

  after(ms: number, callback: () => void): Timer {
    return this.own.after(ms, callback);
  }

  hold(): Timer {
    return this.own.hold();
  }

  soon(callback: () => void): void {
    this.own.soon(callback);
  }
}

interface ClusterDependencies {
  readonly nodes: Nodes;
  /** The version of the server. */
  readonly version: string;
  /** The clock of this process. */
  readonly clock: Clock;
  readonly log: RuntimeLog;
  readonly limits: Pick<Limits, 'graceMs' | 'maxMessageBytes'>;
  readonly maxExchanges: number | undefined;
  readonly metrics: Pick<Metrics, 'tookOver'>;
}

export class Cluster implements ClusterParts, CellHolder {
  readonly cells: ClusterParts['cells'];
  readonly links: NodeLinks;
  readonly node: ClusterNode;
  #holder: CellHolder | undefined;

  constructor({ listen, secret, tls, spread }: ClusterOptions, dependencies: ClusterDependencies) {
    const { nodes, version, clock, log, limits, metrics, maxExchanges = MAX_EXCHANGES } = dependencies;
    const { graceMs, maxMessageBytes } = limits;
    this.links = new NodeLinks({
      ...{ clock, log, maxMessageBytes, maxExchanges, waitMs: graceMs },
      link: { listen, secret, tls },
      cells: {
        cellOf: (text) => node.cellFor(text),
        placeOf: (cell) => node.placeOf(cell),
        enter: (cell) => node.enter(cell),
        settle: (cell, deadlineMs) => node.settle(cell, deadlineMs),
      },
      members: { knows: (id) => node.knows(id), closed: (id) => void node.closed(id) },
    });
    const node = new ClusterNode({
      ...{ nodes, version, secret, clock, log, graceMs, metrics, links: this.links, holder: this },
    });
    this.node = node;
    this.cells = cellsOf(node, spread ?? 'principal');
  }

  /** Registers the parts of the server that hold the data of cells. */
  holds(holder: CellHolder): void {
    this.#holder = holder;
  }

  async take(cells: readonly number[] | undefined): Promise<void> {
    await this.#holder?.take(cells);
  }

  async drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    await this.#holder?.drop(cells, flush);
  }

  working(): Iterable<number> {
    return this.#holder?.working?.() ?? [];
  }

  async written(): Promise<void> {
    await this.#holder?.written?.();
  }
}

/** Anonymous and local callers have no cell of their own: what they create is in a cell of the node that serves them. */
function cellsOf(node: ClusterNode, spread: 'principal' | 'session'): ClusterParts['cells'] {
  const isShared = (principal: string): boolean =>
    principal === ANONYMOUS || principal === LOCAL || spread === 'session';
  return {
    cellFor: (principal) => (isShared(principal) ? node.ownCell() : node.cellFor(principal)),
    ownCell: () => node.ownCell(),
    owns: (cell) => node.owns(cell),
    cellOfKey: (principal, key) => node.cellFor(isShared(principal) ? `key ${principal} ${key}` : principal),
    placeOf: (cell) => node.placeOf(cell),
  };
}
