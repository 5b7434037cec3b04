/** An engine for tests of runs: it runs scripts as functions of this process, and replays them by their deliveries as the real one does. */
import type { ScriptEngine } from '../../../src/features/code/runs/run-messages.ts';
import type {
  Delivery,
  Script,
  ScriptCall,
  ScriptEnd,
  ScriptFault,
  ScriptSlice,
} from '../../../src/features/code/sandbox/script.ts';

class ToolError extends Error {
  override readonly name = 'ToolError';
  readonly fault: ScriptFault;

  constructor(fault: ScriptFault) {
    super(fault.message);
    this.fault = fault;
    Object.assign(this, {
      tool: fault.tool,
      code: fault.code,
      carriedOut: fault.carriedOut,
      retryAfterMs: fault.retryAfterMs,
    });
  }
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** One script that runs here. */
class Running {
  calls: ScriptCall[] = [];
  logs: string[] = [];
  end: ScriptEnd | undefined;
  readonly #open = new Map<number, Waiting>();
  #number = 0;

  constructor({ code, groups }: Script) {
    const call = (name: string, args: readonly unknown[]): Promise<unknown> => {
      this.#number += 1;
      const number = this.#number;
      this.calls.push({ number, name, arguments: JSON.stringify(args), line: 1 });
      return new Promise((resolve, reject) => this.#open.set(number, { resolve, reject }));
    };
    const group = (name: string): object =>
      new Proxy(
        {},
        {
          get: (_, member) =>
            Object.assign((...args: unknown[]) => call(`${name}.${String(member)}`, args), {
              raw: (...args: unknown[]) => call(`${name}.${String(member)}.raw`, args),
            }),
        },
      );
    const helpers = ['sleep', 'ask', 'resource', 'progress'];
    const names = [...groups, ...helpers, 'console', 'ToolError'];
    const values = [
      ...groups.map(group),
      ...helpers.map(
        (name) =>
          (...args: unknown[]) =>
            call(name, args),
      ),
      { log: (...args: unknown[]) => void this.logs.push(args.join(' ')) },
      ToolError,
    ];
    const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
    let body: (...values: unknown[]) => Promise<unknown>;
    try {
      body = new AsyncFunction(...names, code);
    } catch (error) {
      this.end = { type: 'invalid', message: String(error) };
      return;
    }
    body(...values).then(
      (value) => {
        this.end = { type: 'returned', value: value === undefined ? undefined : JSON.stringify(value) };
      },
      (error: unknown) => {
        const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) };
        this.end = { type: 'threw', name, message, ...(error instanceof ToolError ? { fault: error.fault } : {}) };
      },
    );
  }

  async deliver(deliveries: readonly Delivery[]): Promise<void> {
    for (const delivery of deliveries) {
      const waiting = this.#open.get(delivery.number);
      this.#open.delete(delivery.number);
      if ('error' in delivery) waiting?.reject(new ToolError(delivery.error));
      else waiting?.resolve(delivery.value === '' ? undefined : JSON.parse(delivery.value));
      await drained();
    }
  }

  slice(): ScriptSlice {
    const { calls, logs, end } = this;
    this.calls = [];
    this.logs = [];
    const unfinished = end ? [...this.#open.keys()] : [];
    return { calls, logs, ...(end ? { end } : {}), processorMs: 1, memoryBytes: 1_000, unfinished };
  }
}

/** Resolves when the promises of a script have settled. */
function drained(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export class FakeEngine implements ScriptEngine {
  readonly id = 'an engine for tests 1.0.0';
  readonly #running = new Map<string, Running>();
  /** The number of scripts that were begun, or begun again. */
  begun = 0;
  /** Forgets each script after each slice, so that it is begun again. */
  forgets = false;

  async begin(run: string, _principal: string, script: Script, deliveries: readonly Delivery[]): Promise<ScriptSlice> {
    this.begun += 1;
    const running = new Running(script);
    this.#running.set(run, running);
    await drained();
    await running.deliver(deliveries);
    if (this.forgets) this.drop(run);
    return running.slice();
  }

  async proceed(run: string, deliveries: readonly Delivery[]): Promise<ScriptSlice | undefined> {
    const running = this.#running.get(run);
    if (!running) return undefined;
    await running.deliver(deliveries);
    if (this.forgets) this.drop(run);
    return running.slice();
  }

  drop(run: string): void {
    this.#running.delete(run);
  }
}
