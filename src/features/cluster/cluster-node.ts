/** The node: joins the others in a shared store, claims its share of the cells, and lets go of cells. Governed by `machines/node.ts`. */

import { createHmac, randomInt } from 'node:crypto';
import { type NodeEvent, nodeMachine } from '../../../machines/node.ts';
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { errorFields, type RuntimeLog } from '../../core/kernel/operator-log.ts';
import { step } from '../../core/kernel/step.ts';
import type { CellHolder } from '../../core/messages/cell-holder.ts';
import { CELLS } from '../../core/protocol/cell.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { Member, Nodes, Peer } from '../../core/store/membership.ts';
import { StoreError } from '../../core/store/store.ts';
import type { ClusterReport } from './cluster-report.ts';
import { OwnedCells } from './owned-cells.ts';
import type { Place, Placement } from './placement.ts';
import { sharesOf } from './shares.ts';

/** The links of this node to the others. */
export interface NodeLinksPort {
  /** Listens. @returns the address for other nodes */
  open(): Promise<string>;
  /** Takes part under this id. */
  join(self: string): void;
  /** Closes all links. */
  leave(): void;
  peers(peers: readonly Peer[]): void;
  /** True if this node and the other one reach each other. Absent: all nodes do. */
  reaches?(node: string): boolean;
  /** The reason why they do not. */
  failure?(node: string): string | undefined;
  close(): Promise<void>;
}

interface ClusterNodeOptions {
  readonly nodes: Nodes;
  readonly links: NodeLinksPort;
  /** The parts of the server that hold the data of cells. */
  readonly holder: CellHolder;
  /** Counts cells that this node takes over from a node that has died. */
  readonly metrics: { tookOver(cells: number): void };
  /** The version of this server. */
  readonly version: string;
  /** The secret that all nodes share. */
  readonly secret: string;
  readonly clock: Clock;
  readonly log: RuntimeLog;
  /** Milliseconds that requests in flight have before their cell moves. */
  readonly graceMs: number;
}

/** Milliseconds between two rounds that claim what is free and give up surplus. */
const ROUND_MS = 1_000;
/** Cells that a node gives up in one round because others should own them: twice as many after each round that was quick. */
const SURPLUS = [16, 256] as const;
/** Milliseconds up to which a round was quick: requests for its cells waited no longer. */
const QUICK_MS = 100;
/** Milliseconds that requests in flight have before their surplus cell stays, and until such cells are tried again. */
const BUSY_MS = 1_000;
const BUSY_PAUSE_MS = 30_000;
/** Milliseconds that a request leaves a free cell to the node that should own it, which claims all of them together. */
const OTHERS_MS = 250;
/** Cells that a node that leaves gives up at a time: their requests wait for each other's last writes. */
const GROUP = 64;
/** Milliseconds between the questions whether a node is dead whose link has closed: 3.2 s in total. */
const SUSPECT_MS = [5, 10, 20, 40, 80, 160, 320, 640, 960, 960] as const;
/** Milliseconds between two attempts to join again, doubled up to the second one. */
const REJOIN_MS = [100, 3_200] as const;
/** Milliseconds until an unsettled cell is looked at again. */
const LOOK_MS = 20;
/** Milliseconds after which a node withdraws if it reaches less than half of the others. */
const ISOLATED_MS = 10_000;
/** The same if it reaches half of them, and the additional time of the one with the lesser id: one of two withdraws. */
const HALF_ISOLATED_MS = 11_000;
const SECOND_MS = 3_000;
/**
 * The same for a node that has just joined, which claims no cells before. It is less, so that a node that others cannot
 * reach withdraws before those that serve.
 */
const LINKING_MS = 8_000;
/** Milliseconds after which the log reports that this node and another one do not reach each other. */
const UNREACHED_MS = 3_000;
/** Milliseconds until a node that withdrew joins again, and one that withdrew before it claimed any cell. */
const WITHDRAWN_MS = 30_000;
const UNLINKED_MS = 10_000;
/** Milliseconds that the start waits for the first cells, while other nodes give up theirs. */
const FIRST_CELLS_MS = 5_000;

export class ClusterNode implements Placement {
  readonly #options: ClusterNodeOptions;
  readonly #cells = new OwnedCells();
  #state = nodeMachine.initial;
  #member: Member | undefined;
  #address = '';
  #peersById: ReadonlyMap<string, Peer> = new Map();
  /** The node that should own each cell, and the nodes from which that was computed. */
  #shares: readonly string[] = [];
  #sharers = '';
  /** Cells whose claim is on its way. */
  readonly #claiming = new Set<number>();
  /** Data of cells that is being read, or made durable before it leaves memory. */
  readonly #underway = new Set<Promise<void>>();
  /** Nodes about which the database is being asked. */
  readonly #suspects = new Set<string>();
  #refreshing: Promise<void> | undefined;
  /** The most cells that the next round gives up, and when it may give up those with requests in flight. */
  #surplus: number = SURPLUS[0];
  #busyAt = 0;
  #round: Timer | undefined;
  /** Since when this node has reached at most half of the others. */
  #isolatedSince: number | undefined;
  /** Since when this node and these others have not reached each other; undefined once the log has it. */
  readonly #unreached = new Map<string, number | undefined>();
  /** The date of the database less the monotonic time, since the last seat. */
  #offset: number | undefined;

  constructor(options: ClusterNodeOptions) {
    this.#options = options;
  }

  /** False while the store does not answer: other nodes may have taken over. */
  get connected(): boolean {
    return this.#member?.connected() ?? true;
  }

  /** True if the node serves requests. */
  get ready(): boolean {
    return this.#state.hasTag('ready') && (this.#cells.size > 0 || this.#state.hasTag('ended'));
  }

  /** True while this node may write what belongs to a cell: it serves the cell, takes it up or lets go of it. */
  owns(cell: number): boolean {
    const state = this.#cells.stateOf(cell);
    return state !== 'other' && state !== 'given';
  }

  /** Milliseconds since 1970 by the database. */
  date(): number {
    const { clock } = this.#options;
    if (this.#member) return this.#member.date();
    return this.#offset === undefined ? clock.date() : Math.floor(clock.now() + this.#offset);
  }

  /** Opens the port for links, and joins. @throws {StoreError | Error} */
  async join(): Promise<void> {
    this.#address = await this.#options.links.open();
    await this.#join();
  }

  /** Claims cells, and resolves when the data of the first ones is in memory. @throws {StoreError} */
  async own(): Promise<void> {
    if (!(await this.#link())) return;
    await this.#reconcile();
    const late = this.#delay(FIRST_CELLS_MS);
    await this.#cells.until(() => this.#cells.size > 0 || !this.#member, late.over);
    late.timer.cancel();
    this.#settled();
  }

  cellFor(principal: string): number {
    const { secret } = this.#options;
    return createHmac('sha256', secret).update(principal).digest().readUInt16BE() % CELLS;
  }

  /** A random cell that this node serves. */
  ownCell(): number {
    return this.#cells.random() ?? randomInt(CELLS);
  }

  placeOf(cell: number): Place {
    const state = this.#cells.stateOf(cell);
    if (state === 'here') return HERE;
    const owner = state === 'other' ? this.#member?.ownerOf(cell) : undefined;
    const peer = owner === undefined ? undefined : this.#peersById.get(owner);
    return peer ? { at: 'peer', peer } : UNOWNED;
  }

  enter(cell: number): () => void {
    return this.#cells.enter(cell);
  }

  async settle(cell: number, deadlineMs: number): Promise<Place> {
    const { clock } = this.#options;
    const began = clock.now();
    const end = began + deadlineMs;
    const late = this.#delay(deadlineMs);
    try {
      for (;;) {
        await Promise.race([this.#settleOnce(cell, clock.now() - began < OTHERS_MS, late.over), late.over]);
        const place = this.placeOf(cell);
        if (place.at !== 'nobody') return place;
        if (clock.now() >= end)
          throw new StoreError(
            'busy',
            `no node serves the cell of this request after ${durationOf(deadlineMs)}. Retry`,
          );
        await this.#delay(LOOK_MS).over;
      }
    } finally {
      late.timer.cancel();
    }
  }

  /** True if this node exists and is not fenced. */
  async knows(node: string): Promise<boolean> {
    if (!this.#peersById.has(node)) await this.#refresh();
    return this.#peersById.has(node);
  }

  /** A link to this node has closed: the database decides whether it is dead. */
  async closed(node: string): Promise<void> {
    if (this.#suspects.has(node)) return;
    this.#suspects.add(node);
    for (const ms of SUSPECT_MS) {
      if (!this.#member || !this.#peersById.has(node)) break;
      if (await this.#fenced(node)) break;
      await this.#delay(ms).over;
    }
    this.#suspects.delete(node);
  }

  /** The cluster as this node sees it. */
  report(): ClusterReport {
    const counts = this.#countsOf();
    let free = CELLS;
    for (const [owner, cells] of counts) if (owner === this.#member?.id || this.#peersById.has(owner)) free -= cells;
    const cellsOf = (peer: Peer) => ({ ...peer, cells: counts.get(peer.node) ?? 0 });
    const { version } = this.#options;
    const self = this.#member && {
      node: this.#member.id,
      address: this.#address,
      version,
      leaving: this.#state.hasTag('ended'),
    };
    return {
      node: this.#member?.id,
      state: this.#state.path,
      cells: this.#cells.size,
      moving: this.#cells.all().length - this.#cells.size,
      free,
      nodes: [...(self ? [cellsOf(self)] : []), ...[...this.#peersById.values()].map(cellsOf)],
    };
  }

  /** The number of cells of each owner, dead ones included. */
  #countsOf(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (let cell = 0; cell < CELLS; cell += 1) {
      const owner = this.#member?.ownerOf(cell);
      if (owner !== undefined) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
    return counts;
  }

  /**
   * Gives all cells to the other nodes, one group after the other. Never rejects: what cannot be given becomes free when
   * the node leaves.
   */
  async leave(): Promise<void> {
    if (!this.#step('leave')) return;
    this.#round?.cancel();
    const member = this.#member;
    if (!member) return;
    await this.#giveUpAll(member);
    this.#step('empty');
  }

  async #giveUpAll(member: Member): Promise<void> {
    const { clock, graceMs } = this.#options;
    const end = clock.now() + graceMs;
    try {
      await member.retire();
      while (this.#member === member && this.#cells.size > 0) {
        const [reached, all] = [this.#heirs(), this.#stay()];
        if (all.length === 0) break;
        // Of a node that is cut off, every other one is a better owner.
        const shares = sharesOf(reached.length > 0 ? reached : all);
        const group = this.#quietFirst(this.#cells.here).slice(0, GROUP);
        await this.#giveUp(group, shares, Math.max(0, end - clock.now()), true);
      }
    } catch (error) {
      this.#failed('this node could not give up its cells, which become free when it ends', error);
    }
  }

  /** Gives up the seat. After the last commit of the server. */
  async end(): Promise<void> {
    const member = this.#member;
    this.#round?.cancel();
    this.#step('leave');
    this.#step('left');
    this.#member = undefined;
    this.#keepDate(member);
    // First: while this node has a seat, its peers keep the links on which its last responses travel.
    await this.#options.links.close();
    try {
      await member?.leave();
    } catch (error) {
      this.#failed('this node could not give up its seat: the others notice that it is gone', error);
    }
  }

  async #join(): Promise<void> {
    const { nodes, links, version } = this.#options;
    if (!this.#step('join')) return;
    let member: Member | undefined;
    let lostEarly: string | undefined;
    try {
      member = await nodes.join(
        { address: this.#address, version },
        {
          changed: () => this.#changed(member),
          lost: (why) => {
            if (member) this.#lost(member, why);
            else lostEarly = why;
          },
        },
      );
    } catch (error) {
      this.#step('refused');
      throw error;
    }
    if (lostEarly !== undefined) {
      this.#step('refused');
      throw new StoreError('fenced', `the seat of this node is lost: ${lostEarly}`);
    }
    // The server has begun to stop meanwhile.
    if (!this.#step('joined')) return member.leave();
    this.#member = member;
    links.join(member.id);
    this.#changed(member);
    this.#nextRound();
  }

  /**
   * Waits until this node and most of the others reach each other. A node with a wrong secret or address claims nothing: the
   * requests for its cells would fail.
   *
   * @returns false if it withdraws, or has lost its seat
   */
  async #link(): Promise<boolean> {
    const { clock } = this.#options;
    const member = this.#member;
    if (!member) return false;
    const end = clock.now() + LINKING_MS;
    while (member === this.#member && isMost(this.#missing().length, this.#stay().length)) {
      if (clock.now() >= end) {
        void this.#withdraw(member);
        return false;
      }
      await this.#delay(LOOK_MS).over;
    }
    return member === this.#member && this.#step('linked');
  }

  /** The other nodes that stay, and that this node does not reach. */
  #missing(): readonly string[] {
    const { links } = this.#options;
    return this.#stay().filter((node) => links.reaches?.(node) === false);
  }

  /** Joins again under another id. */
  async #rejoin(): Promise<void> {
    const [first, most] = REJOIN_MS;
    for (let ms: number = first; !this.#state.hasTag('ended'); ms = Math.min(2 * ms, most)) {
      try {
        await this.#join();
        if (this.#member) return await this.own();
      } catch (error) {
        this.#failed(`this node could not join again; next attempt in ${durationOf(ms)}`, error);
      }
      await this.#delay(ms).over;
    }
  }

  #settled(): void {
    if (this.#member && this.#step('settled'))
      this.#log(
        'info',
        `node ${this.#member.id} serves ${this.#cells.size} of ${CELLS} cells${this.#stay().length > 0 ? ', and gets its share within seconds' : ''}`,
      );
  }

  #changed(member: Member | undefined): void {
    if (!member || member !== this.#member) return;
    const peers = member.peers();
    const before = this.#peersById;
    this.#peersById = new Map(peers.map((peer) => [peer.node, peer]));
    this.#logPeers(before);
    this.#options.links.peers(peers);
    void this.#reconcile();
  }

  #logPeers(before: ReadonlyMap<string, Peer>): void {
    for (const { node, address } of this.#peersById.values())
      if (!before.has(node)) this.#log('info', `node ${node} at ${address} has joined`);
    for (const { node, address, leaving } of before.values()) {
      if (this.#peersById.has(node)) continue;
      const cells = this.#countsOf().get(node);
      const taken = cells === undefined ? '' : `. Other nodes take over its ${cells} cells`;
      // A node that leaves gives its cells away before. It may get more from nodes that do not know yet that it leaves.
      if (cells === undefined || leaving) this.#log('info', `node ${node} at ${address} has left${taken}`);
      else this.#log('warning', `node ${node} at ${address} is dead${taken}`);
    }
  }

  /** Reports, once, each node that this one does not reach for some time. */
  #logUnreached(): void {
    const now = this.#options.clock.now();
    const missing = this.#missing();
    for (const node of this.#unreached.keys()) if (!missing.includes(node)) this.#unreached.delete(node);
    for (const node of missing) {
      if (!this.#unreached.has(node)) this.#unreached.set(node, now);
      const since = this.#unreached.get(node);
      if (since === undefined || now - since < UNREACHED_MS) continue;
      this.#unreached.set(node, undefined);
      const address = this.#peersById.get(node)?.address;
      this.#log('warning', `node ${node} at ${address} and this node do not reach each other: ${this.#reason(node)}`);
    }
  }

  #reason(node: string): string {
    return this.#options.links.failure?.(node) ?? 'the link is not open';
  }

  #nextRound(): void {
    const member = this.#member;
    this.#round?.cancel();
    this.#round = this.#options.clock.after(ROUND_MS, () => {
      if (!member || member !== this.#member) return;
      this.#nextRound();
      void this.#reconcile();
      this.#giveSurplus();
      this.#logUnreached();
      if (this.#isIsolated(member)) void this.#withdraw(member);
    });
  }

  /** Claims the share of this node in what is free, and takes up what other nodes have given to it. */
  async #reconcile(): Promise<void> {
    const member = this.#member;
    if (!member || !this.#state.hasTag('claiming')) return;
    const shares = this.#sharesNow(member);
    const free: number[] = [];
    const given: number[] = [];
    for (let cell = 0; cell < CELLS; cell += 1) {
      if (this.#cells.stateOf(cell) !== 'other') continue;
      const owner = member.ownerOf(cell);
      if (owner === member.id) given.push(cell);
      else if (shares[cell] === member.id && !(owner !== undefined && this.#peersById.has(owner))) free.push(cell);
    }
    await Promise.all([this.#take(member, given), this.#claim(member, free)]);
  }

  #sharesNow(member: Member): readonly string[] {
    const sharers = [member.id, ...this.#heirs()].sort();
    const text = sharers.join();
    if (text !== this.#sharers) {
      this.#sharers = text;
      this.#shares = sharesOf(sharers);
    }
    return this.#shares;
  }

  /** The other nodes that stay. */
  #stay(): readonly string[] {
    return [...this.#peersById.values()].filter(({ leaving }) => !leaving).map(({ node }) => node);
  }

  /** Those of them that get cells: requests for the cells of the others would fail. */
  #heirs(): readonly string[] {
    const { links } = this.#options;
    return this.#stay().filter((node) => links.reaches?.(node) !== false);
  }

  async #claim(member: Member, cells: readonly number[]): Promise<void> {
    const claimed = cells.filter((cell) => !this.#claiming.has(cell));
    if (claimed.length === 0) return;
    for (const cell of claimed) this.#claiming.add(cell);
    try {
      // A node that leaves gives its cells away. A free cell that still has an owner is that of a node that has died.
      const orphans = new Set(claimed.filter((cell) => member.ownerOf(cell) !== undefined));
      const won = await member.claim(claimed, undefined);
      this.#options.metrics.tookOver(won.filter((cell) => orphans.has(cell)).length);
      await this.#take(member, won);
    } catch (error) {
      this.#failed(`this node could not claim ${claimed.length} cells; the next round tries again`, error);
    } finally {
      for (const cell of claimed) this.#claiming.delete(cell);
    }
  }

  /** Reads the data of cells that this node owns, and serves them from then on. */
  async #take(member: Member, cells: readonly number[]): Promise<void> {
    const owned = cells.filter((cell) => this.#cells.stateOf(cell) === 'other');
    if (owned.length === 0 || member !== this.#member) return;
    this.#cells.set(owned, 'taking');
    const taking = this.#options.holder.take(owned);
    try {
      await this.#follow(taking);
      // Lost meanwhile: `#lost` discards what was read.
      if (member === this.#member) this.#cells.set(owned, 'here');
    } catch (error) {
      if (member !== this.#member) return;
      this.#failed(`this node could not read ${owned.length} cells; the next round tries again`, error);
      await this.#options.holder
        .drop(new Set(owned), false)
        .catch((error: unknown) => this.#failed('this node could not discard the data of its cells', error));
      // Still owned: the next round reads it again.
      if (member === this.#member) this.#cells.set(owned, 'other');
    }
  }

  /** A seat that follows this one waits for the work, which would meet its data. */
  async #follow(work: Promise<void>): Promise<void> {
    const pending = work.catch(() => {});
    this.#underway.add(pending);
    try {
      await work;
    } finally {
      this.#underway.delete(pending);
    }
  }

  /** Gives up some cells that other nodes should own and that do no work: first those without requests. */
  #giveSurplus(): void {
    const member = this.#member;
    if (!member || !this.ready || !this.#state.hasTag('claiming')) return;
    const { clock } = this.#options;
    const shares = this.#sharesNow(member);
    const foreign = this.#cells.here.filter((cell) => shares[cell] !== member.id);
    if (foreign.length === 0) return;
    const working = this.#working();
    const surplus = foreign.filter((cell) => !working.has(cell));
    let group = surplus.filter((cell) => this.#cells.requests(cell) === 0).slice(0, this.#surplus);
    const began = clock.now();
    if (group.length === 0 && began >= this.#busyAt) {
      this.#busyAt = began + BUSY_PAUSE_MS;
      group = surplus.slice(0, SURPLUS[0]);
    }
    if (group.length === 0) return;
    const [least, most] = SURPLUS;
    const more = group.length === this.#surplus ? Math.min(2 * this.#surplus, most) : this.#surplus;
    this.#surplus = least;
    this.#giveUp(group, shares, BUSY_MS, false).then(
      () => {
        if (clock.now() - began <= QUICK_MS) this.#surplus = more;
      },
      (error: unknown) =>
        this.#failed(`this node could not give up ${group.length} cells; the next round tries again`, error),
    );
  }

  #working(): ReadonlySet<number> {
    return new Set(this.#options.holder.working?.());
  }

  /**
   * True if this node has reached too few of the others for too long, although all reach the database. Of two nodes that do
   * not reach each other, only one may withdraw. A node that reaches most of the others stays.
   */
  #isIsolated(member: Member): boolean {
    const { clock } = this.#options;
    const [others, missing] = [this.#stay(), this.#missing()];
    if (!isMost(missing.length, others.length)) {
      this.#isolatedSince = undefined;
      return false;
    }
    this.#isolatedSince ??= clock.now();
    const isHalf = 2 * missing.length === others.length || others.length === 1;
    const second = isHalf && missing.some((node) => member.id < node) ? SECOND_MS : 0;
    return clock.now() - this.#isolatedSince >= (isHalf ? HALF_ISOLATED_MS + second : ISOLATED_MS);
  }

  /** Gives up all cells and the seat, and joins again later. */
  async #withdraw(member: Member): Promise<void> {
    const pauseMs = this.#state.hasTag('claiming') ? WITHDRAWN_MS : UNLINKED_MS;
    if (!this.#step('isolate')) return;
    this.#isolatedSince = undefined;
    const [others, missing] = [this.#stay(), this.#missing()];
    const reasons = missing.map((node) => `${node} at ${this.#peersById.get(node)?.address}: ${this.#reason(node)}`);
    this.#log(
      'error',
      `node ${member.id} withdraws: it reaches ${others.length - missing.length} of ${others.length} other nodes. ${reasons.join('; ')}`,
    );
    await this.#giveUpAll(member);
    if (member !== this.#member || this.#state.hasTag('ended')) return;
    this.#round?.cancel();
    // The cells that are left become free with the seat.
    const kept = new Set(this.#cells.all());
    try {
      await this.#follow(this.#options.holder.drop(kept, true));
    } catch (error) {
      this.#failed('this node could not make everything durable before it withdrew', error);
    }
    // Fenced meanwhile: it may have another seat by now.
    if (member !== this.#member || this.#state.hasTag('ended')) return;
    this.#keepDate(member);
    this.#member = undefined;
    this.#cells.set(kept, 'other');
    this.#peersById = new Map();
    this.#options.links.leave();
    await member.leave().catch((error: unknown) => this.#failed('this node could not give up its seat', error));
    if (!this.#step('released')) return;
    await this.#delay(pauseMs).over;
    await this.#rejoin();
  }

  #quietFirst(cells: readonly number[]): readonly number[] {
    return [...cells].sort((a, b) => this.#cells.requests(a) - this.#cells.requests(b));
  }

  /**
   * Lets go of cells: requests in flight end, everything becomes durable and leaves memory, then each cell gets its next
   * owner.
   *
   * @param group the cells
   * @param shares the next owner of each cell
   * @param graceMs milliseconds that the requests in flight have
   * @param interrupts whether a cell moves although its requests and tasks have not ended by then; otherwise it stays
   * @throws {StoreError} if the store cannot change the owners; this node then serves the cells again
   */
  async #giveUp(
    group: readonly number[],
    shares: readonly string[],
    graceMs: number,
    interrupts: boolean,
  ): Promise<void> {
    const member = this.#member;
    if (!member) return;
    this.#cells.set(group, 'moving');
    const late = this.#delay(graceMs);
    const isQuiet = (cell: number): boolean => this.#cells.requests(cell) === 0;
    await this.#cells.until(() => group.every(isQuiet), late.over);
    late.timer.cancel();
    if (member !== this.#member) return;
    const working = interrupts ? undefined : this.#working();
    const cells = working ? group.filter((cell) => isQuiet(cell) && !working.has(cell)) : group;
    if (cells.length < group.length)
      this.#cells.set(
        group.filter((cell) => !cells.includes(cell)),
        'here',
      );
    if (cells.length === 0) return;
    try {
      await this.#follow(this.#options.holder.drop(new Set(cells), true));
      if (member !== this.#member) return;
      // A commit that ends after the next owner has read would be lost to it: a task would run twice.
      this.#cells.set(cells, 'given');
      await this.#options.holder.written?.();
      for (const heir of new Set(cells.map((cell) => shares[cell]))) {
        const inherited = cells.filter((cell) => shares[cell] === heir);
        if (member === this.#member) await member.release(inherited, heir);
      }
    } catch (error) {
      // Nothing of them may stay in memory: the next round takes up those that this node still owns. A seat that is lost
      // has discarded them, and they may be data of the next one.
      if (member === this.#member) await this.#options.holder.drop(new Set(cells), false);
      throw error;
    } finally {
      if (member === this.#member) this.#cells.set(cells, 'other');
    }
  }

  /** @param others whether another node that should own the cell may claim it first */
  async #settleOnce(cell: number, others: boolean, late: Promise<void>): Promise<void> {
    const member = this.#member;
    if (!member) return;
    const state = this.#cells.stateOf(cell);
    if (state === 'here') return;
    if (state !== 'other') return this.#cells.until(() => ['here', 'other'].includes(this.#cells.stateOf(cell)), late);
    await this.#refresh();
    if (member !== this.#member || this.#cells.stateOf(cell) !== 'other') return;
    const owner = member.ownerOf(cell);
    if (owner === member.id) return this.#take(member, [cell]);
    if (owner !== undefined && this.#peersById.has(owner)) {
      if (!this.#suspects.has(owner) || !(await this.#fenced(owner))) return;
    }
    if (!this.#state.hasTag('claiming') || (others && this.#sharesNow(member)[cell] !== member.id)) return;
    await this.#claim(member, [cell]);
  }

  /** Reads nodes and owners, once for all who wait. */
  #refresh(): Promise<void> {
    const member = this.#member;
    if (!member) return Promise.resolve();
    this.#refreshing ??= member
      .refresh()
      .then(() => this.#changed(member))
      .catch((error: unknown) => this.#failed('this node could not read the owners of cells', error))
      .finally(() => {
        this.#refreshing = undefined;
      });
    return this.#refreshing;
  }

  /** Asks the database whether a node is dead. */
  async #fenced(node: string): Promise<boolean> {
    const member = this.#member;
    if (!member) return false;
    try {
      const fenced = await member.fence(node);
      if (fenced) this.#changed(member);
      return fenced;
    } catch (error) {
      this.#failed(`it is unknown whether node ${node} is dead`, error);
      return false;
    }
  }

  /** Discards everything of the cells within this turn, and joins again under another id. */
  #lost(member: Member, why: string): void {
    if (member !== this.#member) return;
    this.#keepDate(member);
    this.#member = undefined;
    this.#step('lost');
    this.#round?.cancel();
    const cells = new Set(this.#cells.all());
    const dropped = this.#options.holder.drop(cells, false);
    this.#cells.set(cells, 'other');
    this.#peersById = new Map();
    this.#options.links.leave();
    this.#log('error', `node ${member.id} has lost its ${cells.size} cells, and discards what it has of them: ${why}`);
    void this.#discard(cells, dropped);
  }

  async #discard(cells: ReadonlySet<number>, dropped: Promise<void>): Promise<void> {
    try {
      await dropped;
      // Data that was being read then has arrived now.
      if (this.#underway.size > 0) {
        await Promise.all(this.#underway);
        await this.#options.holder.drop(cells, false);
      }
    } catch (error) {
      this.#failed('this node could not discard the data of its cells', error);
    }
    if (this.#step('released')) await this.#rejoin();
  }

  #keepDate(member: Member | undefined): void {
    if (member) this.#offset = member.date() - this.#options.clock.now();
  }

  #step(event: NodeEvent['type']): boolean {
    const next = step(this.#state, { type: event });
    if (!next) return false;
    this.#state = next;
    return true;
  }

  #delay(ms: number): { readonly timer: Timer; readonly over: Promise<void> } {
    let end = (): void => {};
    const over = new Promise<void>((resolve) => {
      end = resolve;
    });
    return { timer: this.#options.clock.after(ms, end), over };
  }

  #log(level: 'info' | 'warning' | 'error', what: string): void {
    this.#options.log(level, what, { event: 'cluster' });
  }

  #failed(what: string, error: unknown): void {
    if (this.#state.status === 'done') return;
    this.#options.log('warning', `${what}: ${messageOf(error)}`, errorFields('store', error));
  }
}

/** True for half of them or more; false for none. */
function isMost(missing: number, others: number): boolean {
  return missing > 0 && 2 * missing >= others;
}

const HERE: Place = { at: 'here' };
const UNOWNED: Place = { at: 'nobody' };
