/** The messages between the sandboxes and their threads. Types only. */

import type { ScriptBounds } from './sandboxed-script.ts';
import type { Delivery, Script, ScriptSlice } from './script.ts';

/** The data of a thread when it starts. */
export interface SandboxThreadData {
  readonly bounds: ScriptBounds;
  /** Scripts that the thread holds at most while they wait. */
  readonly warm: number;
  /** Two numbers: the job that must end, and a count that grows while a script asks whether it must. */
  readonly shared: SharedArrayBuffer;
  /** The engine that an earlier thread has compiled. */
  readonly engine: WebAssembly.Module | undefined;
}

/** The indices of the shared numbers. */
export type SandboxSignal = 'dropped' | 'beats';

export type SandboxMail =
  /** Start a script, or repeat it with all deliveries so far. */
  | {
      readonly type: 'begin';
      readonly job: number;
      readonly run: string;
      readonly script: Script;
      readonly deliveries: readonly Delivery[];
    }
  | { readonly type: 'proceed'; readonly job: number; readonly run: string; readonly deliveries: readonly Delivery[] }
  /** Forget a script that waits. */
  | { readonly type: 'drop'; readonly run: string };

export type SandboxThreadMail =
  /** The engine is loaded, and for the next thread. `times`: the file with the processor time of the thread, where the system has one. */
  | { readonly type: 'ready'; readonly times: string | undefined; readonly engine: WebAssembly.Module }
  /** The script waits or has ended; undefined if the thread does not have it. */
  | {
      readonly type: 'rested';
      readonly job: number;
      readonly slice: ScriptSlice | undefined;
      readonly evicted: readonly string[];
    };
