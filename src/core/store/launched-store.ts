/**
 * The store that the command of a program provides (`--data`, `--store`). It belongs to the first server that opens it: a server opens
 * its store before it listens, and before it opens those that it mounts. Another server of the program would take up the tasks, calls
 * and timers of that one after a restart.
 */
import type { Clock } from '../kernel/clock.ts';
import { randomId } from '../kernel/random-id.ts';
import type { Member, Nodes } from './membership.ts';
import { memoryStore } from './memory-store.ts';
import type { Store, StoreAnswer, StoreHost, StoreQuery } from './store.ts';
import { StoreAround } from './store-around.ts';

/** The stores that a server has open. */
const taken = new WeakSet<Store>();

export class LaunchedStore extends StoreAround {
  declare readonly nodes?: Nodes;
  readonly #server: string;
  readonly #given: Store;
  #log: StoreHost['log'] | undefined;
  #alone: Member | undefined;

  /** @param server the name of the server, for the log */
  constructor(given: Store, server: string) {
    super(given);
    this.#given = given;
    this.#server = server;
    const { nodes } = given;
    // The nodes of a store send each other the requests for their cells: they serve the same server.
    if (nodes) this.nodes = { join: async (self, hear) => this.#alone ?? nodes.join(self, hear) };
  }

  override async open(host: StoreHost): Promise<void> {
    if (!taken.has(this.#given)) {
      taken.add(this.#given);
      return this.inner.open(host).catch((error: unknown) => {
        taken.delete(this.#given);
        throw error;
      });
    }
    this.#log = host.log;
    this.#alone = new OnlyMember(host.clock);
    this.inner = memoryStore();
    return this.inner.open(host);
  }

  override ask(query: StoreQuery): Promise<StoreAnswer> {
    if (this.#log && storesActor(query)) this.#tell(this.#log);
    return this.inner.ask(query);
  }

  override close(): Promise<void> {
    if (this.inner === this.#given) taken.delete(this.#given);
    return this.inner.close();
  }

  #tell(log: StoreHost['log']): void {
    this.#log = undefined;
    log(
      'warning',
      `${this.#server} keeps its data in memory: another server of this process has ${this.name}. Give it a store of its own, such as createServer({ store: sqlite(FILE) })`,
    );
  }
}

/** True for what a server expects to find after a restart. */
function storesActor(query: StoreQuery): boolean {
  return query.type === 'swap' || (query.type === 'commit' && query.writes.some(({ type }) => type === 'actor'));
}

/** The seat of the only node of a store. */
class OnlyMember implements Member {
  readonly id = randomId();
  readonly #clock: Clock;
  /** The date when the clock was at 0. The date of the clock itself may follow that of this node. */
  readonly #origin: number;
  readonly #cells = new Set<number>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#origin = clock.date() - clock.now();
  }

  date(): number {
    return this.#origin + this.#clock.now();
  }

  connected(): boolean {
    return true;
  }

  peers(): readonly [] {
    return [];
  }

  ownerOf(cell: number): string | undefined {
    return this.#cells.has(cell) ? this.id : undefined;
  }

  async claim(cells: readonly number[]): Promise<readonly number[]> {
    for (const cell of cells) this.#cells.add(cell);
    return cells;
  }

  async release(cells: readonly number[]): Promise<void> {
    for (const cell of cells) this.#cells.delete(cell);
  }

  async fence(): Promise<boolean> {
    return false;
  }

  async refresh(): Promise<void> {}
  async retire(): Promise<void> {}
  async leave(): Promise<void> {}
}
