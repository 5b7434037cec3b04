/** The colours of the page: each meaning is legible on each surface, light and dark (WCAG 2.2, 1.4.3: at least 4.5 to 1). */
import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';

const test = suite('the colours of the page');

const css = readFileSync(new URL('../../../inspector/src/theme.css', import.meta.url), 'utf8');
const [light = '', dark = ''] = css.split(':root[data-theme="dark"]');
const colours = (text: string): ReadonlyMap<string, string> =>
  new Map([...text.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name = '', value = '']) => [name, value]));
const themes = { light: colours(light), dark: new Map([...colours(light), ...colours(dark)]) };

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(theme: ReadonlyMap<string, string>, ink: string, back: string): number {
  const [a = 0, b = 0] = [ink, back].map((name) => luminance(theme.get(name) ?? assert.unreachable(name) ?? ''));
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

const MEANINGS = ['wait', 'bad', 'good', 'hot'];
const SPANS = ['live', 'live-2', 'waiting', 'failed', 'done', 'ended'];
const PAIRS: readonly (readonly [ink: string, back: string])[] = [
  ...MEANINGS.flatMap((ink) =>
    ['surface', 'sunken', 'hover', 'raised', `${ink}-soft`].map((back) => [ink, back] as const),
  ),
  ...MEANINGS.map((ink) => [ink, 'accent-soft'] as const),
  ...SPANS.map((span) => ['span-ink', `span-${span}`] as const),
  ...['ink', 'ink-2', 'ink-3'].flatMap((ink) =>
    ['surface', 'sunken', 'hover', 'accent-soft'].map((back) => [ink, back] as const),
  ),
];

test('waiting, failed, done and just happened are legible on every surface', () => {
  for (const [name, theme] of Object.entries(themes))
    assert.equal(
      PAIRS.filter(([ink, back]) => contrast(theme, ink, back) < 4.5).map(
        ([ink, back]) => `${name}: ${ink} on ${back}: ${contrast(theme, ink, back).toFixed(2)}`,
      ),
      [],
    );
});

test('states have the colours of their meanings', async () => {
  const { TONES, toneOf } = await import('../../../inspector/src/timeline/tones.ts');
  const tone = (state: string) => TONES[toneOf(state)];
  assert.equal(
    ['asking (1)', 'input_required (2)', 'failed', 'crashed', 'done', 'completed', 'gone', 'idle'].map(tone),
    ['waiting', 'waiting', 'failed', 'failed', 'done', 'done', 'ended', 'ended'],
  );
  assert.match(tone('cart') ?? '', /^live/);
});
