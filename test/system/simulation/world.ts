/** A simulated world: one disk, one generation of the server after the other, clients of every revision, and faults; all of it decided by a seed. */

import { loadRoutes } from '../../../src/core/http/endpoint.ts';
import { messageOf } from '../../../src/core/protocol/json.ts';
import { createServer, type MemoryPeer, memory, type Server } from '../../../src/index.ts';
import { connect, SimulatedClock } from '../../../src/testing/testing.ts';
import { Book, type Happening, isTerminal } from './book.ts';
import { type Breaks, BrokenWire } from './breaks.ts';
import { Client } from './client.ts';
import { GenerationClock } from './clock.ts';
import { SimulatedDisk, type SimulatedStore } from './disk.ts';
import { HandleBook } from './handles.ts';
import type { Act, Action } from './plan.ts';
import type { Around, Player } from './player.ts';
import { Random } from './random.ts';
import { ROSTER } from './roster.ts';
import { LEDGER, offerTools } from './tools.ts';
import { Trace } from './trace.ts';
import { WebClient } from './web-client.ts';

/**
 * What the server keeps across a crash. Where it keeps no tasks, nobody relies on a task of a process that is gone; where it
 * keeps no steps, nobody relies on others than those that a client carries in its `requestState`.
 */
const KEEPS = { tasks: true, steps: true };

/** Small, so that bounds are met often. */
const LIMITS = {
  maxInFlight: 6,
  maxRunning: 16,
  maxListens: 2,
  maxSubscriptions: 4,
  maxHeld: 20,
  maxTasks: 60,
  maxTasksPerPrincipal: 30,
  maxParked: 12,
  maxParkedPerPrincipal: 6,
  timeoutMs: 6_000,
  maxTimeoutMs: 20_000,
  askMs: 8_000,
  taskAfterMs: 300,
  taskTtlMs: 3_600_000,
  handleRestMs: 400,
  maxAwakeHandles: 3,
  handleMailbox: 20,
  graceMs: 1_000,
};

const KEYS = ['a secret of the simulated world that every generation of it has'];

/** Milliseconds in which everything that was accepted comes to its end, once nothing is wrong any more (I7). */
const CALM_MS = 60_000;

export interface WorldOptions {
  readonly seed: number;
  readonly plan: readonly Action[];
  readonly breaks?: Breaks;
}

/** What became of a world. */
export interface Report {
  /** The first thing that must not be; undefined where there was none. It begins with the name of what it violates. */
  readonly violation: string | undefined;
  readonly trace: readonly string[];
  readonly hash: string;
  /** How much happened, so that a world in which nothing does is noticed. */
  readonly counts: ReadonlyMap<Happening, number>;
}

/** One process of the server. */
interface Generation {
  readonly number: number;
  readonly server: Server;
  readonly clock: GenerationClock;
  readonly store: SimulatedStore;
  /** The nonces of calls whose handlers run, and have ended. */
  readonly running: Set<string>;
  readonly ended: Set<string>;
  connect(as: { readonly principal?: string }): MemoryPeer;
}

let warm: Promise<void> | undefined;

/** What is loaded with the first call of a process takes real time, which no seed decides: it is over before the first world begins. */
async function warmUp(): Promise<void> {
  await loadRoutes();
  const server = createServer({ name: 'warm', version: '1.0.0' });
  const schema = { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] } as const;
  server.tool('warm', { input: schema }, ({ word }) => word);
  const client = await connect(server, { deadlineMs: 60_000 });
  await client.call('warm', { word: 'up' });
  await server.close();
}

/** Lives a world through, from its first action to the calm after the last. */
export async function live(options: WorldOptions): Promise<Report> {
  warm ??= warmUp();
  await warm;
  const world = new World(options);
  const onRejection = (error: unknown): void => world.violated(`crash: an unhandled rejection: ${messageOf(error)}`);
  process.on('unhandledRejection', onRejection);
  try {
    return await world.live();
  } finally {
    process.off('unhandledRejection', onRejection);
  }
}

class World {
  readonly #plan: readonly Action[];
  readonly #breaks: Breaks;
  readonly #clock = new SimulatedClock();
  readonly #random: Random;
  readonly #trace = new Trace();
  readonly #disk: SimulatedDisk;
  readonly #book = new Book((what) => this.violated(what));
  readonly #handles = new HandleBook((what) => this.violated(what));
  readonly #clients: readonly Player[];
  readonly #wire: BrokenWire;
  #generation: Generation | undefined;
  readonly #gone: Generation[] = [];
  #generations = 0;
  readonly #counts = new Map<Happening, number>();
  #skewMs = 0;
  /** When the disk was last seen to be wrong. */
  #faulty = Number.NEGATIVE_INFINITY;
  #everFaulty = false;
  #violation: string | undefined;

  constructor({ seed, plan, breaks = {} }: WorldOptions) {
    this.#plan = plan;
    this.#breaks = breaks;
    // Another source than that of the plan: an action that is left out leaves the rest of the plan as it was.
    this.#random = new Random(seed ^ 0x5eed);
    this.#wire = new BrokenWire(breaks, this.#random.fork());
    const trace = (line: string): void => this.#trace.add(`${this.#clock.now()} ${line}`);
    const violated = (what: string): void => this.violated(what);
    const random = this.#random.fork();
    this.#disk = new SimulatedDisk({ clock: this.#clock, random, breaks, trace, violated });
    const around: Around = {
      clock: this.#clock,
      book: this.#book,
      handles: this.#handles,
      limits: LIMITS,
      faultySince: (time) => this.#isFaulty || this.#faulty >= time,
      generation: () => this.#generations,
      count: (what) => this.#count(what),
      trace,
      violated,
    };
    this.#clients = ROSTER.map((who) => (who.over === 'http' ? new WebClient(who, around) : new Client(who, around)));
  }

  violated(what: string): void {
    this.#trace.add(`${this.#clock.now()} VIOLATED ${what}`);
    this.#violation ??= what;
  }

  #count(what: Happening): void {
    this.#counts.set(what, 1 + (this.#counts.get(what) ?? 0));
  }

  async live(): Promise<Report> {
    await this.#start();
    for (const { after, act } of this.#plan) {
      await this.#pass(after);
      if (this.#violation !== undefined) break;
      this.#trace.add(`${this.#clock.now()} ${JSON.stringify(act)}`);
      await this.#act(act);
      for (const client of this.#clients) client.checkBounds();
    }
    if (this.#violation === undefined) await this.#calm();
    if (this.#violation === undefined) await this.#end();
    await this.#clear();
    return {
      violation: this.#violation,
      trace: this.#trace.lines,
      hash: this.#trace.hash,
      counts: this.#counts,
    };
  }

  get #isFaulty(): boolean {
    return this.#disk.fault === 'full' || this.#disk.fault === 'failing';
  }

  /** Lets time pass, at least until what is under way has settled. */
  async #pass(ms: number): Promise<void> {
    await this.#clock.advance(ms);
    if (this.#isFaulty) this.#faulty = this.#clock.now();
  }

  async #act(act: Act): Promise<void> {
    if (!this.#generation) await this.#start();
    const tasks = [...this.#book.tasks.values()];
    switch (act.type) {
      case 'disk':
        if (this.#isFaulty) this.#faulty = this.#clock.now();
        this.#disk.fault = act.fault;
        this.#everFaulty ||= this.#isFaulty;
        return;
      case 'crash':
        return this.#crash(act);
      case 'restart':
        return this.#restart(act);
      case 'change':
        return this.#change(act.what, act.pick);
      case 'connect':
        return this.#connect(this.#clients[act.client], act.delayMs);
      default:
        this.#clients[act.client]?.act(act, tasks);
    }
  }

  #change(what: 'tools' | 'resource', pick: number): void {
    const server = this.#generation?.server;
    if (what === 'resource') return server?.resourceUpdated(`doc://${pick % 3}`);
    server?.tool('flicker', {}, () => 'here');
    server?.tools.remove('flicker');
  }

  #connect(client: Player | undefined, delayMs: number): void {
    const generation = this.#generation;
    if (!generation || !client || client.connected) return;
    const random = this.#random.fork();
    if (client instanceof WebClient) return client.connect((request) => generation.server.fetch(request), random);
    if (!(client instanceof Client)) return;
    const { principal } = client.who;
    const peer = generation.connect(principal === undefined ? {} : { principal });
    client.connect(this.#wire.around(peer), random, delayMs);
  }

  /** A new process opens the store. Where it cannot, there is none, until somebody tries again. */
  async #start(): Promise<void> {
    this.#generations += 1;
    const number = this.#generations;
    const clock = new GenerationClock(this.#clock, this.#skewMs);
    const store = this.#disk.store();
    const trace = (line: string): void => this.#trace.add(`${this.#clock.now()} server ${number}: ${line}`);
    const server = createServer({
      name: 'simulated',
      version: '1.0.0',
      clock,
      store,
      keys: KEYS,
      http: { authenticate: (request) => request.header('authorization') },
      limits: this.#breaks.ignoresBounds ? { ...LIMITS, maxInFlight: 100 } : LIMITS,
      log: (level, message) => {
        const [line] = message.split('\n');
        trace(`${level}: ${line}`);
        // A process that another has taken over from may well complain.
        const current = number === this.#generations;
        if (level === 'error' && current && !this.#everFaulty) this.violated(`incident: ${message}`);
      },
    });
    const { transport, connect: open } = memory();
    const running = new Set<string>();
    const generation: Generation = { number, server, clock, store, running, ended: new Set(), connect: open };
    this.#offer(generation);
    trace('starts');
    if (!(await this.#until(server.listen(transport), 10_000, `server ${number} opens`))) {
      this.#gone.push(generation);
      return;
    }
    this.#generation = generation;
  }

  #offer({ number, server, clock, store, running, ended }: Generation): void {
    const forgets = this.#breaks.forgetsSteps === true;
    offerTools(server, {
      clock,
      store,
      forgets,
      running: ({ nonce, canary }, ctx) => {
        const [, owner] = canary.split('-');
        const known = ROSTER.find((who) => who.owner === owner)?.principal ?? 'anonymous';
        if (ctx.principal !== known) this.violated(`I4: ${nonce} runs as ${ctx.principal}, and is ${known}'s`);
        // Whoever sends a request again that has been answered is told the answer.
        if (nonce.endsWith('w') && ended.has(nonce) && !this.#everFaulty)
          this.violated(`once: ${nonce} is executed again`);
        if (running.has(nonce)) this.violated(`answers: ${nonce} runs twice at once`);
        running.add(nonce);
        return () => {
          running.delete(nonce);
          ended.add(nonce);
        };
      },
      // Who is taken for dead, and does not know it yet, begins what another has done meanwhile: what it does is kept from the store.
      ran: (nonce, step) => number === this.#generations && this.#book.ran(nonce, step),
      recorded: (nonce, step) => {
        if (this.#book.recorded(nonce, step)) this.#count('step not run again');
        if (KEEPS.steps) this.#book.owe(nonce, new Set([step]));
      },
      violated: (what) => this.violated(what),
    });
  }

  /** The process is gone from one moment to the next; or is only taken for gone, and runs on beside the one that follows. */
  async #crash({ zombieMs, downMs, skewMs }: Extract<Act, { readonly type: 'crash' }>): Promise<void> {
    const dead = this.#generation;
    if (!dead) return;
    this.#count(zombieMs === 0 ? 'crash' : 'zombie');
    this.#generation = undefined;
    this.#gone.push(dead);
    this.#wire.forget();
    for (const client of this.#clients) client.lose();
    const kill = (): void => {
      dead.clock.kill();
      dead.store.kill();
    };
    if (zombieMs === 0) {
      kill();
      this.#disk.crash();
      this.#checkLedger();
    } else this.#clock.after(zombieMs, kill);
    this.#forget();
    await this.#pass(downMs);
    this.#skewMs = skewMs;
    await this.#comeBack();
  }

  /** An orderly end: everything that is in flight is answered. */
  async #restart({ downMs, skewMs }: Extract<Act, { readonly type: 'restart' }>): Promise<void> {
    const old = this.#generation;
    if (!old) return;
    this.#generation = undefined;
    for (const client of this.#clients) client.resume();
    await this.#until(old.server.close('a new version'), 40_000, `server ${old.number} closes`);
    await this.#pass(0);
    for (const client of this.#clients) client.lose();
    old.clock.kill();
    old.store.kill();
    this.#forget();
    await this.#pass(downMs);
    this.#skewMs = skewMs;
    await this.#comeBack();
  }

  #forget(): void {
    if (!KEEPS.tasks) this.#book.forgetTasks();
  }

  async #comeBack(): Promise<void> {
    await this.#start();
    for (const client of this.#clients) if (this.#random.chance(0.7)) this.#connect(client, 0);
  }

  /** I1: what was acknowledged is on the disk, whatever happens. */
  #checkLedger(): void {
    const kept = new Map(
      this.#disk
        .durable()
        .events(LEDGER, '', 0, Number.MAX_SAFE_INTEGER)
        .map(({ seq, data }) => [seq, data]),
    );
    for (const [seq, nonce] of this.#book.ledger) {
      this.#count('entry kept');
      if (kept.get(seq) !== nonce)
        this.violated(`I1: entry ${seq} was acknowledged to ${nonce}, and is ${kept.get(seq)}`);
    }
  }

  /** I7: nothing is wrong any more, and everything that was accepted comes to its end. */
  async #calm(): Promise<void> {
    this.#trace.add(`${this.#clock.now()} calm`);
    if (this.#isFaulty) this.#faulty = this.#clock.now();
    this.#disk.fault = 'none';
    if (!this.#generation) await this.#start();
    const until = this.#clock.now() + CALM_MS;
    let owed: readonly string[] = [];
    do {
      const tasks = [...this.#book.tasks.values()];
      for (const client of this.#clients) {
        this.#connect(client, 0);
        client.goOn(tasks);
      }
      await this.#pass(500);
      owed = this.#owed();
    } while (this.#violation === undefined && owed.length > 0 && this.#clock.now() < until);
    if (owed.length > 0) this.violated(`I7: not at its end after ${CALM_MS} ms without faults: ${owed.join('; ')}`);
    const tasks = [...this.#book.tasks.values()];
    for (const client of this.#clients) client.lookAt(tasks);
    await this.#pass(500);
    for (const client of this.#clients) client.unhear();
    for (const uri of ['doc://0', 'doc://1', 'doc://2']) this.#generation?.server.resourceUpdated(uri);
    await this.#pass(200);
    for (const uri of ['doc://0', 'doc://1', 'doc://2'])
      for (const unheard of this.#clients.flatMap((client) => client.unheard(uri)))
        this.violated(`I7: never told of a change: ${unheard}`);
  }

  #owed(): readonly string[] {
    const open = [...this.#book.tasks.values()].filter(
      (task) => !isTerminal(task.status) && this.#clients.some((client) => client.reaches(task)),
    );
    return [
      ...this.#handles.waiting().map(({ owner }) => `the timer of a handle of ${owner}`),
      ...this.#clients.flatMap((client) => client.owed()),
      ...open.map(({ nonce, status }) => `the task of ${nonce} (${String(status)})`),
    ];
  }

  /** One more crash, and everything that anybody was told of is looked at again; then an orderly end. */
  async #end(): Promise<void> {
    await this.#crash({ type: 'crash', zombieMs: 0, downMs: 50, skewMs: 0 });
    for (const client of this.#clients) this.#connect(client, 0);
    await this.#pass(100);
    const tasks = [...this.#book.tasks.values()];
    for (const client of this.#clients) client.lookAt(tasks);
    await this.#pass(1_000);
    const owed = this.#clients.flatMap((client) => client.owed());
    if (owed.length > 0) this.violated(`I7: not answered after a crash: ${owed.join('; ')}`);
    await this.#restart({ type: 'restart', downMs: 0, skewMs: 0 });
  }

  /** @returns whether it came to be without an error. What takes longer than it may is a violation. */
  async #until(promise: Promise<unknown>, ms: number, what: string): Promise<boolean> {
    let settled: boolean | undefined;
    promise.then(
      () => {
        settled = true;
      },
      (error: unknown) => {
        settled = false;
        this.#trace.add(`${this.#clock.now()} ${what}, but: ${messageOf(error)}`);
        if (!this.#everFaulty) this.violated(`incident: ${what}, but: ${messageOf(error)}`);
      },
    );
    const until = this.#clock.now() + ms;
    await this.#pass(0);
    while (settled === undefined && this.#clock.now() < until) await this.#pass(10);
    if (settled === undefined) this.violated(`I7: ${what}: not within ${ms} ms`);
    return settled === true;
  }

  /** Processes that were killed are closed for real: they watch the process that simulates them. */
  async #clear(): Promise<void> {
    for (const client of this.#clients) client.lose();
    const all = [...this.#gone, ...(this.#generation ? [this.#generation] : [])];
    for (const { server, clock, store } of all) {
      clock.revive();
      store.clear();
      void server.close('the world is over').catch(() => {});
    }
    await this.#clock.advance(40_000);
    for (const { clock } of all) clock.kill();
  }
}
