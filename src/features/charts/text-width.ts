/** The width of texts in a picture, without a browser: the advances of Arial, Helvetica and Liberation Sans, which are equal. */
import type { Measure, TextStyle } from './sketch.ts';

/** The fonts of a picture. */
export const FAMILY = 'Arial, Helvetica, Liberation Sans, sans-serif';
export const SIZES: Readonly<Record<TextStyle, number>> = { name: 13, row: 11.5, label: 11.5 };

/** The characters from the space to the tilde, in thousandths of the size of the font. */
const REGULAR: readonly number[] = [
  278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
  556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
  722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
  556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
  260, 334, 584,
];
const BOLD: readonly number[] = [
  278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
  556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833,
  722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611,
  556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389,
  280, 389, 584,
];
const SPACE = 0x20;
const ELLIPSIS = 0x2026;
/** Wider than an average letter of other alphabets. */
const OTHER = 700;
/** Scripts with characters as wide as high begin here. */
const WIDE_FROM = 0x2e7f;
const WIDE = 1_000;

/** Returns the width of a text in pixels. */
export const textWidth: Measure = (text, style) => {
  const table = style === 'name' ? BOLD : REGULAR;
  let sum = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? SPACE;
    sum += code > WIDE_FROM || code === ELLIPSIS ? WIDE : (table[code - SPACE] ?? OTHER);
  }
  return (sum * SIZES[style]) / 1_000;
};

/** True if the width of the text is that of the fonts, and not an estimate. */
export function isExact(text: string): boolean {
  return /^[ -~…]*$/.test(text);
}
