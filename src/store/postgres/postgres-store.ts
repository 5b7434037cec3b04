/** The store in a PostgreSQL database, opened: batches go to the writer, reads to the readers once the writes before them are durable. */
import { hostname } from 'node:os';
import type { Member, MemberEvents, Nodes } from '../membership.ts';
import {
  type ActorRow,
  type DeadLetter,
  type JournalEvent,
  type ListQuery,
  type ReplyWrite,
  type Stored,
  StoreError,
  type StoreHost,
  type StreamRow,
  type TimerRow,
  type Write,
} from '../store.ts';
import { CrashNotes } from './crash-notes.ts';
import { GroupWriter } from './group-writer.ts';
import type { PostgresAddress } from './postgres-address.ts';
import type { PostgresOptions } from './postgres-options.ts';
import { PostgresReads } from './postgres-reads.ts';
import { PostgresSweep } from './postgres-sweep.ts';
import { PrimaryTimeline } from './primary-timeline.ts';
import { ReaderPool } from './reader-pool.ts';
import type { WriteFence } from './write-fence.ts';

/** The addresses of a store: one for reads, and one for the session that writes. */
export interface StoreAddresses {
  readonly reads: PostgresAddress;
  readonly session: PostgresAddress;
}

export class OpenedPostgres {
  readonly #primary = new PrimaryTimeline();
  readonly #writer: GroupWriter;
  readonly #readers: ReaderPool;
  readonly #reads: PostgresReads;
  readonly #sweep: PostgresSweep;
  readonly notes: CrashNotes;
  readonly #session: PostgresAddress;
  readonly #options: PostgresOptions;

  private constructor({ reads, session }: StoreAddresses, options: PostgresOptions, host: StoreHost) {
    this.#session = session;
    this.#options = options;
    const application = `troupe ${hostname()}:${process.pid}`;
    this.#writer = new GroupWriter(session, options, this.#primary, host, application);
    this.#readers = new ReaderPool(reads, options, this.#primary, application);
    const ask = this.#readers.ask.bind(this.#readers);
    this.#reads = new PostgresReads(options.schema, ask, options.readers);
    this.#sweep = new PostgresSweep(options, ask);
    this.notes = new CrashNotes(session, options.schema, ask);
  }

  /** @throws {StoreError} `locked`, `foreign`, `failed` */
  static async open(addresses: StoreAddresses, options: PostgresOptions, host: StoreHost): Promise<OpenedPostgres> {
    const store = new OpenedPostgres(addresses, options, host);
    try {
      await store.#writer.open();
      await store.#readers.open();
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  /** The node for which it writes. */
  get fence(): WriteFence {
    return this.#writer.fence;
  }

  async join(self: Parameters<Nodes['join']>[0], hear: MemberEvents): Promise<Member> {
    const { PostgresNodes } = await import('./postgres-member.ts');
    const { schema, lockMs } = this.#options;
    const seat = { address: this.#session, schema, joinMs: lockMs, primary: this.#primary, fence: this.fence };
    return new PostgresNodes(seat).join(self, hear);
  }

  get impairment(): 'not open' | undefined {
    return this.#writer.impairment || !this.#readers.isConnected ? 'not open' : undefined;
  }

  caughtUp(): Promise<void> | undefined {
    return this.#writer.queue.caughtUp();
  }

  async commit(writes: readonly Write[]): Promise<void> {
    await this.#writer.commit(writes);
  }

  async claim(reply: ReplyWrite): Promise<string | undefined> {
    for (;;) {
      const existing = await this.#writer.claim(reply);
      if (existing !== '') return existing;
      const found = await this.#reads.reply(reply.actor, reply.request);
      // Deleted in between: then the reply can be claimed.
      if (found !== undefined) return found;
    }
  }

  async first(actor: ActorRow, snapshot: NonNullable<Stored['snapshot']>): Promise<Stored> {
    await this.#writer.first(actor, snapshot);
    const stored = await this.load(actor.id);
    if (stored) return stored;
    throw new StoreError('failed', `${actor.id} was deleted while it was stored. Try again`);
  }

  async load(actor: string): Promise<Stored | undefined> {
    await this.#writer.queue.settledOf(actor);
    return this.#reads.load(actor);
  }

  async list(query: ListQuery): Promise<readonly ActorRow[]> {
    await this.#writer.queue.settled();
    return this.#reads.list(query);
  }

  async events(actor: string, stream: string, after: number, limit: number): Promise<readonly JournalEvent[]> {
    await this.#writer.queue.settledOf(actor);
    return this.#reads.events(actor, stream, after, limit);
  }

  async streams(actor: string): Promise<readonly StreamRow[]> {
    await this.#writer.queue.settledOf(actor);
    return this.#reads.streams(actor);
  }

  async reply(actor: string, request: string): Promise<string | undefined> {
    await this.#writer.queue.settledOf(actor);
    return this.#reads.reply(actor, request);
  }

  async timers(until: number, limit: number, cells?: readonly number[]): Promise<readonly TimerRow[]> {
    await this.#writer.queue.settled();
    return this.#reads.timers(until, limit, cells);
  }

  async deadLetters(limit: number): Promise<readonly DeadLetter[]> {
    await this.#writer.queue.settled();
    return this.#reads.deadLetters(limit);
  }

  async sweep(now: number): Promise<number> {
    await this.#writer.queue.settled();
    const gone = await this.#sweep.run(now);
    this.#writer.forgetHeads(gone);
    return gone.length;
  }

  async close(): Promise<void> {
    await this.notes.close();
    await this.#writer.close();
    await this.#readers.close();
  }
}
