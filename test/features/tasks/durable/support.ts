/** A store that outlives the servers of one process, and what its disk may do to them; and a shop whose calls survive. */

import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import { META } from '../../../../src/core/protocol/meta.ts';
import { memoryStore } from '../../../../src/core/store/memory-store.ts';
import { StoreError, type Write } from '../../../../src/core/store/store.ts';
import { createServer, type Limits, memory, type Server, type ServerOptions } from '../../../../src/index.ts';
import { SimulatedClock, settled, TestClient } from '../../../../src/testing/testing.ts';
import { TestStore } from '../../../harness/test-store.ts';
import { EXTENSION, Modern } from '../support.ts';

/** One process's hold of the disk. */
export class Incarnation extends TestStore {
  /** Batches that were handed over. */
  readonly commits: (readonly Write[])[] = [];
  /** Batches that have become durable in this life. */
  durables = 0;
  /** Whether batches are refused, as by a full disk. */
  full = false;
  readonly #held: (() => void)[] = [];
  #dead = false;
  #holding = false;
  #dies: { readonly n: number; readonly when: 'before' | 'after' } | undefined;
  readonly #never = new Promise<never>(() => {});

  override async write(writes: readonly Write[]): Promise<void> {
    if (this.#dead) return this.#never;
    this.commits.push(writes);
    const n = this.commits.length;
    if (this.#holding) await new Promise<void>((resolve) => void this.#held.push(resolve));
    if (this.full) throw new StoreError('full', 'the disk is full');
    if (this.#dies?.n === n && this.#dies.when === 'before') this.#dead = true;
    if (this.#dead) return this.#never;
    await this.inner.commit(writes);
    this.durables += 1;
    if (this.#dies?.n === n) this.#dead = true;
    return this.#dead ? this.#never : undefined;
  }

  /** The process is gone: nothing of it reaches the disk from now on, and nobody hears back. */
  kill(): void {
    this.#dead = true;
  }

  /** Dies at the n-th batch from the first: before it is durable, or right after. */
  killAt(n: number, when: 'before' | 'after'): void {
    this.#dies = { n: this.commits.length + n, when };
  }

  /** Batches wait until they are let through. */
  hold(): void {
    this.#holding = true;
  }

  async letThrough(): Promise<void> {
    this.#holding = false;
    for (const go of this.#held.splice(0)) go();
    await settled();
  }
}

/** A disk. Each call of `life` is another process. */
export class Disk {
  readonly #kept = memoryStore();

  life(): Incarnation {
    return new Incarnation(this.#kept);
  }
}

export interface Process {
  readonly server: Server;
  readonly store: Incarnation;
  readonly clock: SimulatedClock;
  readonly told: readonly string[];
  modern(principal?: string): Modern;
  legacy(principal?: string): Promise<TestClient>;
  /** kill -9. */
  kill(): void;
}

/** Starts a process on a disk. @param offer registers its tools */
export async function start(
  disk: Disk,
  offer: (server: Server) => void,
  limits: Partial<Limits> = {},
  clock = new SimulatedClock(),
  options: Partial<ServerOptions> = {},
): Promise<Process> {
  const told: string[] = [];
  const store = disk.life();
  const log: ServerOptions['log'] = (level, message) => void told.push(`${level}: ${message}`);
  const server = createServer({ name: 'durable', version: '1.0.0', clock, limits, store, log, ...options });
  offer(server);
  const { transport, connect } = memory();
  await server.listen(transport);
  const client = (principal?: string): TestClient =>
    new TestClient(connect(principal === undefined ? {} : { principal }));
  return {
    server,
    store,
    clock,
    told,
    modern: (principal) => new Modern(client(principal)),
    async legacy(principal) {
      const opened = client(principal);
      await opened.initialize('2025-11-25', { elicitation: {} });
      return opened;
    },
    kill: () => store.kill(),
  };
}

/** Calls a tool as a modern client that can be asked, and takes no tasks. */
export function call(client: Modern, name: string, more: JsonObject = {}): Promise<JsonObject> {
  return client.client.modern('tools/call', { name, ...more }, { [META.clientCapabilities]: { elicitation: {} } });
}

export { EXTENSION };
