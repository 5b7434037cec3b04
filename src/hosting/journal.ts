/** The results of the steps of one request, each durable before it is used. */
import type { Given, StepJournal } from '../execution/steps.ts';
import type { Limits } from '../options.ts';
import { describe, type JsonObject, type JsonValue, messageOf } from '../protocol/json.ts';
import type { ActorRow, Store, Write } from '../store/store.ts';
import { fromText, toText } from '../store/text.ts';

export interface JournalOptions {
  readonly store: Store;
  readonly limits: Pick<Limits, 'maxSteps' | 'maxStepsLength'>;
  readonly actor: string;
  /** What is said of it in the store. */
  row(): ActorRow;
  /** No earlier run can have recorded anything. */
  readonly fresh: boolean;
}

/** The stream of an actor's events in which its steps are. */
export const STEPS = 'steps';

export class Journal implements StepJournal {
  readonly #options: JournalOptions;
  #before: Promise<JsonObject> | undefined;
  #count = 0;
  #length = 0;
  #last: Promise<void> = Promise.resolve();
  #ended = false;
  #begun = false;
  #fresh: boolean;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#fresh = options.fresh;
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

  /** There is something in the store, as far as this run knows. */
  get begun(): boolean {
    return this.#begun;
  }

  /** The request has ended, and is not run anew: what still runs is recorded no more. */
  end(): void {
    this.#ended = true;
  }

  async before(name: string): Promise<Given | undefined> {
    const { limits } = this.#options;
    const given = (await this.#read())[name];
    if (isList(given)) return given;
    if (this.#count >= limits.maxSteps)
      throw new RangeError(
        `ctx.step("${name}"): expected at most ${limits.maxSteps} steps in one request, got one more: do several things in one step (the server's option is limits.maxSteps)`,
      );
    return undefined;
  }

  async record(name: string, given: Given): Promise<void> {
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

  #text(name: string, given: Given): string {
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
    const steps = await Journal.read(store, actor, limits.maxSteps);
    this.#count = Object.keys(steps).length;
    this.#length = toText(steps).length;
    this.#begun = this.#count > 0;
    return steps;
  }
}

function isList(value: unknown): value is Given {
  return Array.isArray(value);
}
