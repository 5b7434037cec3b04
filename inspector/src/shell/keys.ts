/** The global keys. A focused panel handles its own keys first. */
import { signal } from '@preact/signals';
import { goLive, mark, place, select, selection, show, step, supposed, tabs, togglePause } from '../store/state.ts';
import { toggleTheme } from '../store/theme.ts';
import { toggleCollapsed } from './panes.tsx';

export const helpOpen = signal(false);

export function keys(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
  const { target } = event;
  const typing =
    target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
  if (typing) {
    if (event.key === 'Escape') target.blur();
    return;
  }
  if (event.key === ' ' && target instanceof HTMLButtonElement) return;
  const act = ACTS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  const tab = tabs.value[Number(event.key) - 1];
  if (act) act();
  else if (tab) show(tab);
  else return;
  event.preventDefault();
}

const ACTS: Readonly<Record<string, () => void>> = {
  '/': () => document.getElementById('filter')?.focus(),
  '?': () => {
    helpOpen.value = !helpOpen.value;
  },
  ArrowLeft: () => step(-1),
  ArrowRight: () => step(1),
  ',': () => step(-1),
  '.': () => step(1),
  ' ': togglePause,
  l: goLive,
  '[': () => toggleCollapsed('left'),
  ']': () => toggleCollapsed('right'),
  '\\': () => toggleCollapsed('bottom'),
  t: toggleTheme,
  m: toggleMark,
  a: () => document.querySelector<HTMLElement>('.actors .list')?.focus(),
  d: () => document.querySelector<HTMLElement>('.detail [tabindex="0"]')?.focus(),
  Escape: () => {
    if (helpOpen.value) helpOpen.value = false;
    else if (supposed.value) supposed.value = undefined;
    else if (selection.value.record !== undefined && selection.value.actor !== undefined)
      select({ actor: selection.value.actor });
    else select({});
  },
};

export function toggleMark(): void {
  mark.value = mark.value === undefined ? place.value : undefined;
}
