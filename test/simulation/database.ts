/**
 * A simulated database that several processes share: rows, nodes, cells and leases under a simulated clock. Each process
 * has a connection that can be slow, cut off, or end with it. The database itself is never wrong.
 */
import { CELLS } from '../../src/protocol/cell.ts';
import type { Member, MemberEvents, Nodes, Peer } from '../../src/store/membership.ts';
import {
  type ActorRow,
  type DeadLetter,
  type JournalEvent,
  type ListQuery,
  type Store,
  type Stored,
  StoreError,
  type StreamRow,
  type TimerRow,
  type Write,
} from '../../src/store/store.ts';
import type { SimulatedClock } from '../../src/testing.ts';
import type { Random } from './random.ts';
import { Rows } from './rows.ts';

const ALL_CELLS: readonly number[] = Array.from({ length: CELLS }, (_, cell) => cell);
const LEASE_MS = 2_000;
const BEAT_MS = 500;
/** Most milliseconds of each way between a process and its database. */
const WAY_MS = 3;

/** How the database is broken, for the tests of the simulator itself. */
export interface DatabaseBreaks {
  /** It accepts commits of fenced nodes. */
  readonly fencesNobody?: boolean;
  /** It answers before it has done what it was asked. */
  readonly acknowledgesEarly?: boolean;
  /** It gives a cell to every node that asks, whoever owns it. */
  readonly comparesNothing?: boolean;
  /** It fences a node because another one asks for it. */
  readonly judgesNothing?: boolean;
}

export interface DatabaseOptions {
  readonly clock: SimulatedClock;
  readonly random: Random;
  readonly breaks?: DatabaseBreaks;
  trace(line: string): void;
  violated(what: string): void;
}

interface NodeRow {
  readonly id: string;
  readonly address: string;
  readonly version: string;
  /** Its session holds the lock while this is true. */
  readonly holds: () => boolean;
  at: number;
  fenced: boolean;
  leaving: boolean;
}

/** What a node has read of the nodes and the cells. */
interface ClusterRead {
  readonly peers: readonly Peer[];
  readonly cells: readonly ReadCell[];
  readonly overdue: readonly string[];
}

interface ReadCell {
  readonly cell: number;
  readonly owner: string | undefined;
  readonly epoch: number;
}

interface CellRow {
  owner: string | undefined;
  epoch: number;
}

export class SimulatedDatabase {
  readonly options: DatabaseOptions;
  readonly rows = new Rows();
  readonly nodes = new Map<string, NodeRow>();
  readonly cells: readonly CellRow[] = ALL_CELLS.map(() => ({ owner: undefined, epoch: 0 }));
  /** Nodes that were fenced. */
  fencings = 0;
  #joined = 0;

  constructor(options: DatabaseOptions) {
    this.options = options;
  }

  /** The connection of a new process. */
  connect(): DatabaseProcess {
    return new DatabaseProcess(this);
  }

  /** N1 to N3 hold here, or the simulator is broken on purpose. */
  commit(node: string | undefined, writes: readonly Write[]): void {
    const { breaks = {}, violated, trace } = this.options;
    const fenced = node !== undefined && !this.#lives(node);
    if (fenced && !breaks.fencesNobody) throw fault('fenced');
    if (fenced) violated(`N2: the database accepted a commit of ${node}, which is fenced`);
    const refusal = this.rows.refusal(writes);
    if (refusal) throw refusal;
    this.rows.apply(writes);
    trace(`database: ${node} commits ${writes.map(({ type }) => type).join(', ')}`);
  }

  join(address: string, version: string, holds: () => boolean): string {
    this.#joined += 1;
    const id = `node${this.#joined}`;
    const at = this.options.clock.now();
    this.nodes.set(id, { id, address, version, holds, at, fenced: false, leaving: false });
    this.options.trace(`database: ${id} joins`);
    return id;
  }

  /** @returns false if the node is fenced */
  beat(id: string): boolean {
    const row = this.nodes.get(id);
    if (!row || row.fenced) return false;
    row.at = this.options.clock.now();
    return true;
  }

  claim(id: string, cells: readonly number[], observed: string | undefined): readonly number[] {
    if (!this.#lives(id)) throw fault('fenced');
    return cells.filter((cell) => {
      const row = this.#cell(cell);
      const free = row.owner === undefined || this.nodes.get(row.owner)?.fenced === true;
      if (!this.options.breaks?.comparesNothing && (!free || (observed !== undefined && row.owner !== observed)))
        return false;
      if (!free) this.options.violated(`N1: ${id} takes cell ${cell} of ${row.owner}, which lives`);
      this.#own(row, id);
      return true;
    });
  }

  release(id: string, cells: readonly number[], to: string | undefined): void {
    if (!this.#lives(id)) throw fault('fenced');
    const heir = to !== undefined && this.#lives(to) ? to : undefined;
    for (const cell of cells) {
      const row = this.#cell(cell);
      if (row.owner === id) this.#own(row, heir);
    }
  }

  fence(id: string): boolean {
    const row = this.nodes.get(id);
    if (!row || row.fenced) return true;
    const dead = !row.holds() || row.at + LEASE_MS < this.options.clock.now();
    if (!dead && !this.options.breaks?.judgesNothing) return false;
    row.fenced = true;
    this.fencings += 1;
    this.options.trace(`database: ${id} is fenced`);
    return true;
  }

  retire(id: string): void {
    const row = this.nodes.get(id);
    if (row) row.leaving = true;
  }

  leave(id: string): void {
    for (const row of this.cells) if (row.owner === id) this.#own(row, undefined);
    this.nodes.delete(id);
    this.options.trace(`database: ${id} leaves`);
  }

  /** The nodes that live, without this one; undefined if this one is fenced. */
  peersOf(id: string): readonly Peer[] | undefined {
    if (!this.#lives(id)) return undefined;
    return [...this.nodes.values()].flatMap(({ id: node, address, version, leaving, fenced }) =>
      fenced || node === id ? [] : [{ node, address, version, leaving }],
    );
  }

  /** The nodes whose lease is over. */
  overdue(): readonly string[] {
    const now = this.options.clock.now();
    return [...this.nodes.values()].flatMap(({ id, at, fenced }) => (!fenced && at + LEASE_MS < now ? [id] : []));
  }

  /** The owner and the epoch of these cells, or of all. */
  read(cells: readonly number[] = ALL_CELLS): readonly ReadCell[] {
    return cells.map((cell) => ({ cell, ...this.#cell(cell) }));
  }

  /** Number of cells without a living owner. */
  homeless(): number {
    return this.cells.filter(({ owner }) => owner === undefined || !this.#lives(owner)).length;
  }

  #lives(id: string): boolean {
    return this.nodes.get(id)?.fenced === false;
  }

  #cell(cell: number): CellRow {
    const row = this.cells[cell];
    if (!row) throw new Error(`there is no cell ${cell}`);
    return row;
  }

  #own(row: CellRow, owner: string | undefined): void {
    row.owner = owner;
    row.epoch += 1;
  }
}

function fault(name: 'fenced' | 'closed' | 'busy'): StoreError {
  return new StoreError(name, `the simulated database: ${name}`);
}

/** One process: its store, and its seat among the nodes. */
export class DatabaseProcess implements Store {
  readonly name = 'simulated database';
  readonly durable = true;
  readonly nodes: Nodes = { join: (self, hear) => this.#join(self, hear) };
  readonly #database: SimulatedDatabase;
  readonly #random: Random;
  #state: 'new' | 'open' | 'closed' | 'dead' = 'new';
  /** SIGSTOP: nothing that arrives is seen, and nothing leaves. */
  #paused = false;
  #cut = false;
  /** What waits for the way to be whole, or for the process to run again. */
  #stalled: (() => void)[] = [];
  #member: SimulatedMember | undefined;
  /** Nothing overtakes on a connection: the times at which the last request arrives, and its answer. */
  #arrival = 0;
  #answer = 0;

  constructor(database: SimulatedDatabase) {
    this.#database = database;
    this.#random = database.options.random.fork();
  }

  /** The node for which it commits; undefined before it joins. */
  get member(): string | undefined {
    return this.#member?.id;
  }

  /** Its process is gone: its session ends, and nothing that it waits for comes. */
  kill(): void {
    this.#state = 'dead';
    this.#stalled = [];
  }

  /** Its process is only to be cleared away. */
  clear(): void {
    this.#state = 'closed';
    this.resume();
    this.heal();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#goOn();
  }

  cut(): void {
    this.#cut = true;
  }

  heal(): void {
    this.#cut = false;
    this.#goOn();
  }

  async open(): Promise<void> {
    await this.#ask(() => undefined);
    this.#state = 'open';
  }

  impairment(): 'not open' | undefined {
    return this.#state === 'open' && !this.#cut ? undefined : 'not open';
  }

  commit(writes: readonly Write[]): Promise<void> {
    if (this.#state === 'closed') return Promise.reject(fault('closed'));
    // It asks for the node now: a member that joins anew must not commit what its predecessor asked for.
    const member = this.#member;
    if (member?.ended) return Promise.reject(fault('fenced'));
    const done = this.#ask(() => this.#database.commit(member?.id, writes));
    // The refusal of a commit is the first that a node hears of its end.
    done.catch((error: unknown) => error instanceof StoreError && error.fault === 'fenced' && member?.lose());
    if (!this.#database.options.breaks?.acknowledgesEarly) return done;
    done.catch(() => {});
    return Promise.resolve();
  }

  first(actor: ActorRow, snapshot: NonNullable<Stored['snapshot']>): Promise<Stored> {
    return this.#ask(() => {
      const { rows } = this.#database;
      if (!rows.load(actor.id))
        rows.apply([
          { type: 'actor', actor },
          { type: 'snapshot', actor: actor.id, ...snapshot },
        ]);
      const stored = rows.load(actor.id);
      if (!stored) throw new Error(`${actor.id} was not stored`);
      return stored;
    });
  }

  load(actor: string): Promise<Stored | undefined> {
    return this.#ask(() => this.#database.rows.load(actor));
  }

  list(query: ListQuery): Promise<readonly ActorRow[]> {
    return this.#ask(() => this.#database.rows.list(query));
  }

  events(actor: string, stream: string, after: number, limit: number): Promise<readonly JournalEvent[]> {
    return this.#ask(() => this.#database.rows.events(actor, stream, after, limit));
  }

  streams(actor: string): Promise<readonly StreamRow[]> {
    return this.#ask(() => this.#database.rows.streams(actor));
  }

  reply(actor: string, request: string): Promise<string | undefined> {
    return this.#ask(() => this.#database.rows.reply(actor, request));
  }

  timers(until: number, limit: number, cells?: readonly number[]): Promise<readonly TimerRow[]> {
    return this.#ask(() => this.#database.rows.timers(until, limit, cells));
  }

  deadLetters(limit: number): Promise<readonly DeadLetter[]> {
    return this.#ask(() => this.#database.rows.deadLetters(limit));
  }

  async sweep(now: number): Promise<number> {
    const expired = await this.#ask(() => this.#database.rows.expired(now));
    if (expired.length > 0) await this.commit(expired);
    return expired.length;
  }

  async close(): Promise<void> {
    if (this.#state !== 'open') return;
    await this.#ask(() => undefined);
    this.#state = 'closed';
  }

  async #join(self: { readonly address: string; readonly version: string }, hear: MemberEvents): Promise<Member> {
    const holds = (): boolean => this.#state !== 'dead' && !member.ended;
    const member: SimulatedMember = new SimulatedMember(this.#database, hear, (act) => this.#ask(act));
    member.id = await this.#ask(() => this.#database.join(self.address, self.version, holds));
    await member.refresh();
    this.#member = member;
    member.begin();
    return member;
  }

  /** One statement: its way there, its execution, and the way back. */
  #ask<T>(act: () => T): Promise<T> {
    const { clock } = this.#database.options;
    return new Promise((resolve, reject) => {
      const arrive = (): void => {
        if (this.#state === 'dead') return;
        if (this.#cut) return void this.#stalled.push(arrive);
        let tell: () => void;
        try {
          const value = act();
          tell = () => resolve(value);
        } catch (error) {
          tell = () => reject(error);
        }
        const heard = (): void => {
          if (this.#state === 'dead') return;
          if (this.#cut || this.#paused) this.#stalled.push(heard);
          else tell();
        };
        this.#answer = Math.max(this.#answer, clock.now() + this.#random.below(WAY_MS));
        clock.after(this.#answer - clock.now(), heard);
      };
      const leave = (): void => {
        if (this.#state === 'dead') return;
        if (this.#paused) return void this.#stalled.push(leave);
        this.#arrival = Math.max(this.#arrival, clock.now() + this.#random.below(WAY_MS));
        clock.after(this.#arrival - clock.now(), arrive);
      };
      leave();
    });
  }

  #goOn(): void {
    for (const act of this.#stalled.splice(0)) act();
  }
}

class SimulatedMember implements Member {
  id = '';
  ended = false;
  readonly #database: SimulatedDatabase;
  readonly #hear: MemberEvents;
  readonly #ask: <T>(act: () => T) => Promise<T>;
  #peers: readonly Peer[] = [];
  readonly #owners: (string | undefined)[] = [];
  readonly #epochs: number[] = [];
  /** Since when each beat was answered in time; undefined after a break. */
  #steadySince: number;
  #answered: number;
  #lastDate = 0;

  constructor(database: SimulatedDatabase, hear: MemberEvents, ask: <T>(act: () => T) => Promise<T>) {
    this.#database = database;
    this.#hear = hear;
    this.#ask = ask;
    this.#answered = database.options.clock.now();
    this.#steadySince = this.#answered;
  }

  begin(): void {
    this.#database.options.clock.after(BEAT_MS, () => {
      if (this.ended) return;
      void this.#beat().catch(() => {});
      this.begin();
    });
  }

  date(): number {
    this.#lastDate = Math.max(this.#lastDate, this.#database.options.clock.date());
    return this.#lastDate;
  }

  peers(): readonly Peer[] {
    return this.#peers;
  }

  ownerOf(cell: number): string | undefined {
    return this.#owners[cell];
  }

  async claim(cells: readonly number[], observed: string | undefined): Promise<readonly number[]> {
    const won = await this.#asking(() => {
      const taken = this.#database.claim(this.id, cells, observed);
      return this.#database.read(taken);
    });
    this.#set(won);
    return won.map(({ cell }) => cell);
  }

  async release(cells: readonly number[], to: string | undefined): Promise<void> {
    const given = await this.#asking(() => {
      this.#database.release(this.id, cells, to);
      return this.#database.read(cells);
    });
    this.#set(given);
  }

  async fence(node: string): Promise<boolean> {
    const { clock } = this.#database.options;
    if (clock.now() - this.#steadySince <= LEASE_MS) return false;
    const fenced = await this.#asking(() => this.#database.fence(node));
    if (fenced) await this.refresh();
    return fenced;
  }

  async refresh(): Promise<void> {
    this.#apply(await this.#asking(() => this.#read()));
  }

  async retire(): Promise<void> {
    await this.#asking(() => this.#database.retire(this.id));
  }

  async leave(): Promise<void> {
    if (this.ended) return;
    this.ended = true;
    await this.#ask(() => this.#database.leave(this.id));
  }

  async #beat(): Promise<void> {
    const read = await this.#ask(() => {
      this.#database.beat(this.id);
      return this.#read();
    });
    const now = this.#database.options.clock.now();
    if (now - this.#answered > 2 * BEAT_MS) this.#steadySince = now;
    this.#answered = now;
    this.#apply(read);
    for (const node of read?.overdue ?? []) if (node !== this.id) void this.fence(node).catch(() => {});
  }

  #read(): ClusterRead | undefined {
    const peers = this.#database.peersOf(this.id);
    if (!peers) return undefined;
    return { peers, cells: this.#database.read(), overdue: this.#database.overdue() };
  }

  #apply(read: ClusterRead | undefined): void {
    if (this.ended) return;
    if (!read) return this.lose();
    const names = (peers: readonly Peer[]): string => peers.map(({ node, leaving }) => `${node} ${leaving}`).join();
    const peersChanged = names(read.peers) !== names(this.#peers);
    this.#peers = read.peers;
    const ownersChanged = this.#set(read.cells);
    if (peersChanged || ownersChanged) this.#hear.changed();
  }

  /** A read that is older than a change of this node does not undo it. @returns true if an owner changed */
  #set(cells: readonly ReadCell[]): boolean {
    let changed = false;
    for (const { cell, owner, epoch } of cells) {
      if (epoch < (this.#epochs[cell] ?? 0)) continue;
      if (this.#owners[cell] !== owner) changed = true;
      this.#owners[cell] = owner;
      this.#epochs[cell] = epoch;
    }
    return changed;
  }

  async #asking<T>(act: () => T): Promise<T> {
    if (this.ended) throw fault('fenced');
    try {
      return await this.#ask(act);
    } catch (error) {
      if (error instanceof StoreError && error.fault === 'fenced') this.lose();
      throw error;
    }
  }

  lose(): void {
    if (this.ended) return;
    this.ended = true;
    this.#hear.lost('the simulated database has declared this node dead');
  }
}
