/** A store that outlives the servers of one process, and what its disk may do to them; and a shop whose calls survive. */
import { createServer, type Limits, memory, type Server, type ServerOptions } from '../../../src/index.ts';
import type { JsonObject } from '../../../src/protocol/json.ts';
import { META } from '../../../src/protocol/meta.ts';
import { memoryStore } from '../../../src/store/memory-store.ts';
import { type Store, StoreError, type Write } from '../../../src/store/store.ts';
import { SimulatedClock, settled, TestClient } from '../../../src/testing.ts';
import { EXTENSION, Modern } from '../support.ts';

/** One process's hold of the disk. */
export interface Incarnation extends Store {
  /** Batches that were handed over. */
  readonly commits: readonly (readonly Write[])[];
  /** Batches that have become durable in this life. */
  readonly durables: number;
  /** The process is gone: nothing of it reaches the disk from now on, and nobody hears back. */
  kill(): void;
  /** Dies at the n-th batch from the first: before it is durable, or right after. */
  killAt(n: number, when: 'before' | 'after'): void;
  /** Batches wait until they are let through. */
  hold(): void;
  letThrough(): Promise<void>;
  /** Whether batches are refused, as by a full disk. */
  full: boolean;
}

/** A disk. Each call of `open` is another process. */
export class Disk {
  readonly #kept = memoryStore();

  life(): Incarnation {
    const kept = this.#kept;
    const commits: (readonly Write[])[] = [];
    const held: (() => void)[] = [];
    let dead = false;
    let holding = false;
    let dies: { readonly n: number; readonly when: 'before' | 'after' } | undefined;
    const never = new Promise<never>(() => {});
    const life = {
      name: 'disk',
      durable: true,
      commits,
      durables: 0,
      full: false,
      open: () => Promise.resolve(),
      async commit(writes: readonly Write[]): Promise<void> {
        if (dead) return never;
        commits.push(writes);
        const n = commits.length;
        if (holding) await new Promise<void>((resolve) => void held.push(resolve));
        if (life.full) throw new StoreError('full', 'the disk is full');
        if (dies?.n === n && dies.when === 'before') dead = true;
        if (dead) return never;
        await kept.commit(writes);
        life.durables += 1;
        if (dies?.n === n) dead = true;
        return dead ? never : undefined;
      },
      load: (actor: string) => kept.load(actor),
      list: (query: Parameters<Store['list']>[0]) => kept.list(query),
      events: (...given: Parameters<Store['events']>) => kept.events(...given),
      streams: (actor: string) => kept.streams(actor),
      reply: (actor: string, request: string) => kept.reply(actor, request),
      timers: (until: number, limit: number) => kept.timers(until, limit),
      deadLetters: (limit: number) => kept.deadLetters(limit),
      sweep: (now: number) => kept.sweep(now),
      close: () => Promise.resolve(),
      kill: () => {
        dead = true;
      },
      killAt(n: number, when: 'before' | 'after') {
        dies = { n: commits.length + n, when };
      },
      hold: () => {
        holding = true;
      },
      async letThrough() {
        holding = false;
        for (const go of held.splice(0)) go();
        await settled();
      },
    };
    return life;
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
