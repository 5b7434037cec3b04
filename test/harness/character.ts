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

/** What a person takes for one character, also where it is several code points. `unit: 'grapheme'` makes the same table. */
export const grapheme: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: character },
  fc.constantFrom('é', 'e\u0301', '각', '\u{1f469}\u200d\u{1f680}', '\u{1f1eb}\u{1f1f7}', '\u0915\u094d\u0937\u093f'),
);
