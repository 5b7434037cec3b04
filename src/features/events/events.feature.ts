/** Events: types whose occurrences clients poll or stream, kept in topics (SEP-3415). Experimental. */
import { Lazy } from '../../core/kernel/lazy.ts';
import { BOTH_ERAS, MODERN_ERA } from '../../core/protocol/methods.ts';
import type { Feature } from '../../core/server/feature.ts';
import { cluster } from '../cluster/cluster.feature.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import { readEventsList, readEventsRead } from './event-requests.ts';
import { EventService } from './event-service.ts';

const METHOD = { kind: 'request', needs: 'events' } as const;

export const events: Feature<EventService> = {
  name: 'events',
  open(core) {
    const { metrics } = core.system;
    const emitted = metrics.counter('troupe.events', '{event}', 'Events emitted, by type.', 'event');
    metrics.gauge(
      'troupe.event.streams',
      '{stream}',
      'Open streams of events.',
      () => service.created?.streams.size ?? 0,
    );
    const service = new Lazy(
      () => new EventService(core, core.service(cluster).shared, () => core.service(authorization), emitted),
    );
    core.elements.emit = (name, data, options) => service.value.topics.emit(name, data, options);
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
        'events/stream': {
          ...METHOD,
          eras: MODERN_ERA,
          served: { by: 'events', read: (params) => readEventsRead('events/stream', params) },
        },
      },
      serves: { events: { send: (mail) => service.value.send(mail) } },
      facts: () =>
        service.created ? { topics: service.created.topics.size, 'event streams': service.created.streams.size } : {},
      stop: () => service.created?.streams.stop(),
    };
  },
};
