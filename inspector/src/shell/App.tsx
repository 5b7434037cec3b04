/**
 * The layout of the page: a header, actors on the left, the view in the middle, details on the right, the timeline at
 * the bottom. The bar for problems appears above the timeline: above the panes it would move the buttons under the
 * pointer, and a click would miss.
 */
import { useEffect } from 'preact/hooks';
import { Tree } from '../actors/Tree.tsx';
import { Detail } from '../detail/Detail.tsx';
import { Guarded } from '../parts/Guarded.tsx';
import { later } from '../parts/Later.tsx';
import { mark, notice, selection, show, tab } from '../store/state.ts';
import { Drop } from './Drop.tsx';
import { Header } from './Header.tsx';
import { helpOpen, keys } from './keys.ts';
import { Middle } from './Middle.tsx';
import { collapsed, paneStyle, Splitter } from './panes.tsx';
import { Strip } from './Strip.tsx';
import { Tabs } from './Tabs.tsx';
import { Trouble } from './Trouble.tsx';

const Compare = later('The comparison', async () => (await import('./Compare.tsx')).Compare);
const Help = later('This list', async () => (await import('./Help.tsx')).Help);

export function App() {
  useEffect(() => {
    addEventListener('keydown', keys);
    return () => removeEventListener('keydown', keys);
  }, []);
  const { actor, exchange, unseen, record } = selection.value;
  const nothing = [actor, exchange, unseen, record].every((chosen) => chosen === undefined);
  // Views with tables have the width of the detail while nothing is selected.
  const wide = nothing && (tab.value === 'overview' || tab.value === 'events');
  // The view of the timeline has every row: the strip would be a second one.
  const strip = tab.value !== 'timeline';
  return (
    <div class={`page${wide ? ' wide' : ''}${nothing ? ' unselected' : ''}`} style={paneStyle()}>
      <Header />
      <main class="panes">
        <nav class="pane actors" aria-label="actors" hidden={collapsed.value.left}>
          <Guarded what="The tree of actors">
            <Tree />
          </Guarded>
        </nav>
        <Splitter pane="left" label="width of the actors" />
        <div class="pane middle">
          <Tabs chosen={tab.value} onChoose={show} />
          {mark.value === undefined ? null : <Compare />}
          <Middle />
        </div>
        {wide ? null : (
          <>
            <Splitter pane="right" label="width of the detail" />
            <aside class="pane detail" aria-label="detail" hidden={collapsed.value.right}>
              <Guarded what="The detail">
                <Detail />
              </Guarded>
            </aside>
          </>
        )}
      </main>
      <Trouble />
      {strip ? (
        <footer class="foot">
          <Splitter pane="bottom" label="height of the timeline" />
          <div class="pane strip" hidden={collapsed.value.bottom}>
            <Guarded what="The timeline">
              <Strip />
            </Guarded>
          </div>
        </footer>
      ) : null}
      {helpOpen.value ? <Help /> : null}
      <Drop />
      <div class="notice" role="status" aria-live="polite">
        {notice.value === undefined ? null : <span>{notice.value}</span>}
      </div>
    </div>
  );
}
