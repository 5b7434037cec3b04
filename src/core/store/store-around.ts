/** A store in front of another one: a subclass changes some queries, and passes the others on. */
import type { Nodes } from './membership.ts';
import { type Notes, Store, type StoreAnswer, type StoreHost, type StoreQuery } from './store.ts';

export class StoreAround extends Store {
  readonly name: string;
  readonly durable: boolean;
  declare readonly notes?: Notes;
  declare readonly nodes?: Nodes;
  protected inner: Store;

  constructor(inner: Store) {
    super();
    this.inner = inner;
    this.name = inner.name;
    this.durable = inner.durable;
    if (inner.notes) this.notes = inner.notes;
    if (inner.nodes) this.nodes = inner.nodes;
  }

  open(host: StoreHost): Promise<void> {
    return this.inner.open(host);
  }

  ask(query: StoreQuery): Promise<StoreAnswer> {
    return this.inner.ask(query);
  }

  override impairment(): 'not open' | 'read-only' | undefined {
    return this.inner.impairment();
  }

  override caughtUp(): Promise<void> | undefined {
    return this.inner.caughtUp();
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
