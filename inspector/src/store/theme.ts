/** The light or dark theme: the system's, unless the reader chooses one. */
import { effect, signal } from '@preact/signals';
import { recall, remember } from './memory.ts';

export type Theme = 'light' | 'dark';

const system = matchMedia('(prefers-color-scheme: dark)');
const chosen = signal<Theme | undefined>(read());
const dark = signal(system.matches);

export const theme = (): Theme => chosen.value ?? (dark.value ? 'dark' : 'light');

export function toggleTheme(): void {
  chosen.value = theme() === 'dark' ? 'light' : 'dark';
  remember('theme', chosen.value);
}

export function beginTheme(): void {
  system.addEventListener('change', ({ matches }) => {
    dark.value = matches;
  });
  effect(() => {
    document.documentElement.dataset.theme = theme();
  });
}

function read(): Theme | undefined {
  const kept = recall('theme');
  return kept === 'light' || kept === 'dark' ? kept : undefined;
}
