/** The details of a request that arrived before the observation: the facts that the table of its connection lists. */
import { unseenOf } from '../../../src/inspector/model/index.ts';
import { Icon } from '../parts/icons.tsx';
import { ActorLink } from '../parts/parts.tsx';
import { known, place, type Selection } from '../store/state.ts';
import { Waiting } from './Waiting.tsx';

export function UnseenDetail({ of }: { readonly of: NonNullable<Selection['unseen']> }) {
  const table = known().actor(of.table);
  const held = table && unseenOf(known(), table, place.value).find(({ key }) => key === of.key);
  if (!held) return <p class="beside note">This request has ended.</p>;
  const { id, name, client, until } = held;
  return (
    <article class="what">
      <header>
        <p class="kind">
          <Icon name="request" size={14} />
          request
          <span class="beside">from the client</span>
        </p>
        <h2>{name}</h2>
        <p class="stands">
          <span class="state-word">open</span>
        </p>
      </header>
      <Waiting waits={[{ what: 'its result', ...(until === undefined ? { unconfirmed: true } : { until }) }]} />
      <dl class="facts">
        <div>
          <dt>id</dt>
          <dd class="mono">{id}</dd>
        </div>
        <div>
          <dt>client</dt>
          <dd>
            {client} <ActorLink address={known().doorOf(table.connection ?? '')} />
          </dd>
        </div>
      </dl>
      <p class="beside note">It arrived before the observation: its message is unknown.</p>
    </article>
  );
}
