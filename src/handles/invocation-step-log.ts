/** Records the results of one invocation's steps, so that its work resumes after a restart. */
import { createHash } from 'node:crypto';
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
  for (const { kind, data } of before) running.set(kind, Promise.resolve(read(data, `${actor}: step "${kind}"`)));
  let seq = before.at(-1)?.seq ?? 0;
  let last: Promise<void> = Promise.resolve();
  const run = async <T>(name: string, fn: () => T | Promise<T>): Promise<T> => {
    const given = await fn();
    // Stored in a list, because undefined is not JSON.
    const kept = given === undefined ? [] : [serializable(given, `step "${name}"`, options.maxDepth)];
    const data = toText(kept);
    // Commit one step after the other: a failed commit must leave no gap before the next.
    const recorded = last.then(async () => {
      await store.commit([{ type: 'event', actor, stream, seq: seq + 1, kind: name, data }]);
      seq += 1;
    });
    last = recorded.catch(() => {});
    await recorded;
    return given;
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
  const given = fromText(data, what);
  if (Array.isArray(given)) return given[0];
  throw new Error(`${what}: expected the result of the step in a list, got ${messageOf(data).slice(0, 40)}`);
}
