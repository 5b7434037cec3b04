/** The steps of one request: each runs once, and what it gave is recorded, so that another run of the request need not do it again. */
import type { JsonObject, JsonValue } from '../protocol/json.ts';

export class Steps {
  readonly #running = new Map<string, Promise<unknown>>();
  /** What completed steps gave, in a list: empty for nothing, which JSON cannot say. */
  readonly #recorded: Record<string, JsonValue>;

  /** @param recorded what an earlier run of the request has recorded */
  constructor(recorded: JsonObject = {}) {
    this.#recorded = Object.assign(Object.create(null), recorded);
    for (const [name, given] of Object.entries(recorded))
      if (isList(given)) this.#running.set(name, Promise.resolve(given[0]));
  }

  /** A step that failed is not recorded: this run has failed at it, another may not. */
  readonly step = <T>(name: string, fn: () => T | Promise<T>): Promise<T> => {
    const before = this.#running.get(name);
    // The name is the author's promise that the step is the same, and with it its type.
    if (before) return before as Promise<T>;
    const running = (async () => fn())();
    this.#running.set(name, running);
    running.then(
      (given) => {
        this.#recorded[name] = given === undefined ? [] : [kept(given) as JsonValue];
      },
      () => {},
    );
    return running;
  };

  recorded(): JsonObject {
    return this.#recorded;
  }
}

/** A copy: its handler may change what a step gave, and would do so again in another run. What cannot be copied is found when it is sealed. */
function kept(given: unknown): unknown {
  try {
    return structuredClone(given);
  } catch {
    return given;
  }
}

function isList(value: unknown): value is readonly JsonValue[] {
  return Array.isArray(value);
}
