/** Nodes in one process with a placement that the test decides, each with a store of its own: what reaches the wrong node finds nothing. */
import { createHash, randomInt } from 'node:crypto';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import type { Inspection } from '../../../../src/core/kernel/inspection/inspection.ts';
import { CELLS, cellIn } from '../../../../src/core/protocol/cell.ts';
import type { ResourceDefinition } from '../../../../src/core/registry/define.ts';
import type { Registration, ToolRegistration } from '../../../../src/core/registry/registration.ts';
import type { Core } from '../../../../src/core/server/feature.ts';
import { createRuntime, type Runtime } from '../../../../src/core/server/runtime.ts';
import type { LinkPeer } from '../../../../src/features/cluster/link/link-port.ts';
import { NodeLinks } from '../../../../src/features/cluster/node-links.ts';
import { nodeParts } from '../../../../src/features/cluster/node-parts.ts';
import { machines } from '../../../../src/features/machines/machines.feature.ts';
import type { MachineRegistration } from '../../../../src/features/machines/registered-machines.ts';
import { FEATURES } from '../../../../src/features/server/features.ts';
import { type HttpOptions, http, type ServerOptions } from '../../../../src/index.ts';
import { HANG_MS } from '../../../harness/wait.ts';
import { Arrivals, SECRET } from './support.ts';

export interface StaticNode {
  readonly id: string;
  readonly offers: Offers;
  readonly runtime: Runtime;
  readonly url: string;
  /** The address of its link. */
  readonly address: string;
  /** Resolves once another link of this node is open. */
  reached(): Promise<string>;
  readonly links: NodeLinks;
  readonly told: readonly string[];
  /** Requests that entered a cell of this node, and have not ended. */
  entered(): number;
  /** Ends its links at once, as a node that dies does. */
  die(): Promise<void>;
  close(): Promise<void>;
}

/** The placement of all nodes: the owner of a cell by its number, unless the test has moved it. */
export class StaticCells {
  readonly ids: readonly string[];
  readonly #moved = new Map<number, string | undefined>();
  /** Called for a cell without an owner. */
  settles: (cell: number) => Promise<string | undefined> = () => Promise.reject(new Error('no owner'));

  constructor(ids: readonly string[]) {
    this.ids = ids;
  }

  cellFor(principal: string): number {
    return createHash('sha256').update(principal).digest().readUInt16BE() % CELLS;
  }

  ownerOf(cell: number): string | undefined {
    return this.#moved.has(cell) ? this.#moved.get(cell) : this.ids[cell % this.ids.length];
  }

  move(cell: number, to: string | undefined): void {
    this.#moved.set(cell, to);
  }

  /** Moves the cell of a handle, or of another id. */
  moveOf(id: string, to: string): void {
    this.move(cellIn(id) ?? -1, to);
  }

  ownCell(id: string): number {
    const index = this.ids.indexOf(id);
    return randomInt(Math.floor(CELLS / this.ids.length)) * this.ids.length + index;
  }

  /** A principal whose cell belongs to a node. */
  principalOf(id: string, name = 'ada'): string {
    for (let number = 0; ; number += 1)
      if (this.ownerOf(this.cellFor(`${name}${number}`)) === id) return `${name}${number}`;
  }
}

/** What a program registers at a node, and reads of it. */
export interface Offers {
  readonly tools: ToolRegistration;
  readonly resources: Registration<ResourceDefinition>;
  readonly machines: MachineRegistration;
  readonly inspection: Inspection;
  resourceUpdated(uri: string): void;
}

export interface StaticOptions {
  readonly http?: HttpOptions;
  readonly server?: Partial<ServerOptions>;
  /** Milliseconds that a request waits for an owner. */
  readonly waitMs?: number;
}

export async function staticNodes(
  ids: readonly string[],
  define: (offers: Offers, id: string) => void,
  { http: httpOptions, server, waitMs = HANG_MS }: StaticOptions = {},
): Promise<{ readonly nodes: readonly StaticNode[]; readonly cells: StaticCells }> {
  const cells = new StaticCells(ids);
  const open: { node: StaticNode; peer: LinkPeer; opened: Arrivals<string> }[] = [];
  for (const id of ids) {
    const told: string[] = [];
    const log = (level: string, message: string): void => void told.push(`${level}: ${message}`);
    let entered = 0;
    const placeOf = (cell: number): ReturnType<NodeLinks['placeOf']> => {
      const owner = cells.ownerOf(cell);
      return owner === id
        ? { at: 'here' }
        : owner === undefined
          ? { at: 'nobody' }
          : { at: 'peer', peer: { node: owner } };
    };
    const places = {
      placeOf,
      cellOf: (key: string) => cells.cellFor(key),
      enter() {
        entered += 1;
        return () => {
          entered -= 1;
        };
      },
      async settle(cell: number) {
        if (placeOf(cell).at === 'nobody') cells.move(cell, await cells.settles(cell));
        return placeOf(cell);
      },
    };
    const opened = new Arrivals<string>('a link that opens');
    const links = new NodeLinks({
      link: { listen: '127.0.0.1:0', secret: SECRET },
      cells: places,
      members: { knows: () => true, closed: () => {} },
      ...{ clock: systemClock, log, maxMessageBytes: 4 * 1024 * 1024, maxExchanges: 4_096, waitMs },
    });
    const { opened: ready } = links;
    links.opened = (other) => {
      ready.call(links, other);
      opened.put(other);
    };
    const address = await links.link.open();
    links.link.join(id);
    const choice = {
      cellFor: (principal: string) => (principal === 'anonymous' ? cells.ownCell(id) : cells.cellFor(principal)),
      ownCell: () => cells.ownCell(id),
    };
    const cellOfKey = (principal: string, key: string): number =>
      cells.cellFor(principal === 'anonymous' ? `key ${key}` : principal);
    const runtime = createRuntime(
      { name: 'static', version: '1.0.0', keys: [SECRET], log, ...server },
      { name: 'static', version: '1.0.0' },
      FEATURES.map((feature) =>
        feature.name === 'cluster'
          ? {
              ...feature,
              open: (core: Core) =>
                nodeParts(core, { cells: { ...choice, owns: () => true, placeOf, cellOfKey }, links }),
            }
          : feature,
      ),
    );
    const { core } = runtime;
    const offers: Offers = {
      tools: core.elements.tools(),
      resources: core.elements.resources(),
      machines: core.service(machines),
      inspection: core.system.inspection,
      resourceUpdated: (uri) => core.changes.send({ type: 'resource updated', uri }),
    };
    define(offers, id);
    const transport = http({ port: 0, ...httpOptions });
    await runtime.open(transport);
    const close = async (): Promise<void> => {
      await runtime.close('the test ends');
      await links.link.close();
    };
    const node: StaticNode = {
      id,
      address,
      reached: () => opened.next(),
      offers,
      runtime,
      url: transport.url,
      links,
      told,
      entered: () => entered,
      die() {
        // A dead node sends no last responses.
        links.link.leave();
        return links.link.close();
      },
      close,
    };
    open.push({ node, peer: { node: id, address }, opened });
  }
  for (const { node, opened } of open) {
    node.links.peers(open.flatMap(({ peer }) => (peer.node === node.id ? [] : peer)));
    for (let others = 1; others < open.length; others += 1) await opened.next();
  }
  return { nodes: open.map(({ node }) => node), cells };
}
