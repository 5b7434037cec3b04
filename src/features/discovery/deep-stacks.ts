/** Captures long stacks while a program loads: an error that a package throws deep inside of itself then still names the line of its author. */

/** XState rejects a chart 13 frames below the author's `createMachine`. */
const FRAMES = 50;

let loads = 0;
let usual = Error.stackTraceLimit;

/** Runs a load with long stacks. Loads may overlap. */
export async function withDeepStacks<T>(load: () => Promise<T>): Promise<T> {
  if (loads === 0) usual = Error.stackTraceLimit;
  loads += 1;
  Error.stackTraceLimit = Math.max(usual, FRAMES);
  try {
    return await load();
  } finally {
    loads -= 1;
    if (loads === 0) Error.stackTraceLimit = usual;
  }
}
