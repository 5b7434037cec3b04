/** The durable step log of one request: each result is committed before it is used. Also stores the checkpoint of its statechart. */
import { createHash } from 'node:crypto';
import type { Limits } from '../limits.ts';
import { describe, type JsonObject, type JsonValue, messageOf } from '../protocol/json.ts';
import { fromText, toText } from '../store/serialize.ts';
import type { ActorRow, Store, Write } from '../store/store.ts';
import { type StepResult, type StepStore, tooLong } from './steps.ts';

export interface StepLogOptions {
  readonly store: Store;
  readonly limits: Pick<Limits, 'maxSteps' | 'maxStepsLength'>;
  readonly actor: string;
  /** Returns the row of its actor. */
  row(): ActorRow;
  /** Returns the data to run the request again; undefined if it is stored elsewhere. */
  call(): string | undefined;
  /** No earlier run can have recorded anything. */
  readonly fresh: boolean;
}

/** The event stream with the steps of an actor. */
export const STEPS = 'steps';
/** The event stream whose last event is the checkpoint of a statechart. */
const PLACES = 'places';
/** The stream of one event: the data to run a request again whose client has not returned. */
const CALL = 'call';
/** The only timer of a request: the first one of its statechart. */
const PLACE_TIMER = 'place';
/** More than a stream of checkpoints ever holds, because each commit deletes the previous one. */
const MOST_PLACES = 8;

export class StepLog implements StepStore {
  readonly #options: StepLogOptions;
  #before: Promise<JsonObject> | undefined;
  #count = 0;
  #length = 0;
  #last: Promise<void> = Promise.resolve();
  #ended = false;
  /** Another process continues the request. */
  #left = false;
  #begun = false;
  #fresh: boolean;
  /** The number of the last checkpoint; undefined until it is known. */
  #placed: number | undefined;
  #timed = true;

  constructor(options: StepLogOptions) {
    this.#options = options;
    this.#fresh = options.fresh;
    if (!options.fresh) return;
    this.#placed = 0;
    this.#timed = false;
  }

  /** Reads the recorded steps from the store. */
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

  /** Reads the last checkpoint of a request's statechart from the store; undefined if there is none. */
  static async place(store: Store, actor: string): Promise<string | undefined> {
    return (await store.events(actor, PLACES, 0, MOST_PLACES)).at(-1)?.data;
  }

  /** Reads the stored call of the request. */
  static async call(store: Store, actor: string): Promise<JsonValue | undefined> {
    const [event] = await store.events(actor, CALL, 0, 1);
    return event && fromText(event.data, `${actor}, its call`);
  }

  get key(): string {
    return createHash('sha256').update(this.#options.actor).digest('base64url');
  }

  /** True if the store holds anything of this run, as far as it knows. */
  get begun(): boolean {
    return this.#begun;
  }

  /**
   * Ends the log: steps that still run are no longer recorded.
   *
   * @param left another process runs the request again, so no step may start here or return its result
   */
  end(left = false): void {
    this.#ended = true;
    this.#left ||= left;
  }

  async before(name: string): Promise<StepResult | undefined> {
    if (this.#left)
      throw new Error(
        `ctx.step("${name}") was not run: this server is stopping, and the next process continues the call`,
      );
    const { limits } = this.#options;
    const given = (await this.#read())[name];
    if (isList(given)) return given;
    if (this.#count >= limits.maxSteps)
      throw new RangeError(
        `ctx.step("${name}"): expected at most ${limits.maxSteps} steps in one request, got one more. Combine several steps into one (the server's option is limits.maxSteps)`,
      );
    return undefined;
  }

  async record(name: string, given: StepResult): Promise<void> {
    if (this.#left)
      throw new Error(
        `ctx.step("${name}") has run, but its result could not be persisted: this server is stopping, and the next process continues the call`,
      );
    if (this.#ended) return;
    const { limits } = this.#options;
    const data = this.#text(name, given);
    await this.#read();
    if (this.#length + data.length > limits.maxStepsLength)
      throw new RangeError(tooLong(name, limits.maxStepsLength, this.#length + data.length));
    // Commit in order: if one commit fails, the next one uses its number.
    const recording = this.#last.then(() => this.#commit(data));
    this.#last = recording.catch(() => {});
    try {
      await recording;
    } catch (error) {
      throw new Error(`ctx.step("${name}") has run, but its result could not be persisted: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** One at a time: the caller waits for the previous one. Each commit includes the row, which extends its lifetime. */
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
    // No later commit may use this number, whether or not this one succeeds.
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
      // The commit may have succeeded after all, so the next one checks the store first.
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
        `ctx.step("${name}") has run, but its result cannot be persisted: expected JSON data, got ${what}. Return plain data`,
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
