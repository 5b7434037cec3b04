/** The steps of one request: each runs once, and what it gave is recorded, so that another run of the request need not do it again. */
import type { JsonObject, JsonValue } from '../protocol/json.ts';

/** What a step gave, in a list: empty for nothing, which JSON cannot say. */
export type StepResult = readonly JsonValue[];

/** Where the results of steps are kept, and the place that a statechart has come to, so that they outlive the process. */
export interface StepStore {
  /** Names the request for others, the same in every run of it. */
  readonly key: string;
  /** What an earlier run of the request has recorded of a step. @throws {Error} where no more steps are kept */
  before(name: string): Promise<StepResult | undefined>;
  /** Resolves when it is durable. @throws {Error} where it is not */
  record(name: string, given: StepResult): Promise<void>;
  /** Keeps the place that a statechart has come to, instead of the one before. `due`: of the first of its timers, in milliseconds since 1970. Resolves when it is durable. @throws {Error} where it is not */
  keepPlace(place: string, due: number | undefined): Promise<void>;
}

export class Steps {
  readonly #running = new Map<string, Promise<unknown>>();
  readonly #recorded: Record<string, JsonValue>;
  readonly #journal: StepStore | undefined;

  /** @param recorded what an earlier run of the request has recorded */
  constructor(recorded: JsonObject = {}, journal?: StepStore) {
    this.#recorded = Object.assign(Object.create(null), recorded);
    this.#journal = journal;
    for (const [name, given] of Object.entries(recorded))
      if (isList(given)) this.#running.set(name, Promise.resolve(given[0]));
  }

  /** A step that failed is not recorded: this run has failed at it, another may not. */
  readonly step = <T>(name: string, fn: () => T | Promise<T>): Promise<T> => {
    const before = this.#running.get(name);
    // The name is the author's promise that the step is the same, and with it its type.
    if (before) return before as Promise<T>;
    const running = this.#journal ? this.#journaled(name, fn, this.#journal) : this.#run(name, fn);
    this.#running.set(name, running);
    // Whoever waits for it hears of its failure; there may be nobody.
    running.catch(() => {});
    return running;
  };

  async #run<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
    const given = await fn();
    this.#recorded[name] = listOf(given);
    return given;
  }

  /** Its result is used only once it is durable: what comes after it may rest on it, and a question may be sealed with it. */
  async #journaled<T>(name: string, fn: () => T | Promise<T>, journal: StepStore): Promise<T> {
    const before = await journal.before(name);
    if (before) {
      this.#recorded[name] = before;
      return before[0] as T;
    }
    const given = await fn();
    const kept = listOf(given);
    await journal.record(name, kept);
    this.#recorded[name] = kept;
    return given;
  }

  recorded(): JsonObject {
    return this.#recorded;
  }
}

/** A copy: its handler may change what a step gave, and would do so again in another run. What cannot be copied is found when it is written. */
function listOf(given: unknown): StepResult {
  if (given === undefined) return [];
  try {
    return [structuredClone(given) as JsonValue];
  } catch {
    return [given as JsonValue];
  }
}

function isList(value: unknown): value is StepResult {
  return Array.isArray(value);
}
