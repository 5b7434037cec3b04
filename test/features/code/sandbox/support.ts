/** Scripts for the tests of the sandboxes. */
import type { ScriptBounds } from '../../../../src/features/code/sandbox/sandboxed-script.ts';
import type { Delivery, Script, ScriptSlice } from '../../../../src/features/code/sandbox/script.ts';

export const BOUNDS: ScriptBounds = {
  sliceMs: 1_000,
  runMs: 10_000,
  memoryBytes: 33_554_432,
  maxCalls: 1_000,
  maxOutputLength: 1_048_576,
};

export function scriptOf(code: string, seed = 7): Script {
  return { code, seed, startedAt: 1_000, groups: ['shop', 'mail'] };
}

/** The outcome of a call with a value, one second after the one before it. */
export function value(number: number, json: string, at = 1_000 * (number + 1)): Delivery {
  return { number, at, value: json };
}

/** The end of a script in one line: its type, and what matters about it. */
export function endOf({ end }: ScriptSlice): string {
  if (!end) return 'waits';
  switch (end.type) {
    case 'returned':
      return `returned ${end.value}`;
    case 'stopped':
      return `stopped ${end.why}`;
    case 'threw':
      return `threw ${end.name}: ${end.message}`;
    case 'invalid':
      return `invalid ${end.message}`;
  }
}
