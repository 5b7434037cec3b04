/** Sums up the topics of each event type for viewers: heads, rates, what is kept, and who listens. */
import type { EventService } from '../../features/events/event-service.ts';
import type { KnownEvent } from '../../features/events/event-topics.ts';
import type { Topic } from '../../features/events/topic.ts';
import { purgedOf, type Retention, type TopicHead } from '../../features/events/topic-document.ts';
import type { EventTypeLine } from './traffic-messages.ts';

/** Most types of one view. */
const MAX_TYPES = 200;
const MINUTE_MS = 60_000;
/** Above each number of an event. */
const END = Number.MAX_SAFE_INTEGER;

/** The number of subscriptions of each type. */
export type Counts = ReadonlyMap<string, number>;

/** @param date milliseconds since 1970 */
export async function eventTypeLines(
  events: EventService,
  webhooks: Counts,
  date: number,
): Promise<readonly EventTypeLine[]> {
  const names = events.topics.events.definitions().map(({ name }) => name);
  const types = names.slice(0, MAX_TYPES).flatMap((name) => events.topics.known(name) ?? []);
  await Promise.all(types.map((type) => readHead(events, type)));
  const topics = new Map<string, Topic[]>(types.map(({ type }) => [type.name, []]));
  for (const topic of events.topics.all()) topics.get(topic.name)?.push(topic);
  const streams = events.streams.counts();
  return types.map((known): EventTypeLine => {
    const { name } = known.type;
    const counts = { streams: streams.get(name) ?? 0, webhooks: webhooks.get(name) ?? 0 };
    return { ...lineOf(known, topics.get(name) ?? [], date), ...counts };
  });
}

/** Reads the head of the only topic of a type, which other nodes may have moved. A store that fails leaves it unknown. */
async function readHead({ topics }: EventService, { type, implementation }: KnownEvent): Promise<void> {
  if (implementation.by === undefined) await topics.read(type.name, '', END, 1).catch(() => {});
}

function lineOf(
  { type, implementation: { by, retain } }: KnownEvent,
  topics: readonly Topic[],
  date: number,
): Omit<EventTypeLine, 'streams' | 'webhooks'> {
  const heads = topics.flatMap(({ lastKnown }) => lastKnown ?? []);
  const sum = (of: (head: TopicHead) => number): number => heads.reduce((all, head) => all + of(head), 0);
  const newestAt = Math.max(0, ...heads.map(newestOf));
  return {
    ...{ name: type.name, description: type.description, topics: topics.length },
    ...(by === undefined ? {} : { by }),
    ...(heads.length === 0 ? {} : { head: sum(({ last }) => last) }),
    ...(newestAt === 0 ? {} : { newestAt }),
    retained: sum((head) => head.last - purgedOf(head, retain, date)),
    bytes: sum((head) => keptBytes(head, retain, date)),
    perMinute: sum((head) => committedSince(head, date - MINUTE_MS)),
  };
}

function newestOf({ parts, tail }: TopicHead): number {
  return tail.at(-1)?.committed ?? parts.at(-1)?.committed ?? 0;
}

function keptBytes(head: TopicHead, retain: Retention, date: number): number {
  const purged = purgedOf(head, retain, date);
  const kept = [...head.parts.filter(({ last }) => last > purged), ...head.tail.filter(({ seq }) => seq > purged)];
  return kept.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** The number of events that were committed after a date. A part counts as a whole, by its newest event. */
export function committedSince({ parts, tail }: Pick<TopicHead, 'parts' | 'tail'>, date: number): number {
  const older = parts.filter(({ committed }) => committed > date);
  const inParts = older.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  return inParts + tail.filter(({ committed }) => committed > date).length;
}
