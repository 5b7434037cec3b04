/** The subscriptions to callbacks: who gets which events where, how far behind, and when the next attempt follows. */
import type { SubscriptionLine, SubscriptionsView } from '../../../src/inspector/traffic/traffic-messages.ts';
import { At, Left } from '../parts/parts.tsx';
import { select } from '../store/state.ts';
import { clockOf } from './traffic.ts';

export function Subscriptions({ subscriptions }: { readonly subscriptions: SubscriptionsView }) {
  const { all, suspended, failing, some } = subscriptions;
  const troubles = [
    ...(suspended === 0 ? [] : [`${suspended} suspended`]),
    ...(failing === 0 ? [] : [`${failing} failing`]),
  ];
  return (
    <section aria-labelledby="events-subscriptions">
      <header class="overview-head">
        <h2 id="events-subscriptions">Webhook subscriptions</h2>
        <span class="tally">{all.toLocaleString('en')}</span>
        {troubles.length === 0 ? null : <span class="tally bad">{troubles.join(', ')}</span>}
      </header>
      <table class="subscriptions-table">
        <thead>
          <tr>
            <th scope="col">event</th>
            <th scope="col">host</th>
            <th scope="col">state</th>
            <th scope="col">behind</th>
            <th scope="col">next attempt</th>
            <th scope="col">last failure</th>
          </tr>
        </thead>
        <tbody>
          {some.map((line) => (
            <SubscriptionRow key={line.id} line={line} />
          ))}
        </tbody>
      </table>
      {all > some.length ? <p class="overview-none">{(all - some.length).toLocaleString('en')} more</p> : null}
    </section>
  );
}

function SubscriptionRow({ line }: { readonly line: SubscriptionLine }) {
  const { actor, event, principal, host, state, behind, failedSince, failures, category, nextAttempt, dead } = line;
  const { lastDelivery } = line;
  const isDown = state === 'suspended' || failedSince !== undefined;
  return (
    <tr class={isDown ? 'failed' : ''} onClick={() => select({ actor })}>
      <th scope="row">
        <span class="cell-main">
          <button type="button" class="row-button mono" title={event} onClick={() => select({ actor })}>
            {event}
          </button>
        </span>
        <span class="cell-beside" title={principal}>
          {principal}
        </span>
      </th>
      <td>
        <span class="cell-main">
          <span class="cut" title={host}>
            {host}
          </span>
        </span>
        <span class="cell-beside">
          {lastDelivery === undefined ? 'nothing accepted yet' : 'accepted '}
          {lastDelivery === undefined ? null : <At at={clockOf(lastDelivery)} precise={false} />}
        </span>
      </td>
      <td>
        <span class="cell-main">{state}</span>
        <span class="cell-beside">
          {failedSince === undefined ? null : 'since '}
          {failedSince === undefined ? null : <At at={clockOf(failedSince)} precise={false} />}
        </span>
      </td>
      <td>
        <span class="cell-main">{behind === 0 ? 'up to date' : `${behind.toLocaleString('en')} behind`}</span>
        <span class="cell-beside">{dead === 0 ? null : `${dead} dead`}</span>
      </td>
      <td class="cell-until">
        {nextAttempt === undefined ? <span class="beside">–</span> : <Left until={clockOf(nextAttempt)} />}
      </td>
      <td>
        {category === undefined ? (
          <span class="beside">–</span>
        ) : (
          <>
            <span class={`cell-main${isDown ? ' bad' : ''}`}>{category}</span>
            <span class="cell-beside">
              {isDown ? (failures === 0 ? 'declined' : `${failures} in a row`) : 'recovered'}
            </span>
          </>
        )}
      </td>
    </tr>
  );
}
