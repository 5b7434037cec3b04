/** QuickJS-ng in WebAssembly: each script has a memory of its own, and cannot catch its end by an interrupt or by its memory. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { JSValueHandle, QuickJS } from 'quickjs-wasi';
import { OWN } from '../../../core/kernel/package-files.ts';
import { messageOf } from '../../../core/protocol/json.ts';
import {
  ENGINE,
  type Engine,
  type EngineFault,
  type EngineOptions,
  type EngineScript,
  type GuestDelivery,
  type GuestStart,
} from './engine.ts';
import { isGuestMessage, PRELUDE, PRELUDE_FILE, SCRIPT_FILE } from './prelude.ts';

/** The part of WebAssembly that is used: it is in the library of browsers only, and the types of quickjs-wasi expect that one. */
declare global {
  namespace WebAssembly {
    interface Memory {
      readonly buffer: ArrayBuffer;
    }
    interface Module {
      readonly [Symbol.toStringTag]: string;
    }
    function compile(bytes: Uint8Array): Promise<Module>;
  }
}

/** A quarter of the stack of the WebAssembly module, which is 1 MiB. */
const STACK_BYTES = 262_144;
/** The number of WASI for a bad file descriptor: the engine prints nothing. */
const EBADF = 8;

/**
 * Loads the engine for all scripts of this thread.
 *
 * @param code the `code` of an engine of another thread of this process. Without it, the engine is compiled.
 */
export async function quickJsEngine(
  code?: WebAssembly.Module,
): Promise<Engine & { readonly code: WebAssembly.Module }> {
  const { Intrinsics, QuickJS } = await import('quickjs-wasi');
  const wasm = code ?? (await compiledEngine());
  return {
    id: ENGINE,
    code: wasm,
    async create(options) {
      const state: StopState = { stopped: false };
      let script: QuickJsScript | undefined;
      const vm = await QuickJS.create({
        wasm,
        memoryLimit: options.memoryBytes,
        maxStackSize: STACK_BYTES,
        timezoneOffset: 0,
        intrinsics: Intrinsics.ALL & ~Intrinsics.WEAK_REF,
        interruptHandler() {
          state.stopped ||= options.mustStop();
          // Returning true would throw an error in the guest, which the executor of a promise turns into a rejection: a script that
          // awaits one such promise after another would never end. This unwinds all of it.
          if (state.stopped) throw new Error('interrupted');
          return false;
        },
        onUnhandledRejection: (promise: JSValueHandle, reason: JSValueHandle, isHandled: boolean) =>
          script?.noteRejection(promise, reason, isHandled),
        wasi: (memory: WebAssembly.Memory) => ({
          clock_time_get(_clock: number, _precision: bigint, at: number) {
            new DataView(memory.buffer).setBigUint64(at, BigInt(Math.floor(options.date())) * 1_000_000n, true);
            return 0;
          },
          random_get(at: number, length: number) {
            new Uint8Array(memory.buffer, at, length).fill(0);
            return 0;
          },
          fd_write: () => EBADF,
        }),
      });
      try {
        script = new QuickJsScript(vm, options, state);
        return script;
      } catch (error) {
        // An exception of the guest shows its whole memory where it is printed.
        throw new Error(`the prelude of the sandbox failed: ${messageOf(error)}`);
      }
    },
  };
}

/** Compiles the engine, whose functions V8 compiles when a script first needs them. */
async function compiledEngine(): Promise<WebAssembly.Module> {
  const { resolve } = createRequire(new URL('quickjs-engine.js', OWN));
  return WebAssembly.compile(await readFile(resolve('quickjs-wasi/quickjs.wasm')));
}

interface StopState {
  /** The script must end. */
  stopped: boolean;
}

class QuickJsScript implements EngineScript {
  readonly #vm: QuickJS;
  readonly #state: StopState;
  readonly #prelude: JSValueHandle;
  readonly #host: EngineOptions['host'];

  constructor(vm: QuickJS, options: EngineOptions, state: StopState) {
    this.#vm = vm;
    this.#state = state;
    this.#host = options.host;
    const host = vm.newFunction('host', (first, ...texts) => {
      const kind = first?.toString();
      return vm.newNumber(isGuestMessage(kind) ? options.host(kind, ...texts.map(String)) : 0);
    });
    this.#prelude = vm.callFunction(vm.evalCode(PRELUDE, PRELUDE_FILE), vm.undefined, host);
  }

  start({ source, groups, seed, startedAt }: GuestStart): EngineFault | undefined {
    return this.#run(() => {
      this.#call('prepare', groups, seed, startedAt);
      const main = this.#vm.evalCode(source, SCRIPT_FILE);
      const begin = this.#prelude.getProp('begin');
      this.#vm.callFunction(begin, this.#vm.undefined, main).dispose();
    });
  }

  deliver({ number, ok, json, data }: GuestDelivery): EngineFault | undefined {
    return this.#run(() => this.#call('deliver', number, ok ? 1 : 0, json, data));
  }

  /** Reports a promise that was rejected and that nothing handles, or that something handles after all. */
  noteRejection(promise: JSValueHandle, reason: JSValueHandle, isHandled: boolean): void {
    if (isHandled) {
      this.#host('handled', String(promise.identity));
      return;
    }
    try {
      const { undefined: nothing } = this.#vm;
      const id = this.#vm.newNumber(promise.identity);
      this.#prelude.getProp('reject').consume((called) => this.#vm.callFunction(called, nothing, id, reason).dispose());
      id.dispose();
    } catch {
      // The reason cannot be read, or the script must end, which its next step does.
    }
  }

  interrupt(): void {
    this.#state.stopped = true;
  }

  memory(): number {
    return this.#vm._getMemory().buffer.byteLength;
  }

  dispose(): void {
    this.#vm.dispose();
  }

  #call(name: string, ...given: readonly (string | number)[]): void {
    const handles = given.map((each) =>
      typeof each === 'string' ? this.#vm.newString(each) : this.#vm.newNumber(each),
    );
    this.#prelude.getProp(name).consume((called) => {
      this.#vm.callFunction(called, this.#vm.undefined, ...handles).dispose();
    });
    for (const handle of handles) handle.dispose();
  }

  /** Runs a part of the script, and then its jobs. */
  #run(part: () => void): EngineFault | undefined {
    try {
      part();
      this.#vm.executePendingJobs();
    } catch (error) {
      if (!this.#state.stopped) return faultOf(error);
    }
    if (!this.#state.stopped) return undefined;
    return { type: 'interrupted', name: 'InternalError', message: 'interrupted', stack: '' };
  }
}

/** An exception of the guest has a handle. Others are those of WebAssembly: a trap, or the end of the stack of the thread. */
function faultOf(error: unknown): EngineFault {
  if (!(error instanceof Error) || !('handle' in error))
    return { type: 'broken', name: 'InternalError', message: messageOf(error), stack: '' };
  const { name, message, stack = '' } = error;
  const isMemory = name === 'InternalError' && message === 'out of memory';
  return { type: isMemory ? 'memory' : 'error', name, message, stack };
}
