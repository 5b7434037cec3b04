/** The results of the steps of one request, each durable before it is used; and the place that its statechart has come to. */
import { createHash } from 'node:crypto';
import type { Limits } from '../limits.ts';
import { describe, type JsonObject, type JsonValue, messageOf } from '../protocol/json.ts';
import { fromText, toText } from '../store/serialize.ts';
import type { ActorRow, Store, Write } from '../store/store.ts';
import type { StepResult, StepStore } from './steps.ts';

export interface StepLogOptions {
  readonly store: Store;
  readonly limits: Pick<Limits, 'maxSteps' | 'maxStepsLength'>;
  readonly actor: string;
  /** What is said of it in the store. */
  row(): ActorRow;
  /** What it takes to run the request anew; undefined where somebody else keeps that. */
  call(): string | undefined;
  /** No earlier run can have recorded anything. */
  readonly fresh: boolean;
}

/** The stream of an actor's events in which its steps are. */
export const STEPS = 'steps';
/** The stream whose last event is the place that a statechart has come to. */
const PLACES = 'places';
/** The stream of one event, by which a request is run anew whose client has not come back. */
const CALL = 'call';
/** The only timer of a request: the first of its statechart's. */
const PLACE_TIMER = 'place';
/** More than a stream of places has: each that is kept takes the one before away. */
const MOST_PLACES = 8;

export class StepLog implements StepStore {
  readonly #options: StepLogOptions;
  #before: Promise<JsonObject> | undefined;
  #count = 0;
  #length = 0;
  #last: Promise<void> = Promise.resolve();
  #ended = false;
  /** Another process goes on with the request. */
  #left = false;
  #begun = false;
  #fresh: boolean;
  /** The number of the last place; undefined until that is known. */
  #placed: number | undefined;
  #timed = true;

  constructor(options: StepLogOptions) {
    this.#options = options;
    this.#fresh = options.fresh;
    if (!options.fresh) return;
    this.#placed = 0;
    this.#timed = false;
  }

  /** What a journal holds, read from the store. */
  static async read(store: Store, actor: string, limit: number): Promise<JsonObject> {
    const steps: Record<string, JsonValue> = Object.create(null);
    for (const { data } of await store.events(actor, STEPS, 0, limit)) {
      const read = fromText(data, `${actor}, a step`);
      if (!Array.isArray(read)) continue;
      const [name, ...given]: readonly JsonValue[] = read;
      if (typeof name === 'string') steps[name] = given;
    }
    return steps;
  }

  /** The place that the statechart of a request had come to, read from the store; undefined where none was kept. */
  static async place(store: Store, actor: string): Promise<string | undefined> {
    return (await store.events(actor, PLACES, 0, MOST_PLACES)).at(-1)?.data;
  }

  /** What was kept of the request itself. */
  static async call(store: Store, actor: string): Promise<JsonValue | undefined> {
    const [event] = await store.events(actor, CALL, 0, 1);
    return event && fromText(event.data, `${actor}, its call`);
  }

  get key(): string {
    return createHash('sha256').update(this.#options.actor).digest('base64url');
  }

  /** There is something in the store, as far as this run knows. */
  get begun(): boolean {
    return this.#begun;
  }

  /**
   * The request has ended: what still runs is recorded no more.
   *
   * @param left another process runs it anew, so that no step may begin here, or be relied on
   */
  end(left = false): void {
    this.#ended = true;
    this.#left ||= left;
  }

  async before(name: string): Promise<StepResult | undefined> {
    if (this.#left)
      throw new Error(`ctx.step("${name}") is not run: this server stops, and the next process goes on with the call`);
    const { limits } = this.#options;
    const given = (await this.#read())[name];
    if (isList(given)) return given;
    if (this.#count >= limits.maxSteps)
      throw new RangeError(
        `ctx.step("${name}"): expected at most ${limits.maxSteps} steps in one request, got one more: do several things in one step (the server's option is limits.maxSteps)`,
      );
    return undefined;
  }

  async record(name: string, given: StepResult): Promise<void> {
    if (this.#left)
      throw new Error(
        `ctx.step("${name}") has run, and its result could not be kept: this server stops, and the next process goes on with the call`,
      );
    if (this.#ended) return;
    const { limits } = this.#options;
    const data = this.#text(name, given);
    await this.#read();
    if (this.#length + data.length > limits.maxStepsLength)
      throw new RangeError(
        `ctx.step("${name}") has run, and its result cannot be kept: expected at most ${limits.maxStepsLength} characters of JSON for all steps of a request, got ${this.#length + data.length}: return less, such as an id (the server's option is limits.maxStepsLength)`,
      );
    // One after the other: where one is not kept, its number is the next one's.
    const recording = this.#last.then(() => this.#commit(data));
    this.#last = recording.catch(() => {});
    try {
      await recording;
    } catch (error) {
      throw new Error(`ctx.step("${name}") has run, and its result could not be kept: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** One at a time: whoever keeps the next waits for this one. Its row is written with each, and lives on with it. */
  async keepPlace(place: string, due: number | undefined): Promise<void> {
    if (this.#ended) return;
    const { actor, store, row, call } = this.#options;
    this.#placed ??= (await store.streams(actor)).find(({ stream }) => stream === PLACES)?.last ?? 0;
    const seq = this.#placed + 1;
    const writes: Write[] = [
      { type: 'actor', actor: row() },
      { type: 'event', actor, stream: PLACES, seq, kind: 'place', data: place },
    ];
    const kept = seq === 1 ? call() : undefined;
    if (kept !== undefined) writes.push({ type: 'event', actor, stream: CALL, seq: 1, kind: CALL, data: kept });
    if (seq > 1) writes.push({ type: 'trim', actor, stream: PLACES, upto: seq - 1 });
    if (due !== undefined) writes.push({ type: 'timer', timer: { actor, timer: PLACE_TIMER, due, data: 'null' } });
    else if (this.#timed) writes.push({ type: 'timer off', actor, timer: PLACE_TIMER });
    this.#timed = due !== undefined;
    // Whatever becomes of this batch, no later one may have its number.
    this.#placed = undefined;
    this.#begun = true;
    await store.commit(writes);
    this.#placed = seq;
  }

  async #commit(data: string): Promise<void> {
    await this.#read();
    const { actor, store, row } = this.#options;
    const seq = this.#count + 1;
    const writes: Write[] = this.#begun ? [] : [{ type: 'actor', actor: row() }];
    writes.push({ type: 'event', actor, stream: STEPS, seq, kind: 'step', data });
    try {
      await store.commit(writes);
    } catch (error) {
      // It may have become durable all the same: what is there is looked at before the next.
      this.#fresh = false;
      this.#before = undefined;
      throw error;
    }
    this.#begun = true;
    this.#count = seq;
    this.#length += data.length;
  }

  #text(name: string, given: StepResult): string {
    try {
      return toText([name, ...given]);
    } catch (error) {
      const what = describe(given[0]);
      throw new TypeError(
        `ctx.step("${name}") has run, and its result cannot be kept: expected what JSON can hold, got ${what}: return plain data`,
        { cause: error },
      );
    }
  }

  #read(): Promise<JsonObject> {
    this.#before ??= this.#fresh ? Promise.resolve({}) : this.#load();
    return this.#before;
  }

  async #load(): Promise<JsonObject> {
    const { store, actor, limits } = this.#options;
    const steps = await StepLog.read(store, actor, limits.maxSteps);
    this.#count = Object.keys(steps).length;
    this.#length = toText(steps).length;
    this.#begun ||= this.#count > 0;
    return steps;
  }
}

function isList(value: unknown): value is StepResult {
  return Array.isArray(value);
}
