/** One process of a simulated cluster: a real node on a simulated database. In place of a server it has one log for each cell. */
import type { Clock, Timer } from '../../../src/core/kernel/clock.ts';
import type { CellHolder } from '../../../src/core/messages/cell-holder.ts';
import type { Peer } from '../../../src/core/store/membership.ts';
import { ClusterNode, type NodeLinksPort } from '../../../src/features/cluster/cluster-node.ts';
import type { SimulatedClock } from '../../../src/testing/testing.ts';
import type { MemoryProcess } from '../../harness/memory-nodes.ts';

/** The stream of a log. */
export const STREAM = 'log';
const SECRET = 'a secret of the simulated cluster that all nodes have';
/** Milliseconds that a request may wait for its cell. */
const SETTLE_MS = 500;

/** The outcome of a request: `elsewhere` where this process does not serve the cell. */
export type Outcome = 'acknowledged' | 'failed' | 'elsewhere';

export interface ProcessWorld {
  readonly clock: SimulatedClock;
  /** The cells that have a log; the others are empty. */
  readonly cells: ReadonlySet<number>;
  /** Hands a request to the process of a peer. */
  forward(from: NodeProcess, to: Peer, cell: number, nonce: string): Promise<Outcome>;
  trace(line: string): void;
  violated(what: string): void;
}

/** The time of one process, which a pause stops. */
class ProcessClock implements Clock {
  readonly #world: SimulatedClock;
  #state: 'runs' | 'paused' | 'dead' = 'runs';
  #due: (() => void)[] = [];

  constructor(world: SimulatedClock) {
    this.#world = world;
  }

  kill(): void {
    this.#state = 'dead';
    this.#due = [];
  }

  pause(): void {
    if (this.#state === 'runs') this.#state = 'paused';
  }

  resume(): void {
    if (this.#state === 'paused') this.#state = 'runs';
    for (const callback of this.#due.splice(0)) this.#run(callback);
  }

  now(): number {
    return this.#world.now();
  }

  date(): number {
    return this.#world.date();
  }

  after(ms: number, callback: () => void): Timer {
    return this.#world.after(ms, () => this.#run(callback));
  }

  hold(): Timer {
    return { cancel() {} };
  }

  soon(callback: () => void): void {
    this.#world.soon(() => this.#run(callback));
  }

  #run(callback: () => void): void {
    if (this.#state === 'runs') callback();
    else if (this.#state === 'paused') this.#due.push(callback);
  }
}

/** The log of one cell, as this process has it in memory. */
interface CellLog {
  last: number;
  readonly nonces: Set<string>;
  /** Commits under way. */
  readonly pending: Set<Promise<unknown>>;
}

export class NodeProcess implements CellHolder, NodeLinksPort {
  readonly address: string;
  readonly connection: MemoryProcess;
  readonly node: ClusterNode;
  readonly #world: ProcessWorld;
  readonly #clock: ProcessClock;
  readonly #logs = new Map<number, CellLog>();
  /** The id under which it is linked with the others. */
  linkedAs: string | undefined;
  state: 'runs' | 'paused' | 'dead' = 'runs';

  constructor(world: ProcessWorld, address: string, connection: MemoryProcess) {
    this.#world = world;
    this.address = address;
    this.connection = connection;
    this.#clock = new ProcessClock(world.clock);
    const { nodes } = connection.store;
    if (!nodes) throw new Error('the store has no nodes');
    this.node = new ClusterNode({
      nodes,
      links: this,
      holder: this,
      metrics: { tookOver() {} },
      version: '1.0.0',
      secret: SECRET,
      clock: this.#clock,
      log: (level, message) => world.trace(`${address}: ${level}: ${message}`),
      graceMs: 1_000,
    });
  }

  async start(): Promise<void> {
    await this.node.join();
    await this.node.own();
  }

  async stop(): Promise<void> {
    await this.node.leave();
    await this.node.end();
  }

  kill(): void {
    this.state = 'dead';
    this.#clock.kill();
    this.connection.kill();
  }

  pause(): void {
    this.state = 'paused';
    this.#clock.pause();
    this.connection.pause();
  }

  resume(): void {
    if (this.state !== 'paused') return;
    this.state = 'runs';
    this.#clock.resume();
    this.connection.resume();
  }

  /** Cuts it off from the database. */
  cut(): void {
    if (this.connection.state === 'running') this.connection.cut();
  }

  heal(): void {
    if (this.connection.state === 'cut') this.connection.resume();
  }

  /** One attempt of a client that reached this process. */
  async request(cell: number, nonce: string): Promise<Outcome> {
    const place = this.node.placeOf(cell);
    if (place.at === 'here') return this.serve(cell, nonce);
    const found = place.at === 'peer' ? place : await this.node.settle(cell, SETTLE_MS);
    if (found.at === 'here') return this.serve(cell, nonce);
    if (found.at === 'nobody') return 'elsewhere';
    return this.#world.forward(this, found.peer, cell, nonce);
  }

  /** Carries out a request here: appends its nonce, once. */
  async serve(cell: number, nonce: string): Promise<Outcome> {
    if (this.node.placeOf(cell).at !== 'here') return 'elsewhere';
    const log = this.#logs.get(cell);
    if (!log) {
      this.#world.violated(`N5: ${this.address} serves cell ${cell}, of which it has nothing`);
      return 'failed';
    }
    const leave = this.node.enter(cell);
    try {
      if (log.nonces.has(nonce)) {
        // The attempt before this one may still be on its way: what is told must be durable.
        await Promise.all(log.pending);
        return this.#logs.get(cell) === log ? 'acknowledged' : 'failed';
      }
      log.last += 1;
      log.nonces.add(nonce);
      const event = { actor: actorOf(cell), stream: STREAM, seq: log.last, kind: 'add', data: nonce };
      const committed = this.connection.store.commit([{ type: 'event', ...event }]);
      log.pending.add(committed);
      await committed.finally(() => log.pending.delete(committed));
      return 'acknowledged';
    } catch {
      // Nothing of it is stored, so the next attempt carries it out.
      log.nonces.delete(nonce);
      return 'failed';
    } finally {
      leave();
    }
  }

  async take(cells: readonly number[] | undefined): Promise<void> {
    for (const cell of cells ?? []) {
      if (!this.#world.cells.has(cell)) continue;
      if (this.#logs.has(cell)) this.#world.violated(`N5: ${this.address} takes cell ${cell}, which it has`);
      const events = await this.connection.store.events(actorOf(cell), STREAM, 0, Number.MAX_SAFE_INTEGER);
      const nonces = new Set(events.map(({ data }) => data));
      this.#logs.set(cell, { last: events.at(-1)?.seq ?? 0, nonces, pending: new Set() });
    }
  }

  async drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    if (flush) for (const cell of cells) await Promise.allSettled(this.#logs.get(cell)?.pending ?? []);
    for (const cell of cells) this.#logs.delete(cell);
  }

  async open(): Promise<string> {
    return this.address;
  }

  join(self: string): void {
    this.linkedAs = self;
  }

  leave(): void {
    this.linkedAs = undefined;
  }

  peers(): void {}

  async close(): Promise<void> {
    this.linkedAs = undefined;
  }
}

export function actorOf(cell: number): string {
  return `log of cell ${cell}`;
}
