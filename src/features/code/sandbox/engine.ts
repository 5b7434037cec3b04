/** The interface of an engine of JavaScript that runs scripts, so that another engine can take its place. */
import type { GuestMessage } from './prelude.ts';

/** The engine of this version. A run records it: another one may repeat a script differently. */
export const ENGINE = 'quickjs-wasi 3.7.0';

export interface EngineOptions {
  /** Bytes that the script may allocate. */
  readonly memoryBytes: number;
  /** Receives a message of the prelude, and returns the number of a call. Never throws. */
  host(kind: GuestMessage, ...texts: readonly string[]): number;
  /** The clock of the script, in milliseconds since 1970. */
  date(): number;
  /** Asked every few thousand steps of the script: true ends the script, which cannot catch that. */
  mustStop(): boolean;
}

/** The values for `prepare` and `begin` of the prelude. */
export interface GuestStart {
  /** An expression: the script as an async function. */
  readonly source: string;
  /** JSON: the names of the groups. */
  readonly groups: string;
  readonly seed: number;
  readonly startedAt: number;
}

/** The values for `deliver` of the prelude. */
export interface GuestDelivery {
  readonly number: number;
  readonly ok: boolean;
  /** JSON of the value, or of the fault without its data. Empty for `undefined`. */
  readonly json: string;
  /** JSON of the data of a fault. Empty for none. */
  readonly data: string;
}

/**
 * The reason for which a script did not come to a rest. *error*: its text does not compile, or threw before the script began. *broken*: the engine
 * itself failed, and the script can only be disposed.
 */
export interface EngineFault {
  readonly type: 'error' | 'interrupted' | 'memory' | 'broken';
  readonly name: string;
  readonly message: string;
  readonly stack: string;
}

/** One script. `start` and `deliver` return when no part of it can continue. */
export interface EngineScript {
  /** Compiles and starts the script. May be called again after a fault of the type *error*. */
  start(start: GuestStart): EngineFault | undefined;
  /** Settles one call, and lets the script continue. */
  deliver(delivery: GuestDelivery): EngineFault | undefined;
  /** Ends the script at its next step: for use within `host`. */
  interrupt(): void;
  /** Bytes of this process that the script occupies. */
  memory(): number;
  dispose(): void;
}

export interface Engine {
  /** Name and version, for the record of a run. */
  readonly id: string;
  /** Makes a sandbox in which no script has run. */
  create(options: EngineOptions): Promise<EngineScript>;
}
