/**
 * The step log: runs each step once, by name, and records its result, so that another run of the same work does not repeat
 * it. A request (`ctx.step`), an invocation behind a handle and an invocation without a store (`fromSteps`) use it.
 */
import type { HeldMemory } from '../../core/messages/request-view.ts';
import { heapBytes, retainedSize } from '../../core/protocol/heap.ts';
import { describe, type JsonObject, type JsonValue, messageOf } from '../../core/protocol/json.ts';
import { copyAllNumbers } from '../../core/protocol/json-text.ts';
import { toText } from '../../core/store/serialize.ts';
import type { JournalEvent, Store, Write } from '../../core/store/store.ts';

/** The result of a step in a list, which is empty for undefined, because JSON cannot represent it. */
export type StepResult = readonly JsonValue[];

/** Bytes that a step takes besides its name and its result. */
const STEP_BYTES = 300;

/** Stores step results beyond the lifetime of the process. */
export interface StepStorage {
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
  record(name: string, result: StepResult): Promise<void>;
  /** The step has failed, so that it has no result. */
  failed(name: string): void;
  /** Returns the bytes that a stored result takes in the memory of this process. */
  bytesOf(result: StepResult): number;
}

interface StepLogOptions {
  /** The results that an earlier run of the work recorded. */
  readonly recorded: JsonObject | undefined;
  /** Undefined where the results end with the process. */
  readonly storage: StepStorage | undefined;
  /** Counts the results. */
  readonly memory: Pick<HeldMemory, 'hold' | 'free'>;
  /** Maximum number of characters of JSON of all results. The storage checks its own limit. */
  readonly maxLength: number;
  /** True: a step whose function failed stays failed in this run, as `ctx.step` promises. False: it may run again. */
  readonly remembersFailures: boolean;
  /** Returns the name of a step in errors. */
  label(name: string): string;
  /** Returns what is recorded of a result: a copy, if the work may modify it. @throws {Error} for a result that cannot be recorded */
  copy(result: unknown, label: string): JsonValue;
}

export class StepLog {
  readonly #options: StepLogOptions;
  readonly #steps = new Map<string, Promise<unknown>>();
  readonly #recorded: Record<string, JsonValue> = Object.create(null);
  #length = 0;

  constructor(options: StepLogOptions) {
    this.#options = options;
    for (const [name, result] of Object.entries(options.recorded ?? {})) {
      if (!isStepResult(result)) continue;
      this.#steps.set(name, Promise.resolve(result[0]));
      this.#recorded[name] = result;
      const { bytes, length } = retainedSize([name, ...result]);
      this.#length += length;
      options.memory.hold(STEP_BYTES + bytes + this.#storedBytes(result), 'forced');
    }
  }

  /** The results of completed steps, as far as they are recorded. */
  recorded(): JsonObject {
    return this.#recorded;
  }

  /**
   * A step whose function fails has no result, and another run of the work runs it again; within this run, the owner of the
   * log decides. A step that has run and whose result could not be recorded stays failed in this run, because its effects
   * may have happened.
   */
  readonly step = <T>(name: string, fn: () => T | Promise<T>): Promise<T> => {
    if (typeof name !== 'string' || typeof fn !== 'function')
      throw new TypeError(
        `step: expected the name of the step and a function, such as ctx.step('pay', () => pay(order)), got ${describe(name)} and ${describe(fn)}`,
      );
    const known = this.#steps.get(name);
    // The author promises by the name that the step is the same, and therefore its type.
    if (known) return known as Promise<T>;
    const { storage } = this.#options;
    const running = storage ? this.#stored(name, fn, storage) : this.#run(name, fn);
    this.#steps.set(name, running);
    // Callers that await the step receive its error. There may be none.
    running.catch(() => {});
    return running;
  };

  async #run<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
    const result = await this.#result(name, fn);
    const recorded = this.#copy(name, result);
    this.#length += this.#count(name, result, recorded).length;
    this.#recorded[name] = recorded;
    return result;
  }

  /** Returns the result only once it is durable, because later code may depend on it, and a question may be sealed with it. */
  async #stored<T>(name: string, fn: () => T | Promise<T>, storage: StepStorage): Promise<T> {
    const before = await this.#attempt(name, () => storage.before(name));
    if (before) {
      this.#count(name, before[0], before);
      this.#recorded[name] = before;
      return before[0] as T;
    }
    const result = await this.#result(name, fn);
    try {
      const recorded = this.#copy(name, result);
      const { bytes } = this.#count(name, result, recorded);
      const stored = storage.record(name, recorded);
      stored.catch(() => this.#options.memory.free(bytes));
      await stored;
      this.#recorded[name] = recorded;
      return result;
    } catch (error) {
      storage.failed(name);
      throw error;
    }
  }

  #result<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
    return this.#attempt(name, fn).catch((error: unknown) => {
      this.#options.storage?.failed(name);
      throw error;
    });
  }

  /** If this fails, the step has not run to its end. */
  async #attempt<T>(name: string, run: () => T | Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      // A function that throws at once fails before its promise is in the map.
      if (!this.#options.remembersFailures) queueMicrotask(() => this.#steps.delete(name));
      throw error;
    }
  }

  #copy(name: string, result: unknown): StepResult {
    const { copy, label } = this.#options;
    return result === undefined ? [] : [copy(result, label(name))];
  }

  /** @throws {RangeError} where the result does not fit */
  #count(name: string, result: unknown, recorded: StepResult): { readonly bytes: number; readonly length: number } {
    const { memory, storage, maxLength, label } = this.#options;
    const { bytes: own, length } = retainedSize([name, ...recorded]);
    if (!storage && this.#length + length > maxLength)
      throw new RangeError(tooLong(label(name), maxLength, this.#length + length));
    // The work holds the original, and the log holds the copy.
    const copies = recorded.length > 0 && recorded[0] !== result ? 2 : 1;
    const bytes = STEP_BYTES + copies * own + this.#storedBytes(recorded);
    const full = memory.hold(bytes);
    if (full === undefined) return { bytes, length };
    throw new RangeError(`${label(name)} has run, but its result does not fit: ${full}. Return less, such as an id`);
  }

  #storedBytes(result: StepResult): number {
    return this.#options.storage?.bytesOf(result) ?? 0;
  }
}

/** Converts a step to an event and back. The formats are those of existing databases. */
export interface StepFormat {
  write(name: string, result: StepResult): { readonly kind: string; readonly data: string };
  /** @returns undefined for an event that is no step */
  read(event: JournalEvent): { readonly name: string; readonly result: StepResult } | undefined;
}

interface StepStreamOptions {
  readonly store: Store;
  readonly actor: string;
  readonly stream: string;
  readonly format: StepFormat;
  readonly maxSteps: number;
  /** Maximum number of characters of JSON of all results. */
  readonly maxLength: number;
  /** The owner of the steps and the option that limits their number, for errors. */
  readonly limit: string;
  label(name: string): string;
  /** No earlier run can have recorded anything. */
  readonly fresh: boolean;
  /** True once another node continues the work: no step may begin here. */
  movedAway?(): boolean;
  /** Absent if its data is never deleted before its end. */
  erased?(): boolean;
  /** Returns the writes that are committed with a step besides its event. */
  more?(): readonly Write[];
}

/** The steps of one owner in an event stream of the store. */
export class StepStream implements StepStorage {
  readonly #options: StepStreamOptions;
  #fresh: boolean;
  #known: Promise<Map<string, StepResult>> | undefined;
  /** Steps that run, or whose results are being recorded. */
  readonly #running = new Set<string>();
  #seq = 0;
  #length = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(options: StepStreamOptions) {
    this.#options = options;
    this.#fresh = options.fresh;
  }

  /** Reads the recorded steps from the store once. */
  read(): Promise<ReadonlyMap<string, StepResult>> {
    this.#known ??= this.#fresh ? Promise.resolve(new Map()) : this.#load();
    return this.#known;
  }

  /** True if the store holds a step, as far as this process knows. */
  get begun(): boolean {
    return this.#seq > 0;
  }

  async before(name: string): Promise<StepResult | undefined> {
    const known = await this.read();
    if (this.#options.movedAway?.())
      throw new Error(`${this.#options.label(name)} was not run: another node continues this work`);
    const result = known.get(name);
    if (result) return result;
    const { maxSteps, limit, label } = this.#options;
    if (known.size + this.#running.size >= maxSteps)
      throw new RangeError(`${label(name)}: expected at most ${maxSteps} steps in one ${limit}`);
    this.#running.add(name);
    return undefined;
  }

  async record(name: string, result: StepResult): Promise<void> {
    const { maxLength, label } = this.#options;
    const event = this.#write(name, result);
    await this.read();
    const length = this.#length + event.data.length;
    if (length > maxLength) throw new RangeError(tooLong(label(name), maxLength, length));
    // Commit in order: if one commit fails, the next one uses its number.
    const recording = this.#last.then(() => {
      if (this.#options.erased?.()) throw new Error('the data of its owner is deleted');
      return this.#commit(name, result, event);
    });
    this.#last = recording.catch(() => {});
    try {
      await recording;
    } catch (error) {
      throw new Error(`${label(name)} has run, but its result could not be persisted: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  failed(name: string): void {
    this.#running.delete(name);
  }

  bytesOf(result: StepResult): number {
    // A store in memory holds the text.
    return this.#options.store.durable ? 0 : heapBytes(toText(result));
  }

  #write(name: string, result: StepResult): { readonly kind: string; readonly data: string } {
    const { format, label } = this.#options;
    try {
      return format.write(name, result);
    } catch (error) {
      throw new TypeError(
        `${label(name)} has run, but its result cannot be persisted: expected JSON data, got ${describe(result[0])}. Return plain data`,
        { cause: error },
      );
    }
  }

  async #commit(
    name: string,
    result: StepResult,
    event: { readonly kind: string; readonly data: string },
  ): Promise<void> {
    await this.read();
    const { actor, store, stream, more } = this.#options;
    const seq = this.#seq + 1;
    try {
      await store.commit([...(more?.() ?? []), { type: 'event', actor, stream, seq, ...event }]);
    } catch (error) {
      // The commit may have succeeded after all, so the next one reads the store first.
      this.#fresh = false;
      this.#known = undefined;
      throw error;
    }
    this.#seq = seq;
    this.#length += event.data.length;
    this.#running.delete(name);
    (await this.#known)?.set(name, result);
  }

  async #load(): Promise<Map<string, StepResult>> {
    const { store, actor, stream, format, maxSteps } = this.#options;
    const known = new Map<string, StepResult>();
    this.#seq = 0;
    this.#length = 0;
    for (const event of await store.events(actor, stream, 0, maxSteps)) {
      const step = format.read(event);
      if (step) known.set(step.name, step.result);
      this.#seq = event.seq;
      this.#length += event.data.length;
    }
    return known;
  }
}

/** Copies a result, because the handler may modify it and would do so again in another run. */
export function copyOf(result: unknown): JsonValue {
  // Primitive values cannot change.
  if (typeof result !== 'object' || result === null) return result as JsonValue;
  try {
    const copy: unknown = structuredClone(result);
    copyAllNumbers(result, copy);
    return copy as JsonValue;
  } catch {
    // A value that cannot be copied fails when it is written.
    return result as JsonValue;
  }
}

export function isStepResult(value: unknown): value is StepResult {
  return Array.isArray(value);
}

function tooLong(label: string, max: number, length: number): string {
  return `${label} has run, but its result cannot be persisted: expected at most ${max} characters of JSON for all steps of a request, got ${length}. Return less, such as an id (the server's option is limits.maxStepsLength)`;
}
