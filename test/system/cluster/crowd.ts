/** Clients of both eras that add to their ledgers without a pause, and keep the books. */
import * as assert from 'uvu/assert';
import { conclusive } from '../../harness/door.ts';
import { elapse, inTime } from '../../harness/wait.ts';
import { type LedgerClient, LegacyClient, ModernClient, Violations } from './clients.ts';

/** Milliseconds between two calls of one client: their work leaves the machine time for the nodes. */
const PAUSE_MS = 50;
/** Calls of each client before the first fault: code that has never run is slow. */
const WARM = 10;

export class Crowd {
  readonly violations = new Violations();
  readonly clients: readonly LedgerClient[];
  readonly #legacy: readonly LegacyClient[];
  readonly #waiting = new Map<LedgerClient, (() => void)[]>();
  #running = true;
  #loops: Promise<unknown> = Promise.resolve();

  /** @param each the number of clients of each era */
  constructor(url: string, each: number) {
    const indexes = Array.from({ length: each }, (_, index) => index);
    this.#legacy = indexes.map((index) => new LegacyClient(url, `legacy${index}`, this.violations));
    this.clients = [
      ...this.#legacy,
      ...indexes.map((index) => new ModernClient(url, `modern${index}`, this.violations)),
    ];
  }

  /** Resolves when each client has called often enough to be measured. */
  async start(): Promise<void> {
    await Promise.all(this.#legacy.map((client) => client.open()));
    await Promise.all(this.clients.map((client) => client.create()));
    this.#loops = Promise.all(this.clients.map((client) => this.#loop(client)));
    for (let calls = 0; calls < WARM; calls += 1) await Promise.all(this.clients.map((client) => this.served(client)));
  }

  /** Resolves when a call that this client sends from now on is acknowledged. */
  served(client: LedgerClient): Promise<void> {
    return new Promise((resolve) => {
      // The call that is on its way now was sent before.
      this.#waiting.set(client, [...(this.#waiting.get(client) ?? []), () => this.#next(client, resolve)]);
    });
  }

  /** Compares all ledgers with what was acknowledged. */
  async stop(): Promise<void> {
    this.#running = false;
    await this.#loops;
    for (const client of this.clients) await client.check();
    conclusive(() => assert.equal(this.violations.found, []));
  }

  async #loop(client: LedgerClient): Promise<void> {
    while (this.#running) {
      await client.add();
      await elapse(PAUSE_MS, 'a client pauses');
      for (const resolve of this.#waiting.get(client)?.splice(0) ?? []) resolve();
    }
  }

  #next(client: LedgerClient, resolve: () => void): void {
    this.#waiting.set(client, [...(this.#waiting.get(client) ?? []), resolve]);
  }
}

/** The milliseconds from a fault until a call that each of these clients sends right after it is acknowledged, in order. */
export async function outages(clients: readonly LedgerClient[], fault: () => unknown): Promise<readonly number[]> {
  const began = performance.now();
  await fault();
  const all = clients.map(async (client) => {
    await inTime(client.add(), () => `${client.principal} to be served: ${client.pending}`);
    return performance.now() - began;
  });
  return (await Promise.all(all)).sort((a, b) => a - b);
}
