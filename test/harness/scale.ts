/**
 * The scale of a test run. `quick` (npm test) runs every test, with few repetitions; `full` (npm run test:full) repeats what proves
 * the whole system: all seeds, every kill; `proof` (npm run test:faults) takes hours.
 */
export type Scale = 'quick' | 'full' | 'proof';

const asked = process.env.TROUPE_SCALE ?? 'quick';
if (asked !== 'quick' && asked !== 'full' && asked !== 'proof')
  throw new Error(`TROUPE_SCALE: expected quick, full or proof, got ${asked}`);

export const SCALE: Scale = asked;

/** True at the scale that takes hours. */
export const PROOF = SCALE === 'proof';

/** The value for the scale of this run. @example const KILLS = atScale({ quick: 2, full: 10, proof: 100 }); */
export function atScale<T>(values: Readonly<Record<Scale, T>>): T {
  return values[SCALE];
}

/** The number of random inputs for the scale of this run: a fifth of them is quick. @example fc.assert(law, { numRuns: random(1_000) }); */
export function random(inputs: number): number {
  return SCALE === 'quick' ? Math.ceil(inputs / 5) : inputs;
}
