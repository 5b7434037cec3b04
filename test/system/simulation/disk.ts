/** The disk of a simulated world, and the store that a generation of the server has on it: durable after a while, in order, or not at all. */
import type { StoreAnswer, StoreFault, StoreRead, Write } from '../../../src/core/store/store.ts';
import { StoreError } from '../../../src/core/store/store.ts';
import type { SimulatedClock } from '../../../src/testing/testing.ts';
import { type OtherQuery, TestStore } from '../../harness/test-store.ts';
import type { Random } from './random.ts';
import { Rows } from './rows.ts';

/** What a disk does wrong. `full` and `failing` refuse what is written. */
export type DiskFault = 'none' | 'slow' | 'full' | 'failing';

/** How the store is broken, for the tests of the simulator itself. */
export interface StoreBreaks {
  /** It answers a commit before it is durable. */
  readonly acknowledgesEarly?: boolean;
  /** It takes what a generation writes that another has taken over from. */
  readonly fencesNobody?: boolean;
}

export interface DiskOptions {
  readonly clock: SimulatedClock;
  readonly random: Random;
  readonly breaks: StoreBreaks;
  trace(line: string): void;
  violated(what: string): void;
}

interface Batch {
  readonly writes: readonly Write[];
  settle(error?: StoreError): void;
}

/** Most batches that may wait: each is awaited by somebody, and how many there are of those is bounded. */
const MAX_PENDING = 400;

export class SimulatedDisk {
  readonly #options: DiskOptions;
  /** Everything that is durable, in order. */
  readonly #durable: (readonly Write[])[] = [];
  #pending: Batch[] = [];
  /** What reads see: all that was committed, durable or not. */
  #rows = new Rows();
  #due = 0;
  #epoch = 0;
  fault: DiskFault = 'none';

  constructor(options: DiskOptions) {
    this.#options = options;
  }

  /** The store of a new generation. */
  store(): SimulatedStore {
    return new SimulatedStore(this);
  }

  /** How many batches wait to be durable. */
  get pending(): number {
    return this.#pending.length;
  }

  /** What would be there if the power failed now. */
  durable(): Rows {
    const rows = new Rows();
    for (const writes of this.#durable) rows.apply(writes);
    return rows;
  }

  /** @returns the epoch of who opens it; whoever had it before is fenced */
  claim(): number {
    if (this.fault === 'failing') throw new StoreError('failed', 'the disk fails: the store could not be opened');
    this.#epoch += 1;
    return this.#epoch;
  }

  /**
   * The process that writes is gone: of what was not durable, the first batches may be found to be so after all, although
   * nobody was told, and the rest is lost.
   */
  crash(): void {
    const { random, trace } = this.#options;
    const kept = random.chance(0.5) ? random.below(this.#pending.length + 1) : 0;
    trace(`disk: ${this.#pending.length} batches were on their way, ${kept} of them arrived`);
    for (const { writes } of this.#pending.splice(0).slice(0, kept)) this.#durable.push(writes);
    this.#rows = this.durable();
  }

  read<T>(epoch: number, look: (rows: Rows) => T): Promise<T> {
    const { clock, random } = this.#options;
    if (this.#fenced(epoch) && !this.#options.breaks.fencesNobody) return Promise.reject(fenced());
    const now = (): Promise<T> => {
      try {
        return Promise.resolve(look(this.#rows));
      } catch (error) {
        return Promise.reject(error);
      }
    };
    if (random.chance(0.7)) return now();
    return new Promise((resolve) => clock.after(random.between(1, 5), () => resolve(now())));
  }

  write(epoch: number, writes: readonly Write[]): Promise<void> {
    const { clock, random, breaks, trace, violated } = this.#options;
    if (this.#fenced(epoch) && !breaks.fencesNobody) return Promise.reject(fenced());
    if (this.fault === 'full') return Promise.reject(refused('full'));
    const refusal = this.#rows.refusal(writes);
    if (refusal) return Promise.reject(refusal);
    if (this.#fenced(epoch)) violated('I3: the store took what a generation wrote that had been fenced');
    this.#rows.apply(writes);
    trace(`disk: commit ${writes.map(({ type }) => type).join(', ')}`);
    return new Promise((resolve, reject) => {
      const settle = (error?: StoreError): void => (error ? reject(error) : resolve());
      const batch: Batch = { writes, settle };
      this.#pending.push(batch);
      if (this.#pending.length > MAX_PENDING)
        violated(`I5: ${this.#pending.length} batches wait to be durable, and ${MAX_PENDING} are the most`);
      const delay = this.fault === 'slow' ? random.between(50, 400) : random.between(0, 20);
      this.#due = Math.max(this.#due, clock.now() + delay);
      clock.after(this.#due - clock.now(), () => this.#flush(batch));
      if (breaks.acknowledgesEarly) resolve();
    });
  }

  /** One more batch is durable, or the disk has failed it, and with it everything that is written in the same go. */
  #flush(batch: Batch): void {
    const at = this.#pending.indexOf(batch);
    if (at === -1) return;
    if (this.fault === 'full' || this.fault === 'failing') return this.#lose(batch, this.fault);
    this.#pending.splice(at, 1);
    this.#durable.push(batch.writes);
    this.#options.trace('disk: durable');
    batch.settle();
  }

  /** A disk that is full keeps nothing of it; of one that fails nobody can know what it kept. */
  #lose(batch: Batch, fault: 'full' | 'failing'): void {
    const { random, trace } = this.#options;
    const lost = fault === 'full' ? [batch] : this.#pending;
    const kept = fault === 'failing' && random.chance(0.3) ? random.below(lost.length + 1) : 0;
    this.#pending = this.#pending.filter((other) => !lost.includes(other));
    for (const { writes } of lost.slice(0, kept)) this.#durable.push(writes);
    this.#rows = this.durable();
    for (const { writes } of this.#pending) this.#rows.apply(writes);
    trace(`disk: ${fault}: ${lost.length} batches fail, ${kept} of them are kept all the same`);
    for (const { settle } of lost) settle(refused(fault === 'full' ? 'full' : 'failed'));
  }

  #fenced(epoch: number): boolean {
    return epoch < this.#epoch;
  }
}

function refused(fault: StoreFault): StoreError {
  return new StoreError(fault, `the simulated disk is ${fault}: nothing of this batch is kept`);
}

function fenced(): StoreError {
  return new StoreError('locked', 'another process has taken over the simulated disk');
}

export class SimulatedStore extends TestStore {
  override readonly name = 'simulated disk';
  readonly #disk: SimulatedDisk;
  #epoch = 0;
  #state: 'new' | 'open' | 'closed' | 'dead' = 'new';

  constructor(disk: SimulatedDisk) {
    super();
    this.#disk = disk;
  }

  /** Its process is gone: nothing that it waits for comes. */
  kill(): void {
    this.#state = 'dead';
  }

  /** Its process is only to be cleared away. */
  clear(): void {
    this.#state = 'closed';
  }

  override async open(): Promise<void> {
    this.#epoch = this.#disk.claim();
    this.#state = 'open';
  }

  override write(writes: readonly Write[]): Promise<void> {
    return this.#alive(() => this.#disk.write(this.#epoch, writes));
  }

  override async read(query: OtherQuery): Promise<StoreAnswer> {
    if (query.type !== 'sweep') return this.#read((rows) => answerOf(rows, query));
    const expired = await this.#read((rows) => rows.expired(query.now));
    if (expired.length > 0) await this.commit(expired);
    return { type: 'sweep', value: expired.length };
  }

  override async close(): Promise<void> {
    if (this.#state !== 'open') return;
    // What is on its way becomes durable first: an empty batch is the last of them.
    await this.commit([]);
    this.#state = 'closed';
  }

  #read<T>(look: (rows: Rows) => T): Promise<T> {
    return this.#alive(() => this.#disk.read(this.#epoch, look));
  }

  /** @returns what the disk answers, unless the process is killed meanwhile: then nobody hears it */
  #alive<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#state === 'dead') return new Promise(() => {});
    if (this.#state !== 'open') return Promise.reject(new StoreError('closed', 'the simulated store is closed'));
    const answer = ask();
    return new Promise((resolve, reject) => {
      const heard = (then: () => void) => () => this.#state !== 'dead' && then();
      answer.then(
        (value) => heard(() => resolve(value))(),
        (error: unknown) => heard(() => reject(error))(),
      );
    });
  }
}

function answerOf(rows: Rows, query: StoreRead): StoreAnswer {
  switch (query.type) {
    case 'load':
      return { type: 'load', value: rows.load(query.actor) };
    case 'list':
      return { type: 'list', value: { rows: rows.list(query.query), damaged: [] } };
    case 'events':
      return { type: 'events', value: rows.events(query.actor, query.stream, query.after, query.limit) };
    case 'streams':
      return { type: 'streams', value: rows.streams(query.actor) };
    case 'reply':
      return { type: 'reply', value: rows.reply(query.actor, query.request) };
    case 'timers':
      return { type: 'timers', value: rows.timers(query) };
    case 'letters':
      return { type: 'letters', value: rows.deadLetters(query.limit) };
  }
}
