/**
 * A database in memory that several servers of one process share: a durable store with the fence of commits, and the
 * membership that decides by beats and locks as PostgreSQL does (src/features/postgres). A test kills, pauses and cuts off
 * its nodes.
 */
import type { Clock, Timer } from '../../src/core/kernel/clock.ts';
import { CELLS } from '../../src/core/protocol/cell.ts';
import type { Member, MemberEvents, Nodes, Peer } from '../../src/core/store/membership.ts';
import { memoryStore } from '../../src/core/store/memory-store.ts';
import { type Store, type StoreAnswer, StoreError, type StoreQuery, type Write } from '../../src/core/store/store.ts';
import { type OtherQuery, TestStore } from './test-store.ts';

const BEAT_MS = 500;
const LEASE_MS = 2_000;

interface NodeRow extends Peer {
  leaving: boolean;
  fenced: boolean;
  /** The session of the node holds its lock: its process is there. */
  locked: boolean;
  beatAt: number;
}

interface CellRow {
  node: string | undefined;
  epoch: number;
}

/** Why a batch was not written, or that it was: the events of the database, in order, for what a test asserts. */
export interface Commit {
  readonly node: string;
  readonly writes: readonly Write[];
  readonly refused: boolean;
}

/** How the database is broken, for the tests of the simulator. */
export interface DatabaseFaults {
  /** It accepts the commits of fenced nodes. */
  readonly fencesNobody?: boolean;
  /** It answers a commit before it has stored it. */
  readonly acknowledgesEarly?: boolean;
  /** It gives a cell to every node that asks, whoever owns it. */
  readonly comparesNothing?: boolean;
  /** It fences each node about which another one asks. */
  readonly judgesNothing?: boolean;
}

export interface MemoryDatabaseOptions {
  /** Milliseconds of the next way between a process and the database. Default: no time. */
  readonly way?: () => number;
  readonly faults?: DatabaseFaults;
}

export class MemoryDatabase {
  readonly clock: Clock;
  readonly options: MemoryDatabaseOptions;
  readonly data: Store = memoryStore();
  readonly nodes = new Map<string, NodeRow>();
  readonly cells: CellRow[] = Array.from({ length: CELLS }, () => ({ node: undefined, epoch: 0 }));
  /** All commits of nodes, if a test wants them. */
  commits: Commit[] | undefined;
  /** How often each cell has had another owner than the one that let go or was fenced: never (N1). */
  violations: string[] = [];
  #made = 0;

  constructor(clock: Clock, options: MemoryDatabaseOptions = {}) {
    this.clock = clock;
    this.options = options;
  }

  /** A process that has this database. */
  process(name = ''): MemoryProcess {
    this.#made += 1;
    return new MemoryProcess(this, name || `n${this.#made}`);
  }

  ownerOf(cell: number): string | undefined {
    return this.cells[cell]?.node;
  }

  isFenced(node: string): boolean {
    return this.nodes.get(node)?.fenced !== false;
  }

  /** The owner changes hands: only from nobody, from a fenced owner, or by its own will (N1). */
  assign(cell: number, to: string | undefined, by: string): void {
    const row = this.cells[cell];
    if (!row) throw new Error(`no cell ${cell}`);
    if (row.node !== undefined && row.node !== by && !this.isFenced(row.node))
      this.violations.push(`cell ${cell} went from ${row.node}, which lives, to ${to} by ${by}`);
    row.node = to;
    row.epoch += 1;
  }

  fence(node: string): boolean {
    const row = this.nodes.get(node);
    if (!row || row.fenced) return true;
    const { judgesNothing = false } = this.options.faults ?? {};
    if (row.locked && row.beatAt + LEASE_MS >= this.clock.date() && !judgesNothing) return false;
    row.fenced = true;
    return true;
  }
}

/** The store of a process: every query travels to the database, and its answer back. */
class ProcessStore extends TestStore {
  override readonly name: string;
  readonly #process: MemoryProcess;
  readonly #commit: (writes: readonly Write[]) => Promise<void>;

  constructor(process: MemoryProcess, commit: (writes: readonly Write[]) => Promise<void>) {
    super(process.database.data);
    this.name = `memory database, ${process.name}`;
    this.#process = process;
    this.#commit = commit;
  }

  /** In one step at the database: of several processes that claim, one succeeds. A fenced one does not. */
  override ask(query: StoreQuery): Promise<StoreAnswer> {
    if (query.type !== 'claim') return super.ask(query);
    return this.#process.ask(async () => {
      await this.#commit([]);
      return this.inner.ask(query);
    });
  }

  override write(writes: readonly Write[]): Promise<void> {
    const committed = this.#process.ask(() => this.#commit(writes));
    if (!this.#process.database.options.faults?.acknowledgesEarly) return committed;
    committed.catch(() => {});
    return Promise.resolve();
  }

  override read(query: OtherQuery): Promise<StoreAnswer> {
    return this.#process.ask(() => this.inner.ask(query));
  }
}

/** One process of a test, as its database sees it. */
export class MemoryProcess {
  readonly database: MemoryDatabase;
  readonly name: string;
  readonly store: Store;
  /**
   * `paused` and `cut`: nothing reaches the database, or its answers do not arrive. `killed`: for ever. `cleared`: what
   * waits ends with an error.
   */
  #state: 'running' | 'paused' | 'cut' | 'killed' | 'cleared' = 'running';
  #resumed: (() => void)[] = [];
  readonly #cleared: Promise<never>;
  #clear: () => void = () => {};
  /** When the last statement arrived there, and its answer back. */
  readonly #last = { there: 0, back: 0 };
  #members = 0;
  #member: MemoryMember | undefined;

  constructor(database: MemoryDatabase, name: string) {
    this.database = database;
    this.name = name;
    this.#cleared = new Promise((_, reject) => {
      this.#clear = () => reject(new StoreError('closed', `${name} was killed`));
    });
    this.#cleared.catch(() => {});
    const nodes: Nodes = { join: (self, hear) => this.#join(self, hear) };
    this.store = Object.assign(new ProcessStore(this, (writes) => this.#commit(writes)), { nodes });
  }

  get state(): 'running' | 'paused' | 'cut' | 'killed' | 'cleared' {
    return this.#state;
  }

  /** The id of its last seat. */
  get id(): string {
    return this.#member?.id ?? '';
  }

  /** kill -9: the database notices at once that its session has ended. */
  kill(): void {
    this.#state = 'killed';
    this.#member?.stop();
    const row = this.database.nodes.get(this.id);
    if (row) row.locked = false;
  }

  /** SIGSTOP: the session stays, and no beat comes. What is on its way is answered after `resume`. */
  pause(): void {
    this.#state = 'paused';
  }

  /** The network to the database is gone. */
  cut(): void {
    this.#state = 'cut';
  }

  /** SIGCONT, or the network is back. */
  resume(): void {
    if (this.#state === 'killed' || this.#state === 'cleared') return;
    this.#state = 'running';
    for (const resolve of this.#resumed.splice(0)) resolve();
  }

  /** Lets go of a killed process, so that its server can be closed. */
  clear(): void {
    this.#state = 'cleared';
    this.#clear();
  }

  /** What the database answers; it waits while the process is paused or cut off. */
  async ask<T>(answer: () => T | Promise<T>): Promise<T> {
    await this.#reach();
    await this.#pass('there');
    try {
      return await answer();
    } finally {
      await this.#pass('back');
      await this.#reach();
    }
  }

  /** One way. Nothing overtakes on a connection. */
  #pass(way: 'there' | 'back'): Promise<void> | undefined {
    const { clock, options } = this.database;
    if (!options.way) return undefined;
    this.#last[way] = Math.max(this.#last[way], clock.now() + options.way());
    return new Promise((resolve) => clock.after(this.#last[way] - clock.now(), resolve));
  }

  #reach(): Promise<void> | undefined {
    if (this.#state === 'running') return undefined;
    if (this.#state === 'killed' || this.#state === 'cleared') return this.#cleared;
    return new Promise<void>((resolve) => this.#resumed.push(resolve)).then(() => this.#reach());
  }

  #commit(writes: readonly Write[]): Promise<void> {
    const refused = this.database.isFenced(this.id);
    this.database.commits?.push({ node: this.id, writes, refused });
    if (refused && this.database.options.faults?.fencesNobody) {
      this.database.violations.push(`a commit of ${this.id}, which is fenced, was accepted`);
      return this.database.data.commit(writes);
    }
    if (!refused) return this.database.data.commit(writes);
    this.#member?.lose('the database refused a commit');
    return Promise.reject(new StoreError('fenced', `${this.name} is fenced: nothing of the batch was written`));
  }

  async #join(self: { readonly address: string; readonly version: string }, hear: MemberEvents): Promise<Member> {
    await this.ask(() => {});
    this.#members += 1;
    const id = `${this.name}-${this.#members}`;
    const beatAt = this.database.clock.date();
    this.database.nodes.set(id, { ...self, node: id, leaving: false, fenced: false, locked: true, beatAt });
    this.#member = new MemoryMember(id, this, hear);
    this.#member.read();
    this.#member.beatLater();
    return this.#member;
  }
}

class MemoryMember implements Member {
  readonly id: string;
  readonly #process: MemoryProcess;
  readonly #hear: MemberEvents;
  #peers: readonly Peer[] = [];
  #owners: readonly (string | undefined)[] = [];
  /** The peers and the owners of which its listener knows. */
  #seenPeers = '';
  #seenOwners: readonly (string | undefined)[] = [];
  #ended = false;
  #beat: Timer | undefined;

  constructor(id: string, process: MemoryProcess, hear: MemberEvents) {
    this.id = id;
    this.#process = process;
    this.#hear = hear;
  }

  get #database(): MemoryDatabase {
    return this.#process.database;
  }

  date(): number {
    return this.#database.clock.date();
  }

  connected(): boolean {
    const row = this.#database.nodes.get(this.id);
    return row !== undefined && row.beatAt + LEASE_MS >= this.#database.clock.date();
  }

  peers(): readonly Peer[] {
    return this.#peers;
  }

  ownerOf(cell: number): string | undefined {
    return this.#owners[cell];
  }

  claim(cells: readonly number[], observed: string | undefined): Promise<readonly number[]> {
    return this.#change((database) => {
      const won = cells.filter((cell) => {
        if (database.options.faults?.comparesNothing) return true;
        const owner = database.ownerOf(cell);
        return (observed === undefined || owner === observed) && (owner === undefined || database.isFenced(owner));
      });
      for (const cell of won) database.assign(cell, this.id, this.id);
      return won;
    });
  }

  async release(cells: readonly number[], to: string | undefined): Promise<void> {
    await this.#change((database) => {
      const heir = to === undefined || database.isFenced(to) ? undefined : to;
      for (const cell of cells) if (database.ownerOf(cell) === this.id) database.assign(cell, heir, this.id);
    });
  }

  async fence(node: string): Promise<boolean> {
    const fenced = await this.#process.ask(() => !this.#database.isFenced(this.id) && this.#database.fence(node));
    if (fenced) await this.refresh();
    return fenced;
  }

  refresh(): Promise<void> {
    return this.#process.ask(() => this.read());
  }

  async retire(): Promise<void> {
    await this.#process.ask(() => {
      const row = this.#database.nodes.get(this.id);
      if (row) row.leaving = true;
    });
  }

  async leave(): Promise<void> {
    this.stop();
    await this.#process.ask(() => {
      const row = this.#database.nodes.get(this.id);
      if (!row || row.fenced) return;
      for (const [cell, { node }] of this.#database.cells.entries())
        if (node === this.id) this.#database.assign(cell, undefined, this.id);
      this.#database.nodes.delete(this.id);
    });
  }

  stop(): void {
    this.#ended = true;
    this.#beat?.cancel();
  }

  lose(why: string): void {
    if (this.#ended) return;
    this.stop();
    const row = this.#database.nodes.get(this.id);
    if (row) row.locked = false;
    this.#hear.lost(why);
  }

  beatLater(): void {
    const { clock } = this.#database;
    const due = clock.now() + BEAT_MS;
    this.#beat = clock.after(BEAT_MS, () => {
      if (this.#ended) return;
      // A member that does not reach the database for the lease must assume that it is fenced.
      const row = this.#database.nodes.get(this.id);
      if (this.#process.state === 'cut' && row && row.beatAt + LEASE_MS < this.date())
        return this.lose('no beat reached the database in time');
      // A process that stands still delays the beats of all its nodes: whoever is late itself judges nobody.
      const inTime = clock.now() - due < BEAT_MS;
      void this.#process.ask(() => this.#arrive(inTime));
      this.beatLater();
    });
  }

  #arrive(judges: boolean): void {
    if (this.#ended) return;
    const row = this.#database.nodes.get(this.id);
    if (!row || row.fenced) return this.lose('the database has declared this node dead');
    row.beatAt = this.date();
    this.read();
    if (judges) for (const { node } of this.#peers) if (this.#overdue(node)) void this.fence(node);
  }

  #overdue(node: string): boolean {
    const row = this.#database.nodes.get(node);
    return row !== undefined && row.beatAt + LEASE_MS < this.date();
  }

  read(): void {
    if (this.#ended) return;
    if (this.#database.isFenced(this.id)) return this.lose('the database has declared this node dead');
    const rows = [...this.#database.nodes.values()].filter(({ node, fenced }) => !fenced && node !== this.id);
    this.#peers = rows.map(({ node, address, version, leaving }) => ({ node, address, version, leaving }));
    const owners = this.#database.cells.map(({ node }) => node);
    this.#owners = owners;
    const seenPeers = JSON.stringify(this.#peers);
    const isKnown =
      owners.length === this.#seenOwners.length && owners.every((node, cell) => node === this.#seenOwners[cell]);
    if (isKnown && seenPeers === this.#seenPeers) return;
    this.#seenPeers = seenPeers;
    this.#seenOwners = owners;
    this.#hear.changed();
  }

  async #change<T>(act: (database: MemoryDatabase) => T): Promise<T> {
    return this.#process.ask(() => {
      if (this.#ended || this.#database.isFenced(this.id)) {
        this.lose('the database has declared this node dead');
        throw new StoreError('fenced', `${this.id} is no member any more`);
      }
      const result = act(this.#database);
      this.#owners = this.#database.cells.map(({ node }) => node);
      return result;
    });
  }
}
