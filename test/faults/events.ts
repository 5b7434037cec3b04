/** Builds whose topics lose, repeat or show events: the tests of events find each. */
import type { BrokenBuild } from './broken-build.ts';

export const EVENTS: readonly BrokenBuild[] = [
  {
    id: 'R-90',
    test: 'test/features/events/readers.test.ts',
    in: 'EventSubscription.read',
    find: 'let truncated = after.seq < purged;',
    replace: 'let truncated = false;',
    why: 'a reader is not told that events are gone',
  },
  {
    id: 'R-170',
    test: 'test/gateway/mounts/events.test.ts',
    in: 'event-relay.ts: foreign',
    find: 'EVENT_ID.test(event.id) ? event.id : sha256(event.id)',
    replace: 'randomId()',
    why: 'an event that comes twice from an upstream is another event',
  },
  {
    id: 'R-171',
    test: 'test/gateway/mounts/events.test.ts',
    in: 'EventRelays.#begin',
    find: 'await record.read()',
    replace: 'undefined',
    why: 'a gateway that restarts no longer receives the events of its upstreams',
  },
  {
    id: 'R-172',
    test: 'test/gateway/mounts/events.test.ts',
    in: 'event-relay.ts: foreign',
    find: 'data: undefined',
    replace: 'data: {}',
    why: 'a gap of an upstream looks like an event',
  },
  {
    id: 'R-91',
    test: 'test/features/events/several-nodes.test.ts',
    in: 'Topic.read',
    find: 'shared && !this.#appending ? this.#load() : this.#head()',
    replace: 'this.#head()',
    why: 'a node reads only what it has emitted itself',
  },
  {
    id: 'R-92',
    test: 'test/features/events/topics.test.ts',
    in: 'Topic.#commit',
    find: 'if (this.#ids) await this.#indexIds(known.head);',
    replace: '',
    why: 'an id of an earlier process is stored again',
  },
  {
    id: 'S-151',
    test: 'test/features/events/streams.test.ts',
    in: 'event-cursor.ts: EventCursors',
    find: '[PURPOSE, this.#principal, this.#name, digest(this.#args)]',
    replace: '[PURPOSE]',
    why: 'a cursor opens for every subscriber',
  },
];
