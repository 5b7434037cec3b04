/** Writes groups of batches: one group on its way, the next one gathers. Keeps its connection, and rejects what waits too long for it. */
import { SlicedQueue, systemClock, type Timer } from '../../core/kernel/clock.ts';
import { messageOf } from '../../core/protocol/json.ts';
import {
  type ReplyWrite,
  type SnapshotSwap,
  StoreError,
  type StoreHost,
  type Write,
  writesOf,
} from '../../core/store/store.ts';
import { toColumnText } from './column-text.ts';
import { type FoldedClaim, GroupFold, needsHeads } from './group-fold.ts';
import { LayerStatements } from './layer-statement.ts';
import type { PostgresAddress } from './postgres-address.ts';
import type { PostgresConnection, ResultRow } from './postgres-connection.ts';
import { endsConnection, postgresError } from './postgres-faults.ts';
import type { PostgresOptions } from './postgres-options.ts';
import type { PrimaryTimeline } from './primary-timeline.ts';
import { type ConnectionOwner, ReconnectingConnection } from './reconnecting-connection.ts';
import { StoreSession } from './store-session.ts';
import { StreamHeads } from './stream-heads.ts';
import { StreamRetention } from './stream-retention.ts';
import { WriteFence } from './write-fence.ts';
import type { WriteLayer } from './write-layer.ts';
import { type Conditional, type WriteJob, WriteQueue } from './write-queue.ts';

/** The end of one job. */
type Outcome =
  | { readonly job: WriteJob; readonly existing: string | undefined }
  | { readonly job: WriteJob; readonly error: StoreError };

/** A job of the group, folded: a batch, or a claim and its end so far. */
interface FoldedJob {
  readonly job: WriteJob;
  readonly claim: FoldedClaim | undefined;
}

/**
 * Turns of the event loop between a group of several batches and the next one. In these turns handlers end whose markers
 * are durable, and clients that got their responses send their next requests: their writes then join the group, which
 * costs the database as much with one batch as with many.
 */
const GATHERING_TURNS = 3;
/** With this many waiting batches the next group leaves at once. */
const MANY = 256;

export class GroupWriter implements ConnectionOwner {
  readonly queue: WriteQueue;
  readonly fence: WriteFence;
  readonly #label: string;
  readonly #options: PostgresOptions;
  readonly #host: StoreHost;
  readonly #session: StoreSession;
  readonly #connection: ReconnectingConnection;
  readonly #statements: LayerStatements;
  readonly #heads: StreamHeads;
  readonly #retention: StreamRetention;
  /** Outcomes in slices, because each lets the output of a client leave, and a group has thousands. */
  readonly #outcomes = new SlicedQueue<Outcome>(systemClock, settle);
  #running = false;
  #closed = false;
  /** The reason why there will be no connection any more. */
  #gaveUp: StoreError | undefined;
  /** The reason why there is no connection. */
  #down: StoreError | undefined;
  /** The last rejected database that was logged since the connection was lost. */
  #rejection = '';
  /** Runs from the loss of the connection until waiting jobs are rejected; then new ones are rejected, too. */
  #outage: Timer | undefined;
  #isOver = false;
  #hold: Timer | undefined;

  constructor(
    address: PostgresAddress,
    options: PostgresOptions,
    primary: PrimaryTimeline,
    host: StoreHost,
    application: string,
  ) {
    this.#label = address.label;
    this.#options = options;
    this.#host = host;
    this.queue = new WriteQueue(options);
    this.#heads = new StreamHeads(options.schema);
    this.#statements = new LayerStatements(options.schema);
    this.#retention = new StreamRetention(options, this.#heads);
    this.fence = new WriteFence(() => this.#heads.reset());
    this.#session = new StoreSession(address.label, options, host);
    this.#connection = new ReconnectingConnection(
      address,
      { connectMs: options.connectMs, answerMs: options.answerMs, prepares: true, application },
      primary,
      this,
    );
  }

  /** @throws {StoreError} `locked`, `foreign`, `failed` */
  open(): Promise<void> {
    return this.#connection.open(this.#options.lockMs);
  }

  prepare(connection: PostgresConnection): Promise<void> {
    return this.#session.prepare(connection);
  }

  up(): void {
    this.#outage?.cancel();
    this.#outage = undefined;
    this.#hold?.cancel();
    this.#hold = undefined;
    if (this.#down) this.#host.log('info', `${this.#label}: connected again`);
    this.#down = undefined;
    this.#rejection = '';
    this.#isOver = false;
    this.#heads.reset();
    this.#runSoon();
  }

  down(reason: StoreError): void {
    if (!this.#down) this.#host.log('error', `${reason.message}; connecting again`);
    this.#down = reason;
    this.#outage ??= systemClock.after(this.#options.outageMs, () => {
      this.#isOver = true;
      if (!this.#running) this.queue.reject(this.#away());
    });
    if (this.queue.waits) this.#hold ??= systemClock.hold();
  }

  rejected(reason: StoreError): void {
    if (reason.message === this.#rejection) return;
    this.#rejection = reason.message;
    this.#host.log('error', `${reason.message}; connecting again`);
  }

  gaveUp(reason: StoreError): void {
    this.#gaveUp = reason;
    this.#host.log('error', reason.message);
    this.queue.reject(reason);
    this.#hold?.cancel();
  }

  /** The reason why it cannot write now; undefined if it can. */
  get impairment(): StoreError | undefined {
    return this.#gaveUp ?? this.#down;
  }

  /** @throws {StoreError} */
  commit(writes: readonly Write[]): Promise<string | undefined> {
    return this.#add(writes);
  }

  /** @returns the existing reply; undefined if this one was stored. The empty string: it lost to one that must be read */
  claim(reply: ReplyWrite): Promise<string | undefined> {
    return this.#add([reply], { claim: reply });
  }

  /** @returns whether the snapshot was stored */
  async swap(swap: SnapshotSwap): Promise<boolean> {
    return (await this.#add(writesOf(swap), { swap })) === undefined;
  }

  /** The writes of these actors by others are unknown to this process: it reads their streams before it writes them. */
  forgetHeads(actors: readonly string[]): void {
    for (const actor of actors) this.#heads.reset(actor);
  }

  /** Writes what waits, and closes. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#connection.current) await this.queue.settled();
    this.#outage?.cancel();
    this.#hold?.cancel();
    this.queue.reject(this.#refusal() ?? this.#away());
    await this.#connection.close();
    this.#outcomes.flush();
  }

  #add(writes: readonly Write[], conditional?: Conditional): Promise<string | undefined> {
    const refused = this.#refusal();
    if (refused) return Promise.reject(refused);
    const added = this.queue.add(writes, conditional);
    if (this.#connection.current) this.#runSoon();
    else this.#hold ??= systemClock.hold();
    return added;
  }

  #refusal(): StoreError | undefined {
    if (this.#closed) return new StoreError('closed', 'the store is closed: its server has stopped');
    return this.#gaveUp ?? (this.#isOver ? this.#away() : undefined);
  }

  /** Clients see it, so it does not name the database. */
  #away(): StoreError {
    return new StoreError('busy', 'the database is not reachable. Nothing was written. Retry when it is back');
  }

  #runSoon(): void {
    if (this.#running) return;
    this.#running = true;
    // After this turn, whose other batches join the group.
    systemClock.soon(() => void this.#run());
  }

  async #run(): Promise<void> {
    while (this.queue.waits) {
      const connection = this.#connection.current;
      if (!connection) break;
      const jobs = this.queue.take();
      const outcomes = await this.#write(connection, jobs);
      for (const outcome of outcomes) this.#outcomes.add(outcome);
      this.queue.end();
      await this.#trim(connection);
      if (jobs.length > 1) await this.#gather();
    }
    this.#running = false;
    if (this.#isOver) this.queue.reject(this.#away());
    // The connection may have come up, or a job may have come, in between.
    else if (this.queue.waits && this.#connection.current) this.#runSoon();
  }

  async #gather(): Promise<void> {
    for (let turn = 0; turn < GATHERING_TURNS && this.queue.size < MANY; turn += 1)
      await new Promise<void>((resolve) => systemClock.soon(resolve));
  }

  /** One transaction. If a batch spoils it, each batch gets one of its own. */
  async #write(connection: PostgresConnection, jobs: readonly WriteJob[]): Promise<readonly Outcome[]> {
    const node = this.fence.node;
    if (this.#host.shared && node === undefined) return rejected(jobs, this.#fenced());
    try {
      await this.#readHeads(connection, jobs);
      const fold = new GroupFold(this.#heads, this.#options);
      const folded: FoldedJob[] = [];
      const outcomes: Outcome[] = [];
      for (const job of jobs) {
        const error = job.claim || job.swap ? undefined : fold.add(job.writes);
        if (job.swap) fold.swap(job.swap);
        if (error) outcomes.push({ job, error });
        else folded.push({ job, claim: job.claim && fold.claim(job.claim) });
      }
      const rows = await this.#send(connection, fold.layers, node);
      if (node !== undefined && rows.some(([passes]) => passes !== true)) {
        this.#heads.reset();
        this.fence.refuse(node);
        return rejected(jobs, this.#fenced());
      }
      this.#retention.add(fold.crowded);
      return [...outcomes, ...ended(folded, rows)];
    } catch (error) {
      this.#heads.reset();
      const fault = this.#faultOf(connection, error);
      if (jobs.length === 1 || connection.failure || fault.fault !== 'failed') return rejected(jobs, fault);
      const each: Outcome[] = [];
      for (const job of jobs) each.push(...(await this.#write(connection, [job])));
      return each;
    }
  }

  /** Deletes events beyond the limits. If it fails, the next event of the actor tries again. */
  async #trim(connection: PostgresConnection): Promise<void> {
    if (connection.failure || !this.#retention.isDue) return;
    try {
      for (const write of await this.#retention.trims(connection)) void this.queue.add([write]).catch(ignore);
    } catch (error) {
      this.#heads.reset();
      this.#host.log('warning', `${this.#label}: old events were not deleted: ${messageOf(error)}`);
    }
  }

  #fenced(): StoreError {
    return new StoreError('fenced', 'this node is not a member of its cluster any more. Nothing was written');
  }

  #faultOf(connection: PostgresConnection, error: unknown): StoreError {
    if (connection.failure || endsConnection(error))
      return new StoreError(
        'failed',
        'the connection to the database was lost. It is unknown whether this write was persisted; read the data again to find out',
      );
    return postgresError(error, 'nothing was written');
  }

  async #readHeads(connection: PostgresConnection, jobs: readonly WriteJob[]): Promise<void> {
    const missing = new Set<string>();
    for (const { writes } of jobs) needsHeads(writes, this.#heads, missing);
    if (missing.size > 0) await this.#heads.read(connection, missing);
  }

  /** @returns the rows of all layers: see {@link LayerStatements.of} */
  async #send(
    connection: PostgresConnection,
    layers: readonly WriteLayer[],
    node: string | undefined,
  ): Promise<readonly ResultRow[]> {
    const [only, ...others] = layers;
    if (only && others.length === 0) return connection.query(...this.#statements.of(only, node));
    const begun = connection.run('BEGIN');
    const written = layers.map((layer) => connection.query(...this.#statements.of(layer, node)));
    const finished = connection.run('COMMIT');
    const results = await Promise.allSettled([begun, ...written, finished]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    // A transaction that failed ends with this tag, without an error.
    if ((await finished) !== 'COMMIT') throw new StoreError('failed', 'the transaction was rolled back');
    return (await Promise.all(written)).flat();
  }
}

function ended(folded: readonly FoldedJob[], rows: readonly ResultRow[]): readonly Outcome[] {
  const won = new Set<string>();
  for (const [, actor, request] of rows) if (typeof actor === 'string') won.add(`${actor}\n${String(request)}`);
  return folded.map(({ job, claim }) => ({ job, existing: existingOf(job, claim, won) }));
}

/** The empty string where the reply must be read, and for a swap that found another snapshot. */
function existingOf(
  { claim, swap }: WriteJob,
  end: FoldedClaim | undefined,
  won: ReadonlySet<string>,
): string | undefined {
  if (swap) return won.has(`${toColumnText(swap.actor.id)}\n${toColumnText(swap.snapshot.version)}`) ? undefined : '';
  if (!claim || !end || end.type === 'won') return undefined;
  if (end.type === 'found') return end.data;
  if (!won.has(`${toColumnText(claim.actor)}\n${toColumnText(claim.request)}`)) return '';
  return end.type === 'lost' ? end.to : undefined;
}

function rejected(jobs: readonly WriteJob[], error: StoreError): readonly Outcome[] {
  return jobs.map((job) => ({ job, error }));
}

function settle(outcome: Outcome): void {
  if ('error' in outcome) outcome.job.reject(outcome.error);
  else outcome.job.resolve(outcome.existing);
}

function ignore(): void {}
