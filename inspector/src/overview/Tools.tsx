/** The tools of the server while no client is connected: each leads to its form, because this page can call it, too. */
import { useEffect } from 'preact/hooks';
import { elementsOf, shown, titleOf, watchOffers } from '../server/offers.ts';
import { known, show } from '../store/state.ts';

/** Tools that are shown. The others are on the Server tab. */
const MOST = 12;

export function Tools() {
  useEffect(watchOffers, []);
  const { catalogue } = known();
  const tools = catalogue ? elementsOf(catalogue, 'tool') : [];
  const open = (next: typeof shown.value): void => {
    shown.value = next;
    show('server');
  };
  if (tools.length === 0) return null;
  return (
    <section class="connect" aria-labelledby="overview-tools">
      <h2 id="overview-tools">Call a tool from this page</h2>
      <p class="tools-to-call">
        {tools.slice(0, MOST).map((tool) => (
          <button key={tool.name} type="button" onClick={() => open({ kind: 'tool', name: tool.name })}>
            {titleOf(tool)}
          </button>
        ))}
        <button type="button" class="link" onClick={() => open({ kind: 'server' })}>
          {tools.length > MOST ? `all ${tools.length} tools, and all else` : 'All'} on the Server tab
        </button>
      </p>
    </section>
  );
}
