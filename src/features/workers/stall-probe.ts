/**
 * Lets the watchdog's thread ask a blocked thread what is running: a function under a symbol that every copy of this
 * package shares.
 */
import { fstatSync, readSync } from 'node:fs';
import { systemClock } from '../../core/kernel/clock.ts';
import { processWide } from '../../core/kernel/global-registry.ts';
import { STOP } from '../../core/transports/signals.ts';
import type { Culprit } from './blocked.ts';

/**
 * One server's view of the running code, without the stack. Must not throw or change anything: it runs in the middle of
 * other code.
 */
type StallProbe = () => Omit<Culprit, 'stack'> | undefined;

/** The key for `Symbol.for`. */
const NAME = 'troupe.blocked';

/** Enough frames to reach beyond libraries. */
const FRAMES = 40;
/** Bytes that are read of stdin at once, and that are held while the thread is blocked. */
const CHUNK_BYTES = 65_536;
const MAX_HELD_BYTES = 4 * 1_048_576;

/** Gives a person the use of the process back while its thread is blocked. The functions run on top of other code. */
export interface StallRelief {
  /** The thread is blocked: signals have their usual effect now. */
  release(): void;
  /** The thread runs again. */
  hold(): void;
  /** Asks for another process, which starts when this one has ended. */
  restart?(): void;
}

/** Receives that the process ends from the code of an element: `process.exit`. @param frames the stack, innermost frame first */
export type ExitProbe = (element: string, code: number, frames: readonly string[]) => void;

interface SharedProbes {
  readonly tellers: Set<StallProbe>;
  readonly exits: Set<ExitProbe>;
  readonly reliefs: Set<StallRelief>;
  /** The reliefs that were released. */
  relieved: readonly StallRelief[];
  /** The listeners of signals that were released. */
  readonly released: { readonly signal: NodeJS.Signals; readonly listener: NodeJS.SignalsListener }[];
  tell(): Culprit;
  release(): boolean;
  inputEnded(): boolean;
  restart(): boolean;
}

const shared = processWide<SharedProbes>(NAME, () => ({
  tellers: new Set(),
  exits: new Set(),
  reliefs: new Set(),
  relieved: [],
  released: [],
  ...{ tell, release, inputEnded, restart },
}));

/** The expressions that the watchdog's thread evaluates in the blocked one (`Runtime.evaluate`). */
export const ASK = `globalThis[Symbol.for('${NAME}')].tell()`;
export const RELEASE = `globalThis[Symbol.for('${NAME}')].release()`;
export const INPUT_ENDED = `globalThis[Symbol.for('${NAME}')].inputEnded()`;
export const RESTART = `globalThis[Symbol.for('${NAME}')].restart()`;

/** Adds probes until the returned function is called. */
export function installProbes(probe: StallProbe, exit: ExitProbe): () => void {
  if (shared.exits.size === 0) process.on('exit', exits);
  shared.tellers.add(probe);
  shared.exits.add(exit);
  return () => {
    shared.tellers.delete(probe);
    shared.exits.delete(exit);
    if (shared.exits.size === 0) process.off('exit', exits);
  };
}

/** Runs inside of `process.exit`, on top of the code that calls it. */
function exits(code: number): void {
  const { element, stack } = tell();
  if (element === undefined) return;
  for (const exit of shared.exits) exit(element, code, stack.split('\n'));
}

/** Adds a relief until the process ends. */
export function relieveStalls(relief: StallRelief): void {
  shared.reliefs.add(relief);
}

/** Runs on top of the code that blocks the thread. */
function tell(): Culprit {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES;
  const { stack = '' } = new Error('blocked');
  Error.stackTraceLimit = limit;
  const known = { element: undefined, digest: undefined, actor: undefined, mail: undefined };
  const running = [...shared.tellers].map((probe) => probe()).find((found) => found !== undefined);
  return { ...known, ...running, stack: below(stack) };
}

/**
 * Removes the listeners of the signals that ask a process to stop, on top of the code that blocks the thread: no listener
 * runs as long as that lasts, and without one the system ends the process.
 *
 * @returns true if there were any
 */
function release(): boolean {
  if (shared.relieved.length === 0) {
    shared.relieved = [...shared.reliefs];
    for (const relief of shared.relieved) relief.release();
  }
  for (const signal of STOP)
    for (const listener of process.listeners(signal)) {
      process.off(signal, listener);
      shared.released.push({ signal, listener });
    }
  return shared.released.length > 0 || shared.relieved.length > 0;
}

/** Asks for another process. @returns false if nothing starts one */
function restart(): boolean {
  const able = [...shared.reliefs].find((relief) => relief.restart);
  able?.restart?.();
  return able !== undefined;
}

/**
 * True if stdin has ended: its stream cannot find that out while the thread is blocked. What is read goes into the stream, in
 * order, and flows when the thread runs again.
 */
function inputEnded(): boolean {
  const { stdin } = process;
  // A file has an end. A terminal sends SIGHUP. On Windows, a read of a pipe may wait.
  if (stdin.isTTY || process.platform === 'win32') return false;
  const pipe = fstatSync(0);
  if (!(pipe.isFIFO() || pipe.isSocket()) || stdin.destroyed || stdin.readableEnded) return true;
  while (stdin.readableLength < MAX_HELD_BYTES) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    let bytes = 0;
    try {
      bytes = readSync(0, chunk);
    } catch (error) {
      return !(error instanceof Error && 'code' in error && error.code === 'EAGAIN');
    }
    if (bytes === 0) return true;
    const flows = stdin.readableFlowing === true;
    // The stream would call its listeners at once, in the middle of the blocking code.
    if (flows) stdin.pause();
    stdin.push(chunk.subarray(0, bytes));
    if (flows) systemClock.soon(() => void stdin.resume());
  }
  return false;
}

/** Gives the signals their listeners back: the thread runs again. */
export function holdSignals(): void {
  for (const { signal, listener } of shared.released.splice(0)) process.on(signal, listener);
  for (const relief of shared.relieved) relief.hold();
  shared.relieved = [];
}

/** Removes the probe's own frames: those above the evaluated expression, which has no file. */
function below(stack: string): string {
  const lines = stack.split('\n');
  const own = lines.findIndex((line) => /at (eval \()?<anonymous>:1:/.test(line));
  return lines.slice(own === -1 ? 2 : own + 1).join('\n');
}
