/** The page's colours for a canvas: read once, and again when the theme changes. */

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
    spans: [1, 2, 3, 4, 5, 6, 7].map((index) => read(`--span-${index}`, '#ddd')),
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

const tones = new Map<string, number>();
const ENDED = /^(closed|stopped|gone|cancelled|expired)\b/;
const FAILED = /fail|error|crash|broken|aside/;

/** The colour of a state: the same name has the same colour everywhere, ends are grey, failures reddish. */
export function toneOf(state: string): number {
  const known = tones.get(state);
  if (known !== undefined) return known;
  let hash = 7;
  for (let index = 0; index < state.length; index += 1) hash = (hash * 31 + state.charCodeAt(index)) >>> 0;
  let tone = hash % 5;
  if (FAILED.test(state)) tone = 5;
  else if (ENDED.test(state)) tone = 6;
  if (tones.size > 2_000) tones.clear();
  tones.set(state, tone);
  return tone;
}
