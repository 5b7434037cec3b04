/** The nodes that share the store of the server. */
import type { KnownNodes } from '../../../src/inspector/model/index.ts';
import { plural } from '../parts/time.ts';

export function Nodes({ known: { nodes, state, free } }: { readonly known: KnownNodes }) {
  return (
    <section aria-labelledby="overview-nodes">
      <header class="overview-head">
        <h2 id="overview-nodes">Nodes</h2>
        <span class={free === 0 ? 'tally' : 'tally bad'}>
          {free === 0 ? nodes.length : `${plural(free, 'cell')} without a node`}
        </span>
      </header>
      <ul class="nodes">
        {nodes.map(({ node, address, version, cells, leaving }, index) => (
          <li key={node}>
            <code>{node}</code>
            <span>{index === 0 ? `this node, ${state}` : leaving ? 'leaving' : 'serving'}</span>
            <span>{plural(cells, 'cell')}</span>
            <span class="beside">
              {address} · {version}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
