/** A simulated cluster: processes on one database, clients that reach any of them, and faults; all of it decided by a seed. */
import { messageOf } from '../../../src/core/protocol/json.ts';
import type { Peer } from '../../../src/core/store/membership.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { type DatabaseFaults, MemoryDatabase } from '../../harness/memory-nodes.ts';
import { actorOf, NodeProcess, type Outcome, type ProcessWorld, STREAM } from './node-process.ts';
import { Random } from './random.ts';

const PROCESSES = 3;
const CLIENTS = 6;
const ACTS = 40;
/** The cells that have data. The others are claimed and given like these. */
const CELLS: readonly number[] = [0, 137, 500, 1_023];
/** Milliseconds in which every request comes to its end, once nothing is wrong any more (I7). */
const CALM_MS = 30_000;
const ANSWER_MS = 3_000;

export interface ClusterReport {
  /** The first thing that must not be; it begins with the name of the invariant. */
  readonly violation: string | undefined;
  readonly trace: readonly string[];
  readonly acknowledged: number;
  /** Requests that another process than the entry carried out. */
  readonly forwarded: number;
  /** Nodes that were fenced. */
  readonly fenced: number;
}

/** Lives a world of this seed through. */
export async function liveCluster(seed: number, faults: DatabaseFaults = {}): Promise<ClusterReport> {
  const world = new ClusterWorld(seed, faults);
  const onRejection = (error: unknown): void => world.violated(`crash: an unhandled rejection: ${messageOf(error)}`);
  process.on('unhandledRejection', onRejection);
  try {
    return await world.live();
  } finally {
    process.off('unhandledRejection', onRejection);
  }
}

class ClusterWorld implements ProcessWorld {
  readonly clock = new SimulatedClock();
  readonly cells: ReadonlySet<number> = new Set(CELLS);
  readonly #random: Random;
  readonly #database: MemoryDatabase;
  readonly #processes: (NodeProcess | undefined)[] = [];
  /** Processes that were killed or stopped, to be cleared away. */
  readonly #gone: NodeProcess[] = [];
  /** Pairs of addresses that do not reach each other. */
  readonly #cuts = new Set<string>();
  readonly #trace: string[] = [];
  readonly #acknowledged = new Map<string, number>();
  /** Requests without an answer so far. */
  #open = 0;
  #asks = true;
  #starts = 0;
  #forwarded = 0;
  #violation: string | undefined;

  constructor(seed: number, faults: DatabaseFaults) {
    this.#random = new Random(seed);
    const ways = this.#random.fork();
    this.#database = new MemoryDatabase(this.clock, { way: () => ways.below(3), faults });
  }

  trace(line: string): void {
    this.#trace.push(`${this.clock.now()} ${line}`);
  }

  violated(what: string): void {
    this.trace(`VIOLATED ${what}`);
    this.#violation ??= what;
  }

  async live(): Promise<ClusterReport> {
    for (let index = 0; index < PROCESSES; index += 1) this.#start(index);
    await this.clock.advance(3_000);
    for (let client = 0; client < CLIENTS; client += 1) void this.#client(client);
    for (let act = 0; act < ACTS && this.#violation === undefined; act += 1) {
      await this.clock.advance(
        this.#random.weighted([
          [5, 5],
          [4, 60],
          [2, 700],
          [1, 2_500],
        ]),
      );
      this.#act(this.#random.below(PROCESSES));
      this.#checkDatabase();
    }
    await this.#calm();
    this.#checkDatabase();
    await this.#check();
    await this.#clear();
    return {
      violation: this.#violation,
      trace: this.#trace,
      acknowledged: this.#acknowledged.size,
      forwarded: this.#forwarded,
      fenced: [...this.#database.nodes.values()].filter(({ fenced }) => fenced).length,
    };
  }

  async forward(from: NodeProcess, { node, address }: Peer, cell: number, nonce: string): Promise<Outcome> {
    await this.#pass();
    const to = this.#processes.find((process) => process?.linkedAs === node);
    if (!to || this.#cuts.has(pairOf(from.address, address))) return 'failed';
    this.#forwarded += 1;
    const answered = this.#answerOf(to, () => to.serve(cell, nonce));
    return answered;
  }

  /** Sends one request after the other, each until it is acknowledged, to whichever process the balancer picks. */
  async #client(client: number): Promise<void> {
    for (let count = 1; this.#asks; count += 1) {
      const nonce = `c${client}-${count}`;
      const cell = this.#random.pick([CELLS[0] ?? 0, ...CELLS.slice(1)]);
      this.#open += 1;
      while (!this.#acknowledged.has(nonce) && this.#violation === undefined) {
        const entry = this.#processes[this.#random.below(PROCESSES)];
        const outcome = entry ? await this.#answerOf(entry, () => entry.request(cell, nonce)) : 'failed';
        if (outcome === 'acknowledged') this.#acknowledged.set(nonce, cell);
        else await this.#sleep(this.#random.between(5, 50));
      }
      this.#open -= 1;
      await this.#sleep(this.#random.between(0, 40));
    }
  }

  /** What a process answers, if it lives long enough: a paused one answers late, and its client has given up then. */
  #answerOf(process: NodeProcess, ask: () => Promise<Outcome>): Promise<Outcome> {
    return new Promise((resolve) => {
      this.clock.after(ANSWER_MS, () => resolve('failed'));
      if (process.state !== 'runs') return;
      const answer = (outcome: Outcome): void => {
        // N5 and the output gate: what a dead process would say is not heard.
        if (process.state === 'runs') void this.#pass().then(() => resolve(outcome));
      };
      ask().then(answer, () => answer('failed'));
    });
  }

  #act(index: number): void {
    const process = this.#processes[index];
    if (!process) return this.#start(index);
    const other = this.#processes[this.#random.below(PROCESSES)];
    const act = this.#random.weighted<() => void>([
      [3, () => this.#kill(index)],
      [2, () => void this.#stop(index)],
      [3, () => process.pause()],
      [4, () => process.resume()],
      [2, () => process.cut()],
      [4, () => process.heal()],
      [2, () => other && this.#cut(process, other)],
      [3, () => this.#cuts.clear()],
      [2, () => void process.node.closed(other?.linkedAs ?? '')],
    ]);
    this.trace(`act on ${process.address}`);
    act();
  }

  #start(index: number): void {
    this.#starts += 1;
    const process = new NodeProcess(this, `process${this.#starts}`, this.#database.process());
    this.#processes[index] = process;
    process.start().catch((error: unknown) => {
      this.trace(`${process.address} did not start: ${messageOf(error)}`);
      if (this.#processes[index] === process) this.#kill(index);
    });
  }

  /** The process is gone, and its links close. */
  #kill(index: number): void {
    const process = this.#processes[index];
    if (!process) return;
    this.#processes[index] = undefined;
    this.#gone.push(process);
    process.kill();
    this.trace(`${process.address} is killed`);
    const { linkedAs } = process;
    if (linkedAs !== undefined) for (const other of this.#processes) void other?.node.closed(linkedAs);
  }

  async #stop(index: number): Promise<void> {
    const process = this.#processes[index];
    if (process?.state !== 'runs') return;
    this.trace(`${process.address} stops`);
    await process.stop().catch((error: unknown) => this.trace(`${process.address}: ${messageOf(error)}`));
    if (this.#processes[index] === process) this.#kill(index);
  }

  #cut(one: NodeProcess, other: NodeProcess): void {
    if (one === other) return;
    this.#cuts.add(pairOf(one.address, other.address));
    void one.node.closed(other.linkedAs ?? '');
    void other.node.closed(one.linkedAs ?? '');
  }

  async #calm(): Promise<void> {
    this.trace('calm');
    this.#cuts.clear();
    for (const [index, process] of this.#processes.entries()) {
      if (!process) this.#start(index);
      process?.heal();
      process?.resume();
    }
    this.#asks = false;
    const until = this.clock.now() + CALM_MS;
    while (this.#violation === undefined && this.#open > 0 && this.clock.now() < until) await this.clock.advance(100);
    if (this.#open > 0) this.violated(`I7: ${this.#open} requests have no answer ${CALM_MS} ms after the last fault`);
    // The last round gives each cell its owner.
    await this.clock.advance(5_000);
    const { cells } = this.#database;
    const homeless = cells.filter(({ node }) => node === undefined || this.#database.isFenced(node)).length;
    if (homeless > 0) this.violated(`I7: ${homeless} cells have no living owner`);
  }

  /** N1 and N2. */
  #checkDatabase(): void {
    const [violation] = this.#database.violations;
    if (violation !== undefined) this.violated(`N1, N2: ${violation}`);
  }

  /** I1: all that was acknowledged is stored, once. */
  async #check(): Promise<void> {
    const stored = new Map<string, number>();
    for (const cell of CELLS) {
      const events = await this.#database.data.events(actorOf(cell), STREAM, 0, Number.MAX_SAFE_INTEGER);
      for (const { data } of events) stored.set(data, 1 + (stored.get(data) ?? 0));
    }
    for (const [nonce, times] of stored) if (times > 1) this.violated(`I1: ${nonce} is stored ${times} times`);
    for (const nonce of this.#acknowledged.keys())
      if (!stored.has(nonce)) this.violated(`I1: ${nonce} was acknowledged, and is not stored`);
  }

  async #clear(): Promise<void> {
    for (let index = 0; index < PROCESSES; index += 1) this.#kill(index);
    for (const process of this.#gone) process.connection.kill();
    await this.clock.advance(ANSWER_MS);
  }

  /** One way of a message. */
  #pass(): Promise<void> {
    return this.#sleep(this.#random.below(3));
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.after(ms, resolve));
  }
}

function pairOf(one: string, other: string): string {
  return [one, other].sort().join(' ');
}
