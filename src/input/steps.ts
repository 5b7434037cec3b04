/** The steps of one request. Each runs once, and its result is recorded, so that another run of the request does not repeat it. */
import type { JsonObject, JsonValue } from '../protocol/json.ts';

/** The result of a step in a list, which is empty for undefined, because JSON cannot represent it. */
export type StepResult = readonly JsonValue[];

/** Stores step results and the checkpoint of a statechart beyond the lifetime of the process. */
export interface StepStore {
  /** An external name of the request, the same in every run. */
  readonly key: string;
  /**
   * Returns the result that an earlier run recorded for a step.
   *
   * @throws {Error} if no more steps are allowed
   */
  before(name: string): Promise<StepResult | undefined>;
  /**
   * Resolves when the result is durable.
   *
   * @throws {Error} if it cannot be persisted
   */
  record(name: string, given: StepResult): Promise<void>;
  /**
   * Replaces the checkpoint of a statechart. Resolves when it is durable.
   *
   * @param due due date of its first timer, in milliseconds since 1970
   * @throws {Error} if it cannot be persisted
   */
  keepPlace(place: string, due: number | undefined): Promise<void>;
}

export class Steps {
  readonly #running = new Map<string, Promise<unknown>>();
  readonly #recorded: Record<string, JsonValue>;
  readonly #journal: StepStore | undefined;

  /** @param recorded the recorded steps of an earlier run of the request */
  constructor(recorded: JsonObject = {}, journal?: StepStore) {
    this.#recorded = Object.assign(Object.create(null), recorded);
    this.#journal = journal;
    for (const [name, given] of Object.entries(recorded))
      if (isList(given)) this.#running.set(name, Promise.resolve(given[0]));
  }

  /** A failed step is not recorded, because another run may succeed. */
  readonly step = <T>(name: string, fn: () => T | Promise<T>): Promise<T> => {
    const before = this.#running.get(name);
    // The author promises by the name that the step is the same, and therefore its type.
    if (before) return before as Promise<T>;
    const running = this.#journal ? this.#journaled(name, fn, this.#journal) : this.#run(name, fn);
    this.#running.set(name, running);
    // Callers that await the step receive its error. There may be none.
    running.catch(() => {});
    return running;
  };

  async #run<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
    const given = await fn();
    this.#recorded[name] = listOf(given);
    return given;
  }

  /** Use the result only once it is durable, because later code may depend on it, and a question may be sealed with it. */
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

/**
 * Copies the result, because the handler may modify it and would do so again in another run. A value that cannot be copied
 * fails when it is written.
 */
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
