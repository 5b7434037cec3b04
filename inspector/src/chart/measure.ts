/** The width of texts as the page draws them. */
import type { Measure, TextStyle } from '../../../src/features/charts/sketch.ts';

/** Equal to the fonts in chart.css. */
const FONTS: Readonly<Record<TextStyle, string>> = { name: '600 13px', row: '400 11.5px', label: '500 11.5px' };
/** Fonts in the browser that opens an export may be a little wider than here. */
const SLACK = 1.03;

let context: CanvasRenderingContext2D | null | undefined;
let family = '';

export const measure: Measure = (text, style) => {
  if (context === undefined) {
    context = document.createElement('canvas').getContext('2d');
    family = getComputedStyle(document.documentElement).getPropertyValue('--sans').trim() || 'sans-serif';
  }
  if (context === null) return text.length * 7;
  context.font = `${FONTS[style]} ${family}`;
  return context.measureText(text).width * SLACK;
};
