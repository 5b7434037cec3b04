/** The view of events: what enters and leaves the server, when its schedules run, and what was given up. */
import { connection } from '../store/state.ts';
import { EventTypes } from './EventTypes.tsx';
import { Deliveries, Letters } from './Letters.tsx';
import { Schedules } from './Schedules.tsx';
import { Subscriptions } from './Subscriptions.tsx';
import { traffic, useLooks } from './traffic.ts';
import '../overview/overview.css';
import '../server/server.css';
import './traffic.css';

export function Traffic() {
  useLooks();
  const view = traffic.value;
  if (connection.value.state !== 'live') return <p class="none">The view of events needs the running server.</p>;
  if (!view) return null;
  const { types, subscriptions, schedules, deliveries, letters } = view;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled with the keys.
    // biome-ignore lint/a11y/useSemanticElements: a region of the page, not a section of its text.
    <div class="overview traffic scroll" tabIndex={0} role="region" aria-label="events">
      {letters.length === 0 ? null : <Letters letters={letters} />}
      {types.length === 0 ? null : <EventTypes types={types} />}
      {subscriptions.all === 0 ? null : <Subscriptions subscriptions={subscriptions} />}
      {schedules.length === 0 ? null : <Schedules schedules={schedules} />}
      {deliveries.length === 0 ? null : <Deliveries deliveries={deliveries} />}
      {[types, schedules, deliveries, letters].every(({ length }) => length === 0) ? (
        <p class="overview-none">Event types, schedules, received webhooks and dead letters will appear here.</p>
      ) : null}
    </div>
  );
}
