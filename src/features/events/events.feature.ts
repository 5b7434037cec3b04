/** Events: types whose occurrences clients poll or stream, kept in topics (SEP-3415). Experimental. */
import { Lazy } from '../../core/kernel/lazy.ts';
import type { CellHolder } from '../../core/messages/cell-holder.ts';
import { ownCalls } from '../../core/messages/node-calls.ts';
import { BOTH_ERAS, MODERN_ERA } from '../../core/protocol/methods.ts';
import type { Feature } from '../../core/server/feature.ts';
import { cluster } from '../cluster/cluster.feature.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import { PlacedSubscribers } from './delivery/placed-subscribers.ts';
import { readEventsSubscribe, readEventsUnsubscribe } from './delivery/subscribe-params.ts';
import { readEventsList, readEventsRead } from './event-requests.ts';
import { EventService } from './event-service.ts';
import { EVENTS_OPTIONS } from './events-options.ts';

const METHOD = { kind: 'request', needs: 'events' } as const;

export const events: Feature<EventService> = {
  name: 'events',
  options: EVENTS_OPTIONS,
  open(core) {
    const { shared, calls } = core.service(cluster);
    const placed = new Lazy(() => new PlacedSubscribers(calls ?? ownCalls(), () => service.value.webhooks.value));
    // Another node may ask this one before anything here uses events. A server that is alone loads nothing for that.
    if (calls) void placed.value;
    const service: Lazy<EventService> = new Lazy(
      () => new EventService(core, shared, placed.value, () => core.service(authorization)),
    );
    core.elements.emit = (name, data, options) => service.value.topics.emit(name, data, options);
    const { store } = core;
    const webhooks = () => service.created?.webhooks.created;
    let serves = false;
    const holds: CellHolder = {
      /** The store may have subscriptions of another process. */
      async take(cells) {
        if ((await store.list({ kind: 'webhook', cells, limit: 1 })).length === 0) return;
        const { subscriptions } = service.value.webhooks.value;
        await subscriptions.take(cells);
        if (serves) subscriptions.started();
      },
      drop: async (cells, flush) => webhooks()?.drop(cells, flush),
    };
    return {
      get service() {
        return service.value;
      },
      methods: {
        'events/list': {
          ...METHOD,
          eras: BOTH_ERAS,
          served: { by: 'events', read: (params) => readEventsList(params) },
        },
        'events/poll': {
          ...METHOD,
          eras: BOTH_ERAS,
          served: { by: 'events', read: (params) => readEventsRead('events/poll', params) },
        },
        'events/subscribe': {
          ...METHOD,
          eras: BOTH_ERAS,
          served: { by: 'events', read: (params) => readEventsSubscribe(params) },
        },
        'events/unsubscribe': {
          ...METHOD,
          eras: BOTH_ERAS,
          served: { by: 'events', read: (params) => readEventsUnsubscribe(params) },
        },
        'events/stream': {
          ...METHOD,
          eras: MODERN_ERA,
          served: { by: 'events', read: (params) => readEventsRead('events/stream', params) },
        },
      },
      serves: { events: { send: (mail) => service.value.send(mail) } },
      facts: () =>
        service.created ? { topics: service.created.topics.size, 'event streams': service.created.streams.size } : {},
      ...(store.durable && { holds }),
      started() {
        serves = true;
        webhooks()?.subscriptions.started();
      },
      finish: async () => webhooks()?.subscriptions.stop(),
      stop: () => service.created?.streams.stop(),
    };
  },
};
