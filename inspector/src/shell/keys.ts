/** The keys that work everywhere; a panel that has the focus takes its own before. */
import { goLive, mark, place, select, selection, show, step, supposed, TABS, togglePause } from '../store/state.ts';
import { toggleTheme } from '../store/theme.ts';
import { helpOpen } from './Help.tsx';

export const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ['/', 'to the filter'],
  ['← →', 'one record back, or forth; , and . do so in lists, too'],
  ['L', 'live: the cursor moves with what happens'],
  ['Space', 'pause, and go on'],
  ['M', 'mark this moment, and compare it with another'],
  ['1 … 5', 'chart, messages, wire, timeline, coverage'],
  ['A D', 'to the actors, to the detail'],
  ['↑ ↓', 'within a list; ← → close and open in the tree'],
  ['+ − 0', 'zoom the chart, and fit it'],
  ['⇧ drag', 'on the timeline: only what happened then'],
  ['T', 'light or dark'],
  ['Esc', 'select nothing'],
  ['?', 'this list'],
];

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
  const tab = TABS[Number(event.key) - 1];
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
