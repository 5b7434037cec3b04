/** The overview without a selection: everything that waits, and failures. */
import { flatten, lineOf, type TreeNode, waitsOf } from '../../../src/inspector/model/index.ts';
import { shapeOf } from '../actors/Tree.tsx';
import { Icon } from '../parts/icons.tsx';
import { Left, Section } from '../parts/parts.tsx';
import { known, place, select, tree } from '../store/state.ts';
import { CallTool } from './Act.tsx';

const MOST = 20;

export function Overview() {
  const data = known();
  const { hello } = data;
  const nodes = flatten(tree.value);
  const waiting = nodes.filter((node) => node.kind !== 'group' && shapeOf(node) === 'waiting');
  const troubles = data.troubles
    .filter(({ seq }) => seq <= place.value)
    .slice(-MOST)
    .reverse();
  return (
    <article class="what">
      <header>
        <p class="kind">
          <Icon name="server" size={14} /> server
        </p>
        <h2>{hello?.server.title ?? hello?.server.name ?? 'No server yet'}</h2>
        {hello ? (
          <p class="stands">
            <span class="beside">
              troupe {hello.troupe} · process {hello.pid}
            </span>
          </p>
        ) : null}
      </header>
      <Section title="Waiting" beside={waiting.length === 0 ? undefined : String(waiting.length)}>
        {waiting.length === 0 ? (
          <p class="beside">No call, input request or timer is waiting.</p>
        ) : (
          <ul class="chain">
            {waiting.slice(0, MOST).map((node) => (
              <WaitingNode key={node.id} node={node} />
            ))}
          </ul>
        )}
      </Section>
      {troubles.length === 0 ? null : (
        <Section title="Failures" beside={String(data.troubles.length)}>
          <ul class="chain">
            {troubles.map((record) => (
              <li key={record.seq}>
                <button
                  type="button"
                  class="moment bad"
                  onClick={() => select({ record: record.seq, ...('actor' in record ? { actor: record.actor } : {}) })}
                >
                  <span class="mono beside">#{record.seq}</span>
                  <span>{lineOf(data, record)}</span>
                </button>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {hello?.control === true ? <CallTool /> : null}
    </article>
  );
}

function WaitingNode({ node }: { readonly node: TreeNode }) {
  const wait = node.actor === undefined || node.unseen ? undefined : waitsOf(known(), node.actor, place.value)?.[0];
  const until = wait?.until ?? node.due;
  const what = wait === undefined || wait.what === node.label ? (wait?.whom ?? node.state) : wait.what;
  const { actor, exchange } = node;
  return (
    <li>
      <button
        type="button"
        class="moment"
        onClick={() => select(exchange ? { exchange: exchange.key } : actor === undefined ? {} : { actor })}
      >
        {node.kind === 'group' ? null : <Icon name={node.kind} size={14} />}
        <span>
          {node.label} <span class="beside">{what}</span>
        </span>
        {until === undefined ? null : <Left until={until} />}
      </button>
    </li>
  );
}
