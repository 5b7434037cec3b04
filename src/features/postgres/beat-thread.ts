/**
 * The thread of a member: holds the lock of its node, writes the beat, and reads nodes and cells. A blocked event loop
 * does not delay it, so the database learns for how long the loop has been blocked.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock, type Timer } from '../../core/kernel/clock.ts';
import type { StoreError } from '../../core/store/store.ts';
import { type BeatStart, type FromBeat, SHARED, type ToBeat } from './beat-protocol.ts';
import { BEAT_MS, type ClusterRead, ClusterTables, LEASE_MS } from './cluster-tables.ts';
import { PostgresAddress } from './postgres-address.ts';
import type { PostgresConnection } from './postgres-connection.ts';
import { postgresError } from './postgres-faults.ts';
import { PrimaryTimeline } from './primary-timeline.ts';
import { type ConnectionOwner, ReconnectingConnection } from './reconnecting-connection.ts';

/**
 * Milliseconds between two answers above which the connection counts as interrupted. While the database stood still for
 * less, the lease of no node has ended: its last beat was one interval older.
 */
const BREAK_MS = LEASE_MS - BEAT_MS;
/** Milliseconds in which the database must accept a connection, and answer a statement. */
const ANSWER_MS = 5_000;
/** Milliseconds without a beat after which the node assumes that it is fenced. An outage of the database may take as long. */
const OUTAGE_MS = 30_000;

const port = parentPort;
if (!port) throw new Error('this module runs in the thread of a member. Call postgres() instead');
const post = (mail: FromBeat): void => port.postMessage(mail);

class Beats implements ConnectionOwner {
  readonly #shared: Int32Array;
  readonly #tables: ClusterTables;
  readonly #start: BeatStart;
  readonly #primary = new PrimaryTimeline();
  readonly #connection: ReconnectingConnection;
  #joined = false;
  #ended = false;
  #tick: Timer | undefined;
  #beating = false;
  #posted = 0;
  /** The last beat that the main thread has seen, and the time at which this thread learned of it. */
  #seen = 0;
  #seenAt = systemClock.now();
  #answered = systemClock.now();
  #steadySince = systemClock.now();

  constructor(start: BeatStart) {
    this.#start = start;
    this.#shared = new Int32Array(start.shared);
    this.#tables = new ClusterTables(start.schema, start.node);
    const address = new PostgresAddress(start.url);
    const options = { connectMs: ANSWER_MS, answerMs: ANSWER_MS, prepares: true, application: 'troupe beat' };
    this.#connection = new ReconnectingConnection(address, options, this.#primary, this);
  }

  async join(): Promise<void> {
    try {
      await this.#connection.open(this.#start.joinMs);
    } catch (error) {
      const { fault, message } = postgresError(error, 'the node cannot join');
      this.#ended = true;
      post({ type: 'refused', fault, message });
    }
  }

  async stop(): Promise<void> {
    this.#end();
    await this.#connection.close();
  }

  async prepare(connection: PostgresConnection): Promise<void> {
    // A beat that a crash of the database loses is written again half a second later.
    await connection.run('SET synchronous_commit = off');
    await this.#tables.prepare(connection);
    await this.#tables.hold(connection);
    if (!this.#joined) await this.#tables.join(connection, this.#start.address, this.#start.version);
    const read = await this.#beat(connection);
    if (!read || this.#joined) return;
    this.#joined = true;
    post({ type: 'joined', read });
    this.#next();
  }

  up(): void {
    const timeline = this.#primary.newest;
    if (timeline) post({ type: 'primary', timeline });
  }

  down(): void {
    this.#unsteady();
  }

  gaveUp(reason: StoreError): void {
    this.#lose(reason.message);
  }

  #next(): void {
    if (this.#ended) return;
    this.#tick = systemClock.after(BEAT_MS, () => {
      this.#look();
      this.#next();
    });
  }

  #look(): void {
    const connection = this.#connection.current;
    if (systemClock.now() - this.#answered > OUTAGE_MS)
      return this.#lose(`the database has not answered for ${OUTAGE_MS / 1_000} s`);
    if (!connection || systemClock.now() - this.#answered > BREAK_MS) this.#unsteady();
    // A second beat behind one without an answer would prove nothing.
    if (!connection || this.#beating) return;
    // A lost connection is opened again, and other errors are not final: the time without an answer decides.
    this.#beat(connection).catch(() => this.#unsteady());
  }

  /** Writes one beat and posts what it has read. @returns undefined if the node is fenced */
  async #beat(connection: PostgresConnection): Promise<ClusterRead | undefined> {
    this.#beating = true;
    try {
      const [, read] = await Promise.all([
        this.#tables.beat(connection, this.#blockedMs()),
        this.#tables.read(connection),
      ]);
      this.#steady();
      if (!read) this.#lose('the database has declared this node dead');
      else if (this.#joined) this.#post(read);
      return read;
    } finally {
      this.#beating = false;
    }
  }

  #post(read: ClusterRead): void {
    if (this.#ended) return;
    this.#posted += 1;
    post({ type: 'beat', beat: this.#posted, read });
  }

  /** Milliseconds for which the main thread has not seen the beats that were posted to it. */
  #blockedMs(): number {
    const seen = Atomics.load(this.#shared, SHARED.seen);
    if (seen !== this.#seen || seen === this.#posted) this.#seenAt = systemClock.now();
    this.#seen = seen;
    return systemClock.now() - this.#seenAt;
  }

  #steady(): void {
    const now = systemClock.now();
    if (now - this.#answered > BREAK_MS) this.#steadySince = now;
    this.#answered = now;
    Atomics.store(this.#shared, SHARED.steady, now - this.#steadySince > LEASE_MS ? 1 : 0);
  }

  #unsteady(): void {
    this.#steadySince = systemClock.now();
    Atomics.store(this.#shared, SHARED.steady, 0);
  }

  #lose(why: string): void {
    if (this.#ended) return;
    this.#end();
    post({ type: 'lost', why });
    void this.#connection.close();
  }

  #end(): void {
    this.#ended = true;
    this.#tick?.cancel();
    Atomics.store(this.#shared, SHARED.steady, 0);
  }
}

const start: BeatStart = workerData;
const beats = new Beats(start);
port.on('message', ({ type }: ToBeat) => {
  if (type === 'stop') void beats.stop().finally(() => port.close());
});
void beats.join();
