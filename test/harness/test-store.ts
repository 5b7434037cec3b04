/** A store of a test in front of another one: a test changes what it writes, or what it reads. */
import { memoryStore } from '../../src/core/store/memory-store.ts';
import {
  findsExpected,
  type Store,
  type StoreAnswer,
  type StoreQuery,
  type Write,
  writesOf,
} from '../../src/core/store/store.ts';
import { StoreAround } from '../../src/core/store/store-around.ts';

/** A query that is no batch. */
export type OtherQuery = Exclude<StoreQuery, { readonly type: 'commit' | 'claim' | 'swap' }>;

/** Durable by its own account. Claims and swaps are batches, too, so that `write` sees all that is written. */
export class TestStore extends StoreAround {
  override readonly durable = true;

  constructor(inner: Store = memoryStore()) {
    super(inner);
  }

  override async ask(query: StoreQuery): Promise<StoreAnswer> {
    switch (query.type) {
      case 'commit':
        await this.write(query.writes);
        return { type: 'commit', value: undefined };
      case 'claim': {
        const existing = (await this.reply(query.reply.actor, query.reply.request)) || undefined;
        if (existing === undefined) await this.write([query.reply]);
        return { type: 'claim', value: existing };
      }
      case 'swap': {
        const finds = findsExpected(query.swap, await this.load(query.swap.actor.id));
        if (finds) await this.write(writesOf(query.swap));
        return { type: 'swap', value: finds };
      }
      default:
        return this.read(query);
    }
  }

  /** Resolves when the batch is durable. */
  write(writes: readonly Write[]): Promise<void> {
    return this.inner.commit(writes);
  }

  read(query: OtherQuery): Promise<StoreAnswer> {
    return this.inner.ask(query);
  }

  override close(): Promise<void> {
    return Promise.resolve();
  }
}

/** A store that asks a test first. @param read answers some queries; undefined leaves a query to the inner store */
export function readingFrom(inner: Store, read: (query: OtherQuery) => Promise<StoreAnswer> | undefined): Store {
  return new (class extends TestStore {
    override read(query: OtherQuery): Promise<StoreAnswer> {
      return read(query) ?? super.read(query);
    }
  })(inner);
}
