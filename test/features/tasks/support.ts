/** What the tests of tasks share: a server with simulated time, and clients of both eras that take tasks. */
import * as z from 'zod';
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { TASKS_EXTENSION } from '../../../src/core/protocol/task-params.ts';
import { type Limits, memory, type Server } from '../../../src/index.ts';
import { type SimulatedClock, settled, TestClient } from '../../../src/testing/testing.ts';
import { timedServer } from '../../harness/memory.ts';
import { textOf } from '../../harness/results.ts';
import { wireChecker } from '../../harness/wire.ts';

export const NAME = { message: 'Who?', schema: z.object({ name: z.string() }) };
export const EXTENSION: JsonObject = { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } };

/** A handler that ends when the test says so. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

export interface Stage {
  readonly server: Server;
  readonly clock: SimulatedClock;
  /** What the operator was told. */
  readonly told: readonly string[];
  /** A modern client that takes tasks. */
  modern(principal?: string): Modern;
  /** A client with a session. */
  legacy(principal?: string, revision?: '2025-06-18' | '2025-11-25'): Promise<TestClient>;
}

export async function stage(limits: Partial<Limits> = {}): Promise<Stage> {
  const {
    server,
    clock,
    logged: told,
  } = timedServer({
    name: 'tasks',
    limits,
  });
  const { transport, connect } = memory();
  await server.listen(transport);
  const client = (principal: string | undefined, revision: '2025-06-18' | '2025-11-25' | '2026-07-28'): TestClient => {
    const check = wireChecker(revision);
    return new TestClient(connect(principal === undefined ? {} : { principal }), {
      onMessage: ({ direction, text }) => check(direction, text),
    });
  };
  return {
    server,
    clock,
    told,
    modern: (principal) => new Modern(client(principal, '2026-07-28')),
    async legacy(principal, revision = '2025-11-25') {
      const opened = client(principal, revision);
      await opened.initialize(revision, { elicitation: {} });
      return opened;
    },
  };
}

export class Modern {
  readonly client: TestClient;

  constructor(client: TestClient) {
    this.client = client;
  }

  send(method: string, params: JsonObject, capabilities = EXTENSION): Promise<JsonObject> {
    return this.client.modern(method, params, { [META.clientCapabilities]: capabilities });
  }

  call(name: string, args: JsonObject = {}, more: JsonObject = {}): Promise<JsonObject> {
    return this.send('tools/call', { name, arguments: args, ...more });
  }

  /** Calls a tool whose call becomes a task at once. @returns the task's id */
  async start(name: string, args: JsonObject = {}): Promise<string> {
    return idOf(await this.call(name, args));
  }

  get(taskId: string): Promise<JsonObject> {
    return this.send('tasks/get', { taskId });
  }

  async status(taskId: string): Promise<unknown> {
    return (await this.get(taskId)).status;
  }

  /** The text of its result. */
  async said(taskId: string): Promise<string> {
    const { result } = await this.get(taskId);
    return textOf(isObject(result) ? result : {});
  }

  update(taskId: string, inputResponses: JsonObject): Promise<JsonObject> {
    return this.send('tasks/update', { taskId, inputResponses });
  }

  cancel(taskId: string): Promise<JsonObject> {
    return this.send('tasks/cancel', { taskId });
  }
}

/** The id of the task that a request has become, in either era. */
export function idOf(result: JsonObject): string {
  const task = isObject(result.task) ? result.task : result;
  if (typeof task.taskId !== 'string') throw new Error(`expected a task, got ${JSON.stringify(result)}`);
  return task.taskId;
}

export function keysOf({ inputRequests }: JsonObject): readonly string[] {
  return isObject(inputRequests) ? Object.keys(inputRequests) : [];
}

/** A member of a member of a result. */
export function inside(result: JsonObject, ...path: readonly string[]): unknown {
  let value: unknown = result;
  for (const name of path) value = isObject(value) ? value[name] : undefined;
  return value;
}

export function accept(content: JsonObject): JsonObject {
  return { action: 'accept', content };
}

/** A promise, and whether it has settled by now. */
export async function pending(promise: Promise<unknown>): Promise<boolean> {
  let open = true;
  const close = (): void => {
    open = false;
  };
  promise.then(close, close);
  await settled();
  return open;
}
