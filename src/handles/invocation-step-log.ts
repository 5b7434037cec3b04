/** Keeps what the steps of one invocation gave, so that the work that is run anew after a restart goes on where it was. */
import { createHash } from 'node:crypto';
import { messageOf } from '../protocol/json.ts';
import { fromText, toText } from '../store/serialize.ts';
import type { Store } from '../store/store.ts';
import type { StepProvider } from './durable-steps.ts';
import { serializable } from './serializable.ts';

export interface InvocationStepLogOptions {
  readonly store: Store;
  /** The instance. */
  readonly actor: string;
  /** The invocation, and how often it has begun. */
  readonly stream: string;
  readonly maxSteps: number;
  readonly maxDepth: number;
}

/** Lends an invocation its steps, with what they gave before. @throws {StoreError} where that cannot be read */
export async function stepsFor(options: InvocationStepLogOptions): Promise<StepProvider> {
  const { store, actor, stream, maxSteps } = options;
  const before = await store.events(actor, stream, 0, maxSteps);
  const running = new Map<string, Promise<unknown>>();
  for (const { kind, data } of before) running.set(kind, Promise.resolve(read(data, `${actor}: step "${kind}"`)));
  let seq = before.at(-1)?.seq ?? 0;
  let last: Promise<void> = Promise.resolve();
  const run = async <T>(name: string, fn: () => T | Promise<T>): Promise<T> => {
    const given = await fn();
    // In a list, for nothing is no JSON.
    const kept = given === undefined ? [] : [serializable(given, `step "${name}"`, options.maxDepth)];
    const data = toText(kept);
    // One after the other: a batch that fails must leave no gap before the next.
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
      // The name is the author's promise that the step is the same, and with it its type.
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
      // One that failed may be tried again.
      step.catch(() => running.delete(name));
      return step;
    },
  };
}

function read(data: string, what: string): unknown {
  const given = fromText(data, what);
  if (Array.isArray(given)) return given[0];
  throw new Error(`${what}: expected what the step gave in a list, got ${messageOf(data).slice(0, 40)}`);
}
