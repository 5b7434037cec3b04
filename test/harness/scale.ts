/**
 * The scale of a test run. `quick` (npm test) has a test of each promise; `full` (npm run test:full) runs all tests, each proof of
 * the whole system once; `proof` (npm run test:proof) repeats them: all seeds, every kill. It takes hours.
 */
export type Scale = 'quick' | 'full' | 'proof';

const asked = process.env.TROUPE_SCALE ?? 'quick';
if (asked !== 'quick' && asked !== 'full' && asked !== 'proof')
  throw new Error(`TROUPE_SCALE: expected quick, full or proof, got ${asked}`);

export const SCALE: Scale = asked;

/** True at the scale that takes hours. */
export const PROOF = SCALE === 'proof';

const DAY_MS = 86_400_000;

/** The first seed of the simulated worlds. The date chooses it for the full run, so that each day sees other worlds. */
export const FIRST_SEED = firstSeed(SCALE);

/** The first seed at a scale: of today, for the full run. */
export function firstSeed(scale: Scale): number {
  return scale === 'full' ? today() * 1_000 : 1;
}

/** Days since 1970. */
function today(): number {
  return Math.floor(Date.now() / DAY_MS);
}

/** The value for the scale of this run. @example const KILLS = atScale({ quick: 2, full: 10, proof: 100 }); */
export function atScale<T>(values: Readonly<Record<Scale, T>>): T {
  return values[SCALE];
}

/** The number of repetitions for the scale of this run. @example const CLIENTS = times(200, { quick: 20 }); */
export function times(all: number, { quick }: { readonly quick: number }): number {
  return SCALE === 'quick' ? quick : all;
}

/** Some elements of a list: as many as given in the full run, which the date chooses, and all of them in the proofs. */
export function ofToday<T>(list: readonly T[], count: number): readonly T[] {
  if (SCALE === 'proof') return list;
  const first = today() * count;
  return list.filter((_, at) => (at - (first % list.length) + list.length) % list.length < count);
}

/** The fewest random inputs of a law in a quick run. */
const FEWEST = 10;

/** The number of random inputs for the scale of this run: a fortieth of them is quick, a half is in the full run. @example fc.assert(law, { numRuns: random(1_000) }); */
export function random(inputs: number): number {
  const share = atScale({ quick: 40, full: 2, proof: 1 });
  return Math.min(inputs, Math.max(FEWEST, Math.ceil(inputs / share)));
}
