/** The tabs of the middle pane. */
import type { TargetedKeyboardEvent } from 'preact';
import { TABS, type Tab } from '../store/state.ts';

const NAMES: Readonly<Record<Tab, string>> = {
  overview: 'Overview',
  chart: 'Chart',
  messages: 'Messages',
  wire: 'Wire',
  timeline: 'Timeline',
  coverage: 'Coverage',
  server: 'Server',
};

export function Tabs({ chosen, onChoose }: { readonly chosen: Tab; readonly onChoose: (tab: Tab) => void }) {
  const keys = (event: TargetedKeyboardEvent<HTMLElement>): void => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    const next = TABS[(TABS.indexOf(chosen) + by + TABS.length) % TABS.length];
    if (next === undefined) return;
    onChoose(next);
    document.getElementById(`tab-${next}`)?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="tabs" role="tablist" aria-label="views" onKeyDown={keys}>
      {TABS.map((tab, index) => (
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
