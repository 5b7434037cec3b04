/** The engine of the sandboxes on quickjs-emscripten: proof that another engine can take the place of quickjs-wasi. */
import {
  newQuickJSWASMModuleFromVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSWASMModule,
} from 'quickjs-emscripten-core';
import type {
  Engine,
  EngineFault,
  EngineOptions,
  EngineScript,
  GuestDelivery,
  GuestStart,
} from '../../../../src/features/code/sandbox/engine.ts';
import { isGuestMessage, PRELUDE, PRELUDE_FILE, SCRIPT_FILE } from '../../../../src/features/code/sandbox/prelude.ts';

const STACK_BYTES = 262_144;

/** This engine has the clock of the process: the script gets another one. */
const CLOCK = `(date) => {
  const Native = Date;
  const Given = function Date(...given) {
    if (!new.target) return new Given().toString();
    return Reflect.construct(Native, given.length ? given : [date()], new.target === Given ? Native : new.target);
  };
  Object.defineProperties(Given, Object.getOwnPropertyDescriptors(Native));
  Given.now = () => date();
  Native.prototype.constructor = Given;
  globalThis.Date = Given;
}`;

/** Each script has an instance of its own, so that none shares the memory of another. */
export const emscriptenEngine: Engine = {
  id: 'quickjs-emscripten',
  async create(options) {
    const module = await newQuickJSWASMModuleFromVariant(import('@jitl/quickjs-wasmfile-release-sync'));
    return new EmscriptenScript(module, options);
  },
};

class EmscriptenScript implements EngineScript {
  readonly #module: QuickJSWASMModule;
  readonly #vm: QuickJSContext;
  readonly #prelude: QuickJSHandle;
  #stopped = false;

  constructor(module: QuickJSWASMModule, options: EngineOptions) {
    const vm = module.newContext();
    this.#module = module;
    this.#vm = vm;
    vm.runtime.setMemoryLimit(options.memoryBytes);
    vm.runtime.setMaxStackSize(STACK_BYTES);
    vm.runtime.setInterruptHandler(() => {
      this.#stopped ||= options.mustStop();
      return this.#stopped;
    });
    const date = vm.newFunction('date', () => vm.newNumber(options.date()));
    vm.callFunction(vm.unwrapResult(vm.evalCode(CLOCK)), vm.undefined, date);
    const host = vm.newFunction('host', (first, ...texts) => {
      const kind = first && vm.getString(first);
      return vm.newNumber(isGuestMessage(kind) ? options.host(kind, ...texts.map((text) => vm.getString(text))) : 0);
    });
    const made = vm.callFunction(vm.unwrapResult(vm.evalCode(PRELUDE, PRELUDE_FILE)), vm.undefined, host);
    this.#prelude = vm.unwrapResult(made);
  }

  start({ source, groups, seed, startedAt }: GuestStart): EngineFault | undefined {
    const vm = this.#vm;
    const given = [vm.newString(groups), vm.newNumber(seed), vm.newNumber(startedAt)];
    const prepared = this.#run(() => vm.callFunction(vm.getProp(this.#prelude, 'prepare'), vm.undefined, ...given));
    if (prepared) return prepared;
    return this.#run(() => {
      const main = vm.evalCode(source, SCRIPT_FILE);
      return main.error ? main : vm.callFunction(vm.getProp(this.#prelude, 'begin'), vm.undefined, main.value);
    });
  }

  deliver({ number, ok, json, data }: GuestDelivery): EngineFault | undefined {
    const vm = this.#vm;
    const given = [vm.newNumber(number), vm.newNumber(ok ? 1 : 0), vm.newString(json), vm.newString(data)];
    return this.#run(() => vm.callFunction(vm.getProp(this.#prelude, 'deliver'), vm.undefined, ...given));
  }

  interrupt(): void {
    this.#stopped = true;
  }

  memory(): number {
    return this.#module.getWasmMemory().buffer.byteLength;
  }

  dispose(): void {
    // Handles may be open, and the instance of the module is forgotten with all of its memory.
  }

  #run(part: () => { readonly error?: QuickJSHandle | undefined }): EngineFault | undefined {
    let error: QuickJSHandle | undefined;
    try {
      error = part().error;
      // A job of a script that was interrupted may have queued the next one.
      const { runtime } = this.#vm;
      while (!error && !this.#stopped && runtime.hasPendingJob()) error = runtime.executePendingJobs(1).error;
    } catch (broken) {
      return {
        type: 'broken',
        name: 'InternalError',
        message: broken instanceof Error ? broken.message : '',
        stack: '',
      };
    }
    if (this.#stopped) return { type: 'interrupted', name: 'InternalError', message: 'interrupted', stack: '' };
    if (!error) return undefined;
    const { name = '', message = '', stack = '' } = this.#vm.dump(error);
    const isMemory = name === 'InternalError' && message === 'out of memory';
    return { type: isMemory ? 'memory' : 'error', name, message, stack };
  }
}
