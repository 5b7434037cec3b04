/** Lets the watchdog's thread ask the blocked one what runs there: a function under a name that every copy of this package shares. */
import { processWide } from '../global-registry.ts';
import type { Culprit } from './blocked.ts';

/** What one server knows of what runs now, but for where. Must not throw, and changes nothing: whatever runs is in the middle of it. */
export type StallProbe = () => Omit<Culprit, 'stack'> | undefined;

/** The name under `Symbol.for`. */
const NAME = 'troupe.blocked';

/** Deep enough to leave the libraries behind. */
const FRAMES = 40;

interface Telling {
  readonly tellers: Set<StallProbe>;
  tell(): Culprit;
}

const telling = processWide<Telling>(NAME, () => ({ tellers: new Set(), tell }));

/** What the thread evaluates in the blocked one (`Runtime.evaluate`). */
export const EXPRESSION = `globalThis[Symbol.for('${NAME}')].tell()`;

/** Asks `teller` what runs, until the returned function is called. */
export function installStallProbe(teller: StallProbe): () => void {
  telling.tellers.add(teller);
  return () => void telling.tellers.delete(teller);
}

/** Runs on top of whatever blocks the thread. */
function tell(): Culprit {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES;
  const { stack = '' } = new Error('blocked');
  Error.stackTraceLimit = limit;
  const known = { element: undefined, digest: undefined, actor: undefined, mail: undefined };
  const told = [...telling.tellers].map((teller) => teller()).find((found) => found !== undefined);
  return { ...known, ...told, stack: below(stack) };
}

/** Without its own frames: those above the evaluated expression, which has no file. */
function below(stack: string): string {
  const lines = stack.split('\n');
  const own = lines.findIndex((line) => /at (eval \()?<anonymous>:1:/.test(line));
  return lines.slice(own === -1 ? 2 : own + 1).join('\n');
}
