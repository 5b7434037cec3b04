/** Records the results of one invocation's steps, so that its work resumes after a restart. */
import { createHash } from 'node:crypto';
import { STEP_BYTES } from '../input/steps.ts';
import { heapBytes, retainedSize } from '../protocol/heap.ts';
import { messageOf } from '../protocol/json.ts';
import { fromText, toText } from '../store/serialize.ts';
import type { Store } from '../store/store.ts';
import type { StepProvider } from './durable-steps.ts';
import { serializable } from './serializable.ts';

export interface InvocationStepLogOptions {
  readonly store: Store;
  /** The actor id of the instance. */
  readonly actor: string;
  /** The invocation, and the number of its starts. */
  readonly stream: string;
  readonly maxSteps: number;
  readonly maxDepth: number;
  /** Counts the bytes of the recorded steps, even if they exceed a limit. */
  counts(bytes: number): void;
  /** Counts the bytes of all steps, with a new one. @returns the exceeded limit */
  takes(bytes: number): string | undefined;
}

/**
 * Loads the recorded steps of an invocation.
 *
 * @throws {StoreError} if they cannot be read
 */
export async function stepsFor(options: InvocationStepLogOptions): Promise<StepProvider> {
  const { store, actor, stream, maxSteps } = options;
  const before = await store.events(actor, stream, 0, maxSteps);
  const running = new Map<string, Promise<unknown>>();
  // A store that is not durable holds the text in memory, too.
  const sizeOf = (name: string, result: unknown, data: string): number =>
    STEP_BYTES + retainedSize([name, result]).bytes + (store.durable ? 0 : heapBytes(data));
  let bytes = 0;
  for (const { kind, data } of before) {
    const result = read(data, `${actor}: step "${kind}"`);
    bytes += sizeOf(kind, result, data);
    running.set(kind, Promise.resolve(result));
  }
  if (bytes > 0) options.counts(bytes);
  let seq = before.at(-1)?.seq ?? 0;
  let last: Promise<void> = Promise.resolve();
  const run = async <T>(name: string, fn: () => T | Promise<T>): Promise<T> => {
    const result = await fn();
    // Stored in a list, because undefined is not JSON.
    const recordedResult = result === undefined ? [] : [serializable(result, `step "${name}"`, options.maxDepth)];
    const data = toText(recordedResult);
    const more = sizeOf(name, result, data);
    const full = options.takes(bytes + more);
    if (full !== undefined)
      throw new RangeError(`step "${name}" has run, but its result does not fit: ${full}. Return less, such as an id`);
    bytes += more;
    // Commit one step after the other: a failed commit must leave no gap before the next.
    const recorded = last.then(async () => {
      await store.commit([{ type: 'event', actor, stream, seq: seq + 1, kind: name, data }]);
      seq += 1;
    });
    last = recorded.catch(() => {
      bytes -= more;
      options.counts(bytes);
    });
    await recorded;
    return result;
  };
  return {
    key: createHash('sha256').update(`${actor} ${stream}`).digest('base64url'),
    step<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
      // The author promises by the name that the step is the same, and therefore its type.
      const known = running.get(name) as Promise<T> | undefined;
      if (known) return known;
      if (running.size >= maxSteps)
        return Promise.reject(
          new RangeError(
            `step "${name}": expected at most ${maxSteps} steps in one invocation (the server's option is limits.maxHandleSteps)`,
          ),
        );
      const step = run(name, fn);
      running.set(name, step);
      // A failed step may run again.
      step.catch(() => running.delete(name));
      return step;
    },
  };
}

function read(data: string, what: string): unknown {
  const result = fromText(data, what);
  if (Array.isArray(result)) return result[0];
  throw new Error(`${what}: expected the result of the step in a list, got ${messageOf(data).slice(0, 40)}`);
}
