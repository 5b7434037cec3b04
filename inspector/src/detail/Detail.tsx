/** The details of the selection. */
import { later } from '../parts/Later.tsx';
import { known, selection } from '../store/state.ts';
import { ActorDetail } from './ActorDetail.tsx';
import { RecordCard } from './RecordCard.tsx';
import { ServerDetail } from './ServerDetail.tsx';
import { UnseenDetail } from './UnseenDetail.tsx';
import './detail.css';

const ExchangeDetail = later('The request', async () => (await import('./ExchangeDetail.tsx')).ExchangeDetail);

export function Detail() {
  const { actor, exchange, unseen, record } = selection.value;
  const found = exchange === undefined ? undefined : known().exchanges.find(exchange);
  const line = actor === undefined ? undefined : known().actor(actor);
  const shown = [actor, exchange, unseen?.table, unseen?.key, record].join(' ');
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled with the keys.
    // biome-ignore lint/a11y/useSemanticElements: a region of the page, not a section of its text.
    <div class="scroll" key={shown} tabIndex={0} role="region" aria-label="selection">
      {record === undefined ? null : <RecordCard seq={record} />}
      {found ? (
        <ExchangeDetail exchange={found} />
      ) : line ? (
        <ActorDetail line={line} />
      ) : unseen !== undefined ? (
        <UnseenDetail of={unseen} />
      ) : record === undefined ? (
        <ServerDetail />
      ) : null}
    </div>
  );
}
