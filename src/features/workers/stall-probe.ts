/**
 * Lets the watchdog's thread ask a blocked thread what is running: a function under a symbol that every copy of this
 * package shares.
 */
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

interface SharedProbes {
  readonly tellers: Set<StallProbe>;
  /** The listeners of signals that were released. */
  readonly released: { readonly signal: NodeJS.Signals; readonly listener: NodeJS.SignalsListener }[];
  tell(): Culprit;
  release(): boolean;
}

const shared = processWide<SharedProbes>(NAME, () => ({ tellers: new Set(), released: [], tell, release }));

/** The expressions that the watchdog's thread evaluates in the blocked one (`Runtime.evaluate`). */
export const ASK = `globalThis[Symbol.for('${NAME}')].tell()`;
export const RELEASE = `globalThis[Symbol.for('${NAME}')].release()`;

/** Adds a probe until the returned function is called. */
export function installStallProbe(probe: StallProbe): () => void {
  shared.tellers.add(probe);
  return () => void shared.tellers.delete(probe);
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
  for (const signal of STOP)
    for (const listener of process.listeners(signal)) {
      process.off(signal, listener);
      shared.released.push({ signal, listener });
    }
  return shared.released.length > 0;
}

/** Gives the signals their listeners back: the thread runs again. */
export function holdSignals(): void {
  for (const { signal, listener } of shared.released.splice(0)) process.on(signal, listener);
}

/** Removes the probe's own frames: those above the evaluated expression, which has no file. */
function below(stack: string): string {
  const lines = stack.split('\n');
  const own = lines.findIndex((line) => /at (eval \()?<anonymous>:1:/.test(line));
  return lines.slice(own === -1 ? 2 : own + 1).join('\n');
}
