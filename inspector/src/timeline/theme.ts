/** The page's colours for a canvas: read once, and again when the theme changes. */
import { TONES } from './tones.ts';

export interface Theme {
  readonly back: string;
  readonly rule: string;
  readonly ink: string;
  readonly ink2: string;
  readonly ink3: string;
  readonly spans: readonly string[];
  readonly spanInk: string;
  readonly idle: string;
  readonly cursor: string;
  readonly accentSoft: string;
  readonly accentLine: string;
  readonly good: string;
  readonly bad: string;
  readonly wait: string;
  readonly hot: string;
  readonly hover: string;
  readonly sans: string;
}

export function readTheme(from: Element): Theme {
  const style = getComputedStyle(from);
  const read = (name: string, fallback: string): string => style.getPropertyValue(name).trim() || fallback;
  return {
    back: read('--surface', '#fff'),
    rule: read('--rule', '#ddd'),
    ink: read('--ink', '#111'),
    ink2: read('--ink-2', '#444'),
    ink3: read('--ink-3', '#666'),
    spans: TONES.map((tone) => read(`--span-${tone}`, '#ddd')),
    spanInk: read('--span-ink', '#222'),
    idle: read('--idle', '#eee'),
    cursor: read('--cursor', '#2f55d4'),
    accentSoft: read('--accent-soft', '#e6ecfd'),
    accentLine: read('--accent-line', '#b4c4f5'),
    good: read('--good', '#1b7446'),
    bad: read('--bad', '#bb2a23'),
    wait: read('--wait', '#8a5b00'),
    hot: read('--hot', '#c2500a'),
    hover: read('--hover', '#f0f0ec'),
    sans: read('--sans', 'sans-serif'),
  };
}

/** Calls back on each change of the theme. @returns a function that ends it */
export function onTheme(changed: () => void): () => void {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const watch = new MutationObserver(changed);
  watch.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme', 'class'] });
  system.addEventListener('change', changed);
  return () => {
    watch.disconnect();
    system.removeEventListener('change', changed);
  };
}
