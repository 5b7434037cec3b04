/** A server whose tools hand out the state of their callers, and the contract of state on any store. */
import * as assert from 'uvu/assert';
import { z } from 'zod';
import {
  type CallerState,
  type Context,
  createServer,
  defineState,
  type ServerOptions,
  type State,
  StateError,
} from '../../../src/index.ts';
import { connect, SimulatedClock, type TestClient } from '../../../src/testing/testing.ts';
import { random } from '../../core/store/support.ts';

export interface Stage {
  readonly server: ReturnType<typeof createServer>;
  readonly clock: SimulatedClock;
  /** What the operator was told. */
  readonly told: readonly string[];
  /** The context of a call of this client. */
  contextOf(client: TestClient): Promise<Context>;
  /** The state of a caller that has signed in, from a call without a session. */
  of(principal: string): Promise<CallerState>;
}

export function stage(options: Partial<ServerOptions> = {}, clock = new SimulatedClock()): Stage {
  const told: string[] = [];
  const server = createServer({
    ...{ name: 'keeping', version: '1.0.0', clock, log: (level, message) => void told.push(`${level}: ${message}`) },
    ...options,
  });
  let last: Context | undefined;
  server.tool('look', (_, ctx) => {
    last = ctx;
    return 'seen';
  });
  const contextOf = async (client: TestClient): Promise<Context> => {
    await client.call('look');
    if (!last) throw new Error('the tool did not run');
    return last;
  };
  return {
    ...{ server, clock, told, contextOf },
    async of(principal) {
      return (await contextOf(await connect(server, { auth: { principal } }))).state;
    },
  };
}

/** The fault of an operation on state, and its message. */
export async function faultOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return error instanceof StateError ? `${error.fault}: ${error.message}` : String(error);
  }
  return 'none';
}

/** Compares random operations, many of them in flight at once, with a map that does the same. */
export async function compareWithModel(state: State, seed: number, steps: number): Promise<void> {
  const next = random(seed);
  const pick = <T>(of: readonly [T, ...T[]]): T => of[Math.floor(next() * of.length)] ?? of[0];
  const keys = ['a', 'b', 'ab', '__proto__', 'constructor', 'é', '😀', 'a/b', ' '] as const;
  const values: readonly [unknown, ...unknown[]] = [
    ...([0, -1.5, '', 'text', '\ud800', null, true, [], {}, [1, [2]]] as const),
    { a: { b: 'c' } },
    JSON.parse('{"constructor":1}'),
  ];
  const nested = (before: unknown, value: unknown): unknown =>
    JSON.stringify([before ?? 'nothing', value]).length > 200 ? 'long' : [before ?? 'nothing', value];
  /** One of the keys has a schema. */
  const { b } = defineState({ b: z.unknown() });
  const model = new Map<string, unknown>();
  const pending: Promise<void>[] = [];
  const expect = (work: Promise<unknown>, expected: unknown): void =>
    void pending.push(work.then((found) => assert.equal(found, expected)));
  for (let step = 0; step < steps; step += 1) {
    const key = pick(keys);
    const value = pick(values);
    switch (pick(['get', 'get', 'set', 'set', 'delete', 'update', 'remove', 'list', 'clear', 'wait', 'wait'])) {
      case 'get':
        expect(key === 'b' ? state.get(b) : state.get(key), model.get(key));
        break;
      case 'set':
        expect(key === 'b' ? state.set(b, value) : state.set(key, value), undefined);
        model.set(key, value);
        break;
      case 'delete':
        expect(key === 'b' ? state.delete(b) : state.delete(key), model.delete(key));
        break;
      case 'update':
        expect(
          state.update(key, (found) => nested(found, value)),
          nested(model.get(key), value),
        );
        model.set(key, nested(model.get(key), value));
        break;
      case 'remove':
        expect(
          state.update(key, () => undefined),
          undefined,
        );
        model.delete(key);
        break;
      case 'list': {
        const prefix = pick(['', 'a', 'z']);
        const known = [...model.keys()].filter((each) => each.startsWith(prefix)).sort();
        expect(
          state.list(prefix).then((entries) => entries.map((entry) => entry.key)),
          known,
        );
        break;
      }
      case 'clear':
        if (next() < 0.2) {
          expect(state.clear(), undefined);
          model.clear();
        }
        break;
      default:
        await Promise.all(pending.splice(0));
    }
  }
  await Promise.all(pending);
}
