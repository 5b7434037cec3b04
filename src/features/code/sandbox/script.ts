/** A script of code mode: its text, its calls of the host, their deliveries, and its end. Types only. */

/** Fixes a run of a script: with the same deliveries it does the same again. */
export interface Script {
  /** JavaScript: the body of an async function. */
  readonly code: string;
  /** Fixes `Math.random`: a whole number from 0 to 2^32-1. */
  readonly seed: number;
  /** The clock of the script until the first delivery, in milliseconds since 1970. */
  readonly startedAt: number;
  /** The groups of functions, which are globals of the script. */
  readonly groups: readonly string[];
}

/** A call from the script to its host. */
export interface ScriptCall {
  /** Numbers begin at 1, in the order of the program. */
  readonly number: number;
  /** `group.function`, `group.function.raw`, or a helper: `sleep`, `ask`, `resource` or `progress`. */
  readonly name: string;
  /** JSON: the list of arguments. */
  readonly arguments: string;
  /** The line of the script that made the call. */
  readonly line?: number;
}

/** The error that a script catches when a call fails: its `ToolError`. */
export interface ScriptFault {
  readonly message: string;
  readonly tool?: string;
  readonly code?: number | string;
  /** JSON. */
  readonly data?: string;
  readonly carriedOut?: boolean | 'unknown';
  readonly retryAfterMs?: number;
}

/** The outcome of a call. The script learns of its calls in the order of their deliveries. */
export type Delivery = {
  readonly number: number;
  /** The clock of the script from now on, in milliseconds since 1970. */
  readonly at: number;
} & (
  | {
      /** JSON, or an empty text for `undefined`. */
      readonly value: string;
    }
  | { readonly error: ScriptFault }
);

/** A place in the text of the script. Lines and columns begin at 1. */
export interface ScriptPlace {
  readonly line?: number;
  readonly column?: number;
  /** The line, and a caret below the column. */
  readonly excerpt?: string;
}

export type ScriptEnd =
  | {
      readonly type: 'returned';
      /** JSON, or undefined if the script returned `undefined`. */
      readonly value: string | undefined;
    }
  | ({
      readonly type: 'threw';
      readonly name: string;
      readonly message: string;
      /** The failed call, if its error ended the script. */
      readonly fault?: ScriptFault;
    } & ScriptPlace)
  /** The text is no JavaScript, or too long. Nothing of it has run. */
  | ({ readonly type: 'invalid'; readonly message: string } & ScriptPlace)
  /** The script exceeded a limit, or its engine failed. The script cannot catch this, and must not run again. */
  | ({
      readonly type: 'stopped';
      readonly why: 'processor time' | 'memory' | 'stack' | 'output' | 'calls' | 'dropped' | 'engine';
      readonly message: string;
    } & ScriptPlace);

/** The part of a script until it could not continue without a delivery. */
export interface ScriptSlice {
  readonly calls: readonly ScriptCall[];
  /** The log since the previous slice: at most 4,000 characters, the first and the last. */
  readonly logs: readonly string[];
  readonly end?: ScriptEnd;
  readonly processorMs: number;
  readonly memoryBytes: number;
  /** Numbers of the calls without a delivery when the script ended. Empty until then. */
  readonly unfinished: readonly number[];
}
