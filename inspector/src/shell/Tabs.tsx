/** The tabs of the middle pane. */
import type { TargetedKeyboardEvent } from 'preact';
import { type Tab, tabs } from '../store/state.ts';

const NAMES: Readonly<Record<Tab, string>> = {
  overview: 'Overview',
  chart: 'Chart',
  messages: 'Messages',
  wire: 'Wire',
  timeline: 'Timeline',
  coverage: 'Coverage',
  server: 'Server',
  events: 'Events',
  script: 'Script',
};

export function Tabs({ chosen, onChoose }: { readonly chosen: Tab; readonly onChoose: (tab: Tab) => void }) {
  const keys = (event: TargetedKeyboardEvent<HTMLElement>): void => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    const all = tabs.value;
    const next = all[(all.indexOf(chosen) + by + all.length) % all.length];
    if (next === undefined) return;
    onChoose(next);
    document.getElementById(`tab-${next}`)?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="tabs" role="tablist" aria-label="views" onKeyDown={keys}>
      {tabs.value.map((tab, index) => (
        <button
          key={tab}
          id={`tab-${tab}`}
          type="button"
          role="tab"
          aria-selected={tab === chosen}
          aria-controls="view"
          tabIndex={tab === chosen ? 0 : -1}
          title={`${NAMES[tab]} (${index + 1})`}
          onClick={() => onChoose(tab)}
        >
          {NAMES[tab]}
        </button>
      ))}
    </div>
  );
}
