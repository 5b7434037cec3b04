/** The store in a PostgreSQL database, opened: batches go to the writer, reads to the readers once the writes before them are durable. */
import { hostname } from 'node:os';
import type { Member, MemberEvents, Nodes } from '../../core/store/membership.ts';
import { type ReplyWrite, Store, type StoreAnswer, type StoreHost, type StoreQuery } from '../../core/store/store.ts';
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
interface StoreAddresses {
  readonly reads: PostgresAddress;
  readonly session: PostgresAddress;
}

export class OpenedPostgres extends Store {
  readonly name: string;
  readonly durable = true;
  readonly #primary = new PrimaryTimeline();
  readonly #writer: GroupWriter;
  readonly #readers: ReaderPool;
  readonly #reads: PostgresReads;
  readonly #sweep: PostgresSweep;
  override readonly notes: CrashNotes;
  readonly #session: PostgresAddress;
  readonly #options: PostgresOptions;

  constructor({ reads, session }: StoreAddresses, options: PostgresOptions, host: StoreHost) {
    super();
    this.name = `postgres(${reads.label})`;
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
  async open(): Promise<void> {
    try {
      await this.#writer.open();
      await this.#readers.open();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** The node for which it writes. */
  get fence(): WriteFence {
    return this.#writer.fence;
  }

  async join(self: Parameters<Nodes['join']>[0], hear: MemberEvents): Promise<Member> {
    const { PostgresMember } = await import('./postgres-member.ts');
    const { schema, lockMs } = this.#options;
    const seat = { address: this.#session, schema, joinMs: lockMs, primary: this.#primary, fence: this.fence };
    return PostgresMember.join(seat, self, hear);
  }

  override impairment(): 'not open' | undefined {
    return this.#writer.impairment || !this.#readers.isConnected ? 'not open' : undefined;
  }

  override caughtUp(): Promise<void> | undefined {
    return this.#writer.queue.caughtUp();
  }

  /** Reads wait for the writes before them. */
  async ask(query: StoreQuery): Promise<StoreAnswer> {
    switch (query.type) {
      case 'commit':
        await this.#writer.commit(query.writes);
        return { type: 'commit', value: undefined };
      case 'claim':
        return { type: 'claim', value: await this.#claim(query.reply) };
      case 'swap':
        return { type: 'swap', value: await this.#writer.swap(query.swap) };
      case 'sweep':
        await this.#writer.queue.settled();
        return { type: 'sweep', value: await this.#swept(query.now) };
      case 'list':
      case 'timers':
      case 'letters':
        await this.#writer.queue.settled();
        return this.#reads.ask(query);
      default:
        await this.#writer.queue.settledOf(query.actor);
        return this.#reads.ask(query);
    }
  }

  async #claim(reply: ReplyWrite): Promise<string | undefined> {
    for (;;) {
      const existing = await this.#writer.claim(reply);
      if (existing !== '') return existing;
      const found = await this.#reads.reply(reply.actor, reply.request);
      // Deleted in between: then the reply can be claimed.
      if (found !== undefined) return found;
    }
  }

  async #swept(now: number): Promise<number> {
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
