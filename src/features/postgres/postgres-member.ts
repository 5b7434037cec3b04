/** The seat of a node in PostgreSQL. Every decision is a statement; a thread proves that the node is alive. */

import { randomBytes } from 'node:crypto';
import type { Worker } from 'node:worker_threads';
import { systemClock } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { startThread } from '../../core/kernel/package-files.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { Member, MemberEvents, Peer } from '../../core/store/membership.ts';
import { StoreError } from '../../core/store/store.ts';
import { type BeatStart, type FromBeat, SHARED, type ToBeat } from './beat-protocol.ts';
import {
  BEAT_MS,
  type ChangedCell,
  type ClusterRead,
  ClusterTables,
  LEASE_MS,
  type LiveNode,
} from './cluster-tables.ts';
import type { PostgresAddress } from './postgres-address.ts';
import type { PostgresConnection } from './postgres-connection.ts';
import { postgresError } from './postgres-faults.ts';
import type { PrimaryTimeline } from './primary-timeline.ts';
import { ReconnectingConnection } from './reconnecting-connection.ts';
import type { WriteFence } from './write-fence.ts';

/** Milliseconds in which the database must accept a connection, and answer a statement. */
const ANSWER_MS = 5_000;
/** Milliseconds for the thread to report the end of its attempts to join, after the last of them. */
const REPORT_MS = 2_000;
/** Number of beats whose dates count. A beat that reached a busy event loop late shows an earlier date. */
const DATES = 16;

/** The database of a member, and the fence of its store. */
interface Seat {
  /** Leads to sessions of the database, not through a transaction pooler. */
  readonly address: PostgresAddress;
  readonly schema: string;
  /** Milliseconds for joining. */
  readonly joinMs: number;
  /** Shared with the store: what one connection learns of a promotion, all know. */
  readonly primary: PrimaryTimeline;
  readonly fence: WriteFence;
}

export class PostgresMember implements Member {
  readonly id = randomBytes(12).toString('base64url');
  readonly #seat: Seat;
  readonly #hear: MemberEvents;
  readonly #tables: ClusterTables;
  readonly #connection: ReconnectingConnection;
  readonly #shared = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
  readonly #flags = new Int32Array(this.#shared);
  #thread: Worker | undefined;
  #joined = false;
  #ended = false;
  #peers: readonly Peer[] = [];
  /** The owner and the epoch of each cell: a read that is older than a change of this node does not undo it. */
  readonly #owners: (string | undefined)[] = [];
  readonly #epochs: number[] = [];
  /** The last read of the nodes and of the cells, as text: most reads find what the one before found. */
  #readDate = 0;
  #readNodes = '';
  #readCells = '';
  /** The dates of the last beats, less the monotonic time at which each arrived. */
  readonly #offsets: number[] = [];
  #offset = 0;
  #lastDate = 0;
  /** The time of the last beat that this thread has seen. */
  #arrivedAt = systemClock.now();
  /** Nodes about which the database is being asked: one question at a time for all who wait. */
  readonly #questions = new Map<string, Promise<boolean>>();
  /** Nodes that the database has fenced since the last read without them: a read that was under way still shows them. */
  readonly #fenced = new Set<string>();

  private constructor(seat: Seat, hear: MemberEvents) {
    this.#seat = seat;
    this.#hear = hear;
    this.#tables = new ClusterTables(seat.schema, this.id);
    const options = { connectMs: ANSWER_MS, answerMs: ANSWER_MS, prepares: true, application: 'troupe member' };
    this.#connection = new ReconnectingConnection(seat.address, options, seat.primary, {
      prepare: (connection) => this.#tables.prepare(connection),
      up: () => {},
      down: () => {},
      // The thread meets the same database, and decides how long to wait for it.
      gaveUp: () => {},
    });
  }

  /** Joins the nodes that share a schema, under an id that no node had before. @throws {StoreError} */
  static async join(
    seat: Seat,
    self: { readonly address: string; readonly version: string },
    hear: MemberEvents,
  ): Promise<Member> {
    const member = new PostgresMember(seat, hear);
    try {
      await Promise.all([member.#connection.open(seat.joinMs), member.#beat(self)]);
    } catch (error) {
      await member.#end();
      throw error;
    }
    member.#joined = true;
    seat.fence.join(member.id, () => member.#lose('the database refused a commit: this node is fenced'));
    return member;
  }

  date(): number {
    // Never backwards, although a later beat may correct the offset.
    this.#lastDate = Math.max(this.#lastDate, Math.floor(systemClock.now() + this.#offset));
    return this.#lastDate;
  }

  connected(): boolean {
    return systemClock.now() - this.#arrivedAt < LEASE_MS;
  }

  peers(): readonly Peer[] {
    return this.#peers;
  }

  ownerOf(cell: number): string | undefined {
    return this.#owners[cell];
  }

  async claim(cells: readonly number[], observed: string | undefined): Promise<readonly number[]> {
    const won = await this.#ask((connection) => this.#tables.claim(connection, cells, observed));
    const changed = this.#changed(won);
    if (changed.length > 0 && !this.#ended) this.#seat.fence.took();
    return changed.map(({ cell }) => cell);
  }

  async release(cells: readonly number[], to: string | undefined): Promise<void> {
    this.#changed(await this.#ask((connection) => this.#tables.release(connection, cells, to)));
  }

  fence(node: string): Promise<boolean> {
    // After an outage of the database, nodes that return a moment later than this one are not dead.
    if (Atomics.load(this.#flags, SHARED.steady) !== 1) return Promise.resolve(false);
    const asked = this.#questions.get(node);
    if (asked) return asked;
    const question = this.#ask((connection) => this.#fence(connection, node))
      .then((fenced) => {
        if (fenced) this.#withoutPeer(node);
        return fenced;
      })
      .finally(() => this.#questions.delete(node));
    this.#questions.set(node, question);
    return question;
  }

  /** Its cells are free from now on: the claim of them does not wait for a read of the tables. */
  #withoutPeer(node: string): void {
    if (this.#ended || !this.#peers.some((peer) => peer.node === node)) return;
    this.#fenced.add(node);
    this.#peers = this.#peers.filter((peer) => peer.node !== node);
    this.#readNodes = textOf(this.#peers);
    if (this.#joined) this.#hear.changed();
  }

  async refresh(): Promise<void> {
    const read = await this.#ask((connection) => this.#tables.read(connection));
    if (read) this.#apply(read);
    else this.#lose('the database has declared this node dead');
  }

  async retire(): Promise<void> {
    await this.#ask((connection) => this.#tables.retire(connection));
  }

  async leave(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#seat.fence.leave();
    const connection = this.#connection.current;
    try {
      // Without a connection the lock ends with the thread, and a peer fences the node.
      if (connection) await this.#tables.leave(connection);
    } finally {
      await this.#end();
    }
  }

  async #fence(connection: PostgresConnection, node: string): Promise<boolean> {
    try {
      return await this.#tables.fence(connection, node);
    } catch (error) {
      // A commit under way takes milliseconds. One that takes longer may be that of a paused node.
      if (postgresError(error, '').fault !== 'busy') throw error;
      await this.#tables.endAbandoned(connection);
      return this.#tables.fence(connection, node);
    }
  }

  /** Starts the thread. Resolves when the node has joined. */
  async #beat(self: { readonly address: string; readonly version: string }): Promise<void> {
    const { address, schema, joinMs } = this.#seat;
    const start: BeatStart = { ...self, url: address.url, schema, node: this.id, joinMs, shared: this.#shared };
    const thread = startThread('features/postgres/beat-thread', { name: 'troupe member', workerData: start });
    this.#thread = thread;
    await new Promise<void>((joined, refused) => {
      const late = systemClock.after(joinMs + ANSWER_MS + REPORT_MS, () =>
        refused(new StoreError('busy', `${address.label}: the node did not join within ${durationOf(joinMs)}`)),
      );
      const settle = (act: () => void): void => {
        late.cancel();
        act();
      };
      thread.on('message', (mail: FromBeat) => {
        if (mail.type === 'primary') this.#seat.primary.learn(mail.timeline);
        else if (mail.type === 'refused') settle(() => refused(new StoreError(mail.fault, mail.message)));
        else if (mail.type === 'lost') {
          settle(() => refused(new StoreError('fenced', mail.why)));
          this.#lose(mail.why);
        } else {
          if (mail.type === 'beat') Atomics.store(this.#flags, SHARED.seen, mail.beat);
          this.#arrived(mail.read);
          settle(joined);
        }
      });
      const failed = (why: string): void => {
        settle(() => refused(new StoreError('failed', why)));
        this.#lose(why);
      };
      thread.on('error', (error) => failed(`the thread of the member failed: ${messageOf(error)}`));
      thread.on('exit', () => failed('the thread of the member ended'));
    });
    // The thread does not keep the process alive. A listener for messages does, so this comes last.
    thread.unref();
  }

  #arrived(read: ClusterRead): void {
    if (this.#ended) return;
    this.#arrivedAt = systemClock.now();
    this.#offsets.push(read.date - systemClock.now());
    if (this.#offsets.length > DATES) this.#offsets.shift();
    this.#offset = Math.max(...this.#offsets);
    this.#apply(read);
    for (const { node, leaseMs } of read.nodes) if (leaseMs < BEAT_MS && node !== this.id) this.#fenceIn(leaseMs, node);
  }

  /** Asks about a node when its lease ends, which is before the next read. A node that has beaten by then is alive. */
  #fenceIn(ms: number, node: string): void {
    systemClock.after(Math.max(0, Math.ceil(ms)), () => {
      // If the answer does not come, the next beat shows the node again.
      if (!this.#ended) this.fence(node).catch(() => {});
    });
  }

  #apply({ date, nodes, cells }: ClusterRead): void {
    if (this.#ended || date < this.#readDate) return;
    this.#readDate = date;
    for (const node of this.#fenced) if (!nodes.some((row) => row.node === node)) this.#fenced.delete(node);
    const others = nodes.filter(({ node }) => node !== this.id && !this.#fenced.has(node));
    const nodeText = textOf(others);
    const peersChanged = nodeText !== this.#readNodes;
    if (peersChanged) {
      this.#readNodes = nodeText;
      this.#peers = others.map(peerOf);
    }
    const cellText = cells.map(([owner, list]) => `${owner} ${list}`).join();
    const cellsChanged = cellText !== this.#readCells && this.#applyCells(cells);
    this.#readCells = cellText;
    if (this.#joined && (peersChanged || cellsChanged)) this.#hear.changed();
  }

  /** @returns true if an owner differs from the one that this node knew */
  #applyCells(cells: ClusterRead['cells']): boolean {
    let changed = false;
    for (const [owner, list] of cells) {
      for (const entry of list.split(',')) {
        const colon = entry.indexOf(':');
        const [cell, epoch] = [Number(entry.slice(0, colon)), Number(entry.slice(colon + 1))];
        if (this.#setOwner({ cell, epoch, owner: owner === '' ? undefined : owner })) changed = true;
      }
    }
    return changed;
  }

  #setOwner({ cell, epoch, owner }: ChangedCell): boolean {
    if (epoch < (this.#epochs[cell] ?? 0)) return false;
    this.#epochs[cell] = epoch;
    if (this.#owners[cell] === owner) return false;
    this.#owners[cell] = owner;
    return true;
  }

  /** Records what this node has changed. @throws {StoreError} `fenced` if the database changed nothing for that reason */
  #changed(cells: readonly ChangedCell[] | undefined): readonly ChangedCell[] {
    if (cells) {
      for (const cell of cells) this.#setOwner(cell);
      return cells;
    }
    this.#lose('the database has declared this node dead');
    throw this.#gone();
  }

  async #ask<T>(statement: (connection: PostgresConnection) => Promise<T>): Promise<T> {
    if (this.#ended) throw this.#gone();
    const { label } = this.#seat.address;
    const connection = this.#connection.current;
    if (!connection) throw new StoreError('busy', `${label}: no connection. Retry when the database is back`);
    try {
      return await statement(connection);
    } catch (error) {
      throw postgresError(error, label);
    }
  }

  #gone(): StoreError {
    return new StoreError('fenced', `${this.#seat.address.label}: this node is no member any more`);
  }

  #lose(why: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#seat.fence.leave();
    void this.#end();
    if (this.#joined) this.#hear.lost(why);
  }

  /** Ends the thread, whose lock ends with it, and the connection. */
  async #end(): Promise<void> {
    this.#ended = true;
    const stop: ToBeat = { type: 'stop' };
    this.#thread?.postMessage(stop);
    await this.#connection.close();
  }
}

/** A text that differs for other nodes. */
function textOf(nodes: readonly Pick<Peer, 'node' | 'leaving'>[]): string {
  return nodes.map(({ node, leaving }) => `${node} ${leaving}`).join();
}

function peerOf({ node, address, version, leaving }: LiveNode): Peer {
  return { node, address, version, leaving };
}
