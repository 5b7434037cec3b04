/** Any character, for texts of random characters. */
import * as fc from 'fast-check';

const SURROGATES = 0x800;

/**
 * Any code point but a surrogate. fast-check's `unit: 'binary'` has the same, and makes a table of all million of them: a second
 * of processor time and a hundred megabytes in each process.
 *
 * @example fc.string({ unit: character })
 */
export const character: fc.Arbitrary<string> = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES })
  .map((index) => String.fromCodePoint(index < 0xd800 ? index : index + SURROGATES));
