/** The steps of one request. Each runs once, and its result is recorded, so that another run of the request does not repeat it. */
import type { HeldMemory } from '../messages/request-view.ts';
import { retainedSize } from '../protocol/heap.ts';
import type { JsonObject, JsonValue } from '../protocol/json.ts';

/** The result of a step in a list, which is empty for undefined, because JSON cannot represent it. */
export type StepResult = readonly JsonValue[];

/** Bytes that a step takes besides its name and its result. */
export const STEP_BYTES = 300;

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

export interface StepsOptions {
  /** The results that an earlier run of the request recorded. */
  readonly recorded: JsonObject | undefined;
  /** Undefined where the results end with the process. */
  readonly journal: StepStore | undefined;
  /** Counts the results. */
  readonly memory: Pick<HeldMemory, 'hold'>;
  /** The journal checks it itself. */
  readonly maxStepsLength: number;
}

export class Steps {
  readonly #memory: Pick<HeldMemory, 'hold'>;
  readonly #maxLength: number;
  #length = 0;
  readonly #running = new Map<string, Promise<unknown>>();
  readonly #recorded: Record<string, JsonValue>;
  readonly #journal: StepStore | undefined;

  constructor({ recorded = {}, journal, memory, maxStepsLength }: StepsOptions) {
    this.#memory = memory;
    this.#maxLength = maxStepsLength;
    const { bytes, length } = retainedSize(recorded);
    this.#length = length;
    memory.hold(bytes, 'forced');
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
    const kept = listOf(given);
    this.#length += this.#count(name, given, kept).length;
    this.#recorded[name] = kept;
    return given;
  }

  /** Use the result only once it is durable, because later code may depend on it, and a question may be sealed with it. */
  async #journaled<T>(name: string, fn: () => T | Promise<T>, journal: StepStore): Promise<T> {
    const before = await journal.before(name);
    if (before) {
      this.#count(name, before[0], before);
      this.#recorded[name] = before;
      return before[0] as T;
    }
    const given = await fn();
    const kept = listOf(given);
    this.#count(name, given, kept);
    await journal.record(name, kept);
    this.#recorded[name] = kept;
    return given;
  }

  /** @throws {RangeError} where the result does not fit */
  #count(name: string, given: unknown, kept: StepResult): { readonly length: number } {
    const { bytes, length } = retainedSize([name, ...kept]);
    if (!this.#journal && this.#length + length > this.#maxLength)
      throw new RangeError(tooLong(name, this.#maxLength, this.#length + length));
    // The handler holds the original, and the request holds the copy.
    const copies = kept.length > 0 && kept[0] !== given ? 2 : 1;
    const full = this.#memory.hold(STEP_BYTES + copies * bytes);
    if (full !== undefined)
      throw new RangeError(
        `ctx.step("${name}") has run, but its result does not fit: ${full}. Return less, such as an id`,
      );
    return { length };
  }

  recorded(): JsonObject {
    return this.#recorded;
  }
}

export function tooLong(name: string, max: number, length: number): string {
  return `ctx.step("${name}") has run, but its result cannot be persisted: expected at most ${max} characters of JSON for all steps of a request, got ${length}. Return less, such as an id (the server's option is limits.maxStepsLength)`;
}

/**
 * Copies the result, because the handler may modify it and would do so again in another run. A value that cannot be copied
 * fails when it is written.
 */
function listOf(given: unknown): StepResult {
  if (given === undefined) return [];
  // Primitive values cannot change.
  if (typeof given !== 'object' || given === null) return [given as JsonValue];
  try {
    return [structuredClone(given) as JsonValue];
  } catch {
    return [given as JsonValue];
  }
}

function isList(value: unknown): value is StepResult {
  return Array.isArray(value);
}
