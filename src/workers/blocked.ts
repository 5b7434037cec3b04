/** What is said of a loop that was blocked: between the watchdog's thread and the process that it watches, and in the file that outlives it. Types only. */

/** What runs, as the blocked thread itself tells it. */
export interface Culprit {
  /** Such as `tool "resize"`; undefined where no handler runs. */
  readonly element: string | undefined;
  /** Tells the call from others of the same element: of its name and arguments, which it does not show. */
  readonly digest: string | undefined;
  /** The actor in whose turn it is, and the type of its mail. */
  readonly actor: string | undefined;
  readonly mail: string | undefined;
  /** Where it is, the innermost frame first. */
  readonly stack: string;
}

export interface Blocked {
  /** When it was found, in milliseconds since 1970. */
  readonly at: number;
  readonly blockedMs: number;
  /** Undefined where the thread could not even say: it is in native code. */
  readonly culprit: Culprit | undefined;
}

/** What the watchdog's thread is given. */
export interface WatchdogData {
  /** One number, which the watched thread changes every `beatMs`; and one that is not 0 while a debugger may hold it. */
  readonly beats: SharedArrayBuffer;
  readonly beatMs: number;
  readonly softMs: number;
  /** When a block is said aloud, whether or not it ends. */
  readonly hardMs: number;
  /** The process is ended at `hardMs`: somebody starts it again. */
  readonly kill: boolean;
  /** Where what blocked the process is written before it ends. */
  readonly record: string | undefined;
  /** Files in which it is noted what the process is in the middle of: there the thread marks that the process ends itself. */
  readonly notes: readonly string[];
}

/** What the process says to the thread: one such file more. */
export interface NotesOpened {
  readonly type: 'notes';
  readonly path: string;
}

/** What the thread says to the process that it watches: it can hear it once it is free. */
export interface BlockOver {
  readonly type: 'over';
  readonly blocked: Blocked;
}
